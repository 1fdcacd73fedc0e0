//! Archives that pass, archives that do not, and anything at all.

mod zip;

use proptest::prelude::*;

use super::*;
use zip::{Part, Zip, build, file, folder};

/// Every path with its contents, `None` for folders.
type Contents = Vec<(String, Option<Vec<u8>>)>;

/// Reads an archive to its end.
fn read(bytes: &[u8], limits: ArchiveLimits) -> Result<Contents, Refusal> {
    let archive = Archive::open(bytes, &limits)?;
    let mut totals = Totals::new(limits, bytes.len() as u64);
    totals.add_entries(archive.entries().len())?;
    let mut all = Vec::new();
    for entry in archive.entries() {
        let contents = archive.read(entry, &mut totals).to_end()?;
        all.push((entry.path.clone(), (!entry.is_folder).then_some(contents)));
    }
    Ok(all)
}

fn rule_of(zip: &Zip) -> Option<Rule> {
    read(&build(zip), ArchiveLimits::default()).err().map(|refusal| refusal.rule)
}

/// An archive of a document and whatever else.
fn with(parts: impl IntoIterator<Item = Part>) -> Zip {
    Zip { parts: std::iter::once(file("SKILL.md", b"---\n")).chain(parts).collect(), ..Zip::default() }
}

#[test]
fn ordinary_archives_pass() {
    let text = b"some text, some text, some text".as_slice();
    let timestamps = b"UT\x05\x00\x03\x00\x00\x00\x00".to_vec();
    for (about, zip) in [
        ("files", with([file("a/b/c.txt", text), file("empty", b"")])),
        ("folders", with([folder("a/"), file("a/b", text)])),
        ("stored", with([Part { method: 0, ..file("a", text) }])),
        ("sizes behind the data", with([Part { descriptor: Some(true), ..file("a", text) }])),
        ("without a signature", with([Part { descriptor: Some(false), ..file("a", text) }])),
        (
            "the size told before the data",
            with([Part { descriptor: Some(true), told: [false, false, true], ..file("a", text) }]),
        ),
        ("stored, sizes behind it", with([Part { method: 0, descriptor: Some(true), ..file("a", text) }])),
        (
            "stored, sizes before and behind it",
            with([Part { method: 0, descriptor: Some(false), told: [false, true, true], ..file("a", text) }]),
        ),
        ("times", with([Part { extra: timestamps, ..file("a", text) }])),
        ("Unicode", with([file("Grüße/日本.md", text)])),
        ("escapes", with([file("a%20b/100%/%41.md", text)])),
        ("signs", with([file("a & b; c/\u{a5}100.md", text), file("1\u{2044}2...md", text)])),
        ("no attributes", with([Part { attributes: 0, ..file("a", text) }])),
        ("a comment", Zip { comment: b"made by hand".to_vec(), ..with([]) }),
        ("64-bit records", Zip { is_64: true, ..with([file("a", text)]) }),
    ] {
        let wanted: Vec<_> = zip
            .parts
            .iter()
            .map(|part| {
                let name = String::from_utf8(part.name.clone()).expect("UTF-8");
                let is_folder = name.ends_with('/');
                (name.trim_end_matches('/').to_owned(), (!is_folder).then(|| part.data.clone()))
            })
            .collect();
        assert_eq!(read(&build(&zip), ArchiveLimits::default()), Ok(wanted), "{about}");
    }
}

#[test]
fn paths_that_lead_astray_are_refused() {
    for (rule, names) in [
        (
            Rule::PathTraversal,
            &[
                "../x",
                "a/../../x",
                "a/./b",
                "..",
                ".",
                "\u{ff0e}\u{ff0e}/x",
                "a\u{ff0f}b/..",
                "%2e%2e/x",
                "a/%2E%2e%2fx",
                "..%2fx",
                "%252e%252e%252fx",
                "a%5cb",
                "%2fetc/passwd",
                "..\u{2215}a",
                "..\u{2044}a",
                "..\u{29f8}a",
                "..\u{2216}a",
                "a/..\u{29f9}b",
                "..\u{a5}a",
                "..\u{20a9}a",
                "..%c0%afa",
                "%c0%ae%c0%ae/a",
                "..;/a",
                "&#46;&#46;/a",
                "&#x2E;&#x2e;/a",
            ][..],
        ),
        (Rule::AbsolutePath, &["/etc/passwd", "//host/x", "\\\\host\\x", "~", "~/x", "\u{ff0f}etc"]),
        (Rule::DrivePath, &["C:x", "c:/x", "C:\\x", "a:b", "ab:c", "\u{ff23}:/x", "C%3a/a"]),
        (Rule::Backslash, &["a\\b", "..\\x"]),
        (Rule::ControlCharacter, &["a\nb", "a\u{7f}", "a\0.md", "a%00.md"]),
        (
            Rule::InvisibleCharacter,
            &[
                "a\u{202e}b",
                "a\u{200b}",
                "a\u{3164}b",
                "a\u{115f}b",
                "a\u{1160}b",
                "a\u{ffa0}b",
                "a\u{34f}b",
                "a\u{17b4}b",
                "a\u{2800}b",
                "a\u{e0100}b",
                "a\u{1d173}b",
                "a\u{1bca0}b",
            ],
        ),
        (
            Rule::ReservedName,
            &[
                "a//b",
                "a.",
                "a /b",
                "NUL",
                "a/con.txt",
                "Lpt1",
                "a*b",
                "a\u{fffe}b",
                "a\u{ffff}b",
                "a\u{fdd0}b",
                "a\u{1fffe}b",
                "git~1/config",
                "a/GIT~1/config",
                "Git~2",
            ],
        ),
        (Rule::KindConflict, &["sub/SKILL.md/"]),
    ] {
        for name in names {
            let part = if name.ends_with('/') { folder(name) } else { file(name, b"x") };
            assert_eq!(rule_of(&with([part])), Some(rule), "{name:?}");
        }
    }
    let deep = "a/".repeat(32) + "b";
    assert_eq!(rule_of(&with([file(&deep, b"x")])), Some(Rule::PathLength));
    assert_eq!(rule_of(&with([file(&"n".repeat(256), b"x")])), Some(Rule::PathLength));
    assert_eq!(rule_of(&with([Part { flags: 0, ..file("ü", b"x") }])), Some(Rule::PathEncoding));
    let broken = Part { name: b"\xc0\xae".to_vec(), flags: 1 << 11, ..file("x", b"x") };
    assert_eq!(rule_of(&with([broken])), Some(Rule::PathEncoding));
}

#[test]
fn paths_that_are_the_same_somewhere_are_refused() {
    for (first, second, rule) in [
        ("a", "a", Rule::DuplicatePath),
        ("Read.me", "read.ME", Rule::DuplicatePath),
        ("straße", "STRASSE", Rule::DuplicatePath),
        ("e\u{301}", "\u{e9}", Rule::DuplicatePath),
        ("ﬁle", "file", Rule::DuplicatePath),
        ("a/", "a", Rule::DuplicatePath),
        ("a", "a/b", Rule::KindConflict),
        ("A/x", "a/y", Rule::DuplicatePath),
        ("ss", "\u{1e9e}", Rule::DuplicatePath),
        ("\u{df}", "\u{1e9e}", Rule::DuplicatePath),
        ("e\u{301}/x", "\u{e9}/y", Rule::DuplicatePath),
        ("e\u{301}/", "\u{e9}/y", Rule::DuplicatePath),
        ("A/", "a/y", Rule::DuplicatePath),
    ] {
        let part = |name: &str| if name.ends_with('/') { folder(name) } else { file(name, b"x") };
        assert_eq!(rule_of(&with([part(first), part(second)])), Some(rule), "{first} and {second}");
        assert_eq!(rule_of(&with([part(second), part(first)])), Some(rule), "{second} and {first}");
    }
}

#[test]
fn kinds_other_than_file_and_folder_are_refused() {
    for (attributes, rule) in [
        (0o120_777 << 16, Rule::Symlink),
        (0x400, Rule::Symlink),
        (0o010_644 << 16, Rule::SpecialFile),
        (0o060_644 << 16, Rule::SpecialFile),
        (0o104_755 << 16, Rule::SpecialFile),
        (0o101_644 << 16, Rule::SpecialFile),
        (0o040_755 << 16, Rule::KindConflict),
        (0x10, Rule::KindConflict),
        (0x08, Rule::SpecialFile),
        (0o100_644 << 16 | 0x28, Rule::SpecialFile),
    ] {
        let part = Part { attributes, ..file("x", b"y") };
        assert_eq!(rule_of(&with([part])), Some(rule), "{attributes:#o}");
    }
    let folder = Part { attributes: 0o100_644 << 16, ..folder("x/") };
    assert_eq!(rule_of(&with([folder])), Some(Rule::KindConflict));
}

#[test]
fn what_is_said_twice_must_agree() {
    let text = b"some text, some text".as_slice();
    let extra =
        |id: u16, data: &[u8]| [&id.to_le_bytes()[..], &(data.len() as u16).to_le_bytes(), data].concat();
    let second_name = |name: &[u8], crc: u32| extra(0x7075, &[&[1][..], &crc.to_le_bytes(), name].concat());
    let of_a = crc32fast::hash(b"a");
    for (about, part, rule) in [
        ("name", Part { local_name: Some(b"b".to_vec()), ..file("a", text) }, Rule::Mismatch),
        ("flags", Part { local_flags: Some(1 << 11), ..file("a", text) }, Rule::Mismatch),
        ("checksum", Part { crc: Some(7), ..file("a", text) }, Rule::Checksum),
        ("longer", Part { size: Some(5), ..file("a", text) }, Rule::DataSize),
        ("shorter", Part { size: Some(500), ..file("a", text) }, Rule::DataSize),
        ("stored size", Part { method: 0, size: Some(5), ..file("a", text) }, Rule::DataSize),
        ("after deflate", Part { packed: Some(b"\x03\x00junk".to_vec()), ..file("a", b"") }, Rule::Data),
        ("broken deflate", Part { packed: Some(b"\xff\xff".to_vec()), ..file("a", text) }, Rule::Data),
        ("cut deflate", Part { packed: Some(b"\x4b".to_vec()), ..file("a", text) }, Rule::Data),
        ("gap", Part { gap: b"hidden".to_vec(), ..file("a", text) }, Rule::Gap),
        ("missing descriptor", Part { flags: 1 << 3, ..file("a", text) }, Rule::DataDescriptor),
        (
            "stored, a descriptor without a signature",
            Part { method: 0, descriptor: Some(false), ..file("a", text) },
            Rule::DataDescriptor,
        ),
        (
            "stored, a record in its data",
            Part { method: 0, descriptor: Some(true), ..file("a", b"text PK\x07\x08 and more") },
            Rule::DataDescriptor,
        ),
        (
            "stored, an entry at the end of its data",
            Part { method: 0, descriptor: Some(true), ..file("a", b"PK\x03\x04") },
            Rule::DataDescriptor,
        ),
        ("encrypted", Part { flags: 1, ..file("a", text) }, Rule::Encrypted),
        ("AES", Part { method: 99, ..file("a", text) }, Rule::Encrypted),
        ("method", Part { method: 12, ..file("a", text) }, Rule::Method),
        ("a newer format", Part { version: 63, ..file("a", text) }, Rule::Version),
        ("unknown flag", Part { flags: 1 << 15, ..file("a", text) }, Rule::Flags),
        ("cut extra", Part { extra: b"abc".to_vec(), ..file("a", text) }, Rule::ExtraField),
        ("long extra", Part { extra: b"UT\xff\x00".to_vec(), ..file("a", text) }, Rule::ExtraField),
        ("needless 64 bits", Part { extra: extra(1, &[0; 16]), ..file("a", text) }, Rule::ExtraField),
        ("another name", Part { extra: second_name(b"b", of_a), ..file("a", text) }, Rule::ExtraField),
        ("another sum", Part { extra: second_name(b"a", 7), ..file("a", text) }, Rule::ExtraField),
        (
            "another name in the local header",
            Part { local_extra: Some(second_name(b"b", of_a)), ..file("a", text) },
            Rule::ExtraField,
        ),
        ("a link in an extra field", Part { extra: extra(0xd, &[0; 20]), ..file("a", text) }, Rule::Symlink),
    ] {
        assert_eq!(rule_of(&with([part.clone()])), Some(rule), "{about}");
        let last = Zip { parts: vec![part, file("SKILL.md", b"---\n")], ..Zip::default() };
        assert_eq!(rule_of(&last), Some(rule), "{about}, not at the end");
    }
}

#[test]
fn nothing_stands_around_the_entries() {
    let inner = build(&with([]));
    for (about, zip, rule) in [
        ("before", Zip { prefix: b"#!/bin/sh\n".to_vec(), ..with([]) }, Rule::PrefixData),
        ("before the end", Zip { before_end: b"x".to_vec(), ..with([]) }, Rule::DirectoryEnd),
        ("after", Zip { suffix: b"x".to_vec(), ..with([]) }, Rule::TrailingData),
        ("an archive as comment", Zip { comment: inner.clone(), ..with([]) }, Rule::TrailingData),
        ("a record as comment", Zip { comment: inner[..40].to_vec(), ..with([]) }, Rule::TrailingData),
        ("an archive after", Zip { suffix: inner.clone(), ..with([]) }, Rule::PrefixData),
        ("too few", Zip { count: Some(1), ..with([file("a", b"x")]) }, Rule::EntryCount),
        ("too many", Zip { count: Some(3), ..with([file("a", b"x")]) }, Rule::EntryCount),
        ("none", Zip { parts: Vec::new(), ..Zip::default() }, Rule::Empty),
        ("none said", Zip { count: Some(0), ..with([]) }, Rule::Empty),
    ] {
        let refused = rule_of(&zip);
        assert_eq!(refused, Some(rule), "{about}");
    }
    // A locator that speaks of no disk at all.
    let mut none = build(&Zip { is_64: true, ..with([]) });
    let disks = none.len() - 22 - 20 + 16;
    assert_eq!(none[disks], 1);
    none[disks] = 0;
    assert_eq!(read(&none, ArchiveLimits::default()).expect_err("no disk").rule, Rule::MultiDisk);
    for len in 0..inner.len() {
        assert!(read(&inner[..len], ArchiveLimits::default()).is_err(), "cut after {len} bytes");
    }
}

#[test]
fn limits_hold() {
    let limits = ArchiveLimits {
        packed_max: 100_000,
        unpacked_max: 3_000_000,
        entries_max: 3,
        ratio_max: 100,
        ratio_from: 1_000,
        ..ArchiveLimits::default()
    };
    let zeros = vec![0; 1_600_000];
    let noise: Vec<u8> = (0..120_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (about, zip, rule) in [
        ("packed", with([Part { method: 0, ..file("a", &noise) }]), Rule::PackedSize),
        ("declared", with([file("a", &zeros), file("b", &zeros)]), Rule::UnpackedSize),
        ("ratio", with([file("a", &zeros)]), Rule::Ratio),
        ("entries", with(["a", "b", "c"].map(|name| file(name, b"x"))), Rule::Entries),
    ] {
        let refusal = read(&build(&zip), limits).expect_err(about);
        assert_eq!(refusal.rule, rule, "{about}: {refusal}");
    }
    // Sizes that lie do not unpack more than they say.
    let liar = with([Part { size: Some(10), ..file("a", &zeros) }]);
    assert_eq!(read(&build(&liar), limits).expect_err("a lie").rule, Rule::DataSize);
}

/// Archives of a few small files.
fn archives() -> impl Strategy<Value = Zip> {
    let part = ("[a-c]{1,2}(/[a-c]{1,2}){0,2}", prop::collection::vec(any::<u8>(), 0..64), any::<bool>());
    let parts = prop::collection::vec(part, 1..5);
    (parts, any::<bool>()).prop_map(|(parts, is_64)| Zip {
        parts: parts
            .into_iter()
            .map(|(name, data, is_stored)| Part {
                method: if is_stored { 0 } else { 8 },
                ..file(&name, &data)
            })
            .collect(),
        is_64,
        ..Zip::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let _ = read(&bytes, ArchiveLimits::default());
    }

    /// One changed byte may be harmless (a time, an attribute), and never changes what is read but for what it names.
    #[test]
    fn one_changed_byte_never_changes_contents(zip in archives(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut bytes = build(&zip);
        let before = read(&bytes, ArchiveLimits::default());
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let (Ok(before), Ok(after)) = (before, read(&bytes, ArchiveLimits::default())) {
            prop_assert_eq!(before, after, "byte {}", at);
        }
    }

    #[test]
    fn bytes_put_in_anywhere_are_refused(zip in archives(), at in any::<prop::sample::Index>(), junk in prop::collection::vec(any::<u8>(), 1..40)) {
        let mut bytes = build(&zip);
        let at = at.index(bytes.len() + 1);
        bytes.splice(at..at, junk);
        prop_assert!(read(&bytes, ArchiveLimits::default()).is_err());
    }
}
