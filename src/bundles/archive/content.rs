//! The contents of entries, read piece by piece under limits that hold for the whole archive.

use flate2::{Decompress, FlushDecompress, Status};

use super::refusal::{Refusal, Rule};
use super::source::Source;
use super::{ArchiveLimits, Entry};

/// Packed bytes that are read at once.
const PACKED_BYTES: usize = 32 * 1024;
/// Unpacked bytes that are given at once.
const PIECE_BYTES: usize = 64 * 1024;

/// What has been unpacked so far, over an archive and those within it.
#[derive(Debug)]
pub struct Totals {
    limits: ArchiveLimits,
    packed: u64,
    unpacked: u64,
    entries: usize,
}

impl Totals {
    /// Nothing yet, of an archive of `packed` bytes.
    pub fn new(limits: ArchiveLimits, packed: u64) -> Self {
        Self { limits, packed, unpacked: 0, entries: 0 }
    }

    /// Unpacked bytes so far.
    pub fn unpacked(&self) -> u64 {
        self.unpacked
    }

    /// Counts the entries of an archive, or of one within it.
    ///
    /// # Errors
    /// They are too many.
    pub fn add_entries(&mut self, entries: usize) -> Result<(), Refusal> {
        self.entries += entries;
        if self.entries <= self.limits.entries_max {
            return Ok(());
        }
        let message =
            format!("has more than {} entries, archives within it included", self.limits.entries_max);
        Err(Refusal::new(Rule::Entries, message))
    }

    fn add(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.unpacked += bytes as u64;
        if self.unpacked > self.limits.unpacked_max {
            let message = format!("unpacks to more than {} bytes", self.limits.unpacked_max);
            return Err(Refusal::new(Rule::UnpackedSize, message));
        }
        let is_free = self.unpacked <= self.limits.ratio_from;
        if !is_free && self.unpacked > self.packed.saturating_mul(self.limits.ratio_max) {
            let message = format!("unpacks to more than {} times its size", self.limits.ratio_max);
            return Err(Refusal::new(Rule::Ratio, message));
        }
        Ok(())
    }
}

/// The contents of one entry. Give back the room of a piece by asking for the next one.
pub struct Content<'a, S: Source + ?Sized> {
    source: &'a S,
    entry: &'a Entry,
    totals: &'a mut Totals,
    inflate: Option<Box<Decompress>>,
    packed: Vec<u8>,
    /// What of `packed` is not unpacked yet.
    pending: std::ops::Range<usize>,
    /// Packed bytes read from the source.
    taken: u64,
    unpacked: u64,
    crc: crc32fast::Hasher,
    is_over: bool,
    piece: Vec<u8>,
}

impl<'a, S: Source + ?Sized> Content<'a, S> {
    pub(super) fn new(source: &'a S, entry: &'a Entry, totals: &'a mut Totals) -> Self {
        Self {
            source,
            entry,
            totals,
            inflate: entry.is_deflated.then(|| Box::new(Decompress::new(false))),
            packed: Vec::new(),
            pending: 0..0,
            taken: 0,
            unpacked: 0,
            crc: crc32fast::Hasher::new(),
            is_over: false,
            piece: Vec::new(),
        }
    }

    /// The next piece; `None` at the end, when size and checksum have been found right.
    ///
    /// # Errors
    /// The data is broken or too much. Nothing of the entry may be used then.
    pub fn next_piece(&mut self) -> Result<Option<&[u8]>, Refusal> {
        let entry = self.entry;
        self.read_piece().map_err(|refusal| refusal.at_path(&entry.path))?;
        Ok((!self.piece.is_empty()).then_some(self.piece.as_slice()))
    }

    /// All of it.
    ///
    /// # Errors
    /// As for [`Self::next_piece`].
    pub fn to_end(mut self) -> Result<Vec<u8>, Refusal> {
        let mut all = Vec::new();
        while let Some(piece) = self.next_piece()? {
            all.extend_from_slice(piece);
        }
        Ok(all)
    }

    fn read_piece(&mut self) -> Result<(), Refusal> {
        self.piece.clear();
        while !self.is_over && self.piece.is_empty() {
            if self.pending.is_empty() {
                self.read_packed()?;
            }
            match self.inflate.take() {
                None => {
                    self.piece.extend_from_slice(&self.packed[self.pending.clone()]);
                    self.pending = 0..0;
                    self.is_over = self.taken == self.entry.packed;
                }
                Some(mut inflate) => {
                    self.inflate_piece(&mut inflate)?;
                    self.inflate = Some(inflate);
                }
            }
            self.unpacked += self.piece.len() as u64;
            if self.unpacked > self.entry.size {
                return Err(Refusal::new(Rule::DataSize, "unpacks to more than it declares"));
            }
            self.totals.add(self.piece.len())?;
            self.crc.update(&self.piece);
            if self.is_over {
                self.check_end()?;
            }
        }
        Ok(())
    }

    fn read_packed(&mut self) -> Result<(), Refusal> {
        let len = (self.entry.packed - self.taken).min(PACKED_BYTES as u64) as usize;
        self.packed.resize(len, 0);
        self.source
            .read_exact_at(&mut self.packed, self.entry.data + self.taken)
            .map_err(|error| Refusal::new(Rule::Unreadable, format!("cannot be read: {error}")))?;
        self.taken += len as u64;
        self.pending = 0..len;
        Ok(())
    }

    fn inflate_piece(&mut self, inflate: &mut Decompress) -> Result<(), Refusal> {
        self.piece.reserve_exact(PIECE_BYTES);
        let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
        let input = &self.packed[self.pending.clone()];
        let status = inflate.decompress_vec(input, &mut self.piece, FlushDecompress::None);
        let used = (inflate.total_in() - before_in) as usize;
        self.pending.start += used;
        let broken = |message: &str| Err(Refusal::new(Rule::Data, message));
        match status {
            Ok(Status::StreamEnd) if self.pending.is_empty() && self.taken == self.entry.packed => {
                self.is_over = true;
                Ok(())
            }
            Ok(Status::StreamEnd) => broken("something follows its packed data"),
            Ok(Status::Ok | Status::BufError) => {
                let is_stuck = used == 0 && inflate.total_out() == before_out;
                if is_stuck && self.taken == self.entry.packed {
                    return broken("its packed data is cut off");
                }
                Ok(())
            }
            Err(_) => broken("its packed data is broken"),
        }
    }

    fn check_end(&mut self) -> Result<(), Refusal> {
        if self.unpacked != self.entry.size {
            return Err(Refusal::new(Rule::DataSize, "unpacks to less than it declares"));
        }
        if self.crc.clone().finalize() != self.entry.crc {
            return Err(Refusal::new(Rule::Checksum, "does not have the checksum that it declares"));
        }
        Ok(())
    }
}
