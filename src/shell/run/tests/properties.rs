//! Properties: disguises keep what a command does, hostile texts end within their budget, the answer is always the same.

use super::{PLACE, check, run};
use crate::shell::limits::Limits;
use crate::shell::run::analyse;

/// A fixed sequence of numbers, so that a failure can be repeated.
pub(super) struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap()
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.next() % items.len()]
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = usize::try_from(bits >> (18 - 6 * at) & 63).unwrap();
            out.push(if at <= u32::try_from(chunk.len()).unwrap() { char::from(DIGITS[digit]) } else { '=' });
        }
    }
    out
}

/// Disguises of a simple command's words.
const WORDS: &[fn(&str) -> String] = &[
    |text| text.replacen("rm", "r''m", 1),
    |text| text.replacen("rm", "\\rm", 1),
    |text| text.replacen("rm", "$'\\x72\\x6d'", 1),
    |text| text.replacen("rm", "/bin/rm", 1),
    |text| text.replacen("rm", "$(echo rm)", 1),
    |text| text.replacen("rm", "`printf r%s m`", 1),
    |text| text.replacen("rm", "${none:-rm}", 1),
    |text| format!("c=rm; {}", text.replacen("rm", "$c", 1)),
    |text| text.replacen("/srv", "/s\"r\"v", 1),
    |text| text.replacen("/srv", "//srv/.", 1),
    |text| text.replacen("/srv", "/opt/../srv", 1),
    |text| format!("t=/srv; {}", text.replacen("/srv", "\"$t\"", 1)),
    |text| text.replace(' ', "   \t"),
    |text| text.replacen(" -rf", " \\\n -rf", 1),
    |text| text.replacen(" -rf", " -r\"\"f", 1),
];

/// Disguises of any command.
const WHOLE: &[fn(&str) -> String] = &[
    |text| format!("eval {}", quoted(text)),
    |text| format!("bash -c {}", quoted(text)),
    |text| format!("sh -lc {}", quoted(text)),
    |text| format!("bash --norc -euo pipefail -c {}", quoted(text)),
    |text| format!("sudo -u root bash -c {}", quoted(text)),
    |text| format!("env A=1 timeout 5 sh -c {}", quoted(text)),
    |text| format!("bash <<< {}", quoted(text)),
    |text| format!("bash <<'OUTER_END'\n{text}\nOUTER_END\n"),
    |text| format!("echo {} | sh", quoted(text)),
    |text| format!("printf %s {} | tee /dev/null | bash", quoted(text)),
    |text| format!("source <(echo {})", quoted(text)),
    |text| format!("echo {} | base64 -d | sh", base64(text)),
    |text| format!("bash -c \"$(base64 -d <<< {})\"", base64(text)),
    |text| format!("su root -c {}", quoted(text)),
    |text| format!("( {text}\n)"),
    |text| format!("{{ {text}\n}}"),
    |text| format!("if true; then {text}\nfi"),
    |text| format!("for i in 1 2; do {text}\ndone"),
    |text| format!("f() {{ {text}\n}}; f"),
    |text| format!("true && {{ {text}\n}}"),
    |text| format!("echo \"$({text}\n)\""),
    |text| format!("out=`echo ok`; {text}"),
    |text| format!("X={}; bash -c \"$X\"", quoted(text)),
    |text| format!("xargs -I_ sh -c {} <<< 1", quoted(text)),
    |text| format!("trap {} EXIT", quoted(text)),
    |text| format!("find . -maxdepth 0 -exec sh -c {} \\;", quoted(text)),
];

#[test]
fn three_disguises_in_any_order_keep_what_a_command_does() {
    let mut numbers = Numbers(7);
    let want = ["delete_path /srv recursive".to_owned()];
    let mut problems = Vec::new();
    for _ in 0..3000 {
        let mut text = "rm -rf /srv".to_owned();
        if !numbers.next().is_multiple_of(4) {
            text = numbers.pick(WORDS)(&text);
        }
        for _ in 0..3 {
            text = numbers.pick(WHOLE)(&text);
        }
        problems.extend(check(&text, &want, &[], &[], false));
    }
    assert!(
        problems.is_empty(),
        "{} problems\n{}",
        problems.len(),
        problems[..problems.len().min(10)].join("\n")
    );
}

#[test]
fn disguises_of_a_harmless_command_add_nothing() {
    let mut numbers = Numbers(11);
    for _ in 0..1500 {
        let mut text = "echo 'rm -rf /srv'".to_owned();
        for _ in 0..2 {
            text = numbers.pick(WHOLE)(&text);
        }
        // What is printed does not run, unless it is given to a shell again.
        let problems =
            check(&text, &[], &["delete_path".to_owned(), "suspicious_wrapper".to_owned()], &[], false);
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}

#[test]
fn any_text_ends_within_its_budget_and_gives_the_same_answer_twice() {
    const PIECES: &[&str] = &[
        "$(",
        ")",
        "`",
        "{",
        "}",
        "{a,b}",
        "((",
        "))",
        "[[",
        "]]",
        "<<E\n",
        "\nE\n",
        "<(",
        ">(",
        "'",
        "\"",
        "$",
        "${x:-",
        "${!x}",
        "${x//a/b}",
        "$x",
        "$@",
        "|",
        "&",
        "&&",
        "||",
        ";",
        ";;",
        "\n",
        "\\",
        "for x in ",
        "do ",
        "done",
        "if ",
        "then ",
        "fi",
        "case x in ",
        "esac",
        "f(){ ",
        "f",
        "eval ",
        "bash -c ",
        "echo ",
        "rm -rf /",
        "cat ",
        "xargs ",
        "base64 -d",
        "sudo ",
        "x=",
        "a=(",
        "set -- ",
        "\u{202e}",
        "é",
        "\0",
        "~",
        "*",
        "1>&2",
        ">f ",
        "<f ",
        "exec 5<>",
        "read x",
        "while ",
        "awk '{}'",
        "python -c 'os.system(\"x\")'",
        "find . -exec ",
        "trap ",
        "alias ",
        "mkfifo p",
        "printf '%s' ",
        "{1..99}",
    ];
    let limits = Limits { steps_max: 20_000, ..Limits::default() };
    let mut numbers = Numbers(3);
    for _ in 0..4000 {
        let text: String = (0..numbers.next() % 24).map(|_| *numbers.pick(PIECES)).collect();
        let first = analyse(&text, PLACE, &limits);
        assert_eq!(first, analyse(&text, PLACE, &limits), "{text:?}");
        for effect in &first.effects {
            assert!(
                effect.span.start <= effect.span.end && effect.span.end <= text.len(),
                "{text:?} {effect:?}"
            );
        }
        for unresolved in &first.unresolved {
            assert!(unresolved.span.end <= text.len(), "{text:?} {unresolved:?}");
        }
    }
}

#[test]
fn deep_and_large_texts_are_noted_not_followed() {
    let cases = [
        "$(".repeat(30_000),
        "{ ".repeat(30_000),
        "eval ".repeat(10_000),
        "sudo ".repeat(10_000),
        "{a,b}".repeat(10_000),
        "a|".repeat(30_000),
        "x=aaaaaaaa;".to_owned() + &"x=$x$x;".repeat(1_000),
        "f(){ g;g;}; g(){ h;h;}; h(){ i;i;}; i(){ j;j;}; j(){ k;k;}; k(){ l;l;}; l(){ a;a;};".to_owned()
            + &"f;".repeat(2_000),
        "for a in 1 2 3 4 5 6 7 8 9; do ".repeat(30) + "x" + &"; done".repeat(30),
        (0..2_000).map(|at| format!("echo a > f{at}; cat f{at};")).collect(),
        format!("x={}; {}", "a".repeat(2_000), "${x//[ab]/c}".repeat(2_000)),
        format!("set -- {}; {}", "a ".repeat(2_000), "\"$@\";".repeat(2_000)),
    ];
    for text in &cases {
        let analysis = run(text);
        assert!(analysis.effects.len() <= 10_000, "{}", &text[..40]);
    }
    assert!(run(&cases[0]).unresolved.iter().any(|u| u.cause.is_limit()));
    assert!(run(&cases[2]).unresolved.iter().any(|u| u.cause.is_limit()));
    assert!(run(&cases[4]).unresolved.iter().any(|u| u.cause.is_limit()));
    assert!(run(&cases[6]).unresolved.iter().any(|u| u.cause.is_limit()));
}

#[test]
fn a_function_that_starts_itself_beside_itself_is_a_bomb_under_any_name() {
    let mut numbers = Numbers(5);
    for _ in 0..200 {
        let name: String =
            (0..1 + numbers.next() % 6).map(|_| *numbers.pick(&['a', 'q', '_', 'z', 'k'])).collect();
        let body =
            numbers.pick(&["N|N &", "N & N", "N | N", "N | cat & N", "(N &) ; N &"]).replace('N', &name);
        let definition = numbers.pick(&["N(){ B\n}; N", "N ()\n{\nB\n}\nN", "function N { B\n}; N"]);
        let text = definition.replace('B', "\u{1}").replace('N', &name).replace('\u{1}', &body);
        assert!(check(&text, &["fork_bomb".to_owned()], &[], &[], false).is_empty(), "{text:?}");
    }
}
