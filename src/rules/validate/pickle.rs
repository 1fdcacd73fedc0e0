//! Python pickles that run commands when they are read.
//!
//! A pickle names the functions that it calls as `module` and `name`, either on two lines behind the opcode `c` or as two
//! short strings before the opcode `\x93` (PEP 3154). Models and caches are pickles as well, so only those count that
//! name a function which runs commands or code. Protocols 0 and 1 begin with no mark of their own: there the opcodes have to
//! make sense one after the other, and the function has to be called.

use super::encoded::base64_decode;

/// Modules whose functions run commands or code, with those that do.
const CALLS: [(&str, &[&str]); 10] = [
    ("os", &["system", "popen", "execv", "execve", "execvp", "spawnl", "spawnv", "startfile"]),
    ("posix", &["system", "popen", "execv", "execve", "spawnv"]),
    ("nt", &["system", "popen", "execv", "startfile"]),
    ("subprocess", &["Popen", "call", "run", "check_call", "check_output", "getoutput", "getstatusoutput"]),
    ("builtins", &["eval", "exec", "compile", "__import__", "getattr", "open"]),
    ("__builtin__", &["eval", "exec", "execfile", "compile", "__import__", "getattr", "open", "apply"]),
    // Up to protocol 2, Python writes this name for `subprocess`.
    ("commands", &["Popen", "call", "run", "check_call", "check_output", "getoutput", "getstatusoutput"]),
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
    readings.into_iter().flatten().any(|bytes| match is_pickle(&bytes) {
        true => names_call(&bytes),
        false => calls_without_mark(&bytes),
    })
}

fn hex_decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().map(|b| char::from(b).to_digit(16)).collect::<Option<Vec<u32>>>()?;
    Some(digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

/// The opcode `PROTO` with a version from 2 to 5.
fn is_pickle(bytes: &[u8]) -> bool {
    matches!(bytes, [0x80, 2..=5, ..])
}

/// Whether bytes that begin with no `PROTO` are opcodes of protocol 0 or 1, one after the other, which call one of them.
fn calls_without_mark(bytes: &[u8]) -> bool {
    let (mut rest, mut is_named) = (bytes, false);
    while let Some((opcode, tail)) = rest.split_first() {
        let (line, behind_line) = split_line(tail);
        // Behind the opcode and what belongs to it; `None` where the text was cut amid that.
        let next = match opcode {
            b'(' | b'0' | b'1' | b'2' | b'N' | b'Q' | b'R' | b'a' | b'b' | b'd' | b'e' | b'l' | b'o'
            | b's' | b't' | b'u' | b'}' | b']' | b')' => Some(tail),
            b'F' | b'I' | b'L' | b'P' | b'S' | b'V' | b'g' | b'p' => behind_line,
            b'c' | b'i' => {
                let (name, behind_name) = behind_line.map_or((&[][..], None), split_line);
                let names =
                    CALLS.iter().find(|(module, _)| module.as_bytes() == line).map(|(_, names)| *names);
                is_named |= names.is_some_and(|names| names.iter().any(|known| known.as_bytes() == name));
                behind_name
            }
            b'K' | b'h' | b'q' => tail.get(1..),
            b'M' => tail.get(2..),
            b'J' | b'j' | b'r' => tail.get(4..),
            b'G' => tail.get(8..),
            b'U' => tail.split_first().and_then(|(count, text)| text.get(usize::from(*count)..)),
            b'T' | b'X' => tail
                .split_first_chunk::<4>()
                .and_then(|(count, text)| text.get(usize::try_from(u32::from_le_bytes(*count)).ok()?..)),
            // The end, `.`, or no opcode.
            _ => return false,
        };
        // `i` makes its object at once, `R` and `o` call what was named before.
        if is_named && matches!(opcode, b'R' | b'o' | b'i') {
            return true;
        }
        let Some(next) = next else { return is_named };
        rest = next;
    }
    // Cut off before the call; `.` would end it.
    is_named
}

/// What stands before the first line feed, and what behind it.
fn split_line(bytes: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'\n', bytes) {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    }
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
        let calls: [&[u8]; 13] = [
            b"\x80\x02X\x05\x00\x00\x00posixq\x00X\x06\x00\x00\x00systemq\x01\x93",
            b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.",
            b"\x80\x03cposix\nsystem\nq\x00X\x02\x00\x00\x00idq\x01\x85q\x02Rq\x03.",
            b"\x80\x02c__builtin__\neval\nU\x03idsR.",
            b"\x80\x05\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x0asubprocess\x94\x8c\x0ccheck_output\x94\x93",
            b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94\x8c\x04exec\x94\x93\x94",
            b"\x80\x02ccommands\nPopen\nq\x00X\x02\x00\x00\x00idq\x01\x85q\x02Rq\x03.",
            b"cposix\nsystem\nq\x00(X\x02\x00\x00\x00idq\x01tq\x02Rq\x03.",
            b"cposix\nsystem\np0\n(Vid\np1\ntp2\nRp3\n.",
            b"cos\nsystem\n(S'id'\ntR.",
            b"(S'id'\nios\nsystem\n.",
            b"(cos\nsystem\nS'id'\no.",
            b"csubprocess\ncheck_output\n(S'i",
        ];
        for (index, bytes) in calls.into_iter().enumerate() {
            for text in encoded(bytes) {
                assert!(calls_commands(&text), "{index}: {text}");
            }
        }
        let quiet: [&[u8]; 8] = [
            b"\x80\x04\x95\x2a\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x04name\x94\x8c\x05posix\x94\x8c\x03age\x94K*u.",
            b"\x80\x03csklearn.tree\nDecisionTreeClassifier\nq\x00",
            b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94.",
            b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94\x8c\x03set\x94\x93\x94",
            b"cposix\nsystem\n but no pickle of protocol two",
            b"ccopy_reg\n_reconstructor\n(cshop\nOrder\nc__builtin__\nobject\nNtR.",
            b"(S'posix'\nS'system'\nl.",
            b"cposix\nsystem\n.",
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
