//! Serialised objects of Python: a program for a small stack machine that calls what it names while it is loaded.
//!
//! Every protocol may be written in printable bytes, the first one always is. So bytes are walked as the loader walks them
//! (Python's documentation of `pickletools`), up to where it would stop: what was called by then was called.

use std::collections::HashMap;

/// Steps that are walked; what comes after so many is not waited for.
const STEPS_MAX: usize = 200_000;
/// Callables that are noted.
const CALLABLES_MAX: usize = 200;

/// What the loader would do with some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::bundles) struct Pickle {
    /// What is imported by name, as `module.name`.
    pub callables: Vec<String>,
    /// Whether something is called, or the whole is well formed.
    is_one: bool,
    /// Whether the bytes ended while all was well.
    is_open: bool,
}

impl Pickle {
    /// The first of what is imported that runs code or commands when it is called.
    pub(in crate::bundles) fn runs(&self) -> Option<&str> {
        self.callables.iter().map(String::as_str).find(|name| runs(name))
    }
}

/// Modules whose functions run code or commands, reach the network or change files, by their first name.
const MODULES: &[&str] = &[
    "os",
    "posix",
    "nt",
    "posixpath",
    "ntpath",
    "sys",
    "subprocess",
    "_posixsubprocess",
    "commands",
    "popen2",
    "pty",
    "platform",
    "shutil",
    "socket",
    "asyncio",
    "multiprocessing",
    "threading",
    "_thread",
    "signal",
    "importlib",
    "imp",
    "runpy",
    "pkgutil",
    "zipimport",
    "code",
    "codeop",
    "pdb",
    "bdb",
    "timeit",
    "trace",
    "profile",
    "cProfile",
    "doctest",
    "pydoc",
    "test",
    "unittest",
    "idlelib",
    "lib2to3",
    "distutils",
    "setuptools",
    "pip",
    "venv",
    "ensurepip",
    "ctypes",
    "cffi",
    "marshal",
    "types",
    "inspect",
    "operator",
    "_operator",
    "functools",
    "urllib",
    "urllib2",
    "http",
    "httplib",
    "requests",
    "aiohttp",
    "httpx",
    "ftplib",
    "smtplib",
    "telnetlib",
    "poplib",
    "imaplib",
    "xmlrpc",
    "webbrowser",
    "antigravity",
    "pathlib",
    "io",
    "_io",
    "tempfile",
    "sqlite3",
    "logging",
    "pickle",
    "_pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "site",
    "sysconfig",
    "builtins",
    "__builtin__",
    "__builtins__",
    "__main__",
    "getattr",
];
/// Of these, what makes values and does nothing else.
const HARMLESS: &[&str] = &[
    "builtins.bool",
    "builtins.bytearray",
    "builtins.bytes",
    "builtins.complex",
    "builtins.dict",
    "builtins.float",
    "builtins.frozenset",
    "builtins.int",
    "builtins.list",
    "builtins.object",
    "builtins.range",
    "builtins.set",
    "builtins.slice",
    "builtins.str",
    "builtins.tuple",
    "builtins.Exception",
    "builtins.NotImplemented",
    "builtins.Ellipsis",
    "functools.partial",
    "pathlib.Path",
    "pathlib.PosixPath",
    "pathlib.PurePath",
    "pathlib.PurePosixPath",
    "pathlib.PureWindowsPath",
    "pathlib.WindowsPath",
    "pathlib._local.Path",
    "pathlib._local.PosixPath",
    "types.SimpleNamespace",
    "io.BytesIO",
    "io.StringIO",
    "_io.BytesIO",
    "_io.StringIO",
    "operator.itemgetter",
    "multiprocessing.Manager",
];

/// Modules that others hold as a member.
const MEMBERS: &[&str] =
    &["os", "posix", "nt", "sys", "subprocess", "builtins", "importlib", "ctypes", "shutil"];

fn runs(name: &str) -> bool {
    let (module, rest) = name.split_once('.').unwrap_or((name, ""));
    if rest.split('.').any(|part| MEMBERS.contains(&part)) {
        return true;
    }
    if !MODULES.contains(&module) {
        return false;
    }
    let plain = match module {
        "__builtin__" | "__builtins__" => format!("builtins.{rest}"),
        _ => name.to_owned(),
    };
    let is_old_value = plain == "builtins.unicode" || plain == "builtins.long" || plain == "builtins.xrange";
    // What somebody defined in the program that is run is theirs, and unknown.
    module != "__main__" && !is_old_value && !HARMLESS.contains(&plain.as_str())
}

/// What some bytes are to the loader; `None` when they are no pickle.
pub(in crate::bundles) fn read(bytes: &[u8]) -> Option<Pickle> {
    let pickle = walk(bytes);
    (pickle.is_one && !pickle.callables.is_empty()).then_some(pickle)
}

/// Whether these first bytes of a larger file may be those of a pickle.
pub(in crate::bundles) fn may_begin(bytes: &[u8]) -> bool {
    let pickle = walk(bytes);
    pickle.is_open || (pickle.is_one && !pickle.callables.is_empty())
}

/// What lies on the stack, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value<'b> {
    Mark,
    Text(&'b [u8]),
    /// Something imported, or what a call gave.
    Callable,
    Other,
}

struct Machine<'b> {
    rest: &'b [u8],
    stack: Vec<Value<'b>>,
    memo: HashMap<u64, Value<'b>>,
    found: Pickle,
}

/// Why the loader stops.
enum Stop {
    /// The pickle is complete.
    End,
    /// No pickle goes on like this.
    Broken,
    /// The bytes are over.
    Open,
}

fn walk(bytes: &[u8]) -> Pickle {
    let mut machine =
        Machine { rest: bytes, stack: Vec::new(), memo: HashMap::new(), found: Pickle::default() };
    for _ in 0..STEPS_MAX {
        match machine.step() {
            Ok(()) => {}
            Err(Stop::End) => {
                machine.found.is_one = true;
                return machine.found;
            }
            Err(Stop::Broken) => return machine.found,
            Err(Stop::Open) => {
                machine.found.is_open = true;
                return machine.found;
            }
        }
    }
    machine.found.is_open = true;
    machine.found
}

impl<'b> Machine<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], Stop> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Stop::Open)?;
        self.rest = rest;
        Ok(taken)
    }

    /// A number of so many bytes, the lowest first.
    fn number(&mut self, bytes: usize) -> Result<u64, Stop> {
        Ok(self.take(bytes)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Bytes behind their own number, which has so many bytes.
    fn counted(&mut self, bytes: usize) -> Result<&'b [u8], Stop> {
        let count = self.number(bytes)?;
        self.take(usize::try_from(count).map_err(|_| Stop::Open)?)
    }

    fn line(&mut self) -> Result<&'b [u8], Stop> {
        let end = memchr::memchr(b'\n', self.rest).ok_or(Stop::Open)?;
        let line = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// A line that holds a number in some notation of Python.
    fn written_number(&mut self) -> Result<u64, Stop> {
        let line = self.line()?;
        let is_number = !line.is_empty()
            && line
                .iter()
                .all(|byte| byte.is_ascii_hexdigit() || b"+-._ \t\x0b\x0cxXoOLlnNiItTyY".contains(byte));
        let text = std::str::from_utf8(line).map_err(|_| Stop::Broken)?;
        if is_number { Ok(text.trim().parse().unwrap_or(u64::MAX)) } else { Err(Stop::Broken) }
    }

    fn push(&mut self, value: Value<'b>) {
        self.stack.push(value);
    }

    fn pop(&mut self) -> Result<Value<'b>, Stop> {
        self.stack.pop().ok_or(Stop::Broken)
    }

    /// What lies above the last mark, which goes, too.
    fn pop_to_mark(&mut self) -> Result<Vec<Value<'b>>, Stop> {
        let at = self.stack.iter().rposition(|value| *value == Value::Mark).ok_or(Stop::Broken)?;
        let above = self.stack.split_off(at + 1);
        self.stack.pop();
        Ok(above)
    }

    fn import(&mut self, module: &[u8], name: &[u8]) -> Result<(), Stop> {
        let is_name = |text: &[u8]| {
            !text.is_empty()
                && !text[0].is_ascii_digit()
                && text.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.') || *b >= 0x80)
        };
        if !is_name(module) || !is_name(name) {
            return Err(Stop::Broken);
        }
        if self.found.callables.len() < CALLABLES_MAX {
            let text = [module, b".", name].concat();
            self.found.callables.push(String::from_utf8_lossy(&text).into_owned());
        }
        self.push(Value::Callable);
        Ok(())
    }

    /// A call, whatever it gives.
    fn call(&mut self, callable: Value<'b>) {
        self.found.is_one |= callable == Value::Callable;
        self.push(Value::Callable);
    }

    fn step(&mut self) -> Result<(), Stop> {
        let code = self.take(1)?[0];
        match code {
            b'.' => {
                self.pop()?;
                return Err(Stop::End);
            }
            b'(' => self.push(Value::Mark),
            b'0' => {
                self.pop()?;
            }
            b'1' => {
                self.pop_to_mark()?;
            }
            b'2' => {
                let top = *self.stack.last().ok_or(Stop::Broken)?;
                self.push(top);
            }
            b'N' | b')' | b']' | b'}' | 0x88 | 0x89 | 0x8f => self.push(Value::Other),
            b'F' | b'I' | b'L' => {
                self.written_number()?;
                self.push(Value::Other);
            }
            b'S' => {
                let line = self.line()?.trim_ascii();
                let inner = line
                    .strip_prefix(b"'")
                    .and_then(|line| line.strip_suffix(b"'"))
                    .or_else(|| line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")));
                self.push(Value::Text(inner.ok_or(Stop::Broken)?));
            }
            b'V' => {
                let line = self.line()?;
                self.push(Value::Text(line));
            }
            b'P' => {
                self.line()?;
                self.push(Value::Other);
            }
            b'Q' => {
                self.pop()?;
                self.push(Value::Other);
            }
            b'K' => self.plain(1)?,
            b'M' => self.plain(2)?,
            b'J' => self.plain(4)?,
            b'G' => self.plain(8)?,
            b'U' | b'C' | 0x8c => {
                let text = self.counted(1)?;
                self.push(Value::Text(text));
            }
            b'T' | b'X' | b'B' => {
                let text = self.counted(4)?;
                self.push(Value::Text(text));
            }
            0x8d | 0x8e | 0x96 => {
                let text = self.counted(8)?;
                self.push(Value::Text(text));
            }
            0x8a => {
                self.counted(1)?;
                self.push(Value::Other);
            }
            0x8b => {
                self.counted(4)?;
                self.push(Value::Other);
            }
            0x80 => {
                // There are protocols 0 to 5, and room for a few more.
                if self.number(1)? > 9 {
                    return Err(Stop::Broken);
                }
            }
            0x95 => {
                self.take(8)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.import(module, name)?;
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                match (module, name) {
                    (Value::Text(module), Value::Text(name)) => self.import(module, name)?,
                    // Names that were worked out hide what they name.
                    _ => self.import(b"unknown", b"unknown")?,
                }
            }
            b'i' => {
                let (module, name) = (self.line()?, self.line()?);
                self.pop_to_mark()?;
                self.import(module, name)?;
                let callable = self.pop()?;
                self.call(callable);
            }
            b'o' => {
                let above = self.pop_to_mark()?;
                let callable = *above.first().ok_or(Stop::Broken)?;
                self.call(callable);
            }
            b'R' | 0x81 => {
                self.pop()?;
                let callable = self.pop()?;
                self.call(callable);
            }
            0x92 => {
                self.pop()?;
                self.pop()?;
                let callable = self.pop()?;
                self.call(callable);
            }
            b'a' | b'b' => {
                self.pop()?;
                self.stack.last().ok_or(Stop::Broken)?;
            }
            b's' => {
                self.pop()?;
                self.pop()?;
                self.stack.last().ok_or(Stop::Broken)?;
            }
            b'e' | b'u' | 0x90 => {
                self.pop_to_mark()?;
                self.stack.last().ok_or(Stop::Broken)?;
            }
            b'd' | b'l' | b't' | 0x91 => {
                self.pop_to_mark()?;
                self.push(Value::Other);
            }
            0x85..=0x87 => {
                for _ in 0x84..code {
                    self.pop()?;
                }
                self.push(Value::Other);
            }
            0x82 => self.extension(1)?,
            0x83 => self.extension(2)?,
            0x84 => self.extension(4)?,
            b'g' => {
                let at = self.written_number()?;
                self.recall(at)?;
            }
            b'h' => {
                let at = self.number(1)?;
                self.recall(at)?;
            }
            b'j' => {
                let at = self.number(4)?;
                self.recall(at)?;
            }
            b'p' => {
                let at = self.written_number()?;
                self.remember(at)?;
            }
            b'q' => {
                let at = self.number(1)?;
                self.remember(at)?;
            }
            b'r' => {
                let at = self.number(4)?;
                self.remember(at)?;
            }
            0x94 => {
                let at = self.memo.len() as u64;
                self.remember(at)?;
            }
            0x97 | 0x98 => self.push(Value::Other),
            _ => return Err(Stop::Broken),
        }
        Ok(())
    }

    /// A number of so many bytes.
    fn plain(&mut self, bytes: usize) -> Result<(), Stop> {
        self.take(bytes)?;
        self.push(Value::Other);
        Ok(())
    }

    /// Something that the loading program has a number for.
    fn extension(&mut self, bytes: usize) -> Result<(), Stop> {
        self.take(bytes)?;
        self.push(Value::Callable);
        Ok(())
    }

    fn recall(&mut self, at: u64) -> Result<(), Stop> {
        let value = *self.memo.get(&at).ok_or(Stop::Broken)?;
        self.push(value);
        Ok(())
    }

    fn remember(&mut self, at: u64) -> Result<(), Stop> {
        let top = *self.stack.last().ok_or(Stop::Broken)?;
        self.memo.insert(at, top);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pickle_calls_is_told() {
        for (bytes, callables, runs) in [
            (&b"cos\nsystem\n(S'id'\ntR."[..], &["os.system"][..], Some("os.system")),
            (b"cos\r\nsystem\r\n(S'id'\ntR.", &["os.system"], Some("os.system")),
            // It has run before the loader fails.
            (b"cos\nsystem\n(S'id'\ntR and so on", &["os.system"], Some("os.system")),
            (b"cos\nsystem\n(S'id'\ntR", &["os.system"], Some("os.system")),
            (b"(S'id'\nios\nsystem\n.", &["os.system"], Some("os.system")),
            (b"(cos\nsystem\nS'id'\no.", &["os.system"], Some("os.system")),
            (b"S'first'\n0cbuiltins\nexec\n(S'x'\ntR.", &["builtins.exec"], Some("builtins.exec")),
            (b"c__builtin__\neval\n(S'x'\ntR.", &["__builtin__.eval"], Some("__builtin__.eval")),
            (b"I1\n0L5L\n0F1.5\n0cposix\nsystem\np0\n0g0\n(U\x02idtR.", &["posix.system"], Some("posix.system")),
            (
                b"\x80\x04\x95\x1d\0\0\0\0\0\0\0\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.",
                &["posix.system"],
                Some("posix.system"),
            ),
            (b"cglob\nos.system\n(S'id'\ntR.", &["glob.os.system"], Some("glob.os.system")),
            (b"ccollections\nOrderedDict\n(tR.", &["collections.OrderedDict"], None),
            (b"cbuiltins\nset\n((ltR.", &["builtins.set"], None),
            (
                b"ccopy_reg\n_reconstructor\n(cnotes\nNote\nc__builtin__\nobject\nNtR.",
                &["copy_reg._reconstructor", "notes.Note", "__builtin__.object"],
                None,
            ),
        ] {
            let text = String::from_utf8_lossy(bytes);
            let pickle = read(bytes).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(pickle.callables, callables, "{text}");
            assert_eq!(pickle.runs(), runs, "{text}");
        }
    }

    #[test]
    fn texts_are_no_pickles() {
        for text in [
            "",
            ".",
            "N.",
            "# Notes\n\nKeep them.\n",
            "cat\ndog\nemu\n",
            "cos\nsystem\n",
            "c is a language\nand so is R.\n",
            "(see below)\n",
            "Install it.\nThen run it.\n",
            "I am\nhere.\n",
            "Some text.\n",
            "V1\nV2\n",
            "import os\nos.system('x')\n",
            "ls\n",
            "{\"a\": 1}\n",
            "(lp0\nS'a'\np1\naI1\na.",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn the_begin_of_a_large_one_is_known() {
        let mut long = b"V".to_vec();
        long.extend(vec![b'a'; 40_000]);
        assert!(may_begin(&long) && may_begin(b"S'x'\n0cos\nsystem\n(S'id'\ntR."));
        assert!(!may_begin(b"# Notes\n") && !may_begin(b"word,word\n") && !may_begin(b"[1, 2]"));
    }
}
