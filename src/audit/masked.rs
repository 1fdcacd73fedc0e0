//! Texts and names as they may be remembered: without the credentials and personal data in them; of texts with what was
//! found in them marked.

use std::borrow::Cow;
use std::ops::Range;

use crate::decision::Finding;
use crate::detect::redact::{Placeholders, Secret, kind_of, merged, redact_plain, secrets_in};
use crate::detect::{PII, SECRETS, Scanner};
use crate::rules::Surface;

/// Longest text that is looked through, in bytes. Of a longer one nothing is kept.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// How much is kept before the first thing that was found, in bytes.
const BEFORE_BYTES: usize = 400;
/// How much is kept of one text, in bytes.
const KEPT_BYTES_MAX: usize = 4 * 1024;

/// Longest name that is known at a glance to hold nothing, in bytes: credentials are longer.
const PLAIN_NAME_BYTES_MAX: usize = 15;
/// Digits from which on a short name may be a number of somebody.
const NUMBER_DIGITS_MIN: usize = 6;

/// What a caller chose to call something, such as the id of an agent, without the credentials and personal data in it.
pub fn masked_name<'a>(scanner: &Scanner, name: &'a str) -> Cow<'a, str> {
    if is_plain(name) {
        return Cow::Borrowed(name);
    }
    let masked = redact_plain(scanner, name, Surface::Text, &mut Placeholders::default(), |_| true);
    if masked == name { Cow::Borrowed(name) } else { Cow::Owned(masked) }
}

/// Whether there is no room in a name for anything that would be masked: most of them are short words or UUIDs.
fn is_plain(name: &str) -> bool {
    let bytes = name.as_bytes();
    let is_uuid = || {
        let is_there = |at: usize, byte: u8| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        };
        bytes.len() == 36 && bytes.iter().enumerate().all(|(at, byte)| is_there(at, *byte))
    };
    let is_word = || {
        let is_of_words = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(byte);
        let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
        bytes.len() <= PLAIN_NAME_BYTES_MAX && digits < NUMBER_DIGITS_MIN && bytes.iter().all(is_of_words)
    };
    is_word() || is_uuid()
}

/// A text, or the part of it around what was found first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskedText {
    /// Where the text stood: a JSON Pointer in its message.
    pub path: String,
    /// Index of the message; 0 for what is no conversation.
    pub message_index: u32,
    /// Who spoke; empty for what is no conversation.
    pub role: &'static str,
    /// Its pieces, in order. Empty where nothing may be kept.
    pub pieces: Vec<Piece>,
    /// Why nothing was kept, or not all; empty when all was.
    pub left_out: &'static str,
}

/// A piece of a text in which the same things were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The text, or what stands for it.
    pub text: String,
    /// Whether it stands for something that is not kept.
    pub is_masked: bool,
    /// Indices of the findings that cover it.
    pub findings: Vec<usize>,
}

impl MaskedText {
    /// Masks `text`. `findings` are those of the decision, the worst first, with spans in bytes; the ones at
    /// `message_index` and `path` are marked.
    pub fn of(
        scanner: &Scanner,
        (message_index, path, role): (u32, String, &'static str),
        text: &str,
        findings: &[&Finding],
    ) -> Self {
        let mut this = Self { path, message_index, role, pieces: Vec::new(), left_out: "" };
        if text.len() > TEXT_BYTES_MAX {
            this.left_out = "the text is too long to be kept";
            return this;
        }
        let own: Vec<(usize, Range<usize>)> = findings
            .iter()
            .enumerate()
            .filter(|(_, finding)| {
                finding.span.message_index == message_index && *finding.span.path == *this.path
            })
            .map(|(at, finding)| (at, finding.span.start..finding.span.end))
            .filter(|(_, range)| range.start < range.end && text.get(range.clone()).is_some())
            .collect();
        let Ok(mut secrets) = secrets_in(scanner, text, Surface::Text) else {
            this.left_out = "the text could not be masked";
            return this;
        };
        // What an extension calls a secret is one.
        secrets.extend(own.iter().filter_map(|(at, range)| {
            let finding = findings.get(*at)?;
            let is_secret = [SECRETS, PII].iter().any(|family| finding.category.is_within(family));
            let (range, category, severity) = (range.clone(), finding.category.clone(), finding.severity);
            is_secret.then_some(Secret { range, category, severity })
        }));
        let secrets = merged(secrets);
        let (from, until) = window(text, &own, &secrets);
        this.pieces = pieces(text, from..until, &own, &secrets);
        if until - from < text.len() {
            this.left_out = "only a part around what was found is kept";
        }
        // Cutting something out can bring two halves together.
        let joined: String = this.pieces.iter().map(|piece| piece.text.as_str()).collect();
        let is_clean = secrets_in(scanner, &joined, Surface::Text).is_ok_and(|left| left.is_empty());
        if !is_clean {
            this.pieces.clear();
            this.left_out = "the text could not be masked";
        }
        this
    }
}

/// The part that is kept: from a little before the first finding on, or before the worst where that would not be in it;
/// never a part of a secret.
fn window(text: &str, own: &[(usize, Range<usize>)], secrets: &[Secret]) -> (usize, usize) {
    let before = |at: usize| text.floor_char_boundary(at.saturating_sub(BEFORE_BYTES));
    let mut from = before(own.iter().map(|(_, range)| range.start).min().unwrap_or(0));
    if let Some((_, worst)) = own.first()
        && worst.end > from + KEPT_BYTES_MAX
    {
        from = before(worst.start);
    }
    let mut until = text.floor_char_boundary((from + KEPT_BYTES_MAX).min(text.len()));
    for secret in secrets {
        if secret.range.contains(&from) {
            from = secret.range.start;
        }
        if secret.range.start < until && until < secret.range.end {
            until = secret.range.end;
        }
    }
    (from, until)
}

fn pieces(text: &str, kept: Range<usize>, own: &[(usize, Range<usize>)], secrets: &[Secret]) -> Vec<Piece> {
    let mut cuts: Vec<usize> = vec![kept.start, kept.end];
    cuts.extend(own.iter().flat_map(|(_, range)| [range.start, range.end]));
    cuts.extend(secrets.iter().flat_map(|secret| [secret.range.start, secret.range.end]));
    cuts.retain(|cut| kept.contains(cut) || *cut == kept.end);
    cuts.sort_unstable();
    cuts.dedup();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut done = kept.start;
    for pair in cuts.windows(2) {
        let [start, end] = *pair else { continue };
        if start < done {
            continue;
        }
        let secret = secrets.iter().find(|secret| secret.range.start <= start && start < secret.range.end);
        let range = secret.map_or(start..end, |secret| secret.range.clone());
        done = range.end;
        let covers = |other: &Range<usize>| other.start < range.end && range.start < other.end;
        pieces.push(Piece {
            text: match secret {
                Some(secret) => format!("[{}]", kind_of(&secret.category)),
                None => text.get(range.clone()).unwrap_or_default().to_owned(),
            },
            is_masked: secret.is_some(),
            findings: own.iter().filter(|(_, other)| covers(other)).map(|(at, _)| *at).collect(),
        });
    }
    pieces
}
