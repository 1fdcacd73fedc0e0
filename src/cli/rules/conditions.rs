//! What a rule about commands, paths or bundles asks for, in words, read from its definition as it stands in its file.
//!
//! Nothing of a definition is passed over: a key that has no words here is told by its name.

use serde_json::Value;
use toml::Table;

use super::explain::Fact;
use crate::bundles::rules::BUNDLES;
use crate::tools::{COMMAND_SAFETY, PATH_AUDIT};

/// Keys that say what a finding is, and not when there is one.
const ABOUT: &[&str] = &[
    "id",
    "category",
    "severity",
    "confidence",
    "description",
    "recommendation",
    "fix",
    "references",
    "examples",
    "negative_examples",
    "known_misses",
];

/// A key with its heading and the words before its value.
type Words = (&'static str, &'static str, &'static str);

const OF_COMMANDS: &[Words] = &[
    ("effects", "effects", "one of: "),
    ("classes", "classes", "the target is in one of: "),
    ("not_classes", "not classes", "the target is in none of: "),
    ("target_kinds", "targets", "the target is one of: "),
    ("recursive", "recursive", "must be "),
    ("forced", "forced", "must be "),
    ("has_target", "has target", "must be "),
    ("programs", "programs", "done by one of: "),
    ("not_programs", "not by", "done by none of: "),
    ("details", "details", "one of: "),
    ("not_details", "not details", "none of: "),
    ("detail_pattern", "detail", "matches "),
    ("not_detail_pattern", "not detail", "does not match "),
    ("target_pattern", "target", "matches "),
    ("not_target_pattern", "not target", "does not match "),
    ("via", "via", "found through one of: "),
    ("not_via", "not via", "found through none of: "),
    ("with", "with", "the same command also does one of: "),
];

const OF_PATHS: &[Words] = &[("paths", "paths", "one of: "), ("except", "except", "none of: ")];

const OF_CALLS: &[Words] = &[
    ("of", "looks for", "calls of one of: "),
    ("taints", "taints", "on the arguments, one of: "),
    ("taints_min", "taints min", "so many of them differ: "),
    ("and_taints", "and taints", "on the arguments, also one of: "),
    ("not_taints", "not taints", "on the arguments, none of: "),
    ("text", "arguments", "their text matches "),
    ("not_text", "not text", "their text does not match "),
    ("hidden", "hidden", "the name of the function was put together: "),
    ("with", "with", "the file also holds all of: "),
    ("without", "without", "the file holds none of: "),
    ("keywords", "keywords", "named arguments: "),
    ("files", "files", "called one of: "),
    ("body", "body", "only what is sent counts, no headers and no credentials: "),
    ("foreign_secret", "secret", "one of a service goes to a host of another: "),
    ("query_secret", "in query", "a secret of the environment stands in the query of the address: "),
    ("argument", "argument", "only that of this place counts, from 0: "),
];

const OF_TEXTS: &[Words] = &[
    ("surfaces", "applies to", "texts of bundles: "),
    ("literals", "gate", "runs only near one of: "),
    ("near", "context", "near by, each matches: "),
    ("within", "window", "near by is, in bytes: "),
    ("unless", "exclusions", "not in a line that matches "),
];

const OF_FLOWS: &[Words] = &[("from", "looks for", "a value from one of: "), ("to", "to", "one of: ")];

/// The condition of one rule.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Told {
    /// In words.
    pub facts: Vec<Fact>,
    /// The pattern that is looked for, where it is one.
    pub pattern: Option<String>,
    /// The same as it is written.
    pub written: Value,
}

/// What a definition of a rule of `plugin` asks for; none for plugins whose rules are detectors of text.
pub(super) fn of(plugin: &str, definition: &Table) -> Option<Told> {
    let mut told = Told::default();
    let mut written = definition.clone();
    written.retain(|key, _| !ABOUT.contains(&key));
    match plugin {
        COMMAND_SAFETY => {
            told.facts
                .push(("applies to", "what a shell command would do, and scripts of bundles".to_owned()));
            told.put(&written, OF_COMMANDS, &[]);
        }
        PATH_AUDIT => {
            told.facts.push(("applies to", "paths that file tools and shell commands use".to_owned()));
            told.put(&written, OF_PATHS, &["file_tools", "shell", "allows_fixtures"]);
            told.put_uses(&written);
        }
        BUNDLES => told.put_bundle(&written),
        _ => return None,
    }
    told.written = serde_json::to_value(written).unwrap_or_default();
    Some(told)
}

impl Told {
    /// The keys of a table, those with words first and in their order; `passed` are told elsewhere.
    fn put(&mut self, table: &Table, words: &[Words], passed: &[&str]) {
        for (key, heading, before) in words {
            if let Some(value) = table.get(*key) {
                self.facts.push((heading, format!("{before}{}", shown(value))));
            }
        }
        let is_told = |key: &str| passed.contains(&key) || words.iter().any(|(known, ..)| *known == key);
        let others: Vec<String> = table
            .iter()
            .filter(|(key, _)| !is_told(key))
            .map(|(key, value)| format!("{key} = {}", shown(value)))
            .collect();
        if !others.is_empty() {
            self.facts.push(("also", others.join("; ")));
        }
    }

    /// Which uses of a path block and which warn. What is not given is as in the loader: everything blocks, and the
    /// shell is held to what file tools are.
    fn put_uses(&mut self, table: &Table) {
        let file_tools = table.get("file_tools").and_then(toml::Value::as_table);
        let shell = table.get("shell").and_then(toml::Value::as_table).or(file_tools);
        self.facts.push(("file tools", uses(file_tools)));
        self.facts.push(("shell", uses(shell)));
        if table.get("allows_fixtures").and_then(toml::Value::as_bool) == Some(true) {
            self.facts
                .push(("fixtures", "files of a project's tests and dependencies are left out".to_owned()));
        }
    }

    fn put_bundle(&mut self, table: &Table) {
        let of = |key: &str| table.get(key).and_then(toml::Value::as_table);
        if let Some(call) = of("call") {
            let where_ = "calls in Python and JavaScript of bundles; all of what follows holds of one call";
            self.facts.push(("applies to", where_.to_owned()));
            self.put(call, OF_CALLS, &[]);
        }
        if let Some(flow) = of("flow") {
            let where_ =
                "programs of bundles in other languages, in which a value goes from one to the other";
            self.facts.push(("applies to", where_.to_owned()));
            self.put(flow, OF_FLOWS, &[]);
        }
        if let Some(text) = of("text") {
            self.put(text, OF_TEXTS, &["pattern"]);
            self.pattern = text.get("pattern").and_then(toml::Value::as_str).map(str::to_owned);
        }
    }
}

/// What is done with a path, and what that asks for.
fn uses(accesses: Option<&Table>) -> String {
    let Some(accesses) = accesses else { return "every use blocks".to_owned() };
    let list = |key: &str| accesses.get(key).map(shown).filter(|list| !list.is_empty());
    let mut all: Vec<String> = Vec::new();
    all.extend(list("block").map(|list| format!("blocks: {list}")));
    all.extend(list("warn").map(|list| format!("warns: {list}")));
    if all.is_empty() {
        return "nothing is said".to_owned();
    }
    all.extend(list("warn_programs").map(|list| format!("no more than a warning by: {list}")));
    all.join("; ")
}

/// A value as a person reads it: lists with commas, texts as they are.
fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.trim().to_owned(),
        toml::Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        toml::Value::Table(table) => table
            .iter()
            .map(|(key, value)| format!("{key} = {}", shown(value)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_told_in_words() {
        for (plugin, definition, wanted) in [
            (
                COMMAND_SAFETY,
                "id = 'x'\neffects = ['delete_path', 'wipe']\nclasses = ['home']\nrecursive = true\ndetail_pattern = '^a'",
                &[
                    ("effects", "one of: delete_path, wipe"),
                    ("classes", "the target is in one of: home"),
                    ("recursive", "must be true"),
                    ("detail", "matches ^a"),
                ][..],
            ),
            (
                PATH_AUDIT,
                "paths = ['~/.x/**']\nexcept = ['*.y']\nshell = { block = ['read'], warn = ['write'], warn_programs = ['ls'] }\nallows_fixtures = true",
                &[
                    ("paths", "one of: ~/.x/**"),
                    ("except", "none of: *.y"),
                    ("file tools", "every use blocks"),
                    ("shell", "blocks: read; warns: write; no more than a warning by: ls"),
                    ("fixtures", "files of a project's tests and dependencies are left out"),
                ],
            ),
            // Without `shell` it is held to what file tools are.
            (
                PATH_AUDIT,
                "paths = ['/x']\nfile_tools = { warn = ['read'] }",
                &[("file tools", "warns: read"), ("shell", "warns: read")],
            ),
            (
                BUNDLES,
                "call = { of = ['send'], taints = ['a', 'b'], keywords = { shell = 'true' }, novel = 3 }",
                &[
                    ("looks for", "calls of one of: send"),
                    ("taints", "on the arguments, one of: a, b"),
                    ("keywords", "named arguments: shell = true"),
                    ("also", "novel = 3"),
                ],
            ),
            (
                BUNDLES,
                "flow = { from = ['secret'], to = ['send'] }",
                &[("looks for", "a value from one of: secret"), ("to", "one of: send")],
            ),
            (
                BUNDLES,
                "text = { surfaces = ['script'], pattern = 'p', near = ['q', 'r'], within = 9, literals = ['l'], unless = 'u' }",
                &[
                    ("applies to", "texts of bundles: script"),
                    ("gate", "runs only near one of: l"),
                    ("context", "near by, each matches: q, r"),
                    ("window", "near by is, in bytes: 9"),
                    ("exclusions", "not in a line that matches u"),
                ],
            ),
        ] {
            let definition: Table = definition.parse().expect("TOML");
            let told = of(plugin, &definition).expect("a rule of that kind");
            for (heading, text) in wanted {
                let fact = told.facts.iter().find(|(name, _)| name == heading);
                assert_eq!(fact.map(|(_, text)| text.as_str()), Some(*text), "{plugin} {heading}: {told:?}");
            }
            assert!(!told.written.as_object().expect("an object").contains_key("id"));
            let mut headings: Vec<_> = told.facts.iter().map(|(heading, _)| heading).collect();
            headings.sort_unstable();
            headings.dedup();
            assert_eq!(headings.len(), told.facts.len(), "JSON has each heading once: {told:?}");
        }
        assert_eq!(of("pii", &Table::new()), None);
    }
}
