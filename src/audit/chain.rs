//! The chain of hashes over the records of a file.
//!
//! Each line ends with its link: its number, the hash of the line before, and its own. A line that was changed, taken out or
//! put in breaks the chain from there on. The hash is SHA-256 over the hash before (64 hex digits), the number (8 bytes, the
//! highest first) and the line without its link and closing brace.
//!
//! Not caught by the chain alone: whoever may write the file can compute a new chain, cut lines off its end, or delete its
//! oldest files, as rotation does. So the end is noted elsewhere and given back, as `Known`.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// What stands between a record and its link. It cannot stand in a record, where quotes within texts are escaped and no
/// field has this name.
const NUMBER: &str = ",\"chain\":{\"number\":";
const PREVIOUS: &str = ",\"previous\":\"";
const HASH: &str = "\",\"hash\":\"";
const END: &str = "\"}}";
/// Hex digits of a hash.
const DIGITS: usize = 64;
/// More than the longest line, in bytes: the last one is looked for in so much of the end of a file.
const TAIL_BYTES: u64 = 1024 * 1024;

/// Where a chain stands: the number of its last record and the hash of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainEnd {
    /// Records so far, those in deleted files included.
    pub number: u64,
    /// 64 hex digits; all zero before the first record.
    pub hash: String,
}

impl Default for ChainEnd {
    fn default() -> Self {
        Self { number: 0, hash: "0".repeat(DIGITS) }
    }
}

impl ChainEnd {
    /// Writes `line`, an object with its line feed, and its link to `out`; it is the end then.
    pub(super) fn append(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let Some(body) = line.strip_suffix(b"}\n") else {
            // Only records come here; what is none shows as a break.
            out.extend_from_slice(line);
            return;
        };
        let number = self.number + 1;
        let hash = hash_of(&self.hash, number, body);
        out.extend_from_slice(body);
        out.extend_from_slice(
            format!("{NUMBER}{number}{PREVIOUS}{}{HASH}{hash}{END}\n", self.hash).as_bytes(),
        );
        *self = Self { number, hash };
    }

    /// The end of the chain in `path` or, when that has no line yet, in the file before it. A new chain where there is
    /// none.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn of_files(path: &Path) -> io::Result<Self> {
        for path in [path.to_owned(), numbered(path, 1)] {
            if let Some(line) = last_line(&path)? {
                let link = link_of(&line);
                return Ok(link
                    .map_or_else(Self::default, |(_, link)| Self { number: link.number, hash: link.hash }));
            }
        }
        Ok(Self::default())
    }
}

/// What was found in the files of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainReport {
    /// Records looked at that belong to the chain.
    pub records: u64,
    /// Records before the chain began, when it was switched on later.
    pub unchained: u64,
    /// The number of the oldest record that is still there; 0 without any.
    pub first: u64,
    /// The newest record.
    pub end: ChainEnd,
    /// The first place where the chain does not hold.
    pub broken: Option<ChainBreak>,
}

/// A place where a chain does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainBreak {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 when the whole file is meant.
    pub line: u64,
    /// What is wrong there.
    pub why: &'static str,
}

/// Computes the chain of `path` and of the files before it (`path.1`, `path.2`, …) again. `known` is an end that was noted
/// before: then it is looked for, too. A line without its end is one that is being written, and left out.
///
/// # Errors
/// A file cannot be read, or there is none.
pub fn verify_chain(path: &Path, known: Option<&ChainEnd>) -> io::Result<ChainReport> {
    let rotated = rotated_files(path)?;
    let mut walk = Walk { known, before: None, report: empty_report() };
    // Rotation leaves no gap in the numbers.
    if let Some(missing) = (1..).zip(rotated.iter().rev()).find(|(at, number)| at != *number) {
        let file = numbered(path, missing.0);
        let why = "is missing while older files are there: the records in it were taken out";
        walk.report.broken = Some(ChainBreak { file, line: 0, why });
    }
    let mut files: Vec<PathBuf> = rotated.into_iter().map(|number| numbered(path, number)).collect();
    if path.exists() || files.is_empty() {
        files.push(path.to_owned());
    }
    let mut last = (path.to_owned(), 0);
    for file in &files {
        let (mut reader, mut line, mut at) = (BufReader::new(File::open(file)?), Vec::new(), 0);
        while walk.report.broken.is_none() {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 || line.last() != Some(&b'\n') {
                break;
            }
            at += 1;
            let why = walk.step(&line);
            walk.report.broken = why.map(|why| ChainBreak { file: file.clone(), line: at, why });
        }
        last = (file.clone(), at);
    }
    let is_before = known.is_some_and(|known| known.number + 1 < walk.report.first);
    if walk.report.broken.is_none() && is_before {
        let file = files.first().cloned().unwrap_or_else(|| path.to_owned());
        let why = "is the oldest one that is kept, and the known end lies before it: it cannot be compared";
        let line = walk.report.unchained + 1;
        walk.report.broken = Some(ChainBreak { file, line, why });
    }
    let is_cut = known.is_some_and(|known| known.number > walk.report.end.number);
    if walk.report.broken.is_none() && is_cut {
        let (file, line) = last;
        let why = "is the last one, and the known end lies behind it: records were cut off";
        walk.report.broken = Some(ChainBreak { file, line, why });
    }
    Ok(walk.report)
}

struct Walk<'a> {
    known: Option<&'a ChainEnd>,
    /// The link before; `None` before the first.
    before: Option<ChainEnd>,
    report: ChainReport,
}

fn empty_report() -> ChainReport {
    ChainReport { records: 0, unchained: 0, first: 0, end: ChainEnd::default(), broken: None }
}

impl Walk<'_> {
    /// The next line; answers what is wrong with it.
    fn step(&mut self, line: &[u8]) -> Option<&'static str> {
        let Some((body, link)) = link_of(line) else {
            if self.before.is_some() {
                return Some("has no link of the chain");
            }
            self.report.unchained += 1;
            return None;
        };
        if link.hash != hash_of(&link.previous, link.number, body) {
            return Some("was changed after it was written");
        }
        let fits = match &self.before {
            Some(before) => link.number == before.number + 1 && link.previous == before.hash,
            // What comes before the oldest record that is there was deleted by rotation, or there was nothing.
            None => link.number > 1 || link.previous == ChainEnd::default().hash,
        };
        if !fits {
            return Some("does not follow the record before it");
        }
        if self.before.is_none() && self.report.unchained > 0 && link.number > 1 {
            return Some("does not follow the record before it, which has no link of the chain");
        }
        let is_other = |known: &ChainEnd| {
            (known.number == link.number && known.hash != link.hash)
                || (known.number + 1 == link.number && known.hash != link.previous)
        };
        if self.known.is_some_and(is_other) {
            return Some("is not the one of the known end: the chain was computed anew");
        }
        let end = ChainEnd { number: link.number, hash: link.hash };
        self.report.records += 1;
        self.report.first = if self.report.first == 0 { end.number } else { self.report.first };
        self.report.end = end.clone();
        self.before = Some(end);
        None
    }
}

struct Link {
    number: u64,
    previous: String,
    hash: String,
}

/// A line without its link and closing brace, and the link; `None` when it has none.
fn link_of(line: &[u8]) -> Option<(&[u8], Link)> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let at = memchr::memmem::rfind(line, NUMBER.as_bytes())?;
    let (body, link) = line.split_at(at);
    let link = std::str::from_utf8(link).ok()?.strip_prefix(NUMBER)?;
    let (number, rest) = link.split_once(PREVIOUS)?;
    let (previous, rest) = rest.split_once(HASH)?;
    let hash = rest.strip_suffix(END)?;
    let is_hash = |text: &str| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hash(previous) || !is_hash(hash) {
        return None;
    }
    let number = number.parse().ok().filter(|number| *number > 0)?;
    Some((body, Link { number, previous: previous.to_owned(), hash: hash.to_owned() }))
}

fn hash_of(previous: &str, number: u64, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(previous.as_bytes());
    hash.update(number.to_be_bytes());
    hash.update(body);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The numbers of the files that were rotated away and are still there, the oldest and so the highest first.
fn rotated_files(path: &Path) -> io::Result<Vec<usize>> {
    let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else { return Ok(Vec::new()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut numbers = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(numbers),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let other = entry?.file_name();
        let number = other.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
        let number = number.and_then(|rest| std::str::from_utf8(rest.strip_prefix(b".")?).ok());
        let number = number.and_then(|digits| digits.parse::<usize>().ok());
        numbers.extend(number.filter(|number| *number > 0));
    }
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    Ok(numbers)
}

/// `audit.jsonl.1` is the file before `audit.jsonl`, and so on.
pub(super) fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// The last whole line of a file; `None` when it has none, or is not there.
fn last_line(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let Some(end) = memchr::memrchr(b'\n', &tail) else { return Ok(None) };
    let start = memchr::memrchr(b'\n', &tail[..end]).map_or(0, |before| before + 1);
    Ok(Some(tail[start..=end].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chained(count: u64) -> Vec<u8> {
        let (mut end, mut out) = (ChainEnd::default(), Vec::new());
        for number in 0..count {
            end.append(format!("{{\"n\":{number}}}\n").as_bytes(), &mut out);
        }
        out
    }

    fn lines(bytes: &[u8]) -> Vec<&[u8]> {
        bytes.split_inclusive(|byte| *byte == b'\n').collect()
    }

    /// The report on files with these contents, the oldest first.
    fn report(files: &[Vec<u8>], known: Option<&ChainEnd>) -> ChainReport {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        for (back, content) in files.iter().rev().enumerate() {
            std::fs::write(if back == 0 { path.clone() } else { numbered(&path, back) }, content).unwrap();
        }
        verify_chain(&path, known).unwrap()
    }

    #[test]
    fn a_chain_is_whole_over_files_and_goes_on_after_the_oldest_are_gone() {
        let all = chained(9);
        let lines = lines(&all);
        let files = [lines[..4].concat(), lines[4..7].concat(), lines[7..].concat()];
        let whole = report(&files, None);
        assert_eq!((whole.records, whole.first, whole.end.number, whole.broken), (9, 1, 9, None));
        let rotated = report(&files[1..], Some(&whole.end));
        assert_eq!((rotated.records, rotated.first, rotated.broken), (5, 5, None));
        for line in lines {
            let value: serde_json::Value = serde_json::from_slice(line).unwrap();
            assert_eq!(value["chain"]["hash"].as_str().unwrap().len(), DIGITS, "a line stays JSON");
        }
    }

    #[test]
    fn a_file_taken_out_of_the_middle_and_a_known_end_that_is_gone_are_told() {
        let all = chained(9);
        let lines = lines(&all);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        std::fs::write(&path, lines[7..].concat()).unwrap();
        std::fs::write(numbered(&path, 2), lines[..4].concat()).unwrap();
        let broken = verify_chain(&path, None).unwrap().broken.unwrap();
        assert_eq!((broken.file, broken.line), (numbered(&path, 1), 0));
        std::fs::write(numbered(&path, 1), lines[4..7].concat()).unwrap();
        assert_eq!(verify_chain(&path, None).unwrap().broken, None);
        std::fs::remove_file(numbered(&path, 2)).unwrap();
        let at = |number: u64| {
            let text = String::from_utf8(lines[number as usize - 1].to_vec()).unwrap();
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            ChainEnd { number, hash: value["chain"]["hash"].as_str().unwrap().to_owned() }
        };
        assert_eq!(verify_chain(&path, Some(&at(4))).unwrap().broken, None, "the link of the next one tells");
        let broken = verify_chain(&path, Some(&at(3))).unwrap().broken.unwrap();
        assert_eq!((broken.file, broken.line), (numbered(&path, 1), 1));
    }

    #[test]
    fn every_change_of_a_line_breaks_it() {
        let all = chained(4);
        for at in 0..all.len() {
            let mut changed = all.clone();
            changed[at] ^= 1;
            let end = report(std::slice::from_ref(&all), None).end;
            assert!(report(&[changed], Some(&end)).broken.is_some(), "byte {at}");
        }
    }

    #[test]
    fn lines_taken_out_put_in_swapped_or_cut_off_break_it() {
        let all = chained(5);
        let l = lines(&all);
        let known = report(std::slice::from_ref(&all), None).end;
        for (what, files, line) in [
            ("taken out", vec![[l[0], l[1], l[3], l[4]].concat()], 3),
            ("put in", vec![[l[0], b"{\"n\":7}\n", l[1]].concat()], 2),
            ("twice", vec![[l[0], l[0], l[1]].concat()], 2),
            ("swapped", vec![[l[1], l[0]].concat()], 2),
            ("cut off", vec![l[..3].concat()], 3),
            ("a file is missing", vec![l[..1].concat(), l[3..].concat()], 1),
            ("stripped at its beginning", vec![[b"{\"n\":0}\n", l[1], l[2], l[3], l[4]].concat()], 2),
            ("emptied", vec![Vec::new()], 0),
        ] {
            assert_eq!(report(&files, Some(&known)).broken.map(|b| b.line), Some(line), "{what}");
        }
        assert_eq!(
            report(&[chained(5)], Some(&ChainEnd { number: 3, hash: "1".repeat(64) })).broken.unwrap().line,
            3
        );
    }

    #[test]
    fn what_was_written_before_it_began_is_counted_and_a_line_under_way_left_out() {
        let found = report(&[[b"{}\n{}\n".to_vec(), chained(2), b"{\"half".to_vec()].concat()], None);
        assert_eq!((found.unchained, found.records, found.broken), (2, 2, None));
    }

    #[test]
    fn it_goes_on_where_it_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        assert_eq!(ChainEnd::of_files(&path).unwrap(), ChainEnd::default());
        std::fs::write(numbered(&path, 1), chained(3)).unwrap();
        std::fs::write(&path, b"").unwrap();
        assert_eq!(ChainEnd::of_files(&path).unwrap().number, 3);
        std::fs::write(&path, [chained(2), b"{\"torn".to_vec()].concat()).unwrap();
        assert_eq!(ChainEnd::of_files(&path).unwrap().number, 2);
    }
}
