//! What a policy says about tools: further ones, and which arguments of which tool mean what.

use std::collections::BTreeMap;

/// What the argument of a tool means to the built-in guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArgumentKind {
    /// A shell command as text, or an argument vector.
    Command,
    /// Text that a running shell is fed.
    Input,
    /// A path, or a list of paths, that is read.
    ReadPath,
    /// A path, or a list of paths, that is written.
    WritePath,
    /// A patch that names the paths it changes.
    Patch,
    /// An address, or a list of addresses, that is fetched.
    Url,
}

impl ArgumentKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Command, Self::Input, Self::ReadPath, Self::WritePath, Self::Patch, Self::Url];

    /// The key in a policy file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Input => "input",
            Self::ReadPath => "read_path",
            Self::WritePath => "write_path",
            Self::Patch => "patch",
            Self::Url => "url",
        }
    }
}

/// The arguments of one tool that mean something to the guards: names by kind.
pub type ToolArguments = BTreeMap<ArgumentKind, Vec<String>>;

/// `tools` of a policy. Only what files say: what is built in is not repeated here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSettings {
    /// Further tools, and further spellings of known ones: normalised name to other spellings.
    pub known: BTreeMap<String, Vec<String>>,
    /// Further arguments by tool; they add to those that are built in.
    pub arguments: BTreeMap<String, ToolArguments>,
}

impl ToolSettings {
    /// These, with what `child` adds.
    pub(super) fn extended(mut self, child: Self) -> Self {
        for (name, spellings) in child.known {
            add(self.known.entry(name).or_default(), spellings);
        }
        for (tool, arguments) in child.arguments {
            let mine = self.arguments.entry(tool).or_default();
            for (kind, names) in arguments {
                add(mine.entry(kind).or_default(), names);
            }
        }
        self
    }
}

fn add(to: &mut Vec<String>, more: Vec<String>) {
    for name in more {
        if !to.contains(&name) {
            to.push(name);
        }
    }
}
