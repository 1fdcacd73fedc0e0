//! Where the calls of the interception hooks are answered: in this process, or by a server.

use std::future::Future;
use std::path::Path;

use super::check::check_with;
use super::context::{Context, OPERATOR};
use super::{Exit, Failure};
use crate::app;
use crate::config::Settings;
use crate::grpc::RequestError;
use crate::grpc::client::Client;
use crate::grpc::intercept::{Judge, Judged, judge_message, judge_params, judge_tool};
use crate::pb::v1;
use crate::policy::{self, Snapshot};
use crate::tools::ToolEngine;

/// Answers interception calls.
pub(super) enum Interception {
    /// This process.
    Here(Box<Here>),
    /// A running server.
    Server(Client),
}

/// The engines of this process.
pub(super) struct Here {
    settings: Settings,
    snapshot: Snapshot,
    engine: ToolEngine,
    runtime: tokio::runtime::Runtime,
}

impl Interception {
    /// The engines of this process, with the rules and policies that `context` leads to, or the policies at
    /// `policy_path`. What only some calls need is made when the first of them comes.
    pub(super) fn here(context: &Context, policy_path: Option<&Path>) -> Result<Self, Failure> {
        let mut settings = context.settings()?;
        if let Some(path) = policy_path {
            settings.policy.path = Some(path.to_owned());
        }
        let snapshot = policy::load_deferred(&app::sources(&settings)).map_err(Failure::configuration)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::internal)?;
        let engine = app::tool_engine(&settings);
        Ok(Self::Here(Box::new(Here { settings, snapshot, engine, runtime })))
    }

    /// The engines of a server.
    pub(super) fn over(client: Client) -> Self {
        Self::Server(client)
    }

    /// Judges a tool call.
    pub(super) fn tool(
        &self,
        request: v1::InterceptToolRequest,
    ) -> Result<v1::InterceptToolResponse, Failure> {
        match self {
            Self::Here(own) => own.wait(judge_tool(own.judge(), request)),
            Self::Server(client) => Ok(client.intercept_tool(request)?),
        }
    }

    /// Judges a message.
    pub(super) fn message(
        &self,
        request: v1::InterceptMessageRequest,
    ) -> Result<v1::InterceptMessageResponse, Failure> {
        match self {
            Self::Here(own) => own.wait(judge_message(own.judge(), request)),
            Self::Server(client) => Ok(client.intercept_message(request)?),
        }
    }

    /// Judges parameters.
    pub(super) fn params(
        &self,
        request: v1::InterceptParamsRequest,
    ) -> Result<v1::InterceptParamsResponse, Failure> {
        match self {
            Self::Here(own) => own.wait(judge_params(own.judge(), request)),
            Self::Server(client) => Ok(client.intercept_params(request)?),
        }
    }

    /// Checks messages.
    pub(super) fn check(
        &self,
        request: v1::CheckMessagesRequest,
    ) -> Result<v1::CheckMessagesResponse, Failure> {
        match self {
            Self::Here(own) => check_with(&own.settings, &own.snapshot, &own.runtime, request),
            Self::Server(client) => Ok(client.check(request)?),
        }
    }
}

impl Here {
    /// Who waits at the terminal waits as long as it takes: interceptors have deadlines of their own.
    fn judge(&self) -> Judge<'_> {
        Judge { engine: &self.engine, snapshot: &self.snapshot, roles: OPERATOR, deadline: None }
    }

    fn wait<T>(&self, answer: impl Future<Output = Result<Judged<T>, RequestError>>) -> Result<T, Failure> {
        let judged = self.runtime.block_on(answer).map_err(|error| failure_of(&error))?;
        Ok(judged.response)
    }
}

/// The exit code over gRPC is the same.
fn failure_of(error: &RequestError) -> Failure {
    let exit = match error {
        RequestError::Field { .. } | RequestError::TooLarge { .. } | RequestError::NotFound { .. } => {
            Exit::Data
        }
        RequestError::PolicyNotAllowed { .. } => Exit::Configuration,
        _ => Exit::Internal,
    };
    Failure { exit, message: error.to_string() }
}
