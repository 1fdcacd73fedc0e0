//! Names with wildcards: against a name, and against another name with wildcards. ASCII case does not count.

use std::ops::Range;

use super::super::HOLE;

/// Longest name of any file system, in bytes. A name with wildcards that says more fits no file.
const NAME_BYTES_MAX: usize = 255;

/// Most opening brackets without an end that are looked at in one name; further ones are letters.
const ENDLESS_MAX: usize = 16;

/// Whether `name` fits `pattern`, in which `*` stands for anything and `?` for one byte.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where to go on when what follows the last star does not fit.
    let mut retry = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte.eq_ignore_ascii_case(&name[n]) => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((after, start)) => {
                    retry = Some((after, start + 1));
                    (p, n) = (after, start + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// A piece of a name with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// One byte, in lower case.
    Byte(u8),
    /// Any one byte.
    One,
    /// One byte of a set, as the shell writes it between brackets.
    Set { is_negated: bool, body: Range<usize> },
    /// Any bytes, also none.
    Many,
}

impl Piece {
    fn byte(&self) -> Option<u8> {
        match self {
            Self::Byte(byte) => Some(*byte),
            _ => None,
        }
    }
}

/// A name of which some pieces are open: `*`, `?`, `[set]`, and pieces that are not known.
#[derive(Clone, Debug)]
pub(super) struct OpenName<'n> {
    text: &'n str,
    pieces: Vec<Piece>,
    said: usize,
}

/// Whether a name has open pieces.
pub(super) fn is_open(name: &str, has_glob: bool) -> bool {
    name.contains(HOLE) || (has_glob && name.contains(['*', '?', '[']))
}

impl<'n> OpenName<'n> {
    /// Reads a name.
    pub(super) fn new(text: &'n str, has_glob: bool) -> Self {
        let bytes = text.as_bytes();
        let mut pieces = Vec::with_capacity(bytes.len());
        let mut at = 0;
        // Each bracket without an end costs a look at all the rest.
        let mut endless = 0;
        while at < bytes.len() {
            let piece = match bytes[at] {
                0 => Piece::Many,
                b'*' if has_glob => Piece::Many,
                b'?' if has_glob => Piece::One,
                b'[' if has_glob && endless < ENDLESS_MAX => match set_at(bytes, at) {
                    Some((piece, end)) => {
                        at = end - 1;
                        piece
                    }
                    None => {
                        endless += 1;
                        Piece::Byte(b'[')
                    }
                },
                byte => Piece::Byte(byte.to_ascii_lowercase()),
            };
            if piece != Piece::Many || pieces.last() != Some(&Piece::Many) {
                pieces.push(piece);
            }
            at += 1;
        }
        let is_said = |piece: &&Piece| matches!(piece, Piece::Byte(_) | Piece::Set { is_negated: false, .. });
        let said = pieces.iter().filter(is_said).count();
        Self { text, pieces, said }
    }

    /// Whether some name fits both this and `pattern`.
    pub(super) fn meets(&self, pattern: &str) -> bool {
        let pattern = pattern.as_bytes();
        let least = self.pieces.iter().filter(|piece| **piece != Piece::Many).count();
        let most = if pattern.contains(&b'*') { NAME_BYTES_MAX } else { pattern.len() };
        if least > most {
            return false;
        }
        if !self.agrees(pattern.iter(), self.pieces.iter())
            || !self.agrees(pattern.iter().rev(), self.pieces.iter().rev())
        {
            return false;
        }
        // reach[p]: what was read of this name can fit the first p bytes of the pattern.
        let mut reach = vec![false; pattern.len() + 1];
        let mut next = vec![false; pattern.len() + 1];
        reach[0] = true;
        close(pattern, &mut reach);
        for piece in &self.pieces {
            if *piece == Piece::Many {
                // From the first place that can be reached on, every later one can be.
                let first = reach.iter().position(|is_reached| *is_reached);
                next.fill(false);
                if let Some(first) = first {
                    next[first..].fill(true);
                }
            } else {
                next.fill(false);
                for (p, &byte) in pattern.iter().enumerate() {
                    if reach[p] && byte == b'*' {
                        next[p] = true;
                    } else if reach[p] && (byte == b'?' || self.takes(piece, byte.to_ascii_lowercase())) {
                        next[p + 1] = true;
                    }
                }
                // A star was passed over by `close`, and can still take this piece.
                close(pattern, &mut next);
            }
            std::mem::swap(&mut reach, &mut next);
        }
        reach[pattern.len()]
    }

    /// Whether what is said on both sides before the first open piece is the same: a quick no for most.
    fn agrees<'a>(
        &self,
        pattern: impl Iterator<Item = &'a u8>,
        mut pieces: impl Iterator<Item = &'a Piece>,
    ) -> bool {
        for byte in pattern {
            match (byte, pieces.next()) {
                (b'*' | b'?', _) | (_, Some(Piece::One | Piece::Many)) => return true,
                (_, None) => return false,
                (byte, Some(piece)) if !self.takes(piece, byte.to_ascii_lowercase()) => return false,
                _ => {}
            }
        }
        true
    }

    fn takes(&self, piece: &Piece, byte: u8) -> bool {
        match piece {
            Piece::Byte(own) => *own == byte,
            Piece::One | Piece::Many => true,
            Piece::Set { is_negated, body } => {
                let body = &self.text.as_bytes()[body.clone()];
                in_set(body, byte) != *is_negated || (!is_negated && in_set(body, byte.to_ascii_uppercase()))
            }
        }
    }

    /// How many bytes of it are said: letters, and sets of letters; one that only excludes says nothing.
    pub(super) fn said(&self) -> usize {
        self.said
    }

    /// Its first byte, in lower case, if that is said.
    pub(super) fn first(&self) -> Option<u8> {
        self.pieces.first().and_then(Piece::byte)
    }

    /// Its last byte, in lower case, if that is said.
    pub(super) fn last(&self) -> Option<u8> {
        self.pieces.last().and_then(Piece::byte)
    }

    /// Whether it stands for names of one length only.
    pub(super) fn is_fixed(&self) -> bool {
        !self.pieces.contains(&Piece::Many)
    }

    /// Whether `literal`, in lower case, stands in it in one piece; a set or `?` in place of a byte does not.
    pub(super) fn says(&self, literal: &str) -> bool {
        let literal = literal.as_bytes();
        literal.is_empty()
            || self
                .pieces
                .windows(literal.len())
                .any(|window| window.iter().zip(literal).all(|(piece, byte)| *piece == Piece::Byte(*byte)))
    }

    /// How many bytes at its end are said and the same as at the end of `name`, from the last dot of `name` on.
    pub(super) fn shared_extension(&self, name: &str) -> usize {
        let Some(dot) = name.rfind('.').filter(|dot| *dot > 0) else { return 0 };
        let extension = &name.as_bytes()[dot..];
        let Some(start) = self.pieces.len().checked_sub(extension.len()) else { return 0 };
        let is_same = self.pieces[start..]
            .iter()
            .zip(extension)
            .all(|(piece, byte)| *piece == Piece::Byte(byte.to_ascii_lowercase()));
        if is_same { extension.len() } else { 0 }
    }
}

/// Lets stars of the pattern stand for nothing.
fn close(pattern: &[u8], reach: &mut [bool]) {
    for (p, byte) in pattern.iter().enumerate() {
        if reach[p] && *byte == b'*' {
            reach[p + 1] = true;
        }
    }
}

/// The set that begins at `[`, and where it ends.
fn set_at(bytes: &[u8], at: usize) -> Option<(Piece, usize)> {
    let is_negated = matches!(bytes.get(at + 1), Some(b'!' | b'^'));
    let start = at + 1 + usize::from(is_negated);
    // A closing bracket right at the beginning is one of the set, and that of a class such as `[:alpha:]` is its own.
    let is_end =
        |at: &usize| bytes[*at] == b']' && (bytes[*at - 1] != b':' || !bytes[start..*at].contains(&b'['));
    let end = (start + 1..bytes.len()).find(is_end)?;
    Some((Piece::Set { is_negated, body: start..end }, end + 1))
}

fn in_set(body: &[u8], byte: u8) -> bool {
    let mut at = 0;
    while at < body.len() {
        if at + 2 < body.len() && body[at + 1] == b'-' {
            if (body[at]..=body[at + 2]).contains(&byte) {
                return true;
            }
            at += 3;
        } else if body[at..].starts_with(b"[:") {
            // A class such as `[:alpha:]`, inside the brackets of the set: taken for every byte.
            return true;
        } else {
            if body[at] == byte {
                return true;
            }
            at += 1;
        }
    }
    false
}
