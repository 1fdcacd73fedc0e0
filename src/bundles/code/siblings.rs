//! Other files of the bundle that code reads: modules that it imports, texts that it opens, and its own.
//!
//! A module is walked once, apart: what its names stand for is known afterwards, and what it does by itself is told where
//! it is scanned as a file of its own. Its functions are entered when they are called, and what they do then is told at the
//! import. Number, size, depth and steps are bounded; that a module of the bundle is beyond them is told, since what is handed
//! to it, or comes from it, is then not known.
//!
//! A file of the bundle comes before a library of its name, as the languages have it; what the library does stays possible,
//! since a file that is never found where the program runs must not hide it.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::follow::{Scope, Walk};
use super::value::{HOLE, Shape, Value};
use super::{Language, javascript, python, worker};

/// Files of one file that are read.
const FILES_MAX: usize = 96;
/// Bytes of such a file, and of all of them.
const FILE_BYTES_MAX: usize = 256 << 10;
const BYTES_MAX: usize = 768 << 10;
/// Bytes of a file whose text is a value.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Modules that import one another.
const DEPTH_MAX: usize = 10;
/// Steps of a module.
const STEPS: usize = 4_000;
/// Folders beside the importing file, and above it, in which programs look for their modules.
const PYTHON_FOLDERS: &[&str] = &["", "lib/", "src/", "scripts/"];
/// Modules that are part of the interpreter: no file is looked for (Python documentation, `sys.builtin_module_names`).
const PYTHON_BUILT_IN: &[&str] = &[
    "sys",
    "builtins",
    "time",
    "marshal",
    "posix",
    "itertools",
    "gc",
    "errno",
    "atexit",
    "_thread",
    "_io",
    "_imp",
    "_signal",
    "_weakref",
    "_codecs",
    "_operator",
    "_functools",
    "_collections",
    "_string",
    "_symtable",
    "_warnings",
    "faulthandler",
    "pwd",
];
/// What `require` and `import` put behind a name (Node.js, "File modules"; TypeScript, "Module resolution").
const JAVASCRIPT_ENDS: &[&str] =
    &["", ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".jsx", ".json", "/index.js", "/index.ts"];
/// Stands before a name that a file exports something by.
pub(super) const EXPORT: &str = "export ";
/// How the path of the file itself begins, as `__file__` and `__filename` give it.
pub(super) const OWN: &str = "\0.py";

/// Where the other files of a bundle come from.
pub trait Siblings: Sync {
    /// The text of a file of at most `bytes_max` bytes; `None` where there is none, or it is no text.
    fn text(&self, path: &str, bytes_max: usize) -> Option<String>;

    /// Whether there is a file of that path, whatever it holds.
    fn is_file(&self, path: &str) -> bool;
}

/// No other files.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Siblings for Alone {
    fn text(&self, _: &str, _: usize) -> Option<String> {
        None
    }

    fn is_file(&self, _: &str) -> bool {
        false
    }
}

/// What is known of a module of the bundle.
#[derive(Clone)]
pub(super) enum Module {
    /// Its names, in a scope.
    Names(usize),
    /// What it exports.
    Value(Value),
    /// It is no file of the bundle, or beyond the limits.
    Unknown,
}

impl Walk<'_> {
    /// A module of the bundle as a value; `None` where the name is that of a library. The library stays possible where both
    /// go by one name.
    pub fn sibling(&mut self, name: &str, at: u32) -> Option<Value> {
        let own = self.own_module(name, at)?;
        Some(if self.is_library(name) { own.or(self.module(name, at)) } else { own })
    }

    /// Whether a library that something is known of goes by the name.
    fn is_library(&self, name: &str) -> bool {
        self.language == Language::Python && self.context.rules.is_module(head_of(name))
    }

    fn own_module(&mut self, name: &str, at: u32) -> Option<Value> {
        match self.sibling_module(name, at) {
            Module::Names(scope) => {
                let class = super::classes::ClassInfo { scope, ..Default::default() };
                self.classes.push(class);
                let names = Value::of(Shape::Class(self.classes.len() - 1));
                // An import without a name of its own is that of `export default`.
                Some(match self.scopes[scope].names.get("default") {
                    Some(value) => value.clone().or(names),
                    None => names,
                })
            }
            Module::Value(value) => Some(value),
            Module::Unknown => None,
        }
    }

    /// What a module of the bundle calls by a name; `None` where it does not, or is no file of the bundle.
    pub fn sibling_name(&mut self, module: &str, name: &Rc<str>, at: u32) -> Option<Value> {
        let own = self.own_name(module, name, at)?;
        if !self.is_library(module) {
            return Some(own);
        }
        let library = self.module(module, at);
        Some(own.or(self.member(&library, name, false)))
    }

    fn own_name(&mut self, module: &str, name: &Rc<str>, at: u32) -> Option<Value> {
        match self.sibling_module(module, at) {
            Module::Names(scope) => match self.scopes[scope].names.get(name) {
                Some(value) => Some(value.clone()),
                None if self.language == Language::Python => self.submodule(module, name, at),
                None => None,
            },
            Module::Value(value) => value.entry(name).cloned(),
            Module::Unknown if self.language == Language::Python => self.submodule(module, name, at),
            Module::Unknown => None,
        }
    }

    /// `from . import name`, `from package import name`.
    fn submodule(&mut self, module: &str, name: &str, at: u32) -> Option<Value> {
        let dot = if module.ends_with('.') { "" } else { "." };
        self.own_module(&format!("{module}{dot}{name}"), at)
    }

    /// All names of a module of the bundle.
    pub fn sibling_names(&mut self, module: &str, at: u32) -> Option<Vec<(Rc<str>, Value)>> {
        let Module::Names(scope) = self.sibling_module(module, at) else { return None };
        let names = self.scopes[scope].names.iter();
        let mut names: Vec<_> = names.map(|(name, value)| (name.clone(), value.clone())).collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        if self.is_library(module) {
            self.stars.push(Rc::from(module));
        }
        Some(names)
    }

    fn sibling_module(&mut self, name: &str, at: u32) -> Module {
        let is_local = match self.language {
            Language::Python => name.starts_with('.') || !PYTHON_BUILT_IN.contains(&head_of(name)),
            Language::JavaScript => name.starts_with("./") || name.starts_with("../") || name == ".",
        };
        if !is_local || name.is_empty() || name.contains(HOLE) {
            return Module::Unknown;
        }
        let from = self.module_path.last().cloned().unwrap_or_else(|| Rc::from(self.context.path));
        let key: Rc<str> = Rc::from(format!("{}\0{name}", folder_of(&from)));
        if let Some(known) = self.modules.get(&key) {
            return known.clone();
        }
        let candidates = match self.language {
            Language::Python => python_files(&from, name),
            Language::JavaScript => javascript_files(&from, name),
        };
        let siblings = self.context.siblings;
        let found = candidates.into_iter().find(|path| path != self.context.path && siblings.is_file(path));
        // A module that imports itself, by way of others.
        self.modules.insert(key.clone(), Module::Unknown);
        let Some(path) = found else { return Module::Unknown };
        if self.module_path.len() >= DEPTH_MAX {
            self.is_unread |= is_code(&path);
            // From a module nearer to the file it may still be read.
            self.modules.remove(&key);
            return Module::Unknown;
        }
        let Some(text) = self.sibling_text(&path, FILE_BYTES_MAX) else {
            self.is_unread |= is_code(&path);
            return Module::Unknown;
        };
        let module = self.walk_module(&path, &text, at);
        self.modules.insert(key, module.clone());
        module
    }

    /// The text of a file of the bundle, as long as there is room for more.
    fn sibling_text(&mut self, path: &str, bytes_max: usize) -> Option<String> {
        let left = BYTES_MAX.saturating_sub(self.sibling_bytes).min(bytes_max);
        if left == 0 || self.sibling_files >= FILES_MAX || path == self.context.path {
            return None;
        }
        let text = self.context.siblings.text(path, left)?;
        self.sibling_files += 1;
        self.sibling_bytes += text.len();
        Some(text)
    }

    /// Walks a module apart from the file.
    fn walk_module(&mut self, path: &str, text: &str, at: u32) -> Module {
        if path.ends_with(".json") {
            let code: Rc<str> = Rc::from(format!("({text})"));
            return self.value_of_text(&code, at).map_or(Module::Unknown, Module::Value);
        }
        if !worker::may_parse(self.language, text) {
            self.is_unread = true;
            return Module::Unknown;
        }
        let parsed = match self.language {
            Language::Python => python::parse(text),
            Language::JavaScript => javascript::parse(path, text),
        };
        self.scopes.push(Scope::default());
        let scope = self.scopes.len() - 1;
        let kept = Apart {
            place: self.place.replace(self.place.unwrap_or(at)),
            at: self.at,
            steps: std::mem::replace(&mut self.steps, STEPS),
            again: std::mem::take(&mut self.again),
            branches: std::mem::take(&mut self.branches),
            doubled: std::mem::take(&mut self.doubled),
            hits: self.hits.len(),
            inner: self.inner.len(),
            functions: self.functions.len(),
            handlers: self.handlers.len(),
            stars: std::mem::take(&mut self.stars),
            patched: std::mem::take(&mut self.patched),
            seen: self.seen.clone(),
            capabilities: self.capabilities.clone(),
        };
        self.module_path.push(Rc::from(path));
        self.block(&parsed.body, scope);
        self.module_path.pop();
        let patched = std::mem::replace(&mut self.patched, kept.patched);
        self.place = kept.place;
        self.at = kept.at;
        self.steps = kept.steps;
        self.again = kept.again;
        self.branches = kept.branches;
        self.doubled = kept.doubled;
        self.hits.truncate(kept.hits);
        self.inner.truncate(kept.inner);
        self.functions.truncate(kept.functions);
        self.handlers.truncate(kept.handlers);
        self.stars = kept.stars;
        self.seen = kept.seen;
        self.capabilities = kept.capabilities;
        if let Some(value) = patched.get("module.exports")
            && !matches!(value.shape, Shape::Unknown)
        {
            return Module::Value(value.clone());
        }
        let renamed = self.scopes[scope].names.iter();
        let renamed: Vec<(Rc<str>, Value)> = renamed
            .filter_map(|(name, value)| Some((Rc::from(name.strip_prefix(EXPORT)?), value.clone())))
            .collect();
        self.scopes[scope].names.extend(renamed);
        for (name, value) in &patched {
            let name = name.strip_prefix("module.").unwrap_or(name);
            if let Some(name) = name.strip_prefix("exports.") {
                self.scopes[scope].names.insert(Rc::from(name), value.clone());
            }
        }
        Module::Names(scope)
    }

    /// Whether a module is being walked: what it does by itself is told elsewhere.
    pub fn is_apart(&self) -> bool {
        !self.module_path.is_empty()
    }

    /// The text of a file that the code reads, where it is one of the bundle or its own.
    pub fn text_of(&mut self, file: &str) -> Option<Rc<str>> {
        if self.is_apart() {
            return None;
        }
        if file == OWN {
            return (self.text.len() <= FILE_BYTES_MAX).then(|| Rc::from(self.text));
        }
        // Behind the folder of the file, which is not known by name.
        let name = file.rsplit(HOLE).next().unwrap_or(file);
        let name = name.strip_prefix(".py").filter(|_| file.starts_with(OWN)).unwrap_or(name);
        let name = name.trim_start_matches('/');
        let is_outside = file.starts_with(['/', '~']) || file.contains("://") || name.is_empty();
        if is_outside || name.contains('*') {
            return None;
        }
        if let Some(known) = self.opened.get(name) {
            return known.clone();
        }
        let path = self.context.path;
        let text = above(folder_of(path)).find_map(|folder| {
            let path = joined(folder, name)?;
            self.sibling_text(&path, TEXT_BYTES_MAX)
        });
        let text = text.map(Rc::from);
        self.opened.insert(Rc::from(name), text.clone());
        text
    }
}

/// What is put aside while a module is walked.
struct Apart {
    place: Option<u32>,
    at: u32,
    steps: usize,
    again: usize,
    branches: usize,
    doubled: usize,
    hits: usize,
    inner: usize,
    functions: usize,
    handlers: usize,
    stars: Vec<Rc<str>>,
    patched: std::collections::BTreeMap<Rc<str>, Value>,
    seen: BTreeSet<String>,
    capabilities: BTreeSet<crate::decision::Capability>,
}

/// The package of a module: the module that an import looks for first.
fn head_of(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Whether a file that is imported is a program, not data.
fn is_code(path: &str) -> bool {
    !path.ends_with(".json")
}

/// The folder that a file lies in; empty for the top.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A folder and those above it, the nearest first.
pub fn above(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| match *folder {
        "" => None,
        folder => Some(folder_of(folder)),
    })
}

/// A path below a folder, with `.` and `..` worked out; `None` above the top.
pub fn joined(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Where Python finds a module, in its order (Python language reference, "The import system").
fn python_files(from: &str, name: &str) -> Vec<String> {
    let mut out = Vec::new();
    let bare = name.trim_start_matches('.');
    let (dots, bare) = (name.len() - bare.len(), bare.replace('.', "/"));
    let mut add = |folder: &str, below: &str| {
        let start = if folder.is_empty() { below.to_owned() } else { format!("{folder}/{below}") };
        if bare.is_empty() {
            out.push(format!("{start}__init__.py"));
        } else {
            out.push(format!("{start}{bare}.py"));
            out.push(format!("{start}{bare}/__init__.py"));
        }
    };
    match dots {
        0 => above(folder_of(from))
            .for_each(|folder| PYTHON_FOLDERS.iter().for_each(|below| add(folder, below))),
        _ => above(folder_of(from)).skip(dots - 1).take(1).for_each(|folder| add(folder, "")),
    }
    out.iter_mut().for_each(|path| *path = path.trim_start_matches('/').to_owned());
    out
}

/// Where JavaScript finds a module that is named by a path.
fn javascript_files(from: &str, name: &str) -> Vec<String> {
    let Some(path) = joined(folder_of(from), name) else { return Vec::new() };
    // TypeScript names what it is compiled to.
    let compiled = path.strip_suffix(".js").map(|bare| format!("{bare}.ts"));
    JAVASCRIPT_ENDS.iter().map(|end| format!("{path}{end}")).chain(compiled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_looked_for_where_the_languages_do() {
        for (from, name, wanted) in [
            ("a.py", "b", "b.py"),
            ("s/x/a.py", "b", "s/x/b.py"),
            ("s/x/a.py", "b", "s/b.py"),
            ("s/x/a.py", "b", "s/x/lib/b.py"),
            ("s/x/a.py", "p.b", "s/x/p/b.py"),
            ("s/x/a.py", ".b", "s/x/b.py"),
            ("s/x/a.py", "..b", "s/b.py"),
            ("s/x/a.py", ".", "s/x/__init__.py"),
        ] {
            let files = python_files(from, name);
            assert!(files.iter().any(|file| file == wanted), "{from} {name}: {files:?}");
        }
        for (from, name, wanted) in [
            ("a.js", "./b", "b.js"),
            ("s/x/a.mjs", "../b.js", "s/b.js"),
            ("s/x/a.ts", "./b.js", "s/x/b.ts"),
            ("s/x/a.js", "./b", "s/x/b/index.js"),
            ("a.js", "./c.json", "c.json"),
        ] {
            let files = javascript_files(from, name);
            assert!(files.iter().any(|file| file == wanted), "{from} {name}: {files:?}");
        }
        assert!(javascript_files("a.js", "../../b").is_empty());
        assert!(!python_files("s/a.py", "..b").iter().any(|file| file.starts_with('/')));
    }
}
