//! A real server for one test: the built binary on free ports of the loopback, stopped when the test ends.
//!
//! Whoever starts a process here also ends it: dropping a [`Server`] kills it. Everything it writes lies in a folder of
//! its own, and its environment is empty, so that tests run side by side and the same on every machine.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use portcullis::pb::v1;
use serde::Deserialize;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use v1::policy_decision_service_client::PolicyDecisionServiceClient;

/// A client of the decision service.
pub type Client = PolicyDecisionServiceClient<Channel>;

/// How long anything may take that takes milliseconds on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Larger than any request of a test: it is the server that refuses.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// A running server.
pub struct Server {
    child: Child,
    /// Address of the gRPC listener.
    pub grpc: SocketAddr,
    /// Address of the HTTP listener.
    pub http: SocketAddr,
    log: Arc<Log>,
    folder: Arc<TempDir>,
}

/// How a server is started.
#[derive(Clone)]
pub struct Setup {
    folder: Arc<TempDir>,
    listen: String,
}

/// Lines of standard error, as they come.
#[derive(Default)]
struct Log {
    state: Mutex<LogState>,
    changed: Condvar,
}

#[derive(Default)]
struct LogState {
    lines: Vec<String>,
    is_closed: bool,
}

/// The line that says where the server listens.
#[derive(Deserialize)]
struct Serving {
    message: String,
    grpc: SocketAddr,
    http: SocketAddr,
}

impl Setup {
    /// The defaults, in a new folder.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        Self::within(Arc::new(folder))
    }

    fn within(folder: Arc<TempDir>) -> Self {
        Self { folder, listen: "127.0.0.1:0".to_owned() }
    }

    /// The working folder of the server.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the settings file.
    pub fn settings(self, yaml: &str) -> Self {
        std::fs::write(self.folder().join("portcullis.yaml"), yaml).expect("settings can be written");
        self
    }

    /// Sets where gRPC listens.
    pub fn listen(mut self, address: &str) -> Self {
        address.clone_into(&mut self.listen);
        self
    }

    /// The command, with everything but its output set.
    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command
            .env_clear()
            .current_dir(self.folder())
            .args(["serve", "--listen", &self.listen, "--http-listen", "127.0.0.1:0", "--data-dir", "data"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Starts a server and waits until it says that it serves.
    pub fn start(self) -> Server {
        let mut child = self.command().spawn().expect("the binary runs");
        let log = Log::follow(&mut child);
        let mut server = Server {
            child,
            grpc: SocketAddr::from(([127, 0, 0, 1], 0)),
            http: SocketAddr::from(([127, 0, 0, 1], 0)),
            log,
            folder: self.folder,
        };
        let line = server.wait_for_log(|line| {
            serde_json::from_str::<Serving>(line).is_ok_and(|serving| serving.message == "serving")
        });
        let serving: Serving = serde_json::from_str(&line).expect("the line was read before");
        (server.grpc, server.http) = (serving.grpc, serving.http);
        server
    }

    /// Runs a server that is expected to refuse to start; answers its exit status and what it wrote.
    pub fn start_refused(self) -> (ExitStatus, String) {
        let mut child = self.command().spawn().expect("the binary runs");
        let log = Log::follow(&mut child);
        let status = wait(&mut child);
        log.wait_closed();
        (status, log.text())
    }
}

impl Server {
    /// A server with the defaults.
    pub fn start() -> Self {
        Setup::new().start()
    }

    /// A server with the defaults that tests share while at least one of them uses it. For tests that leave no trace.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = lock(&SHARED);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// The folder of data.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The file of the audit log.
    pub fn audit_file(&self) -> PathBuf {
        self.data().join("audit").join("audit.jsonl")
    }

    /// Where calls go, as a base for any client. Messages of any size may be sent and received.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::from_shared(format!("http://{}", self.grpc)).expect("an address makes an endpoint")
    }

    /// A connection.
    pub async fn channel(&self) -> Channel {
        self.endpoint().connect().await.expect("the server accepts connections")
    }

    /// A client of the decision service.
    pub async fn client(&self) -> Client {
        PolicyDecisionServiceClient::new(self.channel().await)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// The token that `serve` wrote for whoever may read its folder.
    pub fn admin_token(&self) -> String {
        let token = std::fs::read_to_string(self.data().join("admin-token"));
        token.expect("the admin token is written before the server serves").trim().to_owned()
    }

    /// GETs a path of the HTTP side: status and body.
    pub async fn get(&self, path: &str) -> (u16, String) {
        let answer = reqwest::get(format!("http://{}{path}", self.http)).await.expect("HTTP answers");
        let status = answer.status().as_u16();
        (status, answer.text().await.expect("the body is text"))
    }

    /// Sends a signal by name, as `kill` knows it.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &kill]).status().expect("a shell runs");
        assert!(status.success(), "`{kill}` failed");
    }

    /// Waits for the process to end.
    pub fn wait(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }

    /// Whether it has ended already.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the state of a child can be asked for").is_some()
    }

    /// Stops it and answers what another start in the same folder needs.
    pub fn into_setup(self) -> Setup {
        Setup::within(self.folder.clone())
    }

    /// The first log line that satisfies `is_wanted`, now or soon.
    pub fn wait_for_log(&self, is_wanted: impl Fn(&str) -> bool) -> String {
        self.log.wait_for(is_wanted)
    }

    /// Everything logged so far.
    pub fn log_text(&self) -> String {
        self.log.text()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(logs) = std::env::var_os("PORTCULLIS_TEST_LOGS") {
            self.keep(&Path::new(&logs).join(format!("it-{}", self.child.id())));
        }
    }
}

impl Server {
    /// Keeps log and audit files where they are searched for secrets. What cannot be kept is no fault of the test.
    fn keep(&self, kept: &Path) {
        let _ = std::fs::create_dir_all(kept);
        let _ = std::fs::write(kept.join("stderr.log"), self.log_text());
        for entry in std::fs::read_dir(self.data().join("audit")).into_iter().flatten().flatten() {
            let _ = std::fs::copy(entry.path(), kept.join(entry.file_name()));
        }
    }
}

impl Log {
    /// Reads standard error to its end, so that a full pipe never blocks the server.
    fn follow(child: &mut Child) -> Arc<Self> {
        let log = Arc::new(Self::default());
        let stderr = child.stderr.take().expect("standard error is piped");
        let writer = log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                lock(&writer.state).lines.push(line);
                writer.changed.notify_all();
            }
            lock(&writer.state).is_closed = true;
            writer.changed.notify_all();
        });
        log
    }

    fn wait_for(&self, is_wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        let mut state = lock(&self.state);
        let mut read = 0;
        loop {
            if let Some(line) = state.lines[read..].iter().find(|line| is_wanted(line)) {
                return line.clone();
            }
            read = state.lines.len();
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !state.is_closed, "not in the log:\n{}", state.lines.join("\n"));
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn wait_closed(&self) {
        let state = lock(&self.state);
        let waited = self.changed.wait_timeout_while(state, PATIENCE, |state| !state.is_closed);
        assert!(!waited.unwrap_or_else(PoisonError::into_inner).1.timed_out(), "standard error stays open");
    }

    fn text(&self) -> String {
        lock(&self.state).lines.join("\n")
    }
}

/// A test that failed while it held the lock leaves a state that is still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a process with a bound; kills it past that.
fn wait(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("the state of a child can be asked for") {
            return status;
        }
        if Instant::now() >= until {
            let _ = child.kill();
            panic!("the process did not end in time");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asks again and again until there is an answer, for at most `within`.
pub async fn eventually<T, F>(within: Duration, what: &str, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let until = Instant::now() + within;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < until, "not within {within:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A message of plain text.
pub fn message(role: &str, text: &str) -> v1::Message {
    let content = Some(v1::message::Content::Text(text.to_owned()));
    v1::Message { role: role.to_owned(), content, ..Default::default() }
}

/// A request with one message of a user.
pub fn user(text: &str) -> v1::CheckMessagesRequest {
    v1::CheckMessagesRequest { messages: vec![message("user", text)], ..Default::default() }
}
