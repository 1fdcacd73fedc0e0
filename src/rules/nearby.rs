//! How far a number of characters reaches from a place of a text, in bytes.
//!
//! Distances are counted in characters, so that context words reach as far in Cyrillic and in Thai as they do in English.
//! In ASCII text that is a count of bytes, for which one look at them is enough.

/// Where `chars` characters before `at` begin; `at` lies on a character boundary.
pub(super) fn before(text: &[u8], at: usize, chars: usize) -> usize {
    let (mut from, mut left) = (at, chars);
    while left > 0 && from > 0 {
        let start = from.saturating_sub(left);
        left = continued(&text[start..from]);
        from = start;
    }
    from
}

/// Where `chars` characters after `at` end; `at` lies on a character boundary.
pub(super) fn after(text: &[u8], at: usize, chars: usize) -> usize {
    let (mut to, mut left) = (at, chars);
    while left > 0 && to < text.len() {
        let end = (to + left).min(text.len());
        left = continued(&text[to..end]);
        to = end;
    }
    to + text[to..].iter().take_while(|byte| goes_on(**byte)).count()
}

/// Bytes that go on with a character. Counted without branches, which the compiler turns into vector code.
fn continued(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| usize::from(goes_on(*byte))).sum()
}

fn goes_on(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn so_many_characters_are_reached(text in "[a-zя漢🙂ก]{0,40}", nth in 0_usize..41, chars in 0_usize..50) {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let nth = nth.min(places.len() - 1);
            let at = places[nth];
            prop_assert_eq!(before(text.as_bytes(), at, chars), places[nth.saturating_sub(chars)]);
            prop_assert_eq!(after(text.as_bytes(), at, chars), places[(nth + chars).min(places.len() - 1)]);
        }
    }
}
