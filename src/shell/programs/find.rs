//! `find` and `fd`: what is deleted, printed to files and run for what is found.

use super::super::argument::{Argument, HOLE};
use super::super::effect::EffectKind;
use super::Attributes;
use super::call::{Call, below, join, path_target, word};
use super::options::Grammar;

/// Tests that take one argument and narrow what is found.
const NARROWING: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-lname",
    "-ilname",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-anewer",
    "-cnewer",
    "-size",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-perm",
    "-links",
    "-inum",
    "-samefile",
    "-used",
    "-fstype",
    "-context",
    "-newermt",
    "-newerct",
    "-newerat",
    "-Bmin",
    "-Btime",
    "-newerBt",
];

/// Tests and options that take one argument and narrow nothing that matters.
const OTHER: &[&str] =
    &["-maxdepth", "-mindepth", "-type", "-xtype", "-regextype", "-printf", "-files0-from", "-D"];

/// Tests without an argument that narrow.
const NARROWING_FLAGS: &[&str] =
    &["-empty", "-nouser", "-nogroup", "-readable", "-writable", "-executable", "-false"];

/// A parsed expression.
#[derive(Default)]
struct Expression<'a> {
    narrowed: bool,
    /// Whether it leaves out files of one name.
    spares: bool,
    only_empty: bool,
    names: Vec<&'a Argument>,
    paths: Vec<&'a Argument>,
    deletes: bool,
    /// Whether programs are asked for that run with the rights of their owner.
    setuid: bool,
    written: Vec<&'a Argument>,
    commands: Vec<(&'a [Argument], &'static str)>,
}

impl Expression<'_> {
    /// The expression as it stands for one root. Of the whole tree, all but some name is as good as all.
    fn under(mut self, root: &Argument) -> Self {
        self.narrowed |= self.spares && root.text != "/";
        self
    }
}

/// What `find` prints, as far as it is known: its first root, or something below it. `None` when it prints nothing of
/// that kind.
pub(super) fn output(arguments: &[Argument]) -> Option<Argument> {
    let (roots, expression) = split(arguments);
    let prints = expression
        .iter()
        .any(|a| matches!(a.text.as_str(), "-printf" | "-exec" | "-execdir" | "-ls" | "-delete" | "-quit"));
    let here = Argument::constant(".", 0..0);
    let root = roots.first().unwrap_or(&here);
    if prints {
        return None;
    }
    let all = found(root, &parse(expression).under(root));
    let mut path = match is_private(root) {
        true => {
            let lines: Vec<&str> = all.iter().map(|path| path.text.as_str()).collect();
            all.first()?.with_text(lines.join("\n"))
        }
        false => all.into_iter().next()?,
    };
    if expression.iter().any(|a| a.text == "-print0") {
        // What is not known is written as what ends a name here.
        path.text = path.text.replace(HOLE, "*");
    }
    Some(path)
}

/// `find`.
pub(super) fn find(call: &mut Call<'_, '_>) {
    let (roots, expression) = split(call.arguments());
    let here = Argument { text: ".".to_owned(), ..Argument::default() };
    let mut roots: Vec<&Argument> = roots.iter().filter(|root| !root.text.is_empty()).collect();
    if roots.is_empty() {
        roots.push(&here);
    }
    let mut expression = parse(expression);
    let is_narrowed = expression.narrowed;
    for root in roots {
        expression.narrowed = is_narrowed;
        expression = expression.under(root);
        act(call, root, &expression);
    }
    for path in expression.written {
        call.write(path, "find");
    }
}

/// Where `find` begins, and its expression.
fn split(arguments: &[Argument]) -> (&[Argument], &[Argument]) {
    let mut at = 0;
    while let Some(text) = arguments.get(at).map(|a| a.text.as_str()) {
        match text {
            "-H" | "-L" | "-P" => at += 1,
            "-D" => at += 2,
            _ if text.starts_with("-O") => at += 1,
            _ => break,
        }
    }
    let arguments = arguments.get(at..).unwrap_or_default();
    let begins = |a: &Argument| a.text.starts_with('-') || matches!(a.text.as_str(), "(" | ")" | "!" | ",");
    let end = arguments.iter().position(begins).unwrap_or(arguments.len());
    arguments.split_at(end)
}

fn parse(arguments: &[Argument]) -> Expression<'_> {
    let mut expression = Expression::default();
    let mut negated = false;
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        let next = arguments.get(at + 1);
        let text = argument.text.as_str();
        at += 1;
        match text {
            "!" | "-not" => {
                negated = !negated;
                continue;
            }
            "-delete" => expression.deletes = true,
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = &arguments[at..];
                // A bare `;` was eaten by the shell; a `+` counts only behind `{}`.
                let ends = |(i, a): (usize, &Argument)| {
                    a.text == ";" || (a.text == "+" && i > 0 && rest[i - 1].text == "{}")
                };
                let length = rest.iter().enumerate().position(|(i, a)| ends((i, a))).unwrap_or(rest.len());
                let via = if text.starts_with("-exec") { "find -exec" } else { "find -ok" };
                expression.commands.push((&rest[..length], via));
                at += (length + 1).min(rest.len());
            }
            "-fprint" | "-fprint0" | "-fls" => {
                expression.written.extend(next);
                at += 1;
            }
            "-fprintf" => {
                expression.written.extend(next);
                at += 2;
            }
            _ if NARROWING.contains(&text) => {
                at += 1;
                let is_name = matches!(text, "-name" | "-iname");
                if negated && is_name && next.is_some_and(|n| !n.text.contains(['*', '?', '['])) {
                    expression.spares = true;
                } else if negated {
                    expression.narrowed |= next.is_some_and(|n| n.text != "." && n.text != "/");
                } else if let Some(next) = next {
                    expression.narrowed |= !matches_all(text, next);
                    match text {
                        "-perm" => expression.setuid |= is_setuid(&next.text),
                        "-name" | "-iname" => expression.names.push(next),
                        "-path" | "-ipath" | "-wholename" | "-iwholename" => expression.paths.push(next),
                        _ => {}
                    }
                }
            }
            _ if OTHER.contains(&text) => at += 1,
            _ if NARROWING_FLAGS.contains(&text) => {
                expression.narrowed = true;
                expression.only_empty |= text == "-empty" && !negated;
            }
            _ => {}
        }
        negated = false;
    }
    expression
}

/// Whether a mode asks for the setuid or the setgid bit: `-4000`, `/6000`, `u+s`.
fn is_setuid(mode: &str) -> bool {
    let bits = mode.trim_start_matches(['-', '/', '+']);
    match u32::from_str_radix(bits, 8) {
        Ok(bits) => bits & 0o6000 != 0,
        Err(_) => bits.split(',').any(|part| {
            part.split_once(['+', '='])
                .is_some_and(|(who, what)| who.contains(['u', 'g', 'a']) && what.contains('s'))
        }),
    }
}

/// Whether a test lets everything pass, as `-name '*'` and `-size +0` do.
fn matches_all(test: &str, value: &Argument) -> bool {
    let text = value.text.as_str();
    match test {
        "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-iwholename" => {
            matches!(text, "*" | "**" | "*.*" | "/*")
        }
        "-regex" | "-iregex" => matches!(text, ".*" | ".+"),
        "-size" => matches!(text, "+0" | "-9999999" | "+-1"),
        "-mtime" | "-atime" | "-ctime" | "-mmin" | "-amin" | "-cmin" => {
            matches!(text, "+-1" | "-99999" | "+0")
        }
        _ => false,
    }
}

/// What stands for `{}`: the folder itself when nothing narrows, else something below it with the names that are asked for.
fn found(root: &Argument, expression: &Expression<'_>) -> Vec<Argument> {
    if !expression.narrowed {
        // A folder that programs keep to themselves: what lies in it matters more than the folder.
        return if is_private(root) { vec![root.clone(), below(root)] } else { vec![root.clone()] };
    }
    let mut all: Vec<Argument> = Vec::new();
    for path in &expression.paths {
        let mut path = word(&path.text, path);
        path.has_glob = true;
        all.push(path);
    }
    for name in &expression.names {
        let mut path = join(&below(root), &name.text);
        path.has_glob = name.text.contains(['*', '?', '[']);
        all.push(path);
    }
    if all.is_empty() {
        all.push(below(root));
    }
    // A script may test for a thousand names; that it deletes or reads is told by the first few.
    all.truncate(16);
    all
}

/// Whether a folder is, or lies in, one that is hidden: `~/.ssh`.
fn is_private(root: &Argument) -> bool {
    root.text.split('/').any(|part| part.len() > 2 && part.starts_with('.') && part != ".git")
}

fn act(call: &mut Call<'_, '_>, root: &Argument, expression: &Expression<'_>) {
    if expression.deletes {
        let detail = match (expression.only_empty, expression.narrowed) {
            (true, _) => "empty",
            (false, true) => "filtered",
            (false, false) => "",
        };
        call.delete(root, true, true, detail);
    }
    for (command, via) in &expression.commands {
        for path in found(root, expression) {
            let argv: Vec<Argument> = command.iter().map(|argument| fill(argument, &path)).collect();
            call.run(&argv, via);
        }
    }
    if expression.setuid && !expression.deletes {
        let attributes =
            Attributes { recursive: true, forced: false, detail: "find -perm setuid".to_owned() };
        call.effect(EffectKind::SearchFiles, Some(path_target(root)), attributes);
    }
    if !expression.deletes {
        for name in &expression.names {
            let detail = format!("find {}", name.text.to_ascii_lowercase());
            let attributes = Attributes { recursive: true, forced: false, detail };
            call.effect(EffectKind::SearchFiles, Some(path_target(root)), attributes);
        }
    }
}

/// An argument of the command with every `{}` replaced.
fn fill(argument: &Argument, path: &Argument) -> Argument {
    if !argument.text.contains("{}") {
        return argument.clone();
    }
    Argument {
        text: argument.text.replace("{}", &path.text),
        has_glob: argument.has_glob || path.has_glob,
        ..argument.clone()
    }
}

const FD: Grammar = Grammar {
    short_values: "dtegESojcx",
    short_attached: "",
    long: &[
        "max-depth=",
        "min-depth=",
        "exact-depth=",
        "type=",
        "extension=",
        "exclude=",
        "size=",
        "changed-within=",
        "changed-before=",
        "owner=",
        "threads=",
        "color=",
        "search-path=",
        "base-directory=",
        "format=",
        "and=",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

/// `fd`: `-x` and `-X` run a command for what is found.
pub(super) fn fd(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let Some(at) =
        arguments.iter().position(|a| matches!(a.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"))
    else {
        return;
    };
    let options = super::options::Options::parse(&arguments[..at], &FD);
    let narrowed =
        options.operands.first().is_some_and(|pattern| !matches!(pattern.text.as_str(), "" | "." | ".*"))
            || options.has(&["e", "extension", "S", "size", "changed-within", "changed-before", "owner"]);
    let here = Argument { text: ".".to_owned(), ..Argument::default() };
    let root = options.operands.get(1).copied().unwrap_or(&here);
    let path = if narrowed { below(root) } else { root.clone() };
    let rest = &arguments[at + 1..];
    let end = rest.iter().position(|a| a.text == ";").unwrap_or(rest.len());
    let mut command: Vec<Argument> = rest[..end].iter().map(|argument| fill(argument, &path)).collect();
    if !rest[..end].iter().any(|a| a.text.contains('{')) && !command.is_empty() {
        command.push(path);
    }
    call.run(&command, "fd -x");
}
