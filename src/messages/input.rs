//! What is checked: messages as fields of text, borrowed from the request.

use std::borrow::Cow;
use std::sync::Arc;

use crate::rules::{Role, Surface};

/// Where a field stands in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FieldPath {
    /// `/text`
    Text,
    /// `/parts/N/text`
    PartText(u32),
    /// `/parts/N/json`
    PartJson(u32),
    /// `/parts/N/media/uri`
    PartMediaUri(u32),
    /// `/tool_calls/N/args_json`
    ToolArgs(u32),
    /// `/name`
    Name,
}

impl FieldPath {
    /// The JSON Pointer.
    pub fn to_pointer(self) -> Cow<'static, str> {
        match self {
            Self::Text => "/text".into(),
            Self::PartText(n) => format!("/parts/{n}/text").into(),
            Self::PartJson(n) => format!("/parts/{n}/json").into(),
            Self::PartMediaUri(n) => format!("/parts/{n}/media/uri").into(),
            Self::ToolArgs(n) => format!("/tool_calls/{n}/args_json").into(),
            Self::Name => "/name".into(),
        }
    }

    /// Whether the field is JSON text, which redaction must leave parseable.
    pub fn is_json(self) -> bool {
        matches!(self, Self::PartJson(_) | Self::ToolArgs(_))
    }
}

/// One text of a message.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// Where it stands.
    pub path: FieldPath,
    /// The text as sent.
    pub text: &'a str,
}

/// One message.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role,
    /// Its texts, in the order in which they are reported.
    pub fields: Vec<Field<'a>>,
    /// Parts that hold media, which built-in plugins cannot look into.
    pub media_parts: u32,
}

impl Message<'_> {
    /// What kind of text `field` is.
    pub fn surface_of(&self, field: &Field<'_>) -> Surface {
        match (field.path, self.role) {
            (FieldPath::ToolArgs(_), _) => Surface::ToolArgs,
            (_, Role::Tool) => Surface::ToolResult,
            _ => Surface::Text,
        }
    }

    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        self.media_parts == 0
            && self.fields.iter().all(|f| f.text.trim().is_empty() || f.path == FieldPath::Name)
    }
}

/// The messages of one request.
pub type Conversation<'a> = [Message<'a>];

/// Names of roles on the wire, with the role each means. Frameworks disagree; rules need not.
const ROLE_NAMES: [(&str, Role); 9] = [
    ("system", Role::System),
    ("developer", Role::System),
    ("user", Role::User),
    ("human", Role::User),
    ("assistant", Role::Assistant),
    ("ai", Role::Assistant),
    ("model", Role::Assistant),
    ("tool", Role::Tool),
    ("function", Role::Tool),
];

/// The role of a name in any ASCII case.
///
/// # Errors
/// A sentence with the accepted names.
pub fn parse_role(name: &str) -> Result<Role, String> {
    ROLE_NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, role)| *role).ok_or_else(
        || {
            let known: Vec<&str> = ROLE_NAMES.iter().map(|(known, _)| *known).collect();
            let shown: String = name.chars().take(40).collect();
            format!("unknown role `{}`; use one of: {}", shown.escape_debug(), known.join(", "))
        },
    )
}

/// A path as findings carry it, without an allocation for the commonest one.
pub(super) fn pointer(path: FieldPath, text_path: &Arc<str>) -> Arc<str> {
    match path {
        FieldPath::Text => text_path.clone(),
        other => other.to_pointer().as_ref().into(),
    }
}
