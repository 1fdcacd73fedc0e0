//! A regex that is compiled when it is first needed.
//!
//! Compiling the built-in rules takes half a second of processor time and tens of megabytes, most of it for rules that a
//! given installation never needs. The built-in patterns are known to compile, since a test compiles them all; so each
//! waits until its gate opens for the first time. Patterns of users are compiled when they load, where an error can be
//! told.

use std::ops::Deref;
use std::sync::OnceLock;

use regex_automata::meta::Regex;

/// A regex and its pattern.
#[derive(Debug)]
pub(crate) struct LazyRegex {
    pattern: Box<str>,
    built: OnceLock<Regex>,
    build: fn(&str) -> Result<Regex, String>,
}

impl LazyRegex {
    /// A pattern that is known to compile with `build`.
    pub(crate) fn known(pattern: &str, build: fn(&str) -> Result<Regex, String>) -> Self {
        Self { pattern: pattern.into(), built: OnceLock::new(), build }
    }

    /// A pattern that is compiled now.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn now(pattern: &str, build: fn(&str) -> Result<Regex, String>) -> Result<Self, String> {
        let built = OnceLock::from(build(pattern)?);
        Ok(Self { pattern: pattern.into(), built, build })
    }
}

impl Deref for LazyRegex {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.built.get_or_init(|| {
            (self.build)(&self.pattern)
                .expect("built-in patterns are compiled by a test, all others when they load")
        })
    }
}
