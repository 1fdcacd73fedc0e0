//! Pages of submissions and entities.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::database::Transaction;
use super::rows::{self, ENTITY, SUBMISSION, as_number, count, folded, microseconds, of_table};
use super::{Engine, Row, SqlStore, Statement};
use crate::decision::{BundleKind, SubmissionStatus, Visibility};
use crate::store::{
    ArchivedFilter, EntityKey, EntityPage, EntityQuery, KeyValue, ListedEntity, ListedSubmission, Place,
    SEARCHED_MAX, StoreError, StoredSubmission, SubmissionFilter, SubmissionKey, SubmissionPage,
    SubmissionQuery,
};

const ENTITIES: &str = "FROM entity e";
/// Each beside its live submission.
const ENTITIES_WITH_LIVE: &str =
    "FROM entity e LEFT JOIN submission l ON l.id = e.live_submission_id AND l.tenant = e.tenant";

/// Submissions whose rows are fetched at once.
const IDS_MAX: usize = 500;

/// As many as this at most are looked up one by one.
const FEW_MAX: usize = SEARCHED_MAX as usize;

/// Rows that are looked at in the order of a list before what is asked for is looked for otherwise.
const WALK_MAX: usize = 2_000;
/// The same for a long page: as many rows for each of its own.
const WALK_PER_ROW: usize = 4;

/// Hits of a text of three characters that are taken from the index of groups of characters at most; of more, reading all
/// texts is as quick.
const HITS_MAX: usize = 20_000;

/// Shortest text that the index of groups of three characters can be asked for.
const TRIGRAM_CHARS: usize = 3;
/// To look up a hit costs as much as to find this many groups of a text in it.
const TRIGRAMS_PER_ROW: usize = 13;

/// Whether an index may be asked for those that are archived, or not.
#[derive(Clone, Copy)]
enum Archive {
    /// It may.
    Indexed,
    /// It is compared, as an index in the order of the list is what counts.
    Compared,
}

/// Among which submissions those are looked for that pass a filter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Among {
    /// The first so many that have the text, as the index of groups of characters tells them. SQLite alone.
    Hits(usize),
    /// All of them, where everything stands that a list is filtered and ordered by.
    All,
    /// All of them, where those are counted that pass a filter without a text.
    Counted,
}

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

/// What is known of a search before the rows are walked through.
enum Searched {
    /// So few pass the filter; where each stands in the list, in no order.
    Few(Vec<Place>),
    /// More pass it.
    Many,
    /// It would take reading all of them to tell.
    Unknown,
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
        let is_text = !query.filter.text.is_empty();
        // A text that stands in many is not counted to its end: that would read all of them.
        let many = |found: u64| {
            let most = query.count_max.map_or(reach.few as u64, |most| most.min(reach.few as u64));
            found.min(most.saturating_add(1))
        };
        let mut total = None;
        let mut among = None;
        if is_text {
            match self.searched(&mut read, &query, reach).await? {
                Searched::Few(found) => {
                    let total = many(found.len() as u64);
                    return self.page_of_few(&mut read, &query, found, total).await;
                }
                Searched::Many => total = Some(many(u64::MAX)),
                Searched::Unknown => among = Some(Among::All),
            }
        } else {
            let counted = count(read.number(self.submission_count(&query), "total").await?);
            if counted == 0 {
                return Ok(SubmissionPage { submissions: Vec::new(), next: None, total: 0 });
            }
            total = Some(counted);
        }
        let end = read.row(self.walk_end_statement(&query, reach.walk)).await?;
        let end = self.read(end.map(|row| place_of(&row, query.key)).transpose())?;
        // A total of which no more was counted tells nothing.
        let few = total.filter(|total| !is_text && query.count_max.is_none_or(|most| *total <= most));
        if let Some(total) = few.filter(|total| end.is_some() && *total <= reach.few as u64) {
            let found = self.passing(&mut read, &query, Among::Counted, reach.few).await?;
            return self.page_of_few(&mut read, &query, found, total).await;
        }
        let listing = self.submission_list(&query, None, end.as_ref());
        let submissions = self.read_all(&read.rows(listing).await?, listed_submission)?;
        if end.is_none() || submissions.len() > query.limit {
            let total = match total {
                Some(total) => total,
                None => many(count(
                    read.number(self.passing_count(&query, Among::All, reach.few), "total").await?,
                )),
            };
            return Ok(page(submissions, &query, total));
        }
        let among = match among {
            Some(among) => among,
            None => self.among(&mut read, &query, reach).await?,
        };
        let rows = read.rows(self.far_statement(&query, among, total.is_none())).await?;
        let ids = self.read_all(&rows, |row| row.text_or_none("id"))?;
        let total = match (total, rows.first()) {
            (Some(total), _) => total,
            (None, Some(row)) => many(count(self.read(row.number("total"))?)),
            (None, None) => 0,
        };
        let ids: Vec<String> = ids.into_iter().flatten().collect();
        let submissions = self.of_ids(&mut read, &query, &ids).await?;
        Ok(page(submissions, &query, total))
    }

    /// A page of those that pass the filter.
    async fn page_of_few(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        mut found: Vec<Place>,
        total: u64,
    ) -> Result<SubmissionPage, StoreError> {
        let order = |a: &Place, b: &Place| {
            let order = in_order(a, b);
            if query.is_descending { order.reverse() } else { order }
        };
        if let Some(after) = &query.after {
            found.retain(|place| order(place, after).is_gt());
        }
        found.sort_unstable_by(order);
        // One more tells whether there is a next page.
        found.truncate(query.limit.saturating_add(1));
        let ids: Vec<String> = found.into_iter().map(|place| place.id).collect();
        Ok(page(self.of_ids(read, query, &ids).await?, query, total))
    }

    /// These in the order of the list.
    async fn of_ids(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        ids: &[String],
    ) -> Result<Vec<ListedSubmission>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let listing = self.submission_list(query, Some(ids), None);
        self.read_all(&read.rows(listing).await?, listed_submission)
    }

    /// Those with a text that pass the filter, if they are few.
    async fn searched(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        reach: Reach,
    ) -> Result<Searched, StoreError> {
        let among = match self.hits_max(query, reach) {
            Some(most) => Among::Hits(most),
            // No index knows such a text: all are read, and no more than once. Many have it, so the walk comes first.
            None if groups(&query.filter.text) == 0 && !is_of_key(&query.filter) => {
                return Ok(Searched::Unknown);
            }
            None => Among::All,
        };
        let found = self.passing(read, query, among, reach.few).await?;
        if found.len() > reach.few {
            return Ok(Searched::Many);
        }
        if let Among::Hits(_) = among
            && let Among::All = self.among(read, query, reach).await?
        {
            // There are hits that were not looked at.
            return Ok(Searched::Unknown);
        }
        Ok(Searched::Few(found))
    }

    /// Where all stand that pass the filter, up to one more than `most`.
    async fn passing(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        among: Among,
        most: usize,
    ) -> Result<Vec<Place>, StoreError> {
        let rows = read.rows(self.passing_statement(query, among, most)).await?;
        self.read_all(&rows, |row| place_of(row, query.key))
    }

    /// Where to look for all that pass the filter: the index of groups of characters tells whether few enough have the text.
    async fn among(
        &self,
        read: &mut Transaction<'_>,
        query: &SubmissionQuery,
        reach: Reach,
    ) -> Result<Among, StoreError> {
        let Some(most) = self.hits_max(query, reach) else { return Ok(Among::All) };
        let hits = count(read.number(hits_statement(&folded(&query.filter.text), most), "hits").await?);
        Ok(if hits <= most as u64 { Among::Hits(most) } else { Among::All })
    }

    /// How many hits the index of groups of characters is asked for; `None` if it cannot tell any.
    fn hits_max(&self, query: &SubmissionQuery, reach: Reach) -> Option<usize> {
        let groups = groups(&query.filter.text);
        let is_asked = self.database.engine() == Engine::Sqlite && groups > 0 && !is_of_key(&query.filter);
        is_asked.then(|| reach.hits.saturating_mul(TRIGRAMS_PER_ROW + 1) / (TRIGRAMS_PER_ROW + groups))
    }

    /// Where submissions stand that pass the filter, up to one more than `most`, in no order.
    pub(super) fn passing_statement(&self, query: &SubmissionQuery, among: Among, most: usize) -> Statement {
        let mut select =
            Statement::new(format!("SELECT {} AS value, s.id AS id FROM ", submission_column(query.key)));
        self.push_among(&mut select, query, among);
        select.push(" LIMIT ").push_value(as_number(most as u64 + 1));
        select
    }

    /// How many submissions with a text pass the filter, counted to one more than `most`.
    pub(super) fn passing_count(&self, query: &SubmissionQuery, among: Among, most: usize) -> Statement {
        let mut counting = Statement::new("SELECT COUNT(*) AS total FROM (SELECT 1 AS one FROM ");
        self.push_among(&mut counting, query, among);
        counting.push(" LIMIT ").push_value(as_number(most as u64 + 1)).push(") found");
        counting
    }

    /// Ids of one page of submissions, found among all that can pass. Where it is to tell the total of all pages as well,
    /// each row has that, and one row without an id stands for an empty page.
    pub(super) fn far_statement(
        &self,
        query: &SubmissionQuery,
        among: Among,
        is_counting: bool,
    ) -> Statement {
        let key = submission_column(query.key);
        // Of an expression no index knows the order, so none is walked through.
        let (mut select, column, id, end) = if is_counting {
            let mut select = Statement::new(format!(
                "WITH found AS MATERIALIZED (SELECT {key} AS value, s.id AS id FROM "
            ));
            self.push_among(&mut select, query, among);
            select.push(
                ") SELECT c.total AS total, p.id AS id FROM (SELECT COUNT(*) AS total FROM found) c \
                 LEFT JOIN (SELECT f.id AS id FROM found f WHERE 1 = 1",
            );
            (select, "f.value".to_owned(), "f.id", ") p ON 1 = 1")
        } else {
            let mut select = Statement::new("SELECT s.id AS id FROM ");
            self.push_among(&mut select, query, among);
            (select, sorted(key), "s.id", "")
        };
        if let Some(Place { value, id: after }) = &query.after {
            select.push_after(&column, id, query.is_descending, value, after);
        }
        select.push_order(&column, id, query.is_descending, query.limit);
        select.push(end);
        select
    }

    /// Where submissions are looked for, and every condition.
    fn push_among(&self, select: &mut Statement, query: &SubmissionQuery, among: Among) {
        let filter = &query.filter;
        let is_sqlite = self.database.engine() == Engine::Sqlite;
        let is_text = !filter.text.is_empty();
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
            Among::Hits(most) => {
                select.push("(");
                push_hits(select, &folded(&filter.text), most);
                select.push(") h CROSS JOIN submission_listed s ON s.number = h.number");
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
            Among::Hits(_) | Among::All => Archive::Compared,
        };
        self.push_submission_filter(select, query, None, text, archive);
    }

    /// How many pass a filter without a text, counted to one more than the query says.
    pub(super) fn submission_count(&self, query: &SubmissionQuery) -> Statement {
        let source = self.counted(&query.filter);
        let (one, end) = match query.count_max {
            Some(_) => ("COUNT(*) AS total FROM (SELECT 1 AS one", ") found"),
            None => ("COUNT(*) AS total", ""),
        };
        let mut counting = Statement::new(format!("SELECT {one} FROM {source}"));
        self.push_submission_filter(&mut counting, query, None, None, Archive::Indexed);
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
        self.push_submission_filter(&mut listing, query, ids, text, Archive::Compared);
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
        ids: Option<&[String]>,
        text: Option<&str>,
        archive: Archive,
    ) {
        let filter = &query.filter;
        let is_sqlite = self.database.engine() == Engine::Sqlite;
        let is_few = ids.is_some();
        // PostgreSQL knows how many rows a condition leaves. SQLite does not, and would take an index of a condition that
        // half of all pass; of an expression no index knows anything.
        let (tenant, any) =
            if is_sqlite && is_few { ("COALESCE(s.tenant, '')", "+") } else { ("s.tenant", "") };
        let is_of_one = filter.viewer.is_some() || !filter.submitter.is_empty();
        let kind = if is_sqlite && (is_few || is_of_one) { "+" } else { "" };
        select.push(&format!(" WHERE {tenant} = ")).push_value(&query.tenant);
        if let Some(ids) = ids {
            select.push_in("s.id", ids);
        }
        if let Some(viewer) = &filter.viewer {
            select.push(&format!(" AND {any}s.submitter = ")).push_value(viewer);
        }
        if filter.statuses.is_empty() {
            select.push(" AND s.status <> 'deleted'");
        } else {
            let statuses = filter.statuses.iter().map(|status| status.as_str());
            select.push_in(&format!("{any}s.status"), statuses);
        }
        if !filter.kinds.is_empty() {
            select.push_in(&format!("{kind}s.kind"), filter.kinds.iter().map(|kind| kind.as_str()));
        }
        for (column, value) in [
            ("s.submitter", filter.submitter.clone()),
            ("s.entity_id", filter.entity_id.clone()),
            ("s.bundle_sha256", filter.bundle_sha256.to_ascii_lowercase()),
        ] {
            if !value.is_empty() {
                select.push(&format!(" AND {any}{column} = ")).push_value(&value);
            }
        }
        if let Some(column) = text {
            let text = folded(&filter.text);
            if is_sqlite {
                select.push(&format!(" AND instr({column}, ")).push_value(&text).push(") > 0");
            } else {
                select.push(&format!(" AND {column} LIKE ")).push_value(&pattern(&text));
            }
        }
        let is_archived = match filter.archived {
            ArchivedFilter::Include => None,
            ArchivedFilter::Only => Some(1),
            ArchivedFilter::Exclude => Some(0),
        };
        if let Some(is_archived) = is_archived {
            let any = if is_sqlite && matches!(archive, Archive::Compared) { "+" } else { any };
            select.push(&format!(" AND {any}s.is_archived = {is_archived}"));
        }
        select.push_span(&format!("{any}s.create_time_us"), filter.start, filter.end);
    }

    pub(super) async fn entities_now(&self, query: EntityQuery) -> Result<EntityPage, StoreError> {
        let mut read = self.database.read().await?;
        // Another row is looked up for each one only where that is asked for.
        let counted = if query.filter.text.is_empty() { ENTITIES } else { ENTITIES_WITH_LIVE };
        let listed = if query.key == EntityKey::FileSize { ENTITIES_WITH_LIVE } else { counted };
        let mut counting = Statement::new(format!("SELECT COUNT(*) AS total {counted}"));
        self.push_entity_filter(&mut counting, &query);
        let total = count(read.number(counting, "total").await?);
        let mut listing = Statement::new(format!("SELECT {} {listed}", of_table("e", ENTITY)));
        self.push_entity_filter(&mut listing, &query);
        let column = entity_column(query.key);
        if let Some(Place { value, id }) = &query.after {
            listing.push_after(column, "e.id", query.is_descending, value, id);
        }
        listing.push_order(column, "e.id", query.is_descending, query.limit);
        let mut entities = self.read_all(&read.rows(listing).await?, rows::entity)?;
        let has_more = entities.len() > query.limit;
        entities.truncate(query.limit);

        let mut ids: Vec<&String> = entities
            .iter()
            .flat_map(|entity| entity.live_submission_id.iter().chain([&entity.latest_submission_id]))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let mut by_id: HashMap<String, StoredSubmission> = HashMap::new();
        for ids in ids.chunks(IDS_MAX) {
            let select = format!("SELECT {SUBMISSION} FROM submission WHERE tenant = ?");
            let mut select = Statement::new(select).bind(&query.tenant);
            select.push_in("id", ids.iter().copied());
            let found = self.read_all(&read.rows(select).await?, rows::submission)?;
            by_id.extend(found.into_iter().map(|one| (one.id.clone(), one)));
        }
        let of_id = |id: &String| by_id.get(id).cloned();
        let entities: Vec<ListedEntity> = entities
            .into_iter()
            .map(|entity| ListedEntity {
                live: entity.live_submission_id.as_ref().and_then(of_id),
                latest: of_id(&entity.latest_submission_id),
                entity,
            })
            .collect();
        let next = entities.last().filter(|_| has_more).map(|last| entity_place(last, query.key));
        Ok(EntityPage { entities, next, total })
    }

    fn push_entity_filter(&self, select: &mut Statement, query: &EntityQuery) {
        let filter = &query.filter;
        select.push(" WHERE e.tenant = ").push_value(&query.tenant);
        if let Some(viewer) = &filter.viewer {
            select.push(" AND (e.visibility = 'approved' OR e.owner = ").push_value(viewer).push(")");
        }
        if filter.visibilities.is_empty() {
            select.push(" AND e.visibility <> 'archived'");
        } else {
            select.push_in("e.visibility", filter.visibilities.iter().map(|one| one.as_str()));
        }
        if !filter.kinds.is_empty() {
            select.push_in("e.kind", filter.kinds.iter().map(|kind| kind.as_str()));
        }
        if !filter.owner.is_empty() {
            select.push(" AND e.owner = ").push_value(&filter.owner);
        }
        if !filter.text.is_empty() {
            let position = self.position();
            let text = folded(&filter.text);
            select.push(&format!(" AND ({position}(e.folded, ")).push_value(&text);
            select
                .push(&format!(") > 0 OR {position}(COALESCE(l.description_folded, ''), "))
                .push_value(&text);
            select.push(") > 0)");
        }
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
fn is_of_key(filter: &SubmissionFilter) -> bool {
    !filter.entity_id.is_empty() || !filter.bundle_sha256.is_empty()
}

/// How many groups of three characters a text has, by which an index finds it.
fn groups(text: &str) -> usize {
    (folded(text).chars().count() + 1).saturating_sub(TRIGRAM_CHARS)
}

/// Adds a search for the numbers of the first texts that hold a text of at least three characters.
fn push_hits(select: &mut Statement, text: &str, most: usize) {
    let phrase = format!("\"{}\"", text.replace('"', "\"\""));
    select.push("SELECT rowid AS number FROM submission_trigram WHERE submission_trigram MATCH ");
    select.push_value(&phrase).push(" LIMIT ").push_value(as_number(most as u64));
}

/// How many texts hold such a text, counted to one more than `most`.
pub(super) fn hits_statement(text: &str, most: usize) -> Statement {
    let mut select = Statement::new("SELECT COUNT(*) AS hits FROM (");
    push_hits(&mut select, text, most.saturating_add(1));
    select.push(") found");
    select
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

/// The values of a column, to be sorted and not read in the order of an index.
fn sorted(column: &str) -> String {
    format!("COALESCE({column}, {column})")
}

/// What PostgreSQL finds a text by, character by character.
fn pattern(text: &str) -> String {
    let literal = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{literal}%")
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

fn entity_column(key: EntityKey) -> &'static str {
    match key {
        EntityKey::CreateTime => "e.create_time_us",
        EntityKey::UpdateTime => "e.update_time_us",
        EntityKey::Name => "e.name",
        EntityKey::Owner => "e.owner",
        EntityKey::Kind => "e.kind",
        EntityKey::Visibility => "e.visibility",
        EntityKey::FileSize => "COALESCE(l.file_size, 0)",
    }
}

fn entity_place(listed: &ListedEntity, key: EntityKey) -> Place {
    let one = &listed.entity;
    let text = |text: &str| KeyValue::Text(text.to_owned());
    let value = match key {
        EntityKey::CreateTime => KeyValue::Number(microseconds(one.created)),
        EntityKey::UpdateTime => KeyValue::Number(microseconds(one.updated)),
        EntityKey::Name => text(&one.name),
        EntityKey::Owner => text(&one.owner),
        EntityKey::Kind => text(BundleKind::as_str(one.kind)),
        EntityKey::Visibility => text(Visibility::as_str(one.visibility)),
        EntityKey::FileSize => {
            KeyValue::Number(listed.live.as_ref().map_or(0, |live| as_number(live.file_size)))
        }
    };
    Place { value, id: one.id.clone() }
}
