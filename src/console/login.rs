//! Login and logout.

use std::time::Instant;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;

use super::filters;
use super::form::{self, FORM_BYTES_MAX, Fields};
use super::visitor::{COOKIE, Sent, caller, session_id};
use super::{Console, answer, security};
use crate::grpc::ANONYMOUS;

/// The page with the one field.
#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    next: &'a str,
    error: &'a str,
}

/// Shows the login.
pub(super) async fn page(uri: Uri) -> Response {
    let query = Fields::parse(uri.query().unwrap_or_default().as_bytes());
    form_page(StatusCode::OK, security::next_page(query.one("next")), "")
}

/// Begins a session for whoever brings a credential that the services know.
pub(super) async fn login(State(console): State<Console>, request: Request) -> Response {
    let headers = request.headers().clone();
    if security::is_cross_site(&headers) {
        return form_page(
            StatusCode::FORBIDDEN,
            super::HOME,
            "The form came from another site; try again here.",
        );
    }
    let Some(fields) = form::read(request, FORM_BYTES_MAX).await else {
        return form_page(StatusCode::BAD_REQUEST, super::HOME, "This is not the form of this page.");
    };
    let next = security::next_page(fields.one("next"));
    let token = fields.one("token").trim();
    if token.is_empty() {
        return form_page(StatusCode::UNAUTHORIZED, next, "Enter a token.");
    }
    let Some(caller) = caller(token, &headers) else {
        return form_page(StatusCode::UNAUTHORIZED, next, "This is not a token.");
    };
    let identity = match console.calls().identify(&caller).await {
        // Nobody is known by saying nothing.
        Ok(identity) if identity.is_authenticated() && identity.name() != ANONYMOUS => identity,
        Ok(_) => return form_page(StatusCode::UNAUTHORIZED, next, "This token is not known."),
        Err(refusal) => {
            let status = answer::status_of(refusal.code);
            return form_page(status, next, &format!("Not logged in: {}.", refusal.message));
        }
    };
    if security::loses_cookie(&headers) {
        return form_page(
            StatusCode::BAD_REQUEST,
            next,
            "The token is right, but your browser would not keep the session: this page came without encryption from \
             another machine. Open it by https through the proxy before the service, or as localhost on the machine itself.",
        );
    }
    // Whatever session the browser had ends here: an id that somebody else knows is worth nothing after a login.
    if let Some(before) = session_id(&headers) {
        console.sessions().end(before);
    }
    let owner = (identity.tenant(), identity.name());
    match console.sessions().begin(token.to_owned(), owner, Instant::now()) {
        Ok(id) => with_cookie(answer::see(next), &headers, &id, None),
        Err(error) => {
            tracing::error!(%error, "nobody can log in");
            form_page(StatusCode::INTERNAL_SERVER_ERROR, next, "The service cannot begin a session now.")
        }
    }
}

/// Ends the session.
pub(super) async fn logout(headers: HeaderMap, sent: Sent) -> Response {
    sent.visitor.end();
    with_cookie(answer::see("/console/login"), &headers, "", Some(0))
}

fn form_page(status: StatusCode, next: &str, error: &str) -> Response {
    answer::page(status, &LoginPage { next, error })
}

/// Sets the cookie: for this site's own requests alone, out of reach of scripts, and gone with the browser.
fn with_cookie(mut response: Response, headers: &HeaderMap, id: &str, age: Option<u32>) -> Response {
    let secure = if security::is_secure(headers) { "; Secure" } else { "" };
    let age = age.map(|age| format!("; Max-Age={age}")).unwrap_or_default();
    let cookie = format!("{COOKIE}={id}; Path=/console; HttpOnly; SameSite=Strict{secure}{age}");
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}
