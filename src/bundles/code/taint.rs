//! Where a value comes from: a set of labels that travels with it.

use std::ops::{BitAnd, BitOr, BitOrAssign};

/// A set of labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint(u32);

macro_rules! labels {
    ($($(#[$doc:meta])* $name:ident = $bit:literal $text:literal,)*) => {
        impl Taint {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*

            const LABELS: &'static [(&'static str, Self)] = &[$(($text, Self::$name)),*];
        }
    };
}

labels! {
    /// Came from the network.
    NETWORK = 0 "network",
    /// Came out of a decoder or was decrypted.
    DECODED = 1 "decoded",
    /// Put together so that it cannot be read in the source: character codes, reversed, rotated, escaped bytes.
    HIDDEN = 2 "hidden",
    /// All variables of the environment.
    ENVIRONMENT = 3 "environment",
    /// One variable of the environment whose name speaks of a secret.
    SECRET_VARIABLE = 4 "secret_variable",
    /// One other variable of the environment.
    VARIABLE = 5 "variable",
    /// What is in a file of credentials, keys, wallets or a browser.
    CREDENTIALS = 6 "credentials",
    /// What is in a file.
    FILE = 7 "file",
    /// The machine's name or address.
    HOST_NAME = 8 "host_name",
    /// The user's name or home.
    HOST_USER = 9 "host_user",
    /// The working directory, the script's path or the package's name.
    HOST_FOLDER = 10 "host_folder",
    /// The network's set-up: interfaces, name servers, public address.
    HOST_NETWORK = 11 "host_network",
    /// The clipboard.
    CLIPBOARD = 12 "clipboard",
    /// Keys pressed.
    KEYS = 13 "keys",
    /// The screen or camera.
    SCREEN = 14 "screen",
    /// Given by whoever runs the program: arguments, standard input, a request that came in.
    INPUT = 15 "input",
    /// A password or secret asked for or kept in a key ring.
    KEYCHAIN = 16 "keychain",
    /// Files found by walking the whole home or root.
    HOME_WALK = 17 "home_walk",
    /// Output of a command that was run.
    OUTPUT = 18 "output",
    /// Conversations with an agent, or its memory and instructions.
    CHAT = 19 "chat",
    /// Data of the file itself that is not text: a file beside the script that no interpreter would run as code.
    DATA_FILE = 20 "data_file",
    /// The operating system's name and version.
    HOST_SYSTEM = 21 "host_system",
    /// A parameter of a function whose callers are not known.
    PARAMETER = 22 "parameter",
    /// Put together out of pieces that can be read in the source.
    ASSEMBLED = 23 "assembled",
    /// Encoded, compressed or encrypted here, so that nobody can read it on its way.
    ENCODED = 24 "encoded",
    /// A comment, a documentation or the text of the program itself, which nobody takes for code.
    OWN_TEXT = 25 "own_text",
}

impl Taint {
    /// No label.
    pub const NONE: Self = Self(0);

    /// All labels of several sets.
    pub const fn union(sets: &[Self]) -> Self {
        let (mut all, mut at) = (0, 0);
        while at < sets.len() {
            all |= sets[at].0;
            at += 1;
        }
        Self(all)
    }

    /// The label of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::LABELS.iter().find(|(label, _)| *label == name).map(|(_, taint)| *taint)
    }

    /// Every name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::LABELS.iter().map(|(label, _)| *label)
    }

    /// Whether there is no label.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether the sets have a label in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Number of labels.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// These labels without those.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Taint {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Taint {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for Taint {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}
