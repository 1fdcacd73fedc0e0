//! Where submissions are: on a server, or in the store of this place.

use std::fs::File;
use std::io::{self, Write};

use futures_util::StreamExt as _;

use super::WhereArguments;
use super::download::What;
use crate::app;
use crate::bundles::service::{Download, Submissions};
use crate::cli::context::Context;
use crate::cli::listing::{existing_store, pages};
use crate::cli::{Failure, remote};
use crate::grpc::client::{Caller, Client, Receiving};
use crate::grpc::{
    AuditTrail, Identity, RequestError, audit_service, download_header, entity_service, submission_service,
};
use crate::pb::v1;

/// Most submissions and entities on one page.
const PAGE_MAX: usize = 500;
/// Most events on one page.
const EVENTS_PAGE_MAX: usize = 1_000;

/// See the module.
pub(in crate::cli) enum Source {
    /// A server.
    Server(Client, Caller),
    /// The store that the settings name. Whoever can write it needs no token.
    Here(Here),
}

/// A store that is open in this process.
pub(in crate::cli) struct Here {
    submissions: Submissions,
    events: AuditTrail,
    identity: Identity,
    runtime: tokio::runtime::Runtime,
}

/// Declares calls that both places answer.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($request:ident) -> $response:ident = $client:ident or $here:path;)+) => {
        impl Source {
            $(
                $(#[$doc])*
                pub(super) fn $name(&self, request: v1::$request) -> Result<v1::$response, Failure> {
                    match self {
                        Self::Server(client, caller) => Ok(client.$client(request, caller)?),
                        Self::Here(here) => {
                            Ok(here.runtime.block_on($here(&here.submissions, &here.identity, request))?)
                        }
                    }
                }
            )+
        }
    };
}

calls! {
    /// One submission.
    get(GetSubmissionRequest) -> GetSubmissionResponse = submission or submission_service::get;
    /// Publishes one against its verdict.
    publish(OverrideSubmissionRequest) -> OverrideSubmissionResponse = override_submission or submission_service::publish;
    /// Runs all checks of one again.
    rescan(RescanSubmissionRequest) -> RescanSubmissionResponse = rescan_submission or submission_service::rescan;
    /// Runs the review of one again.
    retry(RetryReviewRequest) -> RetryReviewResponse = retry_review or submission_service::retry;
    /// Deletes one for good.
    delete(DeleteSubmissionRequest) -> DeleteSubmissionResponse = delete_submission or submission_service::delete;
    /// Removes bytes that are past the retention time.
    purge(PurgeBlockedBundlesRequest) -> PurgeBlockedBundlesResponse = purge_blocked_bundles or submission_service::purge;
    /// Ends reviews that nobody works on any more.
    reap(ReapStuckReviewsRequest) -> ReapStuckReviewsResponse = reap_stuck_reviews or submission_service::reap;
    /// One page of submissions.
    submissions_page(ListSubmissionsRequest) -> ListSubmissionsResponse = submissions or submission_service::list;
    /// One entity.
    entity(GetEntityRequest) -> GetEntityResponse = entity or entity_service::get;
    /// One page of entities.
    entities_page(ListEntitiesRequest) -> ListEntitiesResponse = entities or entity_service::list;
    /// Takes an entity down softly.
    archive(ArchiveEntityRequest) -> ArchiveEntityResponse = archive_entity or entity_service::archive;
    /// Brings an archived entity back.
    restore(RestoreEntityRequest) -> RestoreEntityResponse = restore_entity or entity_service::restore;
    /// Deletes an entity for good.
    delete_entity(DeleteEntityRequest) -> DeleteEntityResponse = delete_entity or entity_service::delete;
}

impl Source {
    /// Opens what the arguments name.
    pub(in crate::cli) fn open(arguments: &WhereArguments, context: &Context) -> Result<Self, Failure> {
        if let Some(url) = &arguments.server {
            let token = match &arguments.submitter {
                Some(_) => None,
                None => Some(arguments.token.read(context)?),
            };
            let caller = Caller { token, submitter: arguments.submitter.clone() };
            return Ok(Self::Server(remote::connect_for_uploads(url, context)?, caller));
        }
        let settings = context.settings()?;
        existing_store(&settings)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(Failure::internal)?;
        let opened = runtime.block_on(app::local_submissions(&settings)).map_err(Failure::configuration)?;
        let (submissions, events) = opened;
        Ok(Self::Here(Here { submissions, events, identity: Identity::operator(), runtime }))
    }

    /// Submissions in the order asked for, page after page, `limit` at most.
    pub(super) fn list(
        &self,
        mut request: v1::ListSubmissionsRequest,
        limit: usize,
    ) -> Result<v1::ListSubmissionsResponse, Failure> {
        let (submissions, next_page_token, total) = pages(limit, PAGE_MAX, |page_size, page_token| {
            (request.page_size, request.page_token) = (page_size, page_token);
            let page = self.submissions_page(request.clone())?;
            Ok((page.submissions, page.next_page_token, page.total))
        })?;
        Ok(v1::ListSubmissionsResponse { submissions, next_page_token, total })
    }

    /// Entities in the order asked for, page after page, `limit` at most.
    pub(super) fn entities(
        &self,
        mut request: v1::ListEntitiesRequest,
        limit: usize,
    ) -> Result<v1::ListEntitiesResponse, Failure> {
        let (entities, next_page_token, total) = pages(limit, PAGE_MAX, |page_size, page_token| {
            (request.page_size, request.page_token) = (page_size, page_token);
            let page = self.entities_page(request.clone())?;
            Ok((page.entities, page.next_page_token, page.total))
        })?;
        Ok(v1::ListEntitiesResponse { entities, next_page_token, total })
    }

    /// Events in the order asked for, page after page, `limit` at most.
    pub(super) fn events(
        &self,
        mut request: v1::ListAuditEventsRequest,
        limit: usize,
    ) -> Result<v1::ListAuditEventsResponse, Failure> {
        let (events, next_page_token, ()) = pages(limit, EVENTS_PAGE_MAX, |page_size, page_token| {
            (request.page_size, request.page_token) = (page_size, page_token);
            let page = match self {
                Self::Server(client, caller) => client.audit_events(request.clone(), caller)?,
                Self::Here(here) => {
                    let tenant = here.identity.tenant();
                    here.runtime.block_on(audit_service::list(&*here.events.0, tenant, request.clone()))?
                }
            };
            Ok((page.events, page.next_page_token, ()))
        })?;
        Ok(v1::ListAuditEventsResponse { events, next_page_token })
    }

    /// Tenants whose chains can be looked at from here: all, or through a server the caller's own (`None`).
    pub(in crate::cli) fn audit_tenants(&self) -> Result<Vec<Option<String>>, Failure> {
        let Self::Here(here) = self else { return Ok(vec![None]) };
        let tenants = here.runtime.block_on(here.events.0.audit_tenants()).map_err(RequestError::from)?;
        Ok(tenants.into_iter().map(Some).collect())
    }

    /// Whether the chain of events of a tenant is as it was written.
    pub(in crate::cli) fn verify(
        &self,
        tenant: Option<&str>,
        request: v1::VerifyAuditChainRequest,
    ) -> Result<v1::VerifyAuditChainResponse, Failure> {
        match self {
            Self::Server(client, caller) => Ok(client.verify_audit(request, caller)?),
            Self::Here(here) => {
                let tenant = tenant.unwrap_or_else(|| here.identity.tenant());
                Ok(here.runtime.block_on(audit_service::verify(&*here.events.0, tenant, request))?)
            }
        }
    }

    /// Follows a submission; answers how it stands at the end.
    pub(super) fn watch(
        &self,
        request: v1::WatchSubmissionRequest,
        mut on_each: impl FnMut(&v1::WatchSubmissionResponse),
    ) -> Result<v1::Submission, Failure> {
        match self {
            Self::Server(client, caller) => Ok(client.watch_submission(request, caller, on_each)?),
            Self::Here(here) => here.runtime.block_on(async {
                let watched = submission_service::watch(&here.submissions, &here.identity, request)?;
                let mut watched = Box::pin(watched);
                let mut last = None;
                while let Some(answer) = watched.next().await {
                    let answer = answer?;
                    on_each(&answer);
                    last = answer.submission;
                }
                last.ok_or_else(|| Failure::internal("the watch told nothing"))
            }),
        }
    }

    /// Downloads into what `open` gives for the header; answers the header.
    pub(super) fn download(
        &self,
        what: What,
        id: &str,
        open: impl FnOnce(&v1::DownloadHeader) -> Result<Box<dyn Write>, Failure>,
    ) -> Result<v1::DownloadHeader, Failure> {
        match (self, what) {
            (Self::Server(client, caller), What::Submission) => {
                receive(client, client.download_bundle(id, caller)?, open)
            }
            (Self::Server(client, caller), What::Entity) => {
                receive(client, client.download_entity(id, caller)?, open)
            }
            (Self::Here(here), what) => {
                let actor = here.identity.actor("");
                let download = here.runtime.block_on(async {
                    match what {
                        What::Submission => here.submissions.download(&actor, id).await,
                        What::Entity => here.submissions.download_entity(&actor, id).await,
                    }
                });
                let download: Download = download.map_err(RequestError::from)?;
                let header = download_header(&download);
                let mut out = open(&header)?;
                let copied = File::open(download.path()).and_then(|mut file| io::copy(&mut file, &mut out));
                copied.and_then(|_| out.flush()).map_err(Failure::internal)?;
                Ok(header)
            }
        }
    }
}

fn receive<R>(
    client: &Client,
    receiving: Receiving<R>,
    open: impl FnOnce(&v1::DownloadHeader) -> Result<Box<dyn Write>, Failure>,
) -> Result<v1::DownloadHeader, Failure> {
    let header = receiving.header().clone();
    let mut out = open(&header)?;
    client.receive(receiving, &mut *out)?;
    out.flush().map_err(Failure::internal)?;
    Ok(header)
}
