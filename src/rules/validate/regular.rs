//! Values written by a rule a child could go on with: rows in order, repeats, next to no different characters.
//!
//! People who need a value that looks like a key type the alphabet (`abcdefgh…`), the digits, both by turns
//! (`a1b2c3d4…`) or one piece again and again (`ab12cd34ab12cd34…`). Each of these says every character by the ones
//! before it. A value counts as such only if nearly all of it is said so, and if that would befall one random value of
//! ten million at most; both are counted, not guessed.

/// Fewest characters behind what names the issuer.
const BODY_MIN: usize = 12;
/// Longest value that is looked at: nobody types more, and structured blobs are judged by their structure.
const VALUE_MAX: usize = 512;
/// Fewest characters of a part that is no beginning by which an issuer marks its keys.
const PART_MIN: usize = 8;
/// Most characters of all such beginnings: `github_pat_`, `sk-ant-api03-`.
const MARK_MAX: usize = 16;
/// Most letters that mark a key right before its body: `dapi`, `AKIA`.
const JOINED_MARK_MAX: usize = 4;
/// Longest piece that is repeated three times or more.
const PIECE_MAX: usize = 16;
/// Shortest piece for which two times are enough: people double a short password.
const DOUBLED_MIN: usize = 12;
/// The natural logarithm of how seldom a random value may be taken for one of these.
const LN_CHANCE_MAX: f32 = -16.2;

/// Whether nearly all of `value` is in order, repeated, or one of a few characters.
pub(super) fn is_regular(value: &str) -> bool {
    is_of_few_characters(value) || is_in_rows(value)
}

/// Whether a value of that length would never hold as few different characters by chance.
fn is_of_few_characters(value: &str) -> bool {
    let mut seen = [false; 256];
    for byte in value.bytes() {
        seen[usize::from(byte.to_ascii_lowercase())] = true;
    }
    let distinct = seen.iter().filter(|seen| **seen).count();
    value.is_empty()
        || (value.len() >= 3 && distinct <= 1)
        || (value.len() >= 5 && distinct <= 2)
        || (value.len() >= 8 && distinct <= 3)
        || (value.len() >= 24 && distinct <= 5)
}

/// Whether nearly all of `value`, behind what marks the issuer, is rows in order or repeats.
pub(super) fn is_in_rows(value: &str) -> bool {
    if value.len() < BODY_MIN || value.len() > VALUE_MAX {
        return false;
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric();
    let mut parts = value.as_bytes().split(|byte| !is_part(byte)).filter(|part| !part.is_empty()).peekable();
    let mut mark = 0;
    while let Some(part) = parts.next_if(|part| part.len() < PART_MIN) {
        mark += part.len();
    }
    let body: Vec<&[u8]> = parts.collect();
    let Some((first, rest)) = body.split_first() else { return false };
    if mark > MARK_MAX {
        return false;
    }
    let letters = first.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let marks = if mark == 0 { letters.min(JOINED_MARK_MAX) } else { 0 };
    let tail = rest.iter().map(|part| Part::of(part)).fold(Part::default(), Part::with);
    [0, marks].into_iter().any(|skipped| Part::of(&first[skipped..]).with(tail).is_said())
}

/// How much of some characters is said by the ones before.
#[derive(Clone, Copy, Default)]
struct Part {
    len: usize,
    /// Characters that break what was said.
    breaks: usize,
    /// The logarithm of the chance that random characters have so few breaks.
    ln_chance: f32,
}

impl Part {
    /// The best reading of one run of letters and digits.
    fn of(part: &[u8]) -> Self {
        let letters: Vec<u8> = part.iter().map(u8::to_ascii_lowercase).collect();
        let whole = Self { len: part.len(), breaks: part.len(), ln_chance: 0.0 };
        let pieces = (1..=PIECE_MAX.min(letters.len() / 3))
            .chain(Some(letters.len() / 2).filter(|half| *half >= DOUBLED_MIN.max(PIECE_MAX + 1)))
            .chain(
                (DOUBLED_MIN..=PIECE_MAX)
                    .filter(|piece| letters.len() / 3 < *piece && piece * 2 <= letters.len()),
            );
        let readings = pieces.flat_map(|piece| [Step::Same, Step::Up, Step::Down].map(|step| (piece, step)));
        // So many readings are tried, and each has its own chance.
        let ln_readings = ((3 * PIECE_MAX + 3) as f32).ln();
        readings
            .filter_map(|(piece, step)| Self::read(&letters, piece, step))
            .map(|read| Self { ln_chance: (read.ln_chance + ln_readings).min(0.0), ..read })
            .min_by(|a, b| a.breaks.cmp(&b.breaks).then(a.ln_chance.total_cmp(&b.ln_chance)))
            .filter(|read| read.ln_chance < 0.0)
            .unwrap_or(whole)
    }

    /// Reads each character as `step` from the one a piece before it; nothing if too many break that.
    fn read(letters: &[u8], piece: usize, step: Step) -> Option<Self> {
        let breaks_max = breaks_max(letters.len());
        let mut breaks = 0;
        for (before, letter) in letters.iter().zip(&letters[piece..]) {
            breaks += usize::from(!step.leads(*before, *letter));
            if breaks > breaks_max {
                return None;
            }
        }
        let said = letters.len() - piece - breaks;
        let free = (1..=breaks).map(|nth| ((letters.len() - piece + 1 - nth) as f32 / nth as f32).ln());
        Some(Self {
            len: letters.len(),
            breaks,
            ln_chance: free.sum::<f32>() - said as f32 * ln_symbols(letters),
        })
    }

    fn with(self, other: Self) -> Self {
        Self {
            len: self.len + other.len,
            breaks: self.breaks + other.breaks,
            ln_chance: self.ln_chance + other.ln_chance,
        }
    }

    /// Whether nearly all of it is said, and never by chance.
    fn is_said(&self) -> bool {
        self.len >= BODY_MIN && self.breaks <= breaks_max(self.len) && self.ln_chance < LN_CHANCE_MAX
    }
}

/// Most characters that may break what is said of so many: where one row ends and another begins.
const fn breaks_max(len: usize) -> usize {
    2 + len / 8
}

/// The logarithm of how many characters each place has at least, as the ones that are there tell.
fn ln_symbols(letters: &[u8]) -> f32 {
    let count: f32 = if letters.iter().all(u8::is_ascii_digit) {
        10.0
    } else if letters.iter().all(u8::is_ascii_hexdigit) {
        15.0
    } else {
        20.0
    };
    count.ln()
}

/// What the next character is to the one before it.
#[derive(Clone, Copy)]
enum Step {
    Same,
    Up,
    Down,
}

impl Step {
    fn leads(self, before: u8, letter: u8) -> bool {
        match self {
            Self::Same => before == letter,
            Self::Up => follows(before, letter),
            Self::Down => follows(letter, before),
        }
    }
}

/// Whether `letter` comes after `before` where one counts on, around the ends of digits and of the alphabet.
fn follows(before: u8, letter: u8) -> bool {
    match before {
        b'9' => matches!(letter, b'0' | b'a'),
        b'z' => matches!(letter, b'0' | b'a'),
        b'f' => matches!(letter, b'0' | b'g'),
        _ => before + 1 == letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_repeats_are_told_from_what_is_drawn() {
        let abc = "abc".repeat(8);
        let regular = [
            "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
            "shpat_0123456789abcdef0123456789abcdef",
            "glpat-abcdefghij1234567890",
            "sk_live_1234567890abcdefghijklmn",
            "NRAK-ABCDEFGHIJKLMNOPQRSTUVWXYZ1",
            "dapi0123456789abcdef0123456789abcdef",
            "dapifedcba9876543210fedcba9876543210",
            "AKIAABCDEFGHIJKLMNOP",
            "sk_live_ab12cd34ab12cd34ab12cd34",
            "sk_live_a1b2c3d4e5f6g7h8i9j0k1l2",
            "ghp_aabbccddeeffgghhiijjkkllmmnnooppqqrr",
            "12345678-1234-1234-1234-123456789012",
            "deadbeefcafebabedeadbeefcafebabe",
            "github_pat_11ABCDEFG0abcdefghijkl_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVW",
            &format!("xoxb-111111111111-222222222222-{abc}"),
            "xoxb-123456789012-123456789012-abcdefghijklmnopqrstuvwx",
        ];
        for value in regular {
            assert!(is_regular(value), "{value}");
        }
        let drawn = [
            "glpat-Zk3vQ9xT7mWb2LcR8nYf",
            "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",
            "xoxb-111111111111-222222222222-Zk3vQ9xT7mWb2LcR8nYf4dJh",
            // A row in it makes no row of it.
            "sk_live_abcdefghQ9xT7mWb2LcR8nYf",
            "dapi0123456789ab7f3e9c1d5b8a2046",
            // Words, and what people double.
            "correct-horse-battery-staple",
            "hunter2hunter2",
            "Winter1234",
            "Summer-Blue-Pony-Garden-123456789012",
            "20240517123045",
            "abcd",
        ];
        for value in drawn {
            assert!(!is_regular(value), "{value}");
        }
    }

    #[test]
    fn no_random_value_is_regular() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % below
        };
        let alphabets: [&[u8]; 3] = [
            b"0123456789",
            b"0123456789abcdef",
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        ];
        for alphabet in alphabets {
            for length in [12, 16, 20, 24, 32, 40, 64] {
                for _ in 0..2_000 {
                    let value: String =
                        (0..length).map(|_| char::from(alphabet[next(alphabet.len())])).collect();
                    assert!(!is_in_rows(&value), "{value}");
                }
            }
        }
    }
}
