//! Values that nobody owns: random, from a fixed seed, with the check digits that their formats ask for.
//!
//! A slot `{=NAME:ARGUMENT}` of a template becomes such a value; `NAME!` is the same value with its check digit off by
//! one, which is then a number like any other. The checks are written here once more, from the descriptions of the
//! formats, so that a mistake of the rules is not repeated by their test.

/// Numbers from a seed (splitmix64), the same on every machine.
pub struct Random(u64);

impl Random {
    /// Numbers that belong to `name`.
    pub fn of(name: &str) -> Self {
        // FNV-1a.
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn pick(&mut self, from: &str) -> char {
        from.as_bytes()[self.below(from.len())].into()
    }

    /// So many characters of `from`.
    pub fn text(&mut self, from: &str, length: usize) -> String {
        (0..length).map(|_| self.pick(from)).collect()
    }

    fn digits(&mut self, length: usize) -> String {
        self.text(DIGITS, length)
    }
}

const DIGITS: &str = "0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const BASE62: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BECH32: &str = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of a slot.
pub fn value(spec: &str, random: &mut Random) -> String {
    let (name, argument) = spec.split_once(':').unwrap_or((spec, ""));
    let (name, is_broken) = match name.strip_suffix('!') {
        Some(name) => (name, true),
        None => (name, false),
    };
    loop {
        let value = match name {
            "key" => return key(argument, random),
            "card" => card(argument, random),
            "iban" => iban(argument, random),
            "id" => id(argument, random),
            "imei" => luhn(&format!("35{}", random.digits(12))),
            "btc" => bitcoin(random),
            "bech32" => bech32(random),
            _ => panic!("no value `{name}` in `{spec}`"),
        };
        // Numbers of few different digits are nobody's, and rules may say so.
        let varied: std::collections::BTreeSet<char> = value.chars().collect();
        if varied.len() >= 4 {
            return if is_broken { broken(&value) } else { value };
        }
    }
}

/// The value with its last digit one higher: no single digit may change under any of these checks. For a value that ends
/// in letters, the last digit before them.
fn broken(value: &str) -> String {
    let at = value.rfind(|c: char| c.is_ascii_digit()).expect("a digit");
    let digit = value.as_bytes()[at] - b'0';
    format!("{}{}{}", &value[..at], (digit + 1) % 10, &value[at + 1..])
}

fn numbers(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

fn weighted(text: &str, weights: &[u32]) -> u32 {
    numbers(text).iter().zip(weights).map(|(digit, weight)| digit * weight).sum()
}

/// The text with its Luhn digit.
fn luhn(body: &str) -> String {
    let doubled =
        |(nth, digit): (usize, u32)| if nth % 2 == 0 { digit * 2 / 10 + digit * 2 % 10 } else { digit };
    let sum: u32 = numbers(body).into_iter().rev().enumerate().map(doubled).sum();
    format!("{body}{}", (10 - sum % 10) % 10)
}

/// A card number: `PREFIX/LENGTH`.
fn card(argument: &str, random: &mut Random) -> String {
    let (prefix, length) = argument.split_once('/').expect("PREFIX/LENGTH");
    let length: usize = length.parse().expect("a length");
    luhn(&format!("{prefix}{}", random.digits(length - 1 - prefix.len())))
}

/// The remainder of a number that may hold letters (A = 10), by 97.
fn mod97(text: &str) -> u32 {
    text.chars().fold(0, |sum, c| match c.to_digit(36).expect("a letter or digit") {
        digit @ 0..10 => (sum * 10 + digit) % 97,
        letter => (sum * 100 + letter) % 97,
    })
}

/// An account number of a country and its shape: `DE/n18` is 18 digits; `a` letters, `c` letters and digits.
fn iban(argument: &str, random: &mut Random) -> String {
    let (country, shape) = argument.split_once('/').expect("COUNTRY/SHAPE");
    let mut body = String::new();
    for part in shape.split(' ') {
        let length: usize = part[1..].parse().expect("a length");
        body += &match &part[..1] {
            "n" => random.digits(length),
            "a" => random.text(UPPER, length),
            _ => random.text(&BASE62[..36], length),
        };
    }
    let check = 98 - mod97(&format!("{body}{country}00"));
    format!("{country}{check:02}{body}")
}

/// A date from 1950 on as year, month, day.
fn date(random: &mut Random) -> (usize, usize, usize) {
    (1950 + random.below(50), 1 + random.below(12), 1 + random.below(28))
}

/// Check digit of ISO 7064, MOD 11,10.
fn mod11_10(body: &str) -> u32 {
    let rest = numbers(body).into_iter().fold(10, |rest, digit| {
        let sum = (digit + rest) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (11 - rest) % 10
}

/// A number of a person or firm, with its check digits, by country.
fn id(scheme: &str, random: &mut Random) -> String {
    let (year, month, day) = date(random);
    let short = year % 100;
    // Some checks have no digit for some remainders: another number is drawn then.
    loop {
        let found = match scheme {
            "es-dni" => {
                let body = random.digits(8);
                let at = body.parse::<usize>().expect("digits") % 23;
                Some(format!("{body}{}", &"TRWAGMYFPDXBNJZSQVHLCKE"[at..=at]))
            }
            "pl-pesel" => {
                let body = format!("{short:02}{month:02}{day:02}{}", random.digits(4));
                let sum = weighted(&body, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3]);
                Some(format!("{body}{}", (10 - sum % 10) % 10))
            }
            "br-cpf" => {
                let digit = |body: &str| {
                    let weights: Vec<u32> = (2..=body.len() as u32 + 1).rev().collect();
                    let rest = weighted(body, &weights) * 10 % 11 % 10;
                    format!("{body}{rest}")
                };
                Some(digit(&digit(&random.digits(9))))
            }
            "in-aadhaar" => Some(verhoeff(&format!("{}{}", 2 + random.below(8), random.digits(10)))),
            "uk-nhs" => {
                let body = format!("{}{}", 4 + random.below(3), random.digits(8));
                let rest = 11 - weighted(&body, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
                (rest != 10).then(|| format!("{body}{}", rest % 11))
            }
            "nl-bsn" => {
                let body = format!("{}{}", 1 + random.below(9), random.digits(7));
                let rest = weighted(&body, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
                (rest != 10).then(|| format!("{body}{rest}"))
            }
            "de-tax-id" => {
                // Ten digits of which one occurs twice and one not at all.
                let mut pool: Vec<char> = DIGITS.chars().collect();
                (1..10).rev().for_each(|at| pool.swap(at, random.below(at + 1)));
                pool[9] = pool[random.below(5)];
                let body: String = pool.iter().collect();
                (!body.starts_with('0')).then(|| format!("{body}{}", mod11_10(&body)))
            }
            "ch-ahv" => {
                let body = format!("756{}", random.digits(9));
                let sum = weighted(&body, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3]);
                Some(format!("{body}{}", (10 - sum % 10) % 10))
            }
            "be-nn" => {
                let body = format!("{short:02}{month:02}{day:02}{:03}", 1 + random.below(990));
                let rest = 97 - body.parse::<u64>().expect("digits") % 97;
                Some(format!("{body}{rest:02}"))
            }
            "ro-cnp" => {
                let body = format!(
                    "{}{short:02}{month:02}{day:02}12{:03}",
                    1 + random.below(2),
                    1 + random.below(900)
                );
                let rest = weighted(&body, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11;
                Some(format!("{body}{}", if rest == 10 { 1 } else { rest }))
            }
            "bg-egn" => {
                let body = format!("{short:02}{month:02}{day:02}{}", random.digits(3));
                let rest = weighted(&body, &[2, 4, 8, 5, 10, 9, 7, 3, 6]) % 11 % 10;
                Some(format!("{body}{rest}"))
            }
            "hr-oib" => {
                let body = format!("{}{}", 1 + random.below(9), random.digits(9));
                Some(format!("{body}{}", mod11_10(&body)))
            }
            "ee-ik" => {
                let body = format!("{}{short:02}{month:02}{day:02}{}", 3 + random.below(2), random.digits(3));
                let first = weighted(&body, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 1]) % 11;
                let rest = if first < 10 {
                    first
                } else {
                    weighted(&body, &[3, 4, 5, 6, 7, 8, 9, 1, 2, 3]) % 11 % 10
                };
                Some(format!("{body}{rest}"))
            }
            "pt-nif" => {
                let body = format!("{}{}", 1 + random.below(3), random.digits(7));
                let rest = 11 - weighted(&body, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
                Some(format!("{body}{}", if rest >= 10 { 0 } else { rest }))
            }
            "tr-id" => {
                let body = format!("{}{}", 1 + random.below(9), random.digits(8));
                let d = numbers(&body);
                let (odd, even) = (d[0] + d[2] + d[4] + d[6] + d[8], d[1] + d[3] + d[5] + d[7]);
                let tenth = (odd * 7 + 100 - even) % 10;
                Some(format!("{body}{tenth}{}", (odd + even + tenth) % 10))
            }
            "cn-id" => {
                let body = format!("110105{year}{month:02}{day:02}{:03}", random.below(1000));
                let sum = weighted(&body, &[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11;
                Some(format!("{body}{}", &"10X98765432"[sum as usize..=sum as usize]))
            }
            "th-id" => {
                let body = format!("{}{}", 1 + random.below(8), random.digits(11));
                let sum = weighted(&body, &[13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
                Some(format!("{body}{}", (11 - sum) % 10))
            }
            "sg-nric" => {
                let body = random.digits(7);
                let sum = weighted(&body, &[2, 7, 6, 5, 4, 3, 2]) as usize % 11;
                Some(format!("S{body}{}", &"JZIHGFEDCBA"[sum..=sum]))
            }
            "il-id" => Some(luhn(&format!("{}{}", 1 + random.below(3), random.digits(7)))),
            "za-id" => Some(luhn(&format!("{short:02}{month:02}{day:02}{}08", random.digits(4)))),
            "ca-sin" => Some(luhn(&format!("{}{}", 1 + random.below(7), random.digits(7)))),
            "us-npi" => luhn(&format!("808401{}", random.digits(8))).strip_prefix("80840").map(str::to_owned),
            "se-pnr" => {
                let luhned = luhn(&format!("{short:02}{month:02}{day:02}{}", random.digits(3)));
                Some(format!("{}-{}", &luhned[..6], &luhned[6..]))
            }
            "fr-nir" => {
                let body = format!(
                    "{}{short:02}{month:02}75{:03}{:03}",
                    1 + random.below(2),
                    1 + random.below(900),
                    1 + random.below(900)
                );
                let rest = 97 - body.parse::<u64>().expect("digits") % 97;
                Some(format!("{body}{rest:02}"))
            }
            "no-fnr" => {
                let body = format!("{day:02}{month:02}{short:02}{:03}", random.below(500));
                let first = 11 - weighted(&body, &[3, 7, 6, 1, 8, 9, 4, 5, 2]) % 11;
                let body = format!("{body}{}", first % 11);
                let second = 11 - weighted(&body, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
                (first != 10 && second != 10).then(|| format!("{body}{}", second % 11))
            }
            "fi-hetu" => {
                let (born, serial) =
                    (format!("{day:02}{month:02}{short:02}"), format!("{:03}", 2 + random.below(898)));
                let rest = format!("{born}{serial}").parse::<usize>().expect("digits") % 31;
                Some(format!("{born}-{serial}{}", &"0123456789ABCDEFHJKLMNPRSTUVWXY"[rest..=rest]))
            }
            "cl-rut" => {
                let body = format!("{}{}", 1 + random.below(2), random.digits(7));
                let weights = [3, 2, 7, 6, 5, 4, 3, 2];
                let rest = match 11 - weighted(&body, &weights) % 11 {
                    11 => "0".to_owned(),
                    10 => "K".to_owned(),
                    rest => rest.to_string(),
                };
                Some(format!("{body}-{rest}"))
            }
            "au-tfn" => {
                let body = format!("{}{}", 1 + random.below(8), random.digits(7));
                let sum = weighted(&body, &[1, 4, 3, 7, 5, 8, 6, 9]);
                (0..10).find(|last| (sum + last * 10).is_multiple_of(11)).map(|last| format!("{body}{last}"))
            }
            "au-abn" => {
                let body = random.digits(9);
                (10..100).map(|check| format!("{check}{body}")).find(|whole| {
                    let sum = weighted(whole, &[10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19]);
                    (sum - 10).is_multiple_of(89)
                })
            }
            "kr-rrn" => {
                let body = format!("{short:02}{month:02}{day:02}{}{}", 1 + random.below(2), random.digits(5));
                let sum = weighted(&body, &[2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]) % 11;
                let whole = format!("{body}{}", (11 - sum) % 10);
                Some(format!("{}-{}", &whole[..6], &whole[6..]))
            }
            "tw-id" => {
                // A stands for 10.
                let body = format!("{}{}", 1 + random.below(2), random.digits(7));
                let sum = 1 + weighted(&body, &[8, 7, 6, 5, 4, 3, 2, 1]);
                Some(format!("A{body}{}", (10 - sum % 10) % 10))
            }
            "us-ssn" => Some(format!(
                "{:03}-{:02}-{:04}",
                130 + random.below(500),
                11 + random.below(80),
                1100 + random.below(8000)
            )),
            _ => panic!("no scheme `{scheme}`"),
        };
        if let Some(found) = found {
            return found;
        }
    }
}

/// The text with its Verhoeff digit.
fn verhoeff(body: &str) -> String {
    // Multiplication of the dihedral group D5, and the permutation applied once for each place.
    let times = |a: u32, b: u32| match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => 5 + (a + b - 5) % 5,
        (false, true) => 5 + (a - b) % 5,
        (false, false) => (a + 5 - b) % 5,
    };
    let once = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let permuted = |place: usize, digit: u32| (0..place % 8).fold(digit, |digit, _| once[digit as usize]);
    let holds = |whole: &String| {
        let places = numbers(whole).into_iter().rev().enumerate();
        places.fold(0, |sum, (nth, digit)| times(sum, permuted(nth, digit))) == 0
    };
    (0..10).map(|last| format!("{body}{last}")).find(holds).expect("a check digit")
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).to_vec()
}

/// A Bitcoin address of the first kind: version, hash, four bytes of a double SHA-256, in base 58.
fn bitcoin(random: &mut Random) -> String {
    let mut bytes: Vec<u8> = std::iter::once(0).chain((0..20).map(|_| 1 + random.below(255) as u8)).collect();
    let check = sha256(&sha256(&bytes));
    bytes.extend(&check[..4]);
    let mut out = Vec::new();
    let mut rest: Vec<u32> = bytes.iter().map(|byte| u32::from(*byte)).collect();
    while rest.iter().any(|byte| *byte != 0) {
        let mut carry = 0;
        for byte in &mut rest {
            let sum = carry * 256 + *byte;
            (*byte, carry) = (sum / 58, sum % 58);
        }
        out.push(BASE58.as_bytes()[carry as usize] as char);
    }
    out.extend(bytes.iter().take_while(|byte| **byte == 0).map(|_| '1'));
    out.iter().rev().collect()
}

/// A Bitcoin address of the second kind (BIP 173).
fn bech32(random: &mut Random) -> String {
    let data: Vec<u32> = std::iter::once(0).chain((0..32).map(|_| random.below(32) as u32)).collect();
    let polymod = |values: &[u32]| {
        let mut sum: u32 = 1;
        for value in values {
            let top = sum >> 25;
            sum = (sum & 0x1ff_ffff) << 5 ^ value;
            for (bit, generator) in
                [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3].iter().enumerate()
            {
                if top >> bit & 1 == 1 {
                    sum ^= generator;
                }
            }
        }
        sum
    };
    let prefix = "bc";
    let mut values: Vec<u32> = prefix.bytes().map(|b| u32::from(b >> 5)).collect();
    values.push(0);
    values.extend(prefix.bytes().map(|b| u32::from(b & 31)));
    values.extend(&data);
    values.extend([0; 6]);
    let check = polymod(&values) ^ 1;
    let all = data.iter().copied().chain((0..6).map(|nth| check >> (5 * (5 - nth)) & 31));
    let text: String = all.map(|value| BECH32.as_bytes()[value as usize] as char).collect();
    format!("{prefix}1{text}")
}

/// A key: text in which `<b62 36>` is so many characters of an alphabet, and `<crc>` the checksum of GitHub and npm over
/// the characters before it.
fn key(shape: &str, random: &mut Random) -> String {
    let mut out = String::new();
    let mut rest = shape;
    while let Some((before, tail)) = rest.split_once('<') {
        out += before;
        let (part, tail) = tail.split_once('>').expect("a closing bracket");
        rest = tail;
        let (alphabet, length) = part.split_once(' ').unwrap_or((part, "0"));
        let length: usize = length.parse().expect("a length");
        out += &match alphabet {
            "b62" => random.text(BASE62, length),
            "b64" => random.text(BASE64, length),
            "b64u" => random.text(&BASE64[..62], length),
            "b32" => random.text(BASE32, length),
            "hex" => random.text("0123456789abcdef", length),
            "HEX" => random.text("0123456789ABCDEF", length),
            "d" => random.digits(length),
            "A" => random.text(UPPER, length),
            "a" => random.text(LOWER, length),
            "A0" => random.text(&BASE62[..36], length),
            "a0" => random.text("abcdefghijklmnopqrstuvwxyz0123456789", length),
            "crc" => {
                let body = out.rsplit_once('_').map_or(out.as_str(), |(_, body)| body);
                base62_of(crc32fast::hash(body.as_bytes()))
            }
            _ => panic!("no alphabet `{alphabet}`"),
        };
    }
    out + rest
}

/// A checksum as six characters of base 62.
fn base62_of(mut number: u32) -> String {
    let mut out = [b'0'; 6];
    for place in out.iter_mut().rev() {
        *place = BASE62.as_bytes()[(number % 62) as usize];
        number /= 62;
    }
    String::from_utf8_lossy(&out).into_owned()
}
