//! Throughput of the engine on text that holds nothing, beside memchr and a bare Aho-Corasick pass in the same run.
//!
//! What it is for: the share of a core that scanning costs. Run: `cargo bench --bench engine`. Each figure is the
//! median of interleaved rounds; the answer is checked as it is timed.

mod common;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use aho_corasick::{AhoCorasickBuilder, AhoCorasickKind};
use common::{CODE, PROSE, median, text_of};
use portcullis::detect::{Request, Scanner};
use portcullis::rules::{Budget, Role, RuleSet, RuleSetConfig, Surface, builtin_sources};

/// Rounds of each figure.
const ROUNDS: usize = 15;
/// Bytes read per round and figure.
const ROUND_BYTES: usize = 4 << 20;

fn main() {
    let started = Instant::now();
    let rules =
        RuleSet::compile(&builtin_sources(), &RuleSetConfig::default()).expect("the built-in rules compile");
    println!("{} rules compiled in {:.1} ms", rules.rules().len(), started.elapsed().as_secs_f64() * 1e3);
    println!("literal automaton: {} KiB", rules.gate_memory() / 1024);
    let literals: Vec<String> =
        rules.rules().iter().flat_map(|r| r.def.literals.iter().map(|l| l.to_ascii_lowercase())).collect();
    let bare = AhoCorasickBuilder::new()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(&literals)
        .expect("the literals fit");
    let scanner = Scanner::new(Arc::new(rules));
    let plugins = u32::MAX;
    println!(
        "{:<14} {:>12} {:>12} {:>12} {:>10} {:>10}",
        "text", "memchr MB/s", "bare AC MB/s", "engine MB/s", "us/text", "engine/AC"
    );
    for (name, text) in [
        ("prose 1 KiB", text_of(PROSE, 1024)),
        ("prose 16 KiB", text_of(PROSE, 16 * 1024)),
        ("prose 1 MiB", text_of(PROSE, 1 << 20)),
        ("code 1 KiB", text_of(CODE, 1024)),
        ("code 16 KiB", text_of(CODE, 16 * 1024)),
    ] {
        let times = ROUND_BYTES / text.len();
        let (mut memchr, mut automaton, mut engine) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            memchr.push(timed(times, || memchr::memchr_iter(0x01, black_box(text.as_bytes())).count()));
            automaton.push(timed(times, || bare.find_overlapping_iter(black_box(&text)).count()));
            engine.push(timed(times, || {
                let request = Request {
                    text: black_box(&text),
                    plugins,
                    role: Some(Role::User),
                    surface: Some(Surface::Text),
                };
                let scanned = scanner.scan(request, &Budget::UNLIMITED).expect("no budget");
                assert!(scanned.findings.is_empty(), "{name}: {:?}", scanned.findings);
                scanned.findings.len()
            }));
        }
        let (memchr, automaton, engine) = (median(memchr), median(automaton), median(engine));
        let rate = |seconds: f64| text.len() as f64 * times as f64 / seconds / 1e6;
        println!(
            "{name:<14} {:>12.0} {:>12.0} {:>12.0} {:>10.2} {:>10.2}",
            rate(memchr),
            rate(automaton),
            rate(engine),
            engine / times as f64 * 1e6,
            engine / automaton
        );
    }
}

/// Seconds for `times` runs.
fn timed(times: usize, mut run: impl FnMut() -> usize) -> f64 {
    let started = Instant::now();
    for _ in 0..times {
        black_box(run());
    }
    started.elapsed().as_secs_f64()
}
