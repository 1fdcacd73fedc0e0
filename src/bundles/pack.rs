//! Packing: files into a ZIP archive that every reader reads the same, the same files giving the same bytes.
//!
//! No time, no owner and no comment is written, and entries stand in the order in which they were added. ZIP64 is not:
//! what does not fit without it is refused.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom, Write};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha2::{Digest, Sha256};

use super::archive::{Archive, ArchiveLimits, Entry, Refusal, Source, Totals};

/// The name of what [`repack`] was given, inside what it made, when the gate refuses to open it.
pub const REFUSED_NAME: &str = "refused-upload.zip.quarantine";

/// Mode of an ordinary file, as in `stat.h`.
const FILE_MODE: u32 = 0o100_644;
/// Mode of one that may be executed.
const EXECUTABLE_MODE: u32 = 0o100_755;
/// Mode of a folder.
const FOLDER_MODE: u32 = 0o040_755;

/// Names are UTF-8 (APPNOTE 4.4.4, bit 11).
const UTF8_FLAG: u16 = 1 << 11;
/// Made on Unix by a version 2.0 (APPNOTE 4.4.2).
const MADE_BY: u16 = 3 << 8 | 20;
/// What is needed to unpack: version 2.0.
const NEEDED: u16 = 20;
/// Midnight of the first day of 1980, where the calendar of the format begins.
const DATE: u16 = 1 << 5 | 1;
/// Where CRC and sizes stand in a local header.
const CRC_AT: u64 = 14;

/// Why something could not be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is too much for the format without its 64-bit extension.
    #[error("{what} does not fit into a ZIP archive without its 64-bit extension")]
    TooLarge {
        /// What is too large.
        what: &'static str,
    },
    /// What is to be packed is itself an archive that does not read as it should.
    #[error("{0}")]
    Refused(Refusal),
}

/// An archive that is being written.
#[derive(Debug)]
pub struct Packer<W> {
    out: W,
    packed: Vec<Packed>,
}

/// An entry that stands in the archive.
#[derive(Debug)]
struct Packed {
    path: String,
    mode: u32,
    method: u16,
    crc: u32,
    packed: u32,
    size: u32,
    at: u32,
}

impl<W: Write + Seek> Packer<W> {
    /// An archive at the beginning of `out`.
    pub fn new(out: W) -> Self {
        Self { out, packed: Vec::new() }
    }

    /// Adds an ordinary file.
    ///
    /// # Errors
    /// See [`PackError`].
    pub fn add_file(
        &mut self,
        path: &str,
        is_executable: bool,
        data: &mut dyn Read,
    ) -> Result<(), PackError> {
        self.add(path, if is_executable { EXECUTABLE_MODE } else { FILE_MODE }, data)
    }

    /// Adds an entry of any kind by its Unix mode, type included: the gate says what it thinks of links and devices.
    ///
    /// # Errors
    /// See [`PackError`].
    pub fn add(&mut self, path: &str, mode: u32, data: &mut dyn Read) -> Result<(), PackError> {
        let at = fits(self.out.stream_position()?, "the archive")?;
        let name_len = u16::try_from(path.len()).map_err(|_| PackError::TooLarge { what: "a path" })?;
        let mut first = [0; 1];
        let is_empty = data.read(&mut first)? == 0;
        let mut entry = Packed {
            path: path.to_owned(),
            mode,
            // A deflated nothing has two bytes, which some readers do not expect.
            method: if is_empty { 0 } else { 8 },
            crc: 0,
            packed: 0,
            size: 0,
            at,
        };
        let mut header = Vec::with_capacity(30 + path.len());
        header.extend(b"PK\x03\x04");
        header.extend(NEEDED.to_le_bytes());
        entry.describe(&mut header);
        header.extend(name_len.to_le_bytes());
        header.extend(0_u16.to_le_bytes());
        header.extend(path.as_bytes());
        self.out.write_all(&header)?;
        if !is_empty {
            let begin = self.out.stream_position()?;
            let (crc, size) = deflate(&mut self.out, &mut first.as_slice().chain(data))?;
            let end = self.out.stream_position()?;
            entry.crc = crc;
            entry.size = fits(size, "a file")?;
            entry.packed = fits(end - begin, "a file")?;
            self.out.seek(SeekFrom::Start(u64::from(at) + CRC_AT))?;
            for number in [entry.crc, entry.packed, entry.size] {
                self.out.write_all(&number.to_le_bytes())?;
            }
            self.out.seek(SeekFrom::Start(end))?;
        }
        self.packed.push(entry);
        Ok(())
    }

    /// Writes the directory.
    ///
    /// # Errors
    /// See [`PackError`].
    pub fn finish(mut self) -> Result<W, PackError> {
        let count = u16::try_from(self.packed.len())
            .map_err(|_| PackError::TooLarge { what: "the list of files" })?;
        let at = fits(self.out.stream_position()?, "the archive")?;
        let mut directory = Vec::new();
        for entry in &self.packed {
            directory.extend(b"PK\x01\x02");
            directory.extend(MADE_BY.to_le_bytes());
            directory.extend(NEEDED.to_le_bytes());
            entry.describe(&mut directory);
            let name_len = entry.path.len() as u16;
            // Lengths of name, extra field and comment, disk, internal attributes.
            for number in [name_len, 0, 0, 0, 0] {
                directory.extend(number.to_le_bytes());
            }
            directory.extend((entry.mode << 16).to_le_bytes());
            directory.extend(entry.at.to_le_bytes());
            directory.extend(entry.path.as_bytes());
        }
        let len = fits(directory.len() as u64, "the list of files")?;
        directory.extend(b"PK\x05\x06");
        // This disk, that of the directory, entries there and in all.
        for number in [0, 0, count, count] {
            directory.extend(number.to_le_bytes());
        }
        directory.extend(len.to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(0_u16.to_le_bytes());
        self.out.write_all(&directory)?;
        Ok(self.out)
    }
}

impl Packed {
    /// What local header and directory say alike: flags to sizes.
    fn describe(&self, header: &mut Vec<u8>) {
        let flags = if self.path.is_ascii() { 0 } else { UTF8_FLAG };
        for number in [flags, self.method, 0, DATE] {
            header.extend(number.to_le_bytes());
        }
        for number in [self.crc, self.packed, self.size] {
            header.extend(number.to_le_bytes());
        }
    }
}

/// Deflates `data` into `out`; answers checksum and size of what was read.
fn deflate(out: &mut impl Write, data: &mut dyn Read) -> io::Result<(u32, u64)> {
    let mut encoder = DeflateEncoder::new(out, Compression::default());
    let (mut crc, mut size) = (crc32fast::Hasher::new(), 0);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match data.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        crc.update(&buffer[..read]);
        size += read as u64;
        encoder.write_all(&buffer[..read])?;
    }
    encoder.finish()?;
    Ok((crc.finalize(), size))
}

fn fits(number: u64, what: &'static str) -> Result<u32, PackError> {
    // The largest value stands for "see the 64-bit extension".
    u32::try_from(number).ok().filter(|number| *number < u32::MAX).ok_or(PackError::TooLarge { what })
}

/// Packs the files of an archive afresh, by path, and behind them the folders that hold nothing; other folders go, as paths
/// name them. An archive that the gate refuses is
/// never opened: it becomes the only file of the new one, called [`REFUSED_NAME`]. Answers with it the hash over the sorted
/// files, hex; `None` for one that was refused.
///
/// # Errors
/// See [`PackError`].
pub fn repack<S: Source + ?Sized, W: Write + Seek>(
    source: &S,
    limits: ArchiveLimits,
    out: W,
) -> Result<(W, Option<String>), PackError> {
    let mut packer = Packer::new(out);
    let mut hash = None;
    match Archive::open(source, &limits)
        .and_then(|archive| readable(&archive, source, limits).map(|()| archive))
    {
        Ok(archive) => {
            let mut totals = Totals::new(limits, source.len());
            let mut files: Vec<&Entry> = archive.entries().iter().filter(|entry| !entry.is_folder).collect();
            files.sort_by(|a, b| a.path.cmp(&b.path));
            let mut all = Sha256::new();
            for file in files {
                all.update(&file.path);
                all.update([0]);
                let content = archive.read(file, &mut totals);
                let mut pieces = Pieces { content, piece: Vec::new(), at: 0, hash: &mut all };
                packer.add_file(&file.path, file.is_executable, &mut pieces)?;
                all.update([0]);
            }
            for folder in empty_folders(archive.entries()) {
                packer.add(&format!("{folder}/"), FOLDER_MODE, &mut io::empty())?;
            }
            hash = Some(all.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        Err(_) => packer.add_file(REFUSED_NAME, false, &mut Whole { source, at: 0 })?,
    }
    Ok((packer.finish()?, hash))
}

/// Paths of the folders in which nothing lies, in order.
fn empty_folders(entries: &[Entry]) -> BTreeSet<&str> {
    let filled: BTreeSet<&str> =
        entries.iter().filter_map(|entry| entry.path.rsplit_once('/')).map(|(above, _)| above).collect();
    let folders = entries.iter().filter(|entry| entry.is_folder).map(|entry| entry.path.as_str());
    folders.filter(|path| !filled.contains(path)).collect()
}

/// Whether every byte of the archive can be read.
fn readable<S: Source + ?Sized>(
    archive: &Archive<'_, S>,
    source: &S,
    limits: ArchiveLimits,
) -> Result<(), Refusal> {
    let mut totals = Totals::new(limits, source.len());
    for entry in archive.entries() {
        let mut content = archive.read(entry, &mut totals);
        while content.next_piece()?.is_some() {}
    }
    Ok(())
}

/// The contents of an entry as a reader, which hashes them on the way.
struct Pieces<'a, S: Source + ?Sized> {
    content: super::archive::Content<'a, S>,
    piece: Vec<u8>,
    at: usize,
    hash: &'a mut Sha256,
}

impl<S: Source + ?Sized> Read for Pieces<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            let next = self.content.next_piece().map_err(io::Error::other)?;
            let Some(next) = next else { return Ok(0) };
            self.piece.clear();
            self.piece.extend_from_slice(next);
            self.hash.update(next);
            self.at = 0;
        }
        let taken = buffer.len().min(self.piece.len() - self.at);
        buffer[..taken].copy_from_slice(&self.piece[self.at..self.at + taken]);
        self.at += taken;
        Ok(taken)
    }
}

/// All bytes of a source as a reader.
struct Whole<'a, S: ?Sized> {
    source: &'a S,
    at: u64,
}

impl<S: Source + ?Sized> Read for Whole<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.source.len().saturating_sub(self.at);
        let taken = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.source.read_exact_at(&mut buffer[..taken], self.at)?;
        self.at += taken as u64;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::archive::Rule;
    use super::*;

    fn packed(files: &[(&str, bool, &[u8])]) -> Vec<u8> {
        let mut packer = Packer::new(Cursor::new(Vec::new()));
        for (path, is_executable, data) in files {
            packer.add_file(path, *is_executable, &mut &data[..]).expect("packed");
        }
        packer.finish().expect("packed").into_inner()
    }

    /// What the gate reads: path, executable, contents.
    fn unpacked(archive: &[u8]) -> Result<Vec<(String, bool, Vec<u8>)>, Refusal> {
        let limits = ArchiveLimits::default();
        let opened = Archive::open(archive, &limits)?;
        let mut totals = Totals::new(limits, archive.len() as u64);
        let mut files = Vec::new();
        for entry in opened.entries() {
            let (mut content, mut data) = (opened.read(entry, &mut totals), Vec::new());
            while let Some(piece) = content.next_piece()? {
                data.extend_from_slice(piece);
            }
            files.push((entry.path.clone(), entry.is_executable, data));
        }
        Ok(files)
    }

    const FILES: &[(&str, bool, &[u8])] = &[
        ("SKILL.md", false, b"---\nname: notes\n---\n"),
        ("empty", false, b""),
        ("scripts/r\u{fc}n.sh", true, b"#!/bin/sh\necho hello\n"),
    ];

    #[test]
    fn the_gate_and_another_reader_read_what_was_packed() {
        let archive = packed(FILES);
        let wanted: Vec<_> =
            FILES.iter().map(|(path, x, data)| ((*path).to_owned(), *x, data.to_vec())).collect();
        assert_eq!(unpacked(&archive).expect("it opens"), wanted);
        let mut other = zip::ZipArchive::new(Cursor::new(archive)).expect("it opens");
        for (path, is_executable, data) in FILES {
            let mut file = other.by_name(path).expect("it is there");
            let mut read = Vec::new();
            file.read_to_end(&mut read).expect("read");
            let mode = file.unix_mode().expect("a mode");
            assert_eq!((read.as_slice(), mode & 0o111 != 0), (*data, *is_executable), "{path}");
        }
    }

    #[test]
    fn links_stay_links_for_the_gate_to_refuse() {
        let mut packer = Packer::new(Cursor::new(Vec::new()));
        packer.add("link", 0o120_777, &mut &b"/etc/passwd"[..]).expect("packed");
        let archive = packer.finish().expect("packed").into_inner();
        assert_eq!(unpacked(&archive).expect_err("refused").rule, Rule::Symlink);
    }

    #[test]
    fn repacking_keeps_files_and_nothing_else() {
        let archive = packed(FILES);
        let again = repack(archive.as_slice(), ArchiveLimits::default(), Cursor::new(Vec::new()));
        let (again, hash) = again.expect("packed");
        assert_eq!(again.into_inner(), archive, "packing is deterministic");
        let mut all = Sha256::new();
        for (path, _, data) in FILES {
            all.update([path.as_bytes(), &[0], data, &[0]].concat());
        }
        let wanted: String = all.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, Some(wanted));
    }

    #[test]
    fn folders_that_hold_nothing_stay() {
        let mut packer = Packer::new(Cursor::new(Vec::new()));
        for folder in ["a/", "a/b/", "empty/", "empty/too/"] {
            packer.add(folder, FOLDER_MODE, &mut io::empty()).expect("packed");
        }
        packer.add_file("a/b/c.txt", false, &mut &b"text"[..]).expect("packed");
        let archive = packer.finish().expect("packed").into_inner();
        let again = repack(archive.as_slice(), ArchiveLimits::default(), Cursor::new(Vec::new()));
        let again = zip::ZipArchive::new(again.expect("packed").0).expect("it opens");
        let names = again.file_names().map(|name| name.expect("a name").into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        assert_eq!(names, ["a/b/c.txt", "empty/too/"]);
    }

    #[test]
    fn what_the_gate_refuses_is_handed_on_closed() {
        for broken in [&b"no archive at all"[..], &packed(FILES)[1..], b""] {
            let wrapped = repack(broken, ArchiveLimits::default(), Cursor::new(Vec::new())).expect("packed");
            assert_eq!(wrapped.1, None);
            let files = unpacked(&wrapped.0.into_inner()).expect("it opens");
            assert_eq!(files, [(REFUSED_NAME.to_owned(), false, broken.to_vec())]);
        }
        // The structure holds, and the data does not.
        let mut damaged = packed(&[("a", false, b"some text that is long enough to be packed")]);
        damaged[40] ^= 0xff;
        let wrapped = repack(damaged.as_slice(), ArchiveLimits::default(), Cursor::new(Vec::new()));
        let files = unpacked(&wrapped.expect("packed").0.into_inner()).expect("it opens");
        assert_eq!(files[0].0, REFUSED_NAME);
    }
}
