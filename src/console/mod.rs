//! The console: pages for people over the services of this process, under `/console` of the HTTP side.
//!
//! Pages are made here and read by any browser; a small script keeps them up to date where it runs. A page asks the services
//! ([`LocalCalls`]) as whoever logged in, so that identity, roles, tenants, rates, limits and records are those of a call
//! from outside: there is no second way to the data. Everything shown is escaped by the templates. What an answer may do in
//! a browser is told in `security`, who is logged in in `session`.

mod answer;
mod assets;
mod config;
mod decisions;
mod download;
mod filters;
mod form;
mod incidents;
mod login;
mod marks;
mod path;
mod playground;
mod policy;
mod rules;
mod scanned;
mod security;
mod session;
mod shell;
mod submission;
mod submission_actions;
mod submission_timeline;
mod submissions;
mod view;
mod visitor;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{any, get, post};

pub use config::Config;
pub(crate) use security::with_headers;

use crate::grpc::LocalCalls;
use crate::store::with_patience;
use session::Sessions;
use visitor::Visitor;

/// Where everything begins.
const HOME: &str = "/console/";

/// How long a page waits for a database that is away, before it says so: a person sits before it.
const PATIENCE: Duration = Duration::from_secs(2);

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
            .route("/console/submissions/{id}/download", post(download::bundle))
            .route("/console/submissions/{id}/{action}", post(submission_actions::act))
            .route("/console/decisions", get(decisions::list))
            .route("/console/decisions/{id}", get(decisions::detail))
            .route(
                "/console/playground",
                get(playground::page)
                    .post(playground::judge)
                    .layer(DefaultBodyLimit::max(playground::BODY_BYTES_MAX)),
            )
            .route("/console/incidents", get(incidents::list))
            .route("/console/incidents/rules", get(incidents::rates))
            .route("/console/incidents/{id}", get(incidents::detail))
            .route("/console/incidents/{id}/false-positive", post(incidents::mark))
            .route("/console/policy", get(policy::page))
            .route("/console/rules", get(rules::list))
            .route("/console/rules/{id}", get(rules::detail))
            .route("/console/{*rest}", any(answer::no_page))
            .method_not_allowed_fallback(answer::wrong_method)
            .layer(from_fn(|request: Request, next: Next| with_patience(PATIENCE, next.run(request))))
            .with_state(self.clone())
    }
}

/// To the first area that the visitor may see.
async fn home(visitor: Visitor) -> Response {
    let shell = visitor.shell("");
    let first = shell.links.first().map_or("/console/policy", |link| link.href);
    Redirect::to(first).into_response()
}
