use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::tools::json::Duplicates;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    compile: Vec<Compile>,
    run: Vec<Run>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Compile {
    hook: Option<String>,
    #[serde(default)]
    condition: bool,
    text: String,
    reads: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    #[serde(default)]
    condition: bool,
    text: String,
    args: String,
    value: Option<String>,
    error: Option<String>,
    compile_error: Option<String>,
}

fn cases() -> Cases {
    toml::from_str(include_str!("../../../tests/cases/tools/condition.toml")).expect("cases are valid")
}

/// A call with these arguments and findings.
struct Call<'c>(&'c Document<'c>);

impl Inputs for Call<'_> {
    fn input(&self, variable: Variable) -> Input<'_> {
        match variable {
            Variable::Args | Variable::Findings => Input::Json(self.0),
            Variable::Hook | Variable::Tool | Variable::Message => Input::Text("exec"),
            _ => Input::Absent,
        }
    }
}

fn compile(text: &str, hook: Hook, condition: bool) -> Result<Expression, ExpressionError> {
    if condition { Expression::condition(text, hook) } else { Expression::compile(text, hook) }
}

fn document(text: &str) -> Document<'_> {
    Document::parse(text, Duplicates::Keep).expect("JSON")
}

#[test]
fn compiles_and_refuses() {
    for Compile { hook, condition, text, reads, error } in cases().compile {
        let hook = hook.map_or(Hook::ToolBefore, |hook| Hook::parse(&hook).expect("a hook"));
        let got = compile(&text, hook, condition);
        let got = got.map(|e| e.variables().map(Variable::as_str).collect::<Vec<_>>().join(" "));
        assert_eq!(
            got.map_err(|e| e.to_string()),
            error.map_or(Ok(reads.unwrap_or_default()), Err),
            "{text}"
        );
    }
}

#[test]
fn runs() {
    for Run { condition, text, args, value, error, compile_error } in cases().run {
        let args = document(&args);
        let expression = match compile(&text, Hook::ToolBefore, condition) {
            Ok(expression) => expression,
            Err(error) => {
                assert_eq!(Some(error.to_string()), compile_error, "{text}");
                continue;
            }
        };
        let call = Call(&args);
        let got = match condition {
            true => expression.holds(&call).map(|holds| holds.to_string()),
            false => expression.json(&call),
        };
        let wanted = error.map_or_else(|| Ok(value.expect("a value or an error")), Err);
        assert_eq!(got.map_err(|e| e.to_string()), wanted, "{text}");
    }
}

#[test]
fn only_the_members_that_are_named_are_converted() {
    let huge = format!("{{\"command\":\"ls\",\"content\":[{}1]}}", "1,".repeat(200_000));
    let huge = document(&huge);
    let value = |text: &str| compile(text, Hook::ToolBefore, false).expect("compiles").json(&Call(&huge));
    assert_eq!(value("args.command").as_deref(), Ok("\"ls\""));
    assert_eq!(value("args[\"command\"]").as_deref(), Ok("\"ls\""));
    assert_eq!(value("has(args.other)").as_deref(), Ok("false"));
    for whole in ["size(args)", "args.content.size()", "args.exists(k, k == \"command\")"] {
        assert!(matches!(value(whole), Err(EvalError::TooCostly(_))), "{whole}");
    }
}

/// Texts that make a recursive parser or an evaluator without limits work hard.
fn hostile() -> Vec<String> {
    let n = EXPRESSION_BYTES_MAX;
    let mut texts: Vec<String> =
        ["(", "[", "{", "!", "-", "a.", "a?", "1+", "a[", "has(", "{\"a\":", "\"", "'''"]
            .iter()
            .map(|piece| piece.repeat(n / piece.len()))
            .collect();
    for (open, core, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{\"a\":", "1", "}"),
        ("!(", "true", ")"),
        ("[1].map(x,", "1", ")"),
    ] {
        for depth in [5, 10, 11, 20, 22, 24, 30, 100, n / (open.len() + close.len() + 1)] {
            texts.push(format!("{}{core}{}", open.repeat(depth), close.repeat(depth)));
        }
    }
    for piece in ["+1", "==1", "&&true", "||true", ".a", "[0]", "?1:1", "-1", "<1", " in [1]", ".size()"] {
        for count in [10, 20, 22, 38, 100, 250, 299, 1000] {
            texts.push(format!("args.x{}", piece.repeat(count)));
        }
    }
    texts.extend(["-", "!"].map(|sign| format!("{}args.x", sign.repeat(290))));
    for piece in ["+1", "[0]", ".a", "?1:1"] {
        texts.push(format!("[1].exists(a, [1].exists(b, args.x{} == 0))", piece.repeat(15)));
        texts.push(format!("[1].map(a, [1].map(b, args.x{}))", piece.repeat(16)));
    }
    texts.push(format!("args.x{}", " ? true : args.x".repeat(140)));
    texts
}

#[test]
fn hostile_texts_and_inputs_end_soon_on_a_small_stack() {
    let run = || {
        let args = format!("{{\"x\":[{}0],\"s\":\"{}\"}}", "7,".repeat(40_000), "ab\\n".repeat(300_000));
        let args = document(&args);
        for text in hostile() {
            let started = Instant::now();
            if let Ok(expression) = compile(&text, Hook::ToolBefore, false) {
                let _ = expression.json(&Call(&args));
            }
            let shown: String = text.chars().take(40).collect();
            assert!(started.elapsed() < Duration::from_secs(20), "{shown} took {:?}", started.elapsed());
        }
        let deep = format!("{{\"x\":{}{}}}", "[".repeat(100), "]".repeat(100));
        let deep = document(&deep);
        let copied = compile("[args, args.x]", Hook::ToolBefore, false).expect("compiles").json(&Call(&deep));
        assert_eq!(copied, Err(EvalError::NotJson("is nested too deep")));
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).expect("a thread");
    thread.join().expect("no panic");
}

#[test]
fn cost_is_bounded() {
    let args = format!("{{\"x\":[{}0],\"s\":\"{}\"}}", "7,".repeat(40_000), "ab\\n".repeat(1_000_000));
    let args = document(&args);
    let costly = [
        "args.x.map(a, args.x.map(b, 1))",
        "args.x.exists(a, args.x.exists(b, false)) || true",
        "args.x.all(a, args.s.contains(\"zz\"))",
        "args.x.map(a, args.s + \"!\")",
        "args.s + args.s + args.s + args.s + args.s + args.s + args.s + args.s + args.s + args.s",
        "[args.s + args.s].map(s, s + s).map(s, s + s).map(s, s + s).map(s, s + s).map(s, s + s)",
        "[args.s + \"!\"].map(s, [s, s, s, s, s, s, s, s]).map(s, args.x.map(a, s))",
        "args.x.map(a, args.x)",
    ];
    for text in costly {
        let started = Instant::now();
        let got = compile(text, Hook::ToolBefore, false).expect(text).json(&Call(&args));
        assert!(matches!(got, Err(EvalError::TooCostly(_))), "{text}: {:?}", got.map(|v| v.len()));
        assert!(started.elapsed() < Duration::from_secs(20), "{text} took {:?}", started.elapsed());
    }
    let cheap =
        ["args.x.exists(a, a == 0)", "args.s.contains(\"b\\na\")", "size(args.x.filter(a, a > 0)) == 40000"];
    for text in cheap {
        assert_eq!(
            compile(text, Hook::ToolBefore, true).expect(text).holds(&Call(&args)),
            Ok(true),
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn any_text_compiles_or_has_a_place(text in "[a-z.()\\[\\]{}\"' 0-9=!<>&|+?:,x]{0,40}") {
        let args = document("{\"a\":1}");
        match Expression::compile(&text, Hook::ToolBefore) {
            Ok(expression) => drop(expression.json(&Call(&args))),
            Err(error) => prop_assert!(error.line >= 1 && error.column >= 1 && !error.what.is_empty()),
        }
    }

    #[test]
    fn scalars_come_out_as_they_went_in(n in any::<i64>(), s in "\\PC{0,12}") {
        let args = serde_json::json!({ "n": n, "s": s, "b": [n, s] }).to_string();
        let args = document(&args);
        let out = Expression::compile("args", Hook::ToolBefore).expect("compiles").json(&Call(&args));
        let out: serde_json::Value = serde_json::from_str(&out.expect("runs")).expect("JSON");
        prop_assert_eq!(out, serde_json::json!({ "n": n, "s": s, "b": [n, s] }));
    }
}
