//! What each known program does with its arguments, one file a family.

mod archives;
mod call;
mod cloud;
mod cluster;
mod containers;
mod databases;
mod delete;
mod disks;
mod files;
mod find;
mod git;
mod modes;
mod network;
mod options;
mod packages;
mod readers;
mod runners;
mod sandbox;
mod secrets;
mod sed_script;
mod senders;
mod system;
mod transfer;
mod windows;

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::argument::Argument;
use super::carried::Carried;
use super::effect::{EffectKind, Target};
use crate::paths::Place;

/// A simple command about to run, everything resolved.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// Base name of the program, lower case, without `.exe`.
    pub program: &'a str,
    /// Arguments, the program first.
    pub argv: &'a [Argument],
    /// Where it would run; the working directory is followed through `cd`.
    pub place: Place<'a>,
    /// What is known of its standard input.
    pub input: &'a Input,
    /// Whether nobody reads what it prints.
    pub is_silent: bool,
    /// Where it stands in the command.
    pub span: &'a Range<usize>,
}

/// What a command reads from its standard input.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Input {
    /// Nothing was connected to it.
    #[default]
    None,
    /// This text, from a pipe, here-document or here-string.
    Text(Argument),
    /// The content of this file.
    File(Argument),
    /// Output of a command that fetches from the network; where from.
    Network(String),
    /// Output that could not be computed; the program it comes from.
    Output(String, Carried),
}

/// Languages of inline scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// sh, bash, zsh, dash, ksh, ash, fish.
    Shell,
    /// Python.
    Python,
    /// Perl.
    Perl,
    /// Ruby.
    Ruby,
    /// JavaScript: node, deno, bun.
    JavaScript,
    /// PHP.
    Php,
    /// awk.
    Awk,
    /// Lua.
    Lua,
    /// PowerShell and cmd.
    PowerShell,
}

/// What an analyser of a program tells. The engine adds span, wrappers, program and arguments.
pub trait Sink {
    /// The program does this.
    fn effect(&mut self, kind: EffectKind, target: Option<Target>, attributes: Attributes);

    /// The program runs another command with these arguments. `via` names the wrapper.
    fn run(&mut self, argv: &[Argument], via: &'static str);

    /// The program runs this text as a script. `via` names it, such as `bash -c`.
    fn script(&mut self, language: Language, text: &Argument, via: &'static str);

    /// The program runs what is not known.
    fn unknown_command(&mut self);

    /// The program runs text that it decoded itself.
    fn decoded(&mut self) {}

    /// The program runs commands that it reads from its input.
    fn runs_input(&mut self) {}

    /// A script was longer than is looked at, or a loop in it.
    fn limited(&mut self) {}
}

/// The attributes of an effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// See [`super::effect::Effect::recursive`].
    pub recursive: bool,
    /// See [`super::effect::Effect::forced`].
    pub forced: bool,
    /// See [`super::effect::Effect::detail`].
    pub detail: String,
}

/// Whether a program or script, by its name, was made to collect other people's credentials.
pub(in crate::shell) fn steals(path: &str) -> bool {
    secrets::steals(&call::base_name(path).to_ascii_lowercase())
}

/// Whether a name is that of a shell, with or without its folder.
pub(in crate::shell) fn is_shell(name: &str) -> bool {
    call::is_shell(name)
}

/// Whether a program hands its words to another machine.
pub(in crate::shell) fn sends_words(program: &str, argv: &[Argument]) -> bool {
    senders::sends_words(program, argv.get(1..).unwrap_or_default())
}

/// What `find` with these arguments prints, as far as it is known.
pub(in crate::shell) fn found(arguments: &[Argument]) -> Option<Argument> {
    find::output(arguments)
}

/// Tells what a program would do with its arguments. A program that is not known does nothing here.
pub fn analyse(invocation: &Invocation<'_>, sink: &mut dyn Sink) {
    let mut call = call::Call { invocation, sink };
    let call = &mut call;
    senders::send(call);
    match invocation.program {
        "rm" | "srm" | "grm" | "safe-rm" | "rimraf" => delete::rm(call),
        "unlink" => delete::unlink(call),
        "rmdir" | "grmdir" if !windows_style(invocation) => delete::rmdir(call),
        "trash" | "trash-put" | "gio-trash" | "rmtrash" | "del-cli" => delete::trash(call),
        "shred" | "gshred" => delete::shred(call),
        "wipe" | "scrub" => delete::wipe(call),
        "cp" | "gcp" | "pcp" | "ditto" | "xcopy" | "robocopy" => files::cp(call),
        "mv" | "gmv" | "move" => files::mv(call),
        "install" | "ginstall" => files::install(call),
        "ln" | "link" | "gln" => files::ln(call),
        "tee" | "sponge" | "gtee" => files::tee(call),
        "truncate" => files::truncate(call),
        "touch" | "gtouch" => files::touch(call),
        "mkdir" | "gmkdir" => files::mkdir(call),
        "dd" | "dcfldd" | "dc3dd" | "ddrescue" | "gdd" => files::dd(call),
        "patch" => files::patch(call),
        "split" | "csplit" => files::split_file(call),
        "find" | "gfind" | "bfs" => find::find(call),
        "fd" | "fdfind" => find::fd(call),
        "chmod" | "gchmod" => modes::chmod(call),
        "chown" | "chgrp" | "gchown" => modes::chown(call),
        "setfacl" => modes::setfacl(call),
        "chattr" | "chflags" => modes::attributes(call),
        "setcap" => modes::setcap(call),
        "icacls" | "cacls" | "takeown" => modes::icacls(call),
        "tar" | "gtar" | "bsdtar" | "star" => archives::tar(call),
        "unzip" | "unrar" | "unar" | "gunzip" | "bunzip2" | "unxz" => archives::unpack(call),
        "zip" | "7z" | "7za" | "7zz" | "rar" => archives::pack(call),
        "gzip" | "bzip2" | "xz" | "zstd" | "lz4" | "zcat" | "bzcat" | "xzcat" | "zless" | "pigz" => {
            archives::compress(call)
        }
        "cpio" | "pax" => archives::cpio(call),
        _ => devices_and_data(call),
    }
}

/// Whether `rmdir` is that of Windows: it has switches that begin with a slash.
fn windows_style(invocation: &Invocation<'_>) -> bool {
    invocation.argv.iter().skip(1).any(|a| matches!(a.text.to_ascii_lowercase().as_str(), "/s" | "/q"))
}

fn devices_and_data(call: &mut call::Call<'_, '_>) {
    match call.program() {
        program if program == "mkfs" || program.starts_with("mkfs.") || program.starts_with("newfs") => {
            disks::format(call)
        }
        "mke2fs" | "mkdosfs" | "mkntfs" | "mkreiserfs" | "mkudffs" | "mkexfatfs" => disks::format(call),
        "fdisk" | "sfdisk" | "cfdisk" | "gdisk" | "sgdisk" | "cgdisk" | "parted" | "gparted" | "partx" => {
            disks::partition(call)
        }
        "wipefs" | "blkdiscard" | "mkswap" | "badblocks" | "hdparm" | "nvme" | "cryptsetup" | "sg_format"
        | "sg_sanitize" | "debugfs" => {
            disks::wipe(call);
        }
        "lvremove" | "vgremove" | "pvremove" | "pvcreate" | "vgcreate" | "mdadm" | "zpool" | "zfs"
        | "btrfs" | "dmsetup" => {
            disks::volumes(call);
        }
        "diskutil" => disks::diskutil(call),
        "psql" | "mysql" | "mariadb" | "sqlcmd" | "osql" | "isql" | "clickhouse" | "clickhouse-client"
        | "cockroach" | "cqlsh" | "bq" | "usql" | "pgcli" | "mycli" | "snowsql" | "sqlplus" => {
            databases::sql(call)
        }
        "sqlite3" | "sqlite" | "duckdb" | "litecli" => databases::sqlite(call),
        "dropdb" | "mysqladmin" | "mariadb-admin" | "pg_dump" | "pg_dumpall" | "mysqldump" | "mongodump" => {
            databases::admin(call)
        }
        "redis-cli" | "valkey-cli" | "keydb-cli" => databases::redis(call),
        "mongosh" | "mongo" => databases::mongo(call),
        "rails" | "rake" | "prisma" | "artisan" | "typeorm" | "sequelize" | "knex" => {
            databases::framework(call)
        }
        "cat" | "head" | "tail" | "more" | "less" | "most" | "tac" | "nl" | "od" | "xxd" | "hexdump"
        | "hd" | "strings" | "base64" | "base32" | "basenc" | "cut" | "sort" | "uniq" | "fold" | "fmt"
        | "pr" | "paste" | "column" | "bat" | "batcat" | "diff" | "sdiff" | "diff3" | "colordiff"
        | "delta" | "cmp" | "comm" | "join" | "rev" | "shuf" | "expand" | "unexpand" | "iconv" | "view"
        | "vimdiff" | "glow" | "mdcat" | "pygmentize" | "highlight" | "uuencode" | "hexyl" | "ul"
        | "look" | "tsort" | "csvlook" | "csvcut" | "type" | "pbcopy" | "xclip" | "dos2unix" | "ccat"
        | "pg" | "lolcat" | "gcat" | "ghead" | "gtail" | "grev" | "b64encode" => readers::plain(call),
        "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" | "ggrep" | "zgrep" | "ugrep" => readers::grep(call),
        "sed" | "gsed" => readers::sed(call),
        "awk" | "gawk" | "mawk" | "nawk" => readers::awk(call),
        "jq" | "yq" | "gojq" | "jaq" => readers::jq(call),
        "vi" | "vim" | "nvim" | "ex" | "emacs" | "nano" | "ed" | "pico" | "gvim" | "rvim" => {
            readers::editor(call)
        }
        program if databases::stores(program) => {
            databases::store(call);
            network_and_services(call);
        }
        _ => network_and_services(call),
    }
}

fn network_and_services(call: &mut call::Call<'_, '_>) {
    match call.program() {
        "curl" => network::curl(call),
        "wget" | "wget2" => network::wget(call),
        "aria2c" | "axel" | "http" | "https" | "xh" | "lwp-download" | "lynx" | "links" | "w3m"
        | "nscurl" | "fetch" | "whois" => {
            network::fetch(call);
        }
        "nc" | "ncat" | "netcat" | "nc.openbsd" | "nc.traditional" | "nc64" | "cryptcat" => {
            network::netcat(call)
        }
        "socat" | "socat1" => network::socat(call),
        "telnet" => network::telnet(call),
        "telnetd" | "in.telnetd" | "rshd" | "xterm" | "rxvt" | "urxvt" | "aterm" => network::terminal(call),
        "openssl" | "libressl" => network::openssl(call),
        "dig" | "nslookup" | "host" | "drill" | "ping" => network::lookup(call),
        "rcat" | "rustcat" | "gs-netcat" | "pwncat" | "pwncat-cs" | "villain" | "sbd" | "dbd" => {
            network::tunnel(call)
        }
        "mail" | "mailx" | "mutt" | "sendmail" | "msmtp" | "swaks" => network::mail(call),
        "msfvenom" => network::payload(call),
        "serve" | "http-server" | "miniserve" => {
            let first = call.arguments().iter().find(|a| !a.text.starts_with('-'));
            network::file_server(call, first);
        }
        "ssh" | "autossh" | "mosh" | "plink" => transfer::ssh(call),
        "ngrok" | "bore" | "cloudflared" | "lt" | "localtunnel" | "chisel" | "tailscale" | "frpc" => {
            transfer::tunnel(call)
        }
        "scp" | "pscp" => transfer::scp(call),
        "sftp" | "psftp" => transfer::sftp(call),
        "ftp" | "lftp" | "tftp" | "smbclient" | "ncftp" | "ncftpput" => transfer::ftp(call),
        "rsync" => transfer::rsync(call),
        "rclone" => transfer::rclone(call),
        "croc" | "wormhole" => transfer::relay(call),
        "tmate" | "ttyd" | "gotty" | "sshx" | "upterm" | "teleconsole" => transfer::share_terminal(call),
        "git" | "hub" => git::git(call),
        "bfg" | "git-filter-repo" | "git-filter-branch" => git::rewrite(call),
        "gh" => git::gh(call),
        "docker" | "podman" | "nerdctl" | "finch" => containers::docker(call),
        "docker-compose" | "podman-compose" => containers::compose_program(call),
        "ctr" | "crictl" | "lxc" | "lxd" | "incus" | "runc" | "crun" => containers::other(call),
        "kubectl" | "oc" | "k" | "microk8s.kubectl" | "k3s" => cluster::kubectl(call),
        "helm" | "helm3" => cluster::helm(call),
        "kind" | "minikube" | "k3d" | "kops" | "eksctl" | "nomad" | "consul" | "rancher" => {
            cluster::clusters(call)
        }
        "aws" | "awslocal" => cloud::aws(call),
        "gcloud" => cloud::gcloud(call),
        "gsutil" => cloud::gsutil(call),
        "az" => cloud::az(call),
        "terraform" | "tofu" | "terragrunt" => cloud::terraform(call),
        "pulumi" | "cdk" | "sam" | "serverless" | "sls" | "copilot-cli" | "eb" | "flyctl" | "fly"
        | "heroku" | "vercel" | "netlify" | "doctl" | "wrangler" | "railway" | "linode-cli" | "hcloud"
        | "scw" | "oci" | "ibmcloud" | "vagrant" | "sst" => {
            cloud::platform(call);
        }
        "mc" | "s3cmd" | "azcopy" | "s5cmd" | "b2" => cloud::object_store(call),
        _ => system_and_others(call),
    }
}

fn system_and_others(call: &mut call::Call<'_, '_>) {
    let program = call.program();
    match program {
        "shutdown" | "reboot" | "halt" | "poweroff" => system::power(call),
        "init" | "telinit" => system::init(call),
        "kill" => system::kill(call),
        "pkill" | "killall" | "killall5" => system::pkill(call),
        "systemctl" => system::systemctl(call),
        "service" | "rc-service" | "chkconfig" | "update-rc.d" | "rc-update" => system::service(call),
        "launchctl" => system::launchctl(call),
        "sysctl" => system::sysctl(call),
        "insmod" | "modprobe" | "rmmod" | "kextload" | "kextunload" | "kmutil" | "kldload" | "kldunload" => {
            system::module(call)
        }
        "iptables" | "ip6tables" | "nft" | "ufw" | "pfctl" | "firewall-cmd" | "setenforce" | "auditctl"
        | "aa-teardown" | "aa-disable" | "aa-complain" | "spctl" | "csrutil" | "tmutil" | "auditpol" => {
            system::protection(call)
        }
        "history" => system::history(call),
        "unset" | "export" | "declare" | "typeset" | "readonly" | "set" | "shopt" => {
            system::shell_history(call)
        }
        "crontab" => system::crontab(call),
        "journalctl" => system::journal(call),
        "xmrig" | "minerd" | "cpuminer" | "ccminer" | "ethminer" | "cgminer" => system::miner(call),
        "yes" if call.invocation.is_silent => system::busy(call),
        "umount" => system::unmount(call),
        "mount" => system::mount(call),
        "at" | "batch" => system::later(call),
        "passwd" | "chpasswd" | "useradd" | "adduser" | "usermod" | "userdel" | "deluser" | "groupadd"
        | "groupmod" | "groupdel" | "gpasswd" | "groupmems" | "visudo" | "vipw" | "vigr" | "chsh"
        | "chage" | "newusers" | "pw" | "dscl" | "sysadminctl" | "dseditgroup" => system::accounts(call),
        "getent" => {
            secrets::getent(call);
            network::named_lookup(call);
        }
        "gcore" | "procdump" | "gdb" | "lldb" => secrets::memory(call),
        "ssh-keygen" => secrets::ssh_keygen(call),
        "gpg" | "gpg2" => {
            secrets::reveal(call);
            secrets::gpg(call);
        }
        _ if secrets::steals(program) => secrets::stealer(call),
        "nsenter" => sandbox::nsenter(call),
        "unshare" => sandbox::unshare(call),
        "chroot" => sandbox::chroot(call),
        "capsh" | "setpriv" => sandbox::capabilities(call),
        "machinectl" => sandbox::machinectl(call),
        "apt" | "apt-get" | "aptitude" | "yum" | "dnf" | "zypper" | "apk" | "pacman" | "rpm" | "dpkg" => {
            packages::install(call);
            packages::remove(call);
            packages::hooks(call);
        }
        "nix" => packages::nix(call),
        "make" | "gmake" | "bmake" => packages::make(call),
        "cpan" => packages::cpan(call),
        "cmake" => packages::cmake(call),
        "man" => packages::man(call),
        "sshpass" => secrets::password_argument(call),
        "npx" | "bunx" | "pnpx" | "uvx" | "deno" => runners::run(call),
        "npm" | "pnpm" | "yarn" | "bun" | "cargo" | "gem" => {
            runners::run(call);
            secrets::reveal(call);
            packages::install(call);
            packages::publish(call);
        }
        "pip" | "pip3" | "pipx" | "uv" | "conda" | "mamba" | "brew" | "port" | "snap" | "flatpak" | "go"
        | "composer" | "choco" | "winget" | "scoop" | "nuget" | "poetry" => {
            runners::run(call);
            packages::install(call);
        }
        _ if program.starts_with("python") || matches!(program, "perl" | "ruby" | "node" | "php") => {
            secrets::stealing_script(call);
            network::module_server(call);
        }
        _ if sandbox::is_guarded(program) => sandbox::guarded(call),
        _ if secrets::keeps(program) && program != "netsh" => secrets::reveal(call),
        _ => windows_programs(call),
    }
}

fn windows_programs(call: &mut call::Call<'_, '_>) {
    match call.program() {
        "del" | "erase" | "rd" | "rmdir" => windows::del(call),
        "format" | "format.com" => windows::format(call),
        "cipher"
        | "vssadmin"
        | "wmic"
        | "wbadmin"
        | "bcdedit"
        | "fsutil"
        | "diskpart"
        | "wevtutil"
        | "clear-eventlog"
        | "remove-eventlog"
        | "clear-disk"
        | "format-volume"
        | "initialize-disk"
        | "remove-partition"
        | "stop-computer"
        | "restart-computer"
        | "set-mppreference"
        | "add-mppreference"
        | "set-executionpolicy" => windows::destroy(call),
        "netsh" => {
            secrets::reveal(call);
            windows::destroy(call);
        }
        "reg" => windows::reg(call),
        "schtasks" | "sc" | "new-service" | "register-scheduledtask" => windows::persist(call),
        "net" | "net1" => windows::net(call),
        "remove-item" | "ri" => windows::remove_item(call),
        "get-content" | "gc" | "select-string" | "set-content" | "add-content" | "out-file"
        | "clear-content" | "new-item" | "copy-item" | "move-item" | "copy" => windows::content(call),
        "invoke-webrequest" | "iwr" | "invoke-restmethod" | "irm" | "certutil" | "bitsadmin"
        | "start-bitstransfer" => {
            windows::fetch(call);
        }
        "invoke-expression" | "iex" => windows::invoke_expression(call),
        "start-process" | "saps" => windows::start_process(call),
        "mshta" | "regsvr32" | "rundll32" | "msiexec" | "cscript" | "wscript" => {
            windows::proxy_execution(call)
        }
        _ => {}
    }
}
