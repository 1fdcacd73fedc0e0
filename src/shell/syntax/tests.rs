//! Trees of many scripts, and what holds for any text: no panic, sound spans, bounded depth, linear work.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde::Deserialize;

use super::check::check;
use super::dump::dump;
use super::machine::read;
use super::parse;
use crate::shell::ast::{Command, CommandKind, Part, SyntaxProblemKind, WordId};
use crate::shell::limits::Limits;

#[derive(Deserialize)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    source: String,
    tree: String,
}

#[derive(Deserialize)]
struct Hostile {
    pieces: Vec<String>,
    ends: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/shell/syntax")
}

fn text_of(file: &str) -> String {
    fs::read_to_string(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn hostile() -> Hostile {
    toml::from_str(&text_of("hostile.toml")).expect("a table of pieces")
}

fn table(file: &str) {
    let table: Table = toml::from_str(&text_of(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let limits = Limits::default();
    let mut wrong = String::new();
    for case in &table.case {
        let ast = parse(&case.source, &limits);
        check(&case.source, &ast, limits.nesting_max);
        let tree = dump(&ast);
        if tree != case.tree {
            wrong += &format!("{}\n  got    {tree}\n  wanted {}\n", case.name, case.tree);
        }
    }
    assert!(wrong.is_empty(), "{file}\n{wrong}");
    assert!(table.case.len() >= 9);
}

macro_rules! tables {
    ($($name:ident)+) => { $(#[test] fn $name() { table(concat!(stringify!($name), ".toml")); })+ };
}

tables! { words expansions commands redirections documents errors }

fn kinds(source: &str, limits: &Limits) -> Vec<SyntaxProblemKind> {
    let ast = parse(source, limits);
    check(source, &ast, limits.nesting_max);
    ast.problems.iter().map(|problem| problem.kind).collect()
}

#[test]
fn levels_are_limited() {
    let limits = Limits { nesting_max: 10, ..Limits::default() };
    for (open, close) in [
        ("$(", ")"),
        ("(", ";)"),
        ("{ ", "; }"),
        ("${x-", "}"),
        ("\"$(", ")\""),
        ("if a; then ", "; fi"),
        ("for a in b; do ", "; done"),
        ("until a; do ", "; done"),
        ("case a in b) ", ";; esac"),
        ("<(", ")"),
        ("f() { ", "; }"),
    ] {
        let levels = if open.starts_with('f') && open.ends_with("{ ") { 5 } else { 10 };
        let nested = |times: usize| format!("{}x{}; after", open.repeat(times), close.repeat(times));
        assert_eq!(kinds(&nested(levels), &limits), [], "{open}");
        let deep = nested(levels + 1);
        let found = kinds(&deep, &limits);
        assert!(found.contains(&SyntaxProblemKind::TooDeep), "{open}: {found:?}");
        assert!(dump(&parse(&deep, &limits)).contains("after"), "{open}: what comes after is gone");
    }
}

#[test]
fn levels_in_here_documents_count() {
    let limits = Limits { nesting_max: 4, ..Limits::default() };
    let found = kinds("{ { { cat <<A\n$($(b))\nA\n}; }; }", &limits);
    assert_eq!(found, [SyntaxProblemKind::TooDeep]);
}

#[test]
fn bytes_are_limited() {
    let limits = Limits { bytes_max: 5, ..Limits::default() };
    assert_eq!(dump(&parse("a; b", &limits)), "(a) ; (b)");
    assert_eq!(dump(&parse("a; bé 'c", &limits)), "(a) ; (b) !too-large@4");
}

#[test]
fn nodes_are_limited() {
    let limits = Limits { steps_max: 100, ..Limits::default() };
    for piece in ["a ", "a;", "$a", "a=b ", "a <b ", "`a`", "[[ a ", "a=( b ", "a <<E\n$b\nE\n", "x`a\\$b`"] {
        let source = piece.repeat(1_000);
        let ast = parse(&source, &limits);
        assert!(ast.problems.iter().any(|problem| problem.kind == SyntaxProblemKind::TooLarge), "{piece}");
        assert!(ast.words.len() + ast.commands.len() < 300, "{piece}: {}", ast.words.len());
    }
}

#[test]
fn a_limit_is_told_among_many_problems() {
    let source = format!("{}{}", "; ) ".repeat(1_000), "$(".repeat(1_000));
    let found = kinds(&source, &Limits::default());
    assert!(found.contains(&SyntaxProblemKind::TooDeep));
    assert!(found.len() < 200);
}

/// Texts made of one piece again and again, at two sizes: work grows as the text does. Counted, not timed.
#[test]
fn work_is_linear() {
    let Hostile { pieces, ends } = hostile();
    let limits = Limits::default();
    let mut wrong = String::new();
    for piece in &pieces {
        for end in &ends {
            let ticks = |size: usize| {
                let source = piece.repeat(size.div_ceil(piece.len())) + end;
                read(&source, &limits).1
            };
            let (once, twice) = (ticks(8_192), ticks(16_384));
            if twice > 2 * once + once / 4 + 8_192 || twice > 16_384 * 60 {
                wrong += &format!("{piece:?} {end:?}: {once} steps, then {twice}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Nothing on the thread's stack grows with the text.
#[test]
fn a_small_stack_is_enough() {
    let run = || {
        let Hostile { pieces, ends } = hostile();
        // Deeper than any limit that makes sense: frames are on the heap.
        for limits in [Limits::default(), Limits { nesting_max: 5_000, ..Limits::default() }] {
            for piece in &pieces {
                let source = piece.repeat(20_000_usize.div_ceil(piece.len())) + &ends.concat();
                drop(parse(&source, &limits));
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(run).expect("a thread");
    thread.join().expect("no panic");
}

#[test]
fn hostile_texts_make_sound_trees() {
    let Hostile { pieces, ends } = hostile();
    let limits = Limits::default();
    for piece in &pieces {
        for end in &ends {
            let source = piece.repeat(300) + end + piece;
            check(&source, &parse(&source, &limits), limits.nesting_max);
        }
    }
}

/// Texts of pieces that matter, with anything between them.
fn scripts() -> impl Strategy<Value = String> {
    let Hostile { pieces, ends } = hostile();
    let known: Vec<String> = pieces.into_iter().chain(ends).collect();
    let piece = prop_oneof![
        8 => prop::sample::select(known),
        1 => any::<char>().prop_map(String::from),
        1 => "[a-z ;\"'$(){}`\\\\\n<>&|é]{0,6}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_makes_a_sound_tree(source in scripts()) {
        let limits = Limits { nesting_max: 12, ..Limits::default() };
        let ast = parse(&source, &limits);
        check(&source, &ast, limits.nesting_max);
        prop_assert_eq!(format!("{ast:?}"), format!("{:?}", parse(&source, &limits)));
    }

    /// Empty quotes, backslashes, continuations and NUL bytes in words, and any blanks between them, change no argument.
    #[test]
    fn noise_changes_no_argument(words in prop::collection::vec(prop::collection::vec(("[a-z0-9/.-]", 0..7_usize), 1..6), 1..5)) {
        let limits = Limits::default();
        let (mut noisy, mut plain) = (String::new(), Vec::new());
        for word in &words {
            noisy.push_str(["x", "x''", "'x'", "\"x\"", "$'x'", "x\\\n", "\\x"][word[0].1]);
            plain.push(String::from("x"));
            for (letter, noise) in word {
                noisy += &match noise {
                    0 => letter.clone(),
                    1 => format!("{letter}''"),
                    2 => format!("'{letter}'"),
                    3 => format!("\"\"{letter}"),
                    4 => format!("\\\n{letter}"),
                    5 => format!("\0{letter}"),
                    _ => format!("\\{letter}"),
                };
                plain.last_mut().expect("a word").push_str(letter);
            }
            noisy.push_str([" ", "\t", " \\\n", "\\\n ", "  ", " \0", " \\\r\n "][word[0].1]);
        }
        let ast = parse(&noisy, &limits);
        prop_assert_eq!(&ast.problems, &[]);
        let [Command { kind: CommandKind::Simple { words, .. }, .. }] = &ast.commands[..] else {
            return Err(TestCaseError::fail(dump(&ast)));
        };
        let argument = |id: &WordId| -> String {
            let parts = ast.words[id.0 as usize].parts.iter();
            parts.map(|part| match part {
                Part::Bare(text) => text,
                Part::Quoted(text) => &**text,
                _ => "?",
            }).collect()
        };
        prop_assert_eq!(words.iter().map(argument).collect::<Vec<_>>(), plain);
    }
}
