//! How fast one core scans the output of a process, beside a look for one byte.
//!
//! What it is for: the promise that watching an agent costs next to nothing while nothing happens. The log is made of what
//! builds write, plain, with line ends of a terminal, and with colours. Run: `cargo bench --bench monitor`. Rounds are
//! interleaved, medians printed.

mod common;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use common::median;
use portcullis::decision::OutputStream;
use portcullis::monitor::{self, Attachment, Effect, Event, Ids, Limits, Plan, Session};

/// Rounds of each rate.
const ROUNDS: usize = 11;
/// Size of the log, in bytes.
const LOG_BYTES: usize = 4 << 20;
/// Size of a chunk, in bytes.
const CHUNK_BYTES: usize = 16 * 1024;

fn main() {
    let settings = portcullis::config::Settings::default();
    let snapshot =
        portcullis::policy::load(&portcullis::app::sources(&settings), None).expect("the defaults load");
    let plan = Plan::of(&snapshot, snapshot.policies().default_policy().name()).expect("rules about streams");
    println!(
        "{:<22} {:>14} {:>14} {:>16}",
        "build log, one core", "memchr MB/s", "scan MB/s", "memchr / scan"
    );
    for (name, log) in [
        ("plain", build_log("\n", "")),
        ("CRLF", build_log("\r\n", "")),
        ("colours", build_log("\n", "\x1b[32m")),
    ] {
        let (mut floors, mut scans) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let started = Instant::now();
            black_box(memchr::memchr_iter(0x01, black_box(&log)).count());
            floors.push(started.elapsed().as_secs_f64());
            let started = Instant::now();
            let mut effects = Vec::new();
            let attachment = Attachment { session_id: "bench".into(), ..Attachment::default() };
            let mut session = Session::attach(
                attachment,
                plan.clone(),
                Limits::default(),
                Box::new(Counted(0)),
                &mut effects,
            );
            for chunk in log.chunks(CHUNK_BYTES) {
                let event = Event::Chunk { stream: OutputStream::Stdout, data: chunk, seq: 0 };
                session.on(event, monitor::now(), &mut effects);
            }
            session.on(Event::Closed, monitor::now(), &mut effects);
            scans.push(started.elapsed().as_secs_f64());
            assert!(!effects.iter().any(|effect| matches!(effect, Effect::Incident(_))), "nothing is in it");
        }
        let [floor, scan] = [floors, scans].map(|times| log.len() as f64 / 1e6 / median(times));
        println!("{name:<22} {floor:>14.0} {scan:>14.0} {:>16.1}", floor / scan);
    }
}

/// Four megabytes of what builds write.
fn build_log(end: &str, colour: &str) -> Vec<u8> {
    let reset = if colour.is_empty() { "" } else { "\x1b[0m" };
    let mut log = String::new();
    for n in 0.. {
        let line = match n % 8 {
            0 => format!(
                "   {colour}Compiling{reset} crate-{} v{}.{}.0 (/build/src/crate-{n})",
                n % 97,
                n % 5,
                n % 11
            ),
            1 => format!(
                "2026-11-22T10:{:02}:{:02}.{:03}Z INFO step {n} finished in {} ms",
                n / 60 % 60,
                n % 60,
                n % 1000,
                n % 333
            ),
            2 => format!(
                "npm http fetch GET 200 https://registry.example.org/package-{} {}ms (cache hit)",
                n % 301,
                n % 77
            ),
            3 => format!("test module_{}::case_{} ... {colour}ok{reset}", n % 41, n % 1999),
            4 => format!("[{:>3}%] Building CXX object src/CMakeFiles/app.dir/file_{n}.cpp.o", n % 101),
            5 => format!(
                "{colour}warning{reset}: unused variable: `value_{n}` at src/main_{}.rs:{}:{}",
                n % 13,
                n % 700,
                n % 80
            ),
            6 => format!(
                "Downloading layer sha256:{:08x}{:08x} ({} of {} bytes)",
                n * 7919,
                n * 104_729,
                n % 4096,
                4096
            ),
            _ => format!("make[{}]: Entering directory '/build/sub/dir_{}'", n % 4, n % 50),
        };
        log.push_str(&line);
        log.push_str(end);
        if log.len() > LOG_BYTES {
            break;
        }
    }
    log.into_bytes()
}

/// Ids that nobody looks up.
struct Counted(u64);

impl Ids for Counted {
    fn next(&mut self) -> Arc<str> {
        self.0 += 1;
        self.0.to_string().into()
    }
}
