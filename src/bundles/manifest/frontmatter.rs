//! The YAML at the head of a document.

use serde_json::{Map, Value};

use crate::text::yaml_problem;

/// Longest front matter, in bytes.
const BYTES_MAX: usize = 64 << 10;
const NODES_MAX: usize = 10_000;
const DEPTH_MAX: usize = 32;
const ALIASES_MAX: usize = 64;
/// Brackets of one line that may be meant as text.
const BRACKETS_MAX: usize = 8;

/// The front matter of a document.
#[derive(Debug)]
pub(in crate::bundles) struct FrontMatter {
    /// Its fields.
    pub fields: Map<String, Value>,
    /// Where the text behind it begins, in bytes.
    pub body: usize,
    /// Whether it is no YAML and was read by quoting what stands behind the names.
    pub is_repaired: bool,
}

/// Reads the front matter of a document; `None` when it has none.
///
/// # Errors
/// The line, from 1, and what is wrong there.
pub(in crate::bundles) fn front_matter(text: &str) -> Result<Option<FrontMatter>, (u32, String)> {
    let Some(range) = yaml_range(text)? else { return Ok(None) };
    let (yaml, body) = (&text[range.0..range.1], range.2);
    if yaml.len() > BYTES_MAX {
        return Err((1, format!("the front matter has {} bytes, more than {BYTES_MAX}", yaml.len())));
    }
    let (value, is_repaired) = match read_yaml(yaml) {
        Ok(value) => (value, false),
        Err(error) => match repaired(yaml).and_then(|yaml| read_yaml(&yaml).ok()) {
            Some(value) => (value, true),
            // The first line is that of the dashes.
            None => return Err((error.0 + 1, error.1)),
        },
    };
    match value {
        Value::Object(fields) => Ok(Some(FrontMatter { fields, body, is_repaired })),
        Value::Null => Ok(Some(FrontMatter { fields: Map::new(), body, is_repaired })),
        _ => Err((2, "the front matter is no list of names and values".to_owned())),
    }
}

/// Start and end of the YAML, and where the text behind it begins.
type YamlRange = (usize, usize, usize);

/// Where the YAML stands, if there is some.
fn yaml_range(text: &str) -> Result<Option<YamlRange>, (u32, String)> {
    let skipped = text.len() - text.trim_start_matches(['\u{feff}', '\n', '\r']).len();
    let rest = &text[skipped..];
    let Some(first) = rest.split_inclusive('\n').next().filter(|line| line.trim_end() == "---") else {
        return Ok(None);
    };
    let start = skipped + first.len();
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            return Ok(Some((start, at, at + line.len())));
        }
        at += line.len();
    }
    Err((1, "the front matter is not closed by a line `---`".to_owned()))
}

/// Reads YAML under a budget.
///
/// # Errors
/// The line, from 1, and what is wrong there.
pub(in crate::bundles) fn read_yaml(yaml: &str) -> Result<Value, (u32, String)> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_events: 4 * NODES_MAX,
            max_total_scalar_bytes: 1 << 20,
            max_aliases: ALIASES_MAX,
            max_anchors: ALIASES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: NODES_MAX,
            max_replay_stack_depth: DEPTH_MAX,
        },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options::<Value>(yaml, options).map_err(|error| {
        let line = error.location().map_or(0, |at| at.line() as u32);
        // The place is told in a field of its own, in lines of the file.
        (line, yaml_problem(&error))
    })
}

/// The same with values quoted that hold a colon or begin with a bracket, as many writers forget to. Clients read such
/// documents line by line. `None` when nothing can be mended.
fn repaired(yaml: &str) -> Option<String> {
    let (mut out, mut is_changed) = (String::with_capacity(yaml.len() + 16), false);
    for line in yaml.lines() {
        let quoted = line.split_once(": ").and_then(|(key, value)| {
            let is_key =
                !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
            let value = value.trim();
            let is_plain = !value.starts_with(['"', '\'', '|', '>', '&', '*', '!', '{', '%']);
            let is_open = value.contains(": ") || value.ends_with(':') || value.contains(" #");
            // A list with something behind it: `[file] [options]`.
            let is_list = value.starts_with('[') && !matches!(key, "name" | "description");
            // Nobody means so many brackets as text.
            let is_list = is_list && value.matches('[').count() <= BRACKETS_MAX;
            let is_broken = is_open && !value.starts_with('[')
                || is_list && value.matches('[').count() != 1
                || is_list && !value.ends_with(']')
                || value.starts_with(['@', '`']);
            (is_key && is_plain && is_broken)
                .then(|| format!("{key}: \"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")))
        });
        is_changed |= quoted.is_some();
        out.push_str(quoted.as_deref().unwrap_or(line));
        out.push('\n');
    }
    is_changed.then_some(out)
}
