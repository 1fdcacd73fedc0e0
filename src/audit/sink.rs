//! Where batches of whole lines go.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::chain::{self, ChainEnd};
use crate::setting::system_problem;

/// A write that failed, wholly or in part.
#[derive(Debug)]
pub struct WriteError {
    /// Lines that were lost.
    pub lost: u64,
    /// Why.
    pub cause: io::Error,
}

/// Takes batches of whole lines. Runs on the writer thread alone, where it may block.
pub trait Sink: Send {
    /// Writes every line of `batch`, each ended by a line feed.
    ///
    /// # Errors
    /// How many lines are lost; the next batch is tried all the same.
    fn write(&mut self, batch: &[u8]) -> Result<(), WriteError>;
}

fn count_lines(batch: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', batch).count() as u64
}

/// Standard output.
pub(super) struct StdoutSink;

impl Sink for StdoutSink {
    fn write(&mut self, batch: &[u8]) -> Result<(), WriteError> {
        write_stdout(batch).map_err(|cause| WriteError { lost: count_lines(batch), cause })
    }
}

/// Past the lock of the standard library: a reader that stopped reading would hold it here for ever, and the process
/// waits for it when it ends.
#[cfg(unix)]
fn write_stdout(mut batch: &[u8]) -> io::Result<()> {
    while !batch.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), batch) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => batch = &batch[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn write_stdout(batch: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(batch).and_then(|()| out.flush())
}

/// Memory, for tests; a clone shows what the other took.
#[derive(Clone, Debug, Default)]
pub struct MemorySink(Arc<Mutex<Vec<u8>>>);

impl MemorySink {
    /// Every line taken so far.
    pub fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }
}

impl Sink for MemorySink {
    fn write(&mut self, batch: &[u8]) -> Result<(), WriteError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(batch);
        Ok(())
    }
}

/// A file that is rotated by size: `audit.jsonl` is the current one, `audit.jsonl.1` the one before, and so on.
///
/// The file is appended to, is readable by its owner alone, and is opened anew when somebody else moved it away.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    file_bytes_max: u64,
    /// The current file included.
    files_max: usize,
    /// `None` after a failure: the next batch opens it anew.
    current: Option<Current>,
    /// Where the chain of hashes stands, if there is to be one.
    chain: Option<ChainEnd>,
}

#[derive(Debug)]
struct Current {
    file: File,
    bytes: u64,
    /// A part of a line stands at the end: a write failed, or the process was killed in the middle of one.
    is_torn: bool,
    /// Only a regular file may be renamed; `path` may also name a pipe or a device.
    is_regular: bool,
    /// A torn line is taken back rather than ended: in a chain of hashes it would be a break.
    is_chained: bool,
}

impl FileSink {
    /// Opens `path`, making it and its folders as needed.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path, file_bytes_max: usize, files_max: usize) -> io::Result<Self> {
        let current = Some(Current::open(path, false)?);
        Ok(Self {
            path: path.to_owned(),
            file_bytes_max: file_bytes_max as u64,
            files_max,
            current,
            chain: None,
        })
    }

    /// The same with a chain of hashes over its lines, which goes on where the files end.
    ///
    /// # Errors
    /// What the system says.
    pub fn chained(mut self) -> io::Result<Self> {
        self.current = Some(Current::open(&self.path, true)?);
        self.chain = Some(ChainEnd::of_files(&self.path)?);
        Ok(self)
    }

    /// The file to write `bytes` more to: the current one, a new one after a rotation, or one opened anew.
    fn file_for(&mut self, bytes: u64) -> io::Result<&mut Current> {
        let mut current = match self.current.take() {
            Some(current) if current.is_at(&self.path) => current,
            _ => Current::open(&self.path, self.chain.is_some())?,
        };
        // A line longer than a whole file gets a file of its own.
        if current.is_regular && current.bytes > 0 && current.bytes + bytes > self.file_bytes_max {
            drop(current);
            self.rotate()?;
            current = Current::open(&self.path, self.chain.is_some())?;
        }
        Ok(self.current.insert(current))
    }

    fn rotate(&self) -> io::Result<()> {
        let numbered = |number: usize| chain::numbered(&self.path, number);
        let oldest = self.files_max.saturating_sub(1);
        if oldest == 0 {
            return fs::remove_file(&self.path);
        }
        for number in (1..oldest).rev() {
            ignore_missing(fs::rename(numbered(number), numbered(number + 1)))?;
        }
        fs::rename(&self.path, numbered(1))
    }
}

impl Sink for FileSink {
    fn write(&mut self, batch: &[u8]) -> Result<(), WriteError> {
        let Some(begin) = self.chain.clone() else {
            let failed = |(rest, cause): (usize, _)| WriteError {
                lost: count_lines(&batch[batch.len() - rest..]),
                cause,
            };
            return self.write_lines(batch).map_err(failed);
        };
        // Two hashes of 64 digits a line.
        let lines = batch.split_inclusive(|byte| *byte == b'\n');
        let mut linked = Vec::with_capacity(batch.len() + 200 * count_lines(batch) as usize);
        // Where each line ends, and the chain with it.
        let mut ends = vec![(0, begin)];
        for line in lines {
            let mut end = ends.last().map(|(_, end)| end.clone()).unwrap_or_default();
            end.append(line, &mut linked);
            ends.push((linked.len(), end));
        }
        let (written, result) = match self.write_lines(&linked) {
            Ok(()) => (linked.len(), Ok(())),
            Err((rest, cause)) => {
                let lost = count_lines(&linked[linked.len() - rest..]);
                (linked.len() - rest, Err(WriteError { lost, cause }))
            }
        };
        // What was not written is no part of the chain.
        self.chain = ends.into_iter().rev().find(|(at, _)| *at <= written).map(|(_, end)| end);
        result
    }
}

impl FileSink {
    /// What went wrong and where, for a log that has no other word of it.
    fn told(&self, cause: &io::Error) -> io::Error {
        io::Error::new(cause.kind(), format!("`{}`: {}", self.path.display(), system_problem(cause)))
    }

    /// Writes lines, into new files as needed. A failure tells how many bytes at the end were not written.
    fn write_lines(&mut self, lines: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut rest = lines;
        while !rest.is_empty() {
            let (limit, used) =
                (self.file_bytes_max, self.current.as_ref().map_or(0, |current| current.bytes));
            let room = limit.checked_sub(used).filter(|room| *room > 0).unwrap_or(limit);
            let (piece, after) = rest.split_at(whole_lines(rest, room));
            let written = self.file_for(piece.len() as u64).and_then(|current| current.append(piece));
            written.map_err(|cause| (rest.len(), self.told(&cause)))?;
            rest = after;
        }
        Ok(())
    }
}

/// Length of the longest run of whole lines within `room` bytes; of the first line when not even that one fits.
fn whole_lines(batch: &[u8], room: u64) -> usize {
    let room = usize::try_from(room).unwrap_or(usize::MAX).min(batch.len());
    memchr::memrchr(b'\n', &batch[..room])
        .or_else(|| memchr::memchr(b'\n', batch))
        .map_or(batch.len(), |line_feed| line_feed + 1)
}

impl Current {
    fn open(path: &Path, is_chained: bool) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            make_folder(folder)?;
        }
        let file = open_private(path)?;
        let metadata = file.metadata()?;
        let (mut bytes, is_regular) = (metadata.len(), metadata.is_file());
        let mut is_torn = is_regular && bytes > 0 && last_byte(path)? != b'\n';
        if is_torn && is_chained {
            bytes = whole_bytes(path)?;
            file.set_len(bytes)?;
            is_torn = false;
        }
        Ok(Self { file, bytes, is_torn, is_regular, is_chained })
    }

    /// Whether this file still stands at `path`: somebody may have moved or deleted it.
    #[cfg(unix)]
    fn is_at(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        match (self.file.metadata(), fs::metadata(path)) {
            (Ok(own), Ok(there)) => (own.dev(), own.ino()) == (there.dev(), there.ino()),
            _ => false,
        }
    }

    #[cfg(not(unix))]
    fn is_at(&self, path: &Path) -> bool {
        path.exists()
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_torn {
            if self.is_chained {
                self.file.set_len(self.bytes)?;
            } else {
                self.file.write_all(b"\n")?;
                self.bytes += 1;
            }
            self.is_torn = false;
        }
        match self.file.write_all(lines) {
            Ok(()) => {
                self.bytes += lines.len() as u64;
                Ok(())
            }
            Err(cause) => {
                // A full disk takes a part of the batch. Take it back, or else end the torn line before the next one.
                self.is_torn = self.file.set_len(self.bytes).is_err();
                Err(cause)
            }
        }
    }
}

/// The last byte of a file that is not empty.
fn last_byte(path: &Path) -> io::Result<u8> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut byte = [0];
    file.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// Length of a file up to the end of its last whole line.
fn whole_bytes(path: &Path) -> io::Result<u64> {
    let mut content = Vec::new();
    File::open(path)?.read_to_end(&mut content)?;
    Ok(memchr::memrchr(b'\n', &content).map_or(0, |at| at as u64 + 1))
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // The mode above counts for new files only. A device or a pipe keeps its own.
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    Ok(file)
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
