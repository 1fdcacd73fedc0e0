//! What a script leaves behind to run later: hooks of the shell, files that a shell reads at its start, aliases, and functions
//! that nothing called so far.
//!
//! Only looked at where a whole script is judged: a command that defines something and goes away leaves nothing behind.

use std::rc::Rc;

use super::super::argument::{Argument, Origin};
use super::super::foreign::Foreign;
use super::super::programs::Input;
use super::io::Content;
use super::scope::Value;
use super::{Engine, Script};

/// How effects of hooks are marked: commands that the shell runs by itself.
pub const HOOK: &str = "hook";
/// How effects of what is written to a file of a shell's start are marked.
const START: &str = "start file";
/// How effects of functions and aliases are marked that nothing called.
pub const UNCALLED: &str = "uncalled";

/// Functions that a shell calls by itself: at every command, before every prompt, where a command is not found, at its end
/// (Bash and Zsh manuals; `fish_*` are those of fish).
const FUNCTIONS: &[&str] = &[
    "command_not_found_handle",
    "command_not_found_handler",
    "preexec",
    "precmd",
    "chpwd",
    "periodic",
    "zshexit",
    "zshaddhistory",
    "fish_prompt",
    "fish_right_prompt",
    "fish_greeting",
    "fish_command_not_found",
    "fish_preexec",
    "fish_postexec",
    "fish_title",
];
/// Lists of such functions.
const LISTS: &[&str] = &[
    "precmd_functions",
    "preexec_functions",
    "chpwd_functions",
    "periodic_functions",
    "zshexit_functions",
    "zshaddhistory_functions",
];
/// Variables that hold a command which runs before every prompt, and prompts, in which commands may stand.
const COMMANDS: &[&str] = &["PROMPT_COMMAND"];
const PROMPTS: &[&str] = &["PS0", "PS1", "PS2", "PS4", "PROMPT", "RPROMPT"];
/// Variables that name a file which every shell reads that starts.
const FILES: &[&str] = &["BASH_ENV", "ENV"];
/// Names of files that a shell reads at its start, and parts of the paths of others.
const START_FILES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".xprofile",
    ".xsessionrc",
    "config.fish",
    "config.nu",
    "env.nu",
    "bash.bashrc",
];
const START_FOLDERS: &[&str] =
    &["/etc/profile", "/etc/zsh", "fish/functions/", "fish/conf.d/", "/.bashrc.d/", "/.oh-my-zsh/custom/"];
/// Functions and aliases that are looked at.
const NAMES_MAX: usize = 200;

impl Engine<'_> {
    /// Runs what the script leaves behind.
    pub(super) fn run_later(&mut self, script: &Script<'_>) {
        let mut files: Vec<(String, Argument)> =
            self.files.texts().filter(|(path, _)| is_start(path)).collect();
        files.sort_by(|a, b| a.0.cmp(&b.0));
        for (path, text) in files {
            let text = match Foreign::of_file(&path, "") {
                Some(shell) => text.with_text(shell.posix(&text.text)),
                None => text,
            };
            self.run_text(&text, Some(START));
        }
        self.run_hooks(script);
        self.run_uncalled(script);
    }

    fn run_hooks(&mut self, script: &Script<'_>) {
        for name in COMMANDS {
            match self.scope.get(name, self.choice).cloned() {
                Some(Value::Text(text)) => self.run_text(&text, Some(HOOK)),
                Some(Value::Array(texts)) => texts.iter().for_each(|text| self.run_text(text, Some(HOOK))),
                _ => {}
            }
        }
        for name in PROMPTS {
            if let Some(Value::Text(text)) = self.scope.get(name, self.choice).cloned()
                && text.text.contains(['`', '('])
                && !text.text.contains('"')
            {
                self.run_text(&text.with_text(format!(": \"{}\"", text.text)), Some(HOOK));
            }
        }
        for name in FILES {
            if let Some(Value::Text(file)) = self.scope.get(name, self.choice).cloned()
                && let Input::Text(text) = self.file_input(&file)
            {
                self.run_text(&text, Some(START));
            }
        }
        let mut names: Vec<String> = FUNCTIONS.iter().map(|name| (*name).to_owned()).collect();
        for list in LISTS {
            if let Some(Value::Array(items)) = self.scope.get(list, self.choice) {
                names.extend(items.iter().take(NAMES_MAX).map(|item| item.text.clone()));
            }
        }
        names.append(&mut self.hooks);
        names.sort();
        names.dedup();
        for name in names.into_iter().take(NAMES_MAX) {
            self.run_function(script, &name, HOOK);
        }
    }

    /// Functions and aliases that nothing used: other scripts read this one for them, or whoever types does.
    fn run_uncalled(&mut self, script: &Script<'_>) {
        let functions: Vec<String> = self.scope.function_names().take(NAMES_MAX).collect();
        for name in functions {
            let is_called =
                self.scope.function(&name).is_some_and(|one| self.called.contains(&one.text.as_ptr()));
            if !is_called {
                self.run_function(script, &name, UNCALLED);
            }
        }
        let aliases: Vec<Rc<Argument>> = self.scope.aliases().take(NAMES_MAX).collect();
        for text in aliases {
            self.run_text(&text, Some(UNCALLED));
        }
    }

    /// Calls a function of the script with words that are not known.
    fn run_function(&mut self, script: &Script<'_>, name: &str, via: &'static str) {
        let Some(function) = self.scope.function(name).cloned() else { return };
        let span = function.span.clone().unwrap_or(0..0);
        let unknown = Self::unknown(Origin::Environment, span.clone());
        let argv = vec![Argument::constant(name, span.clone()), unknown.clone(), unknown.clone(), unknown];
        let mark = self.scope.mark();
        self.via.push(via);
        self.call(script, &function, &argv, &span);
        self.via.pop();
        self.scope.roll_back(mark);
    }
}

/// Whether a shell reads a file at its start, or when somebody logs in.
fn is_start(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    START_FILES.contains(&name) || START_FOLDERS.iter().any(|folder| path.contains(folder))
}

/// A file with a text.
pub(super) fn text_in(content: &Content) -> Option<&Argument> {
    match content {
        Content::Data(Input::Text(text)) => Some(text),
        _ => None,
    }
}
