//! The interceptors added by API: kept in the store, compiled into the registry, the same in every process.
//!
//! The store has the truth. Whatever changes it, here or in another process, leads to the same step: load all, compile
//! all, put all in force at once. Steps come one after the other, and one that loaded an older revision than what is in
//! force changes nothing.
//!
//! Invariant: a stored interceptor that cannot be compiled any more keeps its place and fails as its fail mode says. It
//! never vanishes, or a guard would be gone because of a changed setting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Mutex;

use super::convert;
use super::interceptor_convert::{self, hook_message};
use crate::decision::{FailMode, Hook, Mode};
use crate::pb::v1;
use crate::policy::{HandlerSpec, INTERCEPTOR_TIMEOUT_DEFAULT, InterceptorSpec, RemoteSpec};
use crate::store::{InterceptorStore, NewInterceptor, StoreError, StoredInterceptor, StoredInterceptors};
use crate::telemetry::Metrics;
use crate::tools::names::ToolNames;
use crate::tools::{ApiEntry, ToolEngine};

/// See the module.
pub struct AddedInterceptors {
    store: Arc<dyn InterceptorStore>,
    tools: Arc<ToolEngine>,
    /// What is in force.
    rows: ArcSwap<Rows>,
    /// Held while a newer state is put in force.
    stepping: Mutex<()>,
    /// Whether the last look into the store failed: the log is told once.
    is_failing: AtomicBool,
}

/// Rows of one revision.
#[derive(Default)]
struct Rows {
    /// `None` before the first load.
    revision: Option<i64>,
    rows: Vec<Row>,
}

/// One stored interceptor.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Order of registration.
    pub(super) sequence: i64,
    /// As answers tell it.
    pub(super) message: v1::Interceptor,
}

impl AddedInterceptors {
    /// Loads what is stored and puts it in force.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn load(store: Arc<dyn InterceptorStore>, tools: Arc<ToolEngine>) -> Result<Self, StoreError> {
        let rows = ArcSwap::from_pointee(Rows::default());
        let added = Self { store, tools, rows, stepping: Mutex::new(()), is_failing: AtomicBool::new(false) };
        added.refresh().await?;
        Ok(added)
    }

    /// Looks again and again whether another process changed something. Never ends.
    pub async fn follow(&self, interval: Duration, metrics: &Metrics) {
        let mut timer = tokio::time::interval(interval);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            timer.tick().await;
            let looked = self.look().await;
            metrics.set_store_up(looked.is_ok());
            match looked {
                Ok(()) => {
                    if self.is_failing.swap(false, Ordering::Relaxed) {
                        tracing::info!("the store can be read again");
                    }
                }
                Err(error) => {
                    if !self.is_failing.swap(true, Ordering::Relaxed) {
                        tracing::error!(%error, "the store cannot be read, added interceptors stay as they are");
                    }
                }
            }
        }
    }

    async fn look(&self) -> Result<(), StoreError> {
        let revision = self.store.revision().await?;
        if self.rows.load().revision != Some(revision) {
            self.refresh().await?;
        }
        Ok(())
    }

    /// Puts in force what the store has now.
    async fn refresh(&self) -> Result<(), StoreError> {
        let _stepping = self.stepping.lock().await;
        let stored = self.store.load().await?;
        if self.rows.load().revision.is_some_and(|in_force| in_force > stored.revision) {
            return Ok(());
        }
        self.put_in_force(stored);
        Ok(())
    }

    fn put_in_force(&self, stored: StoredInterceptors) {
        let mut entries = Vec::with_capacity(stored.interceptors.len());
        let mut rows = Vec::with_capacity(stored.interceptors.len());
        for one in &stored.interceptors {
            let row = row(one);
            match spec(&row.message) {
                Some(spec) => entries.push(ApiEntry { spec, tenant: one.tenant.clone() }),
                None => {
                    not_compiled(&one.id, "its definition is not one of this release");
                    entries.extend(
                        unreadable(&row.message).map(|spec| ApiEntry { spec, tenant: one.tenant.clone() }),
                    );
                }
            }
            rows.push(row);
        }
        self.rows.store(Arc::new(Rows { revision: Some(stored.revision), rows }));
        // Which tools exist is a question at the time of adding; a policy that knows fewer must not break a guard.
        for (id, problems) in self.tools.registry().replace_api(entries, &ToolNames::default()) {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            not_compiled(&id, &problems.join("; "));
        }
    }

    /// The row of an interceptor in force.
    pub(super) fn row(&self, tenant: &str, id: &str) -> Option<Row> {
        let rows = self.rows.load();
        rows.rows.iter().find(|row| row.message.tenant == tenant && row.message.id == id).cloned()
    }

    /// How many in force belong to the default tenant.
    pub fn of_default_tenant(&self) -> usize {
        self.rows.load().rows.iter().filter(|row| row.message.tenant.is_empty()).count()
    }

    /// Everything stored, as of now, whoever changed it.
    pub(super) async fn stored(&self) -> Result<Vec<Row>, StoreError> {
        Ok(self.store.load().await?.interceptors.iter().map(row).collect())
    }

    /// Keeps one and puts it in force.
    pub(super) async fn add(
        &self,
        message: &v1::Interceptor,
        tenant: &str,
        creator: &str,
    ) -> Result<v1::Interceptor, StoreError> {
        let new = NewInterceptor {
            tenant: tenant.to_owned(),
            id: message.id.clone(),
            creator: creator.to_owned(),
            created: jiff::Timestamp::now(),
            definition: definition(message),
        };
        let stored = self.store.add(new).await?;
        self.refresh().await?;
        Ok(row(&stored).message)
    }

    /// Removes those of a tenant and puts the rest in force; answers those that were there.
    pub(super) async fn remove(
        &self,
        tenant: &str,
        ids: Vec<String>,
    ) -> Result<Vec<v1::Interceptor>, StoreError> {
        let removed = self.store.remove(tenant.to_owned(), ids).await?;
        self.refresh().await?;
        Ok(removed.iter().map(|stored| row(stored).message).collect())
    }
}

/// What is kept: everything that the caller said, and nothing that the server adds.
fn definition(message: &v1::Interceptor) -> String {
    let own = v1::Interceptor {
        source: 0,
        tenant: String::new(),
        creator: String::new(),
        create_time: None,
        ..message.clone()
    };
    // Cannot fail: the message has neither maps with keys that are no strings nor values out of range.
    serde_json::to_string(&own).unwrap_or_default()
}

/// The message of a stored interceptor, with the server's fields.
fn row(stored: &StoredInterceptor) -> Row {
    let own: v1::Interceptor = serde_json::from_str(&stored.definition).unwrap_or_default();
    let message = v1::Interceptor {
        id: stored.id.clone(),
        source: v1::InterceptorSource::Api.into(),
        tenant: stored.tenant.clone(),
        creator: stored.creator.clone(),
        create_time: Some(convert::timestamp(stored.created)),
        ..own
    };
    Row { sequence: stored.sequence, message }
}

fn spec(message: &v1::Interceptor) -> Option<InterceptorSpec> {
    interceptor_convert::spec(message, true).ok()
}

/// In place of a definition that cannot be read, on its hook or, when even that is not known, on all of them. Without an
/// address it compiles nowhere, so it fails, closed.
fn unreadable(message: &v1::Interceptor) -> impl Iterator<Item = InterceptorSpec> + use<> {
    let known = message.hook;
    let id = message.id.clone();
    Hook::ALL.into_iter().filter(move |hook| known == 0 || i32::from(hook_message(*hook)) == known).map(
        move |hook| InterceptorSpec {
            id: id.clone(),
            hook,
            priority: 0,
            tools: String::new(),
            agents: String::new(),
            description: String::new(),
            mode: Mode::Enforce,
            fail: FailMode::Closed,
            timeout: INTERCEPTOR_TIMEOUT_DEFAULT,
            handler: HandlerSpec::Webhook(RemoteSpec::default()),
            allow_unknown_tools: true,
        },
    )
}

fn not_compiled(id: &str, problems: &str) {
    tracing::error!(
        interceptor = id,
        problems,
        "a stored interceptor cannot be compiled any more; it fails at every call, as its fail mode says"
    );
}
