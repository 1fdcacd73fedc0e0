//! What commands share: the settings of this installation, and the rules and policies they lead to.
//!
//! A command that works in process uses the rules and policies that the service would use in the same place.

use std::path::PathBuf;

use clap::Args;

use super::Failure;
use crate::config::{Overrides, Settings, Sources};
use crate::grpc::client::Reach;
use crate::policy::{self, CallerRole, Snapshot};

/// Flags that every command takes.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct SettingsArguments {
    /// Settings file; default: portcullis.yaml in the working directory, if there is one.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Settings")]
    config: Option<PathBuf>,
    /// Set one setting, such as `log.level=debug`; may be given more than once.
    #[arg(long, global = true, value_name = "KEY=VALUE", help_heading = "Settings")]
    set: Vec<String>,
}

/// Roles of the person at the terminal: who can run the program with these files may use every policy in them.
pub(super) const OPERATOR: &[CallerRole] =
    &[CallerRole::Agent, CallerRole::Submitter, CallerRole::Auditor, CallerRole::Admin];

/// Where a command runs.
#[derive(Clone, Debug)]
pub(super) struct Context {
    arguments: SettingsArguments,
    variables: Vec<(String, String)>,
    folder: PathBuf,
    /// Whether `folder` is another than that of the process, so that the paths of the settings are below it.
    is_elsewhere: bool,
}

impl Context {
    pub(super) fn new(
        arguments: SettingsArguments,
        variables: Vec<(String, String)>,
        folder: PathBuf,
    ) -> Self {
        Self { arguments, variables, folder, is_elsewhere: false }
    }

    /// Where the command runs, if its name is Unicode.
    pub(super) fn working_directory(&self) -> Option<String> {
        self.folder.to_str().map(str::to_owned)
    }

    /// Home directory of the person at the terminal, if known.
    pub(super) fn home_directory(&self) -> Option<String> {
        let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        self.variables.iter().find(|(known, _)| known == name).map(|(_, home)| home.clone())
    }

    /// Where files may lie that go with the process.
    pub(super) fn temporary_folder(&self) -> PathBuf {
        let named = self.variables.iter().find(|(name, value)| name == "TMPDIR" && !value.is_empty());
        named.map_or_else(|| PathBuf::from("/tmp"), |(_, folder)| PathBuf::from(folder))
    }

    /// The same place, with a settings file looked for in `folder`, below which its paths are. A file named by a flag
    /// stays relative to where the command runs.
    pub(super) fn within_settings_of(&self, folder: PathBuf) -> Self {
        let mut context = self.clone();
        if let Some(file) = &mut context.arguments.config {
            *file = self.folder.join(&file);
        }
        context.folder = folder;
        context.is_elsewhere = true;
        context
    }

    /// The settings as the service reads them, with `flags` on top.
    pub(super) fn service_settings(
        &self,
        flags: impl FnOnce(&mut Overrides),
    ) -> Result<(Settings, Sources), Failure> {
        let mut overrides = Overrides { config_file: self.arguments.config.clone(), ..Overrides::default() };
        for pair in &self.arguments.set {
            overrides.set_pair(pair).map_err(Failure::usage)?;
        }
        flags(&mut overrides);
        Settings::load(overrides, self.variables.iter().cloned(), &self.folder)
            .map_err(Failure::configuration)
    }

    /// How this place reaches a server: token, trusted authorities, certificate.
    pub(super) fn reach(&self) -> Result<Reach, Failure> {
        let client = self.settings()?.client;
        let path = |path: PathBuf| if self.is_elsewhere { self.folder.join(path) } else { path };
        let read = |key: &str, file: Option<PathBuf>| -> Result<Option<Vec<u8>>, Failure> {
            let Some(file) = file.map(path) else { return Ok(None) };
            let text = super::input::small_file(&file)
                .map_err(|failure| Failure { message: format!("{key}: {failure}"), ..failure })?;
            Ok(Some(text.into_bytes()))
        };
        let token = match client.token_file.clone() {
            Some(_) => self.own_token()?,
            None => None,
        };
        let identity =
            match (read("client.certificate", client.certificate)?, read("client.key", client.key)?) {
                (Some(certificate), Some(key)) => Some((certificate, key)),
                _ => None,
            };
        let is_encrypted_elsewhere = client.insecure_allow_plaintext;
        let authorities = read("client.ca_file", client.ca_file)?;
        Ok(Reach { token, authorities, identity, is_encrypted_elsewhere })
    }

    /// The token of `client.token_file`, where the settings name one.
    pub(super) fn own_token(&self) -> Result<Option<String>, Failure> {
        let Some(file) = self.settings()?.client.token_file else { return Ok(None) };
        let file = if self.is_elsewhere { self.folder.join(file) } else { file };
        let token = super::input::small_file(&file)?.trim().to_owned();
        if token.is_empty() {
            return Err(Failure::configuration(format_args!("{}: holds no token", file.display())));
        }
        Ok(Some(token))
    }

    /// The settings for a command that listens to nobody.
    pub(super) fn settings(&self) -> Result<Settings, Failure> {
        // Whether the service may be exposed is a question for the one who starts it.
        let flags = |overrides: &mut Overrides| {
            for key in ["server.insecure_allow_anonymous", "server.insecure_allow_plaintext"] {
                overrides.set(key, "true", "of a command that serves nobody");
            }
        };
        let (mut settings, _) = self.service_settings(flags)?;
        if self.is_elsewhere {
            for path in settings.policy.path.iter_mut().chain(&mut settings.rules.paths) {
                *path = self.folder.join(&path);
            }
        }
        Ok(settings)
    }
}

/// The rules and policies that `settings` lead to.
pub(super) fn snapshot(settings: &Settings) -> Result<Snapshot, Failure> {
    policy::load(&crate::app::sources(settings), None).map_err(Failure::configuration)
}
