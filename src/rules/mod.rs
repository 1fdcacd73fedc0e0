//! Detectors as data: TOML rules, compiled into one set that reads a text once.
//!
//! A rule names literals (or a trigger) without which it cannot match. One pass over a text for the literals of *all*
//! rules selects candidates; only candidates are confirmed by their regex, inside a window as wide as the rule's longest
//! match; what the regex finds must still satisfy the rule's validators. Every step is linear in the text: the regexes
//! cannot backtrack and overlapping windows of one rule are merged before they are searched.
//!
//! Not here: text layers (`text`), which views to scan and how overlapping findings are settled (`detect`).

mod branches;
mod builtin;
pub(crate) mod caches;
mod compile;
mod context;
mod country;
mod define;
mod gate;
pub mod import;
pub(crate) mod lazy;
mod literals;
mod load;
mod lost;
pub mod meanings;
mod model;
mod nearby;
mod needs;
mod phrase_rule;
mod phrases;
mod pieces;
mod placeholder;
mod problem;
pub mod relax;
mod scan;
mod schema;
mod search;
mod selfcheck;
mod set;
mod shapes;
#[cfg(test)]
mod tests;
mod triggered;
pub mod validate;
mod vocabulary;
mod window;
pub mod wording;

/// Plugin id of prompt-injection detection.
pub const INJECTION: &str = "injection";
/// Plugin id of PII detection.
pub const PII: &str = "pii";
/// Plugin id of credential detection.
pub const SECRETS: &str = "secrets";
/// Plugin id of code-injection detection.
pub const CODE: &str = "code";
/// Plugin id of rules about streams of output.
pub const STREAMS: &str = "streams";

pub use compile::{CompiledRule, MetaInfo, SHOWN_CONFIDENCE};
pub use country::{CountrySet, UnknownCountry};
pub use gate::Hints;
pub use load::{LoadedFile, LoadedRule, OTHER_FOLDERS, RuleSource, load_folder, load_kind, parse_file};
pub use model::{Bounds, MODEL_FORMAT, Model, ModelDef, Speaker, probability};
pub use problem::{RuleProblem, RuleProblems};
pub use scan::{Budget, Context, IsNew, Match, New, ScanStop, Scope, Scratch};
pub use schema::{Concept, Role, RuleDef, Surface, Trigger};
pub use selfcheck::{FindWith, LostByGates, SelfCheck, lost_by_gates, self_check};
pub(crate) use set::on_all_cores;
pub use set::{RuleSet, RuleSetConfig};
pub use validate::phone_plan::{Plan as PhonePlan, is_dialled, look_ups as phone_look_ups};

pub use builtin::{builtin_sources, builtin_stream_sources};
