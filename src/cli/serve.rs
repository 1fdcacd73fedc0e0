//! `serve`: the service, until SIGTERM or SIGINT.

use std::path::PathBuf;

use clap::Args;

use super::context::Context;
use super::{Exit, Failure};
use crate::app;
use crate::config::Overrides;

/// Arguments of `serve`. Each flag sets the setting of the same meaning.
#[derive(Debug, Args)]
pub(super) struct ServeArguments {
    /// Address and port of the gRPC side; port 0 takes a free one [default: 127.0.0.1:50051].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Address and port of the HTTP side [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDRESS")]
    http_listen: Option<String>,
    /// Folder of everything the service writes [default: ./data].
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Folder of policy files.
    #[arg(long, value_name = "FOLDER")]
    policy: Option<PathBuf>,
    /// Log level: off, error, warn, info, debug or trace.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Listen where other machines can reach the service although nobody is authenticated.
    #[arg(long)]
    insecure_allow_anonymous: bool,
    /// Take tokens in clear where other machines can reach the service: a proxy in front speaks TLS.
    #[arg(long)]
    insecure_allow_plaintext: bool,
}

impl ServeArguments {
    fn override_settings(&self, overrides: &mut Overrides) {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("server.listen", self.listen.clone(), "--listen"),
            ("http.listen", self.http_listen.clone(), "--http-listen"),
            ("data_dir", path(&self.data_dir), "--data-dir"),
            ("policy.path", path(&self.policy), "--policy"),
            ("log.level", self.log_level.clone(), "--log-level"),
        ];
        for (key, value, flag) in flags {
            if let Some(value) = value {
                overrides.set(key, value, flag);
            }
        }
        if self.insecure_allow_anonymous {
            overrides.set("server.insecure_allow_anonymous", "true", "--insecure-allow-anonymous");
        }
        if self.insecure_allow_plaintext {
            overrides.set("server.insecure_allow_plaintext", "true", "--insecure-allow-plaintext");
        }
    }
}

/// Runs the command.
pub(super) fn run(arguments: &ServeArguments, context: &Context) -> Result<Exit, Failure> {
    let (settings, _) = context.service_settings(|overrides| arguments.override_settings(overrides))?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::internal)?;
    runtime.block_on(app::serve(settings)).map_err(failure_of)?;
    Ok(Exit::Ok)
}

fn failure_of(error: app::ServeError) -> Failure {
    let message = with_sources(&error);
    match error {
        // What the settings name cannot be used: an operator mends it, not a developer.
        app::ServeError::Logging(_)
        | app::ServeError::AdminToken { .. }
        | app::ServeError::DataFolder { .. }
        | app::ServeError::Tls(_)
        | app::ServeError::Auth(_)
        | app::ServeError::Audit(_)
        | app::ServeError::Store(_)
        | app::ServeError::Settings(_)
        | app::ServeError::Bytes(_)
        | app::ServeError::Uploads { .. }
        | app::ServeError::Grpc(_)
        | app::ServeError::Http { .. } => Failure::configuration(message),
        app::ServeError::Threads(_) | app::ServeError::Signals(_) => Failure::internal(message),
    }
}

/// An error with the causes that it does not tell itself.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !message.contains(&cause_text) {
            message.push_str(": ");
            message.push_str(&cause_text);
        }
        source = cause.source();
    }
    message
}
