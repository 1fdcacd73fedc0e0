//! Pages of submissions: which way a page is looked for.

use std::cmp::Ordering;

use super::database::{Engine, Transaction};
use super::rows::{self, as_number, count, folded, microseconds};
use super::submission_selects::{Among, groups, hits_statement, is_of_key};
use super::{Row, SqlStore, Statement};
use crate::decision::{BundleKind, SubmissionStatus, Visibility};
use crate::store::{
    KeyValue, ListedSubmission, Place, SEARCHED_MAX, StoreError, SubmissionKey, SubmissionPage,
    SubmissionQuery,
};

/// As many as this at most are looked up one by one.
const FEW_MAX: usize = SEARCHED_MAX as usize;

/// Rows that are looked at in the order of a list before what is asked for is looked for otherwise.
const WALK_MAX: usize = 2_000;
/// The same for a long page: as many rows for each of its own.
const WALK_PER_ROW: usize = 4;

/// Hits of a text of three characters that are taken from the index of groups of characters at most; of more, reading all
/// texts is as quick.
const HITS_MAX: usize = 20_000;
/// To look up a hit costs as much as to find this many groups of a text in it.
const TRIGRAMS_PER_ROW: usize = 13;

/// What PostgreSQL is to know of a search: that a few which pass may stand at the end of a table, where it takes them to be
/// spread, so that an index is better; and that how many have a text depends on the text.
const SEARCHING: &str = "SELECT set_config('enable_seqscan', 'off', true), \
     set_config('plan_cache_mode', 'force_custom_plan', true)";

/// How far each way goes on which a page is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// As many as this at most are looked up one by one.
    pub(super) few: usize,
    /// Rows that are looked at in the order of the list.
    pub(super) walk: usize,
    /// Hits of a text of three characters that are taken from an index; of a longer one fewer, as each costs more.
    pub(super) hits: usize,
}

/// Those that pass a filter, or the first of them.
struct Passing {
    /// Where each stands in the list, in no order.
    places: Vec<Place>,
    /// The number of the last one, where they were looked at by their numbers: all others stand behind it.
    last: Option<i64>,
}

impl SqlStore {
    pub(super) async fn submissions_now(&self, query: SubmissionQuery) -> Result<SubmissionPage, StoreError> {
        let walk = WALK_MAX.max(query.limit.saturating_mul(WALK_PER_ROW));
        self.submissions_within(query, Reach { few: FEW_MAX, walk, hits: HITS_MAX }).await
    }

    /// A page, whichever way is quick:
    ///
    /// - few that pass the filter are sorted here, and those of the page are looked up;
    /// - else the rows are walked through in the order of the list, which has an index, until the page is full;
    /// - where it is not full within `reach.walk` rows, what is asked for stands far back in that order: all that can pass
    ///   are looked at where everything stands that a list is filtered and ordered by, and nothing else.
    pub(super) async fn submissions_within(
        &self,
        query: SubmissionQuery,
        reach: Reach,
    ) -> Result<SubmissionPage, StoreError> {
        // One transaction, so that the total is that of the moment of the rows.
        let mut read = self.database.read().await?;
        if query.filter.text.is_empty() {
            self.filtered(&mut read, &query, reach).await
        } else {
            self.searched(&mut read, &query, reach).await
        }
    }

    /// A page of those that pass a filter without a text; all of them are counted in an index.
    async fn filtered(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        reach: Reach,
    ) -> Result<SubmissionPage, StoreError> {
        let total = count(read.number(self.submission_count(query), "total").await?);
        if total == 0 {
            return Ok(SubmissionPage { submissions: Vec::new(), next: None, total });
        }
        let end = self.walk_end(read, query, reach).await?;
        // A total of which no more was counted tells nothing.
        let is_counted = query.count_max.is_none_or(|most| total <= most);
        if end.is_some() && is_counted && total <= reach.few as u64 {
            let found = self.passing(read, query, Among::Counted, reach.few).await?;
            return self.page_of(read, query, found.places, total).await;
        }
        if let Some(page) = self.walked(read, query, end.as_ref(), total).await? {
            return Ok(page);
        }
        let far = self.far(read, query, Among::All, None, None).await?;
        self.page_of(read, query, far, total).await
    }

    /// A page of those that have a text and pass the rest of the filter. No row is looked at twice: what was looked at to
    /// tell whether they are few is not looked at again for the page, and no row behind the worst of what was found so far
    /// has its text read.
    async fn searched(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        reach: Reach,
    ) -> Result<SubmissionPage, StoreError> {
        if self.database.engine() == Engine::Postgres {
            read.rows(Statement::new(SEARCHING)).await?;
        }
        let among = self.among(read, query, reach).await?;
        let mut found = self.passing(read, query, among, reach.few).await?;
        // A text that stands in many is not counted to its end: that would read all of them.
        let most = query.count_max.map_or(reach.few as u64, |most| most.min(reach.few as u64));
        let total = (found.places.len() as u64).min(most.saturating_add(1));
        if found.places.len() <= reach.few {
            return self.page_of(read, query, found.places, total).await;
        }
        to_page(query, &mut found.places);
        // The page ends here or earlier, as so many stand before it.
        let bound = found.places.get(query.limit).cloned();
        let end = self.walk_end(read, query, reach).await?;
        let until = match (&bound, &end) {
            (Some(bound), Some(end)) if query_order(query, bound, end).is_gt() => Some(end),
            (Some(bound), _) => Some(bound),
            (None, end) => end.as_ref(),
        };
        if let Some(page) = self.walked(read, query, until, total).await? {
            return Ok(page);
        }
        let mut far = self.far(read, query, among, bound.as_ref(), found.last).await?;
        if found.last.is_some() {
            far.append(&mut found.places);
        }
        self.page_of(read, query, far, total).await
    }

    /// Where a search looks: the index of groups of characters tells whether few enough have the text.
    async fn among(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        reach: Reach,
    ) -> Result<Among, StoreError> {
        let groups = groups(&query.filter.text);
        if self.database.engine() != Engine::Sqlite || groups == 0 || is_of_key(&query.filter) {
            return Ok(Among::All);
        }
        let most = reach.hits.saturating_mul(TRIGRAMS_PER_ROW + 1) / (TRIGRAMS_PER_ROW + groups);
        let hits = count(read.number(hits_statement(&folded(&query.filter.text), most), "hits").await?);
        Ok(if hits <= most as u64 { Among::Hits } else { Among::All })
    }

    /// Where all stand that pass the filter, up to one more than `most`.
    async fn passing(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        among: Among,
        most: usize,
    ) -> Result<Passing, StoreError> {
        let rows = read.rows(self.passing_statement(query, among, most)).await?;
        let places = self.read_all(&rows, |row| place_of(row, query.key))?;
        let last = match rows.last().filter(|_| self.number_of(query, among).is_some()) {
            Some(row) => Some(self.read(row.number("number"))?),
            None => None,
        };
        Ok(Passing { places, last })
    }

    /// Where a walk ends that looks at no more rows than it may; `None`: with the list.
    async fn walk_end(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        reach: Reach,
    ) -> Result<Option<Place>, StoreError> {
        let end = read.row(self.walk_end_statement(query, reach.walk)).await?;
        self.read(end.map(|row| place_of(&row, query.key)).transpose())
    }

    /// A page that is found by a walk up to a place in the order of the list, or to its end; `None` if it is not full there.
    async fn walked(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        until: Option<&Place>,
        total: u64,
    ) -> Result<Option<SubmissionPage>, StoreError> {
        let listing = self.submission_list(query, None, until);
        let submissions = self.read_all(&read.rows(listing).await?, listed_submission)?;
        let is_whole = until.is_none() || submissions.len() > query.limit;
        Ok(is_whole.then(|| page(submissions, query, total)))
    }

    /// Where the rows of a page stand among all that can pass: those up to `bound` in the order of the list, and with a
    /// number behind `behind`.
    async fn far(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        among: Among,
        bound: Option<&Place>,
        behind: Option<i64>,
    ) -> Result<Vec<Place>, StoreError> {
        let rows = read.rows(self.far_statement(query, among, bound, behind)).await?;
        self.read_all(&rows, |row| place_of(row, query.key))
    }

    /// The page of the list whose rows are among these.
    async fn page_of(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        mut found: Vec<Place>,
        total: u64,
    ) -> Result<SubmissionPage, StoreError> {
        to_page(query, &mut found);
        let ids: Vec<String> = found.into_iter().map(|place| place.id).collect();
        if ids.is_empty() {
            return Ok(page(Vec::new(), query, total));
        }
        let listing = self.submission_list(query, Some(&ids), None);
        let submissions = self.read_all(&read.rows(listing).await?, listed_submission)?;
        Ok(page(submissions, query, total))
    }
}

/// Sorts what was found, and leaves what stands behind the page before: the rows of the page, and one more, which tells
/// whether there is a next one.
fn to_page(query: &SubmissionQuery, found: &mut Vec<Place>) {
    if let Some(after) = &query.after {
        found.retain(|place| query_order(query, place, after).is_gt());
    }
    found.sort_unstable_by(|a, b| query_order(query, a, b));
    found.truncate(query.limit.saturating_add(1));
}

/// The order of two places in the direction of a list.
fn query_order(query: &SubmissionQuery, a: &Place, b: &Place) -> Ordering {
    let order = in_order(a, b);
    if query.is_descending { order.reverse() } else { order }
}

/// The ascending order of two places of one list: texts byte by byte, as both engines compare them here.
fn in_order(a: &Place, b: &Place) -> Ordering {
    let order = match (&a.value, &b.value) {
        (KeyValue::Number(a), KeyValue::Number(b)) => a.cmp(b),
        (KeyValue::Text(a), KeyValue::Text(b)) => a.cmp(b),
        // A list is ordered by values of one kind.
        (KeyValue::Number(_), KeyValue::Text(_)) => Ordering::Less,
        (KeyValue::Text(_), KeyValue::Number(_)) => Ordering::Greater,
    };
    order.then_with(|| a.id.cmp(&b.id))
}

/// A page of rows of which one may be too many: it tells that there is a next page.
fn page(mut submissions: Vec<ListedSubmission>, query: &SubmissionQuery, total: u64) -> SubmissionPage {
    let has_more = submissions.len() > query.limit;
    submissions.truncate(query.limit);
    let next = submissions.last().filter(|_| has_more).map(|last| submission_place(last, query.key));
    SubmissionPage { submissions, next, total }
}

/// Where the submission of a row with its `value` and `id` stands in a list.
fn place_of(row: &Row, key: SubmissionKey) -> Result<Place, sqlx::Error> {
    let value = match key {
        SubmissionKey::CreateTime | SubmissionKey::UpdateTime | SubmissionKey::FileSize => {
            KeyValue::Number(row.number("value")?)
        }
        SubmissionKey::Name | SubmissionKey::Submitter | SubmissionKey::Kind | SubmissionKey::Status => {
            KeyValue::Text(row.text("value")?)
        }
    };
    Ok(Place { value, id: row.text("id")? })
}

fn listed_submission(row: &Row) -> Result<ListedSubmission, sqlx::Error> {
    let submission = rows::submission(row)?;
    let visibility = row.text_or_none("entity_visibility")?;
    let is_live = row.text_or_none("entity_live_id")?.is_some_and(|live| live == submission.id);
    let visibility = visibility
        .map(|name| {
            Visibility::parse(&name).ok_or_else(|| rows::decode(format!("unknown visibility `{name}`")))
        })
        .transpose()?;
    Ok(ListedSubmission { submission, visibility, is_live })
}

fn submission_place(listed: &ListedSubmission, key: SubmissionKey) -> Place {
    let one = &listed.submission;
    let text = |text: &str| KeyValue::Text(text.to_owned());
    let value = match key {
        SubmissionKey::CreateTime => KeyValue::Number(microseconds(one.created)),
        SubmissionKey::UpdateTime => KeyValue::Number(microseconds(one.updated)),
        SubmissionKey::Name => text(&one.name),
        SubmissionKey::Submitter => text(&one.submitter),
        SubmissionKey::Kind => text(BundleKind::as_str(one.kind)),
        SubmissionKey::Status => text(SubmissionStatus::as_str(one.status)),
        SubmissionKey::FileSize => KeyValue::Number(as_number(one.file_size)),
    };
    Place { value, id: one.id.clone() }
}
