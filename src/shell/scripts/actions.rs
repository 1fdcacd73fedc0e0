//! Functions with effects, by name: which there are, and what each does.

use super::super::programs::Language;

/// What a function does.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Action {
    /// Runs a text by a shell, or a list as a program with arguments.
    Run,
    /// Runs a program: the first argument is its path, the second its arguments.
    Program,
    /// Runs a program whose arguments all follow, the second being its own name: `execl`.
    Exec,
    /// Runs a program with the arguments in a list behind a mode: `os.spawnv`.
    Spawn,
    /// Runs text as code of the same language.
    Evaluate,
    /// Deletes a tree.
    DeleteTree,
    /// Deletes files.
    Delete,
    /// Opens a file; the mode decides.
    Open,
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Copies the first path to the second.
    Copy,
    /// Moves the first path to the second.
    Move,
    /// Changes the mode of a path: path first.
    Mode,
    /// Changes the mode of paths: mode first.
    ModeFirst,
    /// Changes the owner of a path.
    Owner,
    /// Fetches from the network.
    Fetch,
    /// Fetches into a file: URL first.
    FetchTo,
    /// Sends to a URL.
    Send,
    /// Makes a connection.
    Connect,
    /// Makes a socket.
    Socket,
    /// Listens.
    Listen,
    /// Joins descriptors.
    Redirect,
    /// Ends every process or the machine.
    Stop,
}

/// Functions by name: what stands before the last dot may be longer than here.
const ACTIONS: &[(&[&str], Action)] = &[
    (
        &[
            "os.system",
            "os.popen",
            "subprocess.run",
            "subprocess.call",
            "subprocess.Popen",
            "subprocess.check_call",
            "subprocess.check_output",
            "subprocess.getoutput",
            "subprocess.getstatusoutput",
            "commands.getoutput",
            "asyncio.create_subprocess_shell",
            "asyncio.create_subprocess_exec",
            "pty.spawn",
            "pexpect.spawn",
            "pexpect.run",
            "child_process.exec",
            "child_process.execSync",
            "Bun.spawn",
            "Bun.spawnSync",
            "Deno.run",
            "shell_exec",
            "passthru",
            "system",
            "exec",
            "popen",
            "proc_open",
            "os.execute",
            "io.popen",
            "IO.popen",
            "Open3.capture2",
            "Open3.capture3",
            "Open3.capture2e",
            "Open3.popen3",
            "Open3.popen2",
            "Kernel.system",
            "Kernel.exec",
            "Kernel.spawn",
            "Process.spawn",
            "PTY.spawn",
            "spawn",
            "sh",
            "execSync",
            "shelljs.exec",
            "shell.exec",
            "execa.command",
            "execaCommand",
            "Runtime.exec",
            "os.startfile",
            "Process.new",
            "ProcessBuilder",
            "Process.run",
            "Process.runSync",
            "System.cmd",
            "System.shell",
            "run_shell",
            "process.exec",
            "posix.system",
        ],
        Action::Run,
    ),
    (
        &[
            "child_process.spawn",
            "child_process.spawnSync",
            "child_process.execFile",
            "child_process.execFileSync",
            "spawnSync",
            "execFileSync",
            "execFile",
            "execa",
            "Deno.Command",
            "pcntl_exec",
            "exec.Command",
            "exec.CommandContext",
            "Process.start",
            "os.execv",
            "os.execve",
            "os.execvp",
            "os.execvpe",
            "os.posix_spawn",
            "os.posix_spawnp",
            "child_process.fork",
        ],
        Action::Program,
    ),
    (&["os.execl", "os.execle", "os.execlp", "os.execlpe"], Action::Exec),
    (&["os.spawnl", "os.spawnlp", "os.spawnv", "os.spawnvp", "os.spawnve"], Action::Spawn),
    (
        &[
            "eval",
            "assert",
            "create_function",
            "load",
            "loadstring",
            "Function",
            "instance_eval",
            "class_eval",
            "module_eval",
            "vm.runInThisContext",
            "vm.runInNewContext",
            "vm.runInContext",
            "builtins.exec",
            "builtins.eval",
            "__builtins__.exec",
            "__builtins__.eval",
            "Kernel.eval",
            "code.interact",
            "runpy.run_path",
            "dofile",
            "include",
            "require_once",
        ],
        Action::Evaluate,
    ),
    (
        &[
            "shutil.rmtree",
            "os.RemoveAll",
            "os.rmdir_all",
            "File.rm_rf!",
            "File.rm_rf",
            "rmtree",
            "remove_tree",
            "File.Path.remove_tree",
            "File.Path.rmtree",
            "FileUtils.rm_rf",
            "FileUtils.rm_r",
            "FileUtils.rmtree",
            "FileUtils.remove_dir",
            "FileUtils.remove_entry",
            "FileUtils.remove_entry_secure",
            "rm_rf",
            "fs.removeSync",
            "fs.emptyDirSync",
            "fse.removeSync",
            "fs-extra.removeSync",
            "fs-extra.remove",
            "rimraf",
            "rimraf.sync",
            "rimrafSync",
            "del",
            "del.sync",
            "fse.emptyDirSync",
        ],
        Action::DeleteTree,
    ),
    (
        &[
            "os.remove",
            "os.unlink",
            "os.rmdir",
            "os.removedirs",
            "unlink",
            "rmdir",
            "fs.rmSync",
            "fs.rm",
            "fs.rmdirSync",
            "fs.rmdir",
            "fs.unlinkSync",
            "fs.unlink",
            "fs.promises.rm",
            "fs.promises.unlink",
            "fs.promises.rmdir",
            "promises.rm",
            "promises.unlink",
            "Deno.remove",
            "Deno.removeSync",
            "File.delete",
            "File.unlink",
            "Dir.rmdir",
            "Dir.delete",
            "Dir.unlink",
            "FileUtils.rm",
            "FileUtils.rm_f",
            "FileUtils.safe_unlink",
            "unlinkSync",
            "rmSync",
            "rmdirSync",
            "fs/promises.rm",
            "fs/promises.unlink",
            "fs/promises.rmdir",
        ],
        Action::Delete,
    ),
    (
        &["open", "io.open", "fopen", "File.open", "File.new", "codecs.open", "Kernel.open", "IO.File.new"],
        Action::Open,
    ),
    (
        &[
            "fs.readFileSync",
            "fs.readFile",
            "fs.createReadStream",
            "fs.promises.readFile",
            "promises.readFile",
            "fs/promises.readFile",
            "readFileSync",
            "Deno.readTextFile",
            "Deno.readTextFileSync",
            "Deno.readFile",
            "Bun.file",
            "File.read",
            "File.readlines",
            "File.foreach",
            "File.binread",
            "IO.read",
            "IO.readlines",
            "IO.binread",
            "file_get_contents",
            "os.ReadFile",
            "ioutil.ReadFile",
            "os.Open",
            "readfile",
            "file",
            "show_source",
            "highlight_file",
            "parse_ini_file",
            "io.lines",
            "linecache.getlines",
        ],
        Action::Read,
    ),
    (
        &[
            "fs.writeFileSync",
            "fs.writeFile",
            "fs.appendFileSync",
            "fs.appendFile",
            "fs.createWriteStream",
            "fs.promises.writeFile",
            "fs.promises.appendFile",
            "fs/promises.writeFile",
            "promises.writeFile",
            "writeFileSync",
            "appendFileSync",
            "Deno.writeTextFile",
            "Deno.writeTextFileSync",
            "Deno.writeFile",
            "Bun.write",
            "File.write",
            "IO.write",
            "File.binwrite",
            "file_put_contents",
            "os.WriteFile",
            "ioutil.WriteFile",
            "os.Create",
            "fs.truncateSync",
            "fs.truncate",
            "os.truncate",
            "File.truncate",
        ],
        Action::Write,
    ),
    (
        &[
            "shutil.copy",
            "shutil.copy2",
            "shutil.copyfile",
            "shutil.copytree",
            "fs.copyFileSync",
            "fs.copyFile",
            "fs.cpSync",
            "FileUtils.cp",
            "FileUtils.cp_r",
            "FileUtils.copy",
            "copy",
            "os.symlink",
            "os.link",
            "fs.symlinkSync",
            "fs.linkSync",
            "FileUtils.ln_s",
            "FileUtils.ln_sf",
            "File.symlink",
            "symlink",
            "link",
            "File.Copy.copy",
        ],
        Action::Copy,
    ),
    (
        &[
            "shutil.move",
            "os.rename",
            "os.replace",
            "fs.renameSync",
            "fs.rename",
            "FileUtils.mv",
            "File.rename",
            "rename",
            "move",
            "os.renames",
            "File.Copy.move",
        ],
        Action::Move,
    ),
    (&["os.chmod", "fs.chmodSync", "fs.chmod", "fs.promises.chmod", "Deno.chmod"], Action::Mode),
    (&["FileUtils.chmod", "FileUtils.chmod_R", "File.chmod"], Action::ModeFirst),
    (&["os.chown", "fs.chownSync", "shutil.chown", "os.lchown"], Action::Owner),
    (
        &[
            "urllib.request.urlopen",
            "urllib2.urlopen",
            "urllib.urlopen",
            "urlopen",
            "requests.get",
            "requests.request",
            "httpx.get",
            "urllib3.request",
            "request.urlopen",
            "requests.Session.get",
            "fetch",
            "http.get",
            "https.get",
            "axios.get",
            "axios",
            "got",
            "http.request",
            "https.request",
            "URI.open",
            "OpenURI.open_uri",
            "Net.HTTP.get",
            "Net.HTTP.get_response",
            "get",
            "LWP.Simple.get",
            "HTTP.Tiny.new.get",
            "curl_exec",
            "http.client.HTTPConnection",
            "http.client.HTTPSConnection",
            "socket.http.request",
            "request.get",
            "urllib.request.Request",
            "Request",
        ],
        Action::Fetch,
    ),
    (
        &[
            "urllib.request.urlretrieve",
            "urllib.urlretrieve",
            "urlretrieve",
            "getstore",
            "LWP.Simple.getstore",
            "wget.download",
        ],
        Action::FetchTo,
    ),
    (
        &[
            "requests.post",
            "requests.put",
            "requests.patch",
            "httpx.post",
            "httpx.put",
            "axios.post",
            "axios.put",
            "Net.HTTP.post",
            "Net.HTTP.post_form",
            "request.post",
        ],
        Action::Send,
    ),
    (
        &[
            "socket.create_connection",
            "TCPSocket.new",
            "TCPSocket.open",
            "net.Dial",
            "net.DialTimeout",
            "net.dial_tcp",
            "Socket.connect",
            "Socket",
            "Net.createConnection",
            "Socket.tcp",
            "connect",
            "fsockopen",
            "pfsockopen",
            "stream_socket_client",
            "socket_connect",
            "net.connect",
            "net.createConnection",
            "net.Socket",
            "IO.Socket.INET.new",
            "IO.Socket.INET",
            "IO.Socket.SSL.new",
            "IO.Socket.IP.new",
            "tls.connect",
            "Bun.connect",
            "Deno.connect",
            "UDPSocket.new",
            "socket.connect",
            "asyncio.open_connection",
            "UNIXSocket.new",
            "new IO.Socket.INET",
        ],
        Action::Connect,
    ),
    (
        &[
            "socket.socket",
            "socket",
            "socket.tcp",
            "socket.udp",
            "Socket.new",
            "socket_create",
            "socket.fromfd",
        ],
        Action::Socket,
    ),
    (
        &[
            "TCPServer.new",
            "net.Listen",
            "ServerSocket.bind",
            "ServerSocket",
            "ServerSocket.new",
            "TCPServer.open",
            "TCPServer",
            "bind",
            "listen",
            "accept",
            "net.createServer",
            "net.Server",
            "stream_socket_server",
            "socket_bind",
            "socket_listen",
            "socket.bind",
            "socket.create_server",
            "Socket.tcp_server_loop",
            "socketserver.TCPServer",
            "asyncio.start_server",
            "Bun.listen",
            "Deno.listen",
        ],
        Action::Listen,
    ),
    (
        &["os.dup2", "dup2", "reopen", "$stdin.reopen", "STDIN.reopen", "fdopen", "POSIX.dup2"],
        Action::Redirect,
    ),
    (&["os.killpg", "os.reboot"], Action::Stop),
];

/// Names of functions of a module, for `from os import *`.
pub(super) fn names_of(module: &str) -> impl Iterator<Item = &'static str> {
    let prefix = format!("{module}.");
    ACTIONS
        .iter()
        .flat_map(|(names, _)| names.iter())
        .filter_map(move |name| name.strip_prefix(prefix.as_str()))
}

/// Whether a function takes its arguments without brackets.
pub(super) fn without_brackets(language: Language, name: &str) -> bool {
    let known = action(language, name).is_some()
        || matches!(
            name,
            "print"
                | "puts"
                | "require"
                | "join"
                | "pack"
                | "unpack"
                | "reverse"
                | "sprintf"
                | "decode_base64"
                | "glob"
                | "chr"
        );
    known && !matches!(language, Language::Python | Language::JavaScript)
}

/// What a function of this name does in this language.
pub(super) fn action(language: Language, name: &str) -> Option<Action> {
    use Language::{JavaScript, Lua, Perl, Php, Python, Ruby};
    let only = |languages: &[Language]| languages.contains(&language);
    // Short names mean different things in different languages.
    match name {
        "exec" if language == Python => return Some(Action::Evaluate),
        "exec" | "system" | "popen" if !only(&[Perl, Php, Ruby]) => return None,
        "spawn" | "sh" | "require_once" | "include" if !only(&[Ruby, Php]) => return None,
        "spawnSync" | "execSync" | "execFile" | "execFileSync" | "fetch" | "get" | "got" | "Function"
        | "axios"
            if !only(&[JavaScript, Perl]) || (name == "get" && language == JavaScript) =>
        {
            return None;
        }
        "eval" if language == Lua => return None,
        "load" | "loadstring" | "dofile" if language != Lua => return None,
        "assert" | "create_function" if language != Php => return None,
        "unlink" | "rmdir" | "chmod" | "copy" | "move" | "rename" | "symlink" | "link"
            if !only(&[Perl, Php]) =>
        {
            return None;
        }
        "bind" | "listen" | "accept" | "connect" if language != Perl => return None,
        "socket" if language != Perl => return None,
        "file" | "readfile" if language != Php => return None,
        "del" if language != JavaScript => return None,
        "http.request" if language == Lua => return Some(Action::Fetch),
        "Request" if language != Python => return None,
        _ => {}
    }
    if let Some((_, action)) = ACTIONS.iter().find(|(names, _)| names.contains(&name)) {
        return Some(*action);
    }
    // A module under another name, such as `cp.execSync`: the last part decides where it means one thing only.
    let last = name.rsplit('.').next().filter(|last| *last != name)?;
    Some(match last {
        "execSync" | "getoutput" | "check_output" | "check_call" | "capture2" | "capture3" | "popen3" => {
            Action::Run
        }
        "spawnSync" | "execFileSync" | "execFile" => Action::Program,
        "rmtree" | "rm_rf" | "removeSync" | "emptyDirSync" => Action::DeleteTree,
        "rmSync" | "unlinkSync" | "rmdirSync" => Action::Delete,
        "readFileSync" => Action::Read,
        "writeFileSync" | "appendFileSync" => Action::Write,
        "reopen" | "fdopen" => Action::Redirect,
        "createServer" => Action::Listen,
        _ => return None,
    })
}

/// Whether a function runs text as code.
pub(super) fn is_eval(language: Language, name: &str) -> bool {
    action(language, name) == Some(Action::Evaluate)
}
