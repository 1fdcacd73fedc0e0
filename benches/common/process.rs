//! A server in a process of its own, and what the kernel says about it.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server in a process of its own.
pub struct Process {
    child: Child,
    /// Where it listens.
    pub address: String,
    /// Where its metrics are, if it has any.
    pub http: Option<String>,
}

impl Process {
    /// Starts it and waits until it says where it listens.
    pub fn start(command: &mut Command) -> Self {
        // Those of the tests are no settings, and an unknown one is an error.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PORTCULLIS_TEST_")) {
            command.env_remove(name);
        }
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let (address, http) = loop {
            let line = lines.next().expect("it says where it listens").expect("text");
            let line: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            if let Some(address) = line["grpc"].as_str() {
                break (address.to_owned(), line["http"].as_str().map(str::to_owned));
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address, http }
    }

    /// What it counts, in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let address = self.http.as_ref().expect("it has metrics");
        let mut connection = std::net::TcpStream::connect(address).expect("it listens");
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// CPU seconds the process used while `work` ran.
    pub async fn cpu_of(&self, work: impl Future<Output = ()>) -> f64 {
        let before = self.cpu();
        work.await;
        // What the kernel books at the next tick still belongs to this round.
        tokio::time::sleep(Duration::from_millis(30)).await;
        self.cpu() - before
    }

    /// CPU seconds the process has used.
    pub fn cpu(&self) -> f64 {
        cpu_of(self.child.id())
    }

    /// Resident memory.
    pub fn resident_mib(&self) -> f64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(Path::new(&path)).expect("it runs");
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("Linux tells");
        line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).expect("a number") / 1024.0
    }

    /// Ends it.
    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// CPU seconds that all threads of a process have used which still run.
pub fn cpu_of(process: u32) -> f64 {
    // Nanoseconds on a CPU, of all threads: finer than the clock ticks of `stat`.
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|text| text.split_whitespace().next().and_then(|n| n.parse::<f64>().ok()))
        .sum::<f64>()
        / 1e9
}
