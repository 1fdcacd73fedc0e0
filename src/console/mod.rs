//! The console: pages for people over the services of this process, under `/console` of the HTTP side.
//!
//! Pages are made here and read by any browser; a small script keeps them up to date where it runs. A page asks the services
//! ([`LocalCalls`]) as whoever logged in, so that identity, roles, tenants, rates, limits and records are those of a call
//! from outside: there is no second way to the data. Everything shown is escaped by the templates. What an answer may do in
//! a browser is told in `security`, who is logged in in `session`.

mod answer;
mod assets;
mod config;
mod download;
mod form;
mod login;
mod security;
mod session;
mod shell;
mod submission;
mod submissions;
mod view;
mod visitor;


use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{any, get, post};

pub use config::Config;
pub(crate) use security::with_headers;

use crate::grpc::LocalCalls;
use session::Sessions;

/// Where everything begins.
const HOME: &str = "/console/submissions";

/// What the pages need.
#[derive(Clone)]
pub struct Console(Arc<Inner>);

struct Inner {
    calls: LocalCalls,
    sessions: Sessions,
}

impl Console {
    /// The console over the services of this process.
    pub fn new(calls: LocalCalls, config: &Config) -> Self {
        Self(Arc::new(Inner { calls, sessions: Sessions::new(config) }))
    }

    fn calls(&self) -> &LocalCalls {
        &self.0.calls
    }

    fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    /// Every page.
    pub(crate) fn routes(&self) -> Router {
        Router::new()
            .route("/console", get(home))
            .route("/console/", get(home))
            .route("/console/login", get(login::page).post(login::login))
            .route("/console/logout", post(login::logout))
            .route("/console/assets/{name}", get(assets::asset))
            .route("/console/submissions", get(submissions::list))
            .route("/console/submissions/{id}", get(submission::detail))
            .route("/console/submissions/{id}/download", get(download::bundle))
            .route("/console/submissions/{id}/{action}", post(submission::act))
            .route("/console/{*rest}", any(answer::no_page))
            .method_not_allowed_fallback(answer::wrong_method)
            .with_state(self.clone())
    }
}

async fn home() -> Response {
    Redirect::to(HOME).into_response()
}
