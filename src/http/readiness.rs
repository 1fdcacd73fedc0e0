//! Whether the service should get requests, and why not.
//!
//! One writer (the start and stop of the process), any number of readers: `/readyz` asks, the gRPC health service
//! subscribes.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::sync::watch;

/// Why the service should get no requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotServing {
    /// For a person, such as `starting`, `draining` or `no usable policy`.
    pub reason: Cow<'static, str>,
}

/// A shared handle to the readiness of the process. Begins as not serving: `starting`.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<watch::Sender<Result<(), NotServing>>>);

impl Default for Readiness {
    fn default() -> Self {
        Self::new()
    }
}

impl Readiness {
    /// A process that is starting.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Err(NotServing { reason: "starting".into() }))))
    }

    /// From now on requests may come.
    pub fn set_serving(&self) {
        let _previous = self.0.send_replace(Ok(()));
    }

    /// From now on no requests should come, because of `reason`.
    pub fn set_not_serving(&self, reason: impl Into<Cow<'static, str>>) {
        let _previous = self.0.send_replace(Err(NotServing { reason: reason.into() }));
    }

    /// The state at this moment.
    ///
    /// # Errors
    /// Why the service should get no requests.
    pub fn get(&self) -> Result<(), NotServing> {
        self.0.borrow().clone()
    }

    /// Follows the changes.
    pub fn subscribe(&self) -> watch::Receiver<Result<(), NotServing>> {
        self.0.subscribe()
    }
}
