//! Where incidents are: on a server, or in the store of this place.

use super::WhereArguments;
use crate::bundles;
use crate::cli::context::{self, Context};
use crate::cli::listing::{existing_store, pages};
use crate::cli::token::TokenArguments;
use crate::cli::{Failure, remote};
use crate::grpc::client::Client;
use crate::grpc::{Identity, KeptIncidents, RequestError};
use crate::pb::v1;
use crate::store;

/// Most incidents on one page.
const PAGE_MAX: usize = 1_000;

/// See the module.
pub(super) enum Source {
    /// A server.
    Server(Client),
    /// The store that the settings name.
    Store(Store),
}

/// A store that is open in this process.
pub(super) struct Store {
    incidents: KeptIncidents,
    identity: Identity,
    runtime: tokio::runtime::Runtime,
}

impl Source {
    /// Opens what the arguments name.
    pub(super) fn open(arguments: &WhereArguments, context: &Context) -> Result<Self, Failure> {
        if let Some(url) = &arguments.server {
            return Ok(Self::Server(remote::connect(url, context)?));
        }
        let settings = context.settings()?;
        let path = existing_store(&settings)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::internal)?;
        let stores = runtime.block_on(store::open(&settings.store, &path)).map_err(Failure::configuration)?;
        let incidents = KeptIncidents { store: stores.incidents, writer: None };
        Ok(Self::Store(Store { incidents, identity: Identity::operator(), runtime }))
    }

    /// One incident.
    pub(super) fn get(&self, id: &str) -> Result<v1::Incident, Failure> {
        let request = v1::GetIncidentRequest { incident_id: id.to_owned() };
        let response = match self {
            Self::Server(client) => client.incident(request)?,
            Self::Store(store) => {
                store.runtime.block_on(store.incidents.get(store.identity.tenant(), request))?
            }
        };
        response.incident.ok_or_else(|| Failure::internal("the answer holds no incident"))
    }

    /// Incidents in the order asked for, page after page, `limit` at most.
    pub(super) fn list(
        &self,
        mut request: v1::ListIncidentsRequest,
        limit: usize,
    ) -> Result<v1::ListIncidentsResponse, Failure> {
        let (incidents, next_page_token, total) = pages(limit, PAGE_MAX, |page_size, page_token| {
            (request.page_size, request.page_token) = (page_size, page_token);
            let page = match self {
                Self::Server(client) => client.incidents(request.clone())?,
                Self::Store(store) => {
                    store.runtime.block_on(store.incidents.list(store.identity.tenant(), request.clone()))?
                }
            };
            Ok((page.incidents, page.next_page_token, page.total))
        })?;
        Ok(v1::ListIncidentsResponse { incidents, next_page_token, total })
    }

    /// Marks one, or takes the mark back. A server wants its admin token; whoever can write the store needs none.
    pub(super) fn mark(
        &self,
        mut request: v1::MarkFalsePositiveRequest,
        token: &TokenArguments,
        context: &Context,
    ) -> Result<v1::MarkFalsePositiveResponse, Failure> {
        match self {
            Self::Server(client) => Ok(client.mark_incident(request, &token.read(context)?)?),
            Self::Store(store) => {
                // A server masks by the rules in force there; here they are those of the settings.
                if KeptIncidents::masks(&request) {
                    let snapshot = context::snapshot(&context.settings()?)?;
                    request.reason = bundles::mask(snapshot.scanner(), &request.reason);
                }
                Ok(store.runtime.block_on(store.incidents.mark(&store.identity, request))?)
            }
        }
    }

    /// Counts.
    pub(super) fn stats(
        &self,
        request: v1::GetIncidentStatsRequest,
    ) -> Result<v1::GetIncidentStatsResponse, Failure> {
        match self {
            Self::Server(client) => Ok(client.incident_stats(request)?),
            Self::Store(store) => {
                Ok(store.runtime.block_on(store.incidents.stats(store.identity.tenant(), request))?)
            }
        }
    }
}

impl From<RequestError> for Failure {
    /// As the same refusal of a server ends a command.
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::StoreUnavailable | RequestError::Internal => Self::internal(error),
            error => Self::data(error),
        }
    }
}
