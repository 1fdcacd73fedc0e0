//! Files come out of the archive one by one, are scanned and let go: no two copies of a bundle are ever in memory.
//!
//! Archives in archives are opened from memory, to the depth and under the totals of the limits. Files beyond
//! [`WHOLE_BYTES`] are scanned as a stream of windows.

use std::collections::HashSet;

use super::archive::{Archive, ArchiveLimits, Entry, Refusal, Rule, Source, Totals};
use super::coverage::{Ledger, Unscanned};
use super::files::{
    Content, Opaque, Rank, Syntax, content_of, decode, is_disguised, rank, readable, strings, syntax_of,
};
use super::findings::{Findings, digest};
use super::formats::{self, Act, Layers};
use super::inspect::refusal_finding;
use super::manifest::Candidates;
use super::media::NotInert;
use super::quality::Quality;
use super::scan::{Engines, Found, Scanned, scan};
use super::tree::Tree;
use super::work::{Task, Work};
use crate::decision::{CheckFinding, FailMode, Reason, Severity, Unjudged};
use crate::detect::fingerprint;

/// Largest file that is held in memory as a whole, in bytes.
const WHOLE_BYTES: u64 = 16 << 20;
/// Bytes of a larger file that are scanned at once, and how many of them again with the next.
const WINDOW_BYTES: usize = 1 << 20;
const OVERLAP_BYTES: usize = 20 << 10;
/// Words of a path from which it may be a sentence.
const NAME_WORDS_MIN: usize = 7;
/// Readable bytes of a binary that are looked at.
const STRINGS_BYTES: usize = 256 << 10;
/// Readable bytes of an image, a font or a sound that are looked at; of real ones less than 100 KiB. One with more is held.
const TEXTS_BYTES: usize = 2 << 20;

/// What has been seen of a bundle so far.
pub(super) struct Unpack<'i> {
    engines: &'i Engines<'i>,
    limits: &'i ArchiveLimits,
    pub candidates: Candidates,
    pub ledger: Ledger,
    pub quality: Quality,
    pub tree: Tree,
    pub found: Found,
    /// Findings about archives in the archive.
    pub archive: Findings,
    pub unjudged: Vec<Unjudged>,
    /// Paths of what was scanned before its turn.
    begun: HashSet<String>,
}

impl<'i> Unpack<'i> {
    /// Nothing yet.
    pub(super) fn new(
        engines: &'i Engines<'i>,
        limits: &'i ArchiveLimits,
        candidates: Candidates,
        work: Work,
    ) -> Self {
        Self {
            engines,
            limits,
            candidates,
            ledger: Ledger::default(),
            quality: Quality::default(),
            tree: Tree::default(),
            found: Found::new(work),
            archive: Findings::default(),
            unjudged: Vec::new(),
            begun: HashSet::new(),
        }
    }

    /// Scans the most telling files before their turn, so that what is left out of a bundle that makes too much work is the
    /// least telling. Their bytes are given to no one, and broken ones are left for their turn, when they are refused.
    pub(super) fn first<S: Source + ?Sized>(
        &mut self,
        archive: &Archive<'_, S>,
        files: &[&Entry],
        mut totals: Totals,
    ) {
        let ranked = files.iter().map(|entry| (rank(&entry.path, entry.is_executable), *entry));
        let mut telling: Vec<(Rank, &Entry)> =
            ranked.filter_map(|(rank, entry)| Some((rank?, entry))).collect();
        telling.sort_by_key(|(rank, _)| *rank);
        for (_, entry) in telling {
            if entry.size > WHOLE_BYTES {
                continue;
            }
            let Ok(bytes) = archive.read(entry, &mut totals).to_end() else { return };
            // What lies in an archive counts towards its limits, in its turn.
            if content_is_zip(&bytes) || self.file(&bytes, File::of(entry), &mut totals).is_err() {
                continue;
            }
            self.begun.insert(entry.path.clone());
        }
    }

    /// Reads and scans one file of the bundle itself; `each` gets its bytes.
    ///
    /// # Errors
    /// The archive is broken there.
    pub(super) fn entry<S: Source + ?Sized>(
        &mut self,
        archive: &Archive<'_, S>,
        entry: &Entry,
        totals: &mut Totals,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Refusal> {
        if self.begun.contains(&entry.path) {
            let mut content = archive.read(entry, totals);
            while let Some(piece) = content.next_piece()? {
                each(piece);
            }
            return Ok(());
        }
        self.read(archive, entry, File::of(entry), totals, each)
    }

    fn read<S: Source + ?Sized>(
        &mut self,
        archive: &Archive<'_, S>,
        entry: &Entry,
        file: File<'_>,
        totals: &mut Totals,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Refusal> {
        let mut content = archive.read(entry, totals);
        if entry.size > WHOLE_BYTES {
            let mut stream = Stream::default();
            while let Some(piece) = content.next_piece()? {
                each(piece);
                stream.add(piece, &file, self);
            }
            stream.finish(&file, self);
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(entry.size as usize);
        while let Some(piece) = content.next_piece()? {
            each(piece);
            bytes.extend_from_slice(piece);
        }
        self.file(&bytes, file, totals)
    }

    fn file(&mut self, bytes: &[u8], file: File<'_>, totals: &mut Totals) -> Result<(), Refusal> {
        self.name(&file);
        let mut kept = None;
        let work = &mut self.found.work;
        match content_of(file.path, bytes, &mut |bytes| work.may(Task::Unpack, bytes)) {
            Content::Empty => self.ledger.enter(file.path, 0, 0, &[], None),
            Content::Text(decoded) => {
                self.text(&decoded.text, decoded.is_utf8, &file);
                kept = Some(decoded.text);
            }
            Content::Inert(inert) => {
                // Parts that hold text for people are scanned like every other text.
                let parts: Vec<&[u8]> =
                    inert.texts.iter().filter_map(|range| bytes.get(range.clone())).collect();
                let scanned = parts.iter().map(|part| part.len() as u64).sum::<u64>().min(file.size);
                let all = parts.into_iter().chain(inert.unpacked.iter().map(Vec::as_slice));
                let (texts, is_whole) = readable(all, TEXTS_BYTES);
                let done = scan(self.engines, file.path, &texts, Syntax::Prose, &mut self.found);
                let cut = done.cut.or((!is_whole).then_some(Unscanned::TooLarge));
                if cut.is_some() {
                    self.give_up();
                }
                let why = cut.unwrap_or(Unscanned::InertMedia);
                self.ledger.enter(file.path, file.size, scanned, &["media"], Some(why));
            }
            Content::Zip => self.tree.add(file.path.to_owned(), file.size, file.is_executable, None),
            Content::Opaque(opaque) => self.opaque(opaque, bytes, &file),
        }
        if content_is_zip(bytes) {
            return self.nested(bytes, &file, totals);
        }
        self.tree.add(file.path.to_owned(), file.size, file.is_executable, kept.as_deref());
        Ok(())
    }

    /// What the name of a file alone says.
    fn name(&mut self, file: &File<'_>) {
        self.name_as_text(file.path);
        if is_disguised(file.path) {
            self.found.findings.add(about(
                file.path,
                "bundle.double-extension",
                "disguise",
                Severity::High,
                "The name ends like something to look at, followed by the extension of something that runs.",
                "Give the file one extension, its own.",
            ));
        }
    }

    /// A name of many words is read by whoever lists the folder, like any other text.
    fn name_as_text(&mut self, path: &str) {
        let is_word = |word: &&str| word.len() >= 2 && word.chars().all(char::is_alphabetic);
        if path.split(|c: char| !c.is_alphanumeric()).filter(is_word).count() >= NAME_WORDS_MIN {
            // With its extension the last word would be a file that the text speaks of.
            let words =
                path.rsplit_once('.').map_or(path, |(name, _)| name).replace(['/', '_', '-', '+'], " ");
            scan(self.engines, path, &words, Syntax::Prose, &mut self.found);
        }
    }

    fn text(&mut self, text: &str, is_utf8: bool, file: &File<'_>) {
        if file.depth == 0 {
            self.candidates.note(file.path, text, is_utf8);
        }
        self.quality.note(file.path, text);
        let syntax = syntax_of(file.path, &text[..text.floor_char_boundary(256)]);
        let mut done = scan(self.engines, file.path, text, syntax, &mut self.found);
        if self.disagreement(text.as_bytes(), file) {
            // Whoever gives it such a name has a shell run it.
            self.within(file, text, Syntax::Shell, &mut done);
        }
        let layers = formats::layers(file.path, text);
        let hidden = layers.unscanned;
        self.layers(layers, text.as_bytes(), file, &mut done);
        if done.cut.is_some() {
            self.give_up();
        }
        // What the engine of its language gave up on counts as not scanned, although it was read as text.
        let is_left = matches!(done.cut, Some(Unscanned::TooComplex | Unscanned::Undecodable));
        // In bytes of the file, which other encodings than UTF-8 write differently.
        let unread = if is_left || done.unread == text.len() { file.size } else { done.unread as u64 };
        let unread = unread.saturating_add(hidden as u64);
        let why = done.cut.or((hidden > 0).then_some(Unscanned::Binary));
        self.ledger.enter(file.path, file.size, file.size.saturating_sub(unread), &done.engines, why);
    }

    /// Scans what a file holds in other letters, and notes what it does when it is opened.
    fn layers(&mut self, layers: Layers, bytes: &[u8], file: &File<'_>, done: &mut Scanned) {
        for (name, text) in layers.texts {
            let syntax = syntax_of(&name, &text[..text.floor_char_boundary(256)]);
            self.within(file, &text, syntax, done);
        }
        for Act { id, at, severity, reason, fix } in layers.acts {
            let before = &bytes[..at.min(bytes.len())];
            let line = 1 + memchr::memchr_iter(b'\n', before).count();
            let mut finding = bound(about(file.path, id, "code_exec", severity, reason, fix), bytes);
            finding.line = u32::try_from(line).unwrap_or(u32::MAX);
            self.found.findings.add(finding);
        }
    }

    /// Scans a text that a file holds beside its own.
    fn within(&mut self, file: &File<'_>, text: &str, syntax: Syntax, done: &mut Scanned) {
        let from = self.found.findings.len();
        let inner = scan(self.engines, file.path, text, syntax, &mut self.found);
        self.found.findings.unplace(from);
        done.cut = done.cut.or(inner.cut);
    }

    /// Notes, once, that an analysis did not run to its end.
    fn give_up(&mut self) {
        if self.unjudged.is_empty() {
            self.unjudged.push(Unjudged {
                plugin: "static_security".into(),
                reason: Reason::Limit,
                detail: if self.found.work.is_over() {
                    "the bundle makes more work than one review does; split it into smaller bundles, or ask an \
                     administrator to look at the files that the coverage lists"
                } else {
                    "some code or scripts were not followed to their end; the coverage names the files"
                }
                .to_owned(),
                // The submission is held until a person has looked.
                fail_mode: FailMode::Ask,
                shadow: false,
            });
        }
    }

    /// A file that claims to be an image and is not one is no accident; answers whether it does.
    fn disagreement(&mut self, bytes: &[u8], file: &File<'_>) -> bool {
        let work = &mut self.found.work;
        let mut may_unpack = |bytes| work.may(Task::Unpack, bytes);
        let Err(why) = super::media::inert(file.path, bytes, &mut may_unpack) else { return false };
        if matches!(why, NotInert::OtherName | NotInert::TooMuch) {
            return false;
        }
        let runs = bytes.starts_with(b"#!") || bytes.starts_with(b"MZ") || bytes.starts_with(b"\x7fELF");
        let finding = about(
            file.path,
            "bundle.other-content",
            "disguise",
            if runs { Severity::High } else { Severity::Medium },
            "The file is not what its extension says.",
            "Give it the extension of what it is, or replace it.",
        );
        self.found.findings.add(bound(finding, bytes));
        true
    }

    fn opaque(&mut self, opaque: Opaque, bytes: &[u8], file: &File<'_>) {
        self.disagreement(bytes, file);
        let why = if opaque == Opaque::Archive { Unscanned::Archive } else { Unscanned::Binary };
        let severity = match opaque {
            Opaque::Program | Opaque::Bytecode | Opaque::Pickle => Severity::Medium,
            _ => Severity::Low,
        };
        let finding = about(
            file.path,
            "bundle.binary",
            "unscanned",
            severity,
            &format!("The file is {}, which is not looked into.", opaque.describe()),
            "Ship the source instead, or ask an administrator to look at it.",
        );
        self.found.findings.add(bound(finding, bytes));
        if opaque == Opaque::Pickle {
            self.pickle(bytes, file);
        }
        if formats::pdf::is_pdf(file.path, bytes) {
            let mut layers = Layers::default();
            formats::pdf::look(file.path, bytes, &mut layers);
            self.layers(layers, bytes, file, &mut Scanned::default());
        }
        // Nothing here counts as scanned, but what can be read may tell enough.
        let readable = strings(bytes, STRINGS_BYTES);
        if !readable.is_empty() {
            scan(self.engines, file.path, &readable, Syntax::Prose, &mut self.found);
        }
        self.ledger.enter(file.path, file.size, 0, &[], Some(why));
    }

    /// A pickled object that calls what runs commands or code.
    fn pickle(&mut self, bytes: &[u8], file: &File<'_>) {
        let pickle = formats::pickle::read(bytes).unwrap_or_default();
        let Some(called) = pickle.runs() else { return };
        let snippet = called.chars().take(80).collect();
        let finding = about(
            file.path,
            "bundle.pickled-code",
            "code_exec",
            Severity::Critical,
            "Whoever loads this pickled object runs commands or code.",
            "Ship the data in a format that calls nothing, such as JSON.",
        );
        self.found.findings.add(bound(CheckFinding { snippet, ..finding }, bytes));
    }

    /// Opens an archive in the archive.
    fn nested(&mut self, bytes: &[u8], file: &File<'_>, totals: &mut Totals) -> Result<(), Refusal> {
        if file.depth >= self.limits.nesting_max {
            self.ledger.enter(file.path, file.size, 0, &[], Some(Unscanned::TooDeep));
            return Ok(());
        }
        let archive = match Archive::open(bytes, self.limits) {
            Ok(archive) => archive,
            Err(refusal) => return self.refused(&refusal, bytes, file),
        };
        totals.add_entries(archive.entries().len())?;
        let mut entries: Vec<&Entry> = archive.entries().iter().filter(|entry| !entry.is_folder).collect();
        entries.sort_by(|a, b| {
            let key = |entry: &Entry| rank(&entry.path, entry.is_executable).unwrap_or(Rank::MAX);
            (key(a), &a.path).cmp(&(key(b), &b.path))
        });
        self.found.work.expect(entries.iter().map(|entry| entry.size).sum());
        for entry in entries {
            let path = format!("{}!/{}", file.path, entry.path);
            let inner = File {
                path: &path,
                size: entry.size,
                is_executable: entry.is_executable,
                depth: file.depth + 1,
            };
            match self.read(&archive, entry, inner, totals, &mut |_| {}) {
                Ok(()) => {}
                Err(refusal) if is_broken_only(refusal.rule) => {
                    let mut finding = refusal_finding(&refusal, &path);
                    finding.severity = Severity::Medium;
                    self.archive.add(finding);
                    self.ledger.enter(&path, entry.size, 0, &[], Some(Unscanned::Archive));
                }
                Err(refusal) => return Err(refusal),
            }
        }
        // The bytes of the container itself are those of its files and what frames them.
        self.ledger.enter(file.path, file.size, file.size, &["archive"], None);
        Ok(())
    }

    /// An inner archive that is not opened: what it tries against whoever opens it refuses the whole.
    fn refused(&mut self, refusal: &Refusal, bytes: &[u8], file: &File<'_>) -> Result<(), Refusal> {
        let mut finding = refusal_finding(refusal, file.path);
        if !is_broken_only(refusal.rule) {
            self.archive.add(finding);
        } else {
            finding.severity = Severity::Medium;
            finding.reason = format!("An archive in the bundle cannot be opened: {}.", refusal.message);
            self.archive.add(finding);
            scan(self.engines, file.path, &strings(bytes, STRINGS_BYTES), Syntax::Prose, &mut self.found);
        }
        self.ledger.enter(file.path, file.size, 0, &[], Some(Unscanned::Archive));
        Ok(())
    }
}

/// Whether a refusal tells of an archive that is odd or broken, and not of one that attacks its reader.
const fn is_broken_only(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::NotZip
            | Rule::Unreadable
            | Rule::Empty
            | Rule::PrefixData
            | Rule::TrailingData
            | Rule::CentralDirectory
            | Rule::ExtraField
            | Rule::Method
            | Rule::Flags
            | Rule::Version
            | Rule::PathEncoding
            | Rule::Data
            | Rule::Checksum
            | Rule::Gap
            | Rule::DirectoryEnd
            | Rule::DataDescriptor
    )
}

fn content_is_zip(bytes: &[u8]) -> bool {
    super::files::is_zip(bytes)
}

/// A file that is being looked at.
#[derive(Clone, Copy, Debug)]
struct File<'p> {
    path: &'p str,
    size: u64,
    is_executable: bool,
    /// How many archives it lies in, the bundle itself not counted.
    depth: u32,
}

impl<'p> File<'p> {
    /// A file of the bundle itself.
    fn of(entry: &'p Entry) -> Self {
        Self { path: &entry.path, size: entry.size, is_executable: entry.is_executable, depth: 0 }
    }
}

/// A finding about a file as a whole.
fn about(
    path: &str,
    rule: &str,
    category: &str,
    severity: Severity,
    reason: &str,
    fix: &str,
) -> CheckFinding {
    CheckFinding {
        rule_id: rule.to_owned(),
        file: path.to_owned(),
        line: 0,
        category: category.to_owned(),
        severity,
        reason: reason.to_owned(),
        fix_hint: fix.to_owned(),
        ..CheckFinding::default()
    }
}

/// The same, whose fingerprint is that of the content.
fn bound(finding: CheckFinding, bytes: &[u8]) -> CheckFinding {
    let fingerprint = fingerprint(&finding.rule_id, &digest(bytes));
    CheckFinding { fingerprint, ..finding }
}

/// A file that is too large to be held in memory.
#[derive(Default)]
struct Stream {
    window: Vec<u8>,
    /// Bytes that were scanned.
    scanned: u64,
    /// Lines before the window.
    lines: u32,
    is_opaque: Option<Opaque>,
    is_begun: bool,
    /// Why some of it was not followed to its end.
    cut: Option<Unscanned>,
    kept: Option<String>,
}

impl Stream {
    fn add(&mut self, piece: &[u8], file: &File<'_>, unpack: &mut Unpack<'_>) {
        if self.is_opaque.is_some() {
            return;
        }
        self.window.extend_from_slice(piece);
        if self.window.len() >= WINDOW_BYTES {
            self.scan(file, unpack, OVERLAP_BYTES);
        }
    }

    fn scan(&mut self, file: &File<'_>, unpack: &mut Unpack<'_>, overlap: usize) {
        if !std::mem::replace(&mut self.is_begun, true) {
            unpack.name(file);
            let head = &self.window[..self.window.len().min(64 << 10)];
            match content_of(file.path, head, &mut |_| false) {
                Content::Text(_) if formats::needs_whole(file.path, head) => {
                    self.is_opaque = Some(Opaque::Document);
                }
                Content::Text(_) => {}
                Content::Opaque(opaque) => self.is_opaque = Some(opaque),
                Content::Zip => self.is_opaque = Some(Opaque::Archive),
                Content::Inert(_) | Content::Empty => self.is_opaque = Some(Opaque::Other),
            }
        }
        if self.is_opaque.is_some() {
            return;
        }
        // Cut between lines where there are any, so that no character is torn.
        let end = match memchr::memrchr(b'\n', &self.window) {
            Some(at) if overlap > 0 && at > overlap => at + 1,
            _ => self.window.len(),
        };
        let mut is_read = false;
        let text = decode(&self.window[..end]).map(|decoded| decoded.text);
        if let Some(text) = &text {
            let syntax = syntax_of(file.path, &text[..text.floor_char_boundary(256)]);
            unpack.found.findings.lines_before = self.lines;
            let able = unpack.found.capabilities.len();
            let done = scan(unpack.engines, file.path, text, syntax, &mut unpack.found);
            unpack.found.findings.lines_before = 0;
            for one in unpack.found.capabilities.iter_mut().skip(able).filter(|one| one.line > 0) {
                one.line = one.line.saturating_add(self.lines);
            }
            self.cut = self.cut.or(done.cut);
            if formats::layers(file.path, text).unscanned > 0 {
                self.cut = self.cut.or(Some(Unscanned::Binary));
            }
            is_read = done.unread == 0;
        }
        let keep_from = end.saturating_sub(overlap);
        if is_read {
            self.scanned += (end - if overlap == 0 { 0 } else { end - keep_from }) as u64;
        }
        self.lines += self.window[..keep_from].iter().filter(|byte| **byte == b'\n').count() as u32;
        self.kept = self.kept.take().or(text);
        self.window.drain(..keep_from);
    }

    fn finish(mut self, file: &File<'_>, unpack: &mut Unpack<'_>) {
        self.scan(file, unpack, 0);
        unpack.tree.add_beginning(file.path.to_owned(), file.size, file.is_executable, self.kept.as_deref());
        match self.is_opaque {
            Some(opaque) => {
                unpack.opaque(opaque, &self.window, file);
            }
            None => {
                if self.cut.is_some() {
                    unpack.give_up();
                }
                unpack.ledger.enter(file.path, file.size, self.scanned, &["text", "secrets"], self.cut);
            }
        }
    }
}
