//! Makes archives for tests, with anything in them that a test wants wrong.

/// One entry to be. Whatever is not set follows from the data.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub name: Vec<u8>,
    pub data: Vec<u8>,
    pub method: u16,
    pub flags: u16,
    /// Version of the format that a reader needs, times ten.
    pub version: u8,
    pub attributes: u32,
    pub extra: Vec<u8>,
    pub local_extra: Option<Vec<u8>>,
    pub local_name: Option<Vec<u8>>,
    pub local_flags: Option<u16>,
    pub crc: Option<u32>,
    pub size: Option<u32>,
    /// Packed bytes in place of those of the data.
    pub packed: Option<Vec<u8>>,
    /// A descriptor after the data: none, or with or without its signature.
    pub descriptor: Option<bool>,
    /// What the local header tells before a descriptor: checksum, packed size, size.
    pub told: [bool; 3],
    /// Bytes after the entry.
    pub gap: Vec<u8>,
}

/// A file with a name and data, deflated.
pub(super) fn file(name: &str, data: &[u8]) -> Part {
    Part {
        name: name.as_bytes().to_vec(),
        data: data.to_vec(),
        method: 8,
        flags: if name.is_ascii() { 0 } else { 1 << 11 },
        version: 20,
        attributes: 0o100_644 << 16,
        extra: Vec::new(),
        local_extra: None,
        local_name: None,
        local_flags: None,
        crc: None,
        size: None,
        packed: None,
        descriptor: None,
        told: [false; 3],
        gap: Vec::new(),
    }
}

/// A folder.
pub(super) fn folder(name: &str) -> Part {
    Part { method: 0, attributes: 0o040_755 << 16 | 0x10, ..file(name, b"") }
}

/// An archive to be.
#[derive(Clone, Debug, Default)]
pub(super) struct Zip {
    pub parts: Vec<Part>,
    pub prefix: Vec<u8>,
    pub before_end: Vec<u8>,
    pub comment: Vec<u8>,
    pub suffix: Vec<u8>,
    /// Entries that the end record speaks of.
    pub count: Option<u16>,
    pub is_64: bool,
}

/// The bytes of an archive.
pub(super) fn build(zip: &Zip) -> Vec<u8> {
    let mut out = zip.prefix.clone();
    let mut directory = Vec::new();
    for part in &zip.parts {
        let offset = out.len() as u32;
        let crc = part.crc.unwrap_or_else(|| crc32fast::hash(&part.data));
        let size = part.size.unwrap_or(part.data.len() as u32);
        let packed = part.packed.clone().unwrap_or_else(|| match part.method {
            8 => deflate(&part.data),
            _ => part.data.clone(),
        });
        let has_descriptor = part.descriptor.is_some();
        let flags = part.flags | if has_descriptor { 1 << 3 } else { 0 };
        let name = part.local_name.as_ref().unwrap_or(&part.name);
        let extra = part.local_extra.as_ref().unwrap_or(&part.extra);
        let mut told = [crc, packed.len() as u32, size];
        for (value, is_told) in told.iter_mut().zip(part.told) {
            *value *= u32::from(is_told || !has_descriptor);
        }
        out.extend(b"PK\x03\x04");
        out.extend([part.version, 0]);
        out.extend(part.local_flags.unwrap_or(flags).to_le_bytes());
        out.extend(part.method.to_le_bytes());
        out.extend([0; 4]);
        told.iter().for_each(|value| out.extend(value.to_le_bytes()));
        out.extend((name.len() as u16).to_le_bytes());
        out.extend((extra.len() as u16).to_le_bytes());
        out.extend(name);
        out.extend(extra);
        out.extend(&packed);
        if let Some(has_signature) = part.descriptor {
            if has_signature {
                out.extend(b"PK\x07\x08");
            }
            [crc, packed.len() as u32, size].iter().for_each(|value| out.extend(value.to_le_bytes()));
        }
        out.extend(&part.gap);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend([part.version, 0]);
        directory.extend(flags.to_le_bytes());
        directory.extend(part.method.to_le_bytes());
        directory.extend([0; 4]);
        [crc, packed.len() as u32, size].iter().for_each(|value| directory.extend(value.to_le_bytes()));
        directory.extend((part.name.len() as u16).to_le_bytes());
        directory.extend((part.extra.len() as u16).to_le_bytes());
        directory.extend([0; 8]);
        directory.truncate(directory.len() - 2);
        directory.extend(part.attributes.to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(&part.name);
        directory.extend(&part.extra);
    }
    let at = out.len() as u32;
    out.extend(&directory);
    out.extend(&zip.before_end);
    let count = zip.count.unwrap_or(zip.parts.len() as u16);
    if zip.is_64 {
        let at64 = out.len() as u64;
        out.extend(b"PK\x06\x06");
        out.extend(44_u64.to_le_bytes());
        out.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for value in [u64::from(count), u64::from(count), directory.len() as u64, u64::from(at)] {
            out.extend(value.to_le_bytes());
        }
        out.extend(b"PK\x06\x07\0\0\0\0");
        out.extend(at64.to_le_bytes());
        out.extend(1_u32.to_le_bytes());
    }
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend((zip.comment.len() as u16).to_le_bytes());
    out.extend(&zip.comment);
    out.extend(&zip.suffix);
    out
}

fn deflate(data: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}
