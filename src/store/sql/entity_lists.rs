//! Pages of entities.

use std::collections::HashMap;

use super::rows::{self, ENTITY, SUBMISSION, as_number, count, folded, microseconds, of_table};
use super::{SqlStore, Statement};
use crate::decision::{BundleKind, Visibility};
use crate::store::{
    EntityKey, EntityPage, EntityQuery, KeyValue, ListedEntity, Place, StoreError, StoredSubmission,
};

const ENTITIES: &str = "FROM entity e";
/// Each beside its live submission.
const ENTITIES_WITH_LIVE: &str =
    "FROM entity e LEFT JOIN submission l ON l.id = e.live_submission_id AND l.tenant = e.tenant";

/// Submissions whose rows are fetched at once.
const IDS_MAX: usize = 500;

impl SqlStore {
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
