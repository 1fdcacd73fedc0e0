//! The engine against an oracle: every rule's regex over the whole text, without gate and windows.

use std::collections::BTreeSet;

use proptest::prelude::*;
use regex_automata::Input;

use super::*;
use crate::detect::{Scanner, find_with_rule};
use crate::text::Flow;

fn builtin() -> &'static Scanner {
    static SCANNER: std::sync::OnceLock<Scanner> = std::sync::OnceLock::new();
    SCANNER.get_or_init(|| {
        let set = RuleSet::compile(&builtin_sources(), &RuleSetConfig::default());
        Scanner::new(std::sync::Arc::new(set.unwrap_or_else(|problems| panic!("{problems}"))))
    })
}

const EVERYTHING: Scope = Scope { plugins: u32::MAX, role: None, surface: None };

fn by_engine(text: &str) -> BTreeSet<u32> {
    let rules = builtin().rules();
    let mut matches = Vec::new();
    rules
        .with_scratch(|scratch| rules.scan(text, EVERYTHING, None, scratch, &Budget::UNLIMITED, &mut matches))
        .expect("no budget");
    for found in &matches {
        assert!(text.is_char_boundary(found.range.start) && text.is_char_boundary(found.range.end));
        assert!(!found.range.is_empty());
    }
    matches.into_iter().map(|m| m.rule).collect()
}

/// Rules whose regex matches somewhere, without looking at validators and context.
fn by_regex(text: &str) -> BTreeSet<u32> {
    let flow = Flow::of(text);
    let is_match = |rule: &CompiledRule| {
        let goes_on = flow.as_ref().filter(|_| &*rule.info.plugin == INJECTION);
        rule.regex.is_match(Input::new(text))
            || goes_on.is_some_and(|flow| rule.regex.is_match(Input::new(flow.text())))
    };
    let rules = builtin().rules().rules().iter().enumerate();
    rules.filter(|(_, rule)| is_match(rule)).map(|(i, _)| i as u32).collect()
}

#[test]
fn what_built_in_files_name_is_used() {
    for source in builtin_sources() {
        let file: toml::Table = source.text.parse().expect("a built-in file");
        let names = |table: &str| {
            file.get(table).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys)
        };
        let unused = names("words")
            .filter(|name| !source.text.contains(&format!("{{{name}}}")))
            .chain(names("define").filter(|name| !source.text.contains(&format!("(?&{name})"))));
        assert_eq!(unused.collect::<Vec<_>>(), [] as [&String; 0], "{}", source.name);
    }
}

#[test]
fn the_built_in_model_is_small() {
    let sources = builtin_sources();
    let model = sources.iter().find(|source| source.name.ends_with("/model.toml")).expect("it is built in");
    assert!(model.text.len() < 128 * 1024, "{}", model.text.len());
}

#[test]
fn built_in_rules_pass_their_self_check() {
    let scanner = builtin();
    // Patterns that nothing needs yet must compile as well.
    scanner.rules().warm_up();
    let find = |_: &RuleSet, rule: u32, text: &str, role, surface| {
        find_with_rule(scanner, rule, text, Some(role), Some(surface))
    };
    let checked = self_check(scanner.rules(), |_| true, &find);
    let problems: Vec<String> = checked.problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(checked.rules > 100 && checked.texts > 3 * checked.rules, "{checked:?}");
}

#[test]
fn what_rules_about_injection_find_they_find_in_wrapped_lines() {
    /// Most bytes of a line, where words are shorter.
    const LINE: usize = 24;
    /// Of so many examples one may be lost: it shows a line by itself, or what stands at the beginning of one.
    const LOST_OF: usize = 100;
    let wrapped = |text: &str| {
        let mut line = 0;
        let wrap = |word: &str| {
            line += word.len();
            let is_full = line > LINE && word.ends_with(' ');
            line = if is_full || word.contains('\n') { 0 } else { line };
            if is_full { word.replace(' ', "\n") } else { word.to_owned() }
        };
        text.split_inclusive(' ').map(wrap).collect::<String>()
    };
    let (mut asked, mut lost) = (0, Vec::new());
    for (index, rule) in (0..).zip(builtin().rules().rules()) {
        if &*rule.info.plugin != INJECTION {
            continue;
        }
        let finds = |text: &str| !find_with_rule(builtin(), index, text, None, None).is_empty();
        for example in rule.def.examples.iter().filter(|example| finds(example)) {
            asked += 1;
            if !finds(&wrapped(example)) {
                lost.push(format!("{}: {example:?}", rule.info.id));
            }
        }
    }
    assert!(asked > 1_500, "{asked}");
    assert!(lost.len() * LOST_OF <= asked, "{} of {asked}:\n{}", lost.len(), lost.join("\n"));
}

#[test]
fn gates_of_built_in_rules_lose_nothing_new() {
    // Patterns of these are wider than is meant: their gates keep harmless text away. Who mends one takes it out.
    let known = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/gates_that_lose.txt"));
    let known: BTreeSet<&str> = known.lines().filter(|line| !line.starts_with('#')).collect();
    let lost = lost_by_gates(builtin().rules(), |_| true);
    let losing: BTreeSet<&str> = lost.notes.iter().map(|note| note.rule_id.as_str()).collect();
    let notes: Vec<String> = lost.notes.iter().map(ToString::to_string).collect();
    assert_eq!(losing, known, "{}", notes.join("\n"));
    assert!(lost.unknown.len() <= 40, "{:?}", lost.unknown);
}

#[test]
fn rejected_matches_are_not_read_again_from_every_word() {
    let rules = builtin().rules();
    let cost = |words: usize| {
        // Every word begins a value that goes on to the end of the text, and is rejected there.
        let text = "name:secret".repeat(words);
        rules.with_scratch(|scratch| {
            scratch.take_cost();
            let mut matches = Vec::new();
            rules
                .scan(&text, EVERYTHING, None, scratch, &Budget::UNLIMITED, &mut matches)
                .expect("no budget");
            scratch.take_cost()
        })
    };
    let (short, long) = (cost(1_500), cost(6_000));
    assert!(long < 5 * short, "four times the text costs {long} after {short}");
}

#[test]
fn what_a_rule_finds_alone_it_finds_among_others() {
    let rules = builtin().rules();
    for (index, rule) in rules.rules().iter().enumerate() {
        for example in &rule.def.examples {
            let text = format!("Some words before it.\n\n{example}\n\nAnd some more, 42 of them, behind it.");
            let looks_around =
                rule.exclude_before.is_some() || rule.exclude_after.is_some() || !rule.validators.is_empty();
            if looks_around || !by_engine(example).contains(&(index as u32)) || !rule.regex.is_match(&*text) {
                // Found through a text layer only, or not among words by intent.
                continue;
            }
            assert!(by_engine(&text).contains(&(index as u32)), "{}: {example:?}", rule.info.id);
        }
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let examples: Vec<String> = builtin()
        .rules()
        .rules()
        .iter()
        .flat_map(|r| r.def.examples.iter().chain(&r.def.negative_examples).cloned())
        .collect();
    let piece = prop_oneof![
        4 => proptest::sample::select(examples),
        2 => "[ -~\\n]{0,40}",
        1 => "\\PC{0,12}",
        1 => proptest::sample::select(vec!["ignore ".repeat(90), "4111 1111 ".repeat(40), "a@".repeat(80)]),
    ];
    proptest::collection::vec(piece, 1..6).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The gate never invents a match that the regex does not make.
    #[test]
    fn the_engine_finds_nothing_that_a_regex_does_not(text in pieces()) {
        // Phrases have a matcher of their own, and tests beside it.
        let has_regex = |rule: &u32| builtin().rules().rules()[*rule as usize].def.phrases.is_none();
        let engine = by_engine(&text).into_iter().filter(has_regex).collect::<BTreeSet<u32>>();
        let invented: Vec<u32> = engine.difference(&by_regex(&text)).copied().collect();
        prop_assert!(invented.is_empty(), "{invented:?}");
    }

    /// The gate never loses one: rules without further conditions find exactly what their regexes match.
    #[test]
    fn the_gate_loses_nothing(text in pieces()) {
        let rules = builtin().rules().rules();
        let engine = by_engine(&text);
        for index in by_regex(&text) {
            let rule = &rules[index as usize];
            let is_plain = rule.validators.is_empty()
                && rule.exclude.is_empty()
                && rule.exclude_before.is_none()
                && rule.exclude_after.is_none()
                && rule.near.is_none()
                && rule.shape().value_groups.is_empty()
                && rule.shape().span_group.is_none();
            // Capitals of other scripts are found in the folded view of a text, which is not looked at here.
            if is_plain && text.is_ascii() {
                prop_assert!(engine.contains(&index), "{} lost in {text:?}", rule.info.id);
            }
        }
    }
}

fn compile(rules: &str) -> Result<RuleSet, RuleProblems> {
    let source = RuleSource::custom("t.toml", "custom", rules);
    RuleSet::compile(&[source], &RuleSetConfig::default())
}

fn rule(extra: &str) -> String {
    format!(
        "[[rule]]\nid = \"a.b\"\ncategory = \"c\"\nseverity = \"low\"\ndescription = \"d\"\nrecommendation = \"r\"\n\
         examples = [\"x\"]\nnegative_examples = [\"y\"]\n{extra}\n"
    )
}

#[test]
fn problems_say_where_and_what() {
    let plain = "literals = ['abc']\npattern = 'abc'";
    for (extra, wanted) in [
        ("literals = ['abc']\npattern = 'abc('", "pattern"),
        ("literals = ['ab']\npattern = 'ab'", "at least 3 bytes"),
        ("pattern = 'abc'", "name literals"),
        ("literals = ['abc']\npattern = 'abc.*'", "match_length_max"),
        ("literals = ['abc']\npattern = '(abc)?'", "nothing at all"),
        ("literals = ['abc']\npattern = 'abc'\nvalidator = 'nope'", "validator"),
        ("literals = ['abc']\npattern = 'abc'\nconfidence = 1.5", "confidence"),
        ("literals = ['abc']\npattern = 'a(?&gap)'", "not in [define]"),
        ("literals = ['abc']\npattern = 'abc'\ntrigger = 'digits'", "not both"),
        ("literals = ['abc']\npattern = 'abc'\nlitterals = []", "litterals"),
        ("literals = ['abc']\npattern = 'abc'\nroles = []", "roles"),
        ("trigger = 'separator'\npattern = 'a@b'", "separators"),
        ("literals = ['abc']\npattern = 'a{1000}{1000}{100}'", "repeats smaller"),
        (
            "trigger = 'digits'\npattern = '1'\nliterals_begin_words = true",
            "only for a rule that has literals",
        ),
        ("literals = ['abc']\npattern = 'abc'\nexclude_overlaps = true", "only for a rule with `exclude`"),
        ("literals = ['abc']\npattern = 'abc'\nexclude_all = [[]]", "a condition names"),
        ("literals = ['abc']\npattern = 'abc'\nexclude_all = [[{ value = 'a' }, {}]]", "a condition names"),
        ("literals = ['abc']\npattern = 'abc'\nexclude_all = [[{ value = '(' }]]", "exclude_all"),
        (
            "literals = ['abc']\npattern = 'abc'\nexclude_all = [['x']]",
            "expected a condition such as { value = 'regex' }, with `value`, `match` or `line`",
        ),
        ("literals = ['abc']\npattern = 'abc'\nexclude = 5", "expected a text, or a list of texts"),
        ("literals = ['abc']\npattern = 'abc'\nnear_inside_words = true", "only for a rule that has context"),
        ("literal_words = ['ab']\npattern = 'ab'", "at least 3 bytes"),
        ("literal_words = ['abc']\npattern = 'abc'\ntrigger = 'digits'", "not both"),
        (
            "literals = ['abc']\npattern = 'abc'\nnear_distance = 50",
            "near_distance: only for a rule that has `near`",
        ),
        ("literals = ['abc']\npattern = 'abc'\nnear = []", "near is empty"),
        ("literals = ['abc']\npattern = 'abc'\nmatch_length_max = 999999", "at most 16384 bytes"),
        ("literals = ['abc']\npattern = 'abc'\nvalidator = 'lunh'", "did you mean `luhn`?"),
        ("literals = ['abc']\npattern = 'abc'\nvalidator = 'entropy:9'", "above 0 and at most 8"),
        ("literals = ['abc']\npattern = 'abc'\nvalidator = 'characters:0'", "a whole number from 1"),
        (
            "literals = ['abc']\npattern = 'abc'\nvalidator = 'national-id:pl-pesl'",
            "did you mean `national-id:pl-pesel`?",
        ),
    ] {
        let error = compile(&rule(extra)).expect_err(extra).to_string();
        assert!(error.contains(wanted), "{extra}: {error}");
        assert!(error.starts_with("t.toml:"), "{error}");
    }
    // The line is that of the field where it stands at the beginning of one.
    let text = rule("literals = ['abc']\npattern = 'abc'\nconfidence = 1.5");
    let line = text.lines().position(|line| line.starts_with("confidence")).expect("the field") + 1;
    let error = compile(&text).expect_err("a wrong field").to_string();
    assert!(error.starts_with(&format!("t.toml:{line}: rule `a.b`, confidence: ")), "{error}");
    for category in ["PII Badge", "pii..badge", "pii.", "Pii.badge"] {
        let text = rule(plain).replace("category = \"c\"", &format!("category = {category:?}"));
        let error = compile(&text).expect_err(category).to_string();
        assert!(error.contains("category: use lower-case letters"), "{category}: {error}");
    }
    let twice = format!("{}{}", rule(plain), rule(plain));
    assert!(
        compile(&twice)
            .expect_err("two")
            .to_string()
            .contains("t.toml:12: rule `a.b`, id: already used at t.toml:1")
    );
    assert!(compile("[[rule]").is_err());
    for (text, wanted) in [
        ("rule = ['x']", "expected a table `[[rule]]`"),
        ("concept = ['x']", "expected a table `[[concept]]`"),
        ("model = 5", "expected a table `[model]`"),
        ("model.bounds = [5]", "expected a table with `speaker`, `warn` and `block`"),
        ("model.wording = 5", "expected a table `[model.wording]`"),
        ("model.wording.bounds = [5]", "expected a table with `speaker`, `warn` and `block`"),
    ] {
        let error = compile(text).expect_err(text).to_string();
        assert!(error.starts_with("t.toml:1: ") && error.contains(wanted), "{text}: {error}");
    }
    assert!(compile(&rule(plain)).is_ok());
}

#[test]
fn words_of_the_gate_stand_alone() {
    let set =
        compile(&rule("literal_words = ['nif', 'tc:']\npattern = '(?i)[a-z:]{3,8}\\s\\d'")).expect("valid");
    for (text, found) in [
        ("nif 1", 1),
        ("NIF\t1", 1),
        ("a\nnif\n1", 1),
        ("(nif 1", 1),
        ("|nif\t1", 1),
        ("_nif 1", 1),
        ("knif 1", 0),
        ("nife 1", 0),
        ("nif1 1", 0),
        ("tc: 1", 1),
        ("btc: 1", 0),
    ] {
        let mut matches = Vec::new();
        set.with_scratch(|s| set.scan(text, EVERYTHING, None, s, &Budget::UNLIMITED, &mut matches))
            .expect("no budget");
        assert_eq!(matches.len(), found, "{text:?}");
    }
}

#[test]
fn rules_about_injection_read_on_over_the_end_of_a_line() {
    type Case = (&'static str, &'static str, &'static str, &'static [(usize, usize)]);
    let cases: [Case; 11] = [
        ("all previous", "all previous", "all\nprevious", &[(0, 12)]),
        ("all previous", "all previous", "all previous, all\nprevious\nones", &[(0, 12), (14, 26)]),
        // What stands apart stays apart.
        ("all previous", "all previous", "all\n\nprevious all\n- previous all \nprevious", &[]),
        // A class without the line break means the line as it was written, or as it goes on.
        ("all[^\\n]{1,9}ones", "all", "all of\nthese\nones", &[]),
        ("all[^\\n]{1,19}ones", "all", "all of\nthese\nones", &[(0, 17)]),
        ("all[^\\n]{1,9}ones", "all", "all\n\nof ones, all ones", &[(14, 22)]),
        // What needs a line break keeps it.
        ("(?m)^all$", "all", "not all\nall\nof all", &[(8, 11)]),
        ("so\\nall", "all", "so\nall, so all", &[(0, 6)]),
        ("so[\\n ]all", "all", "so\nall, so all", &[(0, 6), (8, 14)]),
        ("(?m)all(?: of)?[ ]these$", "all", "all of\nthese\nones, all\nthese.", &[]),
        // As long as the pattern may read, in any place of a text that begins and ends so.
        ("all[ ]of", "all", "\nall\nof\n", &[(1, 7)]),
    ];
    for (pattern, literals, text, found) in cases {
        let written =
            format!("literals = [\"{literals}\"]\npattern = '''{pattern}'''\nmatch_length_max = 60");
        let found: Vec<_> = found.iter().map(|(start, end)| *start..*end).collect();
        assert_eq!(found_by(INJECTION, &written, text), found, "{pattern} in {text:?}");
        // Other rules read the text as it was sent.
        let regex = regex_automata::meta::Regex::new(pattern).expect("valid");
        let sent: Vec<_> = regex.find_iter(text).map(|found| found.range()).collect();
        assert_eq!(found_by("custom", &written, text), sent, "{pattern} in {text:?}");
    }
}

/// Where the one rule of a plugin finds something in a text.
fn found_by(plugin: &str, written: &str, text: &str) -> Vec<std::ops::Range<usize>> {
    let source = RuleSource::custom("t.toml", plugin, rule(written));
    let set = RuleSet::compile(&[source], &RuleSetConfig::default()).expect("valid");
    let mut matches = Vec::new();
    set.with_scratch(|s| set.scan(text, EVERYTHING, None, s, &Budget::UNLIMITED, &mut matches))
        .expect("no budget");
    matches.into_iter().map(|found| found.range).collect()
}

#[test]
fn exclusions_of_patterns_see_over_the_end_of_a_line() {
    let written =
        "literals = ['zrun']\npattern = 'zrun'\nexclude_before = 'must not $'\nexclude_after = '^ never'";
    for (text, found) in [
        ("you must\nzrun", true),
        ("you must not zrun", false),
        ("you must not\nzrun", false),
        ("you must\nnot zrun", false),
        ("zrun never", false),
        ("zrun\nnever", false),
        ("zrun\n\nnever", true),
    ] {
        assert_eq!(!found_by(INJECTION, written, text).is_empty(), found, "{text:?}");
    }
}

#[test]
fn literals_with_line_breaks_open_what_was_sent_so() {
    let written = "literals = [\"\"\"pin\\nof\\n\\ndoor\"\"\"]\npattern = '(?i)pin\\s+of\\s+door'\nmatch_length_max = 60";
    for (text, found) in [
        ("pin\nof\n\ndoor", true),
        ("a\nb PIN\nof\n\ndoor", true),
        ("pin of\n\ndoor\nand", false),
        ("pin of  door\nand", false),
        ("pin\nof\ndoor", false),
    ] {
        for plugin in [INJECTION, "custom"] {
            assert_eq!(!found_by(plugin, written, text).is_empty(), found, "{plugin}: {text:?}");
        }
    }
}

#[test]
fn what_speaks_against_a_phrase_may_stand_on_the_line_before() {
    let written =
        "phrases = ['show your secret']\nexclude_before = 'must not (?:ever )?$'\nexclude_after = '^ to me'";
    let source = RuleSource::custom("t.toml", INJECTION, rule(written));
    let set = RuleSet::compile(&[source], &RuleSetConfig::default()).expect("valid");
    let scanner = Scanner::new(std::sync::Arc::new(set));
    for (text, found) in [
        ("so show your secret", true),
        ("must not show your secret", false),
        ("must not\nshow your\nsecret", false),
        ("must\nnot ever show your secret", false),
        ("show your\nsecret to\nme", false),
        ("you must not\n\nshow your secret", true),
    ] {
        assert_eq!(!find_with_rule(&scanner, 0, text, None, None).is_empty(), found, "{text:?}");
    }
}

#[test]
fn a_line_that_goes_on_costs_no_retries() {
    let written = "literals = ['zrun']\npattern = '(?:zno )?zrun [a-z]+'\nexclude_match = ['^zno zrun', ' x$']\nmatch_length_max = 20";
    // The window is one, and each of its matches is rejected twice.
    let rejected = "zno zrun x. ".repeat(30);
    for end in ["zrun\naway", "zrun away"] {
        let text = format!("{rejected}zno zrun evil. end. {end}");
        assert_eq!(found_by(INJECTION, written, &text), [364..373, 380..389], "{text:?}");
    }
}

#[test]
fn what_is_excluded_takes_with_it_what_overlaps_it_where_a_rule_says_so() {
    type Case = (&'static str, &'static str, &'static str, &'static [(usize, usize)]);
    let cases: [Case; 10] = [
        // By two things together, or by neither.
        (
            "[a-z]{3,9}[.]zhost",
            "exclude_all = [[{ value = '^pub' }, { value = 'x[.]' }]]",
            "pubx.zhost; pub.zhost",
            &[(12, 21)],
        ),
        (
            "[a-z]{3,9}[.]zhost",
            "exclude_all = [[{ match = '^q' }], [{ value = ['^no', '^pub'], line = '# no$' }]]",
            "pub.zhost # no\npub.zhost\nabc.zhost # no",
            &[(15, 24), (25, 34)],
        ),
        // By its value, its match and its line.
        ("[a-z]{3,9}[.]zhost", "exclude = '^pub'", "publicx.zhost, myx.zhost", &[(15, 24)]),
        ("[a-z]{3,9}[.]zhost", "exclude_match = '^pub'", "publicx.zhost", &[]),
        ("[a-z]{3,9}[.]zhost", "exclude_line = '# no$'", "abc.zhost # no\nabc.zhost", &[(15, 24)]),
        // Tried at each literal alone, which may stand inside of what another began.
        ("zhost[a-z/]{1,20}", "exclude = '^zhost/ok'", "zhost/okay/zhost/a zhost/b", &[(19, 26)]),
        // The delimiter behind a value may be the one before the next.
        ("(?:^|;)(?P<value>z=[a-z]{2,3});", "exclude = '^z=no'", ";z=no;z=yes;", &[(6, 11)]),
        ("(?:^|;)(?P<value>z=[a-z]{2,3});", "exclude_match = '^;z=no'", ";z=no;z=yes;", &[(6, 11)]),
        // What something else rejects is retried, whatever it held.
        ("[a-z]{3,9}[.]zhost", "exclude = '^q'\nvalidator = 'characters:8'", "abcd.zhost", &[(1, 10)]),
        (
            "(?:zno )?zrun [a-z]+",
            "exclude_match = 'b$'\nexclude_before = '!$'",
            "!zno zrun it. zrun b",
            &[(5, 12)],
        ),
    ];
    for (pattern, exclusion, text, found) in cases {
        let literals: Vec<&str> =
            ["zhost", "z=no", "z=yes", "zrun"].into_iter().filter(|literal| text.contains(literal)).collect();
        let written = format!(
            "literals = {literals:?}\npattern = '{pattern}'\nmatch_length_max = 40\n{exclusion}\nexclude_overlaps = true"
        );
        let found: Vec<_> = found.iter().map(|(start, end)| *start..*end).collect();
        for plugin in [INJECTION, "custom"] {
            assert_eq!(found_by(plugin, &written, text), found, "{pattern} and {exclusion} in {text:?}");
        }
    }
    // Elsewhere another match may begin inside: nobody hides a value behind what is excluded.
    let written = "literals = ['zhost']\npattern = '[a-z]{3,9}[.]zhost'\nexclude = '^pub'";
    assert_eq!(found_by("custom", written, "publicx.zhost").first(), Some(&(1..13)));
}

#[test]
fn context_words_may_count_inside_of_longer_ones() {
    let written =
        "literals = ['zq-']\npattern = 'zq-[0-9]{4}'\nnear = ['key', 'x:zq']\nnear_inside_words = true";
    for (text, found) in [
        ("myApiKeys are zq-1234", 1),
        ("zq-1234, of the monkeys", 1),
        ("zq-1234", 0),
        // It may begin before the match and end in it.
        ("ax:zq-1234", 1),
        ("a zq-1234 k e y", 0),
    ] {
        assert_eq!(found_by("custom", written, text).len(), found, "{text:?}");
    }
    let words = written.replace("near_inside_words = true", "");
    assert!(found_by("custom", &words, "myApiKeys are zq-1234").is_empty());
}

#[test]
fn the_first_group_for_a_value_that_matched_something_counts() {
    let written = "literals = ['zauth']\nexclude = '^no'\n\
                   pattern = '(?P<value3>zauth(?: basic (?P<value>[a-z]{0,9})| bearer (?P<value2>[a-z]{3,9}))?)'";
    for (text, found) in [
        ("zauth basic abc", Some(12..15)),
        ("zauth bearer abc", Some(13..16)),
        ("zauth basic nothing", None),
        ("zauth basic ", Some(0..12)),
        ("zauth and", Some(0..5)),
    ] {
        assert_eq!(found_by("custom", written, text).into_iter().next(), found, "{text:?}");
    }
}

#[test]
fn a_context_word_may_stand_as_far_away_as_it_says() {
    let extra = "literals = ['pin', 'code of the door']\nnear = ['pin', 'code of the door']\nnear_distance = 40\n\
                 pattern = '\\b[0-9]{4}\\b'";
    let set = compile(&rule(extra)).expect("valid");
    for word in ["pin", "code of the door"] {
        for far in 0..60 {
            let gap = "-".repeat(far);
            for text in
                [format!("{word} {gap} 4711"), format!("4711 {gap} {word}"), format!("- {word} {gap} 4711 -")]
            {
                let mut matches = Vec::new();
                set.with_scratch(|s| set.scan(&text, EVERYTHING, None, s, &Budget::UNLIMITED, &mut matches))
                    .expect("no budget");
                // A blank on either side of the gap, and one that ends the word where something follows.
                assert_eq!(matches.len(), usize::from(word.len() + far + 2 <= 40), "{text:?}");
            }
        }
    }
}

#[test]
fn distance_to_a_context_word_is_counted_in_characters() {
    for literals in ["'pin'", "'4711'"] {
        let extra =
            format!("literals = [{literals}]\nnear = ['pin']\nnear_distance = 40\npattern = '\\b4711\\b'");
        let set = compile(&rule(&extra)).expect("valid");
        for letter in ["-", "я", "ก", "漢", "🙂"] {
            for far in 0..60 {
                let gap = letter.repeat(far);
                for text in [format!("pin {gap} 4711"), format!("{letter} 4711 {gap} pin {letter}")] {
                    let mut matches = Vec::new();
                    set.with_scratch(|s| {
                        set.scan(&text, EVERYTHING, None, s, &Budget::UNLIMITED, &mut matches)
                    })
                    .expect("no budget");
                    assert_eq!(matches.len(), usize::from(far + 5 <= 40), "{text:?}");
                }
            }
        }
    }
}

#[test]
fn a_context_word_may_be_part_of_a_name() {
    let extra = "literals = ['-4711']\nnear = ['door code', 'pin', 'дверь']\nnear_distance = 60\npattern = '\\b[0-9]-4711\\b'";
    let set = compile(&rule(extra)).expect("valid");
    for (text, wanted) in [
        ("door code 1-4711", true),
        ("DOOR_CODE=1-4711", true),
        ("door-code: 1-4711", true),
        ("{\"doorCode\": \"1-4711\"}", true),
        ("{\"doorCodeValue\": \"1-4711\"}", true),
        ("<UserPin>1-4711</UserPin>", true),
        ("pinNumber = 1-4711", true),
        ("(дверь) 1-4711", true),
        ("shopping 1-4711", false),
        ("PINE 1-4711", false),
        ("pine 1-4711", false),
        ("indoorCode 1-4711", false),
        ("doorCoded 1-4711", false),
    ] {
        let mut matches = Vec::new();
        set.with_scratch(|s| set.scan(text, EVERYTHING, None, s, &Budget::UNLIMITED, &mut matches))
            .expect("no budget");
        assert_eq!(!matches.is_empty(), wanted, "{text:?}");
    }
}

#[test]
fn dense_and_sparse_candidates_are_all_searched() {
    let set = compile(&rule("literals = ['abc']\npattern = 'abc[0-9]'")).expect("valid");
    for (unit, found) in [("abc ", 0), ("abc1", 1), ("abc1                    ", 1), ("abcabc2", 1)] {
        for count in [1, 63, 64, 65, 200, 5000] {
            let text = unit.repeat(count);
            let mut matches = Vec::new();
            set.with_scratch(|s| set.scan(&text, EVERYTHING, None, s, &Budget::UNLIMITED, &mut matches))
                .expect("no budget");
            assert_eq!(matches.len(), found * count, "{unit:?} x {count}");
        }
    }
}

#[test]
fn a_spent_budget_stops_the_scan() {
    let set = compile(&rule("literals = ['abc']\npattern = 'abc'")).expect("valid");
    let budget = Budget { is_spent: &|| true };
    let stopped = set.with_scratch(|s| set.scan("abc", EVERYTHING, None, s, &budget, &mut Vec::new()));
    assert_eq!(stopped, Err(ScanStop));
    // The scratch is clean again.
    let mut matches = Vec::new();
    set.with_scratch(|s| set.scan("xyz", EVERYTHING, None, s, &Budget::UNLIMITED, &mut matches))
        .expect("no budget");
    assert!(matches.is_empty());
}

#[test]
fn a_finding_may_span_more_than_its_value() {
    let set = compile(&rule(
        "literals = ['pin=']\nvalidator = 'luhn'\npattern = '(?:(?P<span>user=[a-z]{1,9};pin=(?P<value>[0-9]{4}))|pin=0{4})'",
    ))
    .expect("valid");
    for (text, found) in [
        ("a user=me;pin=0018 b", Some(2..18)),
        ("a user=me;pin=0019 b", None),
        // The group `value` has no part in this match, so nothing can be judged.
        ("a pin=0000 b", None),
    ] {
        let mut matches = Vec::new();
        set.with_scratch(|s| set.scan(text, EVERYTHING, None, s, &Budget::UNLIMITED, &mut matches))
            .expect("no budget");
        assert_eq!(matches.into_iter().map(|m| m.range).next(), found, "{text}");
    }
}

#[test]
fn values_that_share_a_delimiter_are_all_found() {
    let set = compile(&rule(
        "trigger = 'digits'\ntrigger_min = 4\npattern = '(?:^|[^0-9])(?P<value>[0-9]{4})(?:[^0-9]|$)'",
    ))
    .expect("valid");
    for (text, found) in [
        ("1234 5678 9012", [Some(0..4), Some(5..9), Some(10..14)]),
        ("1234,5678", [Some(0..4), Some(5..9), None]),
        ("12345 6789", [Some(6..10), None, None]),
    ] {
        let mut matches = Vec::new();
        set.with_scratch(|s| set.scan(text, EVERYTHING, None, s, &Budget::UNLIMITED, &mut matches))
            .expect("no budget");
        let found: Vec<_> = found.into_iter().flatten().collect();
        assert_eq!(matches.into_iter().map(|m| m.range).collect::<Vec<_>>(), found, "{text}");
    }
}

#[test]
fn rules_about_credentials_name_their_documentation_and_the_way_to_revoke() {
    const WAYS: [&str; 9] = [
        "revoke",
        "rotate",
        "delete",
        "deactivate",
        "regenerate",
        "reset",
        "replace",
        "change the password",
        "issue a new",
    ];
    let of_secrets = |rule: &&CompiledRule| &*rule.info.plugin == crate::rules::SECRETS;
    let mut count = 0;
    for rule in builtin().rules().rules().iter().filter(of_secrets) {
        count += 1;
        let (id, says) = (&rule.info.id, rule.def.recommendation.to_ascii_lowercase());
        assert!(
            rule.def.references.iter().any(|link| link.starts_with("https://")),
            "{id}: no documentation"
        );
        assert!(WAYS.iter().any(|way| says.contains(way)), "{id}: does not say how to revoke: {says}");
    }
    assert!(count >= 250, "{count} rules");
}
