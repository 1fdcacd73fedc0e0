//! Whoever asks for a page, once a session says who it is.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use prost::Message;

use super::form::{self, FORM_BYTES_MAX, Fields};
use super::session::Session;
use super::{Console, answer, security};
use crate::grpc::{Identity, LocalCaller, LocalCalls, REQUEST_ID, Refusal};
use crate::store::SEARCHED_MAX;

/// The cookie that holds the id of a session.
pub(super) const COOKIE: &str = "portcullis_session";
/// How long one page may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Somebody with a session.
pub(super) struct Visitor {
    console: Console,
    caller: LocalCaller,
    id: String,
    /// Who it is.
    pub(super) identity: Identity,
    /// Its session.
    pub(super) session: Arc<Session>,
    /// The address it asked for, for the way back after a login.
    pub(super) place: String,
    /// The fields of the address.
    pub(super) query: Fields,
    /// Whether a script asks, to put a part of the page into one that is there.
    pub(super) is_fragment: bool,
}

/// The id of the session that a request brings; `None` when it brings none, or more than one.
pub(super) fn session_id(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut ids = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, id)| id);
    ids.next().filter(|_| ids.next().is_none())
}

/// A caller with a credential; `None` when that cannot stand in a header. An empty one is no credential. Of what it asks
/// with, the id of the request goes on to the services.
pub(super) fn caller(token: &str, asked: &HeaderMap) -> Option<LocalCaller> {
    let mut headers = HeaderMap::new();
    if let Some(id) = asked.get(REQUEST_ID) {
        headers.insert(REQUEST_ID, id.clone());
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    headers.insert(header::AUTHORIZATION, value);
    Some(LocalCaller::new(&headers, TIMEOUT))
}

impl Visitor {
    async fn of(parts: &Parts, console: &Console) -> Result<Self, Response> {
        let place = parts.uri.path_and_query().map_or_else(String::new, |place| place.as_str().to_owned());
        let is_fragment = parts.headers.contains_key("hx-request");
        let known = session_id(&parts.headers).and_then(|id| {
            let follows = is_fragment && parts.method == axum::http::Method::GET;
            let session = console.sessions().get(id, !follows, Instant::now())?;
            Some((id.to_owned(), caller(&session.token, &parts.headers)?, session))
        });
        let Some((id, caller, session)) = known else {
            if parts.method == axum::http::Method::GET {
                return Err(answer::to_login(&place, is_fragment));
            }
            let message = "Your session has ended; nothing was done.";
            let status = StatusCode::UNAUTHORIZED;
            return Err(answer::problem(None, status, "Log in", message, "Log in and try again."));
        };
        let query = Fields::parse(parts.uri.query().unwrap_or_default().as_bytes());
        match console.calls().identify(&caller).await {
            Ok(identity) => Ok(Self {
                console: console.clone(),
                caller,
                id,
                identity,
                session,
                place,
                query,
                is_fragment,
            }),
            Err(refusal) if refusal.code == crate::telemetry::Code::Unauthenticated => {
                console.sessions().end(&id);
                Err(answer::to_login(&place, is_fragment))
            }
            Err(refusal) => {
                let status = answer::status_of(refusal.code);
                Err(answer::problem(None, status, "Not now", &refusal.message, "Try again in a moment."))
            }
        }
    }

    /// Ends the session.
    pub(super) fn end(&self) {
        self.console.sessions().end(&self.id);
    }

    /// The services of this process.
    pub(super) fn calls(&self) -> &LocalCalls {
        self.console.calls()
    }

    /// Who calls them.
    pub(super) fn caller(&self) -> &LocalCaller {
        &self.caller
    }

    /// Asks for a page of a list, of which more than `SEARCHED_MAX` are not counted: a total says one more then.
    pub(super) async fn list<A: Message + Default>(
        &self,
        rpc: &str,
        request: &impl Message,
    ) -> Result<A, Refusal> {
        let caller = self.caller.clone().counting_to(SEARCHED_MAX);
        self.calls().call(&format!("/portcullis.v1.{rpc}"), &caller, request).await
    }

    /// Calls an RPC such as `SubmissionService/GetSubmission` as this visitor.
    pub(super) async fn call<A: Message + Default>(
        &self,
        rpc: &str,
        request: &impl Message,
    ) -> Result<A, Refusal> {
        self.calls().call(&format!("/portcullis.v1.{rpc}"), &self.caller, request).await
    }
}

impl FromRequestParts<Console> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Response> {
        Self::of(parts, console).await
    }
}

/// The visitor, if a session says who it is; anybody else is let through without one.
pub(super) struct Known(pub(super) Option<Visitor>);

impl FromRequestParts<Console> for Known {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Infallible> {
        Ok(Self(Visitor::of(parts, console).await.ok()))
    }
}

/// A form that a visitor sent from a page of ours.
pub(super) struct Sent {
    /// Who.
    pub(super) visitor: Visitor,
    /// What.
    pub(super) fields: Fields,
}

impl Visitor {
    /// Refuses a form that did not come from a page of this session.
    pub(super) fn check(&self, headers: &HeaderMap, csrf: &str) -> Result<(), Box<Response>> {
        if !security::is_cross_site(headers) && self.session.is_sent(csrf) {
            return Ok(());
        }
        let message = "The form does not belong to your session; nothing was done.";
        let advice = "Open the page again and send the form from there.";
        let shell = Some(self.shell(""));
        Err(Box::new(answer::problem(shell, StatusCode::FORBIDDEN, "Refused", message, advice)))
    }
}

impl FromRequest<Console> for Sent {
    type Rejection = Response;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let visitor = Visitor::of(&parts, console).await?;
        let headers = parts.headers.clone();
        let Some(fields) = form::read(Request::from_parts(parts, body), FORM_BYTES_MAX).await else {
            let message = "This is not a form, or it is too large.";
            let shell = Some(visitor.shell(""));
            let status = StatusCode::BAD_REQUEST;
            return Err(answer::problem(shell, status, "Not understood", message, "Send the form again."));
        };
        visitor.check(&headers, fields.one("csrf")).map_err(|refused| *refused)?;
        Ok(Self { visitor, fields })
    }
}
