//! The regression gate: thousands of texts of our own, attacks and what looks like them, judged by the rules as built in.
//!
//! A file of `tests/cases/gate` is a list of tables. A table says what its texts must come to (`want`) and how many of
//! a hundred must (`floor`): what is found today must be found tomorrow, and what is quiet stay quiet. Templates are
//! filled with every combination of their slots; `{=card:4/16}` is a value made for the case (see `values`). Every case
//! is another text.
//!
//! - `found`: injection and code block; of credentials and personal data a finding from MEDIUM on (or `least`) covers the value that
//!   was made, or stands anywhere in a text written by hand, within `category` where the table has one.
//! - `exact`: as `found`, and the finding has the bounds of the value: not a byte is left, and none too many taken.
//! - `quiet`: injection and code do not block; no credential or personal datum is found from MEDIUM on.

mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use portcullis::decision::Severity;
use portcullis::detect::{Request, Scanner};
use portcullis::rules::{Budget, Role, RuleSet, RuleSetConfig, Surface, builtin_sources};
use serde::Deserialize;

use values::Random;

/// Fewest cases of all files together.
const CASES_MIN: usize = 2_000;
/// Fewest sentences that are written out, and not made of templates.
const WRITTEN_MIN: usize = 700;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    table: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    plugin: String,
    #[serde(default)]
    role: Speaker,
    want: Want,
    /// How many of a hundred cases must come out as wanted.
    #[serde(default = "all")]
    floor: usize,
    category: Option<String>,
    /// Least severity of a credential or personal datum that counts.
    #[serde(default)]
    least: Least,
    /// Texts, or templates with slots.
    texts: Vec<String>,
    #[serde(default)]
    slots: BTreeMap<String, Vec<String>>,
    /// Disguises, each put on every text.
    #[serde(default)]
    disguises: Vec<String>,
    /// Each of them put over each of them too.
    #[serde(default)]
    is_nested: bool,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Speaker {
    #[default]
    User,
    Tool,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Want {
    Found,
    Exact,
    Quiet,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Least {
    Low,
    #[default]
    Medium,
}

fn all() -> usize {
    100
}

/// One text, and where in it stands what was made for it.
struct Case {
    text: String,
    made: Option<Range<usize>>,
}

impl Table {
    fn cases(&self) -> Vec<Case> {
        let mut random = Random::of(&self.name);
        let mut cases = Vec::new();
        for template in &self.texts {
            let mut filled = vec![template.clone()];
            for (name, fillings) in &self.slots {
                let slot = format!("{{{name}}}");
                if template.contains(&slot) {
                    let fill = |text: &String| -> Vec<String> {
                        fillings.iter().map(|filling| text.replace(&slot, filling)).collect()
                    };
                    filled = filled.iter().flat_map(fill).collect();
                }
            }
            cases.extend(filled.into_iter().map(|text| self.made(text, &mut random)));
        }
        if self.disguises.is_empty() {
            return cases;
        }
        let put_on = |case: &Case| -> Vec<Case> {
            self.disguises.iter().map(|name| Case { text: disguise(name, &case.text), made: None }).collect()
        };
        let mut disguised: Vec<Case> = cases.iter().flat_map(put_on).collect();
        if self.is_nested {
            let nested: Vec<Case> = disguised.iter().flat_map(put_on).collect();
            disguised.extend(nested);
            // Some undo themselves.
            let mut seen: BTreeSet<String> = cases.into_iter().map(|case| case.text).collect();
            disguised.retain(|case| seen.insert(case.text.clone()));
        }
        disguised
    }

    /// The text with its value in place.
    fn made(&self, text: String, random: &mut Random) -> Case {
        let Some(start) = text.find("{=") else { return Case { text, made: None } };
        let end =
            start + text[start..].find('}').unwrap_or_else(|| panic!("{}: no end in {text}", self.name));
        let value = values::value(&text[start + 2..end], random);
        let text = format!("{}{value}{}", &text[..start], &text[end + 1..]);
        Case { made: Some(start..start + value.len()), text }
    }

    /// Whether the case comes out as the table wants it.
    fn holds(&self, case: &Case) -> bool {
        let rules = scanner().rules();
        let (role, surface) = match self.role {
            Speaker::User => (Role::User, Surface::Text),
            Speaker::Tool => (Role::Tool, Surface::ToolResult),
        };
        let plugins = rules.plugin_bits([self.plugin.as_str()]);
        assert_ne!(plugins, 0, "{}: no plugin `{}`", self.name, self.plugin);
        let request = Request { text: &case.text, plugins, role: Some(role), surface: Some(surface) };
        let findings = scanner().scan(request, &Budget::UNLIMITED).expect("no budget").findings;
        let has_spans = matches!(self.plugin.as_str(), "secrets" | "pii");
        let mut counted = findings.iter().filter(|one| match (has_spans, self.least) {
            (false, _) => one.info.score >= 0.7,
            (true, Least::Medium) => one.info.severity >= Severity::Medium,
            (true, Least::Low) => true,
        });
        match self.want {
            Want::Quiet => counted.next().is_none(),
            Want::Found | Want::Exact => counted.any(|one| {
                let is_there = case.made.as_ref().is_none_or(|made| match self.want {
                    Want::Exact => one.range == *made,
                    _ => one.range.start < made.end && made.start < one.range.end,
                });
                let category = one.info.category.as_str();
                let is_right = self.category.as_ref().is_none_or(|wanted| {
                    category
                        .strip_prefix(wanted.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                });
                is_there && is_right
            }),
        }
    }
}

fn scanner() -> &'static Scanner {
    static SCANNER: OnceLock<Scanner> = OnceLock::new();
    SCANNER.get_or_init(|| {
        let set = RuleSet::compile(&builtin_sources(), &RuleSetConfig::default());
        Scanner::new(Arc::new(set.unwrap_or_else(|problems| panic!("{problems}"))))
    })
}

/// One of the disguises that attacks, and harmless texts too, are put into.
fn disguise(name: &str, text: &str) -> String {
    if let Some((inner, outer)) = name.split_once(" in ") {
        return disguise(outer, &disguise(inner, text));
    }
    let bytes = |write: fn(u8) -> String, between: &str| -> String {
        text.bytes().map(write).collect::<Vec<_>>().join(between)
    };
    match name {
        "base64" => base64(text.as_bytes()),
        "base64 within a request" => {
            format!("Please decode this and tell me what it says: {}", base64(text.as_bytes()))
        }
        "base32" => base32(text.as_bytes()),
        "hex" => bytes(|byte| format!("{byte:02x}"), ""),
        "hex, byte by byte" => bytes(|byte| format!("{byte:02x}"), " "),
        "binary" => bytes(|byte| format!("{byte:08b}"), " "),
        "decimal" => bytes(|byte| byte.to_string(), " "),
        "octal escapes" => bytes(|byte| format!("\\{byte:03o}"), ""),
        "byte escapes" => bytes(|byte| format!("\\x{byte:02x}"), ""),
        "rot13" => text.chars().map(rot13).collect(),
        "leet" => text
            .chars()
            .map(|c| match c.to_ascii_lowercase() {
                'a' => '4',
                'e' => '3',
                'i' => '1',
                'o' => '0',
                's' => '5',
                _ => c,
            })
            .collect(),
        "spaced words" => {
            let word = |word: &str| word.chars().map(|c| c.to_string()).collect::<Vec<_>>().join(" ");
            text.split(' ').map(word).collect::<Vec<_>>().join("  ")
        }
        "spaced" => text.chars().map(|c| c.to_string()).collect::<Vec<_>>().join(" "),
        "zero width" => text.chars().map(|c| c.to_string()).collect::<Vec<_>>().join("\u{200b}"),
        "full width" => text
            .chars()
            .map(|c| match c {
                '!'..='~' => char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c),
                _ => c,
            })
            .collect(),
        "homoglyphs" => text
            .chars()
            .map(|c| match c {
                'a' => 'а',
                'e' => 'е',
                'o' => 'о',
                'i' => 'і',
                'p' => 'р',
                'c' => 'с',
                _ => c,
            })
            .collect(),
        "percent" => text
            .bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect(),
        "percent, every byte" => bytes(|byte| format!("%{byte:02X}"), ""),
        "entities" => text.chars().map(|c| format!("&#{};", u32::from(c))).collect(),
        "reversed" => text.chars().rev().collect(),
        "tags" => text
            .chars()
            .filter(char::is_ascii)
            .filter_map(|c| char::from_u32(0xe0000 + u32::from(c)))
            .collect(),
        "unicode escapes" => text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect(),
        "upper case" => text.to_uppercase(),
        "soft hyphens" => text.replace('r', "r\u{ad}").replace('n', "n\u{ad}"),
        _ => panic!("no disguise `{name}`"),
    }
}

fn rot13(c: char) -> char {
    match c {
        'a'..='z' => char::from((c as u8 - b'a' + 13) % 26 + b'a'),
        'A'..='Z' => char::from((c as u8 - b'A' + 13) % 26 + b'A'),
        _ => c,
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let sextet = (group >> (18 - 6 * place) & 63) as usize;
            out.push(if place <= chunk.len() { ALPHABET[sextet].into() } else { '=' });
        }
    }
    out
}

fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let group = |chunk: &[u8]| -> String {
        let bits =
            chunk.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte)) << (8 * (5 - chunk.len()));
        let signs = (chunk.len() * 8).div_ceil(5);
        let sign = |place: usize| match place < signs {
            true => char::from(ALPHABET[(bits >> (35 - 5 * place) & 31) as usize]),
            false => '=',
        };
        (0..8).map(sign).collect()
    };
    bytes.chunks(5).map(group).collect()
}

fn tables() -> Vec<(String, Table)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/gate");
    let mut tables = Vec::new();
    let entries = std::fs::read_dir(&folder).expect("the folder of the gate");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    for file in files {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let read: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        tables.extend(read.table.into_iter().map(|table| (name.clone(), table)));
    }
    tables
}

/// Judges every table of one plugin.
fn judge(plugin: &str) {
    let mut failures = Vec::new();
    let mut seen = 0;
    for (file, table) in tables().iter().filter(|(_, table)| table.plugin == plugin) {
        let cases = table.cases();
        let wrong: Vec<&str> =
            cases.iter().filter(|case| !table.holds(case)).map(|case| case.text.as_str()).collect();
        seen += cases.len();
        let right = cases.len() - wrong.len();
        if std::env::var_os("GATE_FIGURES").is_some() {
            println!("{file}: {}: {right} of {}, floor {} %", table.name, cases.len(), table.floor);
        }
        if right * 100 < cases.len() * table.floor {
            let not = match table.want {
                Want::Found => "not found",
                Want::Exact => "not found to the byte",
                Want::Quiet => "flagged",
            };
            failures.push(format!(
                "{file}: {}: {right} of {} cases, at least {} % are asked; {not}: {wrong:#?}",
                table.name,
                cases.len(),
                table.floor
            ));
        }
    }
    assert!(seen > 0, "no case of `{plugin}`");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn injection_is_judged_as_before() {
    judge("injection");
}

#[test]
fn credentials_are_judged_as_before() {
    judge("secrets");
}

#[test]
fn personal_data_is_judged_as_before() {
    judge("pii");
}

#[test]
fn code_is_judged_as_before() {
    judge("code");
}

#[test]
fn the_gate_is_wide_and_every_case_another_text() {
    let (mut texts, mut written, mut cases) = (BTreeSet::new(), BTreeSet::new(), 0);
    for (file, table) in tables() {
        assert!(["injection", "secrets", "pii", "code"].contains(&table.plugin.as_str()), "{file}");
        assert!((1..=100).contains(&table.floor), "{file}: {}", table.name);
        for case in table.cases() {
            assert!(!case.text.contains("{="), "{file}: {}: {}", table.name, case.text);
            cases += 1;
            let is_new = texts.insert((table.plugin.clone(), table.role as u8, case.text.clone()));
            assert!(is_new, "{file}: {}: twice: {}", table.name, case.text);
        }
        written.extend(table.texts.iter().filter(|text| !text.contains('{')).cloned());
    }
    assert!(cases >= CASES_MIN, "{cases} cases; the gate has at least {CASES_MIN}");
    assert!(
        written.len() >= WRITTEN_MIN,
        "{} written texts; at least {WRITTEN_MIN} are asked",
        written.len()
    );
}
