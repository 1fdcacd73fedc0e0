//! The HTTP side: metrics and probes, for the machines that look after the service, and contracts of others over its
//! services where the settings turn them on ([`Adapters`]), and the console for people.
//!
//! Every request must name a host that is configured (or this machine), and no page of another host may send it, so that
//! a web page in somebody's browser cannot reach the service, not by letting its own name resolve here either.
//!
//! HTTP/1.1 alone, with a limit on headers, on the time they take and on connections: probes come from anywhere.

mod adapters;
mod config;
mod host;
mod readiness;
mod server;

#[cfg(test)]
mod tests;

use axum::Json;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

pub use adapters::Adapters;
pub use config::{AdaptersConfig, Config};
pub use host::AllowedHosts;
pub use readiness::{NotServing, Readiness};
pub use server::serve;

use crate::console::{self, Console};
use crate::telemetry::MetricsHandle;

/// The text format of Prometheus.
const METRICS_TYPE: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// What the HTTP side shows.
#[derive(Clone, Debug)]
pub struct AppState {
    /// What `/metrics` renders.
    pub metrics: MetricsHandle,
    /// What `/readyz` tells.
    pub readiness: Readiness,
}

/// The routes of metrics and probes, behind the check of the host.
pub fn router(state: AppState, hosts: AllowedHosts) -> Router {
    router_with(state, hosts, None, None)
}

/// The routes, behind the check of the host; with those of the adapters that are on, and of the console if it is.
pub fn router_with(
    state: AppState,
    hosts: AllowedHosts,
    adapters: Option<Adapters>,
    console: Option<&Console>,
) -> Router {
    let own = Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .with_state(state);
    own.merge(console.map(Console::routes).unwrap_or_default())
        .merge(adapters.as_ref().map(Adapters::routes).unwrap_or_default())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        // Outermost: a stranger's page learns nothing, not even which routes there are.
        .layer(middleware::from_fn_with_state((hosts, adapters), check_host))
        // What the check refuses is an answer to a browser, too.
        .layer(middleware::from_fn(console::with_headers))
}

async fn metrics(State(state): State<AppState>) -> Response {
    ([(header::CONTENT_TYPE, METRICS_TYPE)], state.metrics.render()).into_response()
}

/// Whether the process runs at all; a supervisor restarts it when this fails.
async fn livez() -> &'static str {
    "ok\n"
}

/// Whether requests should be sent here.
async fn readyz(State(state): State<AppState>) -> Response {
    match state.readiness.get() {
        Ok(()) => "ok\n".into_response(),
        Err(NotServing { reason }) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not serving: {reason}\n")).into_response()
        }
    }
}

async fn not_found() -> Response {
    let message = "no such page; there are /metrics, /livez and /readyz, /console where it is enabled, and those that `http.adapters` turns on";
    refusal(StatusCode::NOT_FOUND, "not_found", message)
}

async fn method_not_allowed() -> Response {
    refusal(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "not with this method; see `allow`")
}

async fn check_host(
    State((hosts, adapters)): State<(AllowedHosts, Option<Adapters>)>,
    request: Request,
    next: Next,
) -> Response {
    let checked = hosts.check(request.uri(), request.headers());
    match checked.and_then(|()| hosts.check_origin(request.headers())) {
        Ok(()) => next.run(request).await,
        Err(error) => {
            let message = error.to_string();
            let own = adapters.and_then(|adapters| adapters.turned_away(request.uri().path(), &message));
            own.unwrap_or_else(|| refusal(error.status(), error.code(), &message))
        }
    }
}

/// `{"error":{"code","message"}}`.
fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(serde_json::json!({ "error": { "code": code, "message": message } }))).into_response()
}
