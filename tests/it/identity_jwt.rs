//! JSON web tokens: good and wrong ones as data in `tests/cases/identity/jwt.toml`, and keys that come from a file or a
//! URL and are replaced.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, encode};
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256,
    PublicKeyData as _, RsaKeySize,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tonic::Code;

use super::identity::{RELOADED_WITHIN, records, with_token};
use super::server::{Server, Setup, eventually, user};

const ISSUER: &str = "https://id.acme.test";

/// A key that signs, and its public half as it stands in a set.
struct Signer {
    private: EncodingKey,
    public: Value,
}

fn signer(id: &str, algorithm: Algorithm) -> Signer {
    let (pair, private, public) = match algorithm {
        Algorithm::ES256 | Algorithm::ES384 => {
            let kind =
                if algorithm == Algorithm::ES256 { &PKCS_ECDSA_P256_SHA256 } else { &PKCS_ECDSA_P384_SHA384 };
            let pair = KeyPair::generate_for(kind).expect("a key");
            let private = EncodingKey::from_ec_pem(pair.serialize_pem().as_bytes());
            let public = DecodingKey::from_ec_der(pair.der_bytes());
            (pair, private, public)
        }
        Algorithm::EdDSA => {
            let pair = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
            let private = EncodingKey::from_ed_pem(pair.serialize_pem().as_bytes());
            let public = DecodingKey::from_ed_der(pair.der_bytes());
            (pair, private, public)
        }
        _ => {
            let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).expect("a key");
            let private = EncodingKey::from_rsa_pem(pair.serialize_pem().as_bytes());
            let public = DecodingKey::from_rsa_der(pair.der_bytes());
            (pair, private, public)
        }
    };
    drop(pair);
    let public = Jwk::from_decoding_key(&public, Some(algorithm)).expect("a public key");
    let mut public = serde_json::to_value(public).expect("JSON");
    public["kid"] = json!(id);
    public["use"] = json!("sig");
    Signer { private: private.expect("a private key"), public }
}

fn set(keys: &[&Signer]) -> String {
    let keys: Vec<&Value> = keys.iter().map(|key| &key.public).collect();
    json!({ "keys": keys }).to_string()
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn good_claims() -> Value {
    json!({ "iss": ISSUER, "aud": "portcullis", "sub": "ada", "roles": ["agent"], "tenant": "acme", "exp": now() + 300 })
}

fn sign(signer: &Signer, algorithm: Algorithm, id: &str, claims: &Value) -> String {
    let mut header = Header::new(algorithm);
    header.kid = (!id.is_empty()).then(|| id.to_owned());
    encode(&header, claims, &signer.private).expect("signed")
}

fn settings(keys: &str) -> String {
    format!("auth: {{ mode: jwt, jwt: {{ {keys}, issuer: \"{ISSUER}\", audience: portcullis }} }}\n")
}

async fn code(server: &Server, token: &str) -> Code {
    let answer = server.client().await.check_messages(with_token(token, user("hello"))).await;
    answer.err().map_or(Code::Ok, |status| status.code())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    token: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    wanted: String,
    alg: Option<String>,
    key: Option<String>,
    kid: Option<String>,
    #[serde(default)]
    claims: BTreeMap<String, Value>,
    #[serde(default)]
    without: Vec<String>,
    expires_in: Option<i64>,
    starts_in: Option<i64>,
    #[serde(default)]
    crit: bool,
    raw: Option<String>,
    tenant: Option<String>,
}

/// The header `{"alg":"none","typ":"JWT"}`.
const NONE: &str = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0";

fn token_of(case: &Case, signers: &HashMap<&str, Signer>) -> String {
    let key = case.key.as_deref().unwrap_or("rsa");
    let algorithm: Algorithm = case.alg.as_deref().unwrap_or("RS256").parse().expect("an algorithm");
    let mut claims = good_claims();
    for (name, value) in &case.claims {
        claims[name] = match value.as_str().and_then(|text| text.strip_prefix('@')) {
            Some(length) => json!("x".repeat(length.parse().expect("a length"))),
            None => value.clone(),
        };
    }
    for (name, seconds) in [("exp", case.expires_in), ("nbf", case.starts_in)] {
        if let Some(seconds) = seconds {
            claims[name] = json!(now() + seconds);
        }
    }
    for name in &case.without {
        claims.as_object_mut().expect("claims").remove(name).expect("it was there");
    }
    let mut header = Header::new(algorithm);
    header.kid = match case.kid.as_deref() {
        Some("") => None,
        Some(id) => Some(id.to_owned()),
        None => Some(key.to_owned()),
    };
    if case.crit {
        header.crit = Some(vec!["exp".to_owned()]);
    }
    let token = encode(&header, &claims, &signers[key].private).expect("signed");
    let parts: Vec<&str> = token.split('.').collect();
    match case.raw.as_deref() {
        None => token,
        Some("none") => format!("{NONE}.{}.", parts[1]),
        Some("none_signed") => format!("{NONE}.{}.{}", parts[1], parts[2]),
        Some("unsigned") => format!("{}.{}.", parts[0], parts[1]),
        Some("changed") => {
            claims["roles"] = json!(["admin"]);
            let other = encode(&header, &claims, &signers[key].private).expect("signed");
            format!("{}.{}.{}", parts[0], other.split('.').nth(1).expect("claims"), parts[2])
        }
        Some("two_parts") => format!("{}.{}", parts[0], parts[1]),
        Some("words") => "not-a-token".to_owned(),
        Some(other) => panic!("{other} is no way to spoil a token"),
    }
}

async fn reasons(server: &Server) -> BTreeMap<String, u64> {
    let (_, metrics) = server.get("/metrics").await;
    let series =
        metrics.lines().filter_map(|line| line.strip_prefix("portcullis_auth_failures_total{reason=\""));
    series
        .map(|line| {
            let (reason, count) = line.split_once("\"} ").expect("a series");
            (reason.to_owned(), count.parse().expect("a count"))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_are_wrong_in_any_way_open_nothing() {
    let mut signers = HashMap::from([
        ("rsa", signer("rsa", Algorithm::RS256)),
        ("rsa2", signer("rsa2", Algorithm::RS256)),
        ("ec", signer("ec", Algorithm::ES256)),
        ("ec384", signer("ec384", Algorithm::ES384)),
        ("ed", signer("ed", Algorithm::EdDSA)),
        ("stranger", signer("stranger", Algorithm::RS256)),
    ]);
    signers.get_mut("rsa2").expect("it is there").public.as_object_mut().expect("a key").remove("alg");
    let modulus = signers["rsa"].public["n"].as_str().expect("a modulus").to_owned();
    signers
        .insert("hmac", Signer { private: EncodingKey::from_secret(modulus.as_bytes()), public: json!({}) });
    // `c2VjcmV0…`: what stands in the set, as base64.
    let shared =
        json!({ "kty": "oct", "kid": "oct", "alg": "HS256", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0" });
    let private = EncodingKey::from_secret(b"secretsecretsecretsecret");
    signers.insert("oct", Signer { private, public: shared });
    let listed = ["rsa", "rsa2", "ec", "ec384", "ed", "oct"].map(|name| &signers[name]);
    let setup = Setup::new();
    fs::write(setup.folder().join("keys.json"), set(&listed)).expect("written");
    let server = setup.settings(&settings("jwks_path: keys.json")).start();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/identity/jwt.toml");
    let table: Table = toml::from_str(&fs::read_to_string(path).expect("the table")).expect("a table");
    let mut wrong = Vec::new();
    let mut before = reasons(&server).await;
    for case in &table.token {
        let found = code(&server, &token_of(case, &signers)).await;
        let after = reasons(&server).await;
        let counted: Vec<&str> = after
            .iter()
            .filter(|(reason, count)| **count > before[*reason])
            .map(|(reason, _)| reason.as_str())
            .collect();
        before.clone_from(&after);
        let (code, reason) = match case.wanted.as_str() {
            "ok" => (Code::Ok, None),
            "denied" => (Code::PermissionDenied, Some("role")),
            reason => (Code::Unauthenticated, Some(reason)),
        };
        if (found, counted.as_slice()) != (code, reason.as_slice()) {
            wrong.push(format!("{}: {found:?}, counted as {counted:?}, wanted {}", case.name, case.wanted));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let good = table.token.iter().filter(|case| case.wanted == "ok").count();
    let records = records(&server, |text| text.lines().count() >= good).await;
    let tenants: Vec<String> = records
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).expect("JSON")["caller"]["tenant"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    let wanted: Vec<String> = table
        .token
        .iter()
        .filter(|case| case.wanted == "ok")
        .map(|case| case.tenant.clone().unwrap_or_else(|| "acme".to_owned()))
        .collect();
    assert_eq!(tenants, wanted);
    assert!(!server.log_text().contains("eyJ"), "no token is in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_file_are_replaced_and_a_broken_file_is_not_taken() {
    let (old, new) = (signer("one", Algorithm::ES256), signer("two", Algorithm::ES256));
    let setup = Setup::new();
    let path = setup.folder().join("keys.json");
    fs::write(&path, set(&[&old])).expect("written");
    let server = setup
        .settings(&format!(
            "auth:\n  mode: jwt\n  jwt:\n    jwks_path: keys.json\n    issuer: \"{ISSUER}\"\n    audience: portcullis\n    \
             roles_claim: /realm_access/roles\n    subject_claim: email\n    algorithms: [ES256]\n"
        ))
        .start();
    let mut claims = good_claims();
    claims["realm_access"] = json!({ "roles": ["agent"] });
    claims["email"] = json!("ada@acme.test");
    let by = |signer: &Signer, id: &str| sign(signer, Algorithm::ES256, id, &claims);
    let (of_old, of_new) = (by(&old, "one"), by(&new, "two"));
    assert_eq!(
        (code(&server, &of_old).await, code(&server, &of_new).await),
        (Code::Ok, Code::Unauthenticated)
    );
    fs::write(&path, set(&[&new])).expect("written");
    eventually(RELOADED_WITHIN, "the new key is in force", || async {
        (code(&server, &of_new).await == Code::Ok).then_some(())
    })
    .await;
    assert_eq!(code(&server, &of_old).await, Code::Unauthenticated, "the old one is not");
    for broken in ["{", "{\"keys\": []}", "{\"keys\": [{\"kty\": \"oct\", \"k\": \"c2VjcmV0\"}]}"] {
        let rejected = |text: &str| text.matches("credentials rejected").count();
        let before = rejected(&server.log_text());
        fs::write(&path, broken).expect("written");
        eventually(RELOADED_WITHIN, "it is rejected", || async {
            (rejected(&server.log_text()) > before).then_some(())
        })
        .await;
        assert_eq!(code(&server, &of_new).await, Code::Ok, "{broken}");
    }
}

/// An issuer that answers every GET with what it holds at the moment.
struct IssuerStandIn {
    url: String,
    /// Status and body.
    answer: Arc<Mutex<(u16, String)>>,
    asked: Arc<AtomicUsize>,
}

impl IssuerStandIn {
    async fn start(status: u16, body: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/keys", listener.local_addr().expect("an address"));
        let (answer, asked) = (Arc::new(Mutex::new((status, body))), Arc::new(AtomicUsize::new(0)));
        let (answers, counter) = (answer.clone(), asked.clone());
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                let (status, body) = answers.lock().expect("whole").clone();
                let mut request = [0; 4_096];
                let _ = socket.read(&mut request).await;
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        });
        Self { url, answer, asked }
    }

    fn say(&self, status: u16, body: String) {
        *self.answer.lock().expect("whole") = (status, body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_url_are_fetched_when_a_token_names_a_new_one() {
    let (old, new) = (signer("one", Algorithm::ES256), signer("two", Algorithm::ES256));
    let issuer = IssuerStandIn::start(503, String::new()).await;
    let server = Setup::new().settings(&settings(&format!("jwks_url: \"{}\"", issuer.url))).start();
    let (of_old, of_new) = (
        sign(&old, Algorithm::ES256, "one", &good_claims()),
        sign(&new, Algorithm::ES256, "two", &good_claims()),
    );
    // There never were keys: nobody is let in, and told so. Probes are answered all the same.
    let answer = server.client().await.check_messages(with_token(&of_old, user("hello"))).await;
    let answer = answer.expect_err("nothing can be verified");
    assert_eq!(answer.code(), Code::Unavailable, "{answer:?}");
    assert!(answer.message().contains("keys of the issuer could not be had"), "{answer:?}");
    server.wait_for_log(|line| line.contains("credentials rejected"));
    issuer.say(200, set(&[&old]));
    eventually(super::server::PATIENCE, "keys are fetched once they can be", || async {
        (code(&server, &of_old).await == Code::Ok).then_some(())
    })
    .await;

    // The issuer changes its keys; a token with the new one is known as soon as a fetch is allowed again.
    issuer.say(200, set(&[&old, &new]));
    eventually(super::server::PATIENCE, "the new key is asked for", || async {
        (code(&server, &of_new).await == Code::Ok).then_some(())
    })
    .await;

    // Whatever the issuer says that is no key set changes nothing, and made-up keys do not make us ask all the time.
    issuer.say(200, "<html>".to_owned());
    let stranger = sign(&signer("x", Algorithm::ES256), Algorithm::ES256, "made-up", &good_claims());
    let before = issuer.asked.load(Ordering::SeqCst);
    for _ in 0..20 {
        assert_eq!(code(&server, &stranger).await, Code::Unauthenticated);
    }
    assert!(issuer.asked.load(Ordering::SeqCst) - before <= 2, "at most every five seconds");
    issuer.say(302, String::new());
    assert_eq!((code(&server, &of_old).await, code(&server, &of_new).await), (Code::Ok, Code::Ok));
}

#[test]
fn settings_that_would_take_tokens_of_others_are_refused() {
    let full = settings("jwks_path: keys.json");
    for (settings, told) in [
        (
            full.replace("jwks_path: keys.json, ", ""),
            "exactly one of auth.jwt.jwks_path and auth.jwt.jwks_url",
        ),
        (full.replace("keys.json", "keys.json, jwks_url: \"https://id.acme.test\""), "exactly one of"),
        (full.replace("audience: portcullis", ""), "auth.jwt.audience: is needed"),
        (full.replace(&format!("issuer: \"{ISSUER}\", "), ""), "auth.jwt.issuer: is needed"),
        (full.replace("audience:", "algorithms: [HS256], audience:"), "auth.jwt.algorithms"),
        (full.replace("audience:", "algorithms: [none], audience:"), "auth.jwt.algorithms"),
        (full.replace("audience:", "algorithms: [], audience:"), "auth.jwt.algorithms: must not be empty"),
        (full.replace("audience:", "leeway: 1h, audience:"), "auth.jwt.leeway: must be at most 5m"),
        (
            full.replace("jwks_path: keys.json", "jwks_url: \"http://id.acme.test/keys\""),
            "must begin with https://",
        ),
        (full.replace("keys.json", "none.json"), "cannot be read"),
        (full.replace("keys.json", "empty.json"), "holds no public key"),
    ] {
        let setup = Setup::new();
        fs::write(setup.folder().join("keys.json"), set(&[&signer("a", Algorithm::ES256)])).expect("written");
        fs::write(setup.folder().join("empty.json"), "{\"keys\": []}").expect("written");
        let (status, log) = setup.settings(&settings).start_refused();
        assert_eq!(status.code(), Some(78), "{settings}\n{log}");
        assert!(log.contains(told), "{settings}\n{log}");
    }
}
