//! The built-in rules against their own examples.

use super::*;

#[test]
fn builtin_rules_hold_for_their_examples() {
    let checked = SensitivePaths::builtin().self_check(|_| true);
    let problems: Vec<String> = checked.problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(checked.rules > 25 && checked.paths > 200, "{checked:?}");
}
