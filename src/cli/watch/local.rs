//! The monitor of this process: the same rules, policies and judge that the service would use in this place.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::monitor::Answers;
use crate::app;
use crate::cli::Failure;
use crate::cli::context::Context;
use crate::grpc::Identity;
use crate::grpc::monitor_client::watch_here;
use crate::grpc::stream_monitor::Monitor;
use crate::monitor::{Plan, warm};
use crate::pb::v1;
use crate::policy::DEFAULT_POLICY;

/// How long the end waits until incidents and records are written.
const FLUSH: Duration = Duration::from_secs(5);

/// See the module.
pub(super) struct Local {
    monitor: Arc<Monitor>,
}

impl Local {
    /// Loads rules and policies, the latter from `policy_path` if given, and opens what keeps incidents. Needs a runtime.
    pub(super) async fn load(context: &Context, policy_path: Option<&Path>) -> Result<Self, Failure> {
        let mut settings = context.settings()?;
        if let Some(path) = policy_path {
            settings.policy.path = Some(path.to_owned());
        }
        // A command may be silent for as long as it likes.
        settings.streams.idle_timeout = None;
        let monitor = app::local_monitor(&settings).await.map_err(Failure::configuration)?;
        if monitor.live.snapshot().is_none() {
            let why = monitor.live.rejected().map(|rejected| rejected.problems.join("\n"));
            return Err(Failure::configuration(why.unwrap_or_else(|| "no usable policy".to_owned())));
        }
        Ok(Self { monitor })
    }

    /// Has everything in memory that the first KILL needs. Belongs before the command: beside it, it would be in the way.
    pub(super) async fn warm(&self) {
        let snapshot = self.monitor.live.snapshot();
        if let Some(plan) = snapshot.and_then(|snapshot| Plan::of(&snapshot, DEFAULT_POLICY)) {
            // On a thread that scans later, as what patterns remember is kept by thread.
            let _ = tokio::spawn(async move { warm(plan) }).await;
        }
    }

    /// Begins a session.
    pub(super) fn open(&self, requests: UnboundedReceiverStream<v1::StreamMonitorRequest>) -> Answers {
        let answers = watch_here(&self.monitor, Identity::operator(), requests);
        Box::pin(answers.map(|answer| answer.map_err(Failure::from)))
    }

    /// Waits until what was found is written.
    pub(super) async fn finish(&self) {
        if let Some(incidents) = &self.monitor.incidents {
            incidents.close(FLUSH).await;
        }
        let audit = self.monitor.audit.clone();
        let _ = tokio::task::spawn_blocking(move || audit.flush(FLUSH)).await;
    }
}
