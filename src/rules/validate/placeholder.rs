//! Values that stand for a value: masks, samples, templates, references and other code.

/// Words that only people who write documentation put into a credential.
const SAMPLE_WORDS: &[&str] = &[
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "changeit",
    "replaceme",
    "replace_me",
    "replace-me",
    "replace_with",
    "replace-with",
    "redacted",
    "dummy",
    "goes-here",
    "goes_here",
    "goeshere",
    "goes here",
    "insert-",
    "insert_",
    "your-",
    "your_",
    "yourapi",
    "yourkey",
    "yoursecret",
    "yourtoken",
    "yourpassword",
    "your.",
    "my-api-key",
    "my_api_key",
    "myapikey",
    "fixme",
    "put-your",
    "put_your",
    "enter-your",
    "enter_your",
    "some-key",
    "some_key",
    "fake-",
    "fake_",
    "not-a-real",
    "notreal",
    "not_real",
    "test-key",
    "test_key",
    "testkey",
    "sample",
    "masked",
    "xxxx",
    "****",
    "....",
    "••••",
    "____",
    "-here",
    "_here",
    "todo",
    "undefined",
    "foobar",
    "foo-bar",
    "foo_bar",
];

/// Whole values that are no secret.
const SAMPLE_VALUES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "apikey",
    "api_key",
    "api-key",
    "none",
    "null",
    "nil",
    "true",
    "false",
    "string",
    "str",
    "bytes",
    "text",
    "value",
    "required",
    "optional",
    "default",
    "empty",
    "unknown",
    "hidden",
    "credentials",
    "username",
    "user",
    "login",
    "test",
    "testing",
    "mysecret",
    "mypassword",
    "my-secret",
    "my_secret",
    "mytoken",
    "abc123",
    "abcdef",
    "foo",
    "bar",
    "baz",
    "foobar",
    "asdf",
    "asdfasdf",
    "qwerty",
    "admin",
    "root",
    "postgres",
    "guest",
    "secretpassword",
    "supersecret",
    "topsecret",
    "super-secret",
    "super_secret",
    "disabled",
    "enabled",
    "localhost",
    "development",
    "production",
    "staging",
    "environment",
    "encrypted",
    "protected",
    "private",
    "public",
    "bearer",
    "basic",
    "n/a",
    "tbd",
    "nan",
];

/// Words that only samples and tests put into a credential, when nothing but these and [`PLAIN_PARTS`] is in it.
const SAMPLE_PARTS: &[&str] = &[
    "test", "tests", "testing", "tester", "fake", "demo", "example", "dummy", "sample", "mock", "my", "your",
    "not", "here", "dev", "local", "invalid", "wrong", "some", "stub", "only",
];

/// Words that join them.
const PLAIN_PARTS: &[&str] = &[
    "a",
    "an",
    "the",
    "is",
    "this",
    "for",
    "of",
    "and",
    "to",
    "no",
    "super",
    "very",
    "secret",
    "secrets",
    "password",
    "passwd",
    "pass",
    "pwd",
    "token",
    "key",
    "api",
    "apikey",
    "user",
    "value",
    "real",
    "use",
    "used",
    "in",
    "ci",
    "db",
    "database",
    "app",
    "access",
    "auth",
    "private",
    "client",
    "goes",
    "enter",
    "put",
    "prod",
    "production",
];

/// Most letters of a value that is read as words.
const PARTS_LETTERS_MAX: usize = 48;
/// Longest number between or behind such words.
const PARTS_DIGITS_MAX: usize = 6;

/// Whether `value` consists of words that samples and tests are made of, and of signs and short numbers between them.
fn is_of_sample_words(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    if lower.len() > 2 * PARTS_LETTERS_MAX || !lower.is_ascii() {
        return false;
    }
    let runs = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let parts = runs.flat_map(|run| run.split_inclusive(|c: char| c.is_ascii_digit()));
    let (mut has_sample, mut digits) = (false, 0);
    for part in parts {
        let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
        digits = if word.is_empty() { digits + part.len() } else { part.len() - word.len() };
        let Some(is_sample) = reads_as_words(word).filter(|_| digits <= PARTS_DIGITS_MAX) else {
            return false;
        };
        has_sample |= is_sample;
    }
    has_sample
}

/// Whether a run of letters is made of these words, and if so, whether one of them is of samples.
fn reads_as_words(letters: &str) -> Option<bool> {
    // For each place: whether words end there, and whether one of them is of samples.
    let mut ends = [None; PARTS_LETTERS_MAX + 1];
    if letters.len() > PARTS_LETTERS_MAX {
        return None;
    }
    ends[0] = Some(false);
    for at in 0..letters.len() {
        let Some(so_far) = ends[at] else { continue };
        for (words, is_sample) in [(SAMPLE_PARTS, true), (PLAIN_PARTS, false)] {
            for word in words.iter().filter(|word| letters[at..].starts_with(**word)) {
                let end = &mut ends[at + word.len()];
                *end = Some(end.unwrap_or(false) | so_far | is_sample);
            }
        }
    }
    ends[letters.len()]
}

/// Whether `value` stands for a value somebody else is to fill in, or was taken out.
pub(super) fn is_placeholder(value: &str) -> bool {
    let trimmed = value.trim_matches(|c: char| "\"'` \t;,".contains(c));
    let lower = trimmed.to_ascii_lowercase();
    is_filler(trimmed)
        || SAMPLE_VALUES.contains(&lower.as_str())
        || is_template(trimmed)
        || is_redacted(trimmed)
        || sequence_chars(&lower) * 10 >= lower.len() * 6
}

/// Whether `value` is a usual default word once look-alikes are read as the letters they stand for, or words of samples.
pub(super) fn is_default_word(value: &str) -> bool {
    let unmasked: String = value
        .chars()
        .map(|c| match c {
            '0' => 'o',
            '1' | '!' => 'i',
            '3' => 'e',
            '4' | '@' => 'a',
            '5' | '$' => 's',
            '7' => 't',
            other => other.to_ascii_lowercase(),
        })
        .collect();
    // In some languages a leading dollar sign is no letter but begins the name of a variable.
    let is_known = |word: &str| SAMPLE_VALUES.contains(&word);
    is_known(&unmasked)
        || (value.starts_with('$') && is_known(&unmasked[1..]))
        || is_of_sample_words(value)
        || is_of_sample_words(&unmasked)
}

/// Whether `value` is masked, filled with few characters, or says that it is a sample.
pub(super) fn is_filler(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let mut seen = [false; 256];
    for byte in lower.bytes() {
        seen[usize::from(byte)] = true;
    }
    let distinct = seen.iter().filter(|seen| **seen).count();
    lower.is_empty()
        || (lower.len() >= 3 && distinct <= 1)
        || (lower.len() >= 5 && distinct <= 2)
        || (lower.len() >= 8 && distinct <= 3)
        || (lower.len() >= 24 && distinct <= 5)
        || longest_run(&lower) >= 7
        || SAMPLE_WORDS.iter().any(|word| lower.contains(word))
}

/// Whether `value` is filled in later: `<token>`, `${TOKEN}`, `{{ token }}`, `$TOKEN`, `%TOKEN%`, `%s`.
fn is_template(value: &str) -> bool {
    // What stands inside is a name or a short expression; a password may hold the signs of a template by chance.
    let is_expression = |inner: &str| !inner.contains(['$', '{', '}', '[', ']', '<', '>']);
    let encloses = |open: &str, close: &str| {
        value
            .split_once(open)
            .and_then(|(_, rest)| rest.split_once(close))
            .is_some_and(|(inner, _)| is_expression(inner))
    };
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    encloses("${", "}")
        || encloses("$(", ")")
        || encloses("{{", "}}")
        || encloses("#{", "}")
        || encloses("@{", "}")
        || encloses("<%", "%>")
        || (value.starts_with('<') && value.ends_with('>'))
        || (value.starts_with('{') && value.ends_with('}') && value.len() < 60)
        || (value.len() > 2 && value.starts_with('@') && value.ends_with('@'))
        || value
            .strip_prefix('$')
            .is_some_and(|name| is_name(name) && name.bytes().all(|b| !b.is_ascii_lowercase()))
        || value.strip_prefix('%').and_then(|rest| rest.strip_suffix('%')).is_some_and(is_name)
        || matches!(value, "%s" | "%d" | "%v" | "{}" | "?" | ":password" | "$1" | "$2")
}

/// Whether `value` is what a redactor leaves: `[SECRET_1]`, `[REDACTED]`, `<hidden>`.
fn is_redacted(value: &str) -> bool {
    value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(|name| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b"_ -:".contains(&b))
    })
}

/// The longest row of one repeated byte.
fn longest_run(value: &str) -> usize {
    let (mut longest, mut row, mut last) = (0, 0, None);
    for byte in value.bytes() {
        row = if Some(byte) == last { row + 1 } else { 1 };
        last = Some(byte);
        longest = longest.max(row);
    }
    longest
}

/// Longest row in order that chance explains: six of base62 in a row come up once in twenty million places.
const CHANCE_ROW_MAX: usize = 5;

/// Whether `value` holds a row of characters in order that is too long for chance, or is to three tenths such rows.
pub(super) fn is_in_order(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let (total, longest) = rows_in_order(&lower);
    longest > CHANCE_ROW_MAX || total * 10 >= lower.len().max(1) * 3
}

/// How many characters stand in rows of at least four that count up or down: `abcd`, `6543`.
fn sequence_chars(value: &str) -> usize {
    rows_in_order(value).0
}

/// Characters in all rows of at least four that count up or down, and the length of the longest of them.
fn rows_in_order(value: &str) -> (usize, usize) {
    let bytes = value.as_bytes();
    let (mut total, mut longest, mut start) = (0, 0, 0);
    for at in 1..=bytes.len() {
        let continues = bytes.get(at).is_some_and(|byte| {
            let step = i16::from(*byte) - i16::from(bytes[at - 1]);
            let is_wrapped = bytes[at - 1] == b'9' && *byte == b'0';
            let was =
                if at - start >= 2 { i16::from(bytes[start + 1]) - i16::from(bytes[start]) } else { step };
            byte.is_ascii_alphanumeric() && ((step.abs() == 1 && step == was) || is_wrapped)
        });
        if !continues {
            if at - start >= 4 {
                total += at - start;
                longest = longest.max(at - start);
            }
            start = at;
        }
    }
    (total, longest)
}

/// Beginnings of values that are read from somewhere else.
const LOOKUPS: &[&str] = &[
    "process.env",
    "os.environ",
    "os.getenv",
    "getenv",
    "env.",
    "env[",
    "env(",
    "secrets.",
    "config.",
    "config[",
    "settings.",
    "self.",
    "this.",
    "vault.",
    "vars.",
    "var.",
    "local.",
    "data.",
    "params.",
    "request.",
    "req.",
    "args.",
    "options.",
    "opts.",
    "props.",
    "ctx.",
    "context.",
    "system.",
    "deno.env",
    "import.meta",
    "std::env",
    "new ",
    "await ",
    "function",
    "lambda",
    "async ",
    "return",
    "ref:",
    "file:",
    "arn:aws",
    "/run/secrets",
    "!ref",
    "!sub",
    "!getatt",
    "random_password",
    "module.",
    "output.",
    "inputs.",
    "matrix.",
    "steps.",
    "github.",
    "node.",
    "values.",
    "http://",
    "https://",
];

/// Whether `value` is code or a reference: member access, call, lookup, path, URL.
///
/// `after` tells a call: an opening bracket right behind the value.
pub(super) fn is_code(value: &str, after: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_identifier = |part: &str| {
        part.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    let is_path_of_names = (value.contains('.') || value.contains("::") || value.contains("->"))
        && value
            .split(['.', ':', '>'])
            .map(|part| part.trim_end_matches(['-', '?', '!']))
            .filter(|part| !part.is_empty())
            .all(|part| is_identifier(part) && !super::randomness::looks_random(part));
    let is_call =
        after.starts_with('(') || after.starts_with('[') || value.contains("()") || value.contains(")(");
    let opens_call = value.find(['(', '[']).is_some_and(|at| at > 0 && is_identifier_like(&value[..at]));
    let is_file_path = (value.starts_with("./")
        || value.starts_with("../")
        || value.starts_with("~/")
        || value.starts_with('/'))
        && value.matches('/').count() >= 2
        && !super::randomness::looks_random(value);
    LOOKUPS.iter().any(|lookup| lower.starts_with(lookup))
        || is_path_of_names
        || is_call
        || opens_call
        || is_file_path
}

/// Whether `text` is a name such as stands before a call: four or more letters, digits, `_`, `.`, `:`.
fn is_identifier_like(text: &str) -> bool {
    text.len() >= 4
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:>-".contains(&b))
        && !super::randomness::looks_random(text)
}
