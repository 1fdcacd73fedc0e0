//! Whether a value looks drawn at random, and the random-looking things that are no secrets.

/// Shannon entropy of the bytes of `value`, in bits per character.
pub(super) fn entropy_bits(value: &str) -> f32 {
    let mut counts = [0u32; 256];
    for byte in value.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = value.len() as f32;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = *count as f32 / length;
            -share * share.log2()
        })
        .sum()
}

/// Whether `value` holds at least one ASCII letter and one digit.
pub(super) fn has_letter_and_digit(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_alphabetic()) && value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether `value` is a UUID, or hexadecimal of the length of a usual digest or revision id.
pub(super) fn is_hash_or_uuid(value: &str) -> bool {
    let is_hex = value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex {
        return matches!(value.len(), 7 | 8 | 12 | 32 | 40 | 48 | 56 | 64 | 96 | 128);
    }
    is_uuid(value)
        || ["sha1-", "sha256-", "sha384-", "sha512-", "sha256:", "sha512:", "md5:", "h1:"]
            .iter()
            .any(|prefix| value.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix)))
}

fn is_uuid(value: &str) -> bool {
    let value = value.trim_start_matches('{').trim_end_matches('}');
    value.len() == 36
        && value.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Fewest characters of a block of base64 around a value from which the value is a part of it by chance.
const BLOCK_AROUND: usize = 48;

/// Whether a value is cut out of a longer block of base64, such as an embedded image: `+` and `/` are characters of that
/// alphabet (RFC 4648, section 4) and no boundary there.
pub(super) fn is_inside_base64(before: &str, after: &str) -> bool {
    if !before.ends_with(['+', '/']) && !after.starts_with(['+', '/']) {
        return false;
    }
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let left = before.bytes().rev().take_while(is_digit);
    let right = after.bytes().take_while(is_digit);
    let (mut count, mut lower, mut upper, mut digits) = (0, false, false, false);
    for byte in left.chain(right) {
        count += 1;
        lower |= byte.is_ascii_lowercase();
        upper |= byte.is_ascii_uppercase();
        digits |= byte.is_ascii_digit();
    }
    // A path has no such mixture over so many characters without a dot or a hyphen.
    count >= BLOCK_AROUND && lower && upper && digits
}

/// Whether `value` looks drawn at random rather than written by a person as words, identifiers or paths.
///
/// The value is cut into runs of letters at every change of class; a run that could be a word (vowels in it, no long
/// row of consonants, no change of case inside) explains its characters. What no word, short number or separator
/// explains has to make up a good part of the value.
pub(super) fn looks_random(value: &str) -> bool {
    let length = value.chars().count();
    if length < 6 {
        return false;
    }
    let explained: usize = pieces(value).iter().map(|piece| explained_chars(piece)).sum();
    let unexplained = length.saturating_sub(explained);
    unexplained * 10 >= length * 4 || (length < 20 && changes_of_class(value) >= 4)
}

/// Fewest letters of a password that has neither digit nor symbol.
const LETTERS_MIN: usize = 10;

/// Whether `value` could be a password somebody chose: a digit or a symbol among letters, or letters of both cases in no
/// order of words, and no identifier or path.
pub(super) fn is_password_like(value: &str) -> bool {
    let has_letter = value.chars().any(char::is_alphabetic);
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let symbols = value.bytes().filter(|byte| b"!@#$%^&*?~+=".contains(byte)).count();
    let separators = value.bytes().filter(|byte| b"_-./:\\".contains(byte)).count();
    if !has_digit && symbols == 0 {
        return is_drawn_of_letters(value);
    }
    let is_word_list = separators > 0 && symbols == 0 && !looks_random(value) && !is_made_of_words(value);
    let is_version =
        has_digit && value.trim_start_matches(['v', 'V']).bytes().all(|b| b.is_ascii_digit() || b == b'.');
    has_letter && !is_word_list && !is_version
}

/// Fewest letters of a token that has no digit. One in twenty that are drawn of 62 characters at this length has none.
const TOKEN_LETTERS_MIN: usize = 16;
/// Fewest bits for each of them: what counts differences, such as a map of sources, repeats the same few letters.
const TOKEN_LETTERS_BITS_MIN: f32 = 3.4;

/// Whether `value` is such letters, and so many that no name is as long by chance.
pub(super) fn is_long_draw_of_letters(value: &str) -> bool {
    value.len() >= TOKEN_LETTERS_MIN
        && is_drawn_of_letters(value)
        && entropy_bits(value) >= TOKEN_LETTERS_BITS_MIN
}

/// Whether `value` is letters alone, of both cases, that follow each other as no words do.
fn is_drawn_of_letters(value: &str) -> bool {
    value.len() >= LETTERS_MIN
        && value.bytes().all(|byte| byte.is_ascii_alphabetic())
        && changes_of_class(value) >= 2
        && looks_random(value)
}

/// Whether `value` is words of both cases and a number, joined by hyphens and underscores as people join them in a
/// password, and no code does: one kind of joint is an identifier, two are none in any language.
fn is_made_of_words(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.bytes().any(|byte| is(&byte));
    has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit)
        && value.contains('-')
        && value.contains('_')
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Cuts `value` into runs of one class; an upper-case letter followed by lower-case ones opens a run.
fn pieces(value: &str) -> Vec<&str> {
    let bytes = value.as_bytes();
    let mut cuts = vec![0];
    for at in 1..bytes.len() {
        let (left, right) = (bytes[at - 1], bytes[at]);
        let is_camel = left.is_ascii_lowercase() && right.is_ascii_uppercase();
        let is_acronym_end = left.is_ascii_uppercase()
            && right.is_ascii_uppercase()
            && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        let changes =
            class(left) != class(right) && !(left.is_ascii_uppercase() && right.is_ascii_lowercase());
        if (changes || is_camel || is_acronym_end) && value.is_char_boundary(at) {
            cuts.push(at);
        }
    }
    cuts.push(bytes.len());
    cuts.windows(2).filter_map(|pair| value.get(pair[0]..pair[1])).collect()
}

/// 0 lower, 1 upper, 2 digit, 3 other ASCII, 4 beyond ASCII.
fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        0..=127 => 3,
        _ => 4,
    }
}

/// How many characters of one run a word, a short number or a separator explains.
fn explained_chars(piece: &str) -> usize {
    let length = piece.chars().count();
    let Some(first) = piece.bytes().next() else { return 0 };
    match class(first) {
        0 | 1 if is_wordlike(piece) => length,
        0 | 1 => 0,
        2 if length <= 4 => length / 2,
        2 => 0,
        3 if length <= 2 && piece.bytes().all(|byte| b"-_./ :,".contains(&byte)) => length,
        3 => 0,
        _ => length,
    }
}

/// Whether letters could be a word: three or more, a sane share of vowels, no long row of consonants.
fn is_wordlike(piece: &str) -> bool {
    let lower = piece.to_ascii_lowercase();
    if lower.len() < 3 {
        return false;
    }
    let is_vowel = |byte: u8| b"aeiouy".contains(&byte);
    let vowels = lower.bytes().filter(|byte| is_vowel(*byte)).count();
    let (mut row, mut longest) = (0, 0);
    for byte in lower.bytes() {
        row = if is_vowel(byte) { 0 } else { row + 1 };
        longest = longest.max(row);
    }
    let rare_pairs = lower
        .as_bytes()
        .windows(2)
        .filter(|pair| RARE_PAIRS.contains(&[pair[0], pair[1]].as_slice()))
        .count();
    vowels * 6 >= lower.len() && vowels * 10 <= lower.len() * 8 && longest <= 4 && rare_pairs == 0
}

/// Letter pairs that hardly occur inside words of Latin script.
const RARE_PAIRS: &[&[u8]] = &[
    b"bq", b"bx", b"cj", b"cx", b"dx", b"fq", b"fx", b"fz", b"gq", b"gx", b"hx", b"hz", b"jb", b"jc", b"jd",
    b"jf", b"jg", b"jh", b"jj", b"jl", b"jm", b"jp", b"jq", b"jr", b"jt", b"jv", b"jw", b"jx", b"jz", b"kq",
    b"kx", b"kz", b"mq", b"mx", b"mz", b"pq", b"pv", b"px", b"qb", b"qc", b"qd", b"qe", b"qf", b"qg", b"qh",
    b"qj", b"qk", b"qm", b"qn", b"qo", b"qp", b"qr", b"qt", b"qv", b"qw", b"qx", b"qy", b"qz", b"sx", b"tq",
    b"vb", b"vc", b"vd", b"vf", b"vg", b"vh", b"vj", b"vk", b"vm", b"vp", b"vq", b"vt", b"vw", b"vx", b"vz",
    b"wj", b"wq", b"wv", b"wx", b"xj", b"xk", b"xz", b"yq", b"zb", b"zf", b"zg", b"zj", b"zn", b"zq", b"zr",
    b"zx", b"vn", b"vr", b"vl", b"zv", b"zp", b"zk", b"zm", b"zd", b"zt", b"xr", b"xg", b"xn", b"xd", b"xq",
    b"kj", b"kg", b"hj", b"hg", b"hk", b"fj", b"gj", b"pj", b"lx", b"lj", b"nx", b"rx", b"wz", b"zw", b"bk",
    b"bz", b"gv", b"gz", b"fk", b"fb", b"fd", b"fh", b"fv",
];

/// How often neighbouring characters differ in class, a capital at the start of a word not counted.
fn changes_of_class(value: &str) -> usize {
    value
        .as_bytes()
        .windows(2)
        .filter(|pair| {
            class(pair[0]) != class(pair[1])
                && class(pair[0]) < 3
                && class(pair[1]) < 3
                && !(pair[0].is_ascii_uppercase() && pair[1].is_ascii_lowercase())
        })
        .count()
}
