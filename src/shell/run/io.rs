//! What commands are connected to: input, captured output, descriptors, and files whose content is known.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::super::argument::{Argument, HOLE, Origin};
use super::super::carried::Carried;
use super::super::programs::Input;

/// Files whose content is remembered.
const FILES_MAX: usize = 1 << 14;
/// Files of a folder that are looked at when all of it is read.
const BELOW_MAX: usize = 64;

/// Standard input of a command, shared by the commands of a group or loop.
#[derive(Debug, Default)]
pub(in crate::shell) struct Stdin {
    /// What is read.
    pub input: Input,
    /// Bytes of a known text that `read` has taken already.
    pub taken: Cell<usize>,
    /// The connection, if it is one to another host.
    pub channel: Channel,
}

/// What a descriptor leads to, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::shell) enum Channel {
    /// Whatever the caller had.
    #[default]
    Inherited,
    /// A descriptor above 2 that was not opened in this command.
    Foreign(String),
    /// A connection to a host.
    Socket(Arc<str>),
    /// A file or named pipe; its path.
    File(Arc<str>),
}

/// Connections of the command that runs.
#[derive(Clone, Debug, Default)]
pub(in crate::shell) struct Io {
    /// Standard input.
    pub stdin: Rc<Stdin>,
    /// Standard output.
    pub stdout: Channel,
    /// Descriptors above 2 that were opened.
    pub descriptors: Rc<Vec<(String, Channel)>>,
    /// Whether somebody reads the output.
    pub wanted: bool,
    /// The output so far, when somebody reads it.
    pub out: Argument,
}

impl Io {
    /// Adds output that is not known, but where it comes from.
    pub fn write_unknown(&mut self, origin: Origin, carried: Carried) {
        if self.wanted {
            if !self.out.text.ends_with(HOLE) {
                self.out.text.push(HOLE);
            }
            self.out.absorb(&Argument { origin, carried, ..Argument::default() });
        }
    }

    /// Adds output that may have unknown pieces.
    pub fn write_argument(&mut self, text: &Argument) {
        if self.wanted {
            self.out.text.push_str(&text.text);
            self.out.absorb(text);
        }
    }

    /// What a descriptor leads to.
    pub fn channel(&self, descriptor: &str) -> Channel {
        match descriptor {
            "0" => self.stdin.channel.clone(),
            "1" => self.stdout.clone(),
            "2" => Channel::Inherited,
            other => {
                let found = self.descriptors.iter().rev().find(|(name, _)| name == other);
                found.map_or_else(|| Channel::Foreign(other.to_owned()), |(_, channel)| channel.clone())
            }
        }
    }
}

/// What a reader gets from captured output.
pub(in crate::shell) fn input_of(out: Argument) -> Input {
    match &out.origin {
        Origin::Network(from) => Input::Network(from.to_string()),
        Origin::Output(program) if out.text.chars().all(|c| c == HOLE || c.is_whitespace()) => {
            Input::Output(program.to_string(), out.carried)
        }
        _ => Input::Text(out),
    }
}

/// What reading an input gives, as a text.
pub(in crate::shell) fn text_of(input: &Input, span: &Range<usize>) -> Argument {
    let unknown =
        |origin| Argument { text: HOLE.to_string(), span: span.clone(), origin, ..Argument::default() };
    match input {
        Input::None => unknown(Origin::Environment),
        Input::Text(text) => text.clone(),
        Input::File(_) => Argument { carried: input.carried(), ..unknown(Origin::Output(Arc::from("cat"))) },
        Input::Network(from) => unknown(Origin::Network(Arc::from(from.as_str()))),
        Input::Output(program, carried) => {
            Argument { carried: carried.clone(), ..unknown(Origin::Output(Arc::from(program.as_str()))) }
        }
    }
}

/// A file that was written earlier in the same command.
#[derive(Clone, Debug)]
pub(in crate::shell) enum Content {
    /// What a reader gets.
    Data(Input),
    /// A named pipe.
    Pipe,
}

/// Files written in this command.
#[derive(Debug, Default)]
pub(in crate::shell) struct Files {
    known: std::collections::HashMap<String, Content>,
    /// By path: the files that a program made it of, as archives and copies are.
    made_of: std::collections::BTreeMap<String, Carried>,
    /// How the names of pieces begin that a file was split into.
    pieces: Vec<(String, Carried)>,
}

impl Files {
    /// Remembers what a file holds. The path is normalised.
    pub fn write(&mut self, path: &str, content: Content, append: bool) {
        if let Some(old) = self.known.get_mut(path) {
            match (old, content) {
                (Content::Pipe, _) => {}
                (Content::Data(Input::Text(old)), Content::Data(Input::Text(new))) if append => {
                    old.text.push_str(&new.text);
                    old.absorb(&new);
                }
                // What came from the network stays dangerous whatever is added to it.
                (Content::Data(Input::Network(_)), Content::Data(_)) if append => {}
                (old, content) => *old = content,
            }
        } else if self.known.len() < FILES_MAX {
            self.known.insert(path.to_owned(), content);
        }
    }

    /// What a file holds, if it was written in this command.
    pub fn get(&self, path: &str) -> Option<&Content> {
        self.known.get(path)
    }

    /// Files whose text is known, in no order.
    pub fn texts(&self) -> impl Iterator<Item = (String, Argument)> {
        let known = self.known.iter();
        known.filter_map(|(path, content)| Some((path.clone(), super::later::text_in(content)?.clone())))
    }

    /// A file is copied or moved.
    pub fn copy(&mut self, from: &str, to: &str) {
        if let Some(content) = self.get(from).cloned() {
            self.write(to, content, false);
        }
    }

    /// A program made a file, or what is in a folder, of others.
    pub fn make(&mut self, path: &str, of: &Carried) {
        if self.made_of.len() < FILES_MAX {
            self.made_of.entry(path.to_owned()).or_default().merge(of);
        }
    }

    /// A program split a file into pieces whose names begin so.
    pub fn split(&mut self, prefix: &str, of: &Carried) {
        if self.pieces.len() < BELOW_MAX {
            self.pieces.push((prefix.to_owned(), of.clone()));
        }
    }

    /// The files whose text a file holds, or any below a folder.
    pub fn carried(&self, path: &str) -> Carried {
        let mut all = Carried::default();
        if matches!(path, "" | ".") {
            // The working directory, of which nothing is known: all that is not elsewhere.
            let is_here = |name: &&String| !name.starts_with(['/', '~', '$', HOLE, '\u{1}']);
            self.made_of
                .iter()
                .filter(|(name, _)| is_here(name))
                .take(BELOW_MAX)
                .for_each(|(_, of)| all.merge(of));
            let known = self.known.iter().filter(|(name, _)| is_here(name));
            // In no order: what is merged is a set.
            for (_, content) in known.take(FILES_MAX) {
                if let Content::Data(input) = content {
                    all.merge(&input.carried());
                }
            }
            return all;
        }
        if let Some(Content::Data(input)) = self.get(path).filter(|_| path.chars().any(|c| c != HOLE)) {
            all.merge(&input.carried());
        }
        if let Some(of) = self.made_of.get(path) {
            all.merge(of);
        }
        for (_, of) in self.pieces.iter().filter(|(prefix, _)| path.starts_with(prefix.as_str())) {
            all.merge(of);
        }
        let folder = format!("{}/", path.trim_end_matches(['/', '*']).trim_end_matches('/'));
        let below = self.made_of.range(folder.clone()..).take_while(|(name, _)| name.starts_with(&folder));
        for (_, of) in below.take(BELOW_MAX) {
            all.merge(of);
        }
        all
    }

    /// Whether there is any.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

/// What was found out about a stage of a pipeline, for the pipeline to judge as a whole.
#[derive(Clone, Debug, Default)]
pub(in crate::shell) struct Facts {
    /// A shell that takes commands from an input that is not known: its span and its name.
    pub shell: Option<(Range<usize>, Arc<[Argument]>)>,
    /// A program that talks to another host: the host, and whether it listens.
    pub connection: Option<(Arc<str>, bool)>,
    /// Whether every variable of the environment was printed.
    pub environment: bool,
}
