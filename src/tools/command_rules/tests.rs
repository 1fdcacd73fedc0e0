//! The built-in rules against their own examples, and what is refused in a file of rules.

use super::*;

#[test]
fn every_built_in_rule_holds_for_its_examples_and_for_no_others() {
    let check = CommandRules::builtin().self_check(|_| true);
    let problems: Vec<String> = check.problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(check.rules > 40 && check.commands > 200, "{check:?}");
}
