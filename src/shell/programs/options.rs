//! Command-line options as programs read them: bundled short options, values, `--name=value`, shortened long names, `--`.

use super::super::argument::Argument;

/// How a program's options are spelt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grammar {
    /// Short options that take a value, attached or as the next argument.
    pub short_values: &'static str,
    /// Short options whose value must be attached (`-i.bak`); without one they have none.
    pub short_attached: &'static str,
    /// Long names: `name` has no value, `name=` must have one, `name=?` may have one behind `=`.
    pub long: &'static [&'static str],
    /// Options end at the first operand, as for programs that run another one or have sub-commands.
    pub stops_at_operand: bool,
    /// Long names may stand behind a single dash, and short options are not bundled (`-out file`, `-rf` is not `-r -f`).
    pub single_dash_long: bool,
}

/// An option as given.
#[derive(Clone, Debug)]
pub(super) struct Given<'a> {
    /// A long name in full, or one character.
    pub name: &'a str,
    /// Its value.
    pub value: Option<Argument>,
}

/// Options and operands of a command line.
#[derive(Clone, Debug, Default)]
pub(super) struct Options<'a> {
    /// Options in order.
    pub given: Vec<Given<'a>>,
    /// Operands in order.
    pub operands: Vec<&'a Argument>,
    /// What begins with the first operand, for programs with sub-commands.
    pub rest: &'a [Argument],
}

impl<'a> Options<'a> {
    /// Reads the arguments after the program's name.
    pub fn parse(arguments: &'a [Argument], grammar: &Grammar) -> Self {
        let mut options = Self::default();
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            let text = argument.text.as_str();
            at += 1;
            if text == "--" {
                options.rest = &arguments[at..];
                options.operands.extend(options.rest);
                return options;
            }
            let long = text.strip_prefix("--").or_else(|| {
                let name = text.strip_prefix('-')?;
                (grammar.single_dash_long && name.len() > 1).then_some(name)
            });
            if let Some(long) = long {
                at += options.long(argument, long, arguments.get(at), grammar);
            } else if text.len() > 1 && text.starts_with('-') {
                at += options.short(argument, arguments.get(at), grammar);
            } else {
                if options.operands.is_empty() {
                    options.rest = &arguments[at - 1..];
                }
                if grammar.stops_at_operand {
                    options.operands.extend(options.rest);
                    return options;
                }
                options.operands.push(argument);
            }
        }
        options
    }

    /// Takes one long option; returns how many further arguments were its value.
    fn long(
        &mut self,
        argument: &Argument,
        text: &'a str,
        next: Option<&Argument>,
        grammar: &Grammar,
    ) -> usize {
        let (typed, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(part(argument, value))),
            None => (text, None),
        };
        let (name, takes) = resolve(typed, grammar.long);
        if attached.is_none() && takes == Takes::Value {
            self.given.push(Given { name, value: next.cloned() });
            return usize::from(next.is_some());
        }
        self.given.push(Given { name, value: attached });
        0
    }

    /// Takes a bundle of short options; returns how many further arguments were a value.
    fn short(&mut self, argument: &'a Argument, next: Option<&Argument>, grammar: &Grammar) -> usize {
        let bundle = &argument.text[1..];
        for (start, letter) in bundle.char_indices() {
            let end = start + letter.len_utf8();
            let name = &bundle[start..end];
            let rest = &bundle[end..];
            let attached = (!rest.is_empty()).then(|| part(argument, rest));
            if grammar.short_values.contains(letter) {
                let consumed = usize::from(attached.is_none() && next.is_some());
                self.given.push(Given { name, value: attached.or_else(|| next.cloned()) });
                return consumed;
            }
            if grammar.short_attached.contains(letter) {
                self.given.push(Given { name, value: attached });
                return 0;
            }
            self.given.push(Given { name, value: None });
        }
        0
    }

    /// Whether one of the options was given.
    pub fn has(&self, names: &[&str]) -> bool {
        self.given.iter().any(|given| names.contains(&given.name))
    }

    /// Value of the last of these options that has one.
    pub fn value(&self, names: &[&str]) -> Option<&Argument> {
        self.given
            .iter()
            .rev()
            .filter(|given| names.contains(&given.name))
            .find_map(|given| given.value.as_ref())
    }

    /// Values of these options, in order.
    pub fn values<'s>(&'s self, names: &'s [&str]) -> impl Iterator<Item = &'s Argument> {
        self.given.iter().filter(move |given| names.contains(&given.name)).filter_map(|g| g.value.as_ref())
    }

    /// Text of an operand; empty when there is none.
    pub fn operand(&self, index: usize) -> &'a str {
        self.operands.get(index).map_or("", |operand| operand.text.as_str())
    }
}

/// Whether a long option takes a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
}

/// The full name of a long option, which may be shortened as far as it stays unambiguous. What several names fit is an
/// error for the program; the first is taken, so that nothing is missed.
fn resolve<'a>(typed: &'a str, known: &[&'static str]) -> (&'a str, Takes) {
    let split = |entry: &'static str| match entry.split_once('=') {
        Some((name, "")) => (name, Takes::Value),
        Some((name, _)) => (name, Takes::Nothing),
        None => (entry, Takes::Nothing),
    };
    let exact = known.iter().map(|entry| split(entry)).find(|(name, _)| *name == typed);
    let shortened = || {
        let mut fits = known.iter().map(|entry| split(entry)).filter(|(name, _)| name.starts_with(typed));
        fits.next().filter(|_| !typed.is_empty())
    };
    exact.or_else(shortened).unwrap_or((typed, Takes::Nothing))
}

/// A part of an argument as an argument of its own.
pub(super) fn part(argument: &Argument, text: &str) -> Argument {
    argument.with_text(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&str]) -> Vec<Argument> {
        words.iter().map(|word| Argument { text: (*word).to_owned(), ..Argument::default() }).collect()
    }

    const GRAMMAR: Grammar = Grammar {
        short_values: "o",
        short_attached: "i",
        long: &["recursive", "reference=", "color=?", "no-preserve-root"],
        stops_at_operand: false,
        single_dash_long: false,
    };

    /// Words, then options as `name` or `name=value`, then operands.
    const CASES: &[(&[&str], &[&str], &[&str])] = &[
        (&["-rf", "a"], &["r", "f"], &["a"]),
        (&["a", "-r", "--", "-f"], &["r"], &["a", "-f"]),
        (&["-o", "x", "-oy"], &["o=x", "o=y"], &[]),
        (&["-vox"], &["v", "o=x"], &[]),
        (&["-i", "a", "-i.bak"], &["i", "i=.bak"], &["a"]),
        (&["--recurs", "--ref", "m", "f"], &["recursive", "reference=m"], &["f"]),
        (&["--color", "f", "--color=no"], &["color", "color=no"], &["f"]),
        (&["--no-pres", "--unheard=1", "-"], &["no-preserve-root", "unheard=1"], &["-"]),
        (&["-o"], &["o"], &[]),
    ];

    #[test]
    fn options_are_read_as_programs_read_them() {
        for (words, wanted, operands) in CASES {
            let argv = argv(words);
            let options = Options::parse(&argv, &GRAMMAR);
            let given: Vec<String> = options
                .given
                .iter()
                .map(|g| g.value.as_ref().map_or(g.name.to_owned(), |v| format!("{}={}", g.name, v.text)))
                .collect();
            assert_eq!(given, *wanted, "{words:?}");
            let left: Vec<&str> = options.operands.iter().map(|o| o.text.as_str()).collect();
            assert_eq!(left, *operands, "{words:?}");
        }
    }

    #[test]
    fn a_sub_command_keeps_its_own_options() {
        let argv = argv(&["-o", "x", "sub", "-r", "y"]);
        let grammar = Grammar { stops_at_operand: true, ..GRAMMAR };
        let options = Options::parse(&argv, &grammar);
        assert_eq!(options.rest.len(), 3);
        assert_eq!(options.operand(0), "sub");
        assert!(!options.has(&["r"]));
    }

    #[test]
    fn a_single_dash_may_carry_a_long_name() {
        let argv = argv(&["-reference", "x", "-recursive", "y"]);
        let grammar = Grammar { single_dash_long: true, ..GRAMMAR };
        let options = Options::parse(&argv, &grammar);
        assert_eq!(options.value(&["reference"]).map(|v| v.text.as_str()), Some("x"));
        assert!(options.has(&["recursive"]));
        assert_eq!(options.operand(0), "y");
    }
}
