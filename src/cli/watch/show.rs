//! What a monitor says, told to the person on standard error: short for people, or one JSON document a line.
//!
//! The JSON is that of the contract (`StreamMonitorResponse`), and `{"watch":{…}}` for what we say ourselves. Text that
//! comes from the command is printed with its control characters spelled out.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;

use super::shown::Shown;
use crate::cli::snippet::printable;
use crate::pb::v1;
use crate::pb::v1::stream_monitor_response::Kind;

/// Longest text of one field for people, in characters.
const FIELD_CHARS: usize = 300;
/// Most incidents whose details are kept until their verdict comes.
const INCIDENTS_MAX: usize = 1_000;

/// See the module.
pub(super) struct Teller {
    as_json: bool,
    /// Whether the terminal is raw, so that a line needs a carriage return as well.
    pub(super) is_raw: bool,
    /// Our standard error.
    errors: Arc<Shown>,
    incidents: HashMap<String, Known>,
    /// What was left out since too much waits to be read.
    left_out: u64,
}

struct Known {
    incident: v1::Incident,
    /// The strongest verdict that was told.
    told: v1::VerdictKind,
}

impl Teller {
    pub(super) fn new(as_json: bool, errors: Arc<Shown>) -> Self {
        Self { as_json, is_raw: false, errors, incidents: HashMap::new(), left_out: 0 }
    }

    /// Tells what a monitor said, as far as a person wants to know.
    pub(super) fn said(&mut self, response: &v1::StreamMonitorResponse) {
        if matches!(response.kind, None | Some(Kind::Ack(_) | Kind::Attached(_))) {
            return;
        }
        if self.as_json {
            if let Ok(line) = serde_json::to_string(response) {
                self.print(&[line]);
            }
            return;
        }
        match &response.kind {
            Some(Kind::Incident(incident)) => self.remember(incident),
            Some(Kind::Verdict(verdict)) => self.verdict(verdict),
            Some(Kind::Summary(summary)) => self.summary(summary),
            _ => {}
        }
    }

    /// Says something of our own; `event` names it for programs.
    pub(super) fn note(&mut self, event: &str, message: &str) {
        self.print(&[self.own(event, message)]);
    }

    fn remember(&mut self, incident: &v1::Incident) {
        if self.incidents.len() < INCIDENTS_MAX {
            let known = Known { incident: incident.clone(), told: v1::VerdictKind::Unspecified };
            self.incidents.insert(incident.id.clone(), known);
        }
    }

    fn verdict(&mut self, verdict: &v1::Verdict) {
        let kind = stronger_unknown(verdict.verdict());
        let source = by(verdict.source());
        let known = self.incidents.get_mut(&verdict.incident_id);
        let told = known.as_ref().map_or(v1::VerdictKind::Unspecified, |known| known.told);
        let is_news = kind > v1::VerdictKind::Safe || told > v1::VerdictKind::Safe;
        let mut lines = Vec::new();
        match known {
            Some(known) if is_news => {
                if told == v1::VerdictKind::Unspecified {
                    lines.extend(headline(kind, &known.incident));
                    lines.push(format!("portcullis:   {} (by the {source})", field(&verdict.reason)));
                } else {
                    let rule = field(&known.incident.rule_id);
                    let reason = field(&verdict.reason);
                    lines.push(format!("portcullis: {} {rule}: {reason} (by the {source})", name(kind)));
                }
                known.told = known.told.max(kind);
            }
            None if is_news => {
                let reason = field(&verdict.reason);
                lines.push(format!("portcullis: {} {reason} (by the {source})", name(kind)));
            }
            _ => {}
        }
        if verdict.r#final && kind < v1::VerdictKind::Kill {
            self.incidents.remove(&verdict.incident_id);
        }
        self.print(&lines);
    }

    fn summary(&mut self, summary: &v1::Summary) {
        let line = |unjudged: &v1::Unjudged| {
            let effect = if unjudged.failed_open { "went on without it" } else { "counts against it" };
            let (plugin, reason) = (field(&unjudged.plugin), field(&unjudged.reason));
            format!("portcullis: unjudged: {plugin}, {reason}: {} ({effect})", field(&unjudged.detail))
        };
        self.print(&summary.unjudged.iter().map(line).collect::<Vec<_>>());
    }

    /// Prints lines. Nobody waits for whoever reads them: where too much waits to be read, they are left out, and their
    /// number is told once there is room.
    fn print(&mut self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        if self.left_out > 0 {
            let message = format!("{} message(s) were left out, as nobody read them", self.left_out);
            if self.errors.say(&self.text_of(&[self.own("left_out", &message)])) {
                self.left_out = 0;
            }
        }
        if !self.errors.say(&self.text_of(lines)) {
            self.left_out += 1;
        }
    }

    fn text_of(&self, lines: &[String]) -> String {
        let end = if self.is_raw { "\r\n" } else { "\n" };
        lines.iter().flat_map(|line| [line.as_str(), end]).collect()
    }

    fn own(&self, event: &str, message: &str) -> String {
        if self.as_json {
            json!({ "watch": { "event": event, "message": message } }).to_string()
        } else {
            format!("portcullis: {}", printable(message))
        }
    }
}

/// What was found and where.
fn headline(kind: v1::VerdictKind, incident: &v1::Incident) -> [String; 2] {
    let severity = incident.severity().as_str_name().trim_start_matches("SEVERITY_").to_ascii_lowercase();
    let stream = match incident.stream() {
        v1::OutputStream::Stderr => "stderr",
        _ => "stdout",
    };
    [
        format!(
            "portcullis: {} {} ({}, {severity}) at byte {} of {stream}",
            name(kind),
            field(&incident.rule_id),
            field(&incident.category),
            incident.offset
        ),
        format!("portcullis:   {}", field(&incident.matched_text)),
    ]
}

/// A verdict that this program does not know stops the command, as the contract says.
pub(super) fn stronger_unknown(kind: v1::VerdictKind) -> v1::VerdictKind {
    if kind == v1::VerdictKind::Unspecified { v1::VerdictKind::Kill } else { kind }
}

fn name(kind: v1::VerdictKind) -> &'static str {
    kind.as_str_name().trim_start_matches("VERDICT_KIND_")
}

fn by(source: v1::VerdictSource) -> &'static str {
    match source {
        v1::VerdictSource::Judge => "judge",
        v1::VerdictSource::Policy => "policy",
        v1::VerdictSource::FailMode => "fail mode, as nobody could judge",
        v1::VerdictSource::Rule | v1::VerdictSource::Unspecified => "rule",
    }
}

/// A text of somebody else on one line of bounded length.
fn field(text: &str) -> String {
    let mut characters = text.chars();
    let mut line: String =
        characters.by_ref().take(FIELD_CHARS).map(|c| if c == '\n' { ' ' } else { c }).collect();
    if characters.next().is_some() {
        line.push('…');
    }
    printable(&line)
}
