//! The statements of lists of submissions.

use super::database::Engine;
use super::rows::{SUBMISSION, as_number, folded, of_table};
use super::{SqlStore, Statement};
use crate::decision::SubmissionStatus;
use crate::store::{ArchivedFilter, Place, SubmissionFilter, SubmissionKey, SubmissionQuery};

/// Shortest text that the index of groups of three characters can be asked for.
const TRIGRAM_CHARS: usize = 3;

/// Longest pattern that SQLite is asked for, in bytes; it takes up to 50,000 (https://www.sqlite.org/limits.html).
const PATTERN_BYTES_MAX: usize = 10_000;

/// Whether an index may be asked for those that are archived, or not.
#[derive(Clone, Copy)]
enum Archive {
    /// It may.
    Indexed,
    /// It is compared, as an index in the order of the list is what counts.
    Compared,
}

/// Which rows a condition is asked of.
#[derive(Clone, Copy)]
enum Asked<'i> {
    /// Those with these ids.
    Ids(&'i [String]),
    /// Those of an index in the order of the list.
    InOrder,
    /// Whatever a filter leaves.
    Any,
}

/// Among which submissions those are looked for that pass a filter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Among {
    /// Those that have the text, as the index of groups of characters tells them. SQLite alone.
    Hits,
    /// All of them, where everything stands that a list is filtered and ordered by.
    All,
    /// All of them, where those are counted that pass a filter without a text.
    Counted,
}

impl SqlStore {
    /// Where submissions stand that pass the filter, up to one more than `most`, by their numbers if they have one there: in
    /// the direction of the list, as numbers grow with ids. Of many that are equal in what orders the list, those found
    /// first are then the first of the list, too, and the others need not be looked at.
    pub(super) fn passing_statement(&self, query: &SubmissionQuery, among: Among, most: usize) -> Statement {
        let mut select = self.places(query, among);
        if let Some(number) = self.number_of(query, among) {
            select.push(&format!(" ORDER BY {number}{}", if query.is_descending { " DESC" } else { "" }));
        }
        select.push(" LIMIT ").push_value(as_number(most as u64 + 1));
        select
    }

    /// Where the rows of a page stand, found among all that can pass: up to a place in the order of the list, and with a
    /// number behind another in the direction of the list, if these are told.
    pub(super) fn far_statement(
        &self,
        query: &SubmissionQuery,
        among: Among,
        bound: Option<&Place>,
        behind: Option<i64>,
    ) -> Statement {
        // Of an expression no index knows the order, so none is walked through.
        let column = sorted(submission_column(query.key));
        let until = |select: &mut Statement| {
            if let Some(Place { value, id }) = bound {
                select.push_until(&column, "s.id", query.is_descending, value, id);
            }
        };
        // Without an index of the text PostgreSQL would read the texts first, as it takes that to be cheaper than to compare
        // places.
        let is_text_last = self.database.engine() == Engine::Postgres
            && matches!(among, Among::All)
            && bound.is_some()
            && !query.filter.text.is_empty()
            && groups(&query.filter.text) == 0
            && !is_of_key(&query.filter);
        let mut select = if is_text_last {
            let filter = SubmissionFilter { text: String::new(), ..query.filter.clone() };
            self.places(&SubmissionQuery { filter, ..query.clone() }, among)
        } else {
            self.places(query, among)
        };
        if let (Some(number), Some(behind)) = (self.number_of(query, among), behind) {
            let side = if query.is_descending { "<" } else { ">" };
            select.push(&format!(" AND {number} {side} ")).push_value(behind);
        }
        if let Some(Place { value, id }) = &query.after {
            select.push_after(&column, "s.id", query.is_descending, value, id);
        }
        if is_text_last {
            select.push(" AND CASE WHEN TRUE");
            until(&mut select);
            select.push(" THEN s.folded LIKE ").push_value(&pattern(&folded(&query.filter.text)));
            select.push(" ELSE FALSE END");
        } else {
            until(&mut select);
        }
        select.push_order(&column, "s.id", query.is_descending, query.limit);
        select
    }

    /// The place of each that passes the filter, and its number if it has one there.
    fn places(&self, query: &SubmissionQuery, among: Among) -> Statement {
        let key = submission_column(query.key);
        let mut select = Statement::new(format!("SELECT {key} AS value, s.id AS id"));
        if let Some(number) = self.number_of(query, among) {
            select.push(&format!(", {number} AS number"));
        }
        select.push(" FROM ");
        self.push_among(&mut select, query, among);
        select
    }

    /// The column of the numbers in whose order submissions are looked at, where they have any.
    pub(super) fn number_of(&self, query: &SubmissionQuery, among: Among) -> Option<&'static str> {
        let is_numbered = self.database.engine() == Engine::Sqlite && !is_of_key(&query.filter);
        match among {
            Among::Hits if is_numbered => Some("h.rowid"),
            Among::All if is_numbered => Some("s.number"),
            Among::Hits | Among::All | Among::Counted => None,
        }
    }

    /// Where submissions are looked for, and every condition.
    fn push_among(&self, select: &mut Statement, query: &SubmissionQuery, among: Among) {
        let filter = &query.filter;
        let is_sqlite = self.database.engine() == Engine::Sqlite;
        let is_text = !filter.text.is_empty();
        let mut hits = None;
        let text = match among {
            Among::Counted => {
                select.push(self.counted(filter));
                is_text.then_some("s.folded")
            }
            // These two find few by indexes of their own.
            _ if is_of_key(filter) => {
                select.push("submission s");
                is_text.then_some("s.folded")
            }
            Among::Hits => {
                select.push("submission_trigram h CROSS JOIN submission_listed s ON s.number = h.rowid");
                hits = Some(phrase(&folded(&filter.text)));
                None
            }
            Among::All if !is_sqlite => {
                select.push("submission_text s");
                is_text.then_some("s.folded")
            }
            // The texts stand in the same order, so they are read one after the other.
            Among::All if is_text => {
                select.push("submission_listed s CROSS JOIN submission_text t ON t.number = s.number");
                Some("t.folded")
            }
            Among::All => {
                select.push("submission_listed s");
                None
            }
        };
        let archive = match among {
            Among::Counted => Archive::Indexed,
            Among::Hits | Among::All => Archive::Compared,
        };
        self.push_submission_filter(select, query, Asked::Any, text, archive);
        if let Some(phrase) = hits {
            select.push(" AND h.submission_trigram MATCH ").push_value(&phrase);
        }
    }

    /// How many pass a filter without a text, counted to one more than the query says.
    pub(super) fn submission_count(&self, query: &SubmissionQuery) -> Statement {
        let source = self.counted(&query.filter);
        let (one, end) = match query.count_max {
            Some(_) => ("COUNT(*) AS total FROM (SELECT 1 AS one", ") found"),
            None => ("COUNT(*) AS total", ""),
        };
        let mut counting = Statement::new(format!("SELECT {one} FROM {source}"));
        self.push_submission_filter(&mut counting, query, Asked::Any, None, Archive::Indexed);
        if let Some(most) = query.count_max {
            counting.push(" LIMIT ").push_value(as_number(most.saturating_add(1)));
        }
        counting.push(end);
        counting
    }

    /// The rows of one page, up to a place in its order; of these ids alone if some are told.
    pub(super) fn submission_list(
        &self,
        query: &SubmissionQuery,
        ids: Option<&[String]>,
        until: Option<&Place>,
    ) -> Statement {
        let source = match ids {
            None => self.ordered(query),
            Some(_) => "submission s".to_owned(),
        };
        let mut listing = Statement::new(format!(
            "SELECT {}, e.visibility AS entity_visibility, e.live_submission_id AS entity_live_id \
             FROM {source} LEFT JOIN entity e ON e.id = s.entity_id AND e.tenant = s.tenant",
            of_table("s", SUBMISSION)
        ));
        let text = (ids.is_none() && !query.filter.text.is_empty()).then_some("s.folded");
        let asked = ids.map_or(Asked::InOrder, Asked::Ids);
        self.push_submission_filter(&mut listing, query, asked, text, Archive::Compared);
        let column = match ids {
            None => submission_column(query.key).to_owned(),
            // Each is looked up, and they are sorted: of an expression no index knows the order, so none is walked through.
            Some(_) => sorted(submission_column(query.key)),
        };
        if let Some(Place { value, id }) = &query.after {
            listing.push_after(&column, "s.id", query.is_descending, value, id);
        }
        if let Some(Place { value, id }) = until {
            listing.push_until(&column, "s.id", query.is_descending, value, id);
        }
        listing.push_order(&column, "s.id", query.is_descending, query.limit);
        listing
    }

    /// Where a walk in the order of a list ends: the row behind as many as are looked at. None: it goes to the end of the
    /// list. It is found in the index of the order alone.
    pub(super) fn walk_end_statement(&self, query: &SubmissionQuery, walk: usize) -> Statement {
        let column = submission_column(query.key);
        let mut select =
            Statement::new(format!("SELECT {column} AS value, s.id AS id FROM {}", self.ordered(query)));
        select.push(" WHERE s.tenant = ").push_value(&query.tenant);
        if let Some(status) = only_status(query) {
            select.push_in("s.status", [status.as_str()]);
        }
        if let Some(Place { value, id }) = &query.after {
            select.push_after(column, "s.id", query.is_descending, value, id);
        }
        let direction = if query.is_descending { "DESC" } else { "ASC" };
        select.push(&format!(" ORDER BY {column} {direction}, s.id {direction} LIMIT 1 OFFSET "));
        select.push_value(as_number(walk as u64));
        select
    }

    /// Submissions in the order of a list. SQLite, which does not know how many have a value, would take an index of
    /// something else at times, and sort.
    fn ordered(&self, query: &SubmissionQuery) -> String {
        match self.database.engine() {
            Engine::Sqlite => {
                let (of_all, of_verdict) = index_of(query.key);
                let index = if only_status(query).is_some() { of_verdict } else { of_all };
                format!("submission s INDEXED BY {index}")
            }
            Engine::Postgres => "submission s".to_owned(),
        }
    }

    /// What those that pass a filter without a text are counted in. SQLite, which does not know how many have a value, would
    /// take an index of a kind and look up every row.
    fn counted(&self, filter: &SubmissionFilter) -> &'static str {
        let is_of_few = filter.viewer.is_some() || !filter.submitter.is_empty() || is_of_key(filter);
        let is_of_time = filter.start.is_some() || filter.end.is_some();
        match self.database.engine() {
            Engine::Sqlite if !is_of_few && !is_of_time => "submission s INDEXED BY submission_for_counts",
            _ => "submission s",
        }
    }

    /// Every condition: that of the ids if some are told, and that of the text if a column of texts is named.
    fn push_submission_filter(
        &self,
        select: &mut Statement,
        query: &SubmissionQuery,
        asked: Asked<'_>,
        text: Option<&str>,
        archive: Archive,
    ) {
        let filter = &query.filter;
        let is_sqlite = self.database.engine() == Engine::Sqlite;
        let is_few = matches!(asked, Asked::Ids(_));
        // What few have finds them by its index.
        let is_by_key = matches!(asked, Asked::Any) && is_of_key(filter);
        // PostgreSQL knows how many rows a condition leaves. SQLite does not, and would take an index of a condition that
        // half of all pass; of an expression no index knows anything.
        let tenant = if is_sqlite && (is_few || is_by_key) { "COALESCE(s.tenant, '')" } else { "s.tenant" };
        let any = if is_sqlite && is_few { "+" } else { "" };
        let other = if is_sqlite && (is_few || is_by_key) { "+" } else { "" };
        let is_of_one = filter.viewer.is_some() || !filter.submitter.is_empty();
        let kind = if is_sqlite && (is_few || is_by_key || is_of_one) { "+" } else { "" };
        select.push(&format!(" WHERE {tenant} = ")).push_value(&query.tenant);
        if let Asked::Ids(ids) = asked {
            select.push_in("s.id", ids);
        }
        if let Some(viewer) = &filter.viewer {
            select.push(&format!(" AND {other}s.submitter = ")).push_value(viewer);
        }
        if filter.statuses.is_empty() {
            select.push(" AND s.status <> 'deleted'");
        } else {
            let statuses = filter.statuses.iter().map(|status| status.as_str());
            select.push_in(&format!("{other}s.status"), statuses);
        }
        if !filter.kinds.is_empty() {
            select.push_in(&format!("{kind}s.kind"), filter.kinds.iter().map(|kind| kind.as_str()));
        }
        for (any, column, value) in [
            (other, "s.submitter", filter.submitter.clone()),
            (any, "s.entity_id", filter.entity_id.clone()),
            (any, "s.bundle_sha256", filter.bundle_sha256.to_ascii_lowercase()),
        ] {
            if !value.is_empty() {
                select.push(&format!(" AND {any}{column} = ")).push_value(&value);
            }
        }
        if let Some(column) = text {
            let text = folded(&filter.text);
            match glob(&text).filter(|_| is_sqlite) {
                Some(glob) => select.push(&format!(" AND {column} GLOB ")).push_value(&glob),
                None if is_sqlite => {
                    select.push(&format!(" AND instr({column}, ")).push_value(&text).push(") > 0")
                }
                None => select.push(&format!(" AND {column} LIKE ")).push_value(&pattern(&text)),
            };
        }
        let is_archived = match filter.archived {
            ArchivedFilter::Include => None,
            ArchivedFilter::Only => Some(1),
            ArchivedFilter::Exclude => Some(0),
        };
        if let Some(is_archived) = is_archived {
            let any = if is_sqlite && matches!(archive, Archive::Compared) { "+" } else { other };
            select.push(&format!(" AND {any}s.is_archived = {is_archived}"));
        }
        select.push_span(&format!("{other}s.create_time_us"), filter.start, filter.end);
    }
}

/// The indexes in the order of a key: of all of a tenant, and of those of one verdict.
fn index_of(key: SubmissionKey) -> (&'static str, &'static str) {
    match key {
        SubmissionKey::CreateTime => ("submission_by_time", "submission_of_verdict"),
        SubmissionKey::UpdateTime => ("submission_by_change", "submission_of_verdict_by_change"),
        SubmissionKey::Name => ("submission_by_name", "submission_of_verdict_by_name"),
        SubmissionKey::Submitter => ("submission_by_person", "submission_of_verdict_by_person"),
        SubmissionKey::Kind => ("submission_by_kind", "submission_of_verdict_by_kind"),
        SubmissionKey::Status => ("submission_by_verdict", "submission_by_verdict"),
        SubmissionKey::FileSize => ("submission_by_size", "submission_of_verdict_by_size"),
    }
}

/// The status asked for, if it is one.
fn only_status(query: &SubmissionQuery) -> Option<SubmissionStatus> {
    match query.filter.statuses.as_slice() {
        [status] => Some(*status),
        _ => None,
    }
}

/// Whether a filter asks for what few have, and what has an index of its own.
pub(super) fn is_of_key(filter: &SubmissionFilter) -> bool {
    !filter.entity_id.is_empty() || !filter.bundle_sha256.is_empty()
}

/// How many groups of three characters a text has, by which an index finds it.
pub(super) fn groups(text: &str) -> usize {
    (folded(text).chars().count() + 1).saturating_sub(TRIGRAM_CHARS)
}

/// What the index of groups of characters is asked for to find a text of at least three.
fn phrase(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// How many texts hold such a text, counted to one more than `most`.
pub(super) fn hits_statement(text: &str, most: usize) -> Statement {
    let mut select = Statement::new(
        "SELECT COUNT(*) AS hits FROM (SELECT rowid FROM submission_trigram WHERE submission_trigram MATCH ",
    );
    select.push_value(&phrase(text));
    select.push(" LIMIT ").push_value(as_number(most as u64 + 1)).push(") found");
    select
}

/// The values of a column, to be sorted and not read in the order of an index.
fn sorted(column: &str) -> String {
    format!("COALESCE({column}, {column})")
}

/// What PostgreSQL finds a text by, character by character.
fn pattern(text: &str) -> String {
    let literal = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{literal}%")
}

/// The same for SQLite, which compares by a pattern in half the time that it takes to tell where a text stands. `None`
/// where the pattern would be too long.
fn glob(text: &str) -> Option<String> {
    let literal = text.replace('[', "[[]").replace('*', "[*]").replace('?', "[?]");
    (literal.len() <= PATTERN_BYTES_MAX).then(|| format!("*{literal}*"))
}

fn submission_column(key: SubmissionKey) -> &'static str {
    match key {
        SubmissionKey::CreateTime => "s.create_time_us",
        SubmissionKey::UpdateTime => "s.update_time_us",
        SubmissionKey::Name => "s.name",
        SubmissionKey::Submitter => "s.submitter",
        SubmissionKey::Kind => "s.kind",
        SubmissionKey::Status => "s.status",
        SubmissionKey::FileSize => "s.file_size",
    }
}
