//! Looking at entities and taking them down.

use super::change::deletion_of_entity;
use super::record::{self, Action, Record};
use super::triage::{admin, check_id};
use super::{Actor, Entities, Entity, RACES_MAX, SubmissionError, Submissions};
use crate::bundles::life;
use crate::decision::{SubmissionStatus, Visibility};
use crate::store::{Change, EntityQuery, EntityWrite, ListedEntity, StoredEntity};

impl Submissions {
    /// One entity as it stands now.
    ///
    /// # Errors
    /// There is none that the caller may see, or the store failed.
    pub async fn entity(&self, actor: &Actor, id: &str) -> Result<Entity, SubmissionError> {
        let row = self.visible_entity(actor, id).await?;
        let tenant = &actor.tenant;
        let live = match &row.live_submission_id {
            Some(id) => self.store().submission(tenant.clone(), id.clone()).await?,
            None => None,
        };
        let latest = self.store().submission(tenant.clone(), row.latest_submission_id.clone()).await?;
        let knows_all = knows_all(actor, &row);
        Ok(Entity::of(ListedEntity { entity: row, live, latest }, knows_all))
    }

    /// One page of entities. Tenant and viewer of the query are those of the caller, whatever it says.
    ///
    /// # Errors
    /// The store failed.
    pub async fn entities(&self, actor: &Actor, mut query: EntityQuery) -> Result<Entities, SubmissionError> {
        query.tenant.clone_from(&actor.tenant);
        query.filter.viewer = (!actor.sees_all()).then(|| actor.name.clone());
        let page = self.store().entities(query).await?;
        let told = |listed: ListedEntity| {
            let knows_all = knows_all(actor, &listed.entity);
            Entity::of(listed, knows_all)
        };
        Ok(Entities {
            entities: page.entities.into_iter().map(told).collect(),
            next: page.next,
            total: page.total,
        })
    }

    /// Takes an entity down softly.
    ///
    /// # Errors
    /// There is none that the caller may see; the caller is neither its owner nor an administrator; it is archived already,
    /// or not approved and the caller no administrator; or a race was lost.
    pub async fn archive(&self, actor: &Actor, id: &str, reason: &str) -> Result<Entity, SubmissionError> {
        let reason = self.kept_reason(reason)?;
        self.move_entity(actor, id, Action::EntityArchived, &reason, |row| {
            if !knows_all(actor, row) {
                return Err(SubmissionError::PermissionDenied {
                    needs: "being its owner, or the admin role,",
                });
            }
            let action = "archived";
            match row.visibility {
                Visibility::Archived => {
                    let (found, advice) = (row.visibility, "nothing is left to do");
                    Err(SubmissionError::EntityState { action, found, advice })
                }
                found @ (Visibility::Pending | Visibility::Hidden) if !actor.is_admin => {
                    let advice = "only an administrator archives what is not approved";
                    Err(SubmissionError::EntityState { action, found, advice })
                }
                _ => Ok(true),
            }
        })
        .await
    }

    /// Brings an archived entity back.
    ///
    /// # Errors
    /// The caller is no administrator, there is no such entity, it is not archived, or a race was lost.
    pub async fn restore(&self, actor: &Actor, id: &str, reason: &str) -> Result<Entity, SubmissionError> {
        admin(actor)?;
        let reason = self.kept_reason(reason)?;
        self.move_entity(actor, id, Action::EntityRestored, &reason, |row| match row.visibility {
            Visibility::Archived => Ok(false),
            found => {
                let advice = "only archived ones are";
                Err(SubmissionError::EntityState { action: "restored", found, advice })
            }
        })
        .await
    }

    /// Deletes an entity for good: row and bytes. Answers it as it was, and the ids of the submissions that became
    /// tombstones, oldest first.
    ///
    /// # Errors
    /// The caller is no administrator, there is no such entity, or a race was lost.
    pub async fn delete_entity(
        &self,
        actor: &Actor,
        id: &str,
        reason: &str,
    ) -> Result<(Entity, Vec<String>), SubmissionError> {
        admin(actor)?;
        let reason = self.kept_reason(reason)?;
        let before = self.entity(actor, id).await?;
        for _ in 0..RACES_MAX {
            let row = self.visible_entity(actor, id).await?;
            let tenant = &actor.tenant;
            let siblings = self.store().submissions_of(tenant.clone(), id.to_owned()).await?;
            let ids = siblings.iter().map(|row| row.id.clone()).collect();
            let attempts = self.store().attempts(tenant.clone(), ids).await?;
            let mut change = deletion_of_entity(Some(&row), &siblings, &attempts, self.now(), Vec::new())
                .map_err(|_| SubmissionError::LostRace { what: "entity", id: id.to_owned() })?;
            change.events = self.events_of_deletion(actor, &change, &siblings, &reason);
            // A review that ends in the same moment is no reason to leave it.
            match self.remove(change, ("entity", id)).await {
                Ok(gone) => return Ok((before, gone)),
                Err(SubmissionError::LostRace { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(SubmissionError::LostRace { what: "entity", id: id.to_owned() })
    }

    /// Archives (`Ok(true)`) or restores (`Ok(false)`) what `decide` allows.
    async fn move_entity(
        &self,
        actor: &Actor,
        id: &str,
        action: Action,
        reason: &str,
        decide: impl Fn(&StoredEntity) -> Result<bool, SubmissionError>,
    ) -> Result<Entity, SubmissionError> {
        for _ in 0..RACES_MAX {
            let row = self.visible_entity(actor, id).await?;
            let archives = decide(&row)?;
            let now = self.now();
            let latest =
                self.store().submission(actor.tenant.clone(), row.latest_submission_id.clone()).await?;
            let newest = latest.map_or(SubmissionStatus::Deleted, |row| row.status);
            let mut after = row.clone();
            after.archived = archives.then_some(now);
            after.archived_by = if archives { actor.name.clone() } else { String::new() };
            after.visibility = life::visibility(archives, row.live_submission_id.is_some(), newest);
            after.updated = now.max(row.updated);
            let record = Record::by(action, actor, record::entity(id), now)
                .reason(reason)
                .with("prior_visibility", row.visibility.as_str());
            let change = Change {
                tenant: actor.tenant.clone(),
                entity: Some(EntityWrite::Update { entity: after, expect_version: row.version }),
                events: vec![record.finish()],
                ..Change::default()
            };
            if self.store().apply(change).await? {
                self.tell(id);
                return self.entity(actor, id).await;
            }
        }
        Err(SubmissionError::LostRace { what: "entity", id: id.to_owned() })
    }

    /// The row, if the caller may see it: its owner and administrators in any state, everybody else approved ones.
    pub(super) async fn visible_entity(
        &self,
        actor: &Actor,
        id: &str,
    ) -> Result<StoredEntity, SubmissionError> {
        check_id(id, "entity_id")?;
        let found = self.store().entity(actor.tenant.clone(), id.to_owned()).await?;
        let visible = found.filter(|row| {
            actor.sees_all() || row.owner == actor.name || row.visibility == Visibility::Approved
        });
        visible.ok_or_else(|| SubmissionError::NotFound { what: "entity", id: id.to_owned() })
    }
}

fn knows_all(actor: &Actor, row: &StoredEntity) -> bool {
    actor.is_admin || row.owner == actor.name
}
