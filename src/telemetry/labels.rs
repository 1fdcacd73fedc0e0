//! The bounded label sets of metrics. Each is an enum, so that its series can stand in an array.

use crate::decision::Reason;

/// Every reason, in the order of `reason_index`.
pub(super) const REASONS: [Reason; 6] = [
    Reason::Timeout,
    Reason::Error,
    Reason::Unavailable,
    Reason::BadAnswer,
    Reason::Limit,
    Reason::UnsupportedContent,
];

/// Place of a reason in an array of series; a new reason does not compile until it has one.
pub(super) const fn reason_index(reason: Reason) -> usize {
    match reason {
        Reason::Timeout => 0,
        Reason::Error => 1,
        Reason::Unavailable => 2,
        Reason::BadAnswer => 3,
        Reason::Limit => 4,
        Reason::UnsupportedContent => 5,
    }
}

/// Declares an enum whose values are the values of one label.
macro_rules! label_set {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$value_doc])* $variant,)+ }

        impl $name {
            /// Every value, in declared order.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// The label value.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

label_set! {
    /// RPCs that make decisions.
    Rpc {
        /// One list of messages.
        CheckMessages = "CheckMessages",
        /// The same over a stream; counted per item.
        CheckMessagesStream = "CheckMessagesStream",
        /// A message about to reach the agent.
        InterceptMessage = "InterceptMessage",
        /// Parameters of a model call.
        InterceptParams = "InterceptParams",
        /// A tool call, before it runs or after.
        InterceptTool = "InterceptTool",
        /// The output of a live process; counted once a session, when it ends.
        StreamMonitor = "StreamMonitor",
        /// An uploaded bundle.
        ReviewBundle = "ReviewBundle",
    }
}

label_set! {
    /// Why a call was refused for overload.
    ShedReason {
        /// As many as may be are under way: requests, sessions or uploads.
        Places = "places",
        /// Too much waits for a processor.
        Wait = "wait",
    }
}

label_set! {
    /// gRPC status codes, by their canonical names and in the order of their numbers.
    Code {
        /// 0: answered.
        Ok = "OK",
        /// 1: the caller went away.
        Cancelled = "CANCELLED",
        /// 2: nobody knows.
        Unknown = "UNKNOWN",
        /// 3: the request is malformed.
        InvalidArgument = "INVALID_ARGUMENT",
        /// 4: it took longer than the caller allowed.
        DeadlineExceeded = "DEADLINE_EXCEEDED",
        /// 5: no such thing, or none that the caller may see.
        NotFound = "NOT_FOUND",
        /// 6: it exists already.
        AlreadyExists = "ALREADY_EXISTS",
        /// 7: the caller may not.
        PermissionDenied = "PERMISSION_DENIED",
        /// 8: a limit was hit.
        ResourceExhausted = "RESOURCE_EXHAUSTED",
        /// 9: not in this state.
        FailedPrecondition = "FAILED_PRECONDITION",
        /// 10: a conflict; try again.
        Aborted = "ABORTED",
        /// 11: beyond the end.
        OutOfRange = "OUT_OF_RANGE",
        /// 12: not built.
        Unimplemented = "UNIMPLEMENTED",
        /// 13: our fault.
        Internal = "INTERNAL",
        /// 14: overloaded, starting or stopping; try again.
        Unavailable = "UNAVAILABLE",
        /// 15: data is gone.
        DataLoss = "DATA_LOSS",
        /// 16: nobody knows who the caller is.
        Unauthenticated = "UNAUTHENTICATED",
    }
}

impl Code {
    /// The code of a gRPC status number; `Unknown` for numbers that gRPC does not have.
    pub fn of_number(number: i32) -> Self {
        usize::try_from(number)
            .ok()
            .and_then(|number| Self::ALL.get(number).copied())
            .unwrap_or(Self::Unknown)
    }
}

label_set! {
    /// Caches.
    Cache {
        /// Findings by message.
        Messages = "messages",
    }
}

label_set! {
    /// What a look-up in a cache came to.
    CacheOutcome {
        /// It was there.
        Hit = "hit",
        /// It was not.
        Miss = "miss",
    }
}

label_set! {
    /// Certificates of the listener.
    Certificate {
        /// Its own, intermediate ones included.
        Server = "server",
        /// Authorities of client certificates.
        ClientCa = "client_ca",
    }
}

label_set! {
    /// Stages of the review of a bundle.
    ReviewStage {
        /// The inline checks.
        Inline = "inline",
        /// The review by a model.
        Llm = "llm",
    }
}

label_set! {
    /// Why a call was refused before anybody looked into it.
    AuthReason {
        /// It came without credentials.
        Missing = "missing",
        /// Its credentials are of another kind, or cannot be read.
        Malformed = "malformed",
        /// Nobody has this credential.
        Unknown = "unknown",
        /// The credential is no longer valid.
        Expired = "expired",
        /// The credential is not valid yet.
        NotYetValid = "not_yet_valid",
        /// The token is signed with an algorithm that is not taken.
        Algorithm = "algorithm",
        /// The key of the token is not known.
        Key = "key",
        /// The signature of the token is wrong.
        Signature = "signature",
        /// Issuer, audience or another claim of the token is missing or wrong.
        Claims = "claims",
        /// There are no keys yet to verify a token with.
        Unavailable = "unavailable",
        /// Nobody is listed for the certificate of the client.
        Certificate = "certificate",
        /// The caller is known and lacks the role.
        Role = "role",
    }
}

label_set! {
    /// What a load of the policy came to.
    ReloadOutcome {
        /// The new policy is in force.
        Applied = "applied",
        /// It has problems; the last good one stays.
        Rejected = "rejected",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_place() {
        for (index, reason) in REASONS.into_iter().enumerate() {
            assert_eq!(reason_index(reason), index);
        }
    }

    #[test]
    fn codes_stand_in_the_order_of_their_numbers() {
        assert_eq!(Code::of_number(0), Code::Ok);
        assert_eq!(Code::of_number(3), Code::InvalidArgument);
        assert_eq!(Code::of_number(8), Code::ResourceExhausted);
        assert_eq!(Code::of_number(14), Code::Unavailable);
        assert_eq!(Code::of_number(16), Code::Unauthenticated);
        assert_eq!(Code::of_number(17), Code::Unknown);
        assert_eq!(Code::of_number(-1), Code::Unknown);
    }
}
