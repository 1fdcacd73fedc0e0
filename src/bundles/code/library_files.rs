//! Functions of libraries about files, folders and paths: what is read, written, moved and deleted.

use std::rc::Rc;

use super::Language;
use super::call::Arguments;
use super::follow::Walk;
use super::library::HOME;
use super::taint::Taint;
use super::value::{Value, join};

impl Walk<'_> {
    /// What is found in a folder or by a pattern: one name that stands for all of them.
    fn found_in(&self, path: &str, folder: Rc<str>, taint: Taint) -> Value {
        let text = |text: Rc<str>| Value::text(text).with(taint);
        let any = || text(Rc::from("*"));
        let is_pattern = path.contains("glob");
        if is_pattern && folder.trim_matches('\0').is_empty() {
            return Value::unknown(taint).about(Some(folder));
        }
        let found = match path {
            "os.walk" => {
                Value::list(vec![text(folder.clone()), Value::list(vec![any()]), Value::list(vec![any()])])
            }
            "os.scandir" => match join([folder.clone(), Rc::from("/*")]) {
                Some(entry) => text(entry),
                None => any(),
            },
            _ if is_pattern => text(folder.clone()),
            _ => any(),
        };
        Value::list(vec![found]).with(taint).about(Some(folder))
    }

    /// What a function about files and paths gives; `None` for other functions.
    pub fn file_function(
        &mut self,
        path: &Rc<str>,
        callee: &Value,
        arguments: &Arguments,
        at: u32,
    ) -> Option<Value> {
        let first = arguments.first().map(|(_, value)| value);
        let taint = arguments.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint());
        Some(match &**path {
            "os.path.join"
            | "path.join"
            | "path.resolve"
            | "pathlib.Path"
            | "pathlib.PurePath"
            | "pathlib.PosixPath"
            | "os.path.expanduser"
            | "os.path.expandvars"
            | "os.path.abspath"
            | "os.path.realpath"
            | "os.path.normpath"
            | "path.normalize"
            | "posixpath.join"
            | "pathlib.WindowsPath"
            | "ntpath.join"
            | "path.posix.join" => {
                let mut pieces = Vec::new();
                for (_, value) in arguments {
                    let piece = value.piece();
                    if !pieces.is_empty() && !piece.starts_with('/') {
                        pieces.push(Rc::from("/"));
                    } else if !pieces.is_empty() {
                        // An absolute part throws away what stands before; `path.join` of JavaScript does not.
                        if self.language == Language::Python {
                            pieces.clear();
                        }
                    }
                    pieces.push(piece);
                }
                join(pieces).map_or(Value::unknown(taint), Value::text).with(taint | Taint::ASSEMBLED)
            }
            "pathlib.Path.home" | "os.homedir" => Value::text(HOME).with(Taint::HOST_USER),
            "tempfile.gettempdir" | "os.tmpdir" | "tempfile.mkdtemp" => Value::text("/tmp"),
            "tempfile.mktemp"
            | "tempfile.mkstemp"
            | "tempfile.NamedTemporaryFile"
            | "tempfile.TemporaryFile" => {
                let named = arguments.iter().find(|(name, _)| name.as_deref() == Some("suffix"));
                let suffix = named.and_then(|(_, value)| value.known_text()).unwrap_or_default();
                // One name for each call: what was written there is known by it.
                let file: Rc<str> = Rc::from(format!("/tmp/temporary-{at}{suffix}"));
                let opened = Value::api("file()").about(Some(file.clone()));
                match &**path {
                    "tempfile.mktemp" => Value::text(file),
                    "tempfile.mkstemp" => Value::list(vec![opened, Value::text(file)]),
                    _ => opened,
                }
            }
            "os.fdopen" if first?.api_name().is_some_and(|name| &**name == "file()") => first?.clone(),
            "os.write" if first?.api_name().is_some_and(|name| &**name == "file()") => {
                let file = first?.about.clone()?;
                let data = arguments.get(1)?.1.clone();
                self.write(&file, &data, at);
                Value::default()
            }
            // Data bases and archives are files, too.
            "sqlite3.connect"
            | "sqlite3.Database"
            | "better-sqlite3"
            | "sqlite3.verbose().Database"
            | "apsw.Connection"
            | "duckdb.connect"
            | "node:sqlite.DatabaseSync"
            | "sqlite.DatabaseSync"
            | "zipfile.ZipFile"
            | "tarfile.open"
            | "tarfile.TarFile" => {
                self.record(path, arguments, at, callee.taint);
                let file = first?.piece();
                // What lies in memory came from where its bytes came from.
                let bytes = arguments.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint());
                let taint = self.read(&file, at).taint & super::places::KEPT | bytes & Taint::NETWORK;
                Value::api(format!("{path}()")).with(taint).about(Some(file))
            }
            "shutil.make_archive" => {
                self.record(path, arguments, at, callee.taint);
                let (base, format) = (first?.piece(), arguments.get(1)?.1.known_text()?);
                let root = arguments.get(2).map(|(_, root)| root.piece()).unwrap_or_default();
                let extension = if &*format == "gztar" { "tar.gz" } else { &format };
                let file: Rc<str> = Rc::from(format!("{base}.{extension}"));
                let data = self.read(&root, at).with(self.walked(&root, true));
                self.write(&file, &data, at);
                Value::text(file)
            }
            "pathlib.Path.cwd" | "os.getcwd" | "process.cwd" => Value::text("\0").with(Taint::HOST_FOLDER),
            "os.path.dirname" | "path.dirname" | "os.path.basename" | "path.basename" => {
                Value::text(first?.piece()).with(taint)
            }
            "builtins.open"
            | "io.open"
            | "codecs.open"
            | "fs.createReadStream"
            | "fs.openSync"
            | "os.open"
            | "fs.open"
            | "aiofiles.open"
            | "Deno.open"
            | "gzip.open"
            | "Bun.file" => {
                let file = first?.piece();
                return Some(self.open(&file, arguments, at));
            }
            "fs.createWriteStream" => {
                let file = first?.piece();
                let mode = (None, Value::text("w"));
                return Some(self.open(&file, &[(None, first?.clone()), mode], at));
            }
            "os.walk"
            | "os.listdir"
            | "os.scandir"
            | "glob.glob"
            | "glob.iglob"
            | "fs.readdirSync"
            | "fs.readdir"
            | "glob.sync"
            | "fast-glob.sync"
            | "fs.promises.readdir"
            | "glob.globSync"
            | "fs.globSync"
            | "fs.promises.glob" => {
                let folder = first.map_or_else(|| Rc::from("."), Value::piece);
                let taint = self.walked(&folder, !matches!(&**path, "os.listdir" | "os.scandir"));
                let found = self.found_in(path, folder, taint);
                for (_, function) in arguments.iter().skip(1).filter(|(_, function)| function.is_callable()) {
                    self.call(function, &[(None, Value::default()), (None, found.clone())], at, false);
                }
                found
            }
            "fs.readFileSync"
            | "fs.readFile"
            | "fs.promises.readFile"
            | "Deno.readTextFile"
            | "Deno.readTextFileSync"
            | "Deno.readFile"
            | "fs.readJsonSync"
            | "fs.readJson"
            | "linecache.getlines"
            | "fs.promises.open" => {
                let file = first?.piece();
                let value = self.read(&file, at);
                for (_, function) in arguments.iter().skip(1) {
                    if function.is_callable() {
                        let error = (None, Value::default());
                        self.call(function, &[error, (None, value.clone())], at, false);
                    }
                }
                value
            }
            "fs.writeFileSync"
            | "fs.writeFile"
            | "fs.promises.writeFile"
            | "fs.appendFileSync"
            | "fs.appendFile"
            | "fs.promises.appendFile"
            | "Deno.writeTextFile"
            | "Deno.writeTextFileSync"
            | "Deno.writeFile"
            | "fs.outputFile"
            | "fs.outputFileSync"
            | "Bun.write"
            | "fs.writeJsonSync"
            | "fs.writeJson" => {
                let data = arguments.get(1).map(|(_, value)| value.clone()).unwrap_or_default();
                self.write(&first?.piece(), &data, at);
                Value::default()
            }
            "shutil.copy" | "shutil.copyfile" | "shutil.copy2" | "shutil.move" | "os.rename"
            | "os.replace" | "fs.copyFileSync" | "fs.copyFile" | "fs.renameSync" | "fs.rename"
            | "shutil.copytree" | "fs.cpSync" | "os.symlink" | "fs.symlinkSync" | "os.link" => {
                let data = self.read(&first?.piece(), at);
                self.write(&arguments.get(1)?.1.piece(), &data, at);
                Value::default()
            }
            "urllib.request.urlretrieve" | "wget.download" => {
                self.record(path, arguments, at, callee.taint);
                let file = arguments.get(1).map_or_else(|| Rc::from("\0"), |(_, value)| value.piece());
                self.write(&file, &Value::unknown(Taint::NETWORK), at);
                Value::unknown(Taint::NETWORK)
            }
            "shutil.rmtree" | "os.remove" | "os.unlink" | "os.rmdir" | "fs.rmSync" | "fs.rm"
            | "fs.unlinkSync" | "fs.rmdirSync" | "fs.unlink" | "fs.promises.rm" | "rimraf"
            | "rimraf.sync" | "fs.removeSync" | "fs.remove" | "fs.promises.rmdir" | "del"
            | "os.removedirs" | "fs.promises.unlink" | "fs.rmdir" | "fs.emptyDirSync" | "rimraf.rimraf"
            | "rimraf.rimrafSync" => {
                let is_tree = !path.contains("unlink") && !matches!(&**path, "os.remove" | "os.rmdir");
                self.record(path, arguments, at, callee.taint);
                self.delete(first?, is_tree, at);
                Value::default()
            }
            _ => return None,
        })
    }
}
