//! Raw bytes become the lines that a terminal would show.
//!
//! Bytes may be cut anywhere: inside a character, inside a control sequence. UTF-8 that is not valid becomes U+FFFD.
//! Carriage returns, backspaces and the sequences that move within a line or erase are applied as a terminal applies
//! them; what moves to another line ends this one. Whatever is about to be overwritten or erased is handed over first,
//! so nothing that was ever printed goes unread; so is the text inside of titles and other strings for the terminal.
//!
//! Sequences end where ECMA-48 and xterm end them, however long they are. A program that reads the same bytes sees the
//! text inside a string for the terminal, which a terminal hides until the string ends: so its lines are handed over as
//! lines, and the line that it stands in goes on behind it. Neither view hides anything from the other.
//!
//! Where a line is handed over depends on the bytes alone, never on where they were cut. Memory is bounded: a line is
//! cut after [`LINE_BYTES_MAX`], a string for the terminal is handed over in parts of [`STRING_BYTES_MAX`].

use super::line::Line;
use super::mapped::Mapped;
use crate::text::is_invisible;

/// Longest line, in bytes of text; the rest goes on as another part of it.
pub(super) const LINE_BYTES_MAX: usize = 8192;
/// Most of a string for the terminal, such as a title, that is handed over at once.
pub(super) const STRING_BYTES_MAX: usize = 1024;
/// Bytes of such a part that the next one begins with.
const STRING_OVERLAP: usize = 256;
/// Most bytes of parameters that are kept of a control sequence.
const PARAMETERS_MAX: usize = 32;

/// Why a line is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// `\n`.
    Newline,
    /// `\r\n`, which programs that wrap lines themselves write.
    CarriageReturn,
    /// It is longer than a line may be; what follows belongs to it.
    Cut,
    /// The cursor went to another line.
    Moved,
    /// It is about to be overwritten or erased.
    Redrawn,
    /// A few characters of it are about to be replaced, as by somebody who types.
    Edited,
    /// Text that stood elsewhere: in another place of the screen, or in a string for the terminal.
    Aside,
    /// Nothing came for a moment. The last word may go on.
    Paused,
    /// Nothing came for long. Whoever types may still be about to go on.
    Quiet,
}

impl End {
    /// Whether the line is over, as against a look at one that goes on.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Newline | Self::CarriageReturn | Self::Cut | Self::Moved)
    }
}

/// Told of every line.
pub(super) trait Lines {
    fn line(&mut self, line: &Mapped, end: End);
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// After `ESC` and an intermediate, as in the choice of a character set.
    Intermediate,
    Sequence,
    /// After the newer character for `ESC [`. Few terminals know it, so it begins a sequence only where one follows.
    MaybeSequence,
    /// A string for the terminal.
    Text,
    /// The same, after an `ESC` that may begin its end.
    TextEscape,
}

/// The part of a terminal that turns bytes into lines.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    state: State,
    line: Line,
    /// A carriage return that may yet be the first half of a line end.
    carriage_return: bool,
    /// Where a saved cursor stood.
    saved: Option<usize>,
    /// Text printed elsewhere since the cursor was saved.
    aside: Option<Box<Line>>,
    /// Bytes of a character that is not complete.
    partial: [u8; 4],
    partial_len: u8,
    partial_raw: u64,
    parameters: [u8; PARAMETERS_MAX],
    parameters_len: u8,
    /// Text of a string for the terminal.
    string: Mapped,
    /// A carriage return in it that may yet be the first half of a line end.
    string_return: bool,
    /// Bytes at its beginning that were handed over.
    string_shown: usize,
    /// Row of the screen where the line stands, since the cursor was sent there.
    row: Option<usize>,
}

impl Terminal {
    /// Whether nothing is under way, so that what follows begins a line.
    pub fn is_at_line_start(&self) -> bool {
        self.state == State::Ground
            && self.partial_len == 0
            && !self.carriage_return
            && self.aside.is_none()
            && self.saved.is_none()
            && self.line.is_clear()
            && self.line.column() == 0
    }

    /// Whether a line has begun that was not handed over.
    pub fn is_unfinished(&self) -> bool {
        self.line.is_dirty()
            || self.aside.as_ref().is_some_and(|aside| aside.is_dirty())
            || self.string.len() > self.string_shown
    }

    /// Reads bytes, of which the first is the raw byte `raw` of the stream.
    pub fn feed(&mut self, bytes: &[u8], raw: u64, lines: &mut dyn Lines) {
        let mut at = 0;
        while let Some(byte) = bytes.get(at).copied() {
            let here = raw + at as u64;
            if self.state == State::Ground && self.partial_len == 0 {
                let plain = plain_len(&bytes[at..]);
                if plain > 0 {
                    self.print(ascii(&bytes[at..at + plain]), here, lines);
                    at += plain;
                    continue;
                }
            }
            at += usize::from(self.byte(byte, here, lines));
        }
    }

    /// Hands over what stands there without an end, because nothing more came, and goes on as if nothing had been looked
    /// at.
    pub fn glance(&self, end: End, lines: &mut dyn Lines) {
        if self.line.is_dirty() {
            self.line.pause(end, lines);
        }
        if let Some(aside) = self.aside.as_ref().filter(|aside| aside.is_dirty()) {
            aside.pause(end, lines);
        }
        if self.string.len() > self.string_shown {
            lines.line(&self.string, end);
        }
    }

    /// Ends what has begun: no byte follows.
    pub fn finish(&mut self, lines: &mut dyn Lines) {
        if self.partial_len > 0 && !matches!(self.state, State::Text | State::TextEscape) {
            self.replace_partial(lines);
        }
        self.end_string(lines);
        self.end_line(End::Newline, lines);
        *self = Self::default();
    }

    /// Heap held, in bytes.
    pub fn heap(&self) -> usize {
        self.line.heap()
            + self.string.heap()
            + self.aside.as_ref().map_or(0, |aside| size_of::<Line>() + aside.heap())
    }

    /// Takes one byte; false when it must be read again in a new state.
    fn byte(&mut self, byte: u8, raw: u64, lines: &mut dyn Lines) -> bool {
        match self.state {
            State::Ground => return self.ground(byte, raw, lines),
            State::Escape => return self.escape(byte, lines),
            State::Intermediate => match byte {
                0x20..=0x2f => {}
                0x30..=0x7e => self.state = State::Ground,
                _ => return self.abort(),
            },
            State::Sequence => return self.sequence(byte, raw, lines),
            State::MaybeSequence => {
                self.parameters_len = 0;
                self.state = if matches!(byte, 0x30..=0x3f) { State::Sequence } else { State::Ground };
                return false;
            }
            State::Text => match byte {
                0x07 | 0x18 | 0x1a => self.end_string(lines),
                // Inside of a character it is a part of that.
                0x9c if self.partial_len == 0 => self.end_string(lines),
                0x1b => self.state = State::TextEscape,
                _ => self.string_byte(byte, raw, lines),
            },
            State::TextEscape => {
                self.end_string(lines);
                if byte != b'\\' {
                    self.state = State::Escape;
                    return false;
                }
            }
        }
        true
    }

    fn abort(&mut self) -> bool {
        self.state = State::Ground;
        false
    }

    fn string_byte(&mut self, byte: u8, raw: u64, lines: &mut dyn Lines) {
        if self.partial_len > 0 {
            let len = usize::from(self.partial_len);
            self.partial[len] = byte;
            self.partial_len += 1;
            match std::str::from_utf8(&self.partial[..=len]) {
                Ok(text) => {
                    let c = text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
                    self.partial_len = 0;
                    if let Some(c) = shown(c) {
                        self.string.push_char(c, self.partial_raw);
                    }
                    return self.bound_string(lines);
                }
                Err(error) if error.error_len().is_none() => return,
                Err(_) => self.end_string_character(),
            }
            // It was no part of the character.
            if byte & 0xc0 == 0x80 {
                return;
            }
        }
        match byte {
            b'\r' => {
                self.string_return = true;
                return;
            }
            b'\n' => {
                // Who reads the bytes sees the line end here.
                if self.line.is_dirty() {
                    self.line.show(End::Redrawn, lines);
                }
                let end = if self.string_return { End::CarriageReturn } else { End::Newline };
                lines.line(&self.string, end);
                self.clear_string();
                return;
            }
            _ => {}
        }
        if std::mem::take(&mut self.string_return) {
            self.show_string(lines);
            self.clear_string();
        }
        match byte {
            0xc2..=0xf4 => {
                self.partial[0] = byte;
                self.partial_len = 1;
                self.partial_raw = raw;
                return;
            }
            0x20..=0x7e | b'\t' => self.string.push(ascii(&[byte]), raw),
            // Other control characters show nothing, and what is no text parts words.
            0x00..=0x1f => return,
            _ => self.string.push_char(char::REPLACEMENT_CHARACTER, raw),
        }
        self.bound_string(lines);
    }

    /// Hands over a part of a long string, and keeps of it what the next part is to begin with.
    fn bound_string(&mut self, lines: &mut dyn Lines) {
        if self.string.len() >= STRING_BYTES_MAX {
            self.show_string(lines);
            let from = self.string.tail_start(STRING_OVERLAP);
            self.string.cut_front(from);
            self.string_shown = self.string.len();
        }
    }

    fn end_string_character(&mut self) {
        self.partial_len = 0;
        self.string.push_char(char::REPLACEMENT_CHARACTER, self.partial_raw);
    }

    fn show_string(&mut self, lines: &mut dyn Lines) {
        if self.string.len() > self.string_shown {
            lines.line(&self.string, End::Aside);
        }
    }

    fn clear_string(&mut self) {
        self.string.reset(0);
        self.string_return = false;
        self.string_shown = 0;
    }

    fn end_string(&mut self, lines: &mut dyn Lines) {
        if self.partial_len > 0 {
            self.end_string_character();
        }
        self.show_string(lines);
        self.clear_string();
        self.state = State::Ground;
    }

    fn ground(&mut self, byte: u8, raw: u64, lines: &mut dyn Lines) -> bool {
        if self.partial_len > 0 {
            return self.continue_character(byte, raw, lines);
        }
        match byte {
            b'\n' => {
                let end = if self.carriage_return { End::CarriageReturn } else { End::Newline };
                self.end_line(end, lines);
            }
            b'\r' => {
                self.carriage_return = true;
            }
            0x08 => {
                self.settle_return();
                self.target().back(1);
            }
            // Vertical tab and form feed go to another line.
            0x0b | 0x0c => self.move_away(lines),
            0x1b => self.state = State::Escape,
            0x20..=0x7e | b'\t' => self.print(ascii(&[byte]), raw, lines),
            0x80.. => {
                if matches!(byte, 0xc2..=0xf4) {
                    self.partial[0] = byte;
                    self.partial_len = 1;
                    self.partial_raw = raw;
                } else {
                    self.print_char(char::REPLACEMENT_CHARACTER, raw, lines);
                }
            }
            // Other control characters show nothing.
            _ => {}
        }
        true
    }

    fn continue_character(&mut self, byte: u8, _raw: u64, lines: &mut dyn Lines) -> bool {
        let len = usize::from(self.partial_len);
        if byte & 0xc0 != 0x80 {
            self.replace_partial(lines);
            return false;
        }
        self.partial[len] = byte;
        self.partial_len += 1;
        match std::str::from_utf8(&self.partial[..=len]) {
            Ok(text) => {
                let c = text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
                let raw = self.partial_raw;
                self.partial_len = 0;
                match c {
                    '\u{9b}' => self.state = State::MaybeSequence,
                    // The other newer control characters: their sequences are in nobody's use, so they only vanish.
                    '\u{80}'..='\u{9f}' => {}
                    c => self.print_char(c, raw, lines),
                }
            }
            Err(error) if error.error_len().is_some() => {
                // The byte may begin nothing, so it goes with the rest.
                self.replace_partial(lines);
            }
            Err(_) => {}
        }
        true
    }

    /// Bytes that are no character become one U+FFFD.
    fn replace_partial(&mut self, lines: &mut dyn Lines) {
        self.partial_len = 0;
        self.print_char(char::REPLACEMENT_CHARACTER, self.partial_raw, lines);
    }

    fn escape(&mut self, byte: u8, lines: &mut dyn Lines) -> bool {
        self.state = State::Ground;
        match byte {
            b'[' => {
                self.state = State::Sequence;
                self.parameters_len = 0;
            }
            b']' | b'P' | b'X' | b'^' | b'_' => self.state = State::Text,
            0x20..=0x2f => self.state = State::Intermediate,
            b'7' => self.save(),
            b'8' => self.restore(lines),
            // Index, next line, reverse index, reset.
            b'D' | b'E' | b'M' | b'c' => self.move_away(lines),
            0x30..=0x7e => {}
            _ => return false,
        }
        true
    }

    fn sequence(&mut self, byte: u8, raw: u64, lines: &mut dyn Lines) -> bool {
        match byte {
            // However many there are, they are no text: only as many are kept as any sequence needs.
            0x20..=0x3f => {
                if let Some(slot) = self.parameters.get_mut(usize::from(self.parameters_len)) {
                    *slot = byte;
                    self.parameters_len += 1;
                }
            }
            0x40..=0x7e => {
                self.state = State::Ground;
                self.apply(byte, lines);
            }
            0x18 | 0x1a => self.state = State::Ground,
            0x1b => self.state = State::Escape,
            // Control characters act even inside a sequence.
            0x00..=0x1f => {
                self.state = State::Ground;
                self.ground(byte, raw, lines);
                self.state = State::Sequence;
            }
            0x7f => {}
            _ => return self.abort(),
        }
        true
    }

    /// The `nth` parameter, where it is given.
    fn parameter(&self, nth: usize, default: usize) -> usize {
        let text = &self.parameters[..usize::from(self.parameters_len)];
        let part = text.split(|b| *b == b';').nth(nth).unwrap_or_default();
        let number = part.iter().take_while(|b| b.is_ascii_digit()).take(6);
        match number.fold(0, |sum, b| sum * 10 + usize::from(b - b'0')) {
            0 => default,
            number => number,
        }
    }

    fn apply(&mut self, sequence: u8, lines: &mut dyn Lines) {
        let is_private =
            self.parameters[..usize::from(self.parameters_len)].first().is_some_and(|b| *b >= b'<');
        let count = self.parameter(0, 1);
        match sequence {
            b'm' | b'h' | b'l' | b'n' | b'c' | b'q' | b't' => {}
            _ if is_private => {}
            b'D' => self.on_line(|line| line.back(count)),
            b'C' | b'a' => self.on_line(|line| line.forward(count)),
            b'G' | b'`' => self.on_line(|line| line.go_to_column(count - 1)),
            b'K' => {
                let what = self.parameter(0, 0);
                self.settle_return();
                self.target().erase(what, lines);
            }
            b'P' => {
                self.settle_return();
                self.target().delete(count, lines);
            }
            b'X' => {
                self.settle_return();
                self.target().blank(count, lines);
            }
            b'@' => {
                self.settle_return();
                self.target().insert(count, lines);
            }
            b's' => self.save(),
            b'u' => self.restore(lines),
            // Lines up and down, places on the screen, erasing and moving whole lines.
            b'H' | b'f' => {
                let (row, column) = (count, self.parameter(1, 1));
                if self.row != Some(row) {
                    self.move_away(lines);
                    self.row = Some(row);
                }
                self.on_line(|line| line.go_to_column(column - 1));
            }
            b'A' | b'B' | b'E' | b'F' | b'J' | b'L' | b'M' | b'S' | b'T' | b'd' | b'e' => {
                self.move_away(lines);
            }
            _ => {}
        }
    }

    fn on_line(&mut self, act: impl FnOnce(&mut Line)) {
        self.settle_return();
        act(self.target());
    }

    /// The line that is written to.
    fn target(&mut self) -> &mut Line {
        match &mut self.aside {
            Some(aside) => aside,
            None => &mut self.line,
        }
    }

    fn settle_return(&mut self) {
        if self.carriage_return {
            self.carriage_return = false;
            self.target().go_to_column(0);
        }
    }

    /// [`Self::settle_return`] where a character is written next.
    fn return_before(&mut self, next: Option<char>, lines: &mut dyn Lines) {
        if let Some(next) = next.filter(|_| self.carriage_return) {
            self.target().note_return(next, lines);
        }
        self.settle_return();
    }

    fn print(&mut self, text: &str, raw: u64, lines: &mut dyn Lines) {
        self.return_before(text.chars().next(), lines);
        self.target().write(text, raw, lines);
    }

    fn print_char(&mut self, c: char, raw: u64, lines: &mut dyn Lines) {
        let Some(c) = shown(c) else { return };
        self.return_before(Some(c), lines);
        self.target().write_char(c, raw, lines);
    }

    fn save(&mut self) {
        if self.aside.is_none() {
            self.settle_return();
            self.saved = Some(self.line.column());
            self.row = None;
        }
    }

    fn restore(&mut self, lines: &mut dyn Lines) {
        self.carriage_return = false;
        self.row = None;
        if let Some(mut aside) = self.aside.take() {
            aside.end(End::Aside, lines);
        }
        if let Some(column) = self.saved {
            self.line.go_to_column(column);
        }
    }

    /// The cursor goes to another line. With a saved cursor it is expected back.
    fn move_away(&mut self, lines: &mut dyn Lines) {
        self.carriage_return = false;
        self.row = None;
        match (&mut self.aside, self.saved) {
            (Some(aside), _) => aside.end(End::Aside, lines),
            (None, Some(_)) => self.aside = Some(Box::default()),
            (None, _) => self.end_line(End::Moved, lines),
        }
    }

    fn end_line(&mut self, end: End, lines: &mut dyn Lines) {
        self.carriage_return = false;
        self.saved = None;
        self.row = None;
        // The way back is cut off: what was printed elsewhere is a line of its own.
        if let Some(mut aside) = self.aside.take() {
            self.line.end(End::Moved, lines);
            aside.end(end, lines);
        } else if !self.line.is_clear() || matches!(end, End::Newline | End::CarriageReturn) {
            self.line.end(end, lines);
        }
    }
}

/// How many bytes from the start are printable ASCII or tabs.
pub(super) fn plain_len(bytes: &[u8]) -> usize {
    let is_plain = |b: u8| (0x20..0x7f).contains(&b) || b == b'\t';
    let mut at = 0;
    for block in bytes.chunks_exact(32) {
        // Without branches inside, which the compiler turns into vector code.
        if !block.iter().fold(true, |all, b| all & is_plain(*b)) {
            break;
        }
        at += block.len();
    }
    at + bytes[at..].iter().take_while(|b| is_plain(**b)).count()
}

/// A character as it is read: what nobody sees is left out, and a blank of any kind is a blank.
fn shown(c: char) -> Option<char> {
    match c {
        c if is_invisible(c) => None,
        c if c.is_whitespace() => Some(' '),
        c => Some(c),
    }
}

/// Bytes that were found to be ASCII.
fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
