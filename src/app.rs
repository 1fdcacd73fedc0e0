//! The composition root: settings to a running service, and its orderly end.
//!
//! Order of a start: logging, admin token, listeners, store, rules and policies, audit log, then SERVING. Order of a stop:
//! readiness and health off, no new calls, calls in flight finish, audit and spans written out.

mod bundles;
mod models;

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use uuid::Uuid;

use crate::audit::{self, AuditLog, Recent};
use crate::bundles::BundlePreparer;
use crate::bundles::service::Submissions;
use crate::bundles::worker::Worker;
use crate::config::{ConfigProblems, Settings};
use crate::console::Console;
use crate::detect;
use crate::extension::Extensions;
use crate::grpc::stream_monitor::Monitor;
use crate::grpc::{
    self, AddedInterceptors, AuditTrail, Authenticator, Health, KeptIncidents, LocalCalls, Shared, Tls,
};
use crate::http::{self, Adapters, AllowedHosts, AppState, Readiness};
use crate::judge::Unobserved;
use crate::messages::{MessageEngine, Plugin};
use crate::monitor::{self, MonitorPreparer, Plan};
use crate::policy::{DEFAULT_POLICY, Live, Reload, Sources};
use crate::setting::system_problem;
use crate::store::{self, IncidentStore, IncidentWriter, RuleCounter, StoreError, WriterHooks};
use crate::telemetry::{
    self, AuditDropped, IncidentsUnwritten, LoggingError, Metrics, MetricsHandle, PolicyLoaded,
    UPKEEP_INTERVAL,
};
use crate::tools::{Registry, RemoteFactory, ToolEngine, ToolPreparer};

/// How long a stop waits for the last audit records.
const AUDIT_FLUSH: Duration = Duration::from_secs(5);

/// How long a stop waits for sessions of the monitor whose clients are gone.
const SESSIONS_END: Duration = Duration::from_secs(2);

/// How long a stop waits until reviews under way were given back.
const REVIEWS_END: Duration = Duration::from_secs(5);

/// How long a stop waits until incidents are written.
const INCIDENTS_FLUSH: Duration = Duration::from_secs(5);

/// Why the service could not start or did not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Logging could not be set up.
    #[error(transparent)]
    Logging(#[from] LoggingError),
    /// The admin token could not be read or written.
    #[error("admin token `{path}` in data_dir: {}", system_problem(.cause))]
    AdminToken {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The folder of everything the service writes cannot be made.
    #[error("data_dir `{path}`: {}", system_problem(.cause))]
    DataFolder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The certificates of the listener cannot be used.
    #[error(transparent)]
    Tls(#[from] grpc::TlsError),
    /// Callers could not be told apart.
    #[error(transparent)]
    Auth(#[from] grpc::AuthError),
    /// The audit log could not be opened.
    #[error(transparent)]
    Audit(#[from] audit::OpenError),
    /// What outlives the process could not be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The place where bytes of bundles are kept cannot be used.
    #[error(transparent)]
    Bytes(#[from] store::BytesError),
    /// The folder for uploads on their way in cannot be made.
    #[error("uploads `{path}`: {cause}; the folder must be one that this user may write")]
    Uploads {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// What the settings name cannot be used.
    #[error(transparent)]
    Settings(#[from] ConfigProblems),
    /// A listener could not be opened, or gRPC failed.
    #[error(transparent)]
    Grpc(#[from] grpc::ServeError),
    /// The HTTP listener could not be opened.
    #[error("http.listen: cannot listen on {address}: {}", system_problem(.cause))]
    Http {
        /// The address.
        address: std::net::SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// The threads that decide cannot be started.
    #[error("threads: {0}; the process may have too few")]
    Threads(io::Error),
    /// The signals of the process cannot be listened to.
    #[error("signals: {0}")]
    Signals(io::Error),
}

/// Runs the service until SIGTERM or SIGINT.
///
/// # Errors
/// See [`ServeError`]. A policy that cannot be loaded is none: the service then runs, NOT_SERVING, until it can.
pub async fn serve(settings: Settings) -> Result<(), ServeError> {
    let logging = telemetry::init(&settings.log, &settings.tracing)?;
    let (metrics, handle) = telemetry::install();
    let result = run(&settings, metrics, handle).await;
    let _ = tokio::task::spawn_blocking(move || logging.shutdown()).await;
    result
}

async fn run(settings: &Settings, metrics: Arc<Metrics>, handle: MetricsHandle) -> Result<(), ServeError> {
    // Where callers have credentials, the admin token opens nothing and is not written.
    let token = if Authenticator::takes_admin_token(settings.auth.mode) {
        let path = settings.data_dir.join("admin-token");
        admin_token(&path).map_err(|cause| ServeError::AdminToken { path, cause })?
    } else {
        std::fs::create_dir_all(&settings.data_dir)
            .map_err(|cause| ServeError::DataFolder { path: settings.data_dir.clone(), cause })?;
        String::new()
    };
    let tls = Tls::start(&settings.server.tls, &metrics)?;
    let auth = Authenticator::start(&settings.auth, &settings.rate_limit, &token)?;
    let grpc = grpc::bind(settings.server.listen).await?;
    let http_failed = |cause| ServeError::Http { address: settings.http.listen, cause };
    let http_listener = TcpListener::bind(settings.http.listen).await.map_err(http_failed)?;
    let http_address = http_listener.local_addr().map_err(http_failed)?;

    let observer = models::observer(metrics.clone());
    let judge = models::judge(settings, observer.clone())?;
    models::announce(settings, judge.as_ref());
    let plugins = models::plugins(settings, &observer)?;
    models::greet(&plugins);

    // Tables that the first text in another script would otherwise wait for.
    crate::text::warm_up();
    // Policies and API share the clients of interceptors that live elsewhere, with their connections and breakers.
    let remotes = remotes(settings);
    let tools = Arc::new(ToolEngine::new(
        Registry::new(Some(remotes.clone()))
            .with_tenants_apart(!Authenticator::takes_admin_token(settings.auth.mode)),
    ));
    let stores = store::open(&settings.store, &settings.store_path()).await?;
    let interceptors = AddedInterceptors::load(stores.interceptors.clone(), tools.clone()).await?;
    // It was read just now, and is looked at again only after a while.
    metrics.set_store_up(true);
    let alone = interceptors.of_default_tenant();
    if alone > 0 && !Authenticator::takes_admin_token(settings.auth.mode) {
        // They may have been added while there was one tenant for all.
        tracing::warn!(interceptors = alone, "interceptors of the default tenant judge its own calls alone");
    }
    let live = Arc::new(Live::start(sources_over(settings, remotes)));
    let submissions = bundles::submissions(settings, &stores, live.clone(), metrics.clone())?;
    bundles::announce(settings, &submissions);
    let audit = Arc::new(open_audit(settings, &metrics)?);
    let incidents = stores.incidents.clone();
    let writer = Arc::new(incident_writer(incidents.clone(), &metrics));
    let monitor = Arc::new(Monitor::new(
        settings.streams.clone(),
        live.clone(),
        metrics.clone(),
        audit.clone(),
        Some(writer.clone()),
        judge,
        settings.server.request_bytes_max,
    ));
    let has_console = settings.serves_console();
    let counts = Arc::new(RuleCounter::new(stores.rule_counts.clone(), has_console));
    let recent = Arc::new(Recent::new(if has_console { settings.console.decisions_max } else { 0 }));
    if recent.is_on() {
        let (recent, live) = (recent.clone(), live.clone());
        submissions.on_verdict(move |verdict| grpc::remember_verdict(&recent, &live, verdict));
    }
    let shared = Arc::new(Shared {
        recent: recent.clone(),
        counts: counts.clone(),
        engine: message_engine_with(settings, plugins),
        tools,
        interceptors,
        incidents: KeptIncidents { store: incidents.clone(), writer: Some(writer.clone()) },
        submissions: submissions.clone(),
        events: AuditTrail(stores.audit.clone()),
        uploads: bundles::uploads(settings),
        draining: watch::Sender::new(false),
        monitor: monitor.clone(),
        live,
        audit,
        metrics: metrics.clone(),
        auth,
        tls,
        request_bytes_max: settings.server.request_bytes_max,
        traces: settings.tracing.otlp_endpoint.is_some(),
        in_flight: Arc::new(tokio::sync::Semaphore::new(settings.server.concurrency_max)),
        work: grpc::Work::start(settings.server.queue_wait_max, metrics.long_decisions())
            .map_err(ServeError::Threads)?,
    });
    drop(token);

    let readiness = Readiness::new();
    let (stop, stopped) = watch::channel(false);
    let (health_sender, health) = tokio::sync::oneshot::channel();
    let console = has_console.then(|| Console::new(LocalCalls::new(&shared), &settings.console));
    let router = http::router_with(
        AppState { metrics: handle.clone(), readiness: readiness.clone() },
        AllowedHosts::new(&settings.http.allowed_hosts, http_address),
        settings.http.adapters.is_any_on().then(|| Adapters {
            calls: LocalCalls::new(&shared),
            enabled: settings.http.adapters,
            request_bytes_max: settings.server.request_bytes_max,
        }),
        console.as_ref(),
    );
    // Probes and scrapers are answered until the last call is: they are how others learn of the drain.
    let (http_stop, http_stopped) = watch::channel(false);
    let http = tokio::spawn(http::serve(http_listener, router, until(http_stopped)));
    tokio::spawn(keep_up(handle));
    let following = tokio::spawn({
        let (shared, interval) = (shared.clone(), settings.store.poll_interval);
        async move { shared.interceptors.follow(interval, &shared.metrics).await }
    });
    // The first keys are had before the first call; when they cannot be, calls are refused until they are.
    shared.auth.fetch_keys(&metrics).await;
    let guarding =
        [tokio::spawn(shared.clone().follow_credentials()), tokio::spawn(shared.clone().follow_keys())];
    let counting = tokio::spawn({
        let counts = counts.clone();
        async move { counts.follow().await }
    });
    let purging = tokio::spawn(purge_incidents(incidents, settings.incidents.retention_days));
    let worker = Worker::start(&submissions);
    let address = grpc.address();
    let background = Background {
        shared: shared.clone(),
        readiness: readiness.clone(),
        poll: settings.policy.poll_interval,
        stop,
        addresses: (address, http_address),
    };
    let signals = Signals::listen().map_err(ServeError::Signals)?;
    let background = tokio::spawn(background.run(health, signals));
    let on_start = move |health: Health| {
        let _ = health_sender.send(health);
    };
    let served = grpc.serve(&settings.server, shared.clone(), on_start, until(stopped)).await;
    background.abort();
    following.abort();
    guarding.iter().for_each(|task| task.abort());
    purging.abort();
    counting.abort();
    if let Err(error) = counts.flush().await {
        tracing::warn!(%error, "the last counts of rules could not be written");
    }
    worker.stop(REVIEWS_END).await;
    // What clients were told of belongs on the disk.
    monitor.ended(SESSIONS_END).await;
    writer.close(INCIDENTS_FLUSH).await;
    http_stop.send_replace(true);
    let _ = http.await;
    // The last records and what the writer says of them belong before the end of the process.
    let written = tokio::task::spawn_blocking(move || shared.audit.flush(AUDIT_FLUSH)).await;
    tracing::info!(audit_written = written.unwrap_or(false), "stopped");
    Ok(served?)
}

/// The message engine as configured, whose questions to models nobody counts.
///
/// # Errors
/// What the settings name and cannot be used.
pub fn message_engine(settings: &Settings) -> Result<MessageEngine, ConfigProblems> {
    let unobserved: Arc<dyn crate::judge::Observer> = Arc::new(Unobserved);
    Ok(message_engine_with(settings, models::plugins(settings, &unobserved)?))
}

fn message_engine_with(settings: &Settings, plugins: Vec<Arc<dyn Plugin>>) -> MessageEngine {
    let enabled = settings.plugins.enabled_ids();
    let disabled = crate::detect::BUILTIN_PLUGINS
        .iter()
        .map(|(id, _)| *id)
        .filter(|id| !enabled.contains(id))
        .map(str::to_owned)
        .collect();
    MessageEngine::new(settings.messages.clone(), &settings.cache, plugins, disabled)
}

/// The tool engine, without interceptors of the API.
pub fn tool_engine(_: &Settings) -> ToolEngine {
    ToolEngine::new(Registry::new(None))
}

/// Makes the clients of interceptors that live elsewhere. Nothing is connected yet.
fn remotes(settings: &Settings) -> Arc<dyn RemoteFactory> {
    Arc::new(Extensions::new(&settings.extensions))
}

/// Where rules and policies come from.
pub fn sources(settings: &Settings) -> Sources {
    sources_over(settings, remotes(settings))
}

fn sources_over(settings: &Settings, remotes: Arc<dyn RemoteFactory>) -> Sources {
    Sources {
        policies: settings.policy.path.clone(),
        rules: settings.rules.paths.clone(),
        plugins: models::plugin_names(settings),
        prepare: vec![
            Arc::new(ToolPreparer::new(Some(remotes))),
            Arc::new(MonitorPreparer),
            Arc::new(BundlePreparer),
        ],
    }
}

fn open_audit(settings: &Settings, metrics: &Arc<Metrics>) -> Result<AuditLog, audit::OpenError> {
    let dropped = metrics.clone();
    let hooks = audit::Hooks {
        records: metrics.audit_records(),
        sampled_out: metrics.audit_sampled_out(),
        on_dropped: Box::new(move |count, cause| AuditDropped { count, cause }.emit(&dropped)),
    };
    let collector =
        |endpoint: &str| grpc::OtlpSink::new(endpoint).map(|sink| Box::new(sink) as Box<dyn audit::Sink>);
    AuditLog::open(&settings.audit, &settings.audit_path(), collector, hooks)
}

/// Keeps incidents behind the back of those who report them. Needs the runtime of tokio.
fn incident_writer(store: Arc<dyn IncidentStore>, metrics: &Arc<Metrics>) -> IncidentWriter {
    let (failed, lost) = (metrics.clone(), metrics.clone());
    let hooks = WriterHooks {
        on_failed: Box::new(move |cause| IncidentsUnwritten { lost: 0, cause }.emit(&failed)),
        on_lost: Box::new(move |count, cause| IncidentsUnwritten { lost: count, cause }.emit(&lost)),
    };
    IncidentWriter::start(store, hooks)
}

/// A monitor in this process, for commands that watch without a server: incidents go to the same store as those of the
/// service in this place, records to a file of their own beside its audit log, which two processes must not share.
///
/// # Errors
/// The audit log or the store cannot be opened, or the model of the settings cannot be used. A policy that cannot be
/// loaded is none: attaching then fails.
pub async fn local_monitor(settings: &Settings) -> Result<Arc<Monitor>, ServeError> {
    let (metrics, _) = telemetry::install();
    let stores = store::open(&settings.store, &settings.store_path()).await?;
    let mut settings = settings.clone();
    settings.audit.path = Some(settings.audit_path().with_file_name("watch.jsonl"));
    // Several commands may write this file at a time, and a chain has one end.
    settings.audit.chain = false;
    match settings.audit.sink {
        // That is where the output of the watched command goes.
        audit::SinkKind::Stdout => settings.audit.sink = audit::SinkKind::None,
        // A command ends when its child does, and must not wait for a collector then.
        audit::SinkKind::Otlp => settings.audit.sink = audit::SinkKind::File,
        audit::SinkKind::File | audit::SinkKind::None => {}
    }
    let audit = Arc::new(open_audit(&settings, &metrics)?);
    let writer = Arc::new(incident_writer(stores.incidents, &metrics));
    let judge = models::judge(&settings, models::observer(metrics.clone()))?;
    Ok(Arc::new(Monitor::new(
        settings.streams.clone(),
        Arc::new(Live::start(sources(&settings))),
        metrics,
        audit,
        Some(writer),
        judge,
        settings.server.request_bytes_max,
    )))
}

/// The submissions of this place, for commands that ask without a server. Nothing runs by itself: no review is done.
///
/// # Errors
/// The store, the place of the bytes or the model of the settings cannot be used.
pub async fn local_submissions(settings: &Settings) -> Result<(Submissions, AuditTrail), ServeError> {
    let (metrics, _) = telemetry::install();
    let stores = store::open(&settings.store, &settings.store_path()).await?;
    let live = Arc::new(Live::start(sources(settings)));
    let submissions = bundles::submissions(settings, &stores, live, metrics)?;
    Ok((submissions, AuditTrail(stores.audit)))
}

/// Deletes incidents older than the settings keep them, now and once a day. Never ends.
async fn purge_incidents(store: Arc<dyn IncidentStore>, retention_days: usize) {
    const DAY: Duration = Duration::from_secs(24 * 3_600);
    let mut timer = tokio::time::interval(DAY);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let retention = DAY * u32::try_from(retention_days).unwrap_or(u32::MAX);
    loop {
        timer.tick().await;
        // Before the beginning of time nothing is old.
        let Ok(before) = Timestamp::now().checked_sub(retention) else { continue };
        match store.purge(before).await {
            Ok(0) => {}
            Ok(purged) => tracing::info!(purged, retention_days, "old incidents deleted"),
            Err(error) => tracing::error!(%error, "old incidents could not be deleted; tried again in a day"),
        }
    }
}

/// Reads the admin token, or makes one, in a file that only its owner can read.
fn admin_token(path: &Path) -> io::Result<String> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
            let written = file.write_all(format!("{token}\n").as_bytes()).and_then(|()| file.sync_all());
            if let Err(error) = written {
                // Half a token would keep the next start from making a whole one.
                let _ = std::fs::remove_file(path);
                return Err(error);
            }
            Ok(token)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut file = OpenOptions::new().read(true).open(path)?;
            if file.metadata()?.permissions().mode() & 0o077 != 0 {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "others can read it; run `chmod 600` on it, or delete it to have a new one made",
                ));
            }
            let mut token = String::new();
            file.read_to_string(&mut token)?;
            let token = token.trim().to_owned();
            if token.len() < 32 {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "is shorter than 32 characters; delete it to have a new one made",
                ));
            }
            Ok(token)
        }
        Err(error) => Err(error),
    }
}

async fn until(mut stopped: watch::Receiver<bool>) {
    // An error means that the sender is gone, which only a stop does.
    let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
}

async fn keep_up(handle: MetricsHandle) {
    let mut timer = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        timer.tick().await;
        handle.run_upkeep();
    }
}

/// The signals the service obeys.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

/// What goes on beside the calls: reloads, signals, readiness.
struct Background {
    shared: Arc<Shared>,
    readiness: Readiness,
    poll: Duration,
    stop: watch::Sender<bool>,
    addresses: (std::net::SocketAddr, std::net::SocketAddr),
}

impl Background {
    async fn run(self, health: tokio::sync::oneshot::Receiver<Health>, mut signals: Signals) {
        let Ok(health) = health.await else { return };
        self.announce(&health).await;
        let mut poll = tokio::time::interval(self.poll);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = poll.tick() => {
                    self.reload(&health, false).await;
                    // Keys of the issuer may have come meanwhile.
                    if self.readiness.get().is_err() {
                        self.show_readiness(&health).await;
                    }
                }
                _ = signals.hangup.recv() => self.reload(&health, true).await,
                _ = signals.terminate.recv() => break,
                _ = signals.interrupt.recv() => break,
            }
        }
        tracing::info!("stopping");
        self.readiness.set_not_serving("draining");
        health.set_serving(false).await;
        self.shared.monitor.drain();
        self.shared.draining.send_replace(true);
        self.stop.send_replace(true);
    }

    /// Says what was loaded at the start, and where the service listens.
    async fn announce(&self, health: &Health) {
        match self.shared.live.snapshot() {
            Some(snapshot) => {
                self.shared.declare(&snapshot);
                self.shared.auth.warn_of_missing(snapshot.policies());
                PolicyLoaded { revision: snapshot.revision() }.emit(&self.shared.metrics);
                self.warm();
            }
            None => {
                if let Some(rejected) = self.shared.live.rejected() {
                    self.shared.tell(&Reload::Rejected(rejected));
                }
            }
        }
        self.show_readiness(health).await;
        let (grpc, http) = self.addresses;
        tracing::info!(%grpc, %http, version = env!("CARGO_PKG_VERSION"), "serving");
    }

    /// Has what is built when it is first needed built beside the calls, not by the first attack.
    fn warm(&self) {
        let Some(snapshot) = self.shared.live.snapshot() else { return };
        detect::warm_beside(snapshot.shared_scanner().clone());
        if let Some(plan) = Plan::of(&snapshot, DEFAULT_POLICY) {
            monitor::warm_beside(plan);
        }
    }

    async fn reload(&self, health: &Health, at_once: bool) {
        let shared = self.shared.clone();
        let before = shared.revision();
        // Rules are compiled and files are read: not on a worker that answers calls.
        let reload = tokio::task::spawn_blocking(move || {
            let reload = if at_once { shared.live.reload() } else { shared.live.reload_if_changed() };
            shared.tell(&reload);
            reload
        })
        .await;
        match reload {
            Ok(Reload::Unchanged) => {}
            Ok(reload @ (Reload::Replaced(_) | Reload::Rejected(_))) => {
                if matches!(reload, Reload::Replaced(_)) {
                    self.warm();
                }
                // A store that does not answer holds up neither calls nor the next look.
                let shared = self.shared.clone();
                tokio::spawn(async move { shared.record_reload(None, &before, &reload).await });
                self.show_readiness(health).await;
            }
            Err(error) => tracing::error!(%error, "a reload panicked; the last good policy stays in force"),
        }
    }

    async fn show_readiness(&self, health: &Health) {
        let missing = match self.shared.live.snapshot() {
            None => Some("no usable policy"),
            Some(_) if !self.shared.auth.is_ready() => Some("no keys of the issuer yet"),
            Some(_) => None,
        };
        match missing {
            None => self.readiness.set_serving(),
            Some(reason) => self.readiness.set_not_serving(reason),
        }
        health.set_serving(missing.is_none()).await;
    }
}
