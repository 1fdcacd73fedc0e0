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

const SUBMISSIONS: &str =
    "FROM submission s LEFT JOIN entity e ON e.id = s.entity_id AND e.tenant = s.tenant";
/// The same for archived ones alone, in the two orders in which they can be looked for: SQLite takes the tables of a cross
/// join as they are named.
const OF_ARCHIVED: [&str; 2] =
    ["FROM entity e CROSS JOIN submission s", "FROM submission s CROSS JOIN entity e"];
/// Of rows beside their entity, those that are not archived: of a page each is looked up, and of the rest none.
const NOT_ARCHIVED: &str = " AND COALESCE(e.visibility, '') <> 'archived'";
const ENTITIES: &str =
    "FROM entity e LEFT JOIN submission l ON l.id = e.live_submission_id AND l.tenant = e.tenant";

/// Submissions whose rows are fetched at once.
const IDS_MAX: usize = 500;

/// As many as this at most are looked up one by one; of more, one page is found soon enough in the order of the list.
const FEW_MAX: usize = SEARCHED_MAX as usize;

/// Shortest text that the index of groups of three characters can be asked for.
const TRIGRAM_CHARS: usize = 3;

/// How the rows of a tenant are found.
#[derive(Clone, Copy)]
enum Tenant {
    /// By an index that begins with the tenant.
    Indexed,
    /// By something else; the tenant is compared then.
    Compared,
}

/// What a search for a text found before anything else was asked.
pub(super) enum Searched {
    /// No text is searched for, or it stands in more submissions than are looked up one by one.
    Many,
    /// Ids of all submissions with the text that can pass the filter.
    Few(Vec<String>),
}

impl SqlStore {
    pub(super) async fn submissions_now(&self, query: SubmissionQuery) -> Result<SubmissionPage, StoreError> {
        // One transaction, so that the total is that of the moment of the rows.
        let mut read = self.database.read().await?;
        let mut searched = Searched::Many;
        if !query.filter.text.is_empty() {
            let rows = read.rows(self.search_statement(&folded(&query.filter.text))).await?;
            let ids = self.read_all(&rows, |row| row.text("id"))?;
            if ids.len() <= FEW_MAX {
                searched = Searched::Few(ids);
            }
        }
        let mut total = None;
        if !query.filter.text.is_empty() && matches!(searched, Searched::Many) {
            // A text that stands in many is not counted to its end: that would read all of them.
            let rows = read.rows(self.passing_statement(&query)).await?;
            let ids = self.read_all(&rows, |row| row.text("id"))?;
            total = Some(ids.len() as u64);
            if ids.len() <= FEW_MAX {
                searched = Searched::Few(ids);
            }
        }
        let total = match (total, query.count_max) {
            (Some(total), _) => total,
            (None, Some(most)) => {
                count(read.number(self.bounded_count(&query, &searched, most), "total").await?)
            }
            (None, None) => count(read.number(self.submission_count(&query, &searched), "total").await?),
        };
        if total == 0 {
            return Ok(SubmissionPage { submissions: Vec::new(), next: None, total });
        }
        let listing = self.submission_list(&query, &searched, total);
        let mut submissions = self.read_all(&read.rows(listing).await?, listed_submission)?;
        let has_more = submissions.len() > query.limit;
        submissions.truncate(query.limit);
        let next = submissions.last().filter(|_| has_more).map(|last| submission_place(last, query.key));
        Ok(SubmissionPage { submissions, next, total })
    }

    /// Ids of submissions with a text, one more than are looked up one by one.
    pub(super) fn search_statement(&self, text: &str) -> Statement {
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
                let literal = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
                select.push("t.folded LIKE ").push_value(&format!("%{literal}%"));
            }
        }
        select.push(" LIMIT ").push_value(as_number(FEW_MAX as u64 + 1));
        select
    }

    /// Ids of submissions that pass a filter with a text that many have, one more than are looked up one by one.
    pub(super) fn passing_statement(&self, query: &SubmissionQuery) -> Statement {
        // The text stands in this index of SQLite, which would take one of the verdict and look up every row.
        let hint = match self.database.engine() {
            Engine::Sqlite => " INDEXED BY submission_searched",
            Engine::Postgres => "",
        };
        let mut select = Statement::new(format!(
            "SELECT s.id AS id FROM submission s{hint} LEFT JOIN entity e ON e.id = s.entity_id AND e.tenant = s.tenant"
        ));
        self.push_submission_filter(&mut select, query, &Searched::Many, Tenant::Indexed);
        match query.filter.archived {
            ArchivedFilter::Include => {}
            ArchivedFilter::Only => {
                select.push(" AND e.visibility = 'archived'");
            }
            ArchivedFilter::Exclude => {
                select.push(NOT_ARCHIVED);
            }
        }
        select.push(" LIMIT ").push_value(as_number(FEW_MAX as u64 + 1));
        select
    }

    /// How many pass the filter, counted to one more than `most`.
    pub(super) fn bounded_count(&self, query: &SubmissionQuery, searched: &Searched, most: u64) -> Statement {
        let is_of_archived = query.filter.archived == ArchivedFilter::Only;
        // Archived ones may be few: they are looked for among the entities, and of those of a search each is looked up.
        let (tables, tenant) = match (query.filter.archived, searched) {
            (ArchivedFilter::Only, Searched::Many) => (OF_ARCHIVED[0], Tenant::Compared),
            (ArchivedFilter::Only, Searched::Few(_)) => (OF_ARCHIVED[1], Tenant::Indexed),
            (ArchivedFilter::Include, _) => ("FROM submission s", Tenant::Indexed),
            (ArchivedFilter::Exclude, _) => (SUBMISSIONS, Tenant::Indexed),
        };
        let mut counting = Statement::new(format!("SELECT COUNT(*) AS total FROM (SELECT 1 AS one {tables}"));
        self.push_submission_filter(&mut counting, query, searched, tenant);
        if is_of_archived {
            counting.push(" AND s.entity_id = e.id AND e.visibility = 'archived' AND e.tenant = ");
            counting.push_value(&query.tenant);
        } else if query.filter.archived == ArchivedFilter::Exclude {
            counting.push(NOT_ARCHIVED);
        }
        counting.push(" LIMIT ").push_value(as_number(most.saturating_add(1))).push(") found");
        counting
    }

    /// How many pass the filter.
    pub(super) fn submission_count(&self, query: &SubmissionQuery, searched: &Searched) -> Statement {
        let mut counting = Statement::new("SELECT ");
        // Archived ones are few: counting all and taking those away looks up less than asking for each.
        if query.filter.archived != ArchivedFilter::Only {
            counting.push("(SELECT COUNT(*) FROM submission s");
            self.push_submission_filter(&mut counting, query, searched, Tenant::Indexed);
            counting.push(")");
        }
        if query.filter.archived == ArchivedFilter::Exclude {
            counting.push(" - ");
        }
        if query.filter.archived != ArchivedFilter::Include {
            // SQLite takes the tables of a cross join in the order in which they are named.
            counting.push(match searched {
                Searched::Many => "(SELECT COUNT(*) FROM entity a CROSS JOIN submission s",
                Searched::Few(_) => "(SELECT COUNT(*) FROM submission s CROSS JOIN entity a",
            });
            self.push_submission_filter(&mut counting, query, searched, Tenant::Compared);
            counting.push(" AND s.entity_id = a.id AND a.visibility = 'archived' AND a.tenant = ");
            counting.push_value(&query.tenant).push(")");
        }
        counting.push(" AS total");
        counting
    }

    /// The rows of one page, of so many in all.
    pub(super) fn submission_list(
        &self,
        query: &SubmissionQuery,
        searched: &Searched,
        total: u64,
    ) -> Statement {
        let is_few = total <= FEW_MAX as u64;
        let (tables, tenant) = match (query.filter.archived, searched) {
            // A walk through the order of the list would go on to its end for the last of the few.
            (ArchivedFilter::Only, Searched::Many) if is_few => (OF_ARCHIVED[0], Tenant::Compared),
            (ArchivedFilter::Only, _) => (OF_ARCHIVED[1], Tenant::Indexed),
            _ => (SUBMISSIONS, Tenant::Indexed),
        };
        let mut listing = Statement::new(format!(
            "SELECT {}, e.visibility AS entity_visibility, e.live_submission_id AS entity_live_id {tables}",
            of_table("s", SUBMISSION)
        ));
        self.push_submission_filter(&mut listing, query, searched, tenant);
        match query.filter.archived {
            ArchivedFilter::Include => {}
            ArchivedFilter::Only => {
                listing.push(" AND s.entity_id = e.id AND e.visibility = 'archived' AND e.tenant = ");
                listing.push_value(&query.tenant);
            }
            ArchivedFilter::Exclude => {
                listing.push(NOT_ARCHIVED);
            }
        }
        let mut column = submission_column(query.key).to_owned();
        if is_few && query.filter != SubmissionFilter::default() {
            // The few are found by what they have in common and sorted. Of an expression no index knows the order, so none
            // is walked through to its end for them.
            column = format!("COALESCE({column}, {column})");
        }
        if let Some(Place { value, id }) = &query.after {
            listing.push_after(&column, "s.id", query.is_descending, value, id);
        }
        listing.push_order(&column, "s.id", query.is_descending, query.limit);
        listing
    }

    /// Every condition but the one on the archive.
    fn push_submission_filter(
        &self,
        select: &mut Statement,
        query: &SubmissionQuery,
        searched: &Searched,
        tenant: Tenant,
    ) {
        let filter = &query.filter;
        select.push(match (self.database.engine(), searched, tenant) {
            // PostgreSQL knows how many rows a condition leaves, and this keeps it from knowing.
            (Engine::Postgres, ..) | (_, Searched::Many, Tenant::Indexed) => " WHERE s.tenant = ",
            // No index begins with this, so what else is known of the rows finds them.
            _ => " WHERE COALESCE(s.tenant, '') = ",
        });
        select.push_value(&query.tenant);
        if let Searched::Few(ids) = searched {
            select.push_in("s.id", ids);
        }
        if let Some(viewer) = &filter.viewer {
            select.push(" AND s.submitter = ").push_value(viewer);
        }
        if filter.statuses.is_empty() {
            select.push(" AND s.status <> 'deleted'");
        } else {
            select.push_in("s.status", filter.statuses.iter().map(|status| status.as_str()));
        }
        if !filter.kinds.is_empty() {
            select.push_in("s.kind", filter.kinds.iter().map(|kind| kind.as_str()));
        }
        for (column, value) in [
            ("s.submitter", filter.submitter.clone()),
            ("s.entity_id", filter.entity_id.clone()),
            ("s.bundle_sha256", filter.bundle_sha256.to_ascii_lowercase()),
        ] {
            if !value.is_empty() {
                select.push(&format!(" AND {column} = ")).push_value(&value);
            }
        }
        if !filter.text.is_empty() && matches!(searched, Searched::Many) {
            select.push(&format!(" AND {}(s.folded, ", self.position()));
            select.push_value(&folded(&filter.text)).push(") > 0");
        }
        select.push_span("s.create_time_us", filter.start, filter.end);
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
