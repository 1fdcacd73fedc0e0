//! Load: what the server does near saturation, far beyond it, and after.
//!
//! A server in a process of its own is called with a mix of every kind of call, while processes are watched, bundles are
//! uploaded, and its health and its metrics are asked for, all over loopback:
//!
//! 1. **Saturation** is searched: a few callers who call again as soon as they were answered, then more; the most
//!    decisions a second that came of any of them.
//! 2. **Steady**: 70 % of that, at random moments whether or not earlier calls were answered. Latency as the server counts
//!    it and as the client sees it, errors, processor, memory.
//! 3. **Overload**: five times saturation. Decisions must keep their latency, everything else must be refused at once with
//!    UNAVAILABLE or RESOURCE_EXHAUSTED and be counted, probes must be answered, memory must not grow without bound.
//! 4. **Recovery**: the steady load again; how long until it is served as before.
//!
//! Thresholds stand in `thresholds.toml`; one line tells of each, and the exit code is 1 when one does not hold. Texts are
//! not remembered (`cache.enabled=false`), as if each were new.
//!
//! Run: `cargo bench --bench load`, on a machine that does nothing else. The client has one processor, the server the
//! others; on a machine with a single one they share it, and nothing can be learned. `-- --short` plays a short form with bounds that hold for a build without
//! optimisation too; `-- --server PATH` names another program than the one built with this.

mod beside;
mod client;
#[path = "../common/mod.rs"]
mod common;
mod figures;
mod thresholds;
mod traffic;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use beside::{Beside, Noted, scrape};
use client::{Answers, Client};
use common::process::Process;
use common::processors::Processors;
use figures::{Percentiles, Scrape, percentile};
use thresholds::Form;
use tokio::time::sleep;

/// How often memory is looked at.
const SAMPLE_PAUSE: Duration = Duration::from_millis(100);
/// What recovery is judged by.
const WINDOW: Duration = Duration::from_millis(250);
/// So many good windows in a row are recovery.
const GOOD_WINDOWS: usize = 4;
/// How much slower than in the steady phase a good window may be.
const GOOD_RATIO: f64 = 3.0;

fn main() -> ExitCode {
    let (mut form, mut path) = ("full", PathBuf::from(env!("CARGO_BIN_EXE_portcullis")));
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--short" => form = "short",
            "--server" => path = arguments.next().expect("a path after --server").into(),
            // What `cargo bench` says to every benchmark.
            "--bench" => {}
            other => panic!("unknown argument {other}; known are --short and --server PATH"),
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let all_hold = tokio::task::LocalSet::new().block_on(&runtime, play(&Form::named(form), path));
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn play(form: &Form, path: PathBuf) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        Process::start(Command::new(path).current_dir(folder.path()).args([
            "serve",
            "--listen=127.0.0.1:0",
            "--http-listen=127.0.0.1:0",
            "--set=cache.enabled=false",
            &format!("--set=server.queue_wait_max={}", form.play.queue_wait_max),
        ]))
    };
    let processors = Processors::parted();
    let mut server = match &processors {
        Some(processors) => processors.start(start),
        None => start(),
    };
    let grpc = server.address.clone();
    let client = Client::connect(&grpc, traffic::kinds(&grpc)).await;
    let beside = Beside::start(&grpc, server.http.as_ref().expect("it has metrics")).await;
    let of_server = processors.map_or(1, |processors| processors.of_server());
    let stage = Stage { server: &server, client: &client, beside: &beside, processors: f64::from(of_server) };
    let figures = stage.play(form).await;
    drop(beside);
    server.stop();
    println!();
    form.judge(&figures)
}

/// Who plays.
struct Stage<'a> {
    server: &'a Process,
    client: &'a Client,
    beside: &'a Beside,
    /// How many the server has.
    processors: f64,
}

/// What one phase came to.
struct Phase {
    answers: Answers,
    noted: Noted,
    /// What the server counted meanwhile.
    counted: Scrape,
    /// As the server counts: decisions.
    in_server: Percentiles,
    /// As the client sees it: decisions.
    accepted: Percentiles,
    /// As the client sees it: refusals.
    refused: Percentiles,
    /// Resident memory at the beginning, and at most.
    resident: (f64, f64),
}

impl Phase {
    fn accepted_per_second(&self) -> f64 {
        self.answers.count(client::Answer::is_accepted) as f64 / self.answers.seconds
    }

    fn offered_per_second(&self) -> f64 {
        (self.answers.late.len() - self.answers.unsent) as f64 / self.answers.seconds
    }
}

fn seconds(of: f64) -> Duration {
    Duration::from_secs_f64(of)
}

impl Stage<'_> {
    async fn play(&self, form: &Form) -> BTreeMap<&'static str, f64> {
        let play = &form.play;
        self.client.closed_loop(16, seconds(play.warm_up_seconds)).await;
        let saturation = self.search(play).await;
        let mut faults = self.told(&self.beside.take());
        header();
        let load = saturation * play.steady_share;
        let at_once = Duration::ZERO;
        let (steady, cpu_share) = self.phase("steady", load, seconds(play.steady_seconds), at_once).await;
        let most = saturation * play.overload_factor;
        let onset = seconds(play.overload_onset_seconds);
        let (overload, _) = self.phase("overload", most, seconds(play.overload_seconds), onset).await;
        let (recovery, _) = self.phase("recovery", load, seconds(play.recovery_seconds), at_once).await;
        self.by_kind(&steady, &overload);
        for phase in [&steady, &overload, &recovery] {
            faults += self.told(&phase.noted);
        }
        let sent = |phase: &Phase| phase.answers.late.len() as f64;
        let errors = sent(&steady) - steady.answers.count(client::Answer::is_accepted) as f64;
        let refused = overload.answers.count(client::Answer::is_refused);
        let others = sent(&overload)
            - overload.answers.unsent as f64
            - (overload.answers.count(client::Answer::is_accepted) + refused) as f64;
        let counted = ["UNAVAILABLE", "RESOURCE_EXHAUSTED"].map(|code| overload.counted.unary_with(code));
        let uncounted = (counted.iter().sum::<f64>() - refused as f64).abs();
        let mut probes = overload.noted.probes.clone();
        BTreeMap::from([
            ("steady_server_p50_ms", steady.in_server.p50),
            ("steady_server_p95_ms", steady.in_server.p95),
            ("steady_server_p99_ms", steady.in_server.p99),
            ("steady_error_share", errors / sent(&steady)),
            ("steady_resident_mib", steady.resident.1),
            ("steady_cpu_share", cpu_share),
            ("overload_server_p99_ratio", overload.in_server.p99 / steady.in_server.p99),
            ("overload_client_p99_ratio", overload.accepted.p99 / steady.accepted.p99),
            ("overload_other_errors", others),
            ("overload_refused_p50_ms", overload.refused.p50),
            ("overload_refused_p99_ms", overload.refused.p99),
            ("overload_uncounted_share", uncounted / sent(&overload)),
            ("overload_unsent_share", overload.answers.unsent as f64 / sent(&overload)),
            ("overload_resident_growth_mib", overload.resident.1 - steady.resident.1),
            ("overload_probe_p99_ms", percentile(&mut probes, 0.99)),
            ("overload_accepted_of_saturation", overload.accepted_per_second() / saturation),
            ("overload_offered_of_saturation", overload.offered_per_second() / saturation),
            ("recovery_seconds", recovered(&recovery.answers, steady.accepted.p99)),
            ("faults", faults as f64),
        ])
    }

    /// The most decisions a second.
    async fn search(&self, play: &thresholds::Play) -> f64 {
        let mut most: f64 = 0.0;
        for callers in &play.search_callers {
            let answers = self.client.closed_loop(*callers, seconds(play.search_seconds)).await;
            let accepted = answers.count(client::Answer::is_accepted);
            let rate = accepted as f64 / answers.seconds;
            let refused = answers.all.len() - accepted;
            let times = Percentiles::of(&mut answers.times(client::Answer::is_accepted));
            println!(
                "{callers:>3} callers: {rate:>7.0} decisions/s, p50 {:.2} ms, p99 {:.2} ms, {refused} refused",
                times.p50, times.p99
            );
            most = most.max(rate);
        }
        println!("saturation: {most:.0} decisions/s\n");
        most
    }

    /// One phase and its line in the table; also the share of the server's processors that was busy for it. What the server
    /// counts as its latency is counted from `onset` on.
    async fn phase(&self, name: &str, rate: f64, span: Duration, onset: Duration) -> (Phase, f64) {
        self.beside.take();
        let http = self.server.http.as_ref().expect("it has metrics");
        let before = scrape(http).await.expect("it answers");
        let (started, cpu) = (Instant::now(), Cpu::now(self.server));
        let resident = self.server.resident_mib();
        let mut most = resident;
        let mut settled = before.clone();
        let mut settling = std::pin::pin!(sleep(onset));
        let mut is_settled = onset.is_zero();
        let mut calling = std::pin::pin!(self.client.open_loop(rate, span));
        let mut answers = loop {
            tokio::select! {
                answers = &mut calling => break answers,
                () = &mut settling, if !is_settled => {
                    is_settled = true;
                    settled = scrape(http).await.expect("it answers");
                }
                () = sleep(SAMPLE_PAUSE) => most = most.max(self.server.resident_mib()),
            }
        };
        let wall = started.elapsed().as_secs_f64();
        let cpu = Cpu::now(self.server).since(cpu);
        let after = scrape(http).await.expect("it answers");
        let in_server = after.since(&settled).unary_durations();
        let counted = after.since(&before);
        let mut noted = self.beside.take();
        let phase = Phase {
            in_server,
            accepted: Percentiles::of(&mut answers.times(client::Answer::is_accepted)),
            refused: Percentiles::of(&mut answers.times(client::Answer::is_refused)),
            resident: (resident, most),
            counted,
            noted: Noted::default(),
            answers: Answers::default(),
        };
        let sent = answers.late.len() as f64;
        let share = |count: usize| 100.0 * count as f64 / sent;
        let (accepted, refused) =
            (answers.count(client::Answer::is_accepted), answers.count(client::Answer::is_refused));
        println!(
            "{name:<9} {:>8.0} {:>8.0} {:>6.1}% {:>6.2}%  {} {} {}  {:>5.2} {:>5.2} {:>5.2} {:>6.0} {:>6.0}",
            sent / answers.seconds,
            accepted as f64 / answers.seconds,
            share(refused),
            share(answers.late.len() - accepted - refused),
            row(&phase.in_server),
            row(&phase.accepted),
            row(&phase.refused),
            cpu.server / wall,
            cpu.client / wall,
            cpu.others() / wall,
            resident,
            most,
        );
        let p99 = |values: &mut Vec<f32>| percentile(values, 0.99);
        println!(
            "{:<9} sent late p99 {:.1} ms, not sent {}; {} chunks acknowledged, p99 {:.1} ms; {} uploads, p99 {:.0} ms, {} refused; {} probes, p99 {:.1} ms",
            "",
            p99(&mut answers.late),
            answers.unsent,
            noted.acks.len(),
            p99(&mut noted.acks),
            noted.uploads.len(),
            p99(&mut noted.uploads),
            noted.uploads_refused,
            noted.probes.len(),
            p99(&mut noted.probes),
        );
        (Phase { answers, noted, ..phase }, (cpu.server / wall) / self.processors)
    }

    /// What each kind of call came to: cheap ones wait behind dear ones.
    fn by_kind(&self, steady: &Phase, overload: &Phase) {
        println!("\n{:<26} {:>9} {:>23}   {:^31}", "", "calls", "steady, client, ms", "overload, client, ms");
        for (at, kind) in self.client.kinds().iter().enumerate() {
            let of = |phase: &Phase| {
                Percentiles::of(&mut phase.answers.times(|answer| answer.kind == at && answer.is_accepted()))
            };
            let calls = overload.answers.count(|answer| answer.kind == at).max(1);
            let accepted = overload.answers.count(|answer| answer.kind == at && answer.is_accepted());
            println!(
                "{:<26} {:>7} % {}   {} {:>5.1} %",
                kind.name,
                kind.weight,
                row(&of(steady)),
                row(&of(overload)),
                100.0 * accepted as f64 / calls as f64
            );
        }
    }

    /// Tells what went wrong beside the calls, and how often.
    fn told(&self, noted: &Noted) -> usize {
        for fault in noted.faults.iter().take(5) {
            println!("fault: {fault}");
        }
        noted.faults.len()
    }
}

fn header() {
    println!(
        "{:<9} {:>8} {:>8} {:>7} {:>7}  {:^23} {:^23} {:^23}  {:^17} {:^13}",
        "",
        "offered",
        "decided",
        "refused",
        "errors",
        "in server, ms",
        "decided, client, ms",
        "refused, client, ms",
        "processors",
        "resident, MiB"
    );
    let percentiles = format!("{:>7} {:>7} {:>7}", "p50", "p95", "p99");
    println!(
        "{:<9} {:>8} {:>8} {:>7} {:>7}  {percentiles} {percentiles} {percentiles}  {:>5} {:>5} {:>5} {:>6} {:>6}",
        "", "/s", "/s", "", "", "serv", "client", "other", "first", "most"
    );
}

fn row(of: &Percentiles) -> String {
    format!("{:>7.2} {:>7.2} {:>7.2}", of.p50, of.p95, of.p99)
}

/// Seconds from the beginning of the steady load until it is served as before: no call refused, and none much slower.
fn recovered(answers: &Answers, p99_before: f64) -> f64 {
    let count = (answers.seconds / WINDOW.as_secs_f64()) as usize;
    let mut windows = vec![(Vec::new(), true); count];
    for answer in &answers.all {
        let at = (answer.sent.as_secs_f64() / WINDOW.as_secs_f64()) as usize;
        let Some((times, is_good)) = windows.get_mut(at) else { continue };
        times.push(answer.ms);
        *is_good &= answer.is_accepted();
    }
    let is_good: Vec<bool> = windows
        .iter_mut()
        .map(|(times, is_good)| *is_good && percentile(times, 0.99) <= p99_before * GOOD_RATIO)
        .collect();
    let first = is_good.windows(GOOD_WINDOWS).position(|windows| windows.iter().all(|is_good| *is_good));
    first.map_or(f64::INFINITY, |at| at as f64 * WINDOW.as_secs_f64())
}

/// Seconds of processor time so far.
#[derive(Clone, Copy)]
struct Cpu {
    server: f64,
    client: f64,
    all: f64,
}

impl Cpu {
    fn now(server: &Process) -> Self {
        let text = std::fs::read_to_string("/proc/stat").expect("Linux tells");
        let line = text.lines().next().unwrap_or_default();
        // user, nice, system; then idle, iowait; then irq, softirq, steal.
        let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        let busy: f64 =
            ticks.iter().enumerate().filter(|(at, _)| !matches!(at, 3 | 4) && *at < 8).map(|(_, t)| t).sum();
        // Linux tells processor time in hundredths of a second, whatever its clock.
        Self { server: server.cpu(), client: common::process::cpu_of(std::process::id()), all: busy / 100.0 }
    }

    fn since(self, before: Self) -> Self {
        Self {
            server: self.server - before.server,
            client: self.client - before.client,
            all: self.all - before.all,
        }
    }

    /// What other processes of the machine took.
    fn others(self) -> f64 {
        (self.all - self.server - self.client).max(0.0)
    }
}
