//! Python pickles that run commands when they are read.
//!
//! A pickle names the functions that it calls as `module` and `name`, either on two lines behind the opcode `c` or as two
//! short strings before the opcode `\x93` (PEP 3154). Models and caches are pickles as well, so only those count that
//! name a function which runs commands or code.

use super::encoded::base64_decode;

/// Modules whose functions run commands or code, with those that do.
const CALLS: [(&str, &[&str]); 10] = [
    ("os", &["system", "popen", "execv", "execve", "execvp", "spawnl", "spawnv", "startfile"]),
    ("posix", &["system", "popen", "execv", "execve", "spawnv"]),
    ("nt", &["system", "popen", "execv", "startfile"]),
    ("subprocess", &["Popen", "call", "run", "check_call", "check_output", "getoutput", "getstatusoutput"]),
    ("builtins", &["eval", "exec", "compile", "__import__", "getattr", "open"]),
    ("__builtin__", &["eval", "exec", "execfile", "compile", "__import__", "getattr", "open", "apply"]),
    ("commands", &["getoutput", "getstatusoutput"]),
    ("pty", &["spawn"]),
    ("runpy", &["run_path", "run_module", "_run_code"]),
    ("webbrowser", &["open"]),
];

/// Most bytes between the name of a module and that of a function in one call.
const GAP_BYTES_MAX: usize = 8;

/// Whether `encoded` is base64 or hexadecimal of a pickle that calls one of them. A pickle that was cut off counts.
pub(super) fn calls_commands(encoded: &str) -> bool {
    let body = encoded.trim_end_matches('=');
    // A last group of one character is none; texts that were cut off have one.
    let whole = if body.len() % 4 == 1 { body.get(..body.len() - 1) } else { Some(body) };
    let readings = [hex_decode(body), whole.and_then(base64_decode)];
    readings.into_iter().flatten().any(|bytes| is_pickle(&bytes) && names_call(&bytes))
}

fn hex_decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().map(|b| char::from(b).to_digit(16)).collect::<Option<Vec<u32>>>()?;
    Some(digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

/// The opcode `PROTO` with a version from 2 to 5.
fn is_pickle(bytes: &[u8]) -> bool {
    matches!(bytes, [0x80, 2..=5, ..])
}

fn names_call(bytes: &[u8]) -> bool {
    CALLS.iter().any(|(module, names)| {
        memchr::memmem::find_iter(bytes, module).any(|at| {
            let rest = &bytes[at + module.len()..];
            let is_whole = at > 0 && !bytes[at - 1].is_ascii_alphanumeric() || bytes[..at].ends_with(b"c");
            is_whole && names.iter().any(|name| begins_soon(rest, name.as_bytes()))
        })
    })
}

/// Whether `name` begins within the few bytes of opcodes at the beginning of `rest`, and ends there: `X` and `q` are
/// opcodes as well.
fn begins_soon(rest: &[u8], name: &[u8]) -> bool {
    (1..=GAP_BYTES_MAX).any(|gap| {
        let opcodes = rest.get(..gap).unwrap_or_default();
        let tail = rest.get(gap..).unwrap_or_default();
        !opcodes.is_empty()
            && opcodes.iter().all(|b| matches!(b, b'X' | b'q') || !(b.is_ascii_alphanumeric() || *b == b'_'))
            && tail.starts_with(name)
            && tail.get(name.len()).is_none_or(|b| *b == b'q' || !(b.is_ascii_alphanumeric() || *b == b'_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: &[u8]) -> [String; 3] {
        use base64::Engine as _;
        use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
        let hex = bytes.iter().map(|b| format!("{b:02X}")).collect();
        [STANDARD.encode(bytes), URL_SAFE_NO_PAD.encode(bytes), hex]
    }

    #[test]
    fn a_pickle_that_calls_commands_is_told_from_one_that_holds_data() {
        let calls: [&[u8]; 6] = [
            b"\x80\x02X\x05\x00\x00\x00posixq\x00X\x06\x00\x00\x00systemq\x01\x93",
            b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.",
            b"\x80\x03cposix\nsystem\nq\x00X\x02\x00\x00\x00idq\x01\x85q\x02Rq\x03.",
            b"\x80\x02c__builtin__\neval\nU\x03idsR.",
            b"\x80\x05\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x0asubprocess\x94\x8c\x0ccheck_output\x94\x93",
            b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94\x8c\x04exec\x94\x93\x94",
        ];
        for (index, bytes) in calls.into_iter().enumerate() {
            for text in encoded(bytes) {
                assert!(calls_commands(&text), "{index}: {text}");
            }
        }
        let quiet: [&[u8]; 5] = [
            b"\x80\x04\x95\x2a\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x04name\x94\x8c\x05posix\x94\x8c\x03age\x94K*u.",
            b"\x80\x03csklearn.tree\nDecisionTreeClassifier\nq\x00",
            b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94.",
            b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94\x8c\x03set\x94\x93\x94",
            b"cposix\nsystem\n but no pickle of protocol two",
        ];
        for (index, bytes) in quiet.into_iter().enumerate() {
            for text in encoded(bytes) {
                assert!(!calls_commands(&text), "{index}: {text}");
            }
        }
        for text in ["", "g", "gASV", "====", "gASVé"] {
            assert!(!calls_commands(text), "{text}");
        }
    }
}
