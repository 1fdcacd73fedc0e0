//! Documents: blocks of commands, code and settings in them, commands that run when they are loaded, and what their text
//! tells to run.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::{Scan, carried, code, config, flow, page, run, shell, unit, unseen};

mod front;
use crate::bundles::code::Language;
use crate::bundles::manifest;
use crate::bundles::work::Task;
use crate::shell::foreign::{self, Foreign};

/// Largest document whose structure is read, in bytes. Larger ones are read as text alone, and line by line.
const STRUCTURE_BYTES_MAX: usize = 512 << 10;
/// Most blocks and pieces of code in one document that are looked at one by one.
const BLOCKS_MAX: usize = 2_000;
/// Programs that a line of text may begin with to be a command.
const PROGRAMS: &[&str] = &[
    "curl",
    "wget",
    "bash",
    "sh",
    "zsh",
    "sudo",
    "nc",
    "ncat",
    "eval",
    "rm",
    "echo",
    "base64",
    "chmod",
    "python",
    "python3",
    "node",
    "perl",
    "ruby",
    "powershell",
    "pwsh",
    "iwr",
    "iex",
    "osascript",
    "crontab",
    "cat",
    "tar",
    "scp",
    "ssh",
    "dd",
    "mkfifo",
    "socat",
    "export",
    "env",
    "printenv",
    "git",
    "npx",
    "npm",
    "pip",
    "pip3",
    "uvx",
    "docker",
];

/// What a block of code in a document is written in.
enum Block {
    Shell,
    /// For a shell with a grammar of its own.
    Foreign(Foreign),
    /// Runs when the document is loaded.
    Loaded,
    Code(Language),
    Json,
    Yaml,
    Toml,
    /// In another language, by the name that it is marked with.
    Script(String),
    /// A document in the document.
    Markdown,
    /// Not said.
    Unmarked,
    Other,
}

impl Block {
    fn of(info: &str) -> Self {
        let name = info.split([' ', ',', '{', ':', '\t']).next().unwrap_or_default().to_ascii_lowercase();
        match name.as_str() {
            "!" => Self::Loaded,
            "bash" | "sh" | "shell" | "zsh" | "console" | "terminal" | "shell-session" | "shellscript"
            | "ksh" | "command" | "commandline" | "cli" | "dockerfile" => Self::Shell,
            "fish" | "nu" | "elvish" | "xonsh" => {
                Foreign::of_program(&name).map_or(Self::Other, Self::Foreign)
            }
            "nushell" => Self::Foreign(Foreign::Nu),
            "xsh" => Self::Foreign(Foreign::Xonsh),
            "python" | "py" | "python3" => Self::Code(Language::Python),
            "javascript" | "js" | "typescript" | "ts" | "jsx" | "tsx" | "mjs" | "node" => {
                Self::Code(Language::JavaScript)
            }
            "json" | "jsonc" | "json5" => Self::Json,
            "yaml" | "yml" => Self::Yaml,
            "toml" | "ini" | "gitconfig" | "cfg" | "conf" | "properties" => Self::Toml,
            "powershell" | "ps1" | "pwsh" | "cmd" | "bat" | "batch" | "ruby" | "rb" | "perl" | "php"
            | "lua" | "go" | "golang" | "rust" | "applescript" | "vbscript" | "csharp" | "cs" | "java"
            | "c" | "cpp" | "kotlin" | "kt" | "scala" | "groovy" | "swift" | "dart" | "r" | "elixir"
            | "julia" | "nim" | "rs" | "c#" | "pl" => Self::Script(name),
            "markdown" | "md" | "mdx" => Self::Markdown,
            "" | "text" | "txt" | "plaintext" => Self::Unmarked,
            _ => Self::Other,
        }
    }
}

/// Markdown, with its front matter.
pub(super) fn markdown(scan: &mut Scan<'_, '_>) {
    if !scan.may(Task::Structure, scan.text.len()) {
        return;
    }
    scan.engine("markdown");
    let mut body = 0;
    if let Ok(Some(front)) = manifest::front_matter(scan.text) {
        body = front.body;
        let fields = serde_json::Value::Object(front.fields);
        config::front_matter(scan, &fields);
        front::texts(scan, &fields, body);
    }
    loaded_commands(scan);
    unseen::scan(scan);
    carried::scan(scan);
    if scan.text.len() > STRUCTURE_BYTES_MAX {
        prose(scan);
        return;
    }
    page::commands(scan);
    let text = scan.text;
    structure(scan, &text[body..], Some(body), &|scan, at| scan.lines.line_of(body + at));
}

/// The blocks, the pieces of code and the lines of a text of the document. `line_of` tells in which line of the file a place
/// of the text stands; `base` is where the text begins in the file, if it stands there as it is.
fn structure(
    scan: &mut Scan<'_, '_>,
    text: &str,
    base: Option<usize>,
    line_of: &dyn Fn(&Scan<'_, '_>, usize) -> u32,
) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut open: Option<(Block, Range<usize>, String)> = None;
    let mut blocks = Vec::new();
    let mut inline = Vec::new();
    let mut plain: Vec<Range<usize>> = Vec::new();
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let block = match &kind {
                    CodeBlockKind::Fenced(info) => Block::of(info),
                    CodeBlockKind::Indented => Block::Unmarked,
                };
                open = Some((block, range.end..range.end, String::new()));
            }
            Event::Text(piece) => match &mut open {
                Some((_, place, content)) => {
                    place.start = place.start.min(range.start);
                    content.push_str(&piece);
                }
                None => plain.push(range),
            },
            Event::End(TagEnd::CodeBlock) => {
                if let Some((block, place, content)) = open.take().filter(|_| blocks.len() < BLOCKS_MAX) {
                    blocks.push((block, place.start, content));
                }
            }
            Event::Code(content) if inline.len() < BLOCKS_MAX => {
                inline.push((range.start, content.into_string()))
            }
            _ => {}
        }
    }
    for (block, start, content) in blocks {
        let line = line_of(scan, start);
        self::block(scan, &block, &content, line);
    }
    inline.extend(barred_code(text).take(BLOCKS_MAX));
    for (start, content) in inline {
        run::note(scan, &content);
        // A line for a table of cron.
        let scheduled = unit::scheduled(&content).filter(|command| is_command(command));
        let content = scheduled.unwrap_or(&content);
        if content.trim().contains(' ') && is_command(content) {
            let line = line_of(scan, start);
            scan.inline = base.map(|base| base + start);
            shell::script(scan, content, line, shell::Place::Prose);
            scan.inline = None;
        }
    }
    let mut last = u32::MAX;
    for range in plain {
        let line = line_of(scan, range.start);
        if std::mem::replace(&mut last, line) != line {
            plain_line(scan, &text[range.start..], line);
        }
    }
}

/// Code in rows of tables with a bar that is not escaped: a renderer ends the cell there, and whoever reads the text does not.
fn barred_code(text: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        at += line.len();
        (at - line.len(), line)
    });
    let rows = lines.filter(|(_, line)| line.trim_start().starts_with('|') && line.contains('`'));
    rows.flat_map(|(start, line)| {
        let mut begin = start;
        line.split('`').enumerate().filter_map(move |(nth, piece)| {
            let here = begin;
            begin += piece.len() + 1;
            let is_barred = nth % 2 == 1 && piece.replace("\\|", "").contains('|');
            is_barred.then(|| (here.saturating_sub(1), piece.replace("\\|", "|")))
        })
    })
}

/// A text of another form: its lines.
pub(super) fn prose(scan: &mut Scan<'_, '_>) {
    for (line, content) in (1..).zip(scan.text.split_inclusive('\n')) {
        // A text may be hardly more than ends of lines.
        if content != "\n" {
            plain_line(scan, content, line);
        }
    }
}

/// The first line of a text, where it is a command as a whole.
fn plain_line(scan: &mut Scan<'_, '_>, text: &str, line: u32) {
    let rest = text.split('\n').next().unwrap_or_default().trim();
    let rest = rest.trim_start_matches(['$', '>', '%', '-', '*', ' ']);
    // Only what could be dangerous is worth following.
    let has_sign = || {
        ["|", ";", "&&", "$(", "`", ">", "/dev/", "http", "rm ", "~/"].iter().any(|sign| rest.contains(sign))
    };
    if is_command(rest) && has_sign() {
        shell::script(scan, rest, line, shell::Place::Prose);
    }
}

pub(super) fn is_command(text: &str) -> bool {
    let text = text.trim_start_matches(['$', ' ', '#']);
    // Names of programs are in lower case; a path may stand before one.
    if !text.starts_with(|c: char| c.is_ascii_lowercase() || matches!(c, '/' | '.' | '~')) {
        return false;
    }
    let word = text.split([' ', '\t']).next().unwrap_or_default();
    PROGRAMS.contains(&word.rsplit('/').next().unwrap_or(word))
}

fn block(scan: &mut Scan<'_, '_>, block: &Block, content: &str, line: u32) {
    match block {
        Block::Loaded => {
            scan.engine("shell");
            scan.can("command_at_load", line, content.trim());
            shell::script(scan, content, line, shell::Place::Script);
        }
        Block::Shell => {
            scan.engine("shell");
            shell::script(scan, &without_prompts(content), line, shell::Place::Fence);
            scan.patterns_in_block("script", content, line);
        }
        Block::Foreign(shell) => {
            scan.engine("shell");
            if *shell == Foreign::Xonsh {
                code::code(scan, Language::Python, &foreign::python(content), line, false);
            }
            shell::script(scan, &shell.posix(&without_prompts(content)), line, shell::Place::Fence);
            scan.patterns_in_block("script", content, line);
        }
        Block::Unmarked => {
            if content.lines().any(is_command) {
                shell::script(scan, &without_prompts(content), line, shell::Place::Prose);
            }
            scan.patterns_in_block("script", content, line);
        }
        Block::Code(language) => {
            code::code(scan, *language, content, line, false);
            scan.patterns_in_block("script", content, line);
            stray_commands(scan, content, line);
        }
        Block::Markdown => inner_blocks(scan, content, line),
        Block::Script(mark) => {
            flow::block(scan, mark, content, line);
            scan.patterns_in_block("script", content, line);
        }
        Block::Json => {
            config::json_block(scan, content, line);
            scan.patterns_in_block("config", content, line);
        }
        Block::Yaml => {
            config::yaml_block(scan, content, line);
            scan.patterns_in_block("config", content, line);
        }
        Block::Toml => scan.patterns_in_block("config", content, line),
        Block::Other => {}
    }
}

/// Commands amid code of another language: a block that is labelled wrongly is run as it stands all the same.
fn stray_commands(scan: &mut Scan<'_, '_>, content: &str, line: u32) {
    for (below, text) in (0..).zip(content.lines()).take(BLOCKS_MAX) {
        let text = text.trim();
        let is_fetch = ["curl ", "wget ", "sudo ", "bash "].iter().any(|start| text.starts_with(start));
        if is_fetch && text.contains(['|', '<']) {
            shell::script(scan, text, line + below, shell::Place::Fence);
        }
    }
}

/// The blocks of a document that is shown in a document: whoever follows the outer one copies or runs them.
fn inner_blocks(scan: &mut Scan<'_, '_>, content: &str, line: u32) {
    let mut open: Option<(Block, Option<usize>, String)> = None;
    for (event, range) in Parser::new(content).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                open = Some((Block::of(&info), None, String::new()));
            }
            Event::Text(piece) => {
                if let Some((_, start, text)) = &mut open {
                    start.get_or_insert(range.start);
                    text.push_str(&piece);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                let Some((inner, Some(start), text)) = open.take() else { continue };
                if !matches!(inner, Block::Markdown) {
                    let below = memchr::memchr_iter(b'\n', &content.as_bytes()[..start]).count() as u32;
                    block(scan, &inner, &text, line + below);
                }
            }
            _ => {}
        }
    }
}

/// A session without its prompts; what the programs printed stays, and is no command.
fn without_prompts(text: &str) -> String {
    let has_prompts = text.lines().any(|line| line.starts_with("$ "));
    let mut out = String::with_capacity(text.len());
    let mut goes_on = false;
    for line in text.lines() {
        let command = line.strip_prefix("$ ").or_else(|| (goes_on || !has_prompts).then_some(line));
        goes_on = command.is_some_and(|command| command.ends_with('\\'));
        out.push_str(command.unwrap_or_default());
        out.push('\n');
    }
    out
}

/// Commands that a client runs when it loads the document: `` !`command` ``.
fn loaded_commands(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    for (at, _) in text.match_indices("!`").take(BLOCKS_MAX) {
        let is_start = text[..at]
            .chars()
            .next_back()
            .is_none_or(|c| c.is_whitespace() || matches!(c, ':' | '(' | '*' | '-'));
        let inner = text[at + 2..].split(['`', '\n']).next().unwrap_or_default();
        if is_start && !inner.trim().is_empty() {
            let line = scan.lines.line_of(at);
            scan.engine("shell");
            scan.can("command_at_load", line, inner);
            shell::command(scan, inner, line);
        }
    }
}
