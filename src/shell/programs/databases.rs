//! Clients of data bases: statements that drop, empty or delete everything, and commands of the client that run a shell.

use super::super::argument::Argument;
use super::super::effect::EffectKind;
use super::Input;
use super::call::{Call, name_target};
use super::options::{Grammar, Options, part};

/// Bytes of a statement text that are looked at; dumps are longer and come from files.
const STATEMENTS_MAX: usize = 1 << 16;

const SQL: Grammar = Grammar {
    short_values: "cdefhpPUuDSvFRTLosNE",
    short_attached: "",
    long: &[
        "command=",
        "execute=",
        "file=",
        "dbname=",
        "host=",
        "port=",
        "username=",
        "user=",
        "database=",
        "output=",
        "set=",
        "variable=",
        "init-command=",
        "defaults-file=",
        "defaults-extra-file=",
        "socket=",
        "password=?",
        "query=",
        "eval=",
        "pset=",
        "field-separator=",
        "record-separator=",
        "log-file=",
        "delimiter=",
        "statement=",
        "multiquery",
        "cmd=",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

/// `psql`, `mysql`, `mariadb`, `sqlcmd`, `clickhouse-client`, `cockroach`, `duckdb`, `bq`, `cqlsh`.
pub(super) fn sql(call: &mut Call<'_, '_>) {
    let program = call.program();
    let grammar = match program {
        "mysql" | "mariadb" => Grammar { short_values: "eDhPuSR", short_attached: "p", ..SQL },
        "psql" => Grammar { short_values: "cdfFhLoPpRTUv", ..SQL },
        "sqlcmd" | "osql" | "isql" => Grammar { short_values: "QqSUPdiobhsvw", ..SQL },
        "cqlsh" => Grammar { short_values: "efupk", ..SQL },
        "clickhouse" | "clickhouse-client" => Grammar { short_values: "qhudnp", ..SQL },
        _ => SQL,
    };
    let options = call.options(&grammar);
    let given: Vec<Argument> = options
        .values(&["c", "command", "e", "execute", "Q", "q", "query", "statement", "init-command"])
        .cloned()
        .collect();
    for text in &given {
        statements(call, text);
    }
    for file in options.values(&["f", "file", "i", "defaults-file", "defaults-extra-file"]) {
        call.read(file, false, "");
    }
    if program == "bq" {
        for text in options.operands.iter().skip(1) {
            statements(call, text);
        }
        if matches!(options.operand(0), "rm") {
            call.tell(
                EffectKind::DestroyData,
                options.operands.last().map(|o| name_target(&o.text)),
                "bq rm",
            );
        }
    }
    input(call);
}

/// The standard input of a client as statements.
fn input(call: &mut Call<'_, '_>) {
    if let Input::Text(text) = call.invocation.input {
        statements(call, text);
    }
}

/// `sqlite3` and `duckdb`: the file first, then statements.
pub(super) fn sqlite(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        long: &[
            "cmd=",
            "init=",
            "separator=",
            "newline=",
            "nullvalue=",
            "readonly",
            "csv",
            "json",
            "header",
            "column",
            "line",
            "c=",
            "s=",
        ],
        single_dash_long: true,
        ..Grammar::default()
    };
    let options = call.options(&grammar);
    if let Some(file) = options.operands.first() {
        let path = file.text.strip_prefix("file:").unwrap_or(&file.text);
        let path = path.split('?').next().unwrap_or_default();
        call.read(&part(file, path), false, "");
    }
    if let Some(file) = options.value(&["init"]) {
        call.read(file, false, "");
    }
    let texts: Vec<Argument> =
        options.values(&["cmd", "c", "s"]).chain(options.operands.iter().skip(1).copied()).cloned().collect();
    for text in &texts {
        statements(call, text);
    }
    input(call);
}

/// `dropdb`, `mysqladmin drop`, `dropuser`, `createdb` by what they destroy.
pub(super) fn admin(call: &mut Call<'_, '_>) {
    let options = call.options(&SQL);
    match call.program() {
        "dropdb" => {
            for name in &options.operands {
                destroy(call, "drop database", Some(&name.text));
            }
        }
        "mysqladmin" | "mariadb-admin" => {
            let mut operands = options.operands.iter().map(|o| o.text.as_str());
            if operands.any(|o| o == "drop") {
                destroy(call, "drop database", operands.next());
            }
        }
        "pg_dump" | "pg_dumpall" | "mysqldump" | "mongodump" => {
            if let Some(file) = options.value(&["f", "file"]) {
                call.write(file, "dump");
            }
        }
        _ => {}
    }
}

fn destroy(call: &mut Call<'_, '_>, detail: &str, target: Option<&str>) {
    call.tell(EffectKind::DestroyData, target.map(name_target), detail);
}

/// Looks through statements of SQL and commands of a client.
fn statements(call: &mut Call<'_, '_>, text: &Argument) {
    let limit = (0..=STATEMENTS_MAX.min(text.text.len())).rev().find(|at| text.text.is_char_boundary(*at));
    let source = &text.text[..limit.unwrap_or_default()];
    for line in source.lines().take(4096) {
        client_command(call, text, line.trim_start());
    }
    for statement in split(source).take(1024) {
        if let Some((detail, target)) = destructive(&statement) {
            destroy(call, &detail, target.as_deref());
        }
        if let Some(what) = runs_programs(&statement) {
            call.shell(&part(text, &what), "sql");
        }
    }
}

/// `\! command`, `.shell command`, `system command`: a shell out of the client.
fn client_command(call: &mut Call<'_, '_>, text: &Argument, line: &str) {
    let lower = line.to_ascii_lowercase();
    for start in ["\\!", ".shell ", ".system ", "system ", "!!", ":!!"] {
        if lower.starts_with(start) && !(start == "system " && lower.ends_with(';') && lower.contains('=')) {
            call.shell(&part(text, line[start.len()..].trim_end_matches(';')), "sql shell");
            return;
        }
    }
    if let Some(rest) = lower.strip_prefix("\\copy ")
        && let Some(at) = rest.find("program '")
    {
        let command = &line["\\copy ".len() + at + "program '".len()..];
        call.shell(&part(text, command.split('\'').next().unwrap_or_default()), "sql copy");
    }
    for (start, writes) in [
        (".output ", true),
        (".once ", true),
        (".read ", false),
        ("\\i ", false),
        ("\\o ", true),
        ("source ", false),
    ] {
        if let Some(rest) = lower.strip_prefix(start) {
            let path = &line[start.len()..start.len() + rest.len()];
            if let Some(command) = path.trim().strip_prefix('|') {
                call.shell(&part(text, command), "sql shell");
            } else if writes {
                call.write(&part(text, path.trim()), "");
            } else {
                call.read(&part(text, path.trim()), false, "");
            }
        }
    }
}

/// Statements in upper case without comments, string contents left out, one blank between words.
fn split(source: &str) -> impl Iterator<Item = Vec<String>> {
    let mut all = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut chars = source.chars().peekable();
    let end_word = |word: &mut String, words: &mut Vec<String>| {
        if !word.is_empty() {
            words.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                end_word(&mut word, &mut words);
                let mut inner = String::from("'");
                for c in chars.by_ref() {
                    if c == '\'' {
                        break;
                    }
                    inner.push(c);
                }
                words.push(inner);
            }
            '-' if chars.peek() == Some(&'-') => {
                while chars.peek().is_some_and(|c| *c != '\n') {
                    chars.next();
                }
                end_word(&mut word, &mut words);
            }
            '/' if chars.peek() == Some(&'*') => {
                chars.next();
                let mut star = false;
                for c in chars.by_ref() {
                    if star && c == '/' {
                        break;
                    }
                    star = c == '*';
                }
                end_word(&mut word, &mut words);
            }
            ';' => {
                end_word(&mut word, &mut words);
                all.push(std::mem::take(&mut words));
            }
            '(' | ')' | ',' => {
                end_word(&mut word, &mut words);
                words.push(c.to_string());
            }
            '"' | '`' | '[' | ']' => {}
            c if c.is_whitespace() => end_word(&mut word, &mut words),
            c => word.extend(c.to_uppercase()),
        }
    }
    end_word(&mut word, &mut words);
    all.push(words);
    all.into_iter().filter(|words| !words.is_empty())
}

/// What a statement destroys: its kind and the name.
fn destructive(words: &[String]) -> Option<(String, Option<String>)> {
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    let name = |mut index: usize| {
        while matches!(word(index), "IF" | "EXISTS" | "ONLY" | "TABLE") {
            index += 1;
        }
        words.get(index).map(|w| w.to_ascii_lowercase())
    };
    match word(0) {
        "DROP" => {
            let what = word(1);
            let counts = matches!(
                what,
                "DATABASE"
                    | "SCHEMA"
                    | "TABLE"
                    | "KEYSPACE"
                    | "TABLESPACE"
                    | "USER"
                    | "ROLE"
                    | "OWNED"
                    | "COLLECTION"
            );
            counts.then(|| (format!("drop {}", what.to_ascii_lowercase()), name(2)))
        }
        "TRUNCATE" => Some(("truncate".to_owned(), name(1))),
        "DELETE" if word(1) == "FROM" => {
            let unconditional =
                !words.iter().any(|w| w == "WHERE" || w == "USING" || w == "LIMIT") || always_true(words);
            unconditional.then(|| ("delete without where".to_owned(), name(2)))
        }
        "UPDATE" => {
            let unconditional = words.iter().any(|w| w == "SET")
                && !words.iter().any(|w| w == "WHERE" || w == "FROM" || w == "JOIN");
            unconditional.then(|| ("update without where".to_owned(), name(1)))
        }
        "SHUTDOWN" => Some(("shutdown".to_owned(), None)),
        "RESTORE" | "ALTER" if words.iter().any(|w| w == "DROP") && words.iter().any(|w| w == "DATABASE") => {
            Some(("drop database".to_owned(), None))
        }
        _ => None,
    }
}

/// `WHERE 1=1`, `WHERE TRUE`.
fn always_true(words: &[String]) -> bool {
    let Some(at) = words.iter().position(|w| w == "WHERE") else { return false };
    let condition: String = words[at + 1..].concat();
    matches!(condition.as_str(), "1=1" | "TRUE" | "1")
}

/// A command that the server runs: `COPY … FROM PROGRAM 'cmd'`, `xp_cmdshell 'cmd'`, `sys_exec('cmd')`.
fn runs_programs(words: &[String]) -> Option<String> {
    let at = words.iter().position(|w| {
        matches!(
            w.as_str(),
            "PROGRAM" | "XP_CMDSHELL" | "SYS_EXEC" | "SYS_EVAL" | "EDIT" | "MASTER..XP_CMDSHELL"
        )
    })?;
    words[at + 1..].iter().find_map(|w| w.strip_prefix('\'')).map(str::to_owned)
}

/// `redis-cli`: the words are one command; input has one a line.
pub(super) fn redis(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "hpsaunridxXtD",
        long: &[
            "user=", "pass=", "tls", "cert=", "key=", "cacert=", "eval=", "scan", "pattern=", "raw",
            "askpass", "csv", "json",
        ],
        stops_at_operand: true,
        ..Grammar::default()
    };
    let grammar = Grammar { short_values: "hpsaunridtD", ..grammar };
    let options = call.options(&grammar);
    let words: Vec<String> = options.operands.iter().map(|o| o.text.to_ascii_lowercase()).collect();
    redis_command(call, &words);
    if let Input::Text(text) = call.invocation.input {
        for line in text.text.lines().take(1024) {
            let words: Vec<String> = line.split_whitespace().map(str::to_ascii_lowercase).collect();
            redis_command(call, &words);
        }
    }
}

fn redis_command(call: &mut Call<'_, '_>, words: &[String]) {
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    match (word(0), word(1)) {
        (verb @ ("flushall" | "flushdb"), _) => destroy(call, verb, None),
        ("shutdown", _) => destroy(call, "shutdown", None),
        ("config", "set") if matches!(word(2), "dir" | "dbfilename") => {
            call.tell(EffectKind::WritePath, Some(name_target(word(3))), "redis config");
        }
        ("module", "load") => {
            call.tell(EffectKind::OpaqueExecution, Some(name_target(word(2))), "redis module load")
        }
        _ => {}
    }
}

/// Clients of stores and queues: program, the words that must all stand among the arguments, what it is called.
const STORES: &[(&str, &[&str], &str)] = &[
    ("etcdctl", &["del", "--prefix"], "drop keyspace etcd"),
    ("consul", &["kv", "delete", "-recurse"], "drop keyspace consul"),
    ("rabbitmqctl", &["reset"], "drop keyspace rabbitmq"),
    ("rabbitmqctl", &["force_reset"], "drop keyspace rabbitmq"),
    ("kafka-topics", &["--delete"], "drop collection kafka"),
    ("kafka-topics.sh", &["--delete"], "drop collection kafka"),
    ("influx", &["delete"], "drop collection influx"),
    ("nats", &["stream", "rm"], "drop collection nats"),
    ("nodetool", &["decommission"], "drop keyspace cassandra"),
    ("velero", &["backup", "delete"], "drop backup"),
    ("velero", &["delete", "backup"], "drop backup"),
    ("borg", &["delete"], "drop backup"),
    ("restic", &["forget", "--prune"], "drop backup"),
    ("kopia", &["snapshot", "delete"], "drop backup"),
    ("duplicity", &["remove-all-but-n-full"], "drop backup"),
];

/// Looks for the words of [`STORES`].
pub(super) fn store(call: &mut Call<'_, '_>) {
    for (program, words, detail) in STORES {
        let mut arguments = call.arguments().iter();
        if *program == call.program() && words.iter().all(|word| arguments.any(|a| a.text == *word)) {
            destroy(call, detail, None);
            return;
        }
    }
}

/// Whether a program is one of [`STORES`].
pub(super) fn stores(program: &str) -> bool {
    STORES.iter().any(|(name, ..)| *name == program)
}

/// `mongosh`, `mongo`: JavaScript; what drops is a method.
pub(super) fn mongo(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar {
        short_values: "uph",
        long: &["eval=", "host=", "port=", "username=", "password=", "file="],
        ..Grammar::default()
    });
    let mut texts: Vec<String> = options.values(&["eval"]).map(|v| v.text.clone()).collect();
    if let Input::Text(text) = call.invocation.input {
        texts.push(text.text.clone());
    }
    for text in texts {
        let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        for (method, detail) in [
            (".dropDatabase(", "drop database"),
            (".drop(", "drop collection"),
            (".deleteMany({})", "delete without where"),
            (".remove({})", "delete without where"),
            ("dropDatabase:1", "drop database"),
        ] {
            if squeezed.contains(method) {
                destroy(call, detail, None);
            }
        }
    }
}

/// Frameworks that drop the data base of the project: `rails db:drop`, `prisma migrate reset`, `artisan migrate:fresh`.
pub(super) fn framework(call: &mut Call<'_, '_>) {
    let options: Options<'_> = call.options(&Grammar::default());
    let words: Vec<&str> = options.operands.iter().map(|o| o.text.as_str()).collect();
    let forced = options.has(&["force", "f", "accept-data-loss", "noinput", "no-input", "force-reset"]);
    let joined = words.iter().take(3).copied().collect::<Vec<_>>().join(" ");
    let detail =
        ["db:drop", "db:reset", "migrate reset", "migrate:fresh", "migrate:reset", "db:wipe", "schema:drop"]
            .iter()
            .find(|verb| joined.contains(**verb))
            .copied()
            .or_else(|| (joined.contains("db push") && forced).then_some("db push"))
            .or_else(|| words.iter().any(|w| *w == "flush" || *w == "reset_db").then_some("flush"));
    if let Some(detail) = detail.filter(|_| forced || joined.contains("db:drop") || joined.contains("reset"))
    {
        let detail = format!("{} {detail}", call.program());
        destroy(call, &detail, None);
    }
}

#[cfg(test)]
mod tests {
    use super::{destructive, runs_programs, split};

    /// A text and what its statements destroy.
    const CASES: &[(&str, &[&str])] = &[
        ("DROP TABLE users", &["drop table"]),
        ("select 1; drop database shop;", &["drop database"]),
        ("delete from t", &["delete without where"]),
        ("DELETE FROM t WHERE id = 1", &[]),
        ("DELETE FROM t WHERE 1=1", &["delete without where"]),
        ("truncate table logs", &["truncate"]),
        ("SELECT 'drop table users; truncate x'", &[]),
        ("-- drop table a\nselect 1", &[]),
        ("/* drop\ntable */ insert into t values (1)", &[]),
        ("update t set a = 1", &["update without where"]),
        ("update t set a = 1 where id = 2", &[]),
        ("create table t (a int)", &[]),
        ("drop index i", &[]),
    ];

    #[test]
    fn statements_that_destroy_are_told() {
        for (text, wanted) in CASES {
            let found: Vec<String> = split(text).filter_map(|s| destructive(&s)).map(|(d, _)| d).collect();
            assert_eq!(found, *wanted, "{text}");
        }
    }

    #[test]
    fn a_server_may_be_told_to_run_a_program() {
        let run = |text: &str| split(text).find_map(|s| runs_programs(&s));
        assert_eq!(run("COPY t FROM PROGRAM 'id'").as_deref(), Some("id"));
        assert_eq!(run("EXEC xp_cmdshell 'whoami'").as_deref(), Some("whoami"));
        assert_eq!(run("SELECT program FROM t"), None);
    }
}
