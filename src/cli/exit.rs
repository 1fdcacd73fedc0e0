//! How a command ends: the exit codes and the one kind of failure that leads to them.

use std::fmt;
use std::process::ExitCode;

use crate::decision::Decision;

/// How the process ends. The numbers from 64 on are those of `sysexits.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done, and nothing to complain about.
    Ok,
    /// The decision of a check.
    Decided(Decision),
    /// The code of a watched command, or what became of it.
    Command(u8),
    /// A run fell behind an earlier one.
    Worse,
    /// A hook could not judge, and the agent must not go on.
    Refused,
    /// The command line makes no sense.
    Usage,
    /// What was given is malformed, or a test of rules or policies failed.
    Data,
    /// The server could not be reached or does not serve.
    ServerAway,
    /// An error of our own.
    Internal,
    /// Settings, rules or policies of the installation are wrong.
    Configuration,
}

impl Exit {
    /// The number that the shell sees.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Decided(decision) => decision.exit_code(),
            Self::Command(code) => code,
            Self::Worse => 1,
            Self::Refused => 2,
            Self::Usage => 64,
            Self::Data => 65,
            Self::ServerAway => 69,
            Self::Internal => 70,
            Self::Configuration => 78,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Why a command could not be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// How the process ends.
    pub(super) exit: Exit,
    /// What happened and what to do about it, in one or more lines; empty when it has been printed already.
    pub(super) message: String,
}

impl Failure {
    /// The command line makes no sense.
    pub(super) fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    /// What was given is malformed.
    pub(super) fn data(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Data, message: message.to_string() }
    }

    /// Whether a server is to blame, so that asking elsewhere makes sense.
    pub(super) fn is_of_server(&self) -> bool {
        matches!(self.exit, Exit::ServerAway | Exit::Internal)
    }

    /// An error of our own.
    pub(super) fn internal(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Internal, message: message.to_string() }
    }

    /// Settings, rules or policies are wrong.
    pub(super) fn configuration(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Configuration, message: message.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_the_contract() {
        let decisions = Decision::ALL.map(|decision| Exit::Decided(decision).code());
        assert_eq!(decisions, [0, 1, 3, 2]);
        let others = [
            Exit::Ok,
            Exit::Worse,
            Exit::Refused,
            Exit::Usage,
            Exit::Data,
            Exit::ServerAway,
            Exit::Internal,
            Exit::Configuration,
        ];
        assert_eq!(others.map(Exit::code), [0, 1, 2, 64, 65, 69, 70, 78]);
    }
}
