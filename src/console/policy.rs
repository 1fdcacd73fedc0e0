//! The policies in force, where they come from, and what became of reloads.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::answer;
use super::filters;
use super::shell::Shell;
use super::view::Moment;
use super::visitor::Visitor;
use crate::grpc::Refusal;
use crate::pb::v1;
use crate::policy::CallerRole;

/// Where the page is.
pub(super) const PLACE: &str = "/console/policy";

#[derive(Template)]
#[template(path = "policy.html")]
struct Page {
    shell: Shell,
    name: String,
    names: Vec<(String, String, bool)>,
    revision: String,
    loaded: Moment,
    rejected: Moment,
    problems: Vec<String>,
    lines: Vec<String>,
    /// Absent for those who may not see it.
    sources: Option<Sources>,
}

struct Sources {
    policies: String,
    /// Each policy with its file; that is empty for the one that is built in.
    files: Vec<(String, String)>,
    rules: Vec<String>,
    reloads: Vec<Reload>,
}

struct Reload {
    time: Moment,
    outcome: &'static str,
    revision: String,
    problems: Vec<String>,
}

/// The page.
pub(super) async fn page(visitor: Visitor) -> Response {
    visitor.show(made(&visitor).await)
}

async fn made(visitor: &Visitor) -> Result<Response, Refusal> {
    let request = v1::GetPolicyRequest { name: visitor.query.one("name").to_owned() };
    let found: v1::GetPolicyResponse = visitor.call("PolicyService/GetPolicy", &request).await?;
    let sources = visitor.identity.has(CallerRole::Auditor).then(|| {
        let (sources, history) = visitor.calls().reloads();
        let files = visitor.calls().policy_files(&found.names).into_iter();
        let files = files.map(|file| file.map_or_else(String::new, |file| file.to_string()));
        Sources {
            files: found.names.iter().cloned().zip(files).collect(),
            policies: sources.policies.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
            rules: sources.rules.iter().map(|path| path.display().to_string()).collect(),
            reloads: history
                .into_iter()
                .map(|one| Reload {
                    time: Moment::at(one.time),
                    outcome: one.outcome,
                    revision: one.revision,
                    problems: one.problems,
                })
                .collect(),
        }
    });
    let names = found.names.into_iter().map(|name| {
        let query: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
        let is_current = name == found.name;
        (name, format!("{PLACE}?name={query}"), is_current)
    });
    let page = Page {
        shell: visitor.shell(PLACE),
        names: names.collect(),
        revision: found.policy_revision,
        loaded: Moment::of(found.load_time.as_ref()),
        rejected: Moment::of(found.reject_time.as_ref()),
        problems: found.problems,
        lines: found.yaml.lines().map(str::to_owned).collect(),
        name: found.name,
        sources,
    };
    Ok(answer::page(StatusCode::OK, &page))
}
