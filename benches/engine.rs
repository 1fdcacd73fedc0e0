//! Throughput of the engine on text that holds nothing, beside memchr and a bare Aho-Corasick pass in the same run.
//!
//! What it is for: the share of a core that scanning costs. Run: `cargo bench --bench engine`. Each figure is the
//! median of interleaved rounds; the answer is checked as it is timed. With `-- --rules` it times every rule and concept
//! alone instead and prints the costliest, for whoever writes rules; with `-- --hostile` it plays texts that are made to
//! cost; with `-- code` it reads only the texts of which the name holds that word. Behind `--text FILE …`, texts of your
//! own are read instead, by `--rules` too.

mod common;

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use aho_corasick::{AhoCorasickBuilder, AhoCorasickKind};
use base64::Engine as _;
use common::{CODE, LOGS, PROSE, median, text_of};
use portcullis::detect::{Request, Scanner};
use portcullis::rules::{Budget, Role, RuleSet, RuleSetConfig, RuleSource, Scope, Surface, builtin_sources};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rounds of each figure.
const ROUNDS: usize = 15;
/// Bytes read per round and figure.
const ROUND_BYTES: usize = 4 << 20;
/// What a file of rules holds that is timed alone.
const KINDS: [&str; 2] = ["rule", "concept"];
/// How many of them are named.
const NAMED: usize = 20;

fn main() {
    if std::env::args().any(|a| a == "--rules") {
        return rules_alone();
    }
    if std::env::args().any(|a| a == "--hostile") {
        return hostile();
    }
    // Cargo itself passes `--bench`.
    let only = std::env::args()
        .skip(1)
        .take_while(|argument| argument != "--text")
        .find(|one| !one.starts_with("--"));
    let started = Instant::now();
    let rules =
        RuleSet::compile(&builtin_sources(), &RuleSetConfig::default()).expect("the built-in rules compile");
    println!("{} rules compiled in {:.1} ms", rules.rules().len(), started.elapsed().as_secs_f64() * 1e3);
    println!("literals: {} KiB", rules.gate_memory() / 1024);
    let literals: Vec<String> =
        rules.rules().iter().flat_map(|r| r.def.gate_literals().map(|l| l.to_ascii_lowercase())).collect();
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
        "{:<14} {:>12} {:>12} {:>12} {:>10} {:>10} {:>9}",
        "text", "memchr MB/s", "bare AC MB/s", "engine MB/s", "us/text", "engine/AC", "findings"
    );
    let own = own_texts();
    let mut texts: Vec<(String, String)> = [
        ("prose 1 KiB", text_of(PROSE, 1024)),
        ("prose 16 KiB", text_of(PROSE, 16 * 1024)),
        ("prose 1 MiB", text_of(PROSE, 1 << 20)),
        ("code 1 KiB", text_of(CODE, 1024)),
        ("code 16 KiB", text_of(CODE, 16 * 1024)),
        ("logs 1 KiB", text_of(LOGS, 1024)),
        ("logs 16 KiB", text_of(LOGS, 16 * 1024)),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into();
    texts.retain(|(name, _)| own.is_empty() && only.as_ref().is_none_or(|only| name.contains(only.as_str())));
    let is_own = !own.is_empty();
    texts.extend(own);
    for (name, text) in &texts {
        let times = ROUND_BYTES.div_ceil(text.len().max(1));
        let (mut memchr, mut automaton, mut engine) = (Vec::new(), Vec::new(), Vec::new());
        let mut found = 0;
        for _ in 0..ROUNDS {
            memchr.push(timed(times, || memchr::memchr_iter(0x01, black_box(text.as_bytes())).count()));
            automaton.push(timed(times, || bare.find_overlapping_iter(black_box(text)).count()));
            engine.push(timed(times, || {
                let request = Request {
                    text: black_box(text),
                    plugins,
                    role: Some(Role::User),
                    surface: Some(Surface::Text),
                };
                let scanned = scanner.scan(request, &Budget::UNLIMITED).expect("no budget");
                assert!(is_own || scanned.findings.is_empty(), "{name}: {:?}", scanned.findings);
                found = scanned.findings.len();
                found
            }));
        }
        let (memchr, automaton, engine) = (median(memchr), median(automaton), median(engine));
        let rate = |seconds: f64| text.len() as f64 * times as f64 / seconds / 1e6;
        println!(
            "{name:<14} {:>12.0} {:>12.0} {:>12.0} {:>10.2} {:>10.2} {found:>9}",
            rate(memchr),
            rate(automaton),
            rate(engine),
            engine / times as f64 * 1e6,
            engine / automaton
        );
    }
}

/// Times texts that strangers would send to keep the engine busy, beside prose of the same length.
fn hostile() {
    /// Length of each text.
    const BYTES: usize = 64 * 1024;
    /// Each is read so often; the least counts, as anything else on the machine only adds.
    const TIMES: usize = 5;
    let rules =
        RuleSet::compile(&builtin_sources(), &RuleSetConfig::default()).expect("the built-in rules compile");
    rules.warm_up();
    let literals: Vec<String> =
        rules.rules().iter().flat_map(|rule| rule.def.gate_literals().cloned()).collect();
    let examples: Vec<String> = rules.rules().iter().flat_map(|rule| rule.def.examples.clone()).collect();
    let halves: Vec<String> = examples.iter().map(|example| half(example).to_owned()).collect();
    let reversed: Vec<String> = literals.iter().map(|literal| literal.chars().rev().collect()).collect();
    let scanner = Scanner::new(Arc::new(rules));
    let cost = |text: &str| {
        let request =
            Request { text, plugins: u32::MAX, role: Some(Role::User), surface: Some(Surface::Text) };
        let scan = || scanner.scan(request, &Budget::UNLIMITED).expect("no budget").findings.len();
        let seconds = (0..TIMES).map(|_| timed(1, scan)).fold(f64::MAX, f64::min);
        seconds * 1e6 / (text.len() as f64 / 1024.0)
    };
    let prose = cost(&text_of(PROSE, BYTES));
    println!("{:<44} {:>10} {:>8}", "text of 64 KiB", "us per KiB", "x prose");
    println!("{:<44} {prose:>10.1} {:>8.1}", "prose", 1.0);
    let joined = |parts: &[String], between: &str| text_of(&parts.join(between), BYTES);
    let encoded = base64::engine::general_purpose::STANDARD.encode(joined(&literals, " "));
    for (name, text) in [
        ("every literal of every rule", joined(&literals, " ")),
        ("the same, glued", joined(&literals, "")),
        ("the same, backwards", joined(&reversed, " ")),
        ("the same in base64", text_of(&encoded, BYTES)),
        ("every example of every rule", joined(&examples, "\n")),
        ("the first half of each (near misses)", joined(&halves, " ")),
        ("`token=` again and again", text_of("token=", BYTES)),
        ("`api_key=` again and again", text_of("api_key=", BYTES)),
        ("`password=x` again and again", text_of("password=x", BYTES)),
        ("`ignore all previous ` again and again", text_of("ignore all previous ", BYTES)),
        ("digits in fours", text_of("1234 ", BYTES)),
        ("opening brackets", text_of("(", BYTES)),
        ("escapes of bytes that are no text", text_of("%41%ff\\x61\\xff", BYTES)),
        ("codes of bytes that are no text", text_of("208 208 ", BYTES)),
        ("values that may be types (`token: AKIA`)", text_of("token: AKIA", BYTES)),
    ] {
        let cost = cost(&text);
        println!("{name:<44} {cost:>10.1} {:>8.1}", cost / prose);
    }
}

/// The first half of a text, on a character boundary.
fn half(text: &str) -> &str {
    &text[..text.floor_char_boundary(text.len() / 2)]
}

/// Times each rule and each concept alone: gate and regex, without text views. Over prose and code of 16 KiB, or over files that are
/// named behind `--text`.
fn rules_alone() {
    let own = own_texts();
    let texts = if own.is_empty() {
        [PROSE, CODE].map(|text| text_of(text, 16 * 1024)).into()
    } else {
        own.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };
    let mut costs: Vec<(f64, f64, String)> = Vec::new();
    for source in builtin_sources() {
        let file: toml::Table = source.text.parse().expect("valid TOML");
        for kind in KINDS {
            let all = file.get(kind).and_then(toml::Value::as_array).into_iter().flatten();
            for one in all {
                let mut alone = file.clone();
                KINDS.iter().for_each(|kind| drop(alone.remove(*kind)));
                alone.insert(kind.into(), toml::Value::Array(vec![one.clone()]));
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
                costs.push((cost, compile, one["id"].as_str().unwrap_or_default().to_owned()));
            }
        }
    }
    let total: f64 = costs.iter().map(|(_, compile, _)| compile).sum();
    println!("{} rules and concepts compile in {total:.0} ms one by one", costs.len());
    println!("costliest to run (us for all texts):");
    costs.sort_by(|a, b| b.0.total_cmp(&a.0));
    costs.iter().take(NAMED).for_each(|(cost, _, id)| println!("{cost:>10.0}  {id}"));
    println!("costliest to compile (ms):");
    costs.sort_by(|a, b| b.1.total_cmp(&a.1));
    costs.iter().take(NAMED).for_each(|(_, compile, id)| println!("{compile:>10.1}  {id}"));
}

/// The files named behind `--text`, and what they hold.
fn own_texts() -> Vec<(String, String)> {
    let names = std::env::args().skip_while(|argument| argument != "--text").skip(1);
    names
        .map(|name| {
            let text = std::fs::read_to_string(&name)
                .unwrap_or_else(|error| panic!("`{name}` is no readable text in UTF-8: {error}"));
            let name = Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, text)
        })
        .collect()
}

/// Seconds for `times` runs.
fn timed(times: usize, mut run: impl FnMut() -> usize) -> f64 {
    let started = Instant::now();
    for _ in 0..times {
        black_box(run());
    }
    started.elapsed().as_secs_f64()
}
