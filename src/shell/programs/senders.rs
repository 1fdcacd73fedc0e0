//! Programs whose purpose is to hand something to another machine: messages, statements, backups, publications. A table
//! says which of their files, words and input leave; a program that is not told where to stays here.

use super::super::argument::Argument;
use super::super::effect::EffectKind;
use super::call::{Call, path_target};
use super::options::{Grammar, Options};
use super::{Attributes, Input};

/// How a program sends.
struct Sender {
    /// Its names.
    programs: &'static [&'static str],
    /// Words that must stand among its operands, in this order.
    verbs: &'static [&'static str],
    /// Options, or the first operand, that name the other machine; empty for one that knows it by itself.
    hosts: &'static [&'static str],
    /// Short options with a value.
    values: &'static str,
    /// Long options with a value.
    long: &'static [&'static str],
    /// Options whose value is a file that leaves.
    files: &'static [&'static str],
    /// Whether operands are files that leave, from this one on, verbs not counted.
    operands: Option<usize>,
    /// Options that have it send its input; `""`: it does where no file is named; `"*"`: it does.
    input: &'static [&'static str],
    /// Whether its words leave.
    words: bool,
    /// How reports call it.
    detail: &'static str,
}

/// A sender that takes nothing.
const NONE: Sender = Sender {
    programs: &[],
    verbs: &[],
    hosts: &[],
    values: "",
    long: &[],
    files: &[],
    operands: None,
    input: &[],
    words: false,
    detail: "message",
};

const SENDERS: &[Sender] = &[
    Sender {
        programs: &["mosquitto_pub"],
        hosts: &["h", "host", "L", "url"],
        values: "AdDfhiILmMpPqtuUVkx",
        long: &["file=", "host=", "message=", "topic=", "url=", "username=", "pw="],
        files: &["f", "file"],
        input: &["s", "l", "stdin-file", "stdin-line"],
        words: true,
        ..NONE
    },
    Sender {
        programs: &["kcat", "kafkacat"],
        hosts: &["b"],
        values: "bcDeEFGHkKoprstXz",
        operands: Some(0),
        input: &["P"],
        words: true,
        ..NONE
    },
    Sender {
        programs: &["redis-cli", "valkey-cli", "keydb-cli"],
        hosts: &["h", "u"],
        values: "hpsaunridtDX",
        long: &["user=", "pass="],
        input: &["x", "pipe"],
        words: true,
        ..NONE
    },
    Sender {
        programs: &[
            "psql",
            "mysql",
            "mariadb",
            "mongosh",
            "mongo",
            "cqlsh",
            "sqlcmd",
            "clickhouse-client",
            "usql",
        ],
        hosts: &["h", "host", "S", "H"],
        values: "cdefhPUuDSQqHv",
        long: &["command=", "execute=", "file=", "host=", "eval=", "dbname="],
        words: true,
        ..NONE
    },
    Sender {
        programs: &["logger"],
        hosts: &["n", "server"],
        values: "fnpPtuS",
        long: &["file=", "server=", "port=", "priority=", "tag="],
        files: &["f", "file"],
        input: &[""],
        words: true,
        ..NONE
    },
    Sender {
        programs: &["twine"],
        verbs: &["upload"],
        values: "rupisc",
        long: &["repository-url=", "repository=", "username=", "password=", "config-file=", "cert="],
        operands: Some(0),
        detail: "publication",
        ..NONE
    },
    Sender {
        programs: &["npm", "pnpm", "yarn"],
        verbs: &["publish"],
        long: &["registry=", "tag=", "access=", "otp="],
        operands: Some(0),
        detail: "publication",
        ..NONE
    },
    Sender {
        programs: &["pastebinit", "wgetpaste", "pbin", "gist"],
        values: "abfimrtuUP",
        files: &["i"],
        operands: Some(0),
        input: &[""],
        detail: "publication",
        ..NONE
    },
    Sender {
        programs: &["slackcat", "discordcat"],
        values: "cnfk",
        long: &["channel=", "comment="],
        operands: Some(0),
        input: &[""],
        words: true,
        ..NONE
    },
    Sender {
        programs: &["ffsend"],
        verbs: &["upload"],
        values: "dehnp",
        operands: Some(0),
        detail: "publication",
        ..NONE
    },
    Sender {
        programs: &["glab"],
        verbs: &["snippet", "create"],
        values: "tdfRv",
        operands: Some(0),
        input: &[""],
        words: true,
        detail: "publication",
        ..NONE
    },
    Sender { programs: &["websocat", "wscat"], values: "HpP", input: &["*"], ..NONE },
    Sender {
        programs: &["grpcurl"],
        values: "dHv",
        long: &["cacert=", "cert=", "key=", "import-path=", "proto=", "protoset=", "max-time="],
        words: true,
        ..NONE
    },
    Sender { programs: &["curlie", "xhs"], words: true, input: &["*"], ..NONE },
    Sender { programs: &["wormhole", "magic-wormhole", "croc"], verbs: &["send"], words: true, ..NONE },
    Sender { programs: &["aws", "awslocal"], verbs: &["sns", "publish"], words: true, ..NONE },
    Sender { programs: &["aws", "awslocal"], verbs: &["sqs", "send-message"], words: true, ..NONE },
    Sender { programs: &["aws", "awslocal"], verbs: &["lambda", "invoke"], words: true, ..NONE },
    Sender { programs: &["aws", "awslocal"], verbs: &["events", "put-events"], words: true, ..NONE },
    Sender { programs: &["aws", "awslocal"], verbs: &["ses", "send-email"], words: true, ..NONE },
    Sender {
        programs: &["aws", "awslocal"],
        verbs: &["s3api", "put-object"],
        long: &["bucket=", "key=", "body=", "region=", "profile=", "endpoint-url="],
        files: &["body"],
        detail: "aws s3api",
        ..NONE
    },
    Sender { programs: &["gcloud"], verbs: &["pubsub", "topics", "publish"], words: true, ..NONE },
    Sender { programs: &["gcloud"], verbs: &["functions", "call"], words: true, ..NONE },
    Sender {
        programs: &["az"],
        verbs: &["storage", "blob", "upload"],
        values: "fcn",
        long: &["file=", "container-name=", "name=", "account-name=", "account-key=", "sas-token="],
        files: &["f", "file"],
        detail: "az storage",
        ..NONE
    },
    Sender { programs: &["rclone"], verbs: &["rcat"], input: &["*"], detail: "rclone", ..NONE },
    Sender {
        programs: &["restic"],
        verbs: &["backup"],
        hosts: &["r", "repo"],
        values: "ropeH",
        long: &["repo=", "password-file=", "exclude=", "tag=", "host=", "exclude-file=", "files-from="],
        operands: Some(0),
        input: &["stdin"],
        detail: "backup",
        ..NONE
    },
    Sender {
        programs: &["borg"],
        verbs: &["create"],
        hosts: &[""],
        values: "eCc",
        long: &["exclude=", "compression=", "remote-path=", "rsh="],
        operands: Some(1),
        detail: "backup",
        ..NONE
    },
    Sender {
        programs: &["netlify", "ntl"],
        verbs: &["deploy"],
        values: "dsam",
        long: &["dir=", "site=", "auth=", "message=", "functions="],
        files: &["d", "dir"],
        detail: "publication",
        ..NONE
    },
    Sender {
        programs: &["wrangler"],
        verbs: &["pages", "deploy"],
        long: &["project-name=", "branch="],
        operands: Some(0),
        detail: "publication",
        ..NONE
    },
    Sender { programs: &["surge"], operands: Some(0), long: &["domain="], detail: "publication", ..NONE },
    Sender {
        programs: &["gh-pages"],
        values: "dbrm",
        long: &["dist=", "branch=", "repo=", "message="],
        files: &["d", "dist"],
        detail: "publication",
        ..NONE
    },
    Sender {
        programs: &["kubectl", "oc"],
        verbs: &["create"],
        hosts: &["s", "server"],
        values: "fns",
        long: &["server=", "from-file=", "from-env-file=", "namespace=", "token=", "filename="],
        files: &["f", "filename", "from-file", "from-env-file"],
        words: true,
        detail: "cluster",
        ..NONE
    },
    // A registry that the input signs in to.
    Sender {
        programs: &["docker", "podman", "nerdctl", "helm", "oras", "crane"],
        verbs: &["login"],
        values: "up",
        long: &["username=", "password=", "password-stdin"],
        input: &["password-stdin"],
        words: true,
        detail: "sign-in",
        ..NONE
    },
];

/// Names of this machine.
const HERE: &[&str] = &["localhost", "127.", "[::1]", "::1", "0.0.0.0", "/", "."];

/// The senders that a command line is one of, with its options.
fn senders<'a>(
    program: &'a str,
    arguments: &'a [Argument],
) -> impl Iterator<Item = (&'static Sender, Options<'a>)> {
    SENDERS.iter().filter(move |sender| sender.programs.contains(&program)).filter_map(move |sender| {
        let grammar = Grammar { short_values: sender.values, long: sender.long, ..Grammar::default() };
        let options = Options::parse(arguments, &grammar);
        let mut operands = options.operands.iter();
        let does = sender.verbs.iter().all(|verb| operands.any(|operand| operand.text == *verb));
        (does && is_away(sender, &options)).then_some((sender, options))
    })
}

/// Whether a sender is told to send to another machine.
fn is_away(sender: &Sender, options: &Options<'_>) -> bool {
    let is_host = |text: &str| {
        let host = text.split_once("://").map_or(text, |(_, rest)| rest.rsplit('@').next().unwrap_or(rest));
        !host.is_empty() && !HERE.iter().any(|here| host.starts_with(here))
    };
    match sender.hosts {
        [] => true,
        // A repository of backups on another machine.
        [""] => {
            let first = options.operands.get(sender.verbs.len()).map_or("", |first| first.text.as_str());
            first.split("::").next().is_some_and(|repository| repository.contains(':'))
        }
        names => {
            let is_backup = sender.detail == "backup";
            options.values(names).any(|host| is_host(&host.text) && (!is_backup || host.text.contains(':')))
                || options.operands.iter().any(|one| one.text.contains("://") && is_host(&one.text))
        }
    }
}

/// Whether the words of a command line leave.
pub(super) fn sends_words(program: &str, arguments: &[Argument]) -> bool {
    senders(program, arguments).any(|(sender, _)| sender.words)
}

/// Tells which files leave, and whether the input does.
pub(super) fn send(call: &mut Call<'_, '_>) {
    let found: Vec<_> = senders(call.program(), call.arguments()).collect();
    for (sender, options) in found {
        let mut files: Vec<Argument> = options.values(sender.files).map(without_name).collect();
        if let Some(from) = sender.operands {
            files.extend(options.operands.iter().skip(sender.verbs.len() + from).map(|file| (*file).clone()));
        }
        let files: Vec<Argument> = files.into_iter().filter(|file| !file.text.contains("://")).collect();
        for file in &files {
            let attributes = Attributes { recursive: true, forced: false, detail: sender.detail.to_owned() };
            call.read(file, true, sender.detail);
            call.effect(EffectKind::SendData, Some(path_target(file)), attributes);
        }
        let given = !matches!(call.invocation.input, Input::None);
        let takes = sender.input.iter().any(|option| match *option {
            "" => files.is_empty(),
            "*" => true,
            option => options.has(&[option]),
        });
        if given && takes {
            call.send_input(sender.detail);
        }
    }
}

/// `--from-file=name=path`, `--body fileb://path`: the path.
fn without_name(value: &Argument) -> Argument {
    let text = value.text.strip_prefix("fileb://").or_else(|| value.text.strip_prefix("file://"));
    let text = text.unwrap_or(&value.text);
    let text = text.split_once('=').map_or(text, |(_, path)| path);
    super::options::part(value, text)
}
