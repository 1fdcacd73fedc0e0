//! Libraries that make functions of programs: `sh` and `plumbum`. What is called there is a command, word by word.

use std::rc::Rc;

use super::Language;
use super::call::Arguments;
use super::follow::Walk;
use super::value::{Shape, Value};

/// Modules whose members are programs.
const MODULES: &[&str] = &["sh.", "plumbum.cmd."];
/// What a command that was run gives; what ran stands beside it.
const OUTPUT: &str = "sh.output()";

/// The program that a canonical name stands for.
fn program(path: &str) -> Option<&str> {
    let name = MODULES.iter().find_map(|module| path.strip_prefix(module))?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_plain) && !matches!(name, "Command" | "contrib" | "cd"))
        .then_some(name)
}

impl Walk<'_> {
    /// Runs a program that is called as a function; `None` for other functions.
    pub fn called_program(&mut self, path: &str, arguments: &Arguments, at: u32) -> Option<Value> {
        if self.language != Language::Python {
            return None;
        }
        let first = arguments.first().map(|(_, value)| value);
        // A program by its name, in a text.
        if matches!(path, "sh.Command" | "plumbum.local.get") {
            let name = first?.known_text()?;
            let name = name.rsplit('/').next().unwrap_or_default();
            return Some(Value::api(format!("sh.{name}")));
        }
        // Words that come before those of later calls.
        if let Some(path) = path.strip_suffix(".bake") {
            program(path)?;
            let baked = (Value::api(path), arguments.to_vec());
            return Some(Value::of(Shape::Partial(Rc::new(baked))));
        }
        let name = program(path)?;
        let words = std::iter::once(Value::text(name));
        let (mut words, mut source): (Vec<Value>, _) = (words.collect(), None);
        for (key, value) in arguments {
            let is_piped = value.api_name().is_some_and(|path| &**path == OUTPUT);
            match key.as_deref() {
                // What another command printed comes in.
                None | Some("_in") if is_piped => source = value.about.clone(),
                Some("_in") => {
                    source = value.known_text().map(|text| Rc::from(format!("printf %s '{text}'")))
                }
                None => match self.elements(value).filter(|_| value.as_list().is_some()) {
                    Some(list) => words.extend(list),
                    None => words.push(value.clone()),
                },
                Some(_) => {}
            }
        }
        self.record(path, arguments, at, super::taint::Taint::NONE);
        let line = words.iter().map(quoted).collect::<Vec<_>>().join(" ");
        let line: Rc<str> = match source {
            Some(source) => Rc::from(format!("{source} | {line}")),
            None => Rc::from(line),
        };
        self.judge_command(&Rc::from(line.replace('\0', "$PIECE_THAT_IS_NOT_KNOWN")), at);
        Some(Value::api(OUTPUT).about(Some(line)))
    }

    /// `bash["-c", "…"]` of plumbum: a program with words; `None` for other elements.
    pub fn program_with(&mut self, base: &Value, words: &Value) -> Option<Value> {
        let path = base.api_name()?;
        if &**path == "plumbum.local" {
            let name = words.known_text()?;
            return Some(Value::api(format!("plumbum.cmd.{}", name.rsplit('/').next().unwrap_or_default())));
        }
        program(path).filter(|_| path.starts_with("plumbum."))?;
        let given = match words.as_list() {
            Some(list) => list.iter().map(|word| (None, word.clone())).collect(),
            None => vec![(None, words.clone())],
        };
        Some(Value::of(Shape::Partial(Rc::new((base.clone(), given)))))
    }

    /// `curl["…"] | bash` of plumbum: both as one command, which is built to be run.
    pub fn piped_programs(&mut self, left: &Value, right: &Value, at: u32) -> Option<Value> {
        let (left, right) = (command_of(left)?, command_of(right)?);
        let line: Rc<str> = Rc::from(format!("{left} | {right}"));
        self.judge_command(&Rc::from(line.replace('\0', "$PIECE_THAT_IS_NOT_KNOWN")), at);
        Some(Value::api(OUTPUT).about(Some(line)))
    }
}

/// The command that a program of plumbum with its words is.
fn command_of(value: &Value) -> Option<String> {
    match &value.shape {
        Shape::Api(path) if &**path == OUTPUT => value.about.as_deref().map(str::to_owned),
        Shape::Api(path) => program(path).map(str::to_owned),
        Shape::Partial(partial) => {
            let name = program(partial.0.api_name()?)?;
            let words = partial.1.iter().map(|(_, word)| quoted(word));
            Some(std::iter::once(name.to_owned()).chain(words).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

/// A word as a shell reads it back.
fn quoted(word: &Value) -> String {
    let piece = word.piece();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,\0".contains(c);
    match !piece.is_empty() && piece.chars().all(is_plain) {
        true => piece.to_string(),
        false => format!("'{}'", piece.replace('\'', r"'\''")),
    }
}
