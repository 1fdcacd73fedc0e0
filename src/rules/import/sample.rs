//! A text that a pattern matches, made by chance that is the same every time.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Longest text that is made, in bytes.
const BYTES_MAX: usize = 2_048;

/// Makes texts that a pattern matches.
pub(super) struct Sampler(u64);

impl Sampler {
    /// The sampler of that seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A text, or `None` when the pattern asks for what is not ASCII or is too long.
    pub(super) fn text(&mut self, hir: &Hir) -> Option<String> {
        let mut out = String::new();
        self.write(hir, &mut out)?;
        Some(out)
    }

    fn below(&mut self, bound: usize) -> usize {
        // xorshift64: plenty for an example.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }

    fn write(&mut self, hir: &Hir, out: &mut String) -> Option<()> {
        if out.len() > BYTES_MAX {
            return None;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Some(()),
            HirKind::Literal(literal) => {
                out.push_str(std::str::from_utf8(&literal.0).ok()?);
                Some(())
            }
            HirKind::Class(class) => {
                let chars = choices(class);
                let chosen = *chars.get(self.below(chars.len()))?;
                out.push(chosen);
                Some(())
            }
            HirKind::Repetition(repetition) => {
                let most = repetition.max.unwrap_or(repetition.min + 8).min(repetition.min + 8);
                // What may be missing usually is: examples are to be short.
                let span = if repetition.min == 0 { 1 } else { most - repetition.min + 1 };
                let times = repetition.min as usize + self.below(span as usize);
                (0..times).try_for_each(|_| self.write(&repetition.sub, out))
            }
            HirKind::Capture(capture) => self.write(&capture.sub, out),
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.write(part, out)),
            HirKind::Alternation(parts) => {
                let at = self.below(parts.len());
                self.write(parts.get(at)?, out)
            }
        }
    }
}

/// The ASCII letters and digits of a class; where it has none, its other printable characters, else what its ranges begin with.
fn choices(class: &Class) -> Vec<char> {
    let is_in = |c: char| match class {
        Class::Bytes(class) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&(c as u8)))
        }
        Class::Unicode(class) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&c))
        }
    };
    let printable: Vec<char> = (' '..='~').chain(['\n', '\t']).filter(|c| is_in(*c)).collect();
    if let (true, Class::Unicode(class)) = (printable.is_empty(), class) {
        return class.ranges().iter().map(|range| range.start()).collect();
    }
    let plain: Vec<char> = printable.iter().copied().filter(char::is_ascii_alphanumeric).collect();
    if plain.is_empty() { printable } else { plain }
}
