//! Files that a program is given by a list of their names, and files that a script of another language reads because they
//! are its operands.

use std::ops::Range;

use super::super::argument::{Argument, HOLE};
use super::super::effect::EffectKind;
use super::super::programs::Input;
use super::{Engine, interpreters};

/// Names of one list that are looked at.
const NAMES_MAX: usize = 32;

/// Words of a script of another language by which it reads the files among its operands, or takes their names.
const READ_OPERANDS: &[&str] = &["<>", "<ARGV>", "@ARGV", "$ARGV", "ARGF", "ARGV", "$<", "argv", "$*"];

impl Engine<'_> {
    /// `tar -T list`, `… | cpio -o`: the files of the list are read.
    pub(super) fn listed(&mut self, program: &str, argv: &[Argument], span: &Range<usize>) {
        let list = match program {
            "tar" | "gtar" | "bsdtar" => {
                let option = |text: &str| {
                    matches!(text, "-T" | "--files-from")
                        || text.starts_with('-') && !text.starts_with("--") && text.ends_with('T')
                };
                let Some(at) = argv.iter().position(|word| option(&word.text)) else { return };
                let Some(list) = argv.get(at + 1).cloned() else { return };
                self.file_input(&list)
            }
            "cpio" | "pax" => self.io.stdin.input.clone(),
            _ => return,
        };
        let Input::Text(names) = list else { return };
        for name in names.text.lines().filter(|name| !name.is_empty()).take(NAMES_MAX) {
            let name = names.with_text(name.to_owned());
            self.path_effect(EffectKind::ReadPath, &name, "pack", span);
        }
    }

    /// `perl -pe script file`, `ruby -ne script file`: operands that the script reads.
    pub(super) fn read_by_script(&mut self, program: &str, argv: &[Argument], span: &Range<usize>) {
        if interpreters::language(program).is_none() {
            return;
        }
        let Some(at) = argv.iter().position(|word| is_code_option(&word.text)) else { return };
        let loops = argv[at].text.contains(['n', 'p']) && matches!(program, "perl" | "ruby");
        let reads = |code: &Argument| READ_OPERANDS.iter().any(|word| code.text.contains(word));
        if !loops && !argv.get(at + 1).is_some_and(reads) {
            return;
        }
        for word in argv.iter().skip(at + 2).take(NAMES_MAX) {
            let is_path = word.text.contains(['/', '~', '.']) && !word.text.contains("://");
            if is_path && !word.text.starts_with(['-', HOLE]) && !word.text.contains(char::is_whitespace) {
                self.path_effect(EffectKind::ReadPath, word, "", span);
            }
        }
    }
}

/// Whether an option is followed by code: `-e`, `-c`, `-pe`, `-0777ne`.
fn is_code_option(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|letters| {
        !letters.starts_with('-') && letters.ends_with(['e', 'E', 'c', 'r']) && letters.len() <= 8
    })
}
