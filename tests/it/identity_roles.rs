//! Every RPC by every role and by nobody, as data in `tests/cases/identity/roles.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use portcullis::identity;
use serde::Deserialize;
use tonic::Code;
use tonic_types::StatusExt as _;

use super::identity::{bearer, call, entry, every_rpc, write_tokens};
use super::server::{Server, Setup};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    rpc: Vec<Row>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    #[serde(default)]
    open: bool,
    #[serde(default)]
    tokens: Vec<String>,
    #[serde(default)]
    none: Vec<String>,
}

/// The table by RPC; it names every RPC that there is, and no other.
fn rows() -> BTreeMap<String, Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/identity/roles.toml");
    let text = std::fs::read_to_string(path).expect("the table is there");
    let table: Table = toml::from_str(&text).expect("a table");
    let count = table.rpc.len();
    let rows: BTreeMap<String, Row> = table.rpc.into_iter().map(|row| (row.name.clone(), row)).collect();
    assert_eq!(rows.len(), count, "an RPC stands there twice");
    assert_eq!(rows.keys().cloned().collect::<Vec<_>>(), every_rpc(), "the RPCs that there are");
    rows
}

/// What became of a call that brought an empty message.
#[derive(Debug, PartialEq)]
enum Outcome {
    Admitted,
    Denied,
    Unknown,
}

async fn outcome(server: &Server, path: &str, headers: &[(&'static str, String)]) -> Outcome {
    let said = call(&server.channel().await, path, headers, vec![Vec::new()], 1).await;
    match said.code() {
        Code::Unauthenticated => Outcome::Unknown,
        Code::PermissionDenied => Outcome::Denied,
        Code::Unimplemented => panic!("{path} is not served: {:?}", said.status),
        _ => Outcome::Admitted,
    }
}

const CALLERS: [&str; 4] = ["agent", "submitter", "auditor", "admin"];

#[tokio::test(flavor = "multi_thread")]
async fn every_rpc_by_every_role_and_by_nobody() {
    let setup = Setup::new();
    let entries = CALLERS.map(|role| entry(role_holder(role), role, "acme"));
    let tokens = write_tokens(&setup, &entries);
    let server = setup.settings("auth: { mode: tokens, tokens: { path: tokens.yaml } }\n").start();
    let mut wrong = Vec::new();
    let mut cells = 0;
    for (path, row) in rows() {
        let with_role = CALLERS.map(|role| (role, Some(tokens.of(role_holder(role)).to_owned())));
        let others = [("nobody", None), ("wrong", Some("pct_0000".to_owned()))];
        for (caller, token) in with_role.into_iter().chain(others) {
            let headers: Vec<_> = token.iter().map(|token| bearer(token)).collect();
            let found = outcome(&server, &path, &headers).await;
            let wanted = if row.open || row.tokens.iter().any(|admitted| admitted == caller) {
                Outcome::Admitted
            } else if CALLERS.contains(&caller) {
                Outcome::Denied
            } else {
                Outcome::Unknown
            };
            cells += 1;
            if found != wanted {
                wrong.push(format!("{path} by {caller}: {found:?}, wanted {wanted:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(cells, rows().len() * 6);
    assert!(!server.data().join("admin-token").exists(), "no second way in is written");
    let (_, metrics) = server.get("/metrics").await;
    for reason in ["missing", "unknown", "role"] {
        let series = format!("portcullis_auth_failures_total{{reason=\"{reason}\"}} ");
        let count = metrics.lines().find_map(|line| line.strip_prefix(&series)).expect("it is counted");
        assert!(count.parse::<u64>().expect("a number") > 30, "{reason}: {count}");
    }
}

/// Names of holders are not those of roles: `admin` is a name that the service itself gives.
fn role_holder(role: &str) -> &'static str {
    match role {
        "agent" => "holder-agent",
        "submitter" => "holder-submitter",
        "auditor" => "holder-auditor",
        _ => "holder-admin",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_authentication_everybody_asks_and_the_admin_token_changes() {
    let server = Server::start();
    let token = server.admin_token();
    let mut wrong = Vec::new();
    for (path, row) in rows() {
        for (caller, headers) in [
            ("nobody", vec![]),
            ("holder", vec![bearer(&token)]),
            ("wrong", vec![bearer("0123456789abcdef0123456789abcdef")]),
        ] {
            let found = outcome(&server, &path, &headers).await;
            let wanted = match caller {
                _ if row.open || row.none.iter().any(|admitted| admitted == caller) => Outcome::Admitted,
                "wrong" => Outcome::Unknown,
                _ => Outcome::Denied,
            };
            if found != wanted {
                wrong.push(format!("{path} by {caller}: {found:?}, wanted {wanted:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What has no row is served to nobody, and a known call is still for those who may.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_rpc_is_said_to_be_none() {
    let setup = Setup::new();
    let tokens = write_tokens(&setup, &[entry("ada", "agent", ""), entry("root", "admin", "")]);
    let strict = setup.settings("auth: { mode: tokens, tokens: { path: tokens.yaml } }\n").start();
    let plain = Server::start();
    let (agent, admin, own) =
        (bearer(tokens.of("ada")), bearer(tokens.of("root")), bearer(&plain.admin_token()));
    let (sell, reload) = ("portcullis.v1.EntityService/Sell", "portcullis.v1.PolicyService/ReloadPolicy");
    for (server, path, headers, wanted) in [
        (&plain, sell, vec![], Code::Unimplemented),
        (&plain, "portcullis.v1.Nothing/Nowhere", vec![], Code::Unimplemented),
        (&plain, sell, vec![own], Code::Unimplemented),
        (&plain, sell, vec![bearer("0123")], Code::Unauthenticated),
        (&plain, reload, vec![], Code::PermissionDenied),
        (&strict, sell, vec![], Code::Unauthenticated),
        (&strict, sell, vec![agent.clone()], Code::Unimplemented),
        (&strict, sell, vec![admin], Code::Unimplemented),
        (&strict, reload, vec![agent], Code::PermissionDenied),
    ] {
        let said = call(&server.channel().await, path, &headers, vec![Vec::new()], 1).await;
        assert_eq!(said.code(), wanted, "{path} {headers:?}: {:?}", said.status);
    }
}

/// The table of the code is the one that was written down by hand, and the one that users read.
#[test]
fn the_tables_agree() {
    let rows = rows();
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/IDENTITY.md");
    let document = std::fs::read_to_string(document).expect("the document is there");
    let table = identity::table();
    assert_eq!(table.len(), rows.values().filter(|row| !row.open).count());
    for access in table {
        let path = format!("{}/{}", access.service, access.rpc);
        let mut roles: Vec<&str> = access.roles.iter().map(|role| role.as_str()).collect();
        let told = format!("| `{}` | `{}` | {} |", &access.service[14..], access.rpc, roles.join(", "));
        assert!(document.contains(&told), "docs/IDENTITY.md lacks\n{told}");
        if !roles.contains(&"admin") {
            roles.push("admin");
        }
        assert_eq!(roles, rows[&path].tokens, "{path}");
    }
    for row in rows.values().filter(|row| row.open) {
        assert!(identity::is_open(&format!("/{}", row.name)), "{}", row.name);
    }
}

#[tokio::test]
async fn refusals_say_what_to_do_and_repeat_no_token() {
    let setup = Setup::new();
    let tokens = write_tokens(&setup, &[entry("ada", "agent", "")]);
    let server = setup.settings("auth: { mode: tokens, tokens: { path: tokens.yaml } }\n").start();
    let channel = server.channel().await;
    let check = "portcullis.v1.PolicyDecisionService/CheckMessages";
    let planted = "pct_planted_0123456789";
    for (headers, reason, message) in [
        (vec![], "NO_CREDENTIALS", "send `authorization: Bearer <token>`"),
        (vec![bearer(planted)], "BAD_CREDENTIALS", "is not valid; get another one"),
        (vec![("authorization", planted.to_owned())], "BAD_CREDENTIALS", "as `Bearer <token>`"),
        (vec![("authorization", format!("Basic {planted}"))], "BAD_CREDENTIALS", "as `Bearer <token>`"),
        (vec![("authorization", "Bearer  ".to_owned())], "BAD_CREDENTIALS", "as `Bearer <token>`"),
    ] {
        let said = call(&channel, check, &headers, vec![Vec::new()], 1).await;
        assert_eq!(said.code(), Code::Unauthenticated, "{headers:?}");
        assert!(said.status.message().contains(message), "{:?}", said.status);
        assert_eq!(said.status.get_details_error_info().expect("details").reason, reason);
        assert!(!format!("{:?}", said.status).contains("planted"), "{:?}", said.status);
    }
    let said = call(
        &channel,
        "portcullis.v1.PolicyService/ReloadPolicy",
        &[bearer(tokens.of("ada"))],
        vec![Vec::new()],
        1,
    )
    .await;
    assert_eq!(said.code(), Code::PermissionDenied);
    assert_eq!(
        said.status.message(),
        "this call needs the role admin, and you hold agent; ask for a credential that has it"
    );
    let details = said.status.get_details_error_info().expect("details");
    assert_eq!((details.reason.as_str(), details.metadata["roles"].as_str()), ("NEEDS_ROLE", "admin"));
    assert!(!server.log_text().contains("planted") && !server.log_text().contains(tokens.of("ada")));
}
