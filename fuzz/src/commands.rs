//! Commands: what they would do, and what rules say of that.

use portcullis::commands::{CommandRules, GuardContext};
use portcullis::detect::{CODE, Request, Scanner};
use portcullis::paths::{Os, Place};
use portcullis::rules::{Budget, RuleSet, RuleSetConfig, RuleSource};
use portcullis::shell::{self, limits::Limits};
use std::sync::LazyLock;

/// A scanner with no rules but those in code.
static CODED: LazyLock<Scanner> = LazyLock::new(|| {
    // A rule of the plugin gives it its bit; this one finds what no text holds.
    let rule = RuleSource::custom("one.toml", CODE, RULE);
    let rules = RuleSet::compile(&[rule], &RuleSetConfig::default());
    Scanner::new(rules.unwrap_or_else(|problems| panic!("{problems}")).into())
});

const RULE: &str = r#"
[[rule]]
id = "code.none"
category = "code_injection.shell"
severity = "low"
literals = ["nothing of this kind"]
pattern = "nothing of this kind"
description = "Nothing."
recommendation = "Nothing."
examples = ["nothing of this kind"]
"#;

/// Any command: the analysis lies in it, is the same each time, and rules say the same of it; shown in a text, what is
/// found of it lies in that text. The first byte chooses the system and how much is known of the place.
pub fn commands(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let command = String::from_utf8_lossy(rest);
    let os = [Os::Linux, Os::MacOs, Os::Windows][usize::from(choice & 3) % 3];
    let (cwd, home) = if choice & 4 == 0 { ("", "") } else { ("/srv/repo", "/home/ada") };
    let roots = if choice & 8 == 0 { Vec::new() } else { vec!["/srv/repo".to_owned()] };
    let context = GuardContext { place: Place { cwd, home, os }, workspace_roots: &roots };
    let analyse = || shell::analyse(&command, context.place, &Limits::default());
    let analysis = analyse();
    assert_eq!(analysis, analyse(), "analysed twice");
    let spans = analysis.effects.iter().map(|effect| &effect.span);
    for span in spans.chain(analysis.unresolved.iter().map(|one| &one.span)).chain(&analysis.decoded) {
        assert!(command.get(span.clone()).is_some(), "{span:?} does not lie in {command:?}");
    }
    let judge = || -> Vec<_> {
        let hits = CommandRules::builtin().judge(&analysis, &context);
        hits.iter().map(|hit| (hit.rule.id.to_string(), hit.effect)).collect()
    };
    assert_eq!(judge(), judge(), "judged twice");
    let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let _ = shell::analyse_argv(&argv, context.place, &Limits::default());
    for shown in [format!("```sh\n{command}\n```"), format!("Run `{command}` now"), format!("$ {command}")] {
        let request = Request { text: &shown, plugins: u32::MAX, role: None, surface: None };
        let scanned = CODED.scan(request, &Budget::UNLIMITED).expect("no budget, no end of it");
        for found in scanned.findings {
            assert!(shown.get(found.range.clone()).is_some(), "{:?} does not lie in {shown:?}", found.range);
        }
    }
}
