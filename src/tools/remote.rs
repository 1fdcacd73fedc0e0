//! Interceptors that live elsewhere: what the engine asks of their client.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::call::Call;
use super::step::InterceptError;
use crate::decision::Decision;
use crate::outbound::Until;
use crate::policy::{Params, RemoteSpec, SpecProblem};

/// How an interceptor that lives elsewhere is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemoteKind {
    /// `ExtensionService` over gRPC.
    Extension,
    /// An HTTP endpoint.
    Webhook,
}

/// What is asked: the call as it stands. Everything that the contract's `InterceptRequest` needs can be read from it.
pub type RemoteRequest<'a> = Call<'a>;

/// What became of the call. `None` leaves a thing as it is. The engine checks every value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RemoteAnswer {
    /// What the caller may do.
    pub decision: Decision,
    /// The new arguments, a JSON object as text.
    pub args: Option<String>,
    /// The new result, JSON text.
    pub result: Option<String>,
    /// The new message.
    pub message: Option<String>,
    /// Parameters to set; only stated ones change.
    pub params: Option<Params>,
    /// The new metadata, a JSON object as text.
    pub metadata: Option<String>,
    /// Why, fit to be shown to a person.
    pub reason: String,
}

/// A call to somebody else, under way.
pub type RemoteFuture<'a> = Pin<Box<dyn Future<Output = Result<RemoteAnswer, InterceptError>> + Send + 'a>>;

/// A client of one interceptor that lives elsewhere. Retries and the circuit breaker are its own; it holds `until`, and
/// the engine drops the future then.
pub trait RemoteHandler: Send + Sync {
    /// Asks about one call.
    fn call<'a>(&'a self, request: &'a RemoteRequest<'a>, until: Until) -> RemoteFuture<'a>;
}

/// Makes clients. Two specs that are equal may share one, so that a reload keeps connections and breakers.
pub trait RemoteFactory: Send + Sync + fmt::Debug {
    /// A client for the interceptor `id`. Nothing is connected yet.
    ///
    /// # Errors
    /// Everything that is wrong with the spec: the address, an unknown credential. The fields are `endpoint`,
    /// `credential` and `attempts_max`.
    fn client(
        &self,
        id: &str,
        kind: RemoteKind,
        spec: &RemoteSpec,
    ) -> Result<Arc<dyn RemoteHandler>, Vec<SpecProblem>>;
}
