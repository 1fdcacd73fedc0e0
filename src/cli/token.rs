//! The admin token of the server, which changes need.

use std::path::{Path, PathBuf};

use clap::Args;

use super::context::Context;
use super::{Failure, input};

/// Where the token is.
#[derive(Debug, Args)]
pub(super) struct TokenArguments {
    /// File that holds the admin token of the server [default: client.token_file of the settings, else admin-token in their data folder].
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl TokenArguments {
    /// The token.
    pub(super) fn read(&self, context: &Context) -> Result<String, Failure> {
        let own = if self.token_file.is_none() { context.own_token()? } else { None };
        if let Some(token) = own {
            return Ok(token);
        }
        let path = match &self.token_file {
            Some(path) => path.clone(),
            None => context.settings()?.data_dir.join("admin-token"),
        };
        let token = input::small_file(&path).map_err(|failure| told(&path, &failure))?.trim().to_owned();
        if token.is_empty() {
            return Err(Failure::configuration(format_args!("{}: holds no token", path.display())));
        }
        Ok(token)
    }
}

fn told(path: &Path, failure: &Failure) -> Failure {
    Failure::configuration(format_args!(
        "{failure}; a running server writes its admin token to `admin-token` in its data folder: name that file with \
         --token-file (looked at {})",
        path.display()
    ))
}
