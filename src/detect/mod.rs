//! One text to findings: which views are scanned, by what, and which of overlapping findings stands.
//!
//! The rule set does nearly all of the finding. Detectors in code exist for what a regex cannot express; each is one
//! file here and one line in [`coded`]. Pure and synchronous: same text, same findings.

#[cfg(test)]
mod columns_tests;
pub mod concepts;
mod hidden_text;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reach_tests;
pub mod redact;
mod report;
mod resolve;
mod scanner;
mod shell_command;
mod shown;
mod warm;
pub mod wording;

use std::ops::Range;
use std::sync::Arc;

use crate::decision::{Finding, SpanRef};
use crate::rules::{MetaInfo, RuleSet, Surface};
use crate::text::{Layers, View};

pub use report::{Reported, fingerprint, report_text};
pub use scanner::{Request, Samples, Scanned, Scanner, find_with_rule};
pub use warm::{warm, warm_beside};

pub use crate::rules::{CODE, INJECTION, PII, SECRETS};

/// The built-in plugins with a sentence each, in the order in which they are listed.
pub const BUILTIN_PLUGINS: [(&str, &str); 4] = [
    (INJECTION, "Prompt injection: orders that try to take over the model or its context."),
    (PII, "Personal data: e-mail, phone, identity and card numbers, addresses of machines."),
    (SECRETS, "Credentials: API keys, tokens, passwords, private keys, connection strings."),
    (CODE, "Code injection: destructive commands, SQL, path traversal, templates, reverse shells."),
];

/// One thing found in one text.
#[derive(Clone, Debug)]
pub struct Detected {
    /// What its rule says.
    pub info: Arc<MetaInfo>,
    /// Where, in bytes of the text as sent.
    pub range: Range<usize>,
    /// The layers it was found through.
    pub layers: Layers,
}

impl Detected {
    /// It as a finding of what `span` names, before any policy is asked; with the version of the rules.
    pub fn finding(&self, version: &Arc<str>, span: SpanRef) -> Finding {
        let info = &self.info;
        Finding {
            plugin: info.plugin.clone(),
            plugin_version: version.clone(),
            rule_id: info.id.clone(),
            category: info.category.clone(),
            severity: info.severity,
            score: info.score,
            description: info.description.clone(),
            recommendation: info.recommendation.clone(),
            span,
            evasions: self.layers.iter().map(|layer| layer.as_str()).collect(),
            shadow: false,
            suppressed: false,
        }
    }
}

/// Settles findings about shell commands in the arguments of a tool call, by what the commands would do; in other texts nothing.
pub fn settle_commands(request: &Request<'_>, rules: &RuleSet, findings: &mut Vec<Detected>) {
    if request.surface == Some(Surface::ToolArgs) && request.plugins & rules.plugin_bits([CODE]) != 0 {
        shell_command::settle(request.text, findings);
    }
}

/// A detector in code.
pub trait Detector: Send + Sync {
    /// What its findings carry.
    fn info(&self) -> &Arc<MetaInfo>;

    /// Appends the ranges found in `view`, in bytes of the text as sent, each with the layers it was found through.
    fn detect(&self, view: &View<'_>, found: &mut Vec<(Range<usize>, Layers)>);
}

/// Every detector in code.
fn coded(version: &Arc<str>) -> Vec<Box<dyn Detector>> {
    let _ = version;
    vec![Box::new(hidden_text::HiddenText::new()), Box::new(shell_command::ShellCommand::new())]
}
