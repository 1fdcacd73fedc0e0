//! Programs in languages that no parser here reads: where their values go.

use super::origin::{self, Trust};
use super::{Scan, patterns};
use crate::bundles::coverage::Unscanned;
use crate::bundles::flow::{self, Followed, Reach, Source, To, Tongue, World};
use crate::bundles::rules::{BundleRules, HostKind, Matcher, after_scheme};
use crate::bundles::work::Task;
use crate::decision::Severity;

/// Rules about text that stands close together, and no longer say anything where it is known what is sent.
const FOLLOWED: &[&str] = &["script.secret-transfer", "script.powershell-environment"];

/// What a look at a token costs, in units of work.
const LOOK_COST: u64 = 100;

/// Follows the file, where its language is known.
pub(super) fn program(scan: &mut Scan<'_, '_>) {
    let rules = scan.engines.rules;
    let Some(tongue) = rules.flows().tongue_of(scan.path, scan.text) else { return };
    let text = scan.text;
    if text.len() > flow::PROGRAM_BYTES_MAX {
        // Padding would switch the engine off otherwise.
        scan.done.cut = Some(Unscanned::TooLarge);
        return;
    }
    let (is_whole, is_clean) = follow(scan, tongue, text, 1);
    if !is_whole {
        scan.done.cut = Some(Unscanned::TooComplex);
    }
    if is_whole && is_clean {
        for rule in FOLLOWED {
            scan.found.findings.soften(scan.path, rule);
        }
    }
    scan.engine("flow");
}

/// Follows a block of a document that begins at a line of the file, by what the block is marked with.
pub(super) fn block(scan: &mut Scan<'_, '_>, mark: &str, text: &str, line: u32) {
    if let Some(tongue) = scan.engines.rules.flows().tongue_of_fence(mark) {
        follow(scan, tongue, text, line);
    }
}

/// Answers whether the program was followed as a whole, and whether what it sends is known to be nothing secret.
fn follow(scan: &mut Scan<'_, '_>, tongue: &Tongue, text: &str, line: u32) -> (bool, bool) {
    if !scan.may(Task::Program, text.len()) {
        return (true, false);
    }
    let rules = scan.engines.rules;
    let world = World { facts: rules.flows(), is_secret: &|path: &str| rules.is_private_place(path) };
    let Followed { found, is_whole, sends, looks } = flow::follow(text, tongue, &world);
    scan.found.work.charge(LOOK_COST * looks as u64);
    let is_clean = sends > 0 && !found.iter().any(|reach| reach.to == To::Send);
    let (mut counted, mut at_line) = (0, line);
    for reach in found {
        at_line += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..reach.at]).count() as u32;
        counted = reach.at;
        if is_own(&reach) {
            continue;
        }
        let holds =
            |matcher: &Matcher| matches!(matcher, Matcher::Flow(condition) if condition.holds(&reach));
        let Some(rule) = rules.rules().iter().find(|rule| holds(&rule.matcher)) else { continue };
        let is_known =
            !reach.is_sure || is_of_known_maker(rules, scan.text, &reach) || scan.is_line_described(at_line);
        let severity = if is_known { rule.severity.min(Severity::Medium) } else { rule.severity };
        let mut finding = patterns::finding(rule, scan.path, severity);
        finding.line = at_line;
        finding.snippet = scan.lines.show(at_line);
        scan.found.findings.add(finding);
    }
    (is_whole, is_clean)
}

/// Whether a secret goes to the service that it is of, and nowhere else.
fn is_own(reach: &Reach) -> bool {
    if reach.to != To::Send || reach.from.meets(Source::ENVIRONMENT) {
        return false;
    }
    let mut hosts = reach
        .beside
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\''))
        .filter_map(after_scheme)
        .peekable();
    let path = reach.origin.replace('\\', "/");
    hosts.peek().is_some()
        && hosts.all(|rest| {
            let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
            crate::shell::owns_file(host, &path, false)
        })
}

/// Whether what is run was fetched from whom the world knows, or as a release from where its maker's name stands before it.
fn is_of_known_maker(rules: &BundleRules, text: &str, reach: &Reach) -> bool {
    if !matches!(reach.to, To::Run | To::RunFile | To::Evaluate) || !reach.from.meets(Source::FETCHED) {
        return false;
    }
    if origin::trust_of(rules, &reach.origin, text) != Trust::Unknown {
        return true;
    }
    let is_release = |rest: &String| {
        let mut parts = rest.split('/');
        let is_there = parts
            .next()
            .is_some_and(|host| rules.hosts(HostKind::Repositories).iter().any(|one| one == host));
        is_there && rest.contains("/releases/download/") && !rest.contains("..")
    };
    reach.to == To::RunFile && after_scheme(&reach.origin).as_ref().is_some_and(is_release)
}
