//! Files: what is read, written and deleted, judged by the rules about sensitive paths and commands.

use std::rc::Rc;

use super::call::Arguments;
use super::follow::Walk;
use super::taint::Taint;
use super::value::{Shape, Value};
use crate::paths::{Access, PathRequest, Place, SensitivePaths};

/// The machine that code is imagined to run on.
pub(super) const PLACE: Place<'static> =
    Place { cwd: "/home/user/project", home: "/home/user", os: crate::paths::Os::Linux };

/// Texts written to files that are remembered, and their bytes.
const WRITTEN_MAX: usize = 32;
const WRITTEN_BYTES_MAX: usize = 8 << 10;

/// Lines of a file that are a list.
const LINES_MAX: usize = 2_000;

/// Files whose origin is remembered.
const KEPT_MAX: usize = 256;
/// Where what is in a file may come from that matters when it is read again.
pub(super) const KEPT: Taint = Taint::union(&[
    Taint::NETWORK,
    Taint::ENVIRONMENT,
    Taint::CREDENTIALS,
    Taint::KEYCHAIN,
    Taint::CLIPBOARD,
    Taint::KEYS,
    Taint::SCREEN,
    Taint::CHAT,
    Taint::HOME_WALK,
]);

/// Categories of sensitive paths whose contents are a secret.
const SECRET: &[&str] = &[
    "path.ssh_key",
    "path.key_file",
    "path.keyring",
    "path.cloud_credentials",
    "path.cluster_credentials",
    "path.registry_credentials",
    "path.code_host_credentials",
    "path.database_credentials",
    "path.agent_credentials",
    "path.wallet",
    "path.browser_data",
    "path.system_auth",
    "path.history",
];

impl Walk<'_> {
    /// What the contents of a file are tainted with, by its path.
    pub fn contents(&self, file: &str) -> Taint {
        let mut taint = Taint::FILE | self.kept.get(file).copied().unwrap_or_default();
        if file == super::siblings::OWN {
            taint |= Taint::OWN_TEXT;
        }
        let lower = file.to_ascii_lowercase();
        if self.context.rules.is_secret_place(&lower) {
            taint |= Taint::CREDENTIALS;
        }
        if self.context.rules.is_chat_place(&lower) {
            taint |= Taint::CHAT;
        }
        let is_known = file.chars().filter(|c| c.is_alphanumeric()).count() > 2;
        if is_known && !taint.meets(Taint::CREDENTIALS) {
            let path = file.replace("\0", "");
            let judged =
                SensitivePaths::builtin().judge(&PathRequest::of_file_tool(&path, Access::Read, &PLACE));
            if let Some(hit) = judged.hit {
                let category = hit.rule.category.as_str();
                if SECRET.contains(&category) {
                    taint |= Taint::CREDENTIALS;
                } else if category == "path.env_file" {
                    taint |= Taint::SECRET_VARIABLE;
                }
            }
        }
        let name = lower.rsplit('/').next().unwrap_or_default();
        let is_code = [".py", ".js", ".ts", ".mjs", ".cjs", ".json", ".pyi", ".tsx", ".jsx"]
            .iter()
            .any(|e| name.ends_with(e));
        let is_known = name.contains('.') && !name.contains('\0');
        if is_known && !is_code {
            taint |= Taint::DATA_FILE;
        }
        taint
    }

    /// Reads a file.
    pub fn read(&mut self, file: &Rc<str>, at: u32) -> Value {
        let taint = self.contents(file);
        self.note_read(file, taint, at);
        match self.text_of(file) {
            Some(text) => Value::text(text).with(taint).about(Some(file.clone())),
            None => Value::unknown(taint).about(Some(file.clone())),
        }
    }

    fn note_read(&mut self, file: &Rc<str>, taint: Taint, at: u32) {
        let arguments = [(None, Value::text(file.clone()))];
        self.record("file.read", &arguments, at, Taint::NONE);
        if taint.meets(Taint::CREDENTIALS) {
            self.record("file.read_credentials", &arguments, at, Taint::NONE);
        }
    }

    /// Writes to a file.
    pub fn write(&mut self, file: &Rc<str>, data: &Value, at: u32) {
        self.keep_origin(file, data.deep_taint());
        if let Some(text) = data.as_text().filter(|text| text.len() <= WRITTEN_BYTES_MAX)
            && self.written.len() < WRITTEN_MAX
        {
            self.written.push((file.clone(), text));
        }
        self.record(
            "file.write",
            &[(None, Value::text(file.clone())), (None, data.clone())],
            at,
            Taint::NONE,
        );
    }

    /// Remembers where what was written to a file comes from.
    fn keep_origin(&mut self, file: &Rc<str>, taint: Taint) {
        let is_named = file.chars().filter(|c| c.is_alphanumeric()).count() > 2;
        let taint = taint & KEPT;
        if is_named && !taint.is_none() && (self.kept.len() < KEPT_MAX || self.kept.contains_key(file)) {
            *self.kept.entry(file.clone()).or_default() |= taint;
        }
    }

    /// Where what is in a file comes from: what was written to it, or unpacked into a folder above it.
    fn kept_at(&self, file: &str) -> Taint {
        let above = file.match_indices('/').map(|(at, _)| &file[..at]).chain([file]);
        above.filter_map(|path| self.kept.get(path)).fold(Taint::NONE, |all, taint| all | *taint)
    }

    /// `archive.extractall(folder)`, `unpack_archive(archive, folder)`: what an archive that was fetched holds lies there.
    pub fn unpacked(&mut self, name: &str, archive: Taint, arguments: &Arguments) {
        let unnamed = |nth: usize| arguments.iter().filter(|(name, _)| name.is_none()).nth(nth);
        let named = |wanted: &[&str]| {
            arguments.iter().find(|(n, _)| n.as_deref().is_some_and(|n| wanted.contains(&n)))
        };
        let (folder, taint) = match name.rsplit('.').next().unwrap_or_default() {
            "extractall" => (unnamed(0).or_else(|| named(&["path"])), archive),
            "unpack_archive" => {
                let file = unnamed(0).or_else(|| named(&["filename"])).and_then(|(_, file)| file.as_text());
                let taint = file.map_or(Taint::NONE, |file| self.contents(&file));
                (unnamed(1).or_else(|| named(&["extract_dir"])), taint)
            }
            _ => return,
        };
        let Some(folder) = folder.and_then(|(_, folder)| folder.known_text()) else { return };
        if taint.meets(Taint::NETWORK) {
            self.keep_origin(&Rc::from(folder.trim_end_matches('/')), Taint::NETWORK);
        }
    }

    /// Something that is saved to a file by a method of its own.
    pub fn saved(&mut self, name: &str, taint: Taint, arguments: &Arguments, at: u32) {
        let name = name.rsplit('.').next().unwrap_or_default();
        let is_saving = matches!(name, "save" | "to_csv" | "to_json" | "tofile" | "to_parquet" | "toFile");
        if !is_saving || (taint & KEPT).is_none() {
            return;
        }
        if let Some(file) = arguments.first().and_then(|(_, file)| file.as_text()) {
            self.write(&file, &Value::unknown(taint), at);
        }
    }

    /// What is put into an archive is in the archive's file.
    pub fn packed(&mut self, path: &str, callee: &Value, arguments: &Arguments, at: u32) {
        let Some((owner, name)) = path.rsplit_once('.') else { return };
        let is_archive = matches!(owner, "zipfile.ZipFile()" | "tarfile.open()" | "tarfile.TarFile()");
        if !is_archive || !matches!(name, "write" | "add" | "writestr" | "addfile") {
            return;
        }
        let Some(archive) = callee.about.clone() else { return };
        let taint = match arguments.first().and_then(|(_, file)| file.as_text()) {
            Some(file) if name != "writestr" => self.read(&file, at).taint,
            _ => arguments.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint()),
        };
        let given = arguments.first().map_or(Taint::NONE, |(_, file)| file.taint & Taint::HOME_WALK);
        self.keep_origin(&archive, taint | given);
    }

    /// A file that is loaded as code, where it came from the network.
    pub fn load(&mut self, arguments: &Arguments, at: u32) {
        let files: Vec<Rc<str>> = arguments.iter().filter_map(|(_, value)| value.known_text()).collect();
        for file in files {
            let bare = file.strip_prefix("file://").unwrap_or(&file);
            if self.kept_at(bare).meets(Taint::NETWORK) {
                self.record("file.run_downloaded", &[(None, Value::text(file.clone()))], at, Taint::NONE);
            }
        }
    }

    /// Deletes a file or a tree.
    pub fn delete(&mut self, path: &Value, is_tree: bool, at: u32) {
        if let Shape::Any(choices) = &path.shape {
            choices.iter().for_each(|choice| self.delete(&choice.clone().with(path.taint), is_tree, at));
            return;
        }
        let file = &path.piece();
        let told = Value::text(file.clone()).with(path.deep_taint()).about(path.about.clone());
        self.record("file.delete", &[(None, told)], at, Taint::NONE);
        if file.contains('*') && !file.contains('\0') {
            // A name that stands for many is one that a shell would work out.
            let parts: Vec<String> =
                file.split('*').map(|part| format!("'{}'", part.replace('\'', "'\\''"))).collect();
            let how = if is_tree { "-rf" } else { "-f" };
            self.judge_command(&Rc::from(format!("rm {how} {}", parts.join("*"))), at);
        } else if !file.contains('\0') {
            let words = if is_tree { vec!["rm", "-rf", file] } else { vec!["rm", file] };
            let words: Vec<Value> = words.into_iter().map(Value::text).collect();
            self.run_words(&words, at);
        }
    }

    /// Opens a file: what comes back reads or writes it.
    pub fn open(&mut self, file: &Rc<str>, arguments: &Arguments, at: u32) -> Value {
        let mode = arguments
            .iter()
            .find(|(name, _)| name.as_deref() == Some("mode"))
            .or_else(|| arguments.get(1).filter(|(name, _)| name.is_none()))
            .and_then(|(_, value)| value.known_text());
        let is_write = mode.as_deref().is_some_and(|mode| mode.contains(['w', 'a', 'x', '+']));
        let name = if is_write { "file()" } else { "file.reader()" };
        let taint = if is_write { Taint::NONE } else { self.contents(file) };
        let walked =
            arguments.first().map_or(Taint::NONE, |(_, value)| value.deep_taint() & Taint::HOME_WALK);
        if is_write {
            let named = Value::text(file.clone()).with(walked);
            self.record("file.open_write", &[(None, named)], at, Taint::NONE);
        } else {
            self.note_read(file, taint, at);
        }
        Value::api(name).with(taint | walked).about(Some(file.clone()))
    }

    /// Methods of an open file.
    pub fn file_method(&mut self, base: &Value, name: &str, arguments: &Arguments, at: u32) -> Option<Value> {
        let file = base.about.clone().unwrap_or_else(|| Rc::from("\0"));
        match name {
            "write" | "writelines" | "end" | "write_text" => {
                let data = arguments.first().map(|(_, value)| value.clone()).unwrap_or_default();
                self.write(&file, &data, at);
                Some(Value::default())
            }
            "read" | "readlines" | "readline" | "text" | "json" | "read_text" => {
                let taint = base.taint | self.contents(&file) & KEPT;
                let text =
                    if matches!(name, "read" | "text" | "read_text") { self.text_of(&file) } else { None };
                let lines = if name == "readlines" { self.text_of(&file) } else { None };
                let lines = lines.filter(|text| text.lines().count() <= LINES_MAX);
                let value = match (text, lines) {
                    (Some(text), _) => Value::text(text),
                    (None, Some(text)) => Value::list(text.lines().map(Value::text).collect()),
                    (None, None) => Value::default(),
                };
                Some(value.with(taint).about(Some(file)))
            }
            _ => None,
        }
    }

    /// Methods of `pathlib.Path`, which is followed as the text of the path.
    pub fn path_method(
        &mut self,
        path: &Rc<str>,
        base: &Value,
        name: &str,
        arguments: &Arguments,
        at: u32,
    ) -> Option<Value> {
        Some(match name {
            "read_text" | "read_bytes" => self.read(path, at).with(base.taint & Taint::HOME_WALK),
            "write_text" | "write_bytes" => {
                let data = arguments.first().map(|(_, value)| value.clone()).unwrap_or_default();
                self.write(path, &data, at);
                Value::default()
            }
            "open" => {
                let mut given = vec![(None, base.clone())];
                given.extend(arguments.iter().cloned());
                self.open(path, &given, at)
            }
            "unlink" | "rmdir" => {
                self.delete(base, false, at);
                Value::default()
            }
            "expanduser" | "resolve" | "absolute" | "with_suffix" | "with_name" | "relative_to" => {
                base.clone()
            }
            "joinpath" => {
                let mut pieces = vec![path.clone()];
                for (_, value) in arguments {
                    pieces.push(Rc::from("/"));
                    pieces.push(value.piece());
                }
                super::value::join(pieces).map_or(Value::default(), Value::text).with(base.taint)
            }
            "glob" | "rglob" | "iterdir" => {
                let below = arguments.first().map_or_else(|| Rc::from("\0"), |(_, value)| value.piece());
                let found = super::value::join([path.clone(), Rc::from("/"), below])?;
                let taint = self.walked(path, name == "rglob" || found.contains("**"));
                Value::list(vec![Value::of(Shape::Text(found)).with(taint)]).with(taint)
            }
            "exists" | "is_file" | "is_dir" | "stat" => Value::default(),
            "mkdir" | "touch" | "chmod" | "rename" | "symlink_to" => {
                self.record("file.open_write", &[(None, Value::text(path.clone()))], at, Taint::NONE);
                Value::default()
            }
            _ => return None,
        })
    }

    /// What files found below a folder are tainted with.
    pub fn walked(&self, folder: &str, is_deep: bool) -> Taint {
        let folder = folder.split(['*', '?']).next().unwrap_or_default().trim_end_matches('/');
        let is_home =
            matches!(folder, "~" | "" | "/home" | "/Users" | "/root" | "C:") || folder.ends_with(":\\");
        if is_home && is_deep { Taint::HOME_WALK } else { Taint::NONE }
    }
}
