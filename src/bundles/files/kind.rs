//! What the bytes of a file are, whatever its name says.

use super::text::{self, Decoded};
use crate::bundles::formats::{pdf, pickle};
use crate::bundles::media::{self, Inert, MayUnpack};

/// A file by its bytes.
#[derive(Debug)]
pub(in crate::bundles) enum Content {
    /// No bytes at all.
    Empty,
    /// Text, decoded.
    Text(Decoded),
    /// An image, a font or a sound, wholly.
    Inert(Inert),
    /// A ZIP archive, whatever it is called.
    Zip,
    /// Something that is not looked into.
    Opaque(Opaque),
}

/// Kinds of files that are not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bundles) enum Opaque {
    /// Machine code: ELF, PE, Mach-O, WebAssembly.
    Program,
    /// Code for a virtual machine: Java classes, Python byte code.
    Bytecode,
    /// An archive or a compressed file of another format than ZIP.
    Archive,
    /// A document in a format of its own, such as PDF.
    Document,
    /// A serialised object of Python, which calls what it names while it is loaded.
    Pickle,
    /// A shortcut, a data base, or anything else.
    Other,
}

impl Opaque {
    /// What it is, for a person.
    pub(in crate::bundles) const fn describe(self) -> &'static str {
        match self {
            Self::Program => "machine code",
            Self::Bytecode => "compiled code",
            Self::Archive => "an archive of another format than ZIP",
            Self::Document => "a document in a binary format",
            Self::Pickle => "a pickled object",
            Self::Other => "binary data",
        }
    }
}

/// First bytes of formats that are not looked into (file formats as published by their makers; Mach-O and Java share one).
const MAGICS: &[(&[u8], Opaque)] = &[
    (b"\x7fELF", Opaque::Program),
    (b"MZ", Opaque::Program),
    (b"\xfe\xed\xfa\xce", Opaque::Program),
    (b"\xfe\xed\xfa\xcf", Opaque::Program),
    (b"\xce\xfa\xed\xfe", Opaque::Program),
    (b"\xcf\xfa\xed\xfe", Opaque::Program),
    (b"\0asm", Opaque::Program),
    (b"\xca\xfe\xba\xbe", Opaque::Bytecode),
    (b"\x1bLua", Opaque::Bytecode),
    (b"dex\n", Opaque::Bytecode),
    (b"\x1f\x8b", Opaque::Archive),
    (b"BZh", Opaque::Archive),
    (b"\xfd7zXZ\0", Opaque::Archive),
    (b"7z\xbc\xaf\x27\x1c", Opaque::Archive),
    (b"Rar!\x1a\x07", Opaque::Archive),
    (b"\x28\xb5\x2f\xfd", Opaque::Archive),
    (b"\x04\x22\x4d\x18", Opaque::Archive),
    (b"MSCF", Opaque::Archive),
    (b"!<arch>\n", Opaque::Archive),
    (b"xar!", Opaque::Archive),
    (b"%PDF-", Opaque::Document),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Opaque::Document),
    (b"L\0\0\0\x01\x14\x02\0", Opaque::Other),
    (b"SQLite format 3\0", Opaque::Other),
];
/// Where the magic of a tar header stands (POSIX `ustar`).
const TAR_MAGIC_AT: usize = 257;

/// Whether a file begins like a ZIP archive.
pub(in crate::bundles) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// What the file at `path` is. `may_unpack` is asked before something in it is.
pub(in crate::bundles) fn content_of(path: &str, bytes: &[u8], may_unpack: MayUnpack<'_>) -> Content {
    if bytes.is_empty() {
        return Content::Empty;
    }
    if is_zip(bytes) {
        return Content::Zip;
    }
    if let Ok(inert) = media::inert(path, bytes, may_unpack) {
        return Content::Inert(inert);
    }
    if let Some(opaque) = opaque_of(path, bytes) {
        return Content::Opaque(opaque);
    }
    // Whether their bytes can be printed says nothing of these.
    if pickle::read(bytes).is_some() {
        return Content::Opaque(Opaque::Pickle);
    }
    if pdf::is_veiled(path, bytes) {
        return Content::Opaque(Opaque::Document);
    }
    match text::decode(bytes) {
        Some(decoded) => Content::Text(decoded),
        None => Content::Opaque(Opaque::Other),
    }
}

/// Whether bytes begin like an archive or a program.
pub(in crate::bundles) fn is_packed_or_program(bytes: &[u8]) -> bool {
    /// Zero bytes that the head of a program for Windows has at least.
    const ZEROS_MIN: usize = 16;
    let zeros = || bytes.iter().take(64).filter(|byte| **byte == 0).count();
    is_zip(bytes)
        || MAGICS.iter().any(|(magic, opaque)| {
            bytes.starts_with(magic)
                && matches!(opaque, Opaque::Program | Opaque::Bytecode | Opaque::Archive)
                && (magic.len() > 2 || (bytes.starts_with(b"\x1f\x8b\x08") || zeros() >= ZEROS_MIN))
        })
}

fn opaque_of(path: &str, bytes: &[u8]) -> Option<Opaque> {
    if bytes.get(TAR_MAGIC_AT..TAR_MAGIC_AT + 5) == Some(b"ustar") {
        return Some(Opaque::Archive);
    }
    let is_text = || text::decode(bytes).is_some();
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    if matches!(extension.as_deref(), Some("pyc" | "pyo" | "class")) && !is_text() {
        return Some(Opaque::Bytecode);
    }
    let (_, opaque) = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic))?;
    // Two letters prove nothing: a text may begin with MZ.
    (!is_text()).then_some(*opaque)
}
