//! Language models as judges: one question, one structured answer, or the reason why there is none.
//!
//! [`Judge`] hides which provider is asked. Content is fenced as data, answers are validated against the schema of the
//! question whatever the provider promised, and one deadline holds for all attempts together.
//!
//! Invariants: whatever is not a complete and valid answer is [`NotJudged`], never an answer; no error, log line or
//! label holds a key, a part of a URL, or text that somebody else wrote.

mod question;

pub use question::{Answer, Asking, Block, Judge, NotJudged, Purpose, Question, Trouble, Usage};
