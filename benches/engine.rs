//! Throughput of the engine on text that holds nothing, beside memchr and a bare Aho-Corasick pass in the same run.
//!
//! What it is for: the share of a core that scanning costs. Run: `cargo bench --bench engine`. Each figure is the
//! median of interleaved rounds; the answer is checked as it is timed. With `-- --rules` it times every rule alone
//! instead and prints the costliest, for whoever writes rules.

mod common;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use aho_corasick::{AhoCorasickBuilder, AhoCorasickKind};
use common::{CODE, PROSE, median, text_of};
use portcullis::detect::{Request, Scanner};
use portcullis::rules::{Budget, Role, RuleSet, RuleSetConfig, RuleSource, Scope, Surface, builtin_sources};

/// Rounds of each figure.
const ROUNDS: usize = 15;
/// Bytes read per round and figure.
const ROUND_BYTES: usize = 4 << 20;

fn main() {
    if std::env::args().any(|a| a == "--rules") {
        return rules_alone();
    }
    let started = Instant::now();
    let rules =
        RuleSet::compile(&builtin_sources(), &RuleSetConfig::default()).expect("the built-in rules compile");
    println!("{} rules compiled in {:.1} ms", rules.rules().len(), started.elapsed().as_secs_f64() * 1e3);
    println!("literals: {} KiB", rules.gate_memory() / 1024);
    let literals: Vec<String> =
        rules.rules().iter().flat_map(|r| r.def.literals.iter().map(|l| l.to_ascii_lowercase())).collect();
    let bare = AhoCorasickBuilder::new()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(&literals)
        .expect("the literals fit");
    let started = Instant::now();
    rules.warm_up();
    println!("and warmed up in {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
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

/// Times each rule alone over prose and code of 16 KiB: gate and regex, without text views.
fn rules_alone() {
    let texts = [text_of(PROSE, 16 * 1024), text_of(CODE, 16 * 1024)];
    let mut costs: Vec<(f64, f64, String)> = Vec::new();
    for source in builtin_sources() {
        let file: toml::Table = source.text.parse().expect("valid TOML");
        for rule in file["rule"].as_array().expect("rules") {
            let mut alone = file.clone();
            alone.insert("rule".into(), toml::Value::Array(vec![rule.clone()]));
            let text = toml::to_string(&alone).expect("TOML again").into();
            let alone = RuleSource { text, json: None, ..source.clone() };
            let started = Instant::now();
            let set = RuleSet::compile(&[alone], &RuleSetConfig::default()).expect("it compiles alone");
            set.warm_up();
            let compile = started.elapsed().as_secs_f64() * 1e3;
            let scope = Scope { plugins: u32::MAX, role: None, surface: None };
            let scan = |text: &str| {
                let mut matches = Vec::new();
                set.with_scratch(|s| set.scan(text, scope, None, s, &Budget::UNLIMITED, &mut matches))
                    .expect("no budget");
                matches.len()
            };
            let cost = texts.iter().map(|text| timed(8, || scan(text)) / 8.0 * 1e6).sum();
            costs.push((cost, compile, rule["id"].as_str().unwrap_or_default().to_owned()));
        }
    }
    let total: f64 = costs.iter().map(|(_, compile, _)| compile).sum();
    println!("{} rules compile in {total:.0} ms one by one", costs.len());
    println!("costliest to run (us for 16 KiB of prose and 16 KiB of code):");
    costs.sort_by(|a, b| b.0.total_cmp(&a.0));
    costs.iter().take(15).for_each(|(cost, _, id)| println!("{cost:>10.0}  {id}"));
    println!("costliest to compile (ms):");
    costs.sort_by(|a, b| b.1.total_cmp(&a.1));
    costs.iter().take(15).for_each(|(_, compile, id)| println!("{compile:>10.1}  {id}"));
}

/// Seconds for `times` runs.
fn timed(times: usize, mut run: impl FnMut() -> usize) -> f64 {
    let started = Instant::now();
    for _ in 0..times {
        black_box(run());
    }
    started.elapsed().as_secs_f64()
}
