//! What redaction made of a field.

use super::FieldPath;

/// A field after redaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedField {
    /// Index of the message.
    pub message_index: u32,
    /// Where the field stands in it.
    pub path: FieldPath,
    /// Its text now.
    pub text: String,
}
