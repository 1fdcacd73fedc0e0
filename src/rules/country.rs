//! Countries by their ISO 3166-1 alpha-2 codes, and sets of them: which countries a rule is about, and whose rules run.

use std::fmt;

/// Codes in use, and `XK`, which banks and telephones know as Kosovo. Source: <https://www.iso.org/obp/ui/#search/code/>.
const CODES: &str = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS \
    BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI \
    FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR \
    IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM \
    MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT \
    PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM \
    TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW";
/// What people write in place of a code.
const SLIPS: &[(&str, &str)] =
    &[("UK", "GB"), ("EN", "GB"), ("EL", "GR"), ("USA", "US"), ("GER", "DE"), ("SP", "ES")];
/// Letters of the Latin alphabet; two of them make a place in a set.
const LETTERS: usize = 26;
const WORDS: usize = (LETTERS * LETTERS).div_ceil(64);

/// A set of countries. Empty means different things to a rule (of no country) and to who asks (every country).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CountrySet([u64; WORDS]);

/// A code that is no country's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no ISO 3166-1 code of a country; {}", .code.escape_debug(), advice(*.meant))]
pub struct UnknownCountry {
    /// What was written, shortened.
    pub code: String,
    /// The code that was likely meant.
    pub meant: Option<&'static str>,
}

impl UnknownCountry {
    /// What to write instead.
    pub fn fix(&self) -> String {
        advice(self.meant)
    }
}

fn advice(meant: Option<&str>) -> String {
    match meant {
        Some(code) => format!("did you mean `{code}`?"),
        None => "write two letters, such as `DE` or `US`".to_owned(),
    }
}

impl CountrySet {
    /// No country.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// The set of these codes, in any letter case.
    ///
    /// # Errors
    /// The first code that is no country's.
    pub fn of<'c>(codes: impl IntoIterator<Item = &'c str>) -> Result<Self, UnknownCountry> {
        let mut set = Self::EMPTY;
        for code in codes {
            set.add(code)?;
        }
        Ok(set)
    }

    /// Adds a country by its code, in any letter case.
    ///
    /// # Errors
    /// The code is no country's.
    pub fn add(&mut self, code: &str) -> Result<(), UnknownCountry> {
        let upper = code.trim().to_ascii_uppercase();
        if !CODES.split_ascii_whitespace().any(|known| known == upper) {
            let meant = SLIPS.iter().find(|(slip, _)| *slip == upper).map(|(_, code)| *code);
            return Err(UnknownCountry { code: code.chars().take(20).collect(), meant });
        }
        if let Some((word, bit)) = place(&upper) {
            self.0[word] |= bit;
        }
        Ok(())
    }

    /// Whether it holds no country.
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// Whether the country is in it.
    pub fn contains(&self, code: &str) -> bool {
        place(code).is_some_and(|(word, bit)| self.0[word] & bit != 0)
    }

    /// Whether a country is in both.
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// The countries that are in both.
    pub fn and(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    /// Whether what is about the countries `of_rule` (none: about no country) is wanted where these are (none: all).
    pub fn admits(&self, of_rule: &Self) -> bool {
        self.is_empty() || of_rule.is_empty() || self.meets(of_rule)
    }

    /// The codes, in the order of the alphabet.
    pub fn codes(&self) -> impl Iterator<Item = &'static str> {
        CODES.split_ascii_whitespace().filter(|code| self.contains(code))
    }

    /// The same as bytes, for keys.
    pub fn bytes(&self) -> impl Iterator<Item = [u8; 8]> {
        self.0.iter().map(|word| word.to_le_bytes())
    }
}

impl fmt::Debug for CountrySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.codes()).finish()
    }
}

/// Word and bit of a code in capitals.
fn place(code: &str) -> Option<(usize, u64)> {
    let letter = |byte: u8| byte.is_ascii_uppercase().then(|| usize::from(byte - b'A'));
    let [first, second] = code.as_bytes() else { return None };
    let at = letter(*first)? * LETTERS + letter(*second)?;
    Some((at / 64, 1 << (at % 64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_in_any_case_and_come_out_in_order() {
        let set = CountrySet::of(["us", "DE", "Zw", "AD"]).expect("codes");
        assert_eq!(set.codes().collect::<Vec<_>>(), ["AD", "DE", "US", "ZW"]);
        assert!(set.contains("DE") && !set.contains("FR") && !set.contains("de") && !set.contains("DEU"));
    }

    #[test]
    fn what_is_no_code_is_refused_with_what_was_meant() {
        for (code, wanted) in [
            ("UK", "`UK` is no ISO 3166-1 code of a country; did you mean `GB`?"),
            ("QQ", "`QQ` is no ISO 3166-1 code of a country; write two letters, such as `DE` or `US`"),
            ("", "`` is no ISO 3166-1 code of a country; write two letters, such as `DE` or `US`"),
            (
                "Germany",
                "`Germany` is no ISO 3166-1 code of a country; write two letters, such as `DE` or `US`",
            ),
        ] {
            assert_eq!(CountrySet::of([code]).expect_err("no code").to_string(), wanted);
        }
    }

    #[test]
    fn an_empty_set_stands_for_all_on_either_side() {
        let of = |codes: &[&str]| CountrySet::of(codes.iter().copied()).expect("codes");
        let (all, german, europe) = (CountrySet::EMPTY, of(&["DE"]), of(&["DE", "FR"]));
        assert!(all.admits(&german) && all.admits(&all));
        assert!(german.admits(&all) && german.admits(&europe) && europe.admits(&german));
        assert!(!german.admits(&of(&["US"])));
        assert_eq!(europe.and(&german), german);
        assert!(german.and(&of(&["US"])).is_empty());
    }
}
