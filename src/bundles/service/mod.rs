//! The life of submissions and entities over the store, as API, command line and worker ask for it.

mod error;
mod types;

pub use error::SubmissionError;
pub use types::{
    Actor, Attempt, Details, Entity, Overridden, Purged, Reviewed, Submission, TimelineEvent, Upload,
    Watched, decision_of,
};
