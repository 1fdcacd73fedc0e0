//! Our parser of bash beside bash itself and beside another parser. Nothing is ever run: bash only checks (`-n`).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use portcullis::shell::ast::{Ast, CommandId, CommandKind, ListId, WordId};
use portcullis::shell::limits::Limits;
use portcullis::shell::syntax::parse;
use rable::ast::{Node, NodeKind};
use serde::Deserialize;

/// Commands of the corpus that bash is asked about: each costs a process.
const SAMPLE: usize = 2_000;

/// Whether bash takes each script, or nothing if there is no bash.
fn bash_takes(scripts: &[&str]) -> Option<Vec<bool>> {
    let check = r#"while IFS= read -r -d "" script; do
        if bash -O extglob -n -c "$script" </dev/null >/dev/null 2>&1; then echo y; else echo n; fi
    done"#;
    let mut child = Command::new("bash")
        .args(["--norc", "-c", check])
        .env_remove("BASH_ENV")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .inspect_err(|error| eprintln!("skipped: no bash ({error})"))
        .ok()?;
    let mut input = child.stdin.take().expect("a pipe");
    let bytes: Vec<u8> = scripts.iter().flat_map(|script| script.bytes().chain([0])).collect();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().expect("bash ends");
    writer.join().expect("no panic").expect("bash reads everything");
    let taken: Vec<bool> = String::from_utf8_lossy(&output.stdout).lines().map(|line| line == "y").collect();
    assert_eq!(taken.len(), scripts.len(), "bash lost some");
    Some(taken)
}

/// The same, shared between threads.
fn bash_takes_all(scripts: &[&str]) -> Option<Vec<bool>> {
    let share = scripts.len().div_ceil(4).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            scripts.chunks(share).map(|scripts| scope.spawn(|| bash_takes(scripts))).collect();
        let shares: Option<Vec<_>> =
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        shares.map(|shares| shares.concat())
    })
}

fn takes(script: &str) -> bool {
    parse(script, &Limits::default()).problems.is_empty()
}

#[derive(Deserialize)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    source: String,
    differs: Option<String>,
}

/// The scripts of the parser's own tests: bash takes what we take, unless a case says why not.
#[test]
fn bash_agrees_on_the_case_tables() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/shell/syntax");
    let files = ["words", "expansions", "commands", "redirections", "documents", "errors"];
    let cases: Vec<Case> = files
        .iter()
        .flat_map(|file| {
            let text = fs::read_to_string(folder.join(file).with_extension("toml")).expect("a table");
            toml::from_str::<Table>(&text).expect("a table").case
        })
        // An argument of a process holds no NUL.
        .filter(|case| !case.source.contains('\0'))
        .collect();
    assert!(cases.len() > 150, "{} cases", cases.len());
    let scripts: Vec<&str> = cases.iter().map(|case| &*case.source).collect();
    let Some(taken) = bash_takes_all(&scripts) else { return };
    for (case, taken) in cases.iter().zip(taken) {
        let agrees = taken == takes(&case.source);
        assert_eq!(agrees, case.differs.is_none(), "{}: bash takes it: {taken}", case.name);
    }
}

/// Commands of the corpus beside the repository, each once; none if there is no corpus.
fn corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["../shared", "../../shared"].map(|place| root.join(place).join("corpora/commands"));
    let Some(folder) = places.iter().find(|place| place.is_dir()) else {
        eprintln!("skipped: there is no corpus at {}", places[0].display());
        return Vec::new();
    };
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    #[derive(Deserialize)]
    struct Record {
        command: String,
    }
    let mut commands = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a corpus is text");
        let records = text.split('\n').filter(|line| !line.is_empty());
        commands.extend(records.map(|line| serde_json::from_str::<Record>(line).expect("a record").command));
    }
    let mut seen = std::collections::BTreeSet::new();
    commands.retain(|command| !command.contains('\0') && seen.insert(command.clone()));
    commands
}

/// A word right before a bracket begins an index for bash, even if it never ends or holds a whole command; we read the
/// bracket as text unless an assignment follows, as shells without arrays do.
fn is_index(command: &str) -> bool {
    let word = command.trim_start().split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next();
    word.is_some_and(|word| !word.is_empty() && command.trim_start()[word.len()..].starts_with('['))
}

#[test]
fn bash_agrees_on_the_corpus() {
    let commands = corpus();
    let step = commands.len().div_ceil(SAMPLE).max(1);
    let sample: Vec<&str> = commands.iter().step_by(step).map(String::as_str).collect();
    let Some(taken) = bash_takes_all(&sample) else { return };
    let mut only_we_refuse = Vec::new();
    let mut only_bash_refuses = Vec::new();
    for (command, taken) in sample.iter().zip(&taken) {
        match (taken, takes(command)) {
            (true, false) if !is_index(command) => only_we_refuse.push(command),
            (false, true) => only_bash_refuses.push(command),
            _ => {}
        }
    }
    // One in a thousand.
    assert!(only_we_refuse.len() * 1_000 <= sample.len(), "bash takes {only_we_refuse:#?}");
    assert!(only_bash_refuses.len() * 200 <= sample.len(), "bash refuses {only_bash_refuses:#?}");
}

/// Number of assignments, and words as written, of every simple command outside of words, in order.
type Shape = Vec<(usize, Vec<String>)>;

fn our_shape(source: &str, ast: &Ast<'_>) -> Shape {
    fn list(source: &str, ast: &Ast<'_>, id: ListId, shape: &mut Shape) {
        for (pipeline, _) in &ast.lists[id.0 as usize].items {
            pipeline.commands.iter().for_each(|id| command(source, ast, *id, shape));
        }
    }
    fn command(source: &str, ast: &Ast<'_>, id: CommandId, shape: &mut Shape) {
        let written = |id: &WordId| {
            let span = ast.words[id.0 as usize].span;
            source[span.start as usize..span.end as usize].replace("\\\n", "")
        };
        let mut lists = |ids: &[ListId]| ids.iter().for_each(|id| list(source, ast, *id, shape));
        match &ast.commands[id.0 as usize].kind {
            CommandKind::Simple { assignments, words } => {
                shape.push((assignments.len(), words.iter().map(written).collect()))
            }
            CommandKind::Subshell(body) | CommandKind::Group(body) => lists(&[*body]),
            CommandKind::If { branches, otherwise } => {
                branches.iter().for_each(|(condition, body)| lists(&[*condition, *body]));
                otherwise.iter().for_each(|body| lists(&[*body]));
            }
            CommandKind::Loop { condition, body, .. } => lists(&[*condition, *body]),
            CommandKind::For { body, .. } | CommandKind::ArithmeticFor { body, .. } => lists(&[*body]),
            CommandKind::Case { arms, .. } => arms.iter().for_each(|(_, body)| lists(&[*body])),
            CommandKind::Function { body, .. } | CommandKind::Coproc(body) => {
                command(source, ast, *body, shape)
            }
            CommandKind::Test(_) | CommandKind::Arithmetic(_) => {}
        }
    }
    let mut shape = Vec::new();
    if let Some(root) = ast.root {
        list(source, ast, root, &mut shape);
    }
    shape
}

fn their_shape(nodes: &[Node]) -> Shape {
    fn node(given: &Node, shape: &mut Shape) {
        match &given.kind {
            NodeKind::Command { assignments, words, .. } => {
                let written = |word: &Node| match &word.kind {
                    NodeKind::Word { value, .. } => value.clone(),
                    other => format!("{other:?}"),
                };
                shape.push((assignments.len(), words.iter().map(written).collect()));
            }
            NodeKind::Pipeline { commands, .. } => commands.iter().for_each(|command| node(command, shape)),
            NodeKind::List { items } => items.iter().for_each(|item| node(&item.command, shape)),
            NodeKind::If { condition, then_body, else_body, .. } => {
                node(condition, shape);
                node(then_body, shape);
                else_body.iter().for_each(|body| node(body, shape));
            }
            NodeKind::While { condition, body, .. } | NodeKind::Until { condition, body, .. } => {
                node(condition, shape);
                node(body, shape);
            }
            NodeKind::For { body, .. }
            | NodeKind::ForArith { body, .. }
            | NodeKind::Select { body, .. }
            | NodeKind::Function { body, .. }
            | NodeKind::Subshell { body, .. }
            | NodeKind::BraceGroup { body, .. } => node(body, shape),
            NodeKind::Case { patterns, .. } => {
                patterns.iter().filter_map(|arm| arm.body.as_ref()).for_each(|body| node(body, shape));
            }
            NodeKind::Coproc { command, .. } => node(command, shape),
            NodeKind::Negation { pipeline } | NodeKind::Time { pipeline, .. } => node(pipeline, shape),
            _ => {}
        }
    }
    let mut shape = Vec::new();
    nodes.iter().for_each(|given| node(given, &mut shape));
    shape
}

#[test]
fn another_parser_sees_the_same_commands() {
    let commands = corpus();
    let limits = Limits::default();
    let mut compared = 0;
    let mut different = BTreeMap::new();
    for command in commands.iter().filter(|command| command.len() < 2_000) {
        let ast = parse(command, &limits);
        let Ok(nodes) = rable::parse(command, true) else { continue };
        if !ast.problems.is_empty() || is_index(command) {
            continue;
        }
        compared += 1;
        let (ours, theirs) = (our_shape(command, &ast), their_shape(&nodes));
        if ours != theirs {
            different.insert(command, (ours, theirs));
        }
    }
    // One in a thousand.
    assert!(different.len() * 1_000 <= compared, "{} of {compared}: {different:#?}", different.len());
}
