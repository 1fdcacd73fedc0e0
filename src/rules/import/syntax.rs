//! A regular expression of Go in the syntax of rules.
//!
//! Both are RE2 and differ in corners. A brace of Go that repeats nothing, and `[ & ~ -` in a class, stand for themselves, octal
//! escapes and `\Q…\E` are read, and `.` and classes are of code points, where a rule reads bytes unless it says `(?u:…)`. What
//! Go calls `\d`, `\w` and `\s` is ASCII and stays so. Names of groups mean nothing to a scanner and are left out.
//!
//! What neither understands is passed on as it is, for the parser to refuse.

use std::fmt::Write as _;

/// Names of classes between `[:` and `:]`.
const NAMED: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// The expression in the syntax of rules.
pub(super) fn translate(regex: &str) -> Result<String, String> {
    let mut reader = Reader { rest: regex, out: String::new(), folds: folds_case(regex) };
    while let Some(next) = reader.rest.chars().next() {
        reader.step(next)?;
    }
    Ok(reader.out)
}

/// Whether a flag asks it to fold letters somewhere.
fn folds_case(regex: &str) -> bool {
    regex.split("(?").skip(1).any(|behind| {
        let flags = behind.split(|c: char| c != '-' && !c.is_ascii_alphabetic()).next();
        flags.is_some_and(|flags| flags.contains('i'))
    })
}

struct Reader<'r> {
    rest: &'r str,
    out: String,
    /// Whether letters of other scripts have to be asked to fold.
    folds: bool,
}

impl<'r> Reader<'r> {
    fn step(&mut self, next: char) -> Result<(), String> {
        match next {
            '\\' => return self.escape(),
            '[' => return self.class(),
            '.' => self.out.push_str("(?u:.)"),
            '{' => match repetition(self.rest) {
                Some(written) => {
                    self.out.push_str(written);
                    self.rest = &self.rest[written.len()..];
                    return Ok(());
                }
                None => self.out.push_str(r"\{"),
            },
            '(' => {
                self.rest = &self.rest[name_of_group(self.rest)..];
                self.out.push('(');
                return Ok(());
            }
            other if other.is_ascii() => self.out.push(other),
            other => self.letter(other),
        }
        self.take(next.len_utf8());
        Ok(())
    }

    fn take(&mut self, bytes: usize) -> &'r str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    /// Writes a character that stands for itself.
    fn letter(&mut self, letter: char) {
        match letter {
            letter if letter.is_ascii() => write_in_class(&mut self.out, letter),
            letter if self.folds => {
                let _ = write!(self.out, "(?u:{letter})");
            }
            letter => self.out.push(letter),
        }
    }

    /// An escape outside of a class.
    fn escape(&mut self) -> Result<(), String> {
        if let Some(rest) = self.rest.strip_prefix(r"\Q") {
            let (quoted, rest) = rest.split_once(r"\E").unwrap_or((rest, ""));
            quoted.chars().for_each(|letter| match letter.is_ascii() {
                true => self.out.push_str(&regex_syntax::escape(letter.encode_utf8(&mut [0; 4]))),
                false => self.letter(letter),
            });
            self.rest = rest;
            return Ok(());
        }
        if let Some(property) = property(self.rest) {
            let _ = write!(self.out, "(?u:{property})");
            self.take(property.len());
            return Ok(());
        }
        match escaped(self.rest)? {
            Some((letter, len)) => {
                match letter.is_ascii_punctuation() {
                    true => self.out.push_str(&regex_syntax::escape(letter.encode_utf8(&mut [0; 4]))),
                    false => self.letter(letter),
                }
                self.take(len);
            }
            None => {
                let next = self.rest[1..].chars().next().ok_or("a backslash ends it")?;
                match perl(next) {
                    Some(bytes) if next.is_ascii_uppercase() => {
                        let _ = write!(self.out, "(?u:[^{bytes}])");
                    }
                    _ => {
                        self.out.push('\\');
                        self.out.push(next);
                    }
                }
                self.take(1 + next.len_utf8());
            }
        }
        Ok(())
    }

    /// A class, from its bracket on.
    fn class(&mut self) -> Result<(), String> {
        self.take(1);
        let is_negated = self.rest.starts_with('^');
        self.take(usize::from(is_negated));
        let mut items = Vec::new();
        while items.is_empty() || !self.rest.starts_with(']') {
            let item = self.item()?;
            items.push(item);
        }
        self.take(1);
        let is_wide = is_negated || items.iter().any(Item::is_wide);
        self.out.push_str(if is_wide { "(?u:[" } else { "[" });
        if is_negated {
            self.out.push('^');
        }
        items.iter().for_each(|item| item.write(&mut self.out, is_wide));
        self.out.push_str(if is_wide { "])" } else { "]" });
        Ok(())
    }

    fn item(&mut self) -> Result<Item<'r>, String> {
        if let Some((name, _)) = self.rest.strip_prefix("[:").and_then(|rest| rest.split_once(":]")) {
            let plain = name.strip_prefix('^').unwrap_or(name);
            if !NAMED.contains(&plain) {
                return Err(format!("there is no class `[:{plain}:]`"));
            }
            return Ok(Item::Named(self.take(name.len() + 4)));
        }
        if let Some(property) = property(self.rest) {
            return Ok(Item::Property(self.take(property.len())));
        }
        if let Some(rest) = self.rest.strip_prefix('\\')
            && let Some(kind) = rest.chars().next().filter(|kind| perl(*kind).is_some())
        {
            self.take(2);
            return Ok(Item::Perl(kind));
        }
        let first = self.letter_of_class()?;
        let mut last = first;
        if self.rest.starts_with('-') && !self.rest[1..].is_empty() && !self.rest.starts_with("-]") {
            self.take(1);
            last = self.letter_of_class()?;
        }
        Ok(Item::Range(first, last))
    }

    fn letter_of_class(&mut self) -> Result<char, String> {
        let next = self.rest.chars().next().ok_or("a class is not closed")?;
        if next != '\\' {
            self.take(next.len_utf8());
            return Ok(next);
        }
        let Some((letter, len)) = escaped(self.rest)? else {
            let name: String = self.rest.chars().take(2).collect();
            return Err(format!("`{name}` is no escape of a class"));
        };
        self.take(len);
        Ok(letter)
    }
}

/// What stands in a class.
enum Item<'r> {
    Range(char, char),
    /// `\d` and its kin.
    Perl(char),
    /// `[:alpha:]`
    Named(&'r str),
    /// `\pL`
    Property(&'r str),
}

impl Item<'_> {
    /// Whether it holds more than ASCII.
    fn is_wide(&self) -> bool {
        match self {
            Self::Range(_, last) => !last.is_ascii(),
            Self::Perl(kind) => kind.is_ascii_uppercase(),
            Self::Named(name) => name.starts_with("[:^"),
            Self::Property(_) => true,
        }
    }

    fn write(&self, out: &mut String, is_wide: bool) {
        match self {
            Self::Range(first, last) => {
                write_in_class(out, *first);
                if first != last {
                    out.push('-');
                    write_in_class(out, *last);
                }
            }
            Self::Perl(kind) => match perl(*kind).filter(|_| is_wide) {
                Some(bytes) if kind.is_ascii_uppercase() => {
                    let _ = write!(out, "[^{bytes}]");
                }
                Some(bytes) => out.push_str(bytes),
                None => {
                    let _ = write!(out, "\\{kind}");
                }
            },
            Self::Named(text) | Self::Property(text) => out.push_str(text),
        }
    }
}

/// Writes a character so that it stands for itself in a class; outside of one, what is no punctuation does too.
fn write_in_class(out: &mut String, letter: char) {
    match letter {
        '[' | ']' | '\\' | '^' | '-' | '&' | '~' => out.extend(['\\', letter]),
        '\n' => out.push_str(r"\n"),
        '\r' => out.push_str(r"\r"),
        '\t' => out.push_str(r"\t"),
        control if control.is_control() => {
            let _ = write!(out, "\\x{{{:x}}}", u32::from(control));
        }
        other => out.push(other),
    }
}

/// The ASCII that `\d` and its kin stand for, or leave out.
fn perl(kind: char) -> Option<&'static str> {
    match kind {
        'd' | 'D' => Some("0-9"),
        'w' | 'W' => Some("0-9A-Za-z_"),
        's' | 'S' => Some(r"\t\n\x0C\r "),
        _ => None,
    }
}

/// A repetition such as `{2,5}` at the beginning of a text. Go reads none into a number that begins with a needless zero.
fn repetition(text: &str) -> Option<&str> {
    let end = text.find('}')?;
    let inner = &text[1..end];
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let is_number = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && (text.len() == 1 || !text.starts_with('0'))
    };
    (is_number(least) && (most.is_empty() || is_number(most))).then(|| &text[..=end])
}

/// How many bytes of a group's beginning are its parenthesis and its name.
fn name_of_group(text: &str) -> usize {
    let Some(rest) = ["(?P<", "(?<"].iter().find_map(|begin| text.strip_prefix(begin)) else { return 1 };
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    rest.split_once('>').filter(|(name, _)| is_name(name)).map_or(1, |(_, behind)| text.len() - behind.len())
}

/// `\pL`, `\p{Greek}` or the like at the beginning of a text.
fn property(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(r"\p").or_else(|| text.strip_prefix(r"\P"))?;
    let len = match rest.strip_prefix('{') {
        Some(named) => named.find('}')? + 2,
        None => rest.chars().next()?.len_utf8(),
    };
    Some(&text[..2 + len])
}

/// The character that an escape at the beginning of a text stands for, and how long the escape is; none where it stands for
/// something else.
fn escaped(text: &str) -> Result<Option<(char, usize)>, String> {
    let rest = &text[1..];
    let Some(next) = rest.chars().next() else { return Err("a backslash ends it".to_owned()) };
    let plain = |letter: char| Ok(Some((letter, 2)));
    match next {
        'a' => plain('\x07'),
        'f' => plain('\x0C'),
        'n' => plain('\n'),
        'r' => plain('\r'),
        't' => plain('\t'),
        'v' => plain('\x0B'),
        'x' => hexadecimal(rest)
            .map(|(letter, len)| Some((letter, len + 1)))
            .ok_or_else(|| "`\\x` names no character".to_owned()),
        '0'..='7' => {
            let digits: String =
                rest.chars().take(3).take_while(|digit| matches!(digit, '0'..='7')).collect();
            if next != '0' && digits.len() == 1 {
                return Err(format!("`\\{next}` refers back, which cannot be"));
            }
            let letter = u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32);
            Ok(letter.map(|letter| (letter, 1 + digits.len())))
        }
        other if other.is_ascii_punctuation() => plain(other),
        _ => Ok(None),
    }
}

/// The character of `x41` or `x{41}` at the beginning of a text, and how long that is.
fn hexadecimal(text: &str) -> Option<(char, usize)> {
    let rest = text.strip_prefix('x')?;
    let (digits, len) = match rest.strip_prefix('{') {
        Some(inner) => inner.split_once('}').map(|(digits, _)| (digits, digits.len() + 3))?,
        None => (rest.get(..2)?, 3),
    };
    let is_hex = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let letter = is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten().and_then(char::from_u32)?;
    Some((letter, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go reads, what it matches and what it does not.
    const READ: &[(&str, &[&str], &[&str])] = &[
        (r"^\$(?:\d+|{\d+})$", &["$1", "${12}"], &["${x}", "$"]),
        (r"^\${{ *a *}}$", &["${{ a }}"], &["$a"]),
        (r"^a{,2}b{02}c{1,}d{2}$", &["a{,2}b{02}ccdd"], &["aab02cdd", "abcdd"]),
        (r#"^[^\s"[{]{2}$"#, &["ab", "äß"], &["a[", "a{", "a ", "a\""]),
        (r"^[a[b&&c]+$", &["a[b&c"], &["ad", "]"]),
        (r"^[a-z&&b]+$", &["q&b"], &["A"]),
        (r"^[a-z--]+[~~a]$", &["abc-~"], &["abc-b"]),
        (r"^[]a-f]+$", &["]af"], &["g"]),
        (r"^[^]a]$", &["b"], &["]", "a"]),
        (r"^[\w--a]+$", &["x-.0a"], &[","]),
        (r"^[\w-.]+$", &["x-."], &[","]),
        (r"^[\d\-.\]]+$", &["1-.]"], &["a"]),
        (r"^a\Q(a.b)[\Ec$", &["a(a.b)[c"], &["aaxb"]),
        (r"^\Qa.b", &["a.b"], &["axb"]),
        (r"^\x41\x{42}\103\0$", &["ABC\0"], &["ABC"]),
        (r"^[\x41\102-D\0]+$", &["ABCD\0"], &["E"]),
        (r"^a\/b\-\_\@\#\%\<\>$", &["a/b-_@#%<>"], &["a"]),
        (r"^.{3}[^a]z\S\W\D$", &["äöüßzäöü"], &["äöüßzä1", "abcazbc?", "\nbcdzb??"]),
        (r"^[äöü]{2}ß?\pL\p{Greek}$", &["äüaα", "äüßéω"], &["äaα"]),
        (r"^[\s\S-]{3}$", &["a\nü"], &["ab"]),
        (r"(?i)^ключ[а-я]$", &["КЛЮЧи", "ключИ"], &["ключz"]),
        (r"^[[:alpha:][:^space:]]+$", &["aä1"], &["a b"]),
        (r"^[[:alpha:]-]+$", &["a-b"], &["a1"]),
        (r"^[[:a]+$", &["[:a"], &["b"]),
        (r"^(?P<value>a)(?P<span>b)(?<x>c)(?P<x>d)$", &["abcd"], &["abc"]),
        (r"^\w\b.\B$", &["a "], &["ä ", "aa"]),
        (r"(?U)^a+?\z", &["aa"], &["b"]),
        (r"(?s)^.$", &["\n", "ü"], &["ab"]),
        (r"\A[\t\n\f\r\a\v ]\t$", &["\x0B\t"], &["b\t"]),
    ];

    #[test]
    fn it_matches_what_go_matches() {
        for (regex, matched, others) in READ {
            let text = translate(regex).unwrap_or_else(|error| panic!("{regex}: {error}"));
            let built = regex_automata::meta::Regex::builder()
                .syntax(regex_automata::util::syntax::Config::new().unicode(false).utf8(false))
                .build(&text)
                .unwrap_or_else(|error| panic!("{regex} became {text}: {error:?}"));
            for text in *matched {
                assert!(built.is_match(text), "{regex} and {text:?}");
            }
            for text in *others {
                assert!(!built.is_match(text), "{regex} and {text:?}");
            }
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for regex in [r"a\1", r"[a", r"[[:alfa:]]", r"\x{110000}", r"\xg0", r"[\z]", "a\\"] {
            assert!(translate(regex).is_err(), "{regex}");
        }
    }

    #[test]
    fn what_means_the_same_stays() {
        for regex in
            [r#"(?i)\b(?:ab|cd)[\w.-]{0,20}?[=:]\s{0,4}["']?([a-z0-9]{20})\b"#, r"key_[0-9a-f]{32,}(?:\s|$)"]
        {
            assert_eq!(translate(regex), Ok(regex.replace(".-]", r".\-]")));
        }
    }
}
