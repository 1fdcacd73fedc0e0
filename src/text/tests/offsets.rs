//! Offsets in other units, lines and columns, and the cases that clients in other languages read too.

use crate::text::*;
use proptest::prelude::*;

#[test]
fn lines_end_as_editors_count_them() {
    let text = "a\nb\r\nc\rd\n\ré😀x";
    let offsets: Vec<usize> = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 17].to_vec();
    let wanted = [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
        (2, 3),
        (3, 1),
        (3, 2),
        (4, 1),
        (4, 2),
        (5, 1),
        (6, 1),
        (6, 2),
        (6, 4),
        (6, 5),
    ];
    assert_eq!(line_columns(text, OffsetEncoding::Utf16, &offsets), wanted);
    assert_eq!(line_columns(text, OffsetEncoding::Utf32, &[17, 16, 0]), [(6, 4), (6, 3), (1, 1)]);
    assert_eq!(line_columns(text, OffsetEncoding::Utf8, &[17]), [(6, 8)]);
    assert_eq!(line_columns("", OffsetEncoding::Utf8, &[0, 9]), [(1, 1), (1, 1)]);
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    text: String,
    spans: Vec<CaseSpan>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseSpan {
    matched: String,
    utf8: [usize; 2],
    utf16: [usize; 2],
    utf32: [usize; 2],
}

#[test]
fn spans_in_every_unit_cut_the_same_text() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../../../tests/cases/text/units.json")).unwrap();
    assert!(cases.len() > 10);
    for Case { text, spans } in &cases {
        for span in spans {
            assert_eq!(text[span.utf8[0]..span.utf8[1]], span.matched);
            for (encoding, wanted) in [
                (OffsetEncoding::Utf8, span.utf8),
                (OffsetEncoding::Utf16, span.utf16),
                (OffsetEncoding::Utf32, span.utf32),
            ] {
                let mut offsets = span.utf8;
                convert_offsets(text, encoding, &mut offsets);
                assert_eq!(offsets, wanted, "{text:?} {encoding:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn offsets_agree_with_the_standard_library(text in "(\\PC|[\r\n\0]|[a-z]{3}){0,40}", picks in prop::collection::vec(0..200_usize, 0..9)) {
        let bytes: Vec<usize> = picks.iter().map(|&pick| text.floor_char_boundary(pick)).collect();
        let mut utf16 = picks.clone();
        convert_offsets(&text, OffsetEncoding::Utf16, &mut utf16);
        let mut utf32 = picks.clone();
        convert_offsets(&text, OffsetEncoding::Utf32, &mut utf32);
        for (index, &byte) in bytes.iter().enumerate() {
            prop_assert_eq!(utf16[index], text[..byte].encode_utf16().count());
            prop_assert_eq!(utf32[index], text[..byte].chars().count());
        }
        for encoding in [OffsetEncoding::Utf8, OffsetEncoding::Utf16, OffsetEncoding::Utf32] {
            for (index, (line, column)) in line_columns(&text, encoding, &picks).into_iter().enumerate() {
                let before = &text[..bytes[index]];
                let is_in_pair = before.ends_with('\r') && text[bytes[index]..].starts_with('\n');
                let unified = before.replace("\r\n", "\n").replace('\r', "\n");
                let wanted_line = 1 + unified.matches('\n').count() - usize::from(is_in_pair);
                prop_assert_eq!(line as usize, wanted_line);
                prop_assert!(column >= 1 && column as usize <= before.len() + 1);
            }
        }
    }

    #[test]
    fn a_short_range_lies_whole_in_a_window(text in "(\\PC|[a-z]{5}){0,80}", size in 0..64_usize, overlap in 0..32_usize, at in 0..400_usize, len in 0..32_usize) {
        let made: Vec<_> = windows(&text, size, overlap).collect();
        let size = size.max(overlap + 4);
        for window in &made {
            prop_assert!(text.get(window.clone()).is_some() && window.len() <= size + 3);
        }
        prop_assert!(made.windows(2).all(|pair| pair[0].end - pair[1].start >= overlap && pair[0].end < pair[1].end));
        let start = text.floor_char_boundary(at);
        let end = text.floor_char_boundary(start + len.min(overlap)).max(start);
        prop_assert!(made.iter().any(|window| window.start <= start && end <= window.end));
    }
}
