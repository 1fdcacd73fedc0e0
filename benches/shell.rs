//! What it costs to understand a command: a look at its bytes, parsing it, analysing it, and the whole built-in chain.
//!
//! What it is for: the promise that a guard that understands commands costs microseconds. The commands are what coding
//! agents run all day (`agent_commands.txt`, none of them dangerous). Run: `cargo bench --bench shell`. Each command is
//! timed in interleaved rounds, its median kept; printed are the median and the slowest of these, and the median ratio
//! to parsing alone.

mod common;

use std::hint::black_box;
use std::time::Instant;

use common::median;
use portcullis::paths::{Os, Place};
use portcullis::shell::limits::Limits;
use portcullis::shell::{analyse, syntax};

/// Rounds of each figure.
const ROUNDS: usize = 31;
/// Runs of one command in one round.
const RUNS: usize = 20;
/// The commands, with a line of `%%` between them.
const COMMANDS: &str = include_str!("agent_commands.txt");

/// One command in four stages, in microseconds.
struct Cost {
    command: &'static str,
    memchr: f64,
    parse: f64,
    analyse: f64,
    chain: f64,
}

fn main() {
    let chain = chain::Chain::new();
    let limits = Limits::default();
    let place = Place { cwd: chain::CWD, home: chain::HOME, os: Os::Linux };
    let commands: Vec<&str> = COMMANDS.trim_end().split("\n%%\n").collect();
    let mut costs = Vec::new();
    for command in commands {
        let request = chain.request(command);
        let (mut memchr, mut parse, mut analysis, mut whole) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            memchr.push(timed(|| memchr::memchr_iter(0x01, black_box(command.as_bytes())).count()));
            parse.push(timed(|| syntax::parse(black_box(command), &limits).problems.len()));
            analysis.push(timed(|| analyse(black_box(command), place, &limits).effects.len()));
            whole.push(timed(|| chain.allowed(black_box(&request))));
        }
        let [memchr, parse, analyse, chain] = [memchr, parse, analysis, whole].map(median);
        costs.push(Cost { command, memchr, parse, analyse, chain });
    }
    println!(
        "{} commands of {:.0} bytes (median)",
        costs.len(),
        median_of(&costs, |c| c.command.len() as f64)
    );
    println!("{:<8} {:>10} {:>10} {:>14}", "stage", "median us", "worst us", "median / parse");
    type Stage = (&'static str, fn(&Cost) -> f64);
    let stages: [Stage; 4] = [
        ("memchr", |c| c.memchr),
        ("parse", |c| c.parse),
        ("analyse", |c| c.analyse),
        ("chain", |c| c.chain),
    ];
    for (name, of) in stages {
        let worst = costs.iter().map(of).fold(0.0, f64::max);
        let ratio = median_of(&costs, |c| of(c) / c.parse);
        println!("{name:<8} {:>10.2} {worst:>10.2} {ratio:>14.2}", median_of(&costs, of));
    }
    costs.sort_by(|a, b| b.chain.total_cmp(&a.chain));
    println!("slowest:");
    for cost in costs.iter().take(5) {
        let line = cost.command.lines().next().unwrap_or_default();
        println!("{:>10.2}  {}", cost.chain, line.chars().take(80).collect::<String>());
    }
}

fn median_of(costs: &[Cost], of: impl Fn(&Cost) -> f64) -> f64 {
    median(costs.iter().map(of).collect())
}

/// Microseconds of one run.
fn timed(mut run: impl FnMut() -> usize) -> f64 {
    let started = Instant::now();
    for _ in 0..RUNS {
        black_box(run());
    }
    started.elapsed().as_secs_f64() / RUNS as f64 * 1e6
}

/// The whole built-in chain of a call, from the request as it comes off the wire to its answer.
mod chain {
    use portcullis::grpc::intercept::{Judge, judge_tool};
    use portcullis::pb::v1;
    use portcullis::policy::{self, CallerRole, Snapshot};
    use portcullis::tools::ToolEngine;

    pub const CWD: &str = "/home/ada/app";
    pub const HOME: &str = "/home/ada";

    /// The engine as installed.
    pub struct Chain {
        engine: ToolEngine,
        snapshot: Snapshot,
        runtime: tokio::runtime::Runtime,
    }

    impl Chain {
        pub fn new() -> Self {
            let settings = portcullis::config::Settings::default();
            let snapshot =
                policy::load(&portcullis::app::sources(&settings), None).expect("the defaults load");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let engine = portcullis::app::tool_engine(&settings);
            Self { engine, snapshot, runtime: runtime.expect("a runtime") }
        }

        pub fn request(&self, command: &str) -> v1::InterceptToolRequest {
            v1::InterceptToolRequest {
                phase: v1::ToolPhase::Before.into(),
                tool_name: "exec".into(),
                args_json: serde_json::json!({ "command": command }).to_string(),
                environment: Some(v1::ExecutionContext {
                    cwd: CWD.into(),
                    home: HOME.into(),
                    os: "linux".into(),
                    ..Default::default()
                }),
                ..Default::default()
            }
        }

        /// Judges; what agents do all day must not be stopped.
        pub fn allowed(&self, request: &v1::InterceptToolRequest) -> usize {
            let judge = Judge {
                engine: &self.engine,
                snapshot: &self.snapshot,
                roles: &[CallerRole::Agent],
                deadline: None,
            };
            let judged = self.runtime.block_on(judge_tool(judge, request.clone())).expect("a decision");
            let decision = judged.response.decision();
            let is_let_through = matches!(decision, v1::Decision::Allow | v1::Decision::Warn);
            assert!(is_let_through, "{}: {}", request.args_json, judged.response.block_reason);
            judged.response.findings.len()
        }
    }
}
