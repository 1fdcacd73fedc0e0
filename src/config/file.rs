//! The settings file, read into a tree that knows the line of every value.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess};
use serde_json::Value;
use serde_saphyr::Spanned;

use super::layer::Layers;
use super::source::Source;
use super::{FILE_NAME, Problem};
use crate::setting::system_problem;
use crate::text::yaml_problem;

/// A settings file is written by hand; what is larger than this is something else.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Lays the settings file over `layers`: the one of the flag, else the one of the environment, else
/// `portcullis.yaml` in `cwd`. Only the last may be missing.
pub(super) fn read(flag: Option<&Path>, env: Option<&Path>, cwd: &Path, layers: &mut Layers) {
    let (named, origin) = match (flag, env) {
        (Some(path), _) => (Some(path), "flag --config"),
        (None, Some(path)) => (Some(path), "env PORTCULLIS_CONFIG"),
        (None, None) => (None, "file"),
    };
    let shown = named.unwrap_or(Path::new(FILE_NAME)).display().to_string();
    let text = match read_text(&cwd.join(&shown)) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            return layers.problem(
                Problem::new("", format!("could not read `{shown}`: {}", system_problem(&error)))
                    .from(origin),
            );
        }
    };
    overlay(&shown, &text, layers);
}

fn read_text(path: &Path) -> io::Result<String> {
    let bytes = fs::metadata(path)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "it has {bytes} bytes, more than the limit of {FILE_BYTES_MAX}"
        )));
    }
    fs::read_to_string(path)
}

/// Lays the text of a settings file over `layers`; `shown` is its name in messages.
pub(super) fn overlay(shown: &str, text: &str, layers: &mut Layers) {
    // A file of comments alone holds no document, and that is no mistake.
    if text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#') || line == "---") {
        return;
    }
    // `log.level: off` is a word; only `true` and `false` are booleans.
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    match serde_saphyr::from_str_with_options::<Spanned<Node>>(text, options) {
        Ok(root) => overlay_node("", &root, shown, layers),
        Err(error) => {
            let line = error.location().map_or(0, |location| location.line());
            let source = Source::File { path: shown.to_owned(), line };
            layers.problem(
                Problem::new("", format!("not valid YAML: {}", yaml_problem(&error)))
                    .from(source.to_string()),
            );
        }
    }
}

fn overlay_node(key: &str, node: &Spanned<Node>, shown: &str, layers: &mut Layers) {
    let source = Source::File { path: shown.to_owned(), line: node.referenced.line() };
    if layers.has_leaf(key) {
        return layers.set(key, node.value.to_json(), source);
    }
    match &node.value {
        Node::Map(fields) => {
            for (name, child) in fields {
                let path = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                // A dot inside a name would reach a key by a way that a reader of the file does not see.
                if !name.contains('.') && (layers.has_leaf(&path) || layers.has_section(&path)) {
                    overlay_node(&path, child, shown, layers);
                } else {
                    let source = Source::File { path: shown.to_owned(), line: child.referenced.line() };
                    layers.unknown_key(&path, source.to_string());
                }
            }
        }
        // `server:` with nothing below it sets nothing.
        Node::Null => {}
        _ => {
            let names = layers.names_in(key).join(", ");
            let message = format!("expected a section with keys of {names}");
            layers.problem(Problem::new(key, message).from(source.to_string()));
        }
    }
}

/// A YAML value whose children know their lines.
enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Text(String),
    List(Vec<Spanned<Node>>),
    Map(Vec<(String, Spanned<Node>)>),
}

impl Node {
    fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::from(*value),
            Self::Int(value) => Value::from(*value),
            Self::Uint(value) => Value::from(*value),
            Self::Float(value) => Value::from(*value),
            Self::Text(value) => Value::from(value.as_str()),
            Self::List(items) => items.iter().map(|item| item.value.to_json()).collect(),
            Self::Map(fields) => {
                fields.iter().map(|(name, field)| (name.clone(), field.value.to_json())).collect()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> de::Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a section")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Uint(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = access.next_entry()? {
            fields.push(field);
        }
        Ok(Node::Map(fields))
    }
}
