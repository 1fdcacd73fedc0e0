//! Answers: pages, and what is said where there is none.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};

use super::filters;
use super::shell::Shell;
use super::visitor::{Known, Visitor};
use crate::grpc::Refusal;
use crate::telemetry::Code;

/// The page of something that went wrong.
#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    shell: Option<Shell>,
    title: &'a str,
    message: &'a str,
    advice: &'a str,
    /// What was typed and not taken; may be empty.
    typed: &'a str,
}

/// A rendered page.
pub(super) fn page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => (status, Html(html)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page of the console could not be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// The page of a problem, for whoever is logged in or for anybody.
pub(super) fn problem(
    shell: Option<Shell>,
    status: StatusCode,
    title: &str,
    message: &str,
    advice: &str,
) -> Response {
    page(status, &ErrorPage { shell, title, message, advice, typed: "" })
}

/// To another page, after something was done.
pub(super) fn see(place: &str) -> Response {
    Redirect::to(place).into_response()
}

/// To the login, from a page that somebody without a session asked for.
pub(super) fn to_login(next: &str, is_fragment: bool) -> Response {
    let encoded: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
    let place = format!("/console/login?next={encoded}");
    if is_fragment {
        // A script asked, which would put the login into the page: it is told to load it instead.
        let mut response = StatusCode::UNAUTHORIZED.into_response();
        if let Ok(value) = HeaderValue::from_str(&place) {
            response.headers_mut().insert("hx-redirect", value);
        }
        return response;
    }
    see(&place)
}

/// For whoever is logged in with the way to every other page, and for anybody else without a word of what there is.
pub(super) async fn no_page(Known(visitor): Known) -> Response {
    problem(
        visitor.map(|visitor| visitor.shell("")),
        StatusCode::NOT_FOUND,
        "No such page",
        "There is nothing at this address.",
        "Go to the start.",
    )
}

/// The same for an address that takes other requests.
pub(super) async fn wrong_method(Known(visitor): Known) -> Response {
    let message = "This address does not take requests of this method.";
    let shell = visitor.map(|visitor| visitor.shell(""));
    problem(shell, StatusCode::METHOD_NOT_ALLOWED, "Not with this method", message, "Go to the start.")
}

/// What a refusal of the services is in HTTP.
pub(super) fn status_of(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument | Code::OutOfRange | Code::Cancelled => StatusCode::BAD_REQUEST,
        Code::FailedPrecondition | Code::Aborted | Code::AlreadyExists => StatusCode::CONFLICT,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl Visitor {
    /// The page, or what the services refused it for.
    pub(super) fn show(&self, made: Result<Response, Refusal>) -> Response {
        made.unwrap_or_else(|refusal| self.refused(&refusal))
    }

    /// The page of a refusal.
    pub(super) fn refused(&self, refusal: &Refusal) -> Response {
        self.refused_for(refusal, "")
    }

    /// The same of a form, with what was typed into it.
    pub(super) fn refused_for(&self, refusal: &Refusal, typed: &str) -> Response {
        let (title, advice) = match refusal.code {
            Code::Unauthenticated => {
                // The credential was taken back, or has expired.
                self.end();
                return to_login(&self.place, self.is_fragment);
            }
            Code::NotFound => {
                ("Not found", "It may have been removed, or belong to somebody else. Go back to the list.")
            }
            Code::PermissionDenied => {
                ("Not allowed", "Log in with a token that has the role, or ask somebody who has one.")
            }
            Code::InvalidArgument | Code::OutOfRange => {
                ("Not understood", "Correct what is named above and try again.")
            }
            Code::FailedPrecondition | Code::Aborted => {
                ("Not now", "Look at how it stands now, then try again.")
            }
            Code::ResourceExhausted => ("Too much at once", "Wait a moment, then try again."),
            Code::Unavailable | Code::DeadlineExceeded => {
                ("Not available", "Try again; if it stays so, look at the log of the service.")
            }
            _ => ("Something went wrong", "Try again; the log of the service says more."),
        };
        let (shell, message) = (Some(self.shell("")), &*refusal.message);
        let shown = ErrorPage { shell, title, message, advice, typed };
        let mut response = page(status_of(refusal.code), &shown);
        if let Some(wait) = refusal.retry {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
