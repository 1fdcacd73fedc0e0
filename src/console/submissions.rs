//! The list of submissions.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::answer;
use super::filters;
use super::form::Fields;
use super::shell::Shell;
use super::view::{self, Moment};
use super::visitor::Visitor;
use crate::decision::CheckStatus;
use crate::grpc::Refusal;
use crate::pb::v1;
use crate::policy::CallerRole;
use crate::store::{ChecksBrief, SEARCHED_MAX};

/// Where the list is.
pub(super) const PLACE: &str = "/console/submissions";

/// Rows on one page unless asked otherwise.
const PAGE_SIZE: u32 = 25;
/// How many rows one can ask for.
const PAGE_SIZES: [u32; 3] = [10, 25, 50];

/// What can be sorted by: key of the contract, heading, whether it is a number.
const COLUMNS: [(&str, &str); 7] = [
    ("name", "Bundle"),
    ("status", "Verdict"),
    ("submitter", "Submitter"),
    ("create_time", "Received"),
    ("update_time", "Changed"),
    ("kind", "Kind"),
    ("file_size", "Size"),
];

pub(super) const STATUSES: [v1::SubmissionStatus; 8] = [
    v1::SubmissionStatus::PendingInline,
    v1::SubmissionStatus::BlockedInline,
    v1::SubmissionStatus::PendingLlm,
    v1::SubmissionStatus::Approved,
    v1::SubmissionStatus::BlockedLlm,
    v1::SubmissionStatus::ReviewError,
    v1::SubmissionStatus::Overridden,
    v1::SubmissionStatus::Deleted,
];

#[derive(Template)]
#[template(path = "submissions.html")]
struct Page {
    shell: Shell,
    title: &'static str,
    is_uploader: bool,
    chips: Vec<Chip>,
    heads: Vec<Head>,
    rows: Vec<Row>,
    total: String,
    sizes: Vec<(u32, bool)>,
    /// The filters that the form does not hold, for it to bring again.
    kept: Vec<(&'static str, String)>,
    text: String,
    submitter: String,
    kinds: Vec<(&'static str, &'static str, bool)>,
    first: Option<String>,
    next: Option<String>,
    /// The address of this very page, while something on it will change by itself.
    refresh: Option<String>,
    is_filtered: bool,
}

/// A filter to choose.
struct Chip {
    label: String,
    href: String,
    is_current: bool,
}

/// The head of a column.
pub(super) struct Head {
    /// What it is called.
    pub(super) label: &'static str,
    /// Where it leads: the same list in this order.
    pub(super) href: String,
    /// `ascending` or `descending` where the list is in this order.
    pub(super) sort: Option<&'static str>,
}

struct Row {
    href: String,
    created: Moment,
    updated: Moment,
    name: String,
    version: String,
    kind: String,
    submitter: String,
    status: String,
    status_class: String,
    hold: Option<&'static str>,
    visibility: String,
    is_live: bool,
    size: String,
    checks: Vec<Check>,
    found: Vec<String>,
    more: usize,
    model: String,
    /// Whether checks ended, and all of them well.
    is_clean: bool,
}

/// How one check ended.
pub(super) struct Check {
    /// Which.
    pub(super) name: &'static str,
    /// How it ended.
    pub(super) status: String,
}

/// The list.
pub(super) async fn list(visitor: Visitor) -> Response {
    visitor.show(made(&visitor).await)
}

async fn made(visitor: &Visitor) -> Result<Response, Refusal> {
    let query = &visitor.query;
    let size =
        query.one("page_size").parse().ok().filter(|size| PAGE_SIZES.contains(size)).unwrap_or(PAGE_SIZE);
    let (key, is_descending) = order(query, &COLUMNS, "create_time");
    let request = v1::ListSubmissionsRequest {
        statuses: status_of(query).map(Into::into).into_iter().collect(),
        kinds: kind_of(query).map(Into::into).into_iter().collect(),
        submitter: query.one("submitter").trim().to_owned(),
        archived: archived(query).into(),
        query: query.one("text").trim().to_owned(),
        order_by: if is_descending { format!("{key} desc") } else { key.to_owned() },
        page_size: size,
        page_token: query.one("page_token").to_owned(),
        view: v1::SubmissionView::Basic.into(),
        ..Default::default()
    };
    let found: v1::ListSubmissionsResponse =
        visitor.list("SubmissionService/ListSubmissions", &request).await?;
    let ids = found.submissions.iter().map(|submission| submission.id.clone()).collect();
    let briefs = visitor.calls().briefs(&visitor.identity, ids).await?;
    let row = |one: &v1::Submission| Row::of(one, briefs.get(&one.id).cloned().unwrap_or_default());
    let is_uploader = !visitor.identity.has(CallerRole::Auditor);
    let is_changing = found.submissions.iter().any(is_changing);
    let at = |query: String| if query.is_empty() { PLACE.to_owned() } else { format!("{PLACE}?{query}") };
    let page = Page {
        shell: visitor.shell(PLACE),
        title: if is_uploader { "My submissions" } else { "Submissions" },
        is_uploader,
        chips: chips(query),
        heads: heads(query, PLACE, &COLUMNS, (key, is_descending)),
        rows: found.submissions.iter().map(row).collect(),
        total: total_words(found.total, archived(query), status_of(query)),
        sizes: PAGE_SIZES.map(|one| (one, one == size)).into(),
        kept: ["status", "archived", "sort", "order"]
            .map(|name| (name, query.one(name).to_owned()))
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect(),
        text: query.one("text").to_owned(),
        submitter: query.one("submitter").to_owned(),
        kinds: [("", "Any"), ("skill", "Skill"), ("plugin", "Plugin"), ("agent", "Agent")]
            .map(|(value, label)| (value, label, query.one("kind") == value))
            .into(),
        first: (!request.page_token.is_empty()).then(|| at(query.with(&[("page_token", "")]))),
        next: (!found.next_page_token.is_empty())
            .then(|| at(query.with(&[("page_token", &found.next_page_token)]))),
        refresh: is_changing.then(|| at(query.with(&[("notice", "")]))),
        is_filtered: ["status", "archived", "text", "submitter", "kind"]
            .iter()
            .any(|name| !query.one(name).is_empty()),
    };
    Ok(answer::page(StatusCode::OK, &page))
}

/// How many there are, as far as they are counted, and what is left out.
fn total_words(total: u64, archived: v1::ArchivedFilter, status: Option<v1::SubmissionStatus>) -> String {
    let but = match (archived, status) {
        (v1::ArchivedFilter::Exclude, None) => ", archived and deleted ones left out",
        (v1::ArchivedFilter::Exclude, Some(status)) if status != v1::SubmissionStatus::Deleted => {
            ", archived ones left out"
        }
        _ => "",
    };
    match total {
        total if total > SEARCHED_MAX => format!("more than {SEARCHED_MAX}{but}"),
        total => format!("{total} in all{but}"),
    }
}

/// Whether it will change by itself.
pub(super) fn is_changing(submission: &v1::Submission) -> bool {
    let is_held = !matches!(submission.hold_reason(), v1::HoldReason::None | v1::HoldReason::Unspecified);
    let is_pending =
        matches!(submission.status(), v1::SubmissionStatus::PendingInline | v1::SubmissionStatus::PendingLlm);
    is_pending && !is_held
}

fn status_of(query: &Fields) -> Option<v1::SubmissionStatus> {
    STATUSES.into_iter().find(|status| view::status((*status).into()) == query.one("status"))
}

fn kind_of(query: &Fields) -> Option<v1::BundleKind> {
    match query.one("kind") {
        "skill" => Some(v1::BundleKind::Skill),
        "plugin" => Some(v1::BundleKind::Plugin),
        "agent" => Some(v1::BundleKind::Agent),
        _ => None,
    }
}

fn archived(query: &Fields) -> v1::ArchivedFilter {
    match query.one("archived") {
        "true" => v1::ArchivedFilter::Only,
        _ => v1::ArchivedFilter::Exclude,
    }
}

/// The order that an address asks for: a key of `columns`, and whether larger ones come first.
pub(super) fn order(
    query: &Fields,
    columns: &[(&'static str, &'static str)],
    default: &'static str,
) -> (&'static str, bool) {
    let asked = columns.iter().find(|(key, _)| *key == query.one("sort")).map(|(key, _)| *key);
    match asked {
        Some(key) => (key, query.one("order") == "desc"),
        None => (default, true),
    }
}

/// The heads of columns that can be sorted by.
pub(super) fn heads(
    query: &Fields,
    place: &str,
    columns: &[(&'static str, &'static str)],
    (key, is_descending): (&str, bool),
) -> Vec<Head> {
    let head = |(column, label): &(&'static str, &'static str)| {
        let is_this = *column == key;
        let order = if is_this && !is_descending { "desc" } else { "asc" };
        // A token belongs to the order that it continues.
        let changed = [("sort", *column), ("order", order), ("page_token", ""), ("notice", "")];
        Head {
            label,
            href: format!("{place}?{}", query.with(&changed)),
            sort: is_this.then_some(if is_descending { "descending" } else { "ascending" }),
        }
    };
    columns.iter().map(head).collect()
}

fn chips(query: &Fields) -> Vec<Chip> {
    let chip = |label: String, status: &str, archived: &str, is_current: bool| {
        let changed = [("status", status), ("archived", archived), ("page_token", ""), ("notice", "")];
        let query = query.with(&changed);
        let href = if query.is_empty() { PLACE.to_owned() } else { format!("{PLACE}?{query}") };
        Chip { label, href, is_current }
    };
    let (chosen, is_archived) = (status_of(query), query.one("archived") == "true");
    let mut chips = vec![chip("All".to_owned(), "", "", chosen.is_none() && !is_archived)];
    for status in STATUSES {
        let word = view::status(status.into());
        chips.push(chip(view::spoken(&word), &word, "", chosen == Some(status)));
    }
    chips.push(chip("archived".to_owned(), "", "true", is_archived));
    chips
}

/// The checks by name, in the order of the contract.
const CHECKS: [&str; 4] = ["archive", "manifest", "static security", "quality"];

/// How the checks of a submission ended, by name.
pub(super) fn checks_of(checks: Option<&v1::BundleChecks>) -> Vec<(&'static str, &v1::CheckResult)> {
    let Some(checks) = checks else { return Vec::new() };
    let all = [&checks.archive, &checks.manifest, &checks.static_security, &checks.quality];
    let named = CHECKS.into_iter().zip(all);
    named.filter_map(|(name, check)| Some((name, check.as_ref()?))).collect()
}

/// Why it is held, in a few words.
pub(super) fn hold_words(submission: &v1::Submission) -> Option<&'static str> {
    match submission.hold_reason() {
        v1::HoldReason::NoKey => Some("held: no model has a key"),
        v1::HoldReason::Coverage => Some("held: not everything was scanned"),
        v1::HoldReason::None | v1::HoldReason::Unspecified => None,
    }
}

/// Why it stands as it does, where no finding of a model says so: the worst of what the checks found where they blocked it,
/// else what the model said of the whole.
fn why_without_findings(status: v1::SubmissionStatus, brief: &ChecksBrief) -> Option<&str> {
    let review = brief.review.as_ref();
    let told = match status {
        v1::SubmissionStatus::BlockedInline => Some(brief.worst.as_str()),
        v1::SubmissionStatus::BlockedLlm => review.map(|review| review.summary.as_str()),
        v1::SubmissionStatus::ReviewError => review.map(|review| review.reason.as_str()),
        _ => None,
    };
    told.filter(|told| !told.is_empty())
}

impl Row {
    fn of(submission: &v1::Submission, mut brief: ChecksBrief) -> Self {
        let review = brief.review.as_mut();
        let (mut found, more) =
            review.map(|review| (std::mem::take(&mut review.found), review.more)).unwrap_or_default();
        if found.is_empty() {
            found.extend(why_without_findings(submission.status(), &brief).map(str::to_owned));
        }
        let is_clean = |status: &CheckStatus| *status == CheckStatus::Pass;
        let (status, visibility) = (view::status(submission.status), submission.visibility);
        Self {
            href: format!("{PLACE}/{}", view::segment(&submission.id)),
            created: Moment::of(submission.create_time.as_ref()),
            updated: Moment::of(submission.update_time.as_ref()),
            name: submission.name.clone(),
            version: submission.version.clone(),
            kind: view::kind(submission.kind),
            submitter: submission.submitter.clone(),
            status_class: view::class(&status),
            status: view::spoken(&status),
            hold: hold_words(submission),
            visibility: if visibility == 0 { String::new() } else { view::visibility(visibility) },
            is_live: submission.live,
            size: view::size(submission.file_size),
            is_clean: brief.statuses.iter().all(is_clean),
            // What went well need not be looked at.
            checks: CHECKS
                .into_iter()
                .zip(brief.statuses)
                .filter(|(_, status)| !is_clean(status))
                .map(|(name, status)| Check { name, status: status.as_str().to_owned() })
                .collect(),
            found,
            more,
            model: submission.review_model.clone(),
        }
    }
}
