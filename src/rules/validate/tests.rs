//! Tables of values each validator takes and refuses.

use super::Validator;

/// Checks one validator over values without a neighbourhood.
fn check(name: &str, accepted: &[&str], refused: &[&str]) {
    let validator = Validator::parse(name).expect("the table names a known validator");
    for value in accepted {
        assert!(validator.accepts(value, "", ""), "{name} has to accept {value}");
    }
    for value in refused {
        assert!(!validator.accepts(value, "", ""), "{name} has to refuse {value}");
    }
}

/// Checks one validator over (before, value, after).
fn check_in_place(name: &str, accepted: &[(&str, &str, &str)], refused: &[(&str, &str, &str)]) {
    let validator = Validator::parse(name).expect("the table names a known validator");
    for (before, value, after) in accepted {
        assert!(validator.accepts(value, before, after), "{name} has to accept {before}|{value}|{after}");
    }
    for (before, value, after) in refused {
        assert!(!validator.accepts(value, before, after), "{name} has to refuse {before}|{value}|{after}");
    }
}

#[test]
fn every_name_parses_and_an_unknown_one_lists_them() {
    for name in Validator::NAMES.iter().filter(|name| !name.contains('<')) {
        Validator::parse(name).expect("a listed name parses");
    }
    let error = Validator::parse("luhm").expect_err("a misspelt name is refused");
    assert!(error.to_string().contains("luhn"), "{error}");
    for bad in [
        "entropy:",
        "entropy:abc",
        "entropy:9",
        "entropy:NaN",
        "entropy-above:8",
        "entropy-above:NaN",
        "national-id:xx-none",
    ] {
        assert!(Validator::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn no_validator_panics_on_odd_values() {
    let odd = [
        "",
        "é",
        "ß:é@é.é",
        "::",
        "_",
        "ghp_",
        "ghp_é12345",
        "+",
        "0",
        "\u{1F600}\u{1F600}",
        "1.",
        "=",
        "a@",
        "@b",
    ];
    let schemes = Validator::schemes().map(|scheme| format!("national-id:{scheme}"));
    let plain = Validator::NAMES.iter().filter(|name| !name.contains('<')).map(|name| (*name).to_owned());
    for name in plain.chain(schemes).chain(["entropy:3".to_owned(), "entropy-above:0".to_owned()]) {
        let validator = Validator::parse(&name).expect("a listed name parses");
        for value in odd {
            for around in odd {
                validator.accepts(value, around, around);
            }
        }
        for length in 0..24 {
            validator.accepts(&"7".repeat(length), "", "");
            validator.accepts(&"é".repeat(length), "é", "é");
            validator.accepts(&"A1".repeat(length), "", "");
        }
    }
}

#[test]
fn cards() {
    check("luhn", &["4111 1111 1111 1111", "79927398713"], &["4111 1111 1111 1112", "0000", "7"]);
    check(
        "card-issuer",
        &["4111 1111 1111 1111", "5555-5555-5555-4444", "378282246310005", "2223003122003222"],
        &["9999888877776666", "411111111111111", "1234567890123456", "4444444444444444"],
    );
    check_in_place(
        "card-issuer",
        &[("card: ", "4111111111111111", "."), ("(", "4111111111111111", ")")],
        &[("0.", "4111111111111111", ""), ("c9f0-", "4111111111111111", ""), ("", "4111111111111111", ".25")],
    );
}

#[test]
fn bank_numbers() {
    check(
        "iban",
        &["GB82 WEST 1234 5698 7654 32", "DE89370400440532013000", "de89 3704 0044 0532 0130 00"],
        &["GB82 WEST 1234 5698 7654 33", "XX89370400440532013000", "DE8937040044053201300", ""],
    );
    check("aba-routing", &["021000021", "011401533"], &["021000022", "991000021"]);
}

#[test]
fn social_security_numbers() {
    check(
        "us-ssn",
        &["536-90-4399", "001-01-0001", "899 99 9999"],
        &[
            "666-12-3456",
            "900-12-3456",
            "000-12-3456",
            "123-00-4567",
            "123-45-0000",
            "078-05-1120",
            "111-11-1111",
        ],
    );
}

#[test]
fn phones() {
    check(
        "phone-nanp",
        &["(212) 555-0123", "1-415-867-5309"],
        &["123-456-7890", "212-155-0123", "911-555-0123"],
    );
    check(
        "phone-e164",
        &["+44 20 7946 0958", "+44 (0)20 7946 0958", "+1 212 555 0123", "0049 30 901820", "+5511987654321"],
        &["+1 112 555 0123", "+999 123456", "+44 123", "+1111111111"],
    );
    check(
        "phone-local",
        &["030 901820", "01 23 45 67 89"],
        &["2024-05-17", "17.05.2024", "1111111", "12345"],
    );
}

#[test]
fn addresses() {
    check_in_place(
        "ipv4",
        &[
            ("from ", "145.61.13.33", " port"),
            ("http://", "8.8.8.8", "/x"),
            ("host=", "10.4.2.1", ":80"),
            ("(", "9.9.9.9", ")."),
        ],
        &[
            ("a version ", "10.4.2.1", ""),
            ("v", "10.4.2.1", ""),
            ("Chrome/", "118.0.6916.47", " Safari"),
            ("OID 1.", "3.6.1.4", ".1.2"),
            ("foo==", "1.2.3.4", ""),
            ("", "1.2.3.4", "-beta"),
            ("section ", "3.1.4.1", ""),
            ("", "256.1.1.1", ""),
            ("", "1.2.3.4", ".5"),
        ],
    );
    check_in_place(
        "ipv6",
        &[
            ("", "2001:db8::8a2e:370:7334", ""),
            ("[", "fe80::1", "]"),
            ("from ", "::1", ""),
            ("", "::ffff:10.0.0.1", ""),
        ],
        &[
            ("std", "::", "vec"),
            ("", "::", ""),
            ("at ", "12:34:56", ""),
            ("", "dead::beef", "("),
            ("", "a::b", ""),
        ],
    );
    check_in_place(
        "mac",
        &[("", "3c:5a:b4:12:9e:0f", ""), ("", "3C-5A-B4-12-9E-0F", " "), ("", "3c5a.b412.9e0f", "")],
        &[
            ("", "00:00:00:00:00:00", ""),
            ("", "ff:ff:ff:ff:ff:ff", ""),
            ("aa:", "3c:5a:b4:12:9e:0f", ""),
            ("", "3c:5a:b4:12:9e:0f", ":01"),
        ],
    );
    check(
        "imei",
        &["490154203237518", "49-015420-323751-8"],
        &["490154203237519", "000000000000000", "12345"],
    );
}

#[test]
fn mail_addresses() {
    check_in_place(
        "email",
        &[
            ("", "ann.lee@mail.test.org", ""),
            ("<", "o'neil@uni-bonn.de", ">"),
            ("mailto:", "a@b.co", "?x"),
            ("", "x@sub.xn--p1ai", ""),
        ],
        &[
            ("", "git@github.com", ":org/repo"),
            ("https://user:pw", "x@host.com", "/"),
            ("https://", "user@host.com", "/"),
            ("", "icon@2x.png", ""),
            ("", "root@web1", ""),
            ("", "root@web1.example.com", ":~#"),
            ("ssh ", "deploy@web1.example.com", ""),
            ("", "getty@tty1.service", ""),
            ("", "a..b@c.com", ""),
            ("", "pkg@1.2.3", ""),
            ("node_modules/", "x@scope.com", ""),
        ],
    );
}

#[test]
fn wallets() {
    check(
        "base58check",
        &["1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"],
        &["1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3", "0OIl"],
    );
    check(
        "bech32",
        &["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"],
        &["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5", "bc1", "Bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"],
    );
    check(
        "hex-wallet",
        &[
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "0x109031c05318848ba78ba04165baaad1e1cd00da",
            // The addresses that EIP-55 gives as examples.
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        ],
        &[
            "0x0000000000000000000000000000000000000001",
            "0x1234",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD",
            "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        ],
    );
}

#[test]
fn randomness() {
    check("entropy:3", &["q8zr2lm9"], &["q8zr2lm8"]);
    check("entropy-above:3", &["q8zr2lm9v"], &["q8zr2lm9", ""]);
    check("entropy:3.5", &["q8Zr2Lm9Vx4Tb7Nc"], &["aaaaaaaabbbbbbbb", ""]);
    check(
        "mixed-classes",
        &["a1", "uyEwtIrMSdmNxPMG"],
        &["abc", "123", "", "getUserNameFromDatabase", "CAACIAAIoBAAoBEAAE", "uyEwtIrMSd"],
    );
    check(
        "random-looking",
        &["q8Zr2Lm9Vx4Tb7Nc", "hG5$kP9!wz", "9f8b7c6d5e4f3a2b1c", "xkqjzvwbnmtr", "Tr0ub4dor&3x"],
        &[
            "getUserPassword",
            "user_password_field",
            "Password",
            "correct-horse-battery",
            "my-service-name",
            "v1",
        ],
    );
    check(
        "password-like",
        &["hunter2Xk9!vQ", "mycoin!1", "Tr0ub4dor&3", "TuzJheIslXijcUO", "River-stone_42Lamp"],
        &[
            "Passwort",
            "reset_password_1",
            "Content-Type2",
            "getUserPassword",
            "XMLHttpRequest",
            "v1.2.3",
            "user/login",
            "12345678",
        ],
    );
    check(
        "not-hash",
        &["q8Zr2Lm9Vx4Tb7Nc", "9f8b7c6d5e"],
        &[
            "9f8b7c6d5e4f3a2b9f8b7c6d5e4f3a2b",
            "123e4567-e89b-42d3-a456-426614174000",
            "sha512-q8Zr2Lm9Vx4Tb7Nc==",
        ],
    );
}

#[test]
fn placeholders() {
    check(
        "not-placeholder",
        &["q8Zr2Lm9Vx4Tb7Nc", "hunter2Xk9!vQ", "pa$$w0rd-Zk3"],
        &[
            "your_api_key",
            "sk-your-api-key-goes-here",
            "xxxxxxxxxxxx",
            "<YOUR_TOKEN>",
            "${TOKEN}",
            "{{ token }}",
            "$TOKEN",
            "%TOKEN%",
            "changeme",
            "[SECRET_1]",
            "[REDACTED]",
            "********",
            "12345678",
            "abcdefgh",
            "password",
            "none",
            "",
            "11111111",
            "${{ secrets.X }}",
        ],
    );
    check(
        "not-filler",
        &["abcdefgh12345678", "password"],
        &["ghp_xxxxxxxxxxxxxxxx", "sk-aaaaaaaaaaaaaaaaaaaa", "sk-your-key"],
    );
    check_in_place(
        "not-code",
        &[("", "q8Zr2Lm9Vx4Tb7Nc", ""), ("", "a.q8Zr2Lm9Vx4Tb7Nc", ""), ("", "hG5(kP9!wz", "")],
        &[
            ("", "settings.GITHUB_API_SECRET", ""),
            ("", "getPassword", "()"),
            ("", "os.environ", "["),
            ("", "process.env.TOKEN", ""),
            ("", "user.password", ""),
            ("", "crypto::Secret", ""),
            ("", "/run/secrets/db", ""),
            ("", "decrypt(value", ""),
        ],
    );
}

#[test]
fn structured_tokens() {
    check(
        "jwt",
        &["eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI0MiJ9.c2lnbmF0dXJl"],
        &["eyJzdWIiOiI0MiJ9.eyJzdWIiOiI0MiJ9.c2ln", "eyJ", "abc.def.ghi"],
    );
    check("basic-auth", &["c3ZjOlprM3AhOXZR"], &["bm9jb2xvbmhlcmU=", "!!!!", "dXNlcjpwYXNzd29yZA=="]);
    check("base64-json", &["eyJhIjoxfQ"], &["aGVsbG8gd29ybGQ"]);
    check(
        "github-crc32",
        &["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", "ghs_Zk3vQ9xT7mWb2LcR8nYf5JdH1sGp4A4NyNLg"],
        &["ghp_Zk3vQ9xT7mWb2LcR8nYf5JdH1sGp4A4NyNLh", "ghp_", "4NyNLg"],
    );
    check(
        "npm-crc32",
        &["npm_Zk3vQ9xT7mWb2LcR8nYf5JdH1sGp4A32AN3e"],
        &["npm_Zk3vQ9xT7mWb2LcR8nYf5JdH1sGp4A32AN3f", "npm_"],
    );
}

#[test]
fn national_numbers() {
    check("national-id:es-dni", &["12345678Z", "X1234567L"], &["12345678A", "X1234567A"]);
    check("national-id:pl-pesel", &["44051401359"], &["44051401358"]);
    check("national-id:se-pnr", &["811218-9876", "19811218-9876"], &["811218-9875", "811318-9876"]);
    check("national-id:br-cpf", &["529.982.247-25"], &["529.982.247-26", "111.111.111-11"]);
    check("national-id:br-cnpj", &["11.222.333/0001-81"], &["11.222.333/0001-82"]);
    check("national-id:uk-nhs", &["943 476 5919"], &["943 476 5918"]);
    check("national-id:uk-nino", &["AB 12 34 56 C"], &["BG 12 34 56 C", "AB123456E"]);
    check("national-id:in-aadhaar", &["2341 2341 2346"], &["2341 2341 2347", "1341 2341 2346"]);
    check("national-id:nl-bsn", &["111222333"], &["111222334"]);
    check("national-id:no-fnr", &["01010750160"], &["01010750161"]);
    check("national-id:fi-hetu", &["131052-308T", "131052A308T"], &["131052-308U"]);
    check("national-id:fr-nir", &["2 55 08 14 168 025 38"], &["2 55 08 14 168 025 39"]);
    check("national-id:it-fiscal-code", &["RSSMRA85T10A562S"], &["RSSMRA85T10A562T"]);
    check("national-id:de-tax-id", &["36574261809"], &["36574261890", "12345678901"]);
    check("national-id:tr-id", &["10000000146"], &["10000000147"]);
    check("national-id:cn-id", &["11010519491231002X"], &["110105194912310021"]);
    check("national-id:sg-nric", &["S1234567D"], &["S1234567A"]);
    check("national-id:hk-id", &["A123456(3)"], &["A123456(4)"]);
    check("national-id:tw-id", &["A123456789"], &["A123456788"]);
    check("national-id:th-id", &["1-1017-00230-70-8"], &["1-1017-00230-70-4"]);
    check("national-id:cl-rut", &["12.345.678-5", "11.111.112-K"], &["12.345.678-6"]);
    check("national-id:au-tfn", &["123 456 782"], &["123 456 783"]);
    check("national-id:au-abn", &["51 824 753 556"], &["51 824 753 557"]);
    check("national-id:ca-sin", &["130 692 544"], &["130 692 545"]);
    check("national-id:za-id", &["8001015009087"], &["8001015009088"]);
    check("national-id:us-npi", &["1234567893"], &["1234567894"]);
    check("national-id:be-nn", &["85.07.30-033.28"], &["85.07.30-033.29"]);
    check("national-id:ro-cnp", &["1630615123457"], &["1630615123458"]);
    check("national-id:ch-ahv", &["756.1234.5678.97"], &["756.1234.5678.98"]);
    check("national-id:hr-oib", &["33392005961"], &["33392005962"]);
    check(
        "birth-date",
        &["1985-07-30", "30.07.1985", "07/30/85"],
        &["1785-07-30", "31.02.1985", "13/13/1985"],
    );
}

#[test]
fn national_numbers_of_further_countries() {
    let schemes: [(&str, &[&str], &[&str]); 25] = [
        (
            "ar-cuit",
            &["20308246281", "27280841485", "30729975288", "27014193141"],
            &["27260181590", "30301661318", "27091390996"],
        ),
        (
            "at-svnr",
            &["4734250429", "5319110634", "5913040763", "6660280682"],
            &["9227140636", "5446210438", "8861061120"],
        ),
        (
            "co-nit",
            &["5440559874", "4491923275", "0362515578", "2913072120"],
            &["5787200977", "3797276112", "5651788002"],
        ),
        (
            "do-cedula",
            &["00906781851", "00228323911", "00547106724", "00182156380"],
            &["00369848578", "00933331245", "00995682307"],
        ),
        (
            "ec-ci",
            &["2437960095", "1742877325", "2444282384", "0154943120"],
            &["0109915906", "0104804619", "0150327894"],
        ),
        (
            "gr-afm",
            &["583976413", "558358650", "291244498", "673948133"],
            &["371295896", "238134138", "473873891"],
        ),
        (
            "gr-amka",
            &["26036142441", "08106449633", "04022819017", "06093584156"],
            &["26011301650", "08104866304", "01059063353"],
        ),
        ("gt-nit", &["86167545", "42351618", "4179267K", "73033561"], &["7078519K", "13056159", "27724407"]),
        ("hu-tax", &["8071592153"], &["8071592154", "7071592153"]),
        (
            "ie-pps",
            &["1334046V", "5062560RA", "1580454O", "1412786A"],
            &["2979246GA", "4013499DB", "1916411BB"],
        ),
        (
            "is-kt",
            &["1603103599", "1406006600", "2508222860", "0206713510"],
            &["0712081800", "0109627949", "0107724809"],
        ),
        ("jp-my-number", &["123456789018"], &["123456789019"]),
        ("kz-iin", &["651018359799", "541001448338", "950818462328", "830724312904"], &["651018359790"]),
        (
            "lv-pk",
            &["14102220715", "09018622141", "27054419190", "20089518891"],
            &["26101619066", "08099119375", "07104117928"],
        ),
        (
            "md-idnp",
            &["2955006433917", "2768233551141", "2699280123325", "2634525727487"],
            &["2313133179156", "2572672567281", "2178711352196"],
        ),
        ("nz-ird", &["37016438", "28817975", "19205118", "33089171"], &["49022353", "45629799", "19935028"]),
        (
            "pe-ruc",
            &["10137108017", "20572897444", "10787080061", "20588524681"],
            &["20013285012", "20836284303", "10208187518"],
        ),
        (
            "rs-jmbg",
            &["1505001488609", "2702001003552", "1311001682856", "1101980451393"],
            &["0511956877038", "1607001603437", "0809980831672"],
        ),
        (
            "ru-inn",
            &["249167846503", "036128338869", "784629209004", "338966827646"],
            &["455986476355", "064330242571", "527264682884"],
        ),
        ("ru-snils", &["11223344595"], &["11223344596"]),
        (
            "sg-uen",
            &["S91FC7743J", "88288381W", "T19FC7796J", "201447378E"],
            &["57869108H", "S53LL8974H", "66792049W"],
        ),
        (
            "ua-rntrc",
            &["8917775597", "6371268109", "7251948046", "4180279753"],
            &["1326195943", "5751141200", "8547377228"],
        ),
        ("uy-ci", &["12345672"], &["12345673"]),
        (
            "ve-rif",
            &["G760188702", "V732260788", "J531658387", "E964281664"],
            &["V151347745", "V373221030", "J199879297"],
        ),
        (
            "vn-mst",
            &["0128489391", "0166054680", "0191424367", "0117694688"],
            &["0147624469", "0158627834", "0179261671"],
        ),
    ];
    for (scheme, valid, invalid) in schemes {
        check(&format!("national-id:{scheme}"), valid, invalid);
    }
}

#[test]
fn rows_in_order_are_not_random() {
    check(
        "not-sequence",
        &["Zk3vQ9xT7mWb2LcR8nYf5JdH", "f81d4fae7dec11d0a76500a0c91e6bf6", "abcd-Xk39fQ7Lm2"],
        &["sk-abcdefghijkl9Qx", "a7f345678xQ2", "1234xQ5678", "zyxwvu-Kq9"],
    );
}

#[test]
fn tokens_that_begin_like_those_of_an_issuer_are_left_to_its_rule() {
    check(
        "not-issued-form",
        &["Zk3vQ9xT7mWb", "sk", "glass-house-9", "12:Abc", "tokenhvs.x"],
        &["hvs.Zk3v", "HVS.Zk3v", "xoxb-1", "glpat-Zk3v", "123456:AZk3v", "npm_x", "SG.abc"],
    );
}

#[test]
fn default_words_are_known_in_disguise() {
    check(
        "not-default-word",
        &["Zk3vQ9!", "tr0mbone", "passw0rdZ", "password123", "Testarossa7", "my-Zk3vQ9", "test-1234567"],
        &[
            "p@ssw0rd",
            "s3cr3t",
            "super$ecret",
            "$ecret",
            "4dm1n",
            "TestPassword123!",
            "fakepassword1",
            "not-a-real-secret",
            "dev-only-secret",
        ],
    );
}

#[test]
fn ids_in_base64_are_read() {
    check(
        "base64-digits",
        &["MTE4MzQyMDk1NzcxMzQ4MTI2.x.y", "MTE4MzQyMDk1"],
        &["MTE4MzQyMDk1x.x", "Zk3vQ9xT", "", "MTIz"],
    );
}

#[test]
fn basic_credentials_may_hold_any_password() {
    // "deploy:" with a password of UTF-8, and one with a bad byte in it.
    check(
        "basic-auth",
        &["ZGVwbG95OmfDvHIhMTIz", "ZGVwbG95OlprM3b/UTl4VDdt"],
        &["ZGVwbG95", "OjpyZWFs//8=", "Zm9v/zpiYXI="],
    );
}

#[test]
fn what_is_cut_out_of_a_block_of_base64_is_no_token() {
    const TOKEN: &str = "AQVNKtqoImJMOmlsZxu57goudyddqvixCs4ThrVw";
    for name in ["not-filler", "random-looking"] {
        check_in_place(
            name,
            &[
                ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ ", TOKEN, " AAAADUlEQVR42mNk+M9QDwADhgGAWjR9"),
                ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", TOKEN, "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9"),
                ("https://hooks.example.com/services/", TOKEN, "/send"),
                ("/home/runner/work/project/checkouts/of/everything/there/is/", TOKEN, ""),
                ("", TOKEN, "/Users/Ada/Documents/2026/"),
            ],
            &[
                ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ/", TOKEN, "+AADUlEQVR42mNk+M9QDwADhgGAWjR9"),
                ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ+", TOKEN, "AAADUlEQVR42mNk+M9QDwADhgGAWjR9"),
                ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", TOKEN, "/AADUlEQVR42mNk+M9QDwADhgGAWjR9"),
            ],
        );
    }
}

#[test]
fn numbers_in_rows_and_with_extensions() {
    check_in_place(
        "card-issuer",
        &[
            ("", "4111111111111111", ",5555555555554444"),
            ("1,", "4111111111111111", ",2027"),
            ("1042877,", "4111111111111111", ""),
            ("", "4111-1111-1111-1111", ",5555-5555-5555-4444"),
            ("4111-1111-1111-1111,", "5555-5555-5555-4444", ""),
        ],
        &[("1,", "4111111111111111", ""), ("", "4111111111111111", ",50"), ("0.", "4111111111111111", "")],
    );
    check_in_place(
        "phone-nanp",
        &[
            ("", "212-555-0123", "x42"),
            ("", "212-555-0123", "ext. 42"),
            ("", "212/555/0123", "/"),
            ("", "212-555-0123", "-Fax"),
        ],
        &[("", "217-857-1092", "-B"), ("", "217/857/1092", "/4"), ("", "212-555-0123", "xy")],
    );
    check("base58check", &["rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh"], &["rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLk"]);
    check("ipv6", &["::145.61.13.33", "::2:3:4:5:6:7:8"], &["::", "1::2::3"]);
    check_in_place(
        "phone-plan",
        &[("", "+44 20 7946 0958", "")],
        &[("", "+4", ""), ("", "+44 20 7946 0958", "a")],
    );
    check_in_place(
        "phone-region",
        &[("", "030 123456", " x")],
        &[("", "2024-05-17", ""), ("$", "030 123456", "")],
    );
}

/// Values of an independent program, one of which a digit or letter was changed in for each that is refused.
#[test]
fn numbers_that_stand_beside_their_name() {
    for (scheme, accepted, refused) in [
        (
            "fr-spi",
            &["29 47 173 582 500", "0733228457178", "0238201573456", "0985420176111"][..],
            &[
                "2947173582502",
                "0733228457179",
                "0238201573450",
                "4985420176111",
                "294717358250",
                "0000000000000",
            ][..],
        ),
        (
            "uk-utr",
            &["1846200290", "29646 73553", "1859986512", "8334125117K", "K4261852689"],
            &["3846200290", "3964673553", "3859986512", "3334125117K", "184620029", "1111111111"],
        ),
        (
            "pl-regon",
            &["837282565", "766-250-519", "92517991676775", "27456758590925"],
            &["837282568", "766250517", "92517991676777", "27456758590927", "8372825650"],
        ),
        (
            "pl-id-card",
            &["LBC409843", "MBE 956902", "gce832771", "GSE056054"],
            &["LBC409842", "MBE956904", "GCE832779", "GSE056050", "LB1409843", "123456789"],
        ),
        (
            "es-cif",
            &["G86723145", "C-11836384", "F0102630A", "E3729718A"],
            &["G86723146", "C11836389", "F0102630B", "E37297186", "X86723145", "G8672314"],
        ),
        (
            "pt-cc",
            &["68605381 2 RZ2", "726301199NA2", "880027262OW1", "220351256dd7"],
            &["686053812RZ9", "726301199NA0", "880027262OW9", "220351256DD0", "68605381", "68605381AARZ2"],
        ),
        (
            "by-unp",
            &["662727472", "374449494", "CC0364665", "KO9618684"],
            &["662727478", "374449490", "CC0364666", "KO9618686", "862727472", "CX0364665", "C60364665"],
        ),
        (
            "mx-rfc",
            &["MORL960124KV8", "MAB-410916-DK6", "A&B4202177D3", "PEÑA140604PX2", "peña140604px2"],
            &[
                "MORL960124KV7",
                "MAB410916DK0",
                "A&B4202177D0",
                "PEÑA140604PX5",
                "MORL961324KV8",
                "MORL960124",
            ],
        ),
    ] {
        check(&format!("national-id:{scheme}"), accepted, refused);
    }
}

/// Addresses of an independent program from random keys, and the same with a letter changed.
#[test]
fn wallets_with_checks_of_their_chains() {
    check_in_place(
        "cashaddr",
        &[
            ("", "prtraw2eyfn93xn0nv6w435vwawrjj4zfqv88sjmnr", ""),
            ("pay bitcoincash:", "prtraw2eyfn93xn0nv6w435vwawrjj4zfqv88sjmnr", " now"),
            ("BITCOINCASH:", "PRTRAW2EYFN93XN0NV6W435VWAWRJJ4ZFQV88SJMNR", ""),
            ("bchtest:", "qzhv0e7gvke8af5ksmn286fltpcu37t6myalmaz6ee", ""),
            ("ecash:", "pzv5wzk55y3d0pq256uzq403a75qprsecsl8n649hx", ""),
            ("simpleledger:", "prtj9sw9pf8jh09kczeatjwd8hvwpf305gjuv44uzp", ""),
        ],
        &[
            ("bitcoincash:", "prtraw2eyfn93xn0nv6w435vwawrjj4zfqv88sjmnq", ""),
            ("ecash:", "prtraw2eyfn93xn0nv6w435vwawrjj4zfqv88sjmnr", ""),
            ("", "pb", ""),
            ("", "", ""),
        ],
    );
    check(
        "monero",
        &[
            "44NnZbuQuHGf8o3BxJZuiEC1UWiuLvPvDAiu3nTsoQtNB1bU2PzfwBgdth6sk2bb4fXDtHnhPaBufAuA1yntevETSK4BQHu",
            "83P7MskvmN52ofS6ANWNwaLu16GsuiMPXhzWQSSCNn6q1uEg8gZxD9vNnoU6BAnDRmaZ3iCrhk9Qg29NwrVV4Z81HtqwCEV",
            "4DSeYeDpAKjBWMKDUbTa8RN4VR7YWZJSQ2qpARToHNSB6CLrTU2CEL1bTZkPaHrWMk15jCodbqyCLQGBB9TqUZhLidTXmWyVEfFG7LnKk5",
        ],
        &[
            "44NnZbuQuHGf8o3BxJZuiEC1UWiuLvPvDAiu3nTsoQtNB1bU2PzfwBgdth6sk2bb4fXDtHnhPaBufAuA1yntevETSK4BQHv",
            "44NnZbuQuHGf8o3BxJZuiEC1UWiuLvPvDAiu3nTsoQtNB1bU2PzfwBgdth6sk2bb4fXDtHnhPaBufAuA1yntevETSK4BQH",
            "zzzzzzzzzzz",
            "",
        ],
    );
    check(
        "solana",
        &["8jxkoNjFVf7PeHp3j7LXw3NsSCm8Ssxzg9Reu18fdzBP", "6R4GCsSkiipgzt1tw1MenUynAAhsxTz8epmj2osvf7Rg"],
        &[
            "yRWhP4MeYG4dcmTD33f9Ycoag3B2EGAL448XDFQgvGFuC",
            "2bFhXHCkzWkptLbAiMZGi5zT2nWs4aoYqfJvTXtjHBb",
            "zjxkoNjFVf7PeHp3j7LXw3NsSCm8Ssxzg9Reu18fdzBP",
            "0jxkoNjFVf7PeHp3j7LXw3NsSCm8Ssxzg9Reu18fdzBP",
        ],
    );
    check(
        "ss58",
        &[
            "16VCFcHHrf3SRqPyMPYXj5WW2SxvXDvnz4xb8UHCcUxSE2KA",
            "G1YddbqekyMHAktSUNgbS6ue4b5JiUstdVNm2EGeJre36Eh",
            "5F2QZ6C5Rf7fzfB2nDHHvuDifTtuMDe4rzwKPao52RuiqMHd",
            "WFE31NeqrSQhhWt5772b6X7HFGrpdQf3E5S7ZRT8qe1bPtu",
            "VdtFJ7YaoHaTca8nu6Bh8r6LHK7RRi46SgD9cRfyRckWpazFv",
        ],
        &[
            "16VCFcHHrf3SRqPyMPYXj5WW2SxvXDvnz4xb8UHCcUxSE2KB",
            "G1YddbqekyMHAktSUNgbS6ue4b5JiUstdVNm2EGeJre36Ei",
            "5F2QZ6C5Rf7fzfB2nDHHvuDifTtuMDe4rzwKPao52RuiqMH",
            "VdtFJ7YaoHaTca8nu6Bh8r6LHK7RRi46SgD9cRfyRckWpazFw",
        ],
    );
    check(
        "stellar",
        &[
            "GCGEKSKSZSR4WIYNJWRW4VDIVDBYHC5YBT33UF6QWP7DNH5DSAVI5MZM",
            "GAYBBTRDUY5BA5HPRXEGPFK3OWQOET25LEMRUXGUASSYROEXBWHECSZQ",
        ],
        &[
            "GCGEKSKSZSR4WIYNJWRW4VDIVDBYHC5YBT33UF6QWP7DNH5DSAVI5MZN",
            "GCGEKSKSZSR4WIYNJWRW4VDIVDBYHC5YBT33UF6QWP7DNH5DSAVI5MZ",
            "GCGEKSKSZSR4WIYNJWRW4VDIVDBYHC5YBT33UF6QWP7DNH5DSAVI5MZ1",
        ],
    );
    check(
        "ton",
        &[
            "EQBX3XBteG0lA3gJRlHVr-NownxU78AAzmq2_gQ2DasxWF1e",
            "UQAg8vVICaHszPb5MFz59qsZgT8wos2Do7sC6wPSJwhjQQMe",
            "kQD-MnbLG5gKpcIf_qVHDd9VnBDSwIkocU45JNXxygYdRYNh",
            "Ef-kNsQEAg8Jdn2VPuRHd04gQyX277aVnsrgjTC4YsgLGRgW",
        ],
        &[
            "EQBX3XBteG0lA3gJRlHVr-NownxU78AAzmq2_gQ2DasxWF1f",
            "UQBX3XBteG0lA3gJRlHVr-NownxU78AAzmq2_gQ2DasxWF1e",
            "EQBX3XBteG0lA3gJRlHVr-NownxU78AAzmq2_gQ2DasxWF",
        ],
    );
}

#[test]
fn cards_of_smaller_networks() {
    check(
        "card-issuer",
        &["6363681359172330", "6362975823313509", "30966008120517", "30962453058275565"],
        &["6363671359172330", "30976008120517", "122064882302416"],
    );
    check_in_place(
        "card-issuer",
        &[("UATP ", "122064882302416", ""), ("", "140451095785115", " (air travel card)")],
        &[
            ("UATP ", "1220648823024168", ""),
            ("order ", "122064882302416", ""),
            ("UATP ", "222064882302416", ""),
        ],
    );
}
