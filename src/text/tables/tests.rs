//! Tests of columns.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const WORDS: [&str; 3] = ["ssn", "passport", "паспорт"];

fn is_wanted(head: &str) -> bool {
    WORDS.iter().any(|word| head.to_lowercase().contains(word))
}

/// The lines of the view, wherever the heads of tables are looked for.
fn shown(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut words: Vec<usize> = Vec::new();
    if lower.len() == text.len() {
        WORDS.iter().for_each(|word| words.extend(lower.match_indices(word).map(|(at, _)| at)));
    }
    let cells: Vec<usize> = text.match_indices(['1', '2', '4']).map(|(at, _)| at).collect();
    let everywhere = shown_at(text, Heads::Anywhere);
    if lower.len() == text.len() {
        assert_eq!(shown_at(text, Heads::At { words: &words, cells: &[] }), everywhere, "{text}");
    }
    shown_at(text, Heads::At { words: &[], cells: &cells });
    everywhere
}

/// The lines of the view; each cell of it leads back to where it came from.
fn shown_at(text: &str, heads: Heads<'_>) -> Vec<String> {
    let source = View::identity(text);
    let Some(columns) = columns(&source, heads, &is_wanted) else { return Vec::new() };
    let view = &columns.view;
    let mut start = 0;
    for line in view.text().split_inclusive('\n') {
        let cell = line.rfind(BETWEEN).expect("a head") + BETWEEN.len();
        let at = start + cell..start + line.len() - 1;
        assert_eq!(text[view.to_source(at.clone())], line[cell..line.len() - 1], "{text:?}");
        assert!(columns.holds(&at) && !columns.holds(&(start..at.end)), "{text:?}");
        assert_eq!(view.to_source(start..start + line.len()), view.to_source(at), "a head leads to its cell");
        start += line.len();
    }
    view.text().lines().map(str::to_owned).collect()
}

#[test]
fn cells_are_read_with_the_heads_of_their_columns() {
    let aligned = "NAME          SSN        CITY\n\
                   Ann Lee       111-22     Rome\n\
                   Bob           222-33     New York\n\
                   Cy Van Wyk    333-44     Ur\n";
    let right = "  id         SSN  city\n   1      111-22  Rome\n  20      222-33  Ur\n";
    let quoted = "name,ssn\n\"Lee, Ann\",\"111-22\"\n\"Fox \"\"B\"\"\", 222-33\n";
    let html = "<table><thead><tr><th>Name</th><th class=\"x\">SSN</th></tr></thead>\n<tr><td>Ann</td><td>111-22</td></tr>\n\
                <TR><TD>Bob<TD>222-33</TABLE><table><tr><td>a</td><td>333-44</td></tr></table>";
    let sql = "INSERT INTO people (`name`, ssn) VALUES\n  ('Lee, Ann (x)', '111-22'),\n  ('O''Neil', '222-33');\nselect 1;";
    for (text, wanted) in [
        ("name,ssn\nAnn,111-22\nBob,222-33", &["ssn: 111-22", "ssn: 222-33"][..]),
        ("name;ssn\r\nAnn;111-22\r\nBob;222-33\r\n", &["ssn: 111-22", "ssn: 222-33"]),
        ("name\tssn\tx\nAnn\t111-22\t\n\t222-33\ty\n", &["ssn: 111-22", "ssn: 222-33"]),
        (quoted, &["ssn: 111-22", "ssn: 222-33"]),
        (
            "| Name | SSN |\n|---|:-:|\n| Ann | 111-22 |\n| Bob | **222-33** |",
            &["SSN: 111-22", "SSN: 222-33"],
        ),
        (
            " name | ssn    \n------+--------\n Ann  | 111-22\n Bob  | 222-33\n(2 rows)\n",
            &["ssn: 111-22", "ssn: 222-33"],
        ),
        (
            "+----+--------+\n| id | ssn    |\n+----+--------+\n|  1 | 111-22 |\n+----+--------+\n",
            &["ssn: 111-22"],
        ),
        (
            "┌────┬────────┐\n│ id │ ssn    │\n├────┼────────┤\n│  1 │ 111-22 │\n└────┴────────┘",
            &["ssn: 111-22"],
        ),
        (aligned, &["SSN: 111-22", "SSN: 222-33", "SSN: 333-44"]),
        (right, &["SSN: 111-22", "SSN: 222-33"]),
        (html, &["SSN: 111-22", "SSN: 222-33"]),
        (sql, &["ssn: 111-22", "ssn: 222-33"]),
        // What stands before a table, and cells with line breaks in it.
        ("Export, people\nname,ssn\nAnn,111-22", &["ssn: 111-22"]),
        ("Dear all,\n\nhere it is:\nname,ssn\nAnn,111-22", &["ssn: 111-22"]),
        ("name,note,ssn\nAnn,\"one\ntwo\",000\nBob,x,222-33", &[]),
        ("id,name,ssn\n1,Ann,111-22\nCy,\"one\n2,Bob,222-33", &["ssn: 111-22", "ssn: 222-33"]),
        ("a,b\n1,2\nname,ssn\nAnn,111-22", &["ssn: 111-22"]),
        ("Export 12345678,2024\nname,ssn\nAnn,111-22", &["ssn: 111-22"]),
        // A second table, and two columns.
        ("ssn,Passport\n111-22,A1234\n\nname,city\nAnn,222-33", &["ssn: 111-22", "Passport: A1234"]),
        ("Имя;Паспорт\nАнна;4509 1\nИван;4510 2", &["Паспорт: 4509 1", "Паспорт: 4510 2"]),
        // No table, no such column, nothing in it.
        ("name,city\nAnn,111-22\nBob,222-33", &[]),
        ("My passport, please.\nThanks, Ann", &[]),
        ("ssn 111-22\nssn 222-33", &[]),
        ("  - asks for the ssn only where it has to  [Ann]\n  - none (see 2222-33)  [Bo]", &[]),
        ("name,ssn\nAnn,\nBob,none at all\nCy,12", &[]),
        ("ssn 123456,x\n111-22,y", &[]),
        ("<p>ssn</p><p>111-22</p>", &[]),
        ("INSERT INTO people (name, ssn) SELECT a, b FROM c WHERE (1, 2222)", &[]),
        ("INSERT INTO people (name, ssn", &[]),
        ("", &[]),
    ] {
        assert_eq!(shown(text), wanted, "{text}");
    }
}

#[test]
fn long_tables_and_hostile_ones_take_linear_time() {
    let unit_of = |unit: &str, bytes: usize| unit.repeat(bytes / unit.len());
    let of = |bytes: usize| -> Vec<String> {
        let row = "Ann Lee,111-22-3333,Rome\n";
        vec![
            format!("name,ssn,city\n{}", unit_of(row, bytes)),
            format!("name,text,city\n{}", unit_of(row, bytes)),
            unit_of("ssn,a\nb,c\n", bytes),
            unit_of("ssn,a\n1,2\n", bytes),
            unit_of("ssn,", bytes),
            unit_of("ssn  ", bytes),
            unit_of("ssn,\"\n", bytes),
            unit_of("\"", bytes),
            unit_of("ssn,\"a\",\"\n", bytes),
            unit_of("a  ssn\nb  c\n", bytes),
            unit_of(" ", bytes),
            unit_of("|", bytes),
            unit_of("|ssn|b|\n", bytes),
            unit_of("│ssn│a│\n", bytes),
            unit_of("<td ", bytes) + "</t",
            unit_of("<tr><td>ssn", bytes) + "</tr>",
            unit_of("<table><tr><th>ssn<tr><td>11111", bytes) + "</tr>",
            unit_of("INSERT (", bytes),
            unit_of("INSERT (\\'", bytes),
            unit_of("INSERT a(ssn)VALUES(", bytes),
            format!("INSERT INTO a (ssn) VALUES {}", unit_of("('11111'),", bytes)),
            format!("{},x\n{}", unit_of("ssn,", 400), unit_of(&(unit_of("11111,", 600) + "x\n"), bytes)),
        ]
    };
    let (small, large) = (of(16 << 10), of(256 << 10));
    for (small, large) in small.iter().zip(&large) {
        let time = |text: &str| {
            let source = View::identity(text);
            let places: Vec<usize> = (0..text.len()).step_by(5).collect();
            let tries = (0..2).map(|_| {
                let start = Instant::now();
                let view = columns(&source, Heads::Anywhere, &is_wanted);
                columns(&source, Heads::At { words: &places, cells: &places }, &is_wanted);
                assert!(
                    view.is_none_or(|found| found.view.text().len() <= text.len() * FACTOR_MAX + SLACK_BYTES)
                );
                start.elapsed()
            });
            tries.min().unwrap_or_default()
        };
        let (one, sixteen) = (time(small), time(large));
        // Wide, as other work may hold this up; what is quadratic takes minutes.
        assert!(sixteen <= one * 64 + Duration::from_secs(4), "{one:?} {sixteen:?} {:?}", &large[..40]);
    }
}

proptest! {
    #[test]
    fn any_text_is_read(text in "(?:ssn|[,;|\t│\"']|\r?\n|<t[hdr]>|</t[dr]>|INSERT |a\\(|VALUES|[(]|\\\\|[)]|  | |12345|-|я|паспорт){0,60}") {
        shown(&text);
    }
}

#[test]
fn heads_are_looked_for_above_cells() {
    let text = "title,\n\nExport\nname,ssn\nAnn,111-22\nBob,222-33\n\nssn,b\n333-44,x";
    let at = |word: &str| text.find(word).expect("it is there");
    for (cells, wanted) in [
        (vec![at("222")], &["ssn: 111-22", "ssn: 222-33"][..]),
        (vec![at("111"), at("222"), at("333")], &["ssn: 111-22", "ssn: 222-33", "ssn: 333-44"]),
        (vec![at("333"), at("111")], &["ssn: 111-22", "ssn: 222-33", "ssn: 333-44"]),
        (vec![0, text.len(), text.len() + 9], &["ssn: 333-44"]),
        (vec![], &[]),
    ] {
        assert_eq!(shown_at(text, Heads::At { words: &[], cells: &cells }), wanted, "{cells:?}");
    }
}
