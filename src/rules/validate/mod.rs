//! Checks on a matched value that a regex cannot make.
//!
//! A pattern says how a value looks; a validator says whether it can be one: check digits, issued ranges, decodable
//! structure, randomness, and the neighbourhood that turns a dotted quad into a version number.
//!
//! Invariants: every check is pure, total (no input panics) and linear in the value; none looks further than the value
//! and the neighbourhood it is given. Not done here: asking an issuer whether a credential is live.

mod bank;
mod digits;
mod encoded;
mod issued;
mod keccak;
mod mail;
mod national;
mod national_more;
mod national_world;
mod network;
mod phone;
pub(super) mod phone_plan;
mod pickle;
mod placeholder;
mod randomness;
mod tokens;
mod wallet;
mod wallet_more;

#[cfg(test)]
mod tests;

use national::Scheme;

use crate::text::is_metadata_host;

/// A check on a matched value that a regex cannot make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Validator {
    /// The digits pass the Luhn check.
    Luhn,
    /// Prefix and length belong to a card network, and the digits do not stand inside a decimal number or a UUID.
    CardIssuer,
    /// Area, group and serial were or could be issued as a United States social security number.
    UsSsn,
    /// International bank account number: length of its country and the check of ISO 7064 mod 97-10.
    Iban,
    /// United States bank routing number: district prefix and weighted check.
    AbaRouting,
    /// 15 or 16 digits of a mobile device identity: Luhn over the first 15, and not one repeated digit.
    Imei,
    /// Telephone number of the North American plan: area code and exchange that can exist.
    PhoneNanp,
    /// International telephone number: known country calling code and a length in use there.
    PhoneE164,
    /// Digit count of a national telephone number, and not a date, an epoch time or one repeated digit.
    PhoneLocal,
    /// Telephone number in international form that the numbering plan of its calling code knows; see
    /// [`phone_plan::is_dialled`], which decides once the match stands.
    PhonePlan,
    /// Telephone number that is one in a region of the policy or one named beside it; as before.
    PhoneRegion,
    /// A dotted quad that is an address: octets in range, and no version or section number by its neighbourhood.
    Ipv4,
    /// An IPv6 address with at least two groups, not a time and not a scope operator.
    Ipv6,
    /// A hardware address that is neither all zeros nor all ones, nor part of a longer octet list.
    Mac,
    /// The address or name under which clouds tell a machine its credentials, however it is spelt.
    MetadataAddress,
    /// Base64 or hexadecimal of a Python pickle that calls what runs commands.
    PickleCall,
    /// An e-mail address with a plausible top-level domain; not a remote of a version control system, not `user@host`
    /// of a shell command, not the user part of a URL.
    Email,
    /// Base58 with a double SHA-256 check (Bitcoin and its relatives, WIF keys).
    Base58Check,
    /// Bech32 or Bech32m with a valid checksum.
    Bech32,
    /// A hexadecimal wallet address that is not one repeated pattern.
    HexWallet,
    /// An address of Bitcoin Cash or a relative, with the check over it and the prefix before it.
    CashAddr,
    /// An address of Monero with its check.
    Monero,
    /// Base58 of 32 bytes, as addresses of Solana are.
    Solana,
    /// An address of Polkadot or another chain of Substrate, with its check.
    Ss58,
    /// An account of Stellar with its check.
    Stellar,
    /// An address of TON with its check.
    Ton,
    /// So many letters, digits, `_` and `-` in all, whatever stands between them.
    Characters {
        /// How many.
        count: usize,
    },
    /// Shannon entropy of at least so many bits for each character.
    Entropy {
        /// Least entropy accepted, in bits per character.
        min_bits_per_char: f32,
    },
    /// Shannon entropy of more than so many bits for each character.
    EntropyAbove {
        /// What it must be above, in bits per character.
        bits_per_char: f32,
    },
    /// Holds at least one letter and one digit.
    MixedClasses,
    /// Looks drawn at random: no word, identifier, path, or call.
    RandomLooking,
    /// Letters with a digit or a symbol among them, and no identifier or path: what people choose as a password.
    PasswordLike,
    /// Is no stand-in for a value: `your_api_key`, `<token>`, `${VAR}`, `xxxx`, `changeme`, `[SECRET_1]`, 12345678.
    NotPlaceholder,
    /// Is not masked or filled: no long run of one character, no placeholder word. Milder than `NotPlaceholder`.
    NotFiller,
    /// Holds no long row in order (`abcdefgh`, `345678`) and few short ones: random values have none.
    NotSequence,
    /// Is none of the usual default words, also when letters are swapped for look-alikes: `p@ssw0rd`, `s3cret`.
    NotDefaultWord,
    /// Does not begin as tokens of a known issuer do: those are judged by the rule of their format.
    NotIssuedForm,
    /// First segment is base64 of a decimal number, as in tokens that begin with the id of their bot.
    Base64Digits,
    /// Is no hexadecimal digest of a usual length and no UUID.
    NotHash,
    /// Is no code: member access, call, template, path or environment lookup.
    NotCode,
    /// Last six characters of a GitHub token are the base62 CRC-32 of its random part.
    GithubCrc32,
    /// Last six characters of an npm token are the base62 CRC-32 of its random part.
    NpmCrc32,
    /// First segment decodes to a JSON object that names an algorithm.
    Jwt,
    /// Base64 that decodes to printable `user:password`.
    BasicAuth,
    /// Base64 that decodes to printable text or JSON beginning with `{` or `[`.
    Base64Json,
    /// Day, month and year of a birth date that can exist, 1900 to 2030.
    BirthDate,
    /// The check of one country's personal, tax or company number.
    NationalId(&'static Scheme),
}

/// A validator name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnknownValidator {
    /// The name as the rule gave it.
    pub name: String,
    /// What is wrong with it, and what to write.
    pub message: String,
}

/// Least likeness of a misspelt name.
const LIKE_MIN: f64 = 0.6;

impl UnknownValidator {
    fn new(name: &str, message: String) -> Self {
        Self { name: name.to_owned(), message }
    }

    /// A name that is none, with the one that it is most like or all there are.
    fn unknown(name: &str) -> Self {
        let plain = Validator::NAMES.iter().copied().filter(|known| !known.contains('<'));
        let hint = match most_like(name, plain) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("valid names are {}", Validator::NAMES.join(", ")),
        };
        Self::new(name, format!("unknown validator `{name}`; {hint}"))
    }

    fn scheme(name: &str, scheme: &str) -> Self {
        let hint = match most_like(scheme, Validator::schemes()) {
            Some(near) => format!("did you mean `national-id:{near}`?"),
            None => format!("known are {}", Validator::schemes().collect::<Vec<_>>().join(", ")),
        };
        Self::new(name, format!("`{name}`: there is no scheme `{scheme}`; {hint}"))
    }
}

fn most_like<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    known
        .map(|known| (strsim::normalized_damerau_levenshtein(name, known), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness >= LIKE_MIN)
        .map(|(_, known)| known)
}

/// Validators without a parameter, by the name rules use.
const PLAIN: &[(&str, Validator)] = &[
    ("luhn", Validator::Luhn),
    ("card-issuer", Validator::CardIssuer),
    ("us-ssn", Validator::UsSsn),
    ("iban", Validator::Iban),
    ("aba-routing", Validator::AbaRouting),
    ("imei", Validator::Imei),
    ("phone-nanp", Validator::PhoneNanp),
    ("phone-e164", Validator::PhoneE164),
    ("phone-local", Validator::PhoneLocal),
    ("phone-plan", Validator::PhonePlan),
    ("phone-region", Validator::PhoneRegion),
    ("ipv4", Validator::Ipv4),
    ("ipv6", Validator::Ipv6),
    ("mac", Validator::Mac),
    ("metadata-address", Validator::MetadataAddress),
    ("pickle-call", Validator::PickleCall),
    ("email", Validator::Email),
    ("base58check", Validator::Base58Check),
    ("bech32", Validator::Bech32),
    ("hex-wallet", Validator::HexWallet),
    ("cashaddr", Validator::CashAddr),
    ("monero", Validator::Monero),
    ("solana", Validator::Solana),
    ("ss58", Validator::Ss58),
    ("stellar", Validator::Stellar),
    ("ton", Validator::Ton),
    ("mixed-classes", Validator::MixedClasses),
    ("random-looking", Validator::RandomLooking),
    ("password-like", Validator::PasswordLike),
    ("not-placeholder", Validator::NotPlaceholder),
    ("not-filler", Validator::NotFiller),
    ("not-sequence", Validator::NotSequence),
    ("not-default-word", Validator::NotDefaultWord),
    ("not-issued-form", Validator::NotIssuedForm),
    ("base64-digits", Validator::Base64Digits),
    ("not-hash", Validator::NotHash),
    ("not-code", Validator::NotCode),
    ("github-crc32", Validator::GithubCrc32),
    ("npm-crc32", Validator::NpmCrc32),
    ("jwt", Validator::Jwt),
    ("basic-auth", Validator::BasicAuth),
    ("base64-json", Validator::Base64Json),
    ("birth-date", Validator::BirthDate),
];

impl Validator {
    /// Every name `parse` understands; a part in angle brackets is a parameter.
    pub const NAMES: &'static [&'static str] = &[
        "luhn",
        "card-issuer",
        "us-ssn",
        "iban",
        "aba-routing",
        "imei",
        "phone-nanp",
        "phone-e164",
        "phone-local",
        "phone-plan",
        "phone-region",
        "ipv4",
        "ipv6",
        "mac",
        "metadata-address",
        "pickle-call",
        "email",
        "base58check",
        "bech32",
        "hex-wallet",
        "cashaddr",
        "monero",
        "solana",
        "ss58",
        "stellar",
        "ton",
        "mixed-classes",
        "random-looking",
        "password-like",
        "not-placeholder",
        "not-filler",
        "not-sequence",
        "not-default-word",
        "not-issued-form",
        "base64-digits",
        "not-hash",
        "not-code",
        "github-crc32",
        "npm-crc32",
        "jwt",
        "basic-auth",
        "base64-json",
        "birth-date",
        "characters:<count>",
        "entropy:<bits per character>",
        "entropy-above:<bits per character>",
        "national-id:<scheme>",
    ];

    /// Reads a validator as a rule names it: `luhn`, `entropy:3.2`, `national-id:pl-pesel`.
    pub fn parse(name: &str) -> Result<Self, UnknownValidator> {
        let wrong = |message: &str| UnknownValidator::new(name, format!("`{name}`: {message}"));
        if let Some((_, validator)) = PLAIN.iter().find(|(known, _)| *known == name) {
            return Ok(*validator);
        }
        match name.split_once(':') {
            Some(("entropy", bits)) => match bits.parse::<f32>() {
                Ok(bits) if bits > 0.0 && bits <= 8.0 => Ok(Self::Entropy { min_bits_per_char: bits }),
                _ => Err(wrong("bits per character are a number above 0 and at most 8, as in `entropy:3.2`")),
            },
            Some(("entropy-above", bits)) => match bits.parse::<f32>() {
                Ok(bits) if (0.0..8.0).contains(&bits) => Ok(Self::EntropyAbove { bits_per_char: bits }),
                _ => Err(wrong(
                    "bits per character are a number from 0 and below 8, as in `entropy-above:3.2`",
                )),
            },
            Some(("characters", count)) => match count.parse() {
                Ok(count) if count > 0 => Ok(Self::Characters { count }),
                _ => Err(wrong("the count is a whole number from 1, as in `characters:32`")),
            },
            Some(("national-id", scheme)) => Scheme::find(scheme)
                .map(Self::NationalId)
                .ok_or_else(|| UnknownValidator::scheme(name, scheme)),
            _ => Err(UnknownValidator::unknown(name)),
        }
    }

    /// The schemes that `national-id:` takes.
    pub fn schemes() -> impl Iterator<Item = &'static str> {
        Scheme::all().map(|scheme| scheme.name)
    }

    /// Whether `value` can be what the rule takes it for.
    ///
    /// `value` is the reported value (group `value`, else the whole match); `before` and `after` are up to 64 bytes of
    /// text either side of it.
    pub fn accepts(&self, value: &str, before: &str, after: &str) -> bool {
        match self {
            Self::Luhn => digits::is_luhn(value),
            Self::CardIssuer => bank::is_card(value, before, after),
            Self::UsSsn => national::is_us_ssn(value, before, after),
            Self::Iban => bank::is_iban(value),
            Self::AbaRouting => bank::is_aba_routing(value),
            Self::Imei => network::is_imei(value),
            Self::PhoneNanp => phone::is_nanp(value, before, after),
            Self::PhoneE164 => phone::is_e164(value, before, after),
            Self::PhoneLocal => phone::is_local(value, before, after),
            Self::PhonePlan => phone::is_international(value, before, after),
            Self::PhoneRegion => phone::is_national(value, before, after),
            Self::Ipv4 => network::is_ipv4(value, before, after),
            Self::Ipv6 => network::is_ipv6(value, before, after),
            Self::Mac => network::is_mac(value, before, after),
            Self::MetadataAddress => is_metadata_host(value),
            Self::PickleCall => pickle::calls_commands(value),
            Self::Email => mail::is_email(value, before, after),
            Self::Base58Check => wallet::is_base58check(value),
            Self::Bech32 => wallet::is_bech32(value),
            Self::HexWallet => wallet::is_hex_wallet(value),
            Self::CashAddr => wallet_more::is_cashaddr(value, before),
            Self::Monero => wallet_more::is_monero(value),
            Self::Solana => wallet_more::is_solana(value),
            Self::Ss58 => wallet_more::is_ss58(value),
            Self::Stellar => wallet_more::is_stellar(value),
            Self::Ton => wallet_more::is_ton(value),
            Self::Characters { count } => tokens::characters(value) == *count,
            Self::Entropy { min_bits_per_char } => randomness::entropy_bits(value) >= *min_bits_per_char,
            Self::EntropyAbove { bits_per_char } => randomness::entropy_bits(value) > *bits_per_char,
            Self::MixedClasses => {
                randomness::has_letter_and_digit(value) || randomness::is_long_draw_of_letters(value)
            }
            Self::RandomLooking => {
                randomness::looks_random(value) && !randomness::is_inside_base64(before, after)
            }
            Self::PasswordLike => randomness::is_password_like(value),
            Self::NotPlaceholder => !placeholder::is_placeholder(value),
            Self::NotFiller => !placeholder::is_filler(value) && !randomness::is_inside_base64(before, after),
            Self::NotSequence => !placeholder::is_in_order(value),
            Self::NotDefaultWord => !placeholder::is_default_word(value),
            Self::NotIssuedForm => !issued::begins_as_issued(value),
            Self::Base64Digits => tokens::begins_with_encoded_digits(value),
            Self::NotHash => !randomness::is_hash_or_uuid(value),
            Self::NotCode => !placeholder::is_code(value, after),
            Self::GithubCrc32 => tokens::is_github(value),
            Self::NpmCrc32 => tokens::is_npm(value),
            Self::Jwt => tokens::is_jwt(value),
            Self::BasicAuth => tokens::is_basic_auth(value),
            Self::Base64Json => tokens::is_base64_json(value),
            Self::BirthDate => national::is_birth_date(value),
            Self::NationalId(scheme) => scheme.accepts(value),
        }
    }
}
