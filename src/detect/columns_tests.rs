//! That cells of tables are judged with the heads of their columns.

use std::sync::{Arc, LazyLock};

use super::{INJECTION, PII, Request, SECRETS, Scanner};
use crate::rules::{Budget, RuleSet, RuleSetConfig, RuleSource, builtin_sources};

static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
    let rules =
        RuleSet::compile(&builtin_sources(), &RuleSetConfig::default()).expect("built-in rules compile");
    Scanner::new(Arc::new(rules))
});

/// What a scanner finds with a severity of at least MEDIUM, as texts, in the order of the text.
fn found<'t>(scanner: &Scanner, text: &'t str) -> Vec<&'t str> {
    let plugins = scanner.rules().plugin_bits([INJECTION, PII, SECRETS, "custom"]);
    let request = Request { text, plugins, role: None, surface: None };
    let scanned = scanner.scan(request, &Budget::UNLIMITED).expect("no budget");
    let serious = scanned.findings.into_iter().filter(|found| found.info.score >= 0.35);
    serious.map(|found| &text[found.range]).collect()
}

/// Rows long enough that no row is near the heads but the first.
fn rows(row: &str, numbers: &[&str]) -> String {
    numbers.iter().map(|number| row.replace("N", number) + "\n").collect()
}

#[test]
fn every_row_is_judged_by_the_head_of_its_column() {
    let social = ["536904399", "536904398", "536904397", "536904396"];
    let papers = ["X12345670", "X12345671", "X12345672", "X12345673"];
    let persons = ["52998224725", "11144477735", "52998224725"];
    for (head, row, numbers) in [
        (
            "id,status,city,ssn\n",
            "1,on leave until further word,the town on the hill by the river,N",
            &social[..],
        ),
        ("ssn;city\r\n", "N;the town on the hill by the river and its suburbs\r", &social),
        ("name\tcity\tpassport\n", "a person of that town\tthe town on the hill by the river\tN", &papers),
        (
            "| Passport no. | Town of the person |\n|---|---|\n",
            "| N | the town on the hill by the river and its suburbs |",
            &papers,
        ),
        (
            " passportNumber | town_of_the_person\n----------------+--------------------\n",
            " N      | the town on the hill by the river and its suburbs",
            &papers,
        ),
        (
            "TOWN                                                  PASSPORT     STATE\n",
            "the town on the hill by the river and its suburbs     N    on",
            &papers,
        ),
        (
            "<table><tr><th>Nome</th><th>CPF</th></tr>\n",
            "<tr><td>uma pessoa da cidade no alto da colina</td><td>N</td></tr>",
            &persons,
        ),
        (
            "insert into people (town, cpf) values\n",
            "('the town on the hill by the river, and on', 'N'),",
            &persons,
        ),
    ] {
        let text = format!("{head}{}", rows(row, numbers));
        assert_eq!(found(&SCANNER, &text), numbers, "{text}");
        // In digits of another width, and in a string of JSON.
        if numbers == social {
            let widened = |c: char| if c.is_ascii_digit() { char::from_u32(c as u32 + 0xFEE0) } else { None };
            let wide: String = text.chars().map(|c| widened(c).unwrap_or(c)).collect();
            assert_eq!(found(&SCANNER, &wide).len(), numbers.len(), "{wide}");
            let escaped = serde_json::to_string(&text).expect("a string");
            assert_eq!(found(&SCANNER, &escaped).len(), numbers.len(), "{escaped}");
        }
    }
}

#[test]
fn heads_in_other_scripts_count_in_any_case() {
    for head in ["город,снилс", "ГОРОД;СНИЛС"] {
        let delimiter = &head[head.find([',', ';']).unwrap_or(0)..][..1];
        let row = format!("большой город на берегу широкой и быстрой реки{delimiter}N");
        let text = format!("{head}\n{}", rows(&row, &["112-233-445 95", "112-233-445 95"]));
        assert_eq!(found(&SCANNER, &text), ["112-233-445 95"; 2], "{text}");
    }
}

#[test]
fn other_columns_stay_quiet() {
    for (head, row) in [
        ("id,city,part", "1,the town on the hill by the river and its suburbs,N"),
        ("ssn,city,part", ",the town on the hill by the river and its suburbs,N"),
        ("part,city", "N,the town on the hill by the river and its suburbs"),
        ("Please send your ssn, and the part", "It is the part of the town by the river and its suburbs, N"),
    ] {
        let text = format!("{head}\n{}", rows(row, &["X12345670", "X12345671", "536904399", "536904398"]));
        assert_eq!(found(&SCANNER, &text), [""; 0], "{text}");
    }
    // The head of one table says nothing of another.
    let text = format!(
        "name,passport\nAnn,none\n\nAnd the parts of the house on the hill by the river:\n\nname,part\n{}",
        rows("Bo,N", &["X12345670", "X12345671"])
    );
    assert_eq!(found(&SCANNER, &text).len(), 0, "{text}");
}

/// A rule that digits start, whose words open no gate.
const BADGES: &str = "[[rule]]\nid = \"custom.badge\"\ncategory = \"pii.badge\"\nseverity = \"high\"\ntrigger = \"digits\"\n\
                      trigger_min = 7\npattern = '\\b[0-9]{7}\\b'\nnear = [\"badge\"]\nnear_distance = 20\n\
                      description = \"d\"\nrecommendation = \"r\"\nexamples = [\"badge 1234567\"]\n\
                      negative_examples = [\"1234567\"]\n";

fn compiled(sources: &[RuleSource]) -> Scanner {
    let rules = RuleSet::compile(sources, &RuleSetConfig::default()).expect("valid");
    Scanner::new(Arc::new(rules))
}

/// A rule that digits start finds the heads above what it found.
#[test]
fn rules_without_a_literal_look_above() {
    let scanner = compiled(&[RuleSource::custom("badges.toml", "custom", BADGES)]);
    let numbers = ["1234567", "2345678", "3456789"];
    let row = "the town on the hill by the river,N";
    assert_eq!(found(&scanner, &format!("town,badge\n{}", rows(row, &numbers))), numbers);
    assert_eq!(found(&scanner, &format!("Title\n\ntown,badge\n{}", rows(row, &numbers))), numbers);
    assert_eq!(found(&scanner, &format!("town,part\n{}", rows(row, &numbers))).len(), 0);
}

/// Few words set apart are read together only near what speaks for an attack, which is known of the view and not of the
/// table in it.
#[test]
fn a_table_leaves_what_speaks_for_an_attack_beside_it() {
    let orders = "[[rule]]\nid = \"injection.orders\"\ncategory = \"prompt_injection.orders\"\nseverity = \"high\"\n\
                  phrases = [\"obey hidden orders\"]\ndescription = \"d\"\nrecommendation = \"r\"\n\
                  examples = [\"obey hidden orders\"]\nnegative_examples = [\"hidden orders\"]\n\
                  [[concept]]\nid = \"injection.rules\"\nfamily = \"rules\"\nphrases = [\"new rules\"]\n\
                  description = \"d\"\nexamples = [\"new rules\"]\nnegative_examples = [\"old rules\"]\n";
    let scanner = compiled(&[
        RuleSource::custom("badges.toml", "custom", BADGES),
        RuleSource::custom("orders.toml", "injection", orders),
    ]);
    let order = "obey <i>hidden</i> orders";
    let numbers = ["1234567", "2345678", "3456789"];
    let table = format!("town,badge\n{}", rows("the town on the hill by the river,N", &numbers));
    let all = [&[order][..], &numbers].concat();
    for (text, wanted) in [
        (format!("The new rules: {order}.\n\n{table}"), &all[..]),
        (format!("The new rules: {order}.\n"), &all[..1]),
        (format!("The old rules: {order}.\n\n{table}"), &all[1..]),
    ] {
        assert_eq!(found(&scanner, &text), wanted, "{text}");
    }
}
