//! `EntityService`: what has been published, and taking it down.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::bundle_convert::{kinds_of, visibilities_of};
use super::server::Shared;
use super::{Identity, RequestError, download, page, submission_convert as convert};
use crate::bundles::service::Submissions;
use crate::pb::v1;
use crate::pb::v1::entity_service_server::EntityService;
use crate::store::{EntityFilter, EntityKey, EntityQuery, Place};

/// Entities on one page unless asked otherwise.
const PAGE_SIZE: usize = 50;
/// Most entities on one page.
const PAGE_SIZE_MAX: usize = 500;

/// The service.
pub(super) struct Shop(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl EntityService for Shop {
    type DownloadEntityStream = download::Answers<v1::DownloadEntityResponse>;

    async fn get_entity(
        &self,
        request: Request<v1::GetEntityRequest>,
    ) -> Result<Response<v1::GetEntityResponse>, Status> {
        let identity = self.0.identity(&request)?;
        let answer = get(&self.0.submissions, &identity, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn list_entities(
        &self,
        request: Request<v1::ListEntitiesRequest>,
    ) -> Result<Response<v1::ListEntitiesResponse>, Status> {
        let identity = self.0.identity(&request)?;
        let answer = list(&self.0.submissions, &identity, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn archive_entity(
        &self,
        request: Request<v1::ArchiveEntityRequest>,
    ) -> Result<Response<v1::ArchiveEntityResponse>, Status> {
        let identity = self.0.identity(&request)?;
        // Without authentication an owner is only who it says it is, and the guarded agent can say anything.
        if !identity.is_authenticated() {
            identity.require_admin().map_err(|error| error.to_status())?;
        }
        let request = request.into_inner();
        let answer = archive(&self.0.submissions, &identity, request).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn restore_entity(
        &self,
        request: Request<v1::RestoreEntityRequest>,
    ) -> Result<Response<v1::RestoreEntityResponse>, Status> {
        let (identity, request) = self.0.admin(request)?;
        let answer = restore(&self.0.submissions, &identity, request).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn delete_entity(
        &self,
        request: Request<v1::DeleteEntityRequest>,
    ) -> Result<Response<v1::DeleteEntityResponse>, Status> {
        let (identity, request) = self.0.admin(request)?;
        let answer = delete(&self.0.submissions, &identity, request).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn download_entity(
        &self,
        request: Request<v1::DownloadEntityRequest>,
    ) -> Result<Response<Self::DownloadEntityStream>, Status> {
        let identity = self.0.identity(&request)?;
        let answer = async {
            let id = page::id("entity_id", request.into_inner().entity_id)?;
            Ok(self.0.submissions.download_entity(&identity.actor(""), &id).await?)
        };
        let download = answer.await.map_err(|error: RequestError| error.to_status())?;
        let answers = download::stream(download, |part| {
            use v1::download_entity_response::Kind;
            let kind = match part {
                download::Part::Header(header) => Kind::Header(header),
                download::Part::Chunk(chunk) => Kind::Chunk(chunk),
            };
            v1::DownloadEntityResponse { kind: Some(kind) }
        });
        Ok(Response::new(answers))
    }
}

/// Gets one.
///
/// # Errors
/// A field is wrong, there is none that the caller may see, or the store failed.
pub async fn get(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::GetEntityRequest,
) -> Result<v1::GetEntityResponse, RequestError> {
    let id = page::id("entity_id", request.entity_id)?;
    let found = submissions.entity(&identity.actor(""), &id).await?;
    Ok(v1::GetEntityResponse { entity: Some(convert::entity(found)) })
}

/// Lists one page.
///
/// # Errors
/// A filter, the order or the token is wrong, or the store failed.
pub async fn list(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::ListEntitiesRequest,
) -> Result<v1::ListEntitiesResponse, RequestError> {
    let filter = EntityFilter {
        viewer: None,
        kinds: kinds_of(&request.kinds)?,
        visibilities: visibilities_of(&request.visibilities)?,
        owner: request.owner.clone(),
        text: request.query.clone(),
    };
    let (key, is_descending) = page::order(&request.order_by, "name", &EntityKey::ALL)?;
    let actor = identity.actor("");
    // A token belongs to the list that it continues, and to whoever began it.
    let viewer = (!actor.is_admin && !actor.is_auditor).then_some(&actor.name);
    let list = format!("entities {:?} {viewer:?} {filter:?} {key:?} {is_descending}", actor.tenant);
    let after = page::place(&request.page_token, &list)?.map(|(value, id)| Place { value, id });
    let limit = page::size(request.page_size, PAGE_SIZE, PAGE_SIZE_MAX);
    let tenant = actor.tenant.clone();
    let query = EntityQuery { tenant, filter, key, is_descending, after, limit };
    let found = submissions.entities(&actor, query).await?;
    Ok(v1::ListEntitiesResponse {
        next_page_token: found
            .next
            .map(|place| page::token(&place.value, &place.id, &list))
            .unwrap_or_default(),
        entities: found.entities.into_iter().map(convert::entity).collect(),
        total: found.total,
    })
}

/// Takes one down softly.
///
/// # Errors
/// A field is wrong, the entity does not allow it, a race was lost, or the store failed.
pub async fn archive(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::ArchiveEntityRequest,
) -> Result<v1::ArchiveEntityResponse, RequestError> {
    let id = page::id("entity_id", request.entity_id)?;
    let entity = submissions.archive(&identity.actor(""), &id, &request.reason).await?;
    Ok(v1::ArchiveEntityResponse { entity: Some(convert::entity(entity)) })
}

/// Brings one back.
///
/// # Errors
/// As [`archive`].
pub async fn restore(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::RestoreEntityRequest,
) -> Result<v1::RestoreEntityResponse, RequestError> {
    let id = page::id("entity_id", request.entity_id)?;
    let entity = submissions.restore(&identity.actor(""), &id, &request.reason).await?;
    Ok(v1::RestoreEntityResponse { entity: Some(convert::entity(entity)) })
}

/// Deletes one for good.
///
/// # Errors
/// As [`archive`].
pub async fn delete(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::DeleteEntityRequest,
) -> Result<v1::DeleteEntityResponse, RequestError> {
    let id = page::id("entity_id", request.entity_id)?;
    let (entity, submission_ids) =
        submissions.delete_entity(&identity.actor(""), &id, &request.reason).await?;
    Ok(v1::DeleteEntityResponse { entity: Some(convert::entity(entity)), submission_ids })
}
