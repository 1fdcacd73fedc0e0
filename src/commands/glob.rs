//! Wildcards over paths: `*` and `?` within a name, `**` over any number of names. Linear in the length of both.

/// Whether a path fits a pattern. `?` stands for one character that is no `/`.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path) = (pattern.as_bytes(), path.as_bytes());
    // Where to go on when the rest does not fit: behind the last `*` and behind the last `**`.
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    let mut double: Option<(usize, usize)> = None;
    while t < path.len() {
        if pattern[p..].starts_with(b"**") {
            double = Some((p + 2, t));
            star = None;
            p += 2;
            continue;
        }
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'?') if path[t] != b'/' => {
                p += 1;
                t += 1;
                continue;
            }
            Some(byte) if *byte == path[t] => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        if let Some((after, from)) = star
            && path[from] != b'/'
        {
            star = Some((after, from + 1));
            (p, t) = (after, from + 1);
        } else if let Some((after, from)) = double {
            double = Some((after, from + 1));
            star = None;
            (p, t) = (after, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    /// Pattern, path, whether it fits.
    const CASES: &[(&str, &str, bool)] = &[
        ("/dev/sd*", "/dev/sda1", true),
        ("/dev/sd*", "/dev/sda/1", false),
        ("/etc/**", "/etc/a/b", true),
        ("/etc/**", "/etc", false),
        ("/home/*", "/home/u", true),
        ("/home/*", "/home/u/x", false),
        ("**/.git", "/a/b/.git", true),
        ("**/.git", "/a/b/.github", false),
        ("/a/?/c", "/a/b/c", true),
        ("/a/?/c", "/a//c", false),
        ("*", "", true),
        ("a*b*c", "axbxbc", true),
        ("a*b*c", "axbxb", false),
        ("/x/**/y", "/x/1/2/y", true),
    ];

    #[test]
    fn wildcards_fit_what_they_should() {
        for (pattern, path, wanted) in CASES {
            assert_eq!(matches(pattern, path), *wanted, "{pattern} {path}");
        }
    }
}
