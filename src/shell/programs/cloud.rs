//! Command lines of clouds and of programs that describe infrastructure: what they delete and which secrets they print.

use super::super::argument::Argument;
use super::super::effect::{EffectKind, TargetKind};
use super::Attributes;
use super::call::{Call, name_target, path_target};
use super::options::{Grammar, Options};

const AWS: Grammar = Grammar {
    short_values: "",
    short_attached: "",
    long: &[
        "profile=",
        "region=",
        "output=",
        "query=",
        "endpoint-url=",
        "color=",
        "cli-read-timeout=",
        "cli-connect-timeout=",
        "ca-bundle=",
        "exclude=",
        "include=",
        "acl=",
        "storage-class=",
        "recursive",
        "force",
        "dryrun",
        "delete",
        "dry-run",
        "no-paginate",
        "debug",
        "only-show-errors",
        "quiet",
        "bucket=",
        "key=",
        "instance-ids=",
        "stack-name=",
        "cli-input-json=",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

/// Verbs of `aws` that destroy, by how they begin.
const AWS_DESTROYS: &[&str] = &[
    "delete",
    "terminate",
    "deregister",
    "purge",
    "remove",
    "destroy",
    "disable",
    "schedule-key-deletion",
    "batch-delete",
];

/// Sub-commands of `aws` that print secrets, as service and verb.
const AWS_SECRETS: &[(&str, &str)] = &[
    ("secretsmanager", "get-secret-value"),
    ("secretsmanager", "batch-get-secret-value"),
    ("ssm", "get-parameter"),
    ("ssm", "get-parameters"),
    ("ssm", "get-parameters-by-path"),
    ("iam", "create-access-key"),
    ("sts", "get-session-token"),
    ("sts", "assume-role"),
    ("ecr", "get-login-password"),
    ("configure", "export-credentials"),
    ("kms", "decrypt"),
    ("ec2", "get-password-data"),
];

fn destroys(call: &mut Call<'_, '_>, detail: String, target: Option<&Argument>, forced: bool, all: bool) {
    let attributes = Attributes { recursive: all, forced, detail };
    call.effect(EffectKind::DestroyInfrastructure, target.map(|t| name_target(&t.text)), attributes);
}

/// `aws`.
pub(super) fn aws(call: &mut Call<'_, '_>) {
    let options = call.options(&AWS);
    if options.has(&["dryrun", "dry-run"]) || options.operand(2) == "help" {
        return;
    }
    let (service, verb) = (options.operand(0), options.operand(1));
    let operands = options.operands.get(2..).unwrap_or_default();
    match (service, verb) {
        ("s3", "rm") => {
            let all = options.has(&["recursive"]);
            destroys(call, "aws s3 rm".to_owned(), operands.first().copied(), false, all);
        }
        ("s3", "rb") => {
            let forced = options.has(&["force"]);
            destroys(call, "aws s3 rb".to_owned(), operands.first().copied(), forced, forced);
        }
        ("s3", "cp" | "sync" | "mv") => {
            let recursive = verb == "sync" || options.has(&["recursive"]);
            storage_copy(call, operands, "aws s3", recursive, options.has(&["delete"]));
        }
        ("secretsmanager" | "ssm" | "iam" | "sts" | "ecr" | "configure" | "kms" | "ec2", _)
            if AWS_SECRETS.contains(&(service, verb)) =>
        {
            let plain = service == "ssm" && !options.has(&["with-decryption"]);
            if !plain {
                call.tell(EffectKind::RevealSecret, None, &format!("aws {service} {verb}"));
            }
        }
        ("configure", "get") if operands.iter().any(|name| is_secret_setting(&name.text)) => {
            call.tell(EffectKind::RevealSecret, None, "aws configure get");
        }
        _ if AWS_DESTROYS.iter().any(|prefix| verb.starts_with(prefix)) => {
            destroys(
                call,
                format!("aws {service} {verb}"),
                operands.first().copied(),
                options.has(&["force"]),
                false,
            );
        }
        ("iam", "attach-user-policy" | "attach-role-policy" | "attach-group-policy")
            if call.arguments().iter().any(|a| a.text.ends_with("/AdministratorAccess")) =>
        {
            call.tell(EffectKind::ChangeAccount, None, &format!("privileged aws iam {verb}"));
        }
        ("ec2", "authorize-security-group-ingress")
            if call.arguments().iter().any(|a| a.text.contains("0.0.0.0/0") || a.text.contains("::/0")) =>
        {
            call.tell(EffectKind::DisableProtection, None, &format!("aws {service} {verb}"));
        }
        ("s3api", "put-bucket-acl" | "put-object-acl")
            if call.arguments().iter().any(|a| a.text.starts_with("public-read")) =>
        {
            call.tell(EffectKind::DisableProtection, None, &format!("aws {service} {verb}"));
        }
        ("cloudtrail", "stop-logging") | ("guardduty", "update-detector") => {
            call.tell(EffectKind::DisableProtection, None, &format!("aws {service} {verb}"));
        }
        _ => {}
    }
}

/// Whether a setting, by its name, is a credential.
pub(super) fn is_secret_setting(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["secret", "_authtoken", "session_token", "_password", ":_auth"].iter().any(|part| name.contains(part))
}

/// Copies between this machine and a store: `scheme://` is the store.
fn storage_copy(
    call: &mut Call<'_, '_>,
    operands: &[&Argument],
    detail: &str,
    recursive: bool,
    deletes: bool,
) {
    let [source, destination, ..] = operands else { return };
    let away = |text: &str| text.contains("://");
    if away(&destination.text) && super::call::is_stream(&source.text) {
        call.send_input(detail);
    } else if away(&destination.text) && !away(&source.text) {
        call.read(source, true, "copy");
        let attributes = Attributes { recursive, forced: false, detail: detail.to_owned() };
        call.effect(EffectKind::SendData, Some(path_target(source)), attributes);
    } else if !away(&destination.text) {
        call.write(destination, "download");
        if deletes {
            call.delete(destination, true, true, "sync");
        }
    }
}

const GCLOUD: Grammar = Grammar {
    short_values: "",
    short_attached: "",
    long: &[
        "project=",
        "zone=",
        "region=",
        "format=",
        "filter=",
        "account=",
        "configuration=",
        "verbosity=",
        "location=",
        "secret=",
        "quiet",
        "async",
        "impersonate-service-account=",
        "cluster=",
        "instance=",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

/// `gcloud` and `gsutil`.
pub(super) fn gcloud(call: &mut Call<'_, '_>) {
    let options = call.options(&GCLOUD);
    let words: Vec<&str> = options.operands.iter().map(|o| o.text.as_str()).collect();
    let quiet = options.has(&["q", "quiet"]);
    let path = words.join(" ");
    if path.contains("auth print-access-token")
        || path.contains("auth print-identity-token")
        || path.contains("auth application-default print-access-token")
        || path.contains("secrets versions access")
        || path.contains("iam service-accounts keys create")
    {
        let detail = format!("gcloud {}", words.iter().take(3).copied().collect::<Vec<_>>().join(" "));
        call.tell(EffectKind::RevealSecret, None, &detail);
        return;
    }
    if let Some(at) =
        words.iter().position(|w| matches!(*w, "delete" | "destroy" | "delete-all" | "undelete"))
    {
        if words[at] != "undelete" {
            let detail = format!("gcloud {}", words[..=at].join(" "));
            destroys(call, detail, options.operands.get(at + 1).copied(), quiet, false);
        }
        return;
    }
    if let ["storage", verb, rest @ ..] = words.as_slice() {
        let offset = words.len() - rest.len();
        storage(call, verb, &options.operands[offset..], &options, "gcloud storage");
    }
}

/// `gsutil`.
pub(super) fn gsutil(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar { short_values: "ohi", ..Grammar::default() });
    if let Some((verb, rest)) = options.operands.split_first() {
        storage(call, &verb.text, rest, &options, "gsutil");
    }
}

fn storage(call: &mut Call<'_, '_>, verb: &str, operands: &[&Argument], options: &Options<'_>, detail: &str) {
    match verb {
        "rm" | "rb" => {
            let all = options.has(&["r", "R", "recursive", "a"]);
            destroys(call, format!("{detail} {verb}"), operands.first().copied(), all, all);
        }
        "cp" | "mv" | "rsync" => {
            let recursive = verb == "rsync" || options.has(&["r", "R", "recursive"]);
            storage_copy(call, operands, detail, recursive, options.has(&["d"]));
        }
        _ => {}
    }
}

const AZ: Grammar = Grammar {
    short_values: "gnlous",
    short_attached: "",
    long: &[
        "resource-group=",
        "name=",
        "subscription=",
        "output=",
        "query=",
        "account-name=",
        "vault-name=",
        "id=",
        "ids=",
        "file=",
        "source=",
        "destination=",
        "container-name=",
        "yes",
        "no-wait",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

/// `az`.
pub(super) fn az(call: &mut Call<'_, '_>) {
    let options = call.options(&AZ);
    let words: Vec<&str> = options.operands.iter().map(|o| o.text.as_str()).collect();
    let path = words.join(" ");
    if path.starts_with("account get-access-token")
        || path.starts_with("keyvault secret show")
        || path.starts_with("keyvault secret download")
        || path.ends_with("keys list")
        || path.contains("list-keys")
        || path.contains("show-connection-string")
    {
        call.tell(EffectKind::RevealSecret, None, &format!("az {path}"));
    } else if let Some(at) = words.iter().position(|w| matches!(*w, "delete" | "purge" | "delete-batch")) {
        let target = options.value(&["n", "name"]).or(options.operands.get(at + 1).copied()).cloned();
        let yes = options.has(&["y", "yes"]);
        destroys(call, format!("az {}", words[..=at].join(" ")), target.as_ref(), yes, false);
    }
}

const TERRAFORM: Grammar = Grammar {
    short_values: "",
    short_attached: "",
    long: &[
        "chdir=?",
        "var=",
        "var-file=",
        "target=",
        "state=",
        "out=",
        "auto-approve",
        "destroy",
        "force",
        "help",
        "stack=",
        "yes",
    ],
    stops_at_operand: false,
    single_dash_long: true,
};

/// `terraform`, `tofu`, `terragrunt`.
pub(super) fn terraform(call: &mut Call<'_, '_>) {
    let options = call.options(&TERRAFORM);
    if options.has(&["help"]) {
        return;
    }
    let words: Vec<&str> =
        options.operands.iter().map(|o| o.text.as_str()).filter(|w| *w != "run-all").collect();
    let verb = words.first().copied().unwrap_or_default();
    let approved = options.has(&["auto-approve", "force"]);
    match verb {
        "destroy" | "apply" if verb == "destroy" || options.has(&["destroy"]) => {
            destroys(call, format!("{} destroy", call.program()), None, approved, true);
        }
        "apply" if approved => {
            destroys(call, format!("{} apply -auto-approve", call.program()), None, true, false)
        }
        "state" if words.get(1) == Some(&"rm") => {
            destroys(
                call,
                format!("{} state rm", call.program()),
                options.operands.get(2).copied(),
                false,
                false,
            );
        }
        "workspace" if words.get(1) == Some(&"delete") => {
            destroys(
                call,
                format!("{} workspace delete", call.program()),
                options.operands.get(2).copied(),
                approved,
                false,
            );
        }
        "output" if options.has(&["json", "raw"]) => {}
        _ => {}
    }
}

/// `pulumi`, `cdk`, `sam`, `serverless`, `copilot`, `eb`, `flyctl`, `heroku`, `vercel`, `doctl`, `wrangler`: verbs that delete.
pub(super) fn platform(call: &mut Call<'_, '_>) {
    let program = call.program();
    let options = call.options(&Grammar {
        short_values: "ascn",
        long: &[
            "app=", "stack=", "config=", "name=", "stage=", "region=", "project=", "yes", "force",
            "confirm=", "cwd=",
        ],
        ..Grammar::default()
    });
    let forced = options.has(&["y", "yes", "f", "force", "confirm"]);
    let words: Vec<&str> = options.operands.iter().map(|o| o.text.as_str()).collect();
    let verb = |w: &str| {
        matches!(w, "destroy" | "delete" | "remove" | "rm" | "terminate" | "down" | "purge")
            || w.ends_with(":destroy")
            || w.ends_with(":delete")
            || w.ends_with(":reset")
    };
    if let Some(at) = words.iter().take(4).position(|w| verb(w)) {
        let target = options.operands.get(at + 1).copied();
        destroys(call, format!("{program} {}", words[..=at].join(" ")), target, forced, false);
    }
    if program == "heroku" && matches!(words.first(), Some(&("auth:token" | "config"))) {
        call.tell(EffectKind::RevealSecret, None, &format!("heroku {}", words[0]));
    }
}

/// `mc`, `s3cmd`, `azcopy`: object stores.
pub(super) fn object_store(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar { long: &["config=", "region="], ..Grammar::default() });
    let Some((verb, rest)) = options.operands.split_first() else { return };
    match verb.text.as_str() {
        "rm" | "del" | "rb" | "remove" => {
            let all = options.has(&["r", "recursive"]);
            let forced = options.has(&["f", "force", "dangerous"]);
            let detail = format!("{} {}", call.program(), verb.text);
            let attributes = Attributes { recursive: all, forced, detail };
            let target = rest.first().map(|t| super::super::effect::Target {
                text: t.text.clone(),
                has_glob: false,
                kind: TargetKind::Remote,
            });
            call.effect(EffectKind::DestroyInfrastructure, target, attributes);
        }
        "put" | "cp" | "copy" | "sync" | "mirror" => {
            let recursive =
                options.has(&["r", "recursive"]) || matches!(verb.text.as_str(), "sync" | "mirror");
            storage_copy(call, rest, call.program(), recursive, false);
        }
        _ => {}
    }
}
