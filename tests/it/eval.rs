//! `eval`: figures, sweeps, wrong answers, comparisons and documents, over small files of records.
//!
//! Figures are taken with rules of the tests' own (`tests/cases/eval/rules`), whose markers no built-in rule knows.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::{Ran, Service, cases, empty, join, run, run_in, with_rules};

/// The groups of a file of an evaluation, as `name/label: found of n`.
fn groups(file: &Value) -> Vec<String> {
    let groups = file["groups"].as_array().expect("groups").iter();
    let text = |group: &Value| {
        let part = |key: &str| group[key].to_string().replace('"', "");
        format!("{}/{}: {} of {}", part("name"), part("label"), part("found"), part("n"))
    };
    groups.map(text).collect()
}

#[test]
fn eval_counts_by_tier_and_label() {
    let rules = cases("eval/rules");
    let file = |name: &str| {
        let ran = run(&["eval", "--json", "--rules", &rules, &cases(&format!("eval/{name}.jsonl"))]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.json()["files"][0].clone()
    };
    let injection = file("injection");
    assert_eq!(injection["records"], 6);
    assert_eq!(
        groups(&injection),
        [
            "explicit/attack: 2 of 2",
            "semantic/attack: 0 of 1",
            "agent_system/benign: 0 of 1",
            "core/benign: 1 of 2",
            "all/attack: 2 of 3",
            "all/benign: 1 of 3",
            "precision/flagged: 2 of 3",
        ]
    );
    assert!(injection["exact_span_rate"].is_null() && injection["us_per_kb"].as_f64().is_some());
    let secrets = file("secrets");
    assert_eq!(
        groups(&secrets),
        [
            "A/positive: 2 of 2",
            "B/positive: 1 of 1",
            "C/positive: 0 of 1",
            "hard/negative: 0 of 1",
            "near/negative: 1 of 1",
            "all/positive: 3 of 4",
            "all/negative: 1 of 2",
            "precision/flagged: 3 of 4",
        ]
    );
    assert_eq!((&secrets["overlap_span_rate"], &secrets["exact_span_rate"]), (&json!(0.75), &json!(0.5)));
    assert_eq!(
        groups(&file("pii")),
        [
            "core/positive: 2 of 2",
            "other/positive: 0 of 1",
            "hard/negative: 0 of 1",
            "near/negative: 1 of 1",
            "all/positive: 2 of 3",
            "all/negative: 1 of 2",
            "precision/flagged: 2 of 3",
            "right type/positive: 2 of 3",
            "type phone/positive: 0 of 1",
            "type us_passport/positive: 1 of 1",
            "type us_ssn/positive: 1 of 1",
        ]
    );
}

#[test]
fn eval_judges_commands_and_paths_as_tool_calls() {
    let file = |name: &str, more: &[&str]| {
        let ran = run(&join(&["eval", "--json", &cases(&format!("eval/{name}.jsonl"))], more));
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.json()["files"][0].clone()
    };
    let commands = file("commands", &[]);
    assert_eq!(
        groups(&commands),
        [
            "core/dangerous: 1 of 1",
            "core disguised/dangerous: 2 of 3",
            "natural/benign: 0 of 1",
            "twin/benign: 0 of 2",
            "all/dangerous: 3 of 4",
            "all/benign: 0 of 3",
            "precision/flagged: 3 of 3",
            "unchanged/verdict: 3 of 4",
            "ambiguous/ungraded: 1 of 1",
            "out/ungraded: 0 of 1",
            "out disguised/ungraded: 1 of 1",
        ]
    );
    assert!(commands["us_p50"].as_f64().is_some_and(|us| us > 0.0));
    let by_category = groups(&file("commands", &["--categories"]));
    for row in [
        "unchanged quoting/verdict: 2 of 2",
        "category wipe/dangerous: 3 of 4",
        "group quoting/dangerous: 1 of 1",
    ] {
        assert!(by_category.iter().any(|known| known == row), "{row} in {by_category:?}");
    }
    assert_eq!(
        groups(&file("paths", &[])),
        [
            "core/dangerous: 2 of 2",
            "natural/benign: 0 of 1",
            "all/dangerous: 2 of 2",
            "all/benign: 0 of 1",
            "precision/flagged: 2 of 2",
        ]
    );
}

#[test]
fn eval_reads_folders_and_writes_records() {
    let folder = empty();
    for name in ["injection", "secrets", "commands", "streams", "zips"] {
        let file = format!("eval/{name}.jsonl");
        std::fs::copy(cases(&file), folder.path().join(name).with_extension("jsonl")).expect("a copy");
    }
    std::fs::write(folder.path().join("a.zip"), "no archive").expect("a file");
    let rules = cases("eval/rules");
    let ran =
        run_in(folder.path(), &["eval", ".", "--rules", &rules, "--records", "out.txt", "--categories"], b"");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("./injection.jsonl: 6 records"), "{}", ran.out);
    assert!(ran.out.contains("category direct:marker"), "{}", ran.out);
    assert!(ran.out.contains("macro recall over 1 sources, semantic tier left out: 100.00 %"), "{}", ran.out);
    let lines = std::fs::read_to_string(folder.path().join("out.txt")).expect("records");
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(records.len(), 27);
    let archive = records.iter().find(|record| record["id"] == "a.zip").expect("a record");
    assert_eq!((&archive["archive"], &archive["label"]), (&json!("reject"), &json!("reject")));
    let streams: Vec<_> = records.iter().filter(|record| record["file"] == "./streams.jsonl").collect();
    let seen = |nth: usize| (streams[nth]["decision"].clone(), streams[nth]["incidents"].clone());
    let incident = |rule: &str, offset: u64| json!([{"rule_id": rule, "stream": "stdout", "offset": offset, "verdict": "WARN"}]);
    assert_eq!(seen(0), (json!("WARN"), incident("stream.injection-ignore", 17)));
    assert_eq!(seen(1), (json!("ALLOW"), json!([])));
    assert_eq!(seen(2), (json!("ALLOW"), json!([])));
    assert_eq!(seen(3), (json!("WARN"), incident("stream.injection-identity", 4)));
    assert!(ran.out.contains("streams: 1 false incidents in 0.00 MB"), "{}", ran.out);
    let command = records.iter().find(|record| record["id"] == "c1").expect("a record");
    assert_eq!((&command["label"], &command["decision"]), (&json!("dangerous"), &json!("BLOCK")));
    let finding = &command["findings"][0];
    assert_eq!(finding["path"], "/args_json");
    let (start, end) =
        (finding["start"].as_u64().expect("an offset"), finding["end"].as_u64().expect("an offset"));
    assert!(
        start >= 12 && end > start && end <= 20,
        "inside of {{\"command\":\"rm -rf /\"}}: {start}..{end}"
    );
    let mut first = records.iter().find(|record| record["id"] == "s1").expect("a record").clone();
    assert!(first["us"].as_f64().is_some_and(|us| us > 0.0));
    first["us"] = json!(0);
    assert_eq!(
        first,
        json!({
            "file": "./secrets.jsonl", "id": "s1", "label": "positive", "decision": "BLOCK", "risk_score": 0.8,
            "findings": [{
                "category": "secrets.test", "rule_id": "secrets.test-ticket", "severity": "HIGH",
                "path": "/text", "start": 14, "end": 26, "score": 0.8,
            }],
            "incidents": [], "checks": {}, "archive": null,
            "redacted_left_bytes": 0, "redaction_stable": true, "unjudged": [], "us": 0,
        })
    );
    // The label of this one goes beyond what is found, and so beyond what redaction takes out.
    let second = records.iter().find(|record| record["id"] == "s2").expect("a record");
    assert_eq!(second["redacted_left_bytes"], "ticket ".len());
}

#[test]
fn eval_gives_the_same_figures_over_the_server() {
    let service = Service::start();
    for name in ["secrets", "commands", "paths"] {
        let file = cases(&format!("eval/{name}.jsonl"));
        let here = run(&["eval", "--json", "--set", &with_rules(), &file]).json();
        let there = run(&["eval", "--json", "--server", &service.address, &file]).json();
        assert_eq!(here["files"][0]["groups"], there["files"][0]["groups"]);
        assert_eq!(here["files"][0]["exact_span_rate"], there["files"][0]["exact_span_rate"]);
    }
}

#[test]
fn eval_names_file_line_and_field_of_a_malformed_record() {
    let ran = run(&["eval", &cases("eval/broken/surface.jsonl")]);
    assert_eq!((ran.code, ran.out.as_str()), (65, ""));
    assert!(ran.err.contains("surface.jsonl:3: field `surface`: `moon` is none of"), "{}", ran.err);
    let ran = run(&["eval", &cases("eval/broken/scope.jsonl")]);
    assert_eq!((ran.code, ran.out.as_str()), (65, ""));
    assert!(ran.err.contains("scope.jsonl:2: field `scope`: `wide` is none of"), "{}", ran.err);
    assert_eq!(run(&["eval", "nowhere.jsonl"]).code, 65);
    let folder = empty();
    let ran = run_in(folder.path(), &["eval", "."], b"");
    assert_eq!(ran.code, 65, "a folder without records");
    std::fs::write(PathBuf::from(folder.path()).join("x.jsonl"), b"{\"id\":\"\xff\"}\n").expect("a file");
    let ran = run_in(folder.path(), &["eval", "x.jsonl"], b"");
    assert!(ran.code == 65 && ran.err.contains("x.jsonl:1: is not UTF-8"), "{}", ran.err);
}

/// A folder with the file of one kind of record, and what `eval` makes of it with `more` arguments.
fn in_folder(names: &[&str], more: &[&str]) -> (TempDir, Ran) {
    let folder = empty();
    for name in names {
        let file = format!("{name}.jsonl");
        std::fs::copy(cases(&format!("eval/{file}")), folder.path().join(file)).expect("a copy");
    }
    let ran = eval_in(&folder, more);
    (folder, ran)
}

fn eval_in(folder: &TempDir, more: &[&str]) -> Ran {
    let rules = cases("eval/rules");
    run_in(folder.path(), &join(&["eval", ".", "--rules", &rules], more), b"")
}

#[test]
fn eval_tells_kinds_sources_and_figures() {
    let (folder, ran) = in_folder(&["injection", "commands", "secrets"], &["--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let all = ran.json();
    let kind = |name: &str| {
        let kinds = all["kinds"].as_array().expect("kinds").iter();
        kinds.clone().find(|kind| kind["kind"] == name).expect("the kind").clone()
    };
    let sources = json!({ "groups": kind("injection")["sources"] });
    assert_eq!(groups(&sources), ["made/attack: 2 of 3", "made/benign: 1 of 3"]);
    assert_eq!(kind("injection")["macro_recall"], json!(1.0), "the semantic tier is left out");
    assert_eq!(
        groups(&json!({ "groups": kind("commands")["sources"] })),
        ["commands/dangerous: 3 of 4", "commands/benign: 0 of 3",]
    );
    let figure = |kind: &str, name: &str| {
        let figures = all["figures"].as_array().expect("figures").iter();
        let found = figures.clone().find(|one| one["kind"] == kind && one["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {:#}", all["figures"])).clone()
    };
    let explicit = figure("injection", "explicit attacks found");
    assert_eq!(
        (&explicit["value"], &explicit["gate"], &explicit["goal"], &explicit["reached"], &explicit["n"]),
        (&json!(1.0), &json!(0.9), &json!(0.97), &json!("goal"), &json!(2))
    );
    let flagged = figure("injection", "false alarms over all sources");
    assert_eq!((&flagged["better"], &flagged["reached"]), (&json!("less"), &json!("missed")));
    assert_eq!(figure("commands", "verdict unchanged by a disguise")["value"], json!(0.75));
    assert_eq!(figure("secrets", "exact span among found")["reached"], json!("missed"));
    let text = eval_in(&folder, &[]).out;
    let line = text.lines().find(|line| line.contains("injection: explicit attacks found"));
    assert!(line.is_some_and(|line| line.contains("100.00 %") && line.ends_with("goal")), "{text}");
}

#[test]
fn eval_sweeps_thresholds() {
    let (folder, ran) = in_folder(&["injection", "commands"], &["--sweep", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let all = ran.json();
    let injection = &all["sweeps"][0];
    assert_eq!(injection["kind"], "injection");
    let row = |at: &str| {
        let rows = injection["rows"].as_array().expect("rows").iter();
        let row = rows.clone().find(|row| row["threshold"] == at).expect("the threshold").clone();
        (row["positive"]["found"].clone(), row["negative"]["found"].clone())
    };
    assert_eq!((row("0.70"), row("0.85")), ((json!(2), json!(1)), (json!(0), json!(0))));
    // One negative of three is flagged by what finds the attacks: no threshold that finds them is quiet enough.
    assert_eq!(injection["best"]["positive"]["found"], 0);
    let names = |sweep: &Value| -> Vec<String> {
        let rows = sweep["rows"].as_array().expect("rows").iter();
        rows.map(|row| row["threshold"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&all["sweeps"][1]), ["WARN or more", "ASK or more", "BLOCK"]);
    let text = eval_in(&folder, &["--sweep"]).out;
    assert!(
        text.contains("injection by threshold:") && text.contains("at most 1.00 % of negatives"),
        "{text}"
    );
}

#[test]
fn eval_lists_what_was_judged_wrongly_without_secrets() {
    let (folder, ran) = in_folder(&["injection", "secrets"], &["--show", "fp,fn"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let line = |start: &str| {
        let found = ran.out.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no {start} in {}", ran.out)).to_owned()
    };
    assert!(
        line("fp i5").starts_with("fp i5  made/core  BLOCK  injection.test-zebra (prompt_injection"),
        "{}",
        line("fp i5")
    );
    assert!(line("fp i5").ends_with("| zebra override, quoted by a user"), "{}", line("fp i5"));
    assert_eq!(line("fn i3"), "fn i3  made/semantic  ALLOW  no finding  | a horse in disguise");
    let masked = line("fp s6");
    assert!(masked.ends_with("| looks like [test]") && !ran.out.contains("zbr_abcdefgh"), "{masked}");
    assert!(line("fn s4").ends_with("| another ticket [ticket]"), "{}", line("fn s4"));
    assert!(ran.out.contains("falsely flagged: 2\n") && ran.out.contains("missed: 2\n"), "{}", ran.out);
    let only = eval_in(&folder, &["--show", "fn", "--limit", "1", "--json"]).json();
    let ids: Vec<&Value> =
        only["confusion"].as_array().expect("a list").iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, ["i3"]);
}

#[test]
fn eval_compares_with_an_earlier_run() {
    let (folder, first) = in_folder(&["injection", "secrets"], &["--json"]);
    let before = folder.path().join("before");
    std::fs::write(&before, &first.out).expect("a file");
    let same = eval_in(&folder, &["--baseline", "before"]);
    assert_eq!(same.code, 0, "{}{}", same.out, same.err);
    assert!(same.out.contains("compared with the baseline: 0 better, 0 worse"), "{}", same.out);
    // An attack of that run is no longer found, and a harmless text no longer flagged.
    let records = std::fs::read_to_string(folder.path().join("injection.jsonl")).expect("records");
    let changed = records.replace("a zebra override in a result", "a horse in a result");
    let changed = changed.replace("\"zebra override,", "\"a horse,");
    std::fs::write(folder.path().join("injection.jsonl"), changed).expect("records");
    let ran = eval_in(&folder, &["--baseline", "before", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let changes = ran.json()["comparison"]["changes"].as_array().expect("changes").clone();
    let verdict = |name: &str| {
        let found = changes.iter().find(|change| change["name"] == name);
        let found = found.unwrap_or_else(|| panic!("no {name} in {changes:#?}"));
        (found["direction"].clone(), found["verdict"].clone())
    };
    assert_eq!(verdict("./injection.jsonl: explicit attack"), (json!("fell"), json!("worse")));
    assert_eq!(verdict("./injection.jsonl: core benign"), (json!("fell"), json!("better")));
    assert_eq!(verdict("figure injection: explicit attacks found"), (json!("fell"), json!("worse")));
    assert_eq!(verdict("source injection: made attack"), (json!("fell"), json!("worse")));
    assert_eq!(verdict("source injection: made benign"), (json!("fell"), json!("better")));
    let tolerant = eval_in(&folder, &["--baseline", "before", "--tolerance", "60"]);
    assert_eq!(tolerant.code, 0, "{}", tolerant.out);
}

/// What a run no longer measures is worse than any value, but for kinds that it is not about.
#[test]
fn eval_misses_what_an_earlier_run_measured() {
    let (folder, first) = in_folder(&["injection", "secrets"], &["--json"]);
    std::fs::write(folder.path().join("before"), &first.out).expect("a file");
    let figures = |ran: &Ran| {
        let changes = ran.json()["comparison"]["changes"].as_array().expect("changes").clone();
        let gone = changes.iter().filter(|change| change["direction"] == "gone");
        gone.map(|change| change["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    // Without any attack.
    let path = folder.path().join("injection.jsonl");
    let all = std::fs::read_to_string(&path).expect("records");
    let benign: String =
        all.lines().filter(|line| !line.contains("\"attack\"")).map(|l| format!("{l}\n")).collect();
    std::fs::write(&path, &benign).expect("records");
    let ran = eval_in(&folder, &["--baseline", "before", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    for name in [
        "./injection.jsonl: explicit attack",
        "./injection.jsonl: precision flagged",
        "source injection: made attack",
        "figure injection: explicit attacks found",
        "figure injection: macro recall over sources, without semantic",
    ] {
        assert!(figures(&ran).iter().any(|gone| gone == name), "{name} in {:#?}", figures(&ran));
    }
    let told = eval_in(&folder, &["--baseline", "before"]);
    let line = "worse  figure injection: explicit attacks found: was 100.00 %, and is not measured now";
    assert!(told.code == 1 && told.out.contains(line), "{}", told.out);
    let partial = eval_in(&folder, &["--baseline", "before", "--partial"]);
    let line = "note   figure injection: explicit attacks found: was 100.00 %, and is not measured now";
    assert!(partial.code == 0 && partial.out.contains(line), "{}", partial.out);
    // Over fewer kinds.
    std::fs::write(&path, all).expect("records");
    std::fs::remove_file(folder.path().join("secrets.jsonl")).expect("removed");
    let fewer = eval_in(&folder, &["--baseline", "before"]);
    assert_eq!(fewer.code, 0, "{}", fewer.out);
    for line in [
        "note   ./secrets.jsonl: was of 6 records, and is not measured now",
        "note   no record about secrets was read, so that nothing is said of: tier A found; tier B found;",
    ] {
        assert!(fewer.out.contains(line), "{line} in {}", fewer.out);
    }
    // Over fewer files of a kind.
    std::fs::rename(&path, folder.path().join("other.jsonl")).expect("renamed");
    std::fs::copy(cases("eval/secrets.jsonl"), folder.path().join("secrets.jsonl")).expect("a copy");
    let moved = eval_in(&folder, &["--baseline", "before", "--json"]);
    assert_eq!((moved.code, figures(&moved)), (1, vec!["./injection.jsonl".to_owned()]), "{}", moved.out);
}

/// Labels cannot be made again: nothing that a run reads is written over.
#[test]
fn eval_keeps_what_it_reads() {
    let (folder, _) = in_folder(&["injection", "zips"], &[]);
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("before"), "{}").expect("a file");
    std::fs::write(at("a.zip"), "no archive").expect("a file");
    std::fs::hard_link(at("injection.jsonl"), at("second")).expect("a second name");
    std::fs::create_dir(at("sub")).expect("a folder");
    let records = std::fs::read_to_string(at("injection.jsonl")).expect("records");
    for (arguments, told) in [
        (
            &["--records", "injection.jsonl"][..],
            "--records injection.jsonl: is ./injection.jsonl, which is read",
        ),
        (&["--records", "./injection.jsonl"], "--records ./injection.jsonl: is read by this command"),
        (&["--records", "sub/../injection.jsonl"], "which is read by this command"),
        (&["--records", "second"], "--records second: is ./injection.jsonl, which is read"),
        (&["--markdown", "injection.jsonl"], "--markdown injection.jsonl: is ./injection.jsonl"),
        (&["--records", "a.zip"], "--records a.zip: is ./a.zip, which is read"),
        (&["--records", "before", "--baseline", "before"], "--records before: is read by this command"),
        (&["--records", "sub/new.jsonl"], "lies in a folder that this command reads"),
        (
            &["--records", "new.md", "--markdown", "sub/../new.md"],
            "--markdown sub/../new.md: is where the records go",
        ),
    ] {
        let ran = eval_in(&folder, arguments);
        assert_eq!((ran.code, ran.out.as_str()), (64, ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(told), "{arguments:?}: {}", ran.err);
    }
    assert_eq!(std::fs::read_to_string(at("injection.jsonl")).expect("records"), records);
    assert!(!at("sub/new.jsonl").exists() && !at("new.md").exists());
    // What an earlier run wrote is written anew.
    for _ in 0..2 {
        assert_eq!(eval_in(&folder, &["--records", "out.txt"]).code, 0);
    }
}

#[test]
fn eval_says_what_its_figures_do_not_show() {
    let (folder, clean) = in_folder(&["injection"], &[]);
    assert_eq!((clean.code, clean.err.as_str()), (0, ""));
    let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    let records = std::fs::read_to_string(folder.path().join("injection.jsonl")).expect("records");
    put("injection.jsonl", &format!("{records}{records}"));
    put("none.jsonl", "\n");
    let noted = eval_in(&folder, &[]);
    assert_eq!(noted.code, 0, "{}", noted.err);
    let twice = "./injection.jsonl: 6 of the records have ids that stood there before, and all are counted; \
                 the first is `i1` in line 7, as in line 1";
    for told in [twice, "./none.jsonl: holds no record"] {
        assert!(noted.err.contains(told), "{told} in {}", noted.err);
    }
    put("none.jsonl", "{\"bundle\":\"gone.zip\",\"expect\":\"reject\"}\n");
    let missing = eval_in(&folder, &[]);
    assert_eq!(missing.code, 65, "{}", missing.err);
    assert!(
        missing.err.contains("./none.jsonl:1: field `bundle`: `./gone.zip` cannot be read"),
        "{}",
        missing.err
    );
    let spans = "\"expected\":[{\"type\":\"EMAIL\",\"start\":2,\"end\":3,\"cp_start\":2,\"cp_end\":3}]";
    put(
        "none.jsonl",
        &format!("\n{{\"id\":\"p\",\"text\":\"éx\",\"label\":\"positive\",\"core\":true,{spans}}}\n"),
    );
    let wrong = eval_in(&folder, &[]);
    assert_eq!(wrong.code, 65, "{}", wrong.err);
    assert!(
        wrong.err.contains("./none.jsonl:2: field `expected[0].cp_start`: 2 is not where"),
        "{}",
        wrong.err
    );
}

#[test]
fn eval_refuses_wrong_flags_and_files_before_it_works() {
    let (folder, _) = in_folder(&["injection"], &["--json"]);
    std::fs::write(folder.path().join("no.txt"), "no report").expect("a file");
    std::fs::write(folder.path().join("other.txt"), r#"{"files":[]}"#).expect("a file");
    std::fs::write(folder.path().join("bad.md"), "<!-- eval:moon -->\n").expect("a file");
    for (arguments, code, told) in [
        (&["--show", "wrong"][..], 64, "[possible values: fp, fn]"),
        (&["--show", "fp", "--limit", "0"], 64, "0 is not in"),
        (&["--limit", "3"], 64, "--show"),
        (&["--tolerance", "1"], 64, "--baseline"),
        (&["--baseline", "no.txt", "--tolerance", "-1"], 64, "'-1"),
        (&["--baseline", "no.txt", "--tolerance", "many"], 64, "percentage points from 0 to 100"),
        (&["--baseline", "gone.txt"], 65, "gone.txt: cannot be read"),
        (&["--baseline", "no.txt"], 65, "write it with `portcullis eval --json PATH… > FILE`"),
        (&["--baseline", "other.txt"], 65, "no file and no figure in common"),
        (&["--markdown", "bad.md"], 65, "bad.md: line 1: no kind `moon`"),
        (&["--markdown", "nowhere/new.md"], 64, "cannot be written"),
    ] {
        let ran = eval_in(&folder, arguments);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(told), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn eval_writes_its_tables_into_a_document() {
    let (folder, ran) = in_folder(&["injection", "secrets"], &["--markdown", "new.md"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("the document");
    let made = read("new.md");
    assert!(made.starts_with("# Accuracy\n\n## injection\n\n<!-- eval:injection -->\n"), "{made}");
    let row = "| explicit attacks found | 2 | 100.00 % | 90.00 % | 97.00 % | goal |";
    assert!(made.contains(row) && made.contains("## secrets"), "{made}");
    let mine = "My words.\n\n<!-- eval:injection -->\nold\n<!-- /eval:injection -->\n\n<!-- eval:pii -->\nkept\n<!-- /eval:pii -->\n";
    std::fs::write(folder.path().join("mine.md"), mine).expect("a document");
    assert_eq!(eval_in(&folder, &["--markdown", "mine.md", "--sweep"]).code, 0);
    let written = read("mine.md");
    assert!(
        written.starts_with("My words.\n\n<!-- eval:injection -->\n") && written.contains("\nkept\n"),
        "{written}"
    );
    assert!(!written.contains("\nold\n") && written.contains(row), "{written}");
    assert!(written.contains("| threshold | found | mean over sources | falsely flagged |"), "{written}");
    assert!(!folder.path().join("mine.md.new").exists());
}
