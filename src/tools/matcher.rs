//! Which tools and agents an interceptor is for.
//!
//! Patterns run in linear time and have a bound on what they compile to.

use regex_automata::meta;
use regex_automata::util::syntax;

use super::names::{self, ToolNames};

/// Longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1024;
/// What a pattern may compile to, in bytes.
const PROGRAM_BYTES_MAX: usize = 256 * 1024;

/// Matches names of tools.
#[derive(Clone, Debug)]
pub(super) enum ToolMatcher {
    /// Every tool.
    All,
    /// The tools of a group.
    Group(Vec<&'static str>),
    /// These tools, sorted.
    Names(Vec<String>),
    /// Names in which the pattern is found.
    Pattern(meta::Regex),
}

impl ToolMatcher {
    /// Compiles a matcher.
    ///
    /// # Errors
    /// A sentence: it is no pattern, no group, or can match no known tool.
    pub(super) fn compile(text: &str, known: &ToolNames, allow_unknown: bool) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::All);
        }
        if text.starts_with("group:") {
            return names::group(text)
                .map(Self::Group)
                .ok_or_else(|| format!("there is no such group; groups: {}", names::GROUPS.join(", ")));
        }
        let matcher = Self::Pattern(pattern(text)?);
        let names = known.names();
        if !allow_unknown && !names.iter().any(|name| matcher.matches(name)) {
            return Err(format!(
                "matches no known tool; names of tools: {}; groups: {}; or allow unknown tools",
                names.join(", "),
                names::GROUPS.join(", ")
            ));
        }
        Ok(matcher)
    }

    /// Whether it matches a normalised name.
    pub(super) fn matches(&self, tool: &str) -> bool {
        match self {
            Self::All => true,
            Self::Group(tools) => tools.contains(&tool),
            Self::Names(tools) => tools.binary_search_by(|name| name.as_str().cmp(tool)).is_ok(),
            Self::Pattern(pattern) => pattern.is_match(tool),
        }
    }
}

/// Matches ids of agents.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentMatcher(Option<meta::Regex>);

impl AgentMatcher {
    /// Compiles a matcher.
    ///
    /// # Errors
    /// A sentence: it is no pattern.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(Self(None)) } else { pattern(text).map(|pattern| Self(Some(pattern))) }
    }

    /// Whether it matches; a pattern matches no unknown agent, whatever it says.
    pub(super) fn matches(&self, agent: &str) -> bool {
        self.0.as_ref().is_none_or(|pattern| !agent.is_empty() && pattern.is_match(agent))
    }

    /// Whether it matches every agent.
    pub(super) fn is_all(&self) -> bool {
        self.0.is_none()
    }
}

fn pattern(text: &str) -> Result<meta::Regex, String> {
    if text.len() > PATTERN_BYTES_MAX {
        return Err(format!("longer than {PATTERN_BYTES_MAX} bytes"));
    }
    meta::Regex::builder()
        .configure(
            meta::Config::new()
                .nfa_size_limit(Some(PROGRAM_BYTES_MAX))
                .onepass_size_limit(Some(PROGRAM_BYTES_MAX))
                .hybrid_cache_capacity(PROGRAM_BYTES_MAX),
        )
        .syntax(syntax::Config::new().nest_limit(50))
        .build(text)
        .map_err(|error| {
            if error.size_limit().is_some() {
                "is too large once compiled; use smaller repetitions".to_owned()
            } else {
                let detail = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
                // The parser draws the pattern over several lines; its last one says what is wrong.
                let last = detail.lines().last().unwrap_or_default().trim().to_owned();
                format!("is no regular expression: {}", last.trim_start_matches("error: "))
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(text: &str) -> Result<ToolMatcher, String> {
        ToolMatcher::compile(text, &ToolNames::default(), false)
    }

    #[test]
    fn tools_match_by_pattern_and_group() {
        for (matcher, yes, no) in [
            ("", "anything", ""),
            ("^exec$", "exec", "process"),
            ("exec|process", "process", "read"),
            ("sessions_.*", "sessions_list", "session_status"),
            ("group:fs", "apply_patch", "exec"),
            ("group:nodes", "nodes", "agents_list"),
        ] {
            let compiled = tools(matcher).expect("compiles");
            assert!(compiled.matches(yes), "{matcher} {yes}");
            assert!(no.is_empty() || !compiled.matches(no), "{matcher} {no}");
        }
    }

    #[test]
    fn what_can_match_nothing_is_refused_with_the_names() {
        let refused = tools("^bsah$").expect_err("matches nothing");
        assert!(refused.contains("apply_patch") && refused.contains("group:fs"), "{refused}");
        assert!(ToolMatcher::compile("^bsah$", &ToolNames::default(), true).is_ok());
        assert!(tools("group:files").expect_err("no group").contains("group:fs"));
        for broken in ["(", "a{2}{", "(?=x)", "\\1", "(a{999}){999}{999}", "[z-a]"] {
            assert!(tools(broken).is_err(), "{broken}");
        }
        assert!(tools(&"a".repeat(2000)).is_err());
    }

    #[test]
    fn a_pattern_matches_no_unknown_agent() {
        let all = AgentMatcher::compile("").expect("compiles");
        assert!(all.matches("") && all.matches("x"));
        let any = AgentMatcher::compile(".*").expect("compiles");
        assert!(!any.matches("") && any.matches("x"));
        assert!(AgentMatcher::compile("[").is_err());
    }
}
