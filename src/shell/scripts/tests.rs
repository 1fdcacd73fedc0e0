//! Tables of scripts and what they do.

use super::super::argument::{Argument, HOLE};
use super::super::effect::{EffectKind, Target};
use super::super::programs::{Attributes, Language, Sink};
use super::{analyse, decode_powershell};

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
        if kind == EffectKind::ChangeMode {
            line.push_str(&format!(" ({})", attributes.detail));
        }
        self.0.push(line);
    }

    fn run(&mut self, argv: &[Argument], _: &'static str) {
        let words: Vec<String> = argv.iter().map(|a| a.text.replace(HOLE, "?")).collect();
        self.0.push(format!("run {}", words.join(" ")));
    }

    fn script(&mut self, language: Language, text: &Argument, _: &'static str) {
        assert_eq!(language, Language::Shell);
        self.0.push(format!("shell {}", text.text.replace(HOLE, "?")));
    }

    fn unknown_command(&mut self) {
        self.0.push("unknown".to_owned());
    }
}

fn effects(language: Language, script: &str) -> Vec<String> {
    let mut recorder = Recorder::default();
    let text = Argument::constant(script.replace('¿', &HOLE.to_string()), 0..script.len());
    analyse(language, &text, &mut recorder);
    recorder.0
}

/// Scripts behind the name of their language, each with what it does on indented lines below it. `⏎` is a new line, `¿` a
/// piece that the shell did not know.
const CASES: &str = include_str!("cases.txt");

fn language(name: &str) -> Language {
    match name {
        "python" => Language::Python,
        "perl" => Language::Perl,
        "ruby" => Language::Ruby,
        "node" => Language::JavaScript,
        "php" => Language::Php,
        "awk" => Language::Awk,
        "lua" => Language::Lua,
        "powershell" => Language::PowerShell,
        other => panic!("no language {other}"),
    }
}

fn cases() -> Vec<(Language, String, Vec<&'static str>)> {
    let mut cases: Vec<(Language, String, Vec<&str>)> = Vec::new();
    for line in CASES.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("# ")) {
        match line.strip_prefix("    ") {
            Some(effect) => cases.last_mut().expect("a script stands first").2.push(effect),
            None => {
                let (name, script) = line.split_once(": ").expect("a language stands first");
                cases.push((language(name), script.replace('⏎', "\n"), Vec::new()));
            }
        }
    }
    cases
}

#[test]
fn scripts_do_what_the_table_says() {
    let cases = cases();
    assert!(cases.len() > 60, "the table was not read");
    let mut wrong = String::new();
    for (language, script, wanted) in cases {
        let found = effects(language, &script);
        if found != wanted {
            wrong.push_str(&format!(
                "{language:?}: {script}\n    found  {found:#?}\n    wanted {wanted:#?}\n"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_prefix_of_every_script_is_read_without_panic() {
    for (language, script, _) in cases() {
        for (at, _) in script.char_indices() {
            let _ = effects(language, &script[..at]);
        }
    }
}

#[test]
fn deep_and_long_scripts_are_bounded() {
    const LANGUAGES: [Language; 8] = [
        Language::Python,
        Language::Perl,
        Language::Ruby,
        Language::JavaScript,
        Language::Php,
        Language::Awk,
        Language::Lua,
        Language::PowerShell,
    ];
    for piece in [
        "(",
        "[",
        "{",
        "f(",
        "\"",
        "a.b(",
        "'",
        "$",
        "`",
        "%",
        "eval('",
        "x=x+x\n",
        "%x(",
        "/",
        "-",
        "a+",
        "!",
        "a=\"b\" a a;",
    ] {
        let script = piece.repeat(20_000);
        for language in LANGUAGES {
            let _ = effects(language, &script);
        }
    }
}

#[test]
fn encoded_commands_of_powershell_are_read() {
    assert_eq!(decode_powershell("bABzAA==").as_deref(), Some("ls"));
    assert_eq!(decode_powershell("bABz"), None);
    assert_eq!(decode_powershell("???"), None);
}
