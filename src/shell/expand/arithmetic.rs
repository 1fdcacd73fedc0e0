//! A small evaluator for `$(( … ))`: numbers, variables with known values, the operators of C.

/// Deepest nesting of parentheses and operators.
const DEPTH_MAX: usize = 32;

/// The value of an expression. `None` when it is not known or not valid.
pub(in crate::shell) fn evaluate(text: &str, lookup: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
    if text.len() > 4096 {
        return None;
    }
    let mut parser = Parser { rest: text.as_bytes(), lookup, depth: 0 };
    if parser.peek().is_none() {
        return Some(0);
    }
    let value = parser.binary(0)?;
    parser.peek().is_none().then_some(value)
}

/// A number as the shell reads it: decimal, octal, hexadecimal or `base#digits`.
fn number(text: &str) -> Option<i64> {
    if let Some((base, digits)) = text.split_once('#') {
        let base = base.parse::<u32>().ok().filter(|base| (2..=36).contains(base))?;
        return i64::from_str_radix(digits, base).ok();
    }
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return i64::from_str_radix(hex, 16).ok();
    }
    if text.len() > 1 && text.starts_with('0') {
        return i64::from_str_radix(text, 8).ok();
    }
    text.parse().ok()
}

/// Operators by rising precedence.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
    &["**"],
];

struct Parser<'t, 'l> {
    rest: &'t [u8],
    lookup: &'l dyn Fn(&str) -> Option<i64>,
    depth: usize,
}

impl Parser<'_, '_> {
    fn peek(&mut self) -> Option<u8> {
        while self.rest.first().is_some_and(u8::is_ascii_whitespace) {
            self.rest = &self.rest[1..];
        }
        self.rest.first().copied()
    }

    fn operator(&mut self, level: usize) -> Option<&'static str> {
        self.peek()?;
        let found = LEVELS[level].iter().copied().find(|op| self.rest.starts_with(op.as_bytes()))?;
        // `|` is not the first half of `||`, `*` not that of `**`, `<` not that of `<<`.
        let longer = LEVELS.iter().flat_map(|ops| ops.iter()).any(|op| {
            op.len() > found.len() && op.starts_with(found) && self.rest.starts_with(op.as_bytes())
        });
        (!longer).then(|| {
            self.rest = &self.rest[found.len()..];
            found
        })
    }

    fn binary(&mut self, level: usize) -> Option<i64> {
        if level == LEVELS.len() {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            let right = self.binary(level + 1)?;
            left = apply(operator, left, right)?;
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let value = match self.peek()? {
            b'-' => self.after_sign()?.checked_neg(),
            b'+' => self.after_sign(),
            b'!' => Some(i64::from(self.after_sign()? == 0)),
            b'~' => Some(!self.after_sign()?),
            b'(' => {
                self.rest = &self.rest[1..];
                let value = self.binary(0)?;
                (self.peek() == Some(b')')).then(|| self.rest = &self.rest[1..])?;
                Some(value)
            }
            _ => self.operand(),
        };
        self.depth -= 1;
        value
    }

    fn after_sign(&mut self) -> Option<i64> {
        self.rest = &self.rest[1..];
        self.unary()
    }

    fn operand(&mut self) -> Option<i64> {
        let length =
            self.rest.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'#')).count();
        let (word, rest) = self.rest.split_at(length);
        let word = std::str::from_utf8(word).ok().filter(|word| !word.is_empty())?;
        self.rest = rest;
        if word.as_bytes()[0].is_ascii_digit() { number(word) } else { (self.lookup)(word) }
    }
}

fn apply(operator: &str, left: i64, right: i64) -> Option<i64> {
    Some(match operator {
        "||" => i64::from(left != 0 || right != 0),
        "&&" => i64::from(left != 0 && right != 0),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "==" => i64::from(left == right),
        "!=" => i64::from(left != right),
        "<=" => i64::from(left <= right),
        ">=" => i64::from(left >= right),
        "<" => i64::from(left < right),
        ">" => i64::from(left > right),
        "<<" => left.checked_shl(u32::try_from(right).ok()?)?,
        ">>" => left.checked_shr(u32::try_from(right).ok()?)?,
        "+" => left.checked_add(right)?,
        "-" => left.checked_sub(right)?,
        "*" => left.checked_mul(right)?,
        "/" => left.checked_div(right)?,
        "%" => left.checked_rem(right)?,
        "**" => left.checked_pow(u32::try_from(right).ok()?)?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::evaluate;

    #[test]
    fn expressions_have_the_value_a_shell_gives_them() {
        let lookup = |name: &str| (name == "x").then_some(7);
        for (text, wanted) in [
            ("1+2*3", Some(7)),
            ("(1+2)*3", Some(9)),
            ("x % 4", Some(3)),
            ("0x1f", Some(31)),
            ("010", Some(8)),
            ("2#101", Some(5)),
            ("2**10", Some(1024)),
            ("1<2 && 3>=3", Some(1)),
            ("-5 + +2", Some(-3)),
            ("1 || 0", Some(1)),
            ("!0", Some(1)),
            ("", Some(0)),
            ("y + 1", None),
            ("1 / 0", None),
            ("1 +", None),
            ("9223372036854775807 + 1", None),
        ] {
            assert_eq!(evaluate(text, &lookup), wanted, "{text}");
        }
        assert_eq!(evaluate(&"(".repeat(3000), &lookup), None);
    }
}
