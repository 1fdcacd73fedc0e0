//! TLS at the listener, certificates replaced while the server runs, and callers known by their certificate.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use portcullis::pb::v1;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use v1::policy_decision_service_client::PolicyDecisionServiceClient;

use super::cli::run_in;
use super::identity::{RELOADED_WITHIN, entry, own_events, records, with_token, write_tokens};
use super::server::{PATIENCE, Server, Setup, eventually, user};

/// Who signs certificates.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
struct Pair {
    certificate: String,
    key: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).expect("signed").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn sign(&self, mut params: CertificateParams, purpose: ExtendedKeyUsagePurpose) -> Pair {
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed").pem();
        Pair { certificate, key: key.serialize_pem() }
    }

    /// A certificate of a server on this machine, valid for `days`.
    fn server(&self, days: u64) -> Pair {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("names");
        params.not_after = (SystemTime::now() + Duration::from_secs(days * 86_400)).into();
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate of a client with this common name and URI.
    fn client(&self, name: &str, uri: &str) -> Pair {
        self.sign(Self::client_params(name, uri), ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn client_params(name: &str, uri: &str) -> CertificateParams {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Acme");
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names.push(SanType::URI(uri.try_into().expect("ASCII")));
        params
    }

    /// One whose time is over.
    fn expired_client(&self, name: &str) -> Pair {
        let mut params = Self::client_params(name, "spiffe://acme/expired");
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    // Replaced in one step, as the mounts of Kubernetes and careful people do.
    let new = folder.join(format!("{name}.new"));
    fs::write(&new, text).expect("written");
    fs::rename(new, folder.join(name)).expect("replaced");
}

fn write_pair(folder: &Path, pair: &Pair) {
    write(folder, "server.key", &pair.key);
    write(folder, "server.pem", &pair.certificate);
}

/// Connects over TLS, trusting one authority; a client may prove who it is.
async fn connect(server: &Server, trusted: &Authority, identity: Option<&Pair>) -> Result<Channel, String> {
    let mut tls =
        ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&trusted.pem)).domain_name("localhost");
    if let Some(pair) = identity {
        tls = tls.identity(Identity::from_pem(&pair.certificate, &pair.key));
    }
    let endpoint = Endpoint::from_shared(format!("https://{}", server.grpc)).expect("an address");
    let endpoint = endpoint.tls_config(tls).expect("good certificates");
    endpoint.connect().await.map_err(|error| format!("{error:?}"))
}

/// The end of a call: its code, or that there was no connection for it.
async fn ends(channel: Result<Channel, String>, token: Option<&str>) -> Result<Code, String> {
    let mut client = PolicyDecisionServiceClient::new(channel?);
    let request = match token {
        Some(token) => with_token(token, user("hello")),
        None => tonic::Request::new(user("hello")),
    };
    match client.check_messages(request).await {
        Ok(_) => Ok(Code::Ok),
        // With TLS 1.3 a client learns only with its first call that its certificate was refused.
        Err(status) if std::error::Error::source(&status).is_some() => Err(format!("{status:?}")),
        Err(status) => Ok(status.code()),
    }
}

async fn gauge(server: &Server, certificate: &str) -> Option<i64> {
    let (_, metrics) = server.get("/metrics").await;
    let series = format!("portcullis_tls_certificate_not_after_seconds{{certificate=\"{certificate}\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(&series).map(str::to_owned))?;
    Some(value.parse::<f64>().expect("a number") as i64)
}

const TLS: &str = "server: { tls: { certificate: server.pem, key: server.key } }\n";

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_in_clear_where_tls_is_spoken_is_told_so() {
    let setup = Setup::new();
    write_pair(setup.folder(), &Authority::new("authority").server(90));
    let server = setup.settings(TLS).start();
    let url = format!("http://{}", server.grpc);
    for arguments in [&["health"][..], &["check", "hello"]] {
        let folder = super::cli::empty();
        let ran = run_in(folder.path(), &super::cli::join(arguments, &["--server", &url]), b"");
        assert_eq!(ran.code, 69, "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains("https://"), "{arguments:?}: {}", ran.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_replaced_while_the_server_runs() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let setup = Setup::new();
    let folder = setup.folder().to_owned();
    write_pair(&folder, &old.server(10));
    let tokens = write_tokens(&setup, &[entry("ada", "agent", ""), entry("ann", "auditor", "")]);
    let (ada, ann) = (tokens.of("ada"), tokens.of("ann"));
    // Reached from elsewhere, tokens need TLS, and here is TLS.
    let server =
        setup.settings(&format!("{TLS}auth: {{ mode: tokens, tokens: {{ path: tokens.yaml }} }}\n")).start();
    let standing = connect(&server, &old, None).await;
    assert_eq!(ends(standing.clone(), Some(ada)).await, Ok(Code::Ok));
    assert_eq!(ends(standing.clone(), None).await, Ok(Code::Unauthenticated));
    assert!(connect(&server, &new, None).await.is_err(), "another authority is not trusted");
    assert!(
        server.endpoint().connect().await.is_err() || {
            let answer = server.endpoint().connect_lazy();
            PolicyDecisionServiceClient::new(answer).check_messages(user("hello")).await.is_err()
        }
    );
    let in_days = |end: i64| (end - jiff::Timestamp::now().as_second() + 43_200) / 86_400;
    assert_eq!(gauge(&server, "server").await.map(in_days), Some(10));
    assert_eq!(gauge(&server, "client_ca").await, None);

    write_pair(&folder, &new.server(30));
    eventually(RELOADED_WITHIN, "new connections see the new certificate", || async {
        (ends(connect(&server, &new, None).await, Some(ada)).await == Ok(Code::Ok)).then_some(())
    })
    .await;
    assert_eq!(gauge(&server, "server").await.map(in_days), Some(30));
    assert_eq!(ends(standing, Some(ada)).await, Ok(Code::Ok), "a connection that stands goes on");

    // A key of another certificate, and no certificate at all: the last good pair stays.
    write(&folder, "server.key", &old.server(1).key);
    server.wait_for_log(|line| line.contains("credentials rejected"));
    assert_eq!(ends(connect(&server, &new, None).await, Some(ada)).await, Ok(Code::Ok));
    write(&folder, "server.pem", "no certificate");
    eventually(RELOADED_WITHIN, "both are counted", || async {
        let (_, metrics) = server.get("/metrics").await;
        metrics.contains("portcullis_auth_reloads_total{outcome=\"rejected\"} 2").then_some(())
    })
    .await;
    assert_eq!(ends(connect(&server, &new, None).await, Some(ada)).await, Ok(Code::Ok));
    write_pair(&folder, &old.server(5));
    eventually(RELOADED_WITHIN, "a good pair is taken again", || async {
        (ends(connect(&server, &old, None).await, Some(ada)).await == Ok(Code::Ok)).then_some(())
    })
    .await;
    let key_line = old.server(1).key.lines().nth(1).expect("base64").to_owned();
    let channel = connect(&server, &old, None).await.expect("connected");
    let told = eventually(PATIENCE, "the events are kept", || async {
        let told = own_events(channel.clone(), ann, "certificates.").await;
        (told.len() >= 4).then_some(told)
    })
    .await;
    let of = |action: &str| told.iter().filter(|event| event.action == action).count();
    assert_eq!((of("certificates.reloaded"), of("certificates.rejected")), (2, 2), "{told:?}");
    assert!(told.iter().all(|event| event.resource == "credentials:certificates"), "{told:?}");
    let days: Vec<i64> = told
        .iter()
        .map(|event| {
            assert!(!event.detail_json.contains("PRIVATE") && !event.detail_json.contains(&key_line));
            let detail: serde_json::Value = serde_json::from_str(&event.detail_json).expect("JSON");
            assert_eq!(detail.get("problems").is_some(), event.action == "certificates.rejected");
            let until = detail["not_after"].as_str().expect("a time").parse::<jiff::Timestamp>();
            in_days(until.expect("RFC 3339").as_second())
        })
        .collect();
    assert_eq!(days, [30, 30, 30, 5], "those in force");
    assert!(!server.log_text().contains("PRIVATE KEY") && !server.log_text().contains(&key_line));
}

const MTLS: &str = "
server: { tls: { certificate: server.pem, key: server.key, client_ca: clients.pem } }
auth:
  mode: mtls
  mtls:
    identities:
      - { subject: \"O=Acme, CN=agent\", name: ada, roles: [agent], tenant: acme }
      - { san: \"spiffe://acme/uploads\", name: bob, roles: [submitter] }
";

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_who_its_certificate_says() {
    let (servers, clients, strangers) =
        (Authority::new("servers"), Authority::new("clients"), Authority::new("strangers"));
    let setup = Setup::new();
    let folder = setup.folder().to_owned();
    write_pair(&folder, &servers.server(10));
    write(&folder, "clients.pem", &clients.pem);
    let server = setup.settings(MTLS).start();
    let agent = clients.client("agent", "spiffe://acme/agent");
    for (what, pair, wanted) in [
        ("by subject", &agent, Ok(Code::Ok)),
        (
            "by alternative name, without the role",
            &clients.client("x", "spiffe://acme/uploads"),
            Ok(Code::PermissionDenied),
        ),
        (
            "good, and listed nowhere",
            &clients.client("other", "spiffe://acme/other"),
            Ok(Code::Unauthenticated),
        ),
        ("of a stranger", &strangers.client("agent", "spiffe://acme/agent"), Err(())),
        ("expired", &clients.expired_client("agent"), Err(())),
        ("of a server", &clients.server(10), Err(())),
    ] {
        let found = ends(connect(&server, &servers, Some(pair)).await, None).await;
        assert_eq!(found.clone().map_err(drop), wanted, "{what}: {found:?}");
    }
    assert!(ends(connect(&server, &servers, None).await, None).await.is_err(), "without a certificate");
    assert!(gauge(&server, "client_ca").await.is_some());
    // The tenant is that of the certificate.
    let context = Some(v1::CallContext { tenant: "other".to_owned(), ..Default::default() });
    let mut client =
        PolicyDecisionServiceClient::new(connect(&server, &servers, Some(&agent)).await.expect("connected"));
    let answer = client.check_messages(v1::CheckMessagesRequest { context, ..user("hello") }).await;
    assert_eq!(answer.expect_err("another tenant").code(), Code::PermissionDenied);
    client.check_messages(user("hello")).await.expect("decided");
    records(&server, |text| text.contains(r#""tenant":"acme""#)).await;

    // Authorities are replaced like certificates.
    write(&folder, "clients.pem", &strangers.pem);
    let stranger = strangers.client("agent", "spiffe://acme/agent");
    eventually(RELOADED_WITHIN, "the new authority is in force", || async {
        (ends(connect(&server, &servers, Some(&stranger)).await, None).await == Ok(Code::Ok)).then_some(())
    })
    .await;
    assert!(ends(connect(&server, &servers, Some(&agent)).await, None).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_tokens_and_an_authority_of_clients_both_are_needed() {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let setup = Setup::new();
    write_pair(setup.folder(), &servers.server(10));
    write(setup.folder(), "clients.pem", &clients.pem);
    let tokens = write_tokens(&setup, &[entry("ada", "agent", "")]);
    let settings = "server: { tls: { certificate: server.pem, key: server.key, client_ca: clients.pem } }\n\
                    auth: { mode: tokens, tokens: { path: tokens.yaml } }\n";
    let server = setup.settings(settings).start();
    let pair = clients.client("anybody", "spiffe://acme/any");
    let ada = Some(tokens.of("ada"));
    assert_eq!(ends(connect(&server, &servers, Some(&pair)).await, ada).await, Ok(Code::Ok));
    assert_eq!(ends(connect(&server, &servers, Some(&pair)).await, None).await, Ok(Code::Unauthenticated));
    assert!(ends(connect(&server, &servers, None).await, ada).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_bring_token_and_certificate_of_the_settings() {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let setup = Setup::new();
    write_pair(setup.folder(), &servers.server(10));
    write(setup.folder(), "clients.pem", &clients.pem);
    let tokens = write_tokens(&setup, &[entry("ada", "agent, submitter", ""), entry("root", "admin", "")]);
    let settings = "server: { tls: { certificate: server.pem, key: server.key, client_ca: clients.pem } }\n\
                    auth: { mode: tokens, tokens: { path: tokens.yaml } }\n";
    let server = setup.settings(settings).start();
    let url = format!("https://{}", server.grpc);
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let pair = clients.client("me", "spiffe://acme/me");
    for (name, text) in [("ca.pem", &servers.pem), ("me.pem", &pair.certificate), ("me.key", &pair.key)] {
        write(folder, name, text);
    }
    write(folder, "token", &format!("{}\n", tokens.of("ada")));
    write(folder, "root-token", tokens.of("root"));
    let client = "client: { token_file: token, ca_file: ca.pem, certificate: me.pem, key: me.key }\n";
    let done = |settings: &str, arguments: &[&str]| {
        write(folder, "portcullis.yaml", settings);
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--server", &url]).collect();
        let ran = run_in(folder, &arguments, b"");
        assert!(!format!("{ran:?}").contains(tokens.of("ada")), "{ran:?}");
        ran.code
    };
    assert_eq!(done(client, &["check", "hello"]), 0);
    assert_eq!(done(client, &["intercept", "--message", "hello"]), 0);
    assert_eq!(done(client, &["health"]), 0);
    let watched = run_in(folder, &["watch", "--server", &url, "--", "true"], b"");
    assert_eq!(watched.code, 0, "{watched:?}");
    assert_eq!(done(client, &["submissions", "list"]), 0);
    assert_eq!(done(client, &["audit", "list"]), 78, "ada is no auditor");
    assert_eq!(done(client, &["audit", "list", "--token-file", "root-token"]), 0);
    assert_eq!(done(&client.replace("token_file: token, ", ""), &["check", "hello"]), 78);
    assert_eq!(
        done(&client.replace("ca_file: ca.pem, ", ""), &["check", "hello"]),
        69,
        "a server that is not trusted"
    );
    assert_eq!(done(&client.replace(", certificate: me.pem, key: me.key", ""), &["check", "hello"]), 69);
}

#[test]
fn certificates_that_cannot_be_used_are_refused_at_the_start() {
    let authority = Authority::new("servers");
    for (settings, told) in [
        ("server: { tls: { certificate: server.pem } }\n", "server.tls.key: is needed"),
        ("server: { tls: { key: server.key } }\n", "server.tls.certificate: is needed"),
        ("server: { tls: { client_ca: server.pem } }\n", "needs server.tls.certificate"),
        ("server: { tls: { certificate: none.pem, key: server.key } }\n", "`none.pem` cannot be read"),
        ("server: { tls: { certificate: server.key, key: server.key } }\n", "holds no certificate"),
        ("server: { tls: { certificate: server.pem, key: server.pem } }\n", "holds no private key"),
        ("server: { tls: { certificate: server.pem, key: other.key } }\n", "`server.pem` and `other.key`"),
        (
            "auth: { mode: mtls, mtls: { identities: [{ subject: CN=a, name: a, roles: [agent] }] } }\n",
            "server.tls.client_ca: is needed",
        ),
        (&format!("{TLS}auth: {{ mode: mtls }}\n"), "auth.mtls.identities: is needed"),
        (&MTLS.replace("roles: [agent]", "roles: [root]"), "`root` is no role"),
        (&MTLS.replace("san:", "uri:"), "uri"),
    ] {
        let setup = Setup::new();
        write_pair(setup.folder(), &authority.server(1));
        write(setup.folder(), "other.key", &authority.server(1).key);
        write(setup.folder(), "clients.pem", &authority.pem);
        let (status, log) = setup.settings(settings).start_refused();
        assert_eq!(status.code(), Some(78), "{settings}\n{log}");
        assert!(log.contains(told), "{settings}\n{log}");
        assert!(!log.contains("PRIVATE KEY"), "{log}");
    }
}
