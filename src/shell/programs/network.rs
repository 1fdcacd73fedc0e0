//! Programs that fetch, send, and connect a shell to the network.

use super::super::argument::Argument;
use super::super::effect::EffectKind;
use super::Input;
use super::call::{Call, base_name, is_shell, is_stream, name_target, network_target, word};
use super::options::{Grammar, Options, part};

/// Lines of a file of options that are looked at.
const LINES_MAX: usize = 256;

const CURL: Grammar = Grammar {
    short_values: "AbcCdDeEFhHKmoPQrtTuUwXyYxz",
    short_attached: "",
    long: &[
        "abstract-unix-socket=",
        "cacert=",
        "capath=",
        "cert=",
        "cert-type=",
        "ciphers=",
        "config=",
        "connect-timeout=",
        "connect-to=",
        "cookie=",
        "cookie-jar=",
        "crlfile=",
        "data=",
        "data-ascii=",
        "data-binary=",
        "data-raw=",
        "data-urlencode=",
        "dump-header=",
        "engine=",
        "form=",
        "form-string=",
        "header=",
        "interface=",
        "json=",
        "key=",
        "key-type=",
        "libcurl=",
        "limit-rate=",
        "local-port=",
        "max-filesize=",
        "max-redirs=",
        "max-time=",
        "netrc-file=",
        "noproxy=",
        "oauth2-bearer=",
        "output=",
        "output-dir=",
        "pass=",
        "proto=",
        "proto-default=",
        "proto-redir=",
        "proxy=",
        "proxy-header=",
        "proxy-user=",
        "pubkey=",
        "quote=",
        "range=",
        "rate=",
        "referer=",
        "request=",
        "request-target=",
        "resolve=",
        "retry=",
        "retry-delay=",
        "retry-max-time=",
        "socks5=",
        "socks5-hostname=",
        "speed-limit=",
        "speed-time=",
        "stderr=",
        "telnet-option=",
        "time-cond=",
        "tls-max=",
        "trace=",
        "trace-ascii=",
        "unix-socket=",
        "upload-file=",
        "url=",
        "url-query=",
        "user=",
        "user-agent=",
        "variable=",
        "write-out=",
        "aws-sigv4=",
        "ssl-reqd",
        "location",
        "silent",
        "show-error",
        "fail",
        "insecure",
        "remote-name",
        "remote-name-all",
        "head",
        "include",
        "compressed",
        "globoff",
        "get",
        "help",
        "version",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

/// `curl`.
pub(super) fn curl(call: &mut Call<'_, '_>) {
    let options = call.options(&CURL);
    if options.has(&["help", "version", "V"]) {
        return;
    }
    let urls: Vec<Argument> =
        options.operands.iter().map(|url| (*url).clone()).chain(options.values(&["url"]).cloned()).collect();
    for name in ["d", "data", "data-ascii", "data-binary", "json", "data-urlencode", "url-query"] {
        for value in options.values(&[name]) {
            let encoded = matches!(name, "data-urlencode" | "url-query");
            let file = value.text.strip_prefix('@').or_else(|| {
                let (_, file) =
                    value.text.split_once('@').filter(|(name, _)| encoded && !name.contains('='))?;
                Some(file)
            });
            if let Some(file) = file {
                call.send_file(&part(value, file), "curl");
            }
        }
    }
    for value in options.values(&["F", "form"]) {
        let field = value.text.split_once('=').map_or("", |(_, content)| content);
        if let Some(file) = field.strip_prefix(['@', '<']) {
            let file = file.split([';', ',']).next().unwrap_or_default();
            call.send_file(&part(value, file), "curl");
        }
    }
    for file in options.values(&["T", "upload-file"]) {
        call.send_file(file, "curl");
    }
    // Cookies come from a file if they are no `name=value`.
    for cookies in options.values(&["b", "cookie"]).filter(|value| !value.text.contains('=')) {
        call.send_file(cookies, "curl");
    }
    for header in options.values(&["H", "header", "proxy-header", "variable"]) {
        if let Some(file) = header.text.strip_prefix('@') {
            call.send_file(&part(header, file), "curl");
        }
    }
    for file in options.values(&["K", "config", "netrc-file", "key", "E", "cert"]) {
        call.read(file, false, "option");
    }
    if options.values(&["K", "config"]).any(|file| is_stream(&file.text)) {
        configured(call);
    }
    let sockets = options.values(&["unix-socket", "abstract-unix-socket"]);
    for socket in sockets {
        call.tell(EffectKind::EscapeSandbox, Some(super::call::path_target(socket)), "unix socket");
    }
    let sends =
        ["X", "request", "d", "data", "data-binary", "data-raw", "data-urlencode", "json", "F", "form"];
    let deletes = options.values(&["X", "request"]).any(|verb| verb.text.eq_ignore_ascii_case("delete"));
    let detail = if deletes {
        "delete"
    } else if options.has(&sends) || options.has(&["T", "upload-file"]) {
        "request"
    } else {
        ""
    };
    let unverified = options.has(&["k", "insecure"]);
    for url in &urls {
        if let Some(path) = strip_scheme(url, "file://") {
            call.read(&path, false, "");
            continue;
        }
        request(call, url, detail, unverified);
    }
    let mut outputs: Vec<Argument> = options.values(&["o", "output"]).cloned().collect();
    if options.has(&["O", "remote-name", "remote-name-all"]) {
        outputs.extend(urls.iter().map(remote_name));
    }
    let folder = options.value(&["output-dir"]);
    for output in outputs {
        let output = match folder {
            Some(folder) if !output.text.starts_with('/') => super::call::join(folder, &output.text),
            _ => output,
        };
        call.write(&output, "download");
    }
    for output in
        options.values(&["c", "cookie-jar", "D", "dump-header", "libcurl", "trace", "trace-ascii", "stderr"])
    {
        call.write(output, "");
    }
}

/// `curl -K -`: the lines of the input are options.
fn configured(call: &mut Call<'_, '_>) {
    let Input::Text(lines) = call.invocation.input else { return };
    let mut argv = vec![word("curl", lines)];
    for line in lines.text.lines().take(LINES_MAX) {
        let line = line.trim().trim_start_matches('-');
        let (name, value) = line.split_once(['=', ':', ' ']).unwrap_or((line, ""));
        if name.is_empty() || name.starts_with('#') || matches!(name.trim(), "K" | "config") {
            continue;
        }
        argv.push(part(lines, &format!("--{}", name.trim())));
        let value = value.trim().trim_start_matches(['=', ':']).trim().trim_matches('"');
        if !value.is_empty() {
            argv.push(part(lines, value));
        }
    }
    argv.extend(call.arguments().iter().filter(|one| one.text.contains("://")).cloned());
    call.run(&argv, "curl -K");
}

/// Something is asked of a host. `unverified`: whoever it is.
fn request(call: &mut Call<'_, '_>, url: &Argument, detail: &str, unverified: bool) {
    let attributes = super::Attributes { recursive: false, forced: unverified, detail: detail.to_owned() };
    call.effect(EffectKind::Fetch, Some(network_target(url)), attributes);
}

/// The path of a URL with this scheme.
fn strip_scheme(url: &Argument, scheme: &str) -> Option<Argument> {
    let head = url.text.get(..scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then(|| part(url, &url.text[scheme.len()..]))
}

/// The file name that a URL is saved under when nothing else is said.
fn remote_name(url: &Argument) -> Argument {
    let path = url.text.split(['?', '#']).next().unwrap_or_default();
    let after_scheme = path.split_once("://").map_or(path, |(_, rest)| rest);
    match after_scheme.rsplit_once('/') {
        Some((_, name)) if !name.is_empty() => part(url, name),
        _ => part(url, "index.html"),
    }
}

const WGET: Grammar = Grammar {
    short_values: "aABDeGiIloOPQtTUwX",
    short_attached: "",
    long: &[
        "output-document=",
        "output-file=",
        "append-output=",
        "input-file=",
        "directory-prefix=",
        "post-data=",
        "post-file=",
        "body-data=",
        "body-file=",
        "method=",
        "header=",
        "user=",
        "password=",
        "tries=",
        "timeout=",
        "wait=",
        "level=",
        "accept=",
        "reject=",
        "domains=",
        "execute=",
        "config=",
        "load-cookies=",
        "save-cookies=",
        "user-agent=",
        "referer=",
        "limit-rate=",
        "certificate=",
        "private-key=",
        "ca-certificate=",
        "use-askpass=",
        "recursive",
        "mirror",
        "quiet",
        "no-verbose",
        "continue",
        "timestamping",
        "spider",
        "no-check-certificate",
        "background",
        "help",
        "version",
        "progress=",
        "cut-dirs=",
        "base=",
        "connect-timeout=",
        "read-timeout=",
        "retry-connrefused",
        "content-disposition",
        "trust-server-names",
        "show-progress",
        "no-clobber",
        "delete-after",
        "https-only",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

/// `wget`.
pub(super) fn wget(call: &mut Call<'_, '_>) {
    let options = call.options(&WGET);
    if options.has(&["help", "version", "V"]) {
        return;
    }
    for file in options.values(&["post-file", "body-file"]) {
        call.send_file(file, "wget");
    }
    for file in options.values(&["i", "input-file", "config", "load-cookies", "private-key"]) {
        call.read(file, false, "option");
    }
    if let Some(program) = options.value(&["use-askpass"]) {
        call.run(std::slice::from_ref(program), "wget --use-askpass");
    }
    let sends = options.has(&["post-file", "body-file", "post-data", "body-data"]);
    let unverified = options.has(&["no-check-certificate"]);
    for url in &options.operands {
        match strip_scheme(url, "file://") {
            Some(path) => call.read(&path, false, ""),
            None => request(call, url, if sends { "request" } else { "" }, unverified),
        }
    }
    if options.has(&["spider"]) {
        return;
    }
    if let Some(output) = options.value(&["O", "output-document"]) {
        call.write(output, "download");
    } else {
        let folder = options.value(&["P", "directory-prefix"]);
        for url in &options.operands {
            let name = remote_name(url);
            let path = match folder {
                Some(folder) => super::call::join(folder, &name.text),
                None => name,
            };
            call.write(&path, "download");
        }
    }
    for log in options.values(&["o", "output-file", "a", "append-output"]) {
        call.write(log, "");
    }
}

/// `aria2c`, `axel`, `http`, `lwp-download` and other fetchers.
pub(super) fn fetch(call: &mut Call<'_, '_>) {
    if call.program() == "whois" {
        return whois(call);
    }
    let options = call.options(&Grammar {
        short_values: "oOdaxsjiTn",
        long: &["out=", "output=", "dir="],
        ..Grammar::default()
    });
    for url in options.operands.iter().filter(|o| !matches!(o.text.as_str(), "GET" | "POST" | "PUT" | "HEAD"))
    {
        call.tell(EffectKind::Fetch, Some(network_target(url)), "");
        // HTTPie sends files as `field@path`, `field=@path`, `field:=@path` and `@path`.
        let is_field = |name: &str| {
            let name = name.strip_suffix(":=").or_else(|| name.strip_suffix('=')).unwrap_or(name);
            !name.contains(['/', ':', '='])
        };
        if matches!(call.program(), "http" | "https" | "xh")
            && let Some((_, file)) = url.text.split_once('@').filter(|(name, _)| is_field(name))
        {
            call.send_file(&part(url, file), "http");
        }
    }
    if let Some(output) = options.value(&["o", "O", "out", "output"]) {
        call.write(output, "download");
    }
}

/// `whois`: with a host and a port of one's own it carries anything anywhere.
fn whois(call: &mut Call<'_, '_>) {
    let options =
        call.options(&Grammar { short_values: "hpgiqTvsl", long: &["host=", "port="], ..Grammar::default() });
    let host = options.value(&["h", "host"]);
    let port = options.value(&["p", "port"]).is_some_and(|port| port.text != "43");
    match host {
        Some(host) if port => call.tell(EffectKind::SendData, Some(network_target(host)), "whois port"),
        _ => {
            for name in &options.operands {
                call.tell(EffectKind::Fetch, Some(network_target(name)), "");
            }
        }
    }
}

const NETCAT: Grammar = Grammar {
    short_values: "cegiIMmoOpPqsTVwWXxG",
    short_attached: "",
    long: &[
        "exec=",
        "sh-exec=",
        "lua-exec=",
        "listen",
        "keep-open",
        "wait=",
        "idle-timeout=",
        "source=",
        "source-port=",
        "output=",
        "hex-dump=",
        "proxy=",
        "proxy-type=",
        "proxy-auth=",
        "ssl",
        "ssl-cert=",
        "ssl-key=",
        "udp",
        "verbose",
        "send-only",
        "recv-only",
        "allow=",
        "deny=",
        "max-conns=",
        "delay=",
        "unixsock",
        "zero",
        "broker",
        "chat",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

/// `nc`, `ncat`, `netcat`. `-c` runs a command in some of them and takes no value in others.
pub(super) fn netcat(call: &mut Call<'_, '_>) {
    let options = call.options(&NETCAT);
    let listens = options.has(&["l", "listen"]);
    let command = options.value(&["e", "exec", "c", "sh-exec", "lua-exec"]).cloned();
    // `nc -c host port` of OpenBSD means TLS: what follows is a host, not a program.
    let flag_c =
        options.value(&["c"]).is_some() && options.value(&["e", "exec", "sh-exec", "lua-exec"]).is_none();
    if let Some(command) = command.filter(|c| !flag_c || runs_something(c)) {
        let host = options.operands.first().map(|host| network_target(host));
        shell_over_network(call, listens, host, &command.text);
        call.shell(&command, "nc -e");
        return;
    }
    if let Some(output) = options.value(&["o", "output"]).filter(|_| call.program() != "nc") {
        call.write(output, "");
    }
    let is_given = !matches!(call.invocation.input, Input::None);
    let serves = listens && is_given;
    if serves || !listens && !options.has(&["z", "zero"]) && options.operands.len() > 1 {
        call.send_input("nc");
    }
}

/// Whether the value of `-c` is a command rather than a host.
fn runs_something(value: &Argument) -> bool {
    let first = value.text.split_whitespace().next().unwrap_or_default();
    first.starts_with('/') || is_shell(first) || value.text.contains(' ') || !value.is_known()
}

fn shell_over_network(
    call: &mut Call<'_, '_>,
    listens: bool,
    host: Option<super::super::effect::Target>,
    detail: &str,
) {
    let kind = if listens { EffectKind::BindShell } else { EffectKind::ReverseShell };
    call.tell(kind, host, detail);
}

/// `socat`: two addresses; a shell on one and the network on the other is a shell for others.
pub(super) fn socat(call: &mut Call<'_, '_>) {
    let options =
        call.options(&Grammar { short_values: "TtbslLhWD", short_attached: "dl", ..Grammar::default() });
    let mut program = None;
    let mut network = None;
    let mut listens = false;
    for address in &options.operands {
        let upper = address.text.to_ascii_uppercase();
        let kind = upper.split([':', ',']).next().unwrap_or_default();
        let value = address.text.split_once(':').map_or("", |(_, value)| value);
        match kind {
            "EXEC" | "SYSTEM" | "SHELL" => {
                let command = value.split(',').next().unwrap_or_default();
                program = Some(part(address, command.trim_matches(['"', '\''])));
            }
            "FILE" | "OPEN" | "GOPEN" | "CREATE" => {
                let path = part(address, value.split(',').next().unwrap_or_default());
                if kind == "CREATE" || upper.contains(",CREAT") || upper.contains(",WRONLY") {
                    call.write(&path, "");
                } else {
                    call.read(&path, false, "");
                    call.tell(EffectKind::SendData, Some(super::call::path_target(&path)), "socat");
                }
            }
            _ => {
                let connects =
                    ["TCP", "UDP", "SSL", "OPENSSL", "SCTP", "DCCP", "VSOCK", "SOCKS", "PROXY", "ABSTRACT"];
                if connects.iter().any(|name| kind.starts_with(name)) {
                    listens |= kind.contains("LISTEN") || kind.ends_with("-L") || kind.contains("RECV");
                    network = Some(network_target(address));
                }
            }
        }
    }
    let is_standard = |address: &&Argument| matches!(address.text.as_str(), "-" | "STDIN" | "STDIO" | "FD:0");
    if network.is_some() && program.is_none() && !listens && options.operands.iter().any(is_standard) {
        call.send_input("socat");
    }
    if let Some(command) = program {
        if network.is_some() {
            shell_over_network(call, listens, network, &command.text);
        }
        call.shell(&command, "socat");
    }
}

/// `telnet` by itself only connects.
pub(super) fn telnet(call: &mut Call<'_, '_>) {
    if call.options(&Grammar { short_values: "bXlnek", ..Grammar::default() }).operands.len() > 1 {
        call.send_input("telnet");
    }
}

/// `openssl`: keys and data are files; `s_client` sends its input.
pub(super) fn openssl(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        long: &[
            "in=",
            "out=",
            "inkey=",
            "keyfile=",
            "key=",
            "pass=",
            "passin=",
            "passout=",
            "k=",
            "connect=",
            "CAfile=",
            "cert=",
            "engine=",
            "provider=",
            "days=",
            "subj=",
            "config=",
            "kfile=",
            "rand=",
            "writerand=",
            "recip=",
            "signer=",
            "port=",
            "accept=",
            "host=",
            "servername=",
            "keyout=",
            "iter=",
            "md=",
            "S=",
            "iv=",
            "K=",
            "newkey=",
            "extensions=",
        ],
        single_dash_long: true,
        ..Grammar::default()
    };
    let arguments = call.arguments().get(1..).unwrap_or_default();
    let options = Options::parse(arguments, &grammar);
    let verb = call.arguments().first().map_or("", |a| a.text.as_str());
    let is_key = options.has(&["pubout", "pubin", "noout"]);
    let encrypts =
        matches!(verb, "enc" | "smime" | "cms") && !options.has(&["d", "decrypt", "verify", "sign"]);
    let detail = match (is_key, encrypts) {
        (true, _) => "key",
        (_, true) => "encrypt",
        _ => "",
    };
    for file in options.values(&["in", "inkey", "keyfile", "kfile", "key"]) {
        call.read(file, false, detail);
    }
    for file in options.values(&["out", "keyout", "writerand"]) {
        call.write(file, "");
    }
    if verb == "s_client" {
        call.send_input("openssl s_client");
    }
    if matches!(verb, "base64" | "enc" | "dgst" | "sha256" | "md5") {
        for file in &options.operands {
            call.read(file, false, "");
        }
    }
    if let Some(engine) = options.value(&["engine", "provider"]).filter(|e| e.text.contains('/')) {
        call.tell(EffectKind::OpaqueExecution, Some(super::call::path_target(engine)), "openssl -engine");
    }
}

/// Name look-ups that carry data: a host name made of the output of another command.
pub(super) fn lookup(call: &mut Call<'_, '_>) {
    let grammar = Grammar { short_values: "tTpcqnWbkyf", ..Grammar::default() };
    for host in call.options(&grammar).operands {
        if host.text.contains('.') && !host.text.starts_with('@') {
            call.tell(EffectKind::Fetch, Some(network_target(host)), "lookup");
        }
    }
}

/// `getent hosts name`.
pub(super) fn named_lookup(call: &mut Call<'_, '_>) {
    let [base, names @ ..] = call.arguments() else { return };
    if matches!(base.text.as_str(), "hosts" | "ahosts" | "ahostsv4" | "ahostsv6") {
        for name in names.iter().filter(|name| name.text.contains('.')) {
            call.tell(EffectKind::Fetch, Some(network_target(name)), "lookup");
        }
    }
}

/// Programs whose only purpose is a tunnel or a shell for others.
pub(super) fn tunnel(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let listens = arguments.iter().any(|a| matches!(a.text.as_str(), "-l" | "listen" | "--listen"));
    let shell = arguments.iter().find(|a| is_shell(&a.text) || a.text.starts_with("/bin/"));
    let program = call.program();
    if let Some(shell) = shell {
        let host =
            arguments.iter().find(|a| a.text.contains('.') && !a.text.starts_with('/')).map(network_target);
        shell_over_network(call, listens, host, base_name(&shell.text));
    } else if matches!(program, "gs-netcat" | "pwncat" | "pwncat-cs" | "villain") {
        call.tell(EffectKind::ReverseShell, None, program);
    }
}

/// A server that offers the files of a folder to everybody.
pub(super) fn file_server(call: &mut Call<'_, '_>, folder: Option<&Argument>) {
    let here = word(".", &Argument::default());
    let folder = folder.unwrap_or(&here);
    call.tell(EffectKind::SendData, Some(super::call::path_target(folder)), "http server");
}

/// `python -m http.server`, `php -S`: a folder offered to everybody.
pub(super) fn module_server(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let text = |at: usize| arguments.get(at).map_or("", |a: &Argument| a.text.as_str());
    let serves = match call.program() {
        "php" => arguments.iter().any(|a| a.text == "-S"),
        _ => (0..arguments.len())
            .any(|at| text(at) == "-m" && matches!(text(at + 1), "http.server" | "SimpleHTTPServer")),
    };
    if serves {
        let folder = (0..arguments.len())
            .find(|at| matches!(text(*at), "-d" | "--directory" | "-t"))
            .and_then(|at| arguments.get(at + 1));
        file_server(call, folder);
    }
}

/// Mail programs: the body and the attachments leave the machine.
pub(super) fn mail(call: &mut Call<'_, '_>) {
    let options =
        call.options(&Grammar { short_values: "aAsrcbSfFqtu", long: &["attach="], ..Grammar::default() });
    for file in options.values(&["a", "A", "attach"]).filter(|file| file.text.contains(['/', '.'])) {
        call.send_file(file, "mail");
    }
    if options.operands.is_empty() {
        return;
    }
    call.send_input("mail");
}

/// `msfvenom` and other makers of payloads: what they print is a shell for others.
pub(super) fn payload(call: &mut Call<'_, '_>) {
    call.tell(EffectKind::Fetch, Some(name_target(call.program())), "payload");
}

/// A terminal shown on another host's screen, or a server that gives one away.
pub(super) fn terminal(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let after =
        |flag: &str| arguments.iter().position(|a| a.text == flag).and_then(|at| arguments.get(at + 1));
    let program = call.program();
    if program.ends_with("telnetd") || program == "rshd" {
        if after("-l").is_some_and(|shell| is_shell(&shell.text)) {
            call.tell(EffectKind::BindShell, None, program);
        }
    } else if let Some(display) = after("-display")
        && display.text.split(':').next().is_some_and(|host| !matches!(host, "" | "localhost" | "unix"))
    {
        call.tell(EffectKind::ReverseShell, Some(network_target(display)), program);
    }
}
