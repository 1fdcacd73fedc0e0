//! `policy show`: a policy with everything it inherits.

use std::path::PathBuf;

use clap::Args;

use crate::cli::context::{Context, snapshot};
use crate::cli::{Exit, Failure, Output, remote};
use crate::grpc::convert;
use crate::pb::v1;

/// Arguments of `policy show`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArguments {
    /// Name of the policy.
    #[arg(default_value = crate::policy::DEFAULT_POLICY)]
    name: String,
    /// Folder of policy files, in place of that of the settings.
    #[arg(long, value_name = "FOLDER", conflicts_with = "server")]
    policy_path: Option<PathBuf>,
    /// Show a policy of a running server.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Print the GetPolicyResponse as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(
    arguments: &ShowArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let response = match &arguments.server {
        Some(url) => remote::connect(url, context)?.policy(&arguments.name)?,
        None => policy_here(arguments, context)?,
    };
    if arguments.json {
        output.json(&response)?;
    } else {
        output.text(&response.yaml);
    }
    Ok(Exit::Ok)
}

fn policy_here(arguments: &ShowArguments, context: &Context) -> Result<v1::GetPolicyResponse, Failure> {
    let mut settings = context.settings()?;
    if let Some(path) = &arguments.policy_path {
        settings.policy.path = Some(path.clone());
    }
    let snapshot = snapshot(&settings)?;
    let names: Vec<String> = snapshot.policies().iter().map(|policy| policy.name().to_string()).collect();
    let name = &arguments.name;
    let policy = snapshot
        .policies()
        .get(name)
        .ok_or_else(|| Failure::data(format_args!("no policy `{name}`; known: {}", names.join(", "))))?;
    Ok(v1::GetPolicyResponse {
        name: policy.name().to_string(),
        policy_revision: snapshot.revision().to_string(),
        yaml: policy.to_yaml(),
        names,
        problems: Vec::new(),
        load_time: Some(convert::timestamp(snapshot.loaded())),
        reject_time: None,
    })
}
