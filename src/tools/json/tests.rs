use std::collections::BTreeSet;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    parse: Vec<Parse>,
    merge: Vec<Merge>,
    set: Vec<Set>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parse {
    text: String,
    #[serde(default)]
    object: bool,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Merge {
    from: String,
    patch: String,
    to: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    from: String,
    path: String,
    value: String,
    to: Option<String>,
    error: Option<String>,
}

fn cases() -> Cases {
    toml::from_str(include_str!("../../../tests/cases/tools/json.toml")).expect("cases are valid")
}

fn read(text: &str) -> Result<Document<'_>, JsonError> {
    Document::parse(text, Duplicates::Keep)
}

fn object(text: &str) -> Document<'_> {
    Document::parse_object(text).expect("an object")
}

#[test]
fn reads_and_refuses() {
    for case in cases().parse {
        let got = if case.object { Document::parse_object(&*case.text) } else { read(&case.text) };
        match (got, case.error) {
            (Ok(document), None) => assert_eq!(document.text(), case.text),
            (Err(error), Some(wanted)) => assert_eq!(error.to_string(), wanted, "{}", case.text),
            (got, wanted) => panic!("{}: {got:?}, wanted {wanted:?}", case.text),
        }
    }
}

#[test]
fn merges() {
    for Merge { from, patch, to } in cases().merge {
        assert_eq!(object(&from).merge(&object(&patch)), to, "{from} + {patch}");
    }
}

#[test]
fn sets() {
    for Set { from, path, value, to, error } in cases().set {
        let member = Member::parse(&path).expect("a path");
        let set = object(&from).set(&member, &value).map_err(|e| e.to_string());
        assert_eq!(set, error.map_or(Ok(to), Err), "{from} {path}");
    }
    for path in ["", ".", "a.", ".a", "a..b", &"a.".repeat(200)] {
        assert!(Member::parse(path).is_err(), "{path}");
    }
}

#[test]
fn depth_is_an_error_and_no_crash() {
    let at = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(read(&at(DEPTH_MAX)).is_ok());
    for depth in [DEPTH_MAX + 1, 10_000, 1_000_000] {
        assert_eq!(
            read(&at(depth)).err(),
            Some(JsonError::TooDeep { line: 1, column: DEPTH_MAX as u32 + 1 })
        );
        let members = "{\"a\":".repeat(depth);
        assert!(matches!(read(&members), Err(JsonError::TooDeep { .. })));
    }
}

#[test]
fn long_texts_are_read_in_linear_time() {
    let long = format!("{{\"a\":\"{}\",\"b\":[{}1]}}", "x\\n".repeat(1_400_000), "1,".repeat(200_000));
    let document = object(&long);
    assert_eq!(document.root().get("a").and_then(Value::as_str).map(|a| a.len()), Some(2_800_000));
    assert_eq!(document.root().get("b").map(|b| b.items().count()), Some(200_001));
    // Many members are no square either.
    let many: Vec<String> = (0..100_000).map(|n| format!("\"k{n}\":{n}")).collect();
    let many = format!("{{{}}}", many.join(","));
    assert_eq!(object(&many).root().members().count(), 100_000);
}

#[test]
fn strings_have_pointers_and_places() {
    let text = r#"{"a":["x",{"b\n":"y\u0041z"}],"c/d":"é"}"#;
    let document = object(text);
    let shown: Vec<_> = document
        .strings()
        .map(|s| format!("{} {} {:?}", s.pointer(), if s.is_key() { "key" } else { "value" }, s.name()))
        .collect();
    assert_eq!(
        shown,
        [
            "/a key \"a\"",
            "/a/0 value \"x\"",
            "/a/1/b\n key \"b\\n\"",
            "/a/1/b\n value \"yAz\"",
            "/c~1d key \"c/d\"",
            "/c~1d value \"é\"",
        ]
    );
    let string = document.strings().nth(3).expect("there are six");
    let inner = string.decoded().to_raw(1..2);
    assert_eq!(&text[string.range().start + inner.start..string.range().start + inner.end], "\\u0041");
    assert_eq!(document.root().get("c/d").and_then(Value::as_str).as_deref(), Some("é"));
    assert_eq!(document.root().get("nothing").map(Value::raw), None);
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[a-c\"\\\\\n😀é]{0,4}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map("[a-c]{1,2}", inner, 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// RFC 7386, as the RFC has it.
fn merged(target: serde_json::Value, patch: &serde_json::Value) -> serde_json::Value {
    let serde_json::Value::Object(patch) = patch else { return patch.clone() };
    let mut out = match target {
        serde_json::Value::Object(members) => members,
        _ => serde_json::Map::new(),
    };
    for (name, value) in patch {
        if value.is_null() {
            out.shift_remove(name);
        } else {
            let old = out.get(name).cloned().unwrap_or_default();
            out.insert(name.clone(), merged(old, value));
        }
    }
    out.into()
}

fn of(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("an edit leaves JSON")
}

proptest! {
    #[test]
    fn agrees_with_another_reader(text in "[\\[\\]{}\",:0-9eE.+\\-a-fnrtu\\\\ \n]{0,24}") {
        // serde_json refuses lone surrogates and knows a depth of its own; neither can occur here by itself.
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
        let ours = read(&text).is_ok();
        prop_assert_eq!(ours, theirs, "{}", text);
    }

    #[test]
    fn merging_is_what_the_rfc_says(target in json(), patch in json(), pretty in any::<bool>()) {
        let write = |v: &serde_json::Value| {
            if pretty { serde_json::to_string_pretty(v) } else { serde_json::to_string(v) }.expect("JSON")
        };
        let (from, change) = (write(&target), write(&patch));
        let documents = (read(&from).expect("JSON"), read(&change).expect("JSON"));
        let to = documents.0.merge(&documents.1);
        prop_assert_eq!(of(to.as_deref().unwrap_or(&from)), merged(target, &patch));
    }

    #[test]
    fn every_string_has_a_pointer_that_leads_to_it(value in json()) {
        let text = serde_json::to_string(&value).expect("JSON");
        let document = read(&text).expect("JSON");
        let mut seen = BTreeSet::new();
        for string in document.strings().filter(|s| !s.is_key()) {
            let name = string.name().into_owned();
            prop_assert_eq!(value.pointer(&string.pointer()), Some(&name.into()));
            prop_assert!(seen.insert(string.pointer()));
        }
    }
}
