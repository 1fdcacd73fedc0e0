//! What a `sed` script does besides editing: `e` runs commands, `w` writes and `r` reads files.

use super::super::argument::Argument;
use super::call::Call;
use super::options::part;

/// Commands of a script that are looked at; editing scripts are far shorter.
const COMMANDS_MAX: usize = 1 << 16;

/// Looks for commands that run, read or write.
pub(super) fn analyse(call: &mut Call<'_, '_>, script: &Argument) {
    let mut reader = Reader { text: &script.text, at: 0 };
    for _ in 0..COMMANDS_MAX {
        reader.skip(|c| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
        reader.address();
        reader.skip(|c| c.is_whitespace() || c == '!');
        let Some(command) = reader.next() else { return };
        match command {
            's' => {
                let Some(flags) = reader.substitution() else { return };
                if let Some((_, file)) = flags.text.split_once('w') {
                    call.write(&part(script, file.trim()), "sed");
                } else if flags.runs {
                    let replacement = part(script, flags.replacement);
                    call.shell(&replacement, "sed s///e");
                }
            }
            'y' => drop(reader.substitution()),
            'e' => {
                let line = reader.line().trim();
                if line.is_empty() {
                    call.sink.unknown_command();
                } else {
                    call.shell(&part(script, line), "sed e");
                }
            }
            'w' | 'W' => call.write(&part(script, reader.line().trim()), "sed"),
            'r' | 'R' => call.read(&part(script, reader.line().trim()), false, "sed"),
            'a' | 'i' | 'c' | ':' | '#' | 'b' | 't' | 'T' => drop(reader.line()),
            _ => {}
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

/// The parts of `s/…/…/flags` that matter.
struct Flags<'a> {
    replacement: &'a str,
    text: &'a str,
    runs: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(skipped).len();
    }

    fn line(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find('\n').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Text up to an unescaped delimiter, which is taken too.
    fn until(&mut self, delimiter: char) -> Option<&'a str> {
        let rest = self.rest();
        let mut escaped = false;
        for (index, c) in rest.char_indices() {
            if !escaped && c == delimiter {
                self.at += index + c.len_utf8();
                return Some(&rest[..index]);
            }
            escaped = !escaped && c == '\\';
        }
        None
    }

    /// Line numbers, `$`, `/regex/` and `\cregexc`, one or two of them.
    fn address(&mut self) {
        for _ in 0..2 {
            self.skip(|c| c.is_ascii_digit() || matches!(c, '$' | '~' | '+' | ' '));
            match self.rest().chars().next() {
                Some('/') => {
                    self.at += 1;
                    let _ = self.until('/');
                    self.skip(|c| matches!(c, 'I' | 'M'));
                }
                Some('\\') => {
                    self.at += 1;
                    if let Some(delimiter) = self.next() {
                        let _ = self.until(delimiter);
                    }
                }
                _ => {}
            }
            self.skip(|c| c == ' ');
            if !self.rest().starts_with(',') {
                return;
            }
            self.at += 1;
        }
    }

    fn substitution(&mut self) -> Option<Flags<'a>> {
        let delimiter = self.next()?;
        self.until(delimiter)?;
        let replacement = self.until(delimiter)?;
        let rest = self.rest();
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric())).unwrap_or(rest.len());
        let letters = &rest[..length];
        let writes = letters.contains('w');
        let text = if writes { self.line() } else { letters };
        if !writes {
            self.at += length;
        }
        Some(Flags { replacement, text, runs: !writes && letters.contains('e') })
    }
}
