//! Pages of submissions and entities.

use std::collections::HashMap;

use super::rows::{self, ENTITY, SUBMISSION, as_number, count, folded, microseconds, of_table};
use super::{Engine, Row, SqlStore, Statement};
use crate::decision::{BundleKind, SubmissionStatus, Visibility};
use crate::store::{
    ArchivedFilter, EntityKey, EntityPage, EntityQuery, KeyValue, ListedEntity, ListedSubmission, Place,
    SEARCHED_MAX, StoreError, StoredSubmission, SubmissionFilter, SubmissionKey, SubmissionPage,
    SubmissionQuery,
};

const ENTITIES: &str =
    "FROM entity e LEFT JOIN submission l ON l.id = e.live_submission_id AND l.tenant = e.tenant";

/// Submissions whose rows are fetched at once.
const IDS_MAX: usize = 500;

/// As many as this at most are looked up one by one.
const FEW_MAX: usize = SEARCHED_MAX as usize;

/// Rows that are looked at in the order of a list before what is asked for is looked for otherwise.
const WALK_MAX: usize = 2_000;
/// The same for a long page: as many rows for each of its own.
const WALK_PER_ROW: usize = 4;

/// Shortest text that the index of groups of three characters can be asked for.
const TRIGRAM_CHARS: usize = 3;

/// What a search found before anything else was asked.
pub(super) enum Searched {
    /// Nothing was searched for, or more than are looked up one by one.
    Many,
    /// Ids of all submissions that can pass the filter.
    Few(Vec<String>),
}

/// Whether an index may be asked for those that are archived, or not.
#[derive(Clone, Copy)]
enum Archive {
    /// It may.
    Indexed,
    /// It is compared, as an index in the order of the list is what counts.
    Compared,
}

/// How far each way goes on which a page is looked for.
#[derive(Clone, Copy)]
pub(super) struct Reach {
    /// As many as this at most are looked up one by one.
    pub(super) few: usize,
    /// Rows that are looked at in the order of the list.
    pub(super) walk: usize,
}

impl SqlStore {
    pub(super) async fn submissions_now(&self, query: SubmissionQuery) -> Result<SubmissionPage, StoreError> {
        let walk = WALK_MAX.max(query.limit.saturating_mul(WALK_PER_ROW));
        self.submissions_within(query, Reach { few: FEW_MAX, walk }).await
    }

    /// A page, whichever way is quick:
    ///
    /// - of few hits of a text, or few that pass the filter, each is looked up and they are sorted;
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
        let mut searched = Searched::Many;
        let mut total = None;
        if !query.filter.text.is_empty() {
            let text = folded(&query.filter.text);
            let rows = read.rows(self.search_statement(&text, reach.few)).await?;
            let ids = self.read_all(&rows, |row| row.text("id"))?;
            if ids.len() <= reach.few {
                searched = Searched::Few(ids);
            } else {
                // A text that stands in many is not counted to its end: that would read all of them.
                let rows = read.rows(self.passing_statement(&query, reach.few)).await?;
                let ids = self.read_all(&rows, |row| row.text("id"))?;
                total = Some(ids.len() as u64);
                if ids.len() <= reach.few {
                    searched = Searched::Few(ids);
                }
            }
        }
        let total = match total {
            Some(total) => total,
            None => count(read.number(self.submission_count(&query, &searched), "total").await?),
        };
        if total == 0 {
            return Ok(SubmissionPage { submissions: Vec::new(), next: None, total });
        }
        let end = match &searched {
            Searched::Many => read.row(self.walk_end_statement(&query, reach.walk)).await?,
            Searched::Few(_) => None,
        };
        let end = self.read(end.map(|row| walk_end(&row, query.key)).transpose())?;
        let mut submissions = Vec::new();
        // A total of which no more was counted tells nothing.
        let is_counted = query.count_max.is_none_or(|most| total <= most);
        let is_few = is_counted && total <= reach.few as u64;
        if end.is_none() || !is_few {
            let listing = self.submission_list(&query, &searched, end.as_ref());
            submissions = self.read_all(&read.rows(listing).await?, listed_submission)?;
        }
        if end.is_some() && submissions.len() <= query.limit {
            let finding =
                if is_few { self.passing_statement(&query, reach.few) } else { self.far_statement(&query) };
            let found = self.read_all(&read.rows(finding).await?, |row| row.text("id"))?;
            let listing = self.submission_list(&query, &Searched::Few(found), None);
            submissions = self.read_all(&read.rows(listing).await?, listed_submission)?;
        }
        let has_more = submissions.len() > query.limit;
        submissions.truncate(query.limit);
        let next = submissions.last().filter(|_| has_more).map(|last| submission_place(last, query.key));
        Ok(SubmissionPage { submissions, next, total })
    }

    /// Ids of submissions with a text, up to one more than `most`.
    pub(super) fn search_statement(&self, text: &str, most: usize) -> Statement {
        let mut select = Statement::new("SELECT t.id AS id FROM submission_text t WHERE ");
        match self.database.engine() {
            Engine::Sqlite if text.chars().count() >= TRIGRAM_CHARS => {
                let phrase = format!("\"{}\"", text.replace('"', "\"\""));
                select.push(
                    "t.number IN (SELECT rowid FROM submission_trigram WHERE submission_trigram MATCH ",
                );
                select.push_value(&phrase).push(")");
            }
            Engine::Sqlite => {
                select.push("instr(t.folded, ").push_value(text).push(") > 0");
            }
            Engine::Postgres => {
                select.push("t.folded LIKE ").push_value(&pattern(text));
            }
        }
        select.push(" LIMIT ").push_value(as_number(most as u64 + 1));
        select
    }

    /// Ids of submissions that pass the filter, up to one more than `most`.
    pub(super) fn passing_statement(&self, query: &SubmissionQuery, most: usize) -> Statement {
        let source = if query.filter.text.is_empty() {
            self.counted(&query.filter)
        } else {
            self.gathered(&query.filter)
        };
        let mut select = Statement::new(format!("SELECT s.id AS id FROM {source}"));
        self.push_submission_filter(&mut select, query, &Searched::Many, Archive::Indexed);
        select.push(" LIMIT ").push_value(as_number(most as u64 + 1));
        select
    }

    /// Ids of one page of submissions, found among all that can pass.
    pub(super) fn far_statement(&self, query: &SubmissionQuery) -> Statement {
        let mut select = Statement::new(format!("SELECT s.id AS id FROM {}", self.gathered(&query.filter)));
        self.push_submission_filter(&mut select, query, &Searched::Many, Archive::Compared);
        // Of an expression no index knows the order, so none is walked through.
        let column = sorted(submission_column(query.key));
        if let Some(Place { value, id }) = &query.after {
            select.push_after(&column, "s.id", query.is_descending, value, id);
        }
        select.push_order(&column, "s.id", query.is_descending, query.limit);
        select
    }

    /// How many pass the filter, counted to one more than the query says.
    pub(super) fn submission_count(&self, query: &SubmissionQuery, searched: &Searched) -> Statement {
        let source = match searched {
            Searched::Many => self.counted(&query.filter),
            Searched::Few(_) => "submission s",
        };
        let (one, end) = match query.count_max {
            Some(_) => ("COUNT(*) AS total FROM (SELECT 1 AS one", ") found"),
            None => ("COUNT(*) AS total", ""),
        };
        let mut counting = Statement::new(format!("SELECT {one} FROM {source}"));
        self.push_submission_filter(&mut counting, query, searched, Archive::Indexed);
        if let Some(most) = query.count_max {
            counting.push(" LIMIT ").push_value(as_number(most.saturating_add(1)));
        }
        counting.push(end);
        counting
    }

    /// The rows of one page, up to a place in its order.
    pub(super) fn submission_list(
        &self,
        query: &SubmissionQuery,
        searched: &Searched,
        until: Option<&Place>,
    ) -> Statement {
        let source = match searched {
            Searched::Many => self.ordered(query),
            Searched::Few(_) => "submission s".to_owned(),
        };
        let mut listing = Statement::new(format!(
            "SELECT {}, e.visibility AS entity_visibility, e.live_submission_id AS entity_live_id \
             FROM {source} LEFT JOIN entity e ON e.id = s.entity_id AND e.tenant = s.tenant",
            of_table("s", SUBMISSION)
        ));
        self.push_submission_filter(&mut listing, query, searched, Archive::Compared);
        let column = match searched {
            Searched::Many => submission_column(query.key).to_owned(),
            // Each is looked up, and they are sorted: of an expression no index knows the order, so none is walked through.
            Searched::Few(_) => sorted(submission_column(query.key)),
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

    /// Where all of a submission stands that lists are filtered and ordered by.
    fn gathered(&self, filter: &SubmissionFilter) -> &'static str {
        match self.database.engine() {
            // These two find few by indexes of their own.
            _ if !filter.entity_id.is_empty() || !filter.bundle_sha256.is_empty() => "submission s",
            Engine::Sqlite => "submission s INDEXED BY submission_searched",
            Engine::Postgres => "submission_text s",
        }
    }

    /// What those that pass a filter without a text are counted in. SQLite, which does not know how many have a value, would
    /// take an index of a kind and look up every row.
    fn counted(&self, filter: &SubmissionFilter) -> &'static str {
        let is_of_few = filter.viewer.is_some()
            || !filter.submitter.is_empty()
            || !filter.entity_id.is_empty()
            || !filter.bundle_sha256.is_empty();
        let is_of_time = filter.start.is_some() || filter.end.is_some();
        match self.database.engine() {
            Engine::Sqlite if !is_of_few && !is_of_time => "submission s INDEXED BY submission_for_counts",
            _ => "submission s",
        }
    }

    /// Every condition.
    fn push_submission_filter(
        &self,
        select: &mut Statement,
        query: &SubmissionQuery,
        searched: &Searched,
        archive: Archive,
    ) {
        let filter = &query.filter;
        let is_sqlite = self.database.engine() == Engine::Sqlite;
        let is_few = matches!(searched, Searched::Few(_));
        // PostgreSQL knows how many rows a condition leaves. SQLite does not, and would take an index of a condition that
        // half of all pass; of an expression no index knows anything.
        let (tenant, any) =
            if is_sqlite && is_few { ("COALESCE(s.tenant, '')", "+") } else { ("s.tenant", "") };
        let is_of_one = filter.viewer.is_some() || !filter.submitter.is_empty();
        let kind = if is_sqlite && (is_few || is_of_one) { "+" } else { "" };
        select.push(&format!(" WHERE {tenant} = ")).push_value(&query.tenant);
        if let Searched::Few(ids) = searched {
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
        if !filter.text.is_empty() && !is_few {
            let text = folded(&filter.text);
            if is_sqlite {
                select.push(" AND instr(s.folded, ").push_value(&text).push(") > 0");
            } else {
                select.push(" AND s.folded LIKE ").push_value(&pattern(&text));
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
        let mut counting = Statement::new(format!("SELECT COUNT(*) AS total {ENTITIES}"));
        self.push_entity_filter(&mut counting, &query);
        let total = count(read.number(counting, "total").await?);
        let mut listing = Statement::new(format!("SELECT {} {ENTITIES}", of_table("e", ENTITY)));
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

fn walk_end(row: &Row, key: SubmissionKey) -> Result<Place, sqlx::Error> {
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
