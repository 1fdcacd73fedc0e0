//! Names with wildcards: against a name, and against another name with wildcards. ASCII case does not count.

use std::ops::Range;

use super::super::HOLE;

/// Longest name with wildcards that is compared with another, in bytes. No file system has longer names; the work is
/// the product of both lengths.
const GLOB_BYTES_MAX: usize = 256;

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

/// A name of which some pieces are open: `*`, `?`, `[set]`, and pieces that are not known.
pub(super) struct OpenName<'n> {
    text: &'n str,
    pieces: Vec<Piece>,
}

/// Whether a name has open pieces.
pub(super) fn is_open(name: &str, has_glob: bool) -> bool {
    name.contains(HOLE) || (has_glob && name.contains(['*', '?', '[']))
}

impl<'n> OpenName<'n> {
    /// Reads a name; `None` if it is longer than names are.
    pub(super) fn new(text: &'n str, has_glob: bool) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() > GLOB_BYTES_MAX {
            return None;
        }
        let mut pieces = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let piece = match bytes[at] {
                0 => Piece::Many,
                b'*' if has_glob => Piece::Many,
                b'?' if has_glob => Piece::One,
                b'[' if has_glob => match set_at(bytes, at) {
                    Some((piece, end)) => {
                        at = end - 1;
                        piece
                    }
                    None => Piece::Byte(b'['),
                },
                byte => Piece::Byte(byte.to_ascii_lowercase()),
            };
            if piece != Piece::Many || pieces.last() != Some(&Piece::Many) {
                pieces.push(piece);
            }
            at += 1;
        }
        Some(Self { text, pieces })
    }

    /// Whether some name fits both this and `pattern`.
    pub(super) fn meets(&self, pattern: &str) -> bool {
        let pattern = pattern.as_bytes();
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

    fn takes(&self, piece: &Piece, byte: u8) -> bool {
        match piece {
            Piece::Byte(own) => *own == byte,
            Piece::One | Piece::Many => true,
            Piece::Set { is_negated, body } => {
                let body = &self.text.as_bytes()[body.clone()];
                in_set(body, byte) != *is_negated || in_set(body, byte.to_ascii_uppercase()) != *is_negated
            }
        }
    }

    /// How many bytes of it are said: letters, and sets, which say one of a few.
    pub(super) fn said(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece, Piece::Byte(_) | Piece::Set { .. })).count()
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
    // A closing bracket right at the beginning is one of the set.
    let end = bytes.iter().skip(start + 1).position(|byte| *byte == b']')? + start + 1;
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
