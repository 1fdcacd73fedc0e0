//! Programs that keep credentials and print them when asked to.

use super::super::effect::EffectKind;
use super::call::{Call, base_name, name_target};
use super::options::Grammar;

/// Programs, the words that make them print a secret (all must stand among the arguments, in order), what it is called.
const STORES: &[(&str, &[&str], &str)] = &[
    ("security", &["find-generic-password", "-w"], "keychain password"),
    ("security", &["find-generic-password", "-g"], "keychain password"),
    ("security", &["find-internet-password", "-w"], "keychain password"),
    ("security", &["find-internet-password", "-g"], "keychain password"),
    ("security", &["dump-keychain"], "keychain dump"),
    ("security", &["export"], "keychain export"),
    ("pass", &["show"], "pass show"),
    ("pass", &["-c"], "pass show"),
    ("gopass", &["show"], "gopass show"),
    ("op", &["read"], "op read"),
    ("op", &["item", "get"], "op item get"),
    ("op", &["get", "item"], "op item get"),
    ("bw", &["get"], "bw get"),
    ("bw", &["export"], "bw export"),
    ("bw", &["list", "items"], "bw list"),
    ("lpass", &["show"], "lpass show"),
    ("lpass", &["export"], "lpass export"),
    ("secret-tool", &["lookup"], "secret-tool lookup"),
    ("secret-tool", &["search"], "secret-tool search"),
    ("keepassxc-cli", &["show"], "keepassxc-cli show"),
    ("keepassxc-cli", &["export"], "keepassxc-cli export"),
    ("vault", &["read"], "vault read"),
    ("vault", &["kv", "get"], "vault kv get"),
    ("vault", &["print", "token"], "vault print token"),
    ("doppler", &["secrets", "download"], "doppler secrets"),
    ("doppler", &["secrets", "get"], "doppler secrets"),
    ("infisical", &["export"], "infisical export"),
    ("chamber", &["read"], "chamber read"),
    ("chamber", &["export"], "chamber export"),
    ("sops", &["-d"], "sops --decrypt"),
    ("sops", &["--decrypt"], "sops --decrypt"),
    ("sops", &["decrypt"], "sops --decrypt"),
    ("ansible-vault", &["view"], "ansible-vault view"),
    ("ansible-vault", &["decrypt"], "ansible-vault decrypt"),
    ("gpg", &["--export-secret-keys"], "gpg --export-secret-keys"),
    ("gpg", &["--export-secret-subkeys"], "gpg --export-secret-keys"),
    ("gpg2", &["--export-secret-keys"], "gpg --export-secret-keys"),
    ("npm", &["token", "list"], "npm token list"),
    ("cmdkey", &["/list"], "cmdkey /list"),
    ("vaultcmd", &["/listcreds"], "vaultcmd"),
    ("klist", &["-k"], "klist -k"),
    ("glab", &["auth", "token"], "glab auth token"),
    ("firebase", &["login:ci"], "firebase login:ci"),
    ("netsh", &["wlan", "key=clear"], "netsh wlan keys"),
];

/// Whether a program is one of these stores.
pub(super) fn keeps(program: &str) -> bool {
    STORES.iter().any(|(name, ..)| *name == program)
}

/// Looks for the words that print.
pub(super) fn reveal(call: &mut Call<'_, '_>) {
    let program = call.program();
    let text = |at: usize| call.arguments().get(at).map_or("", |argument| argument.text.as_str());
    if program == "npm" && (text(0), text(1)) == ("config", "get") && super::cloud::is_secret_setting(text(2))
    {
        call.tell(EffectKind::RevealSecret, None, "npm config get");
        return;
    }
    for (name, words, detail) in STORES {
        if *name != program {
            continue;
        }
        let mut arguments = call.arguments().iter();
        // `-wa name` is `-w -a name`.
        let fits = |given: &str, word: &str| {
            given == word
                || program == "security" && word.len() == 2 && given.starts_with(word) && given.len() <= 4
        };
        if words.iter().all(|word| arguments.any(|a| fits(&a.text, word))) {
            call.tell(EffectKind::RevealSecret, None, detail);
            return;
        }
    }
}

/// Programs and scripts that were made to collect other people's credentials, without what stands behind a dot.
const STEALERS: &[&str] = &[
    "mimikatz",
    "lazagne",
    "laz",
    "mimipenguin",
    "linpeas",
    "winpeas",
    "sharphound",
    "rubeus",
    "keydump",
    "chainbreaker",
    "linenum",
    "linux-exploit-suggester",
    "seatbelt",
    "browsersteal",
    "hashdump",
    "firefox_decrypt",
    "secretsdump",
    "pypykatz",
    "nanodump",
    "snaffler",
    "linux_exploit_suggester",
    "linux-smart-enumeration",
    "linuxprivchecker",
    "unix-privesc-check",
    "autosuid",
    "dump_heap",
    "3snake",
    "swapdigger",
    "lse",
    "pspy",
    "pspy64",
    "pspy32",
];

/// Whether a program or script is one of [`STEALERS`].
pub(super) fn steals(name: &str) -> bool {
    STEALERS.contains(&name.split('.').next().unwrap_or_default())
}

/// An interpreter that is given such a script as a file.
pub(super) fn stealing_script(call: &mut Call<'_, '_>) {
    let script = call.arguments().iter().find(|argument| !argument.text.starts_with('-'));
    if script.is_some_and(|script| steals(&base_name(&script.text).to_ascii_lowercase())) {
        stealer(call);
    }
}

/// Programs that were made to collect other people's credentials.
pub(super) fn stealer(call: &mut Call<'_, '_>) {
    call.tell(EffectKind::RevealSecret, Some(name_target(call.program())), "credential collector");
}

/// `getent shadow`: an account data base by its name.
pub(super) fn getent(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar { short_values: "s", ..Grammar::default() });
    if matches!(options.operand(0), "shadow" | "gshadow") {
        call.tell(EffectKind::RevealSecret, Some(name_target("shadow")), "getent shadow");
    }
}

/// Programs that read the memory of others: `gcore`, `gdb -p`, `procdump`.
pub(super) fn memory(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let attaches = match call.program() {
        "gcore" | "procdump" => !arguments.is_empty(),
        "gdb" | "lldb" => arguments.iter().any(|a| {
            a.text.starts_with("dump ")
                || a.text.contains("generate-core-file")
                || a.text.starts_with("gcore")
        }),
        _ => false,
    };
    if attaches {
        call.tell(EffectKind::RevealSecret, None, "process memory");
    }
}

/// `ssh-keygen -y`, `gpg` and others that read a private key by a path.
pub(super) fn ssh_keygen(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar { short_values: "fPNtbCIKmnOrRsVwYzaDEFG", ..Grammar::default() });
    if options.has(&["y", "e", "p"])
        && let Some(file) = options.value(&["f"])
    {
        call.read(file, false, "key");
    }
}

/// `sshpass -p password`: a password written in the command. What manuals write in its place is none.
pub(super) fn password_argument(call: &mut Call<'_, '_>) {
    let options =
        call.options(&Grammar { short_values: "fdpP", stops_at_operand: true, ..Grammar::default() });
    let is_real = |password: &&super::super::argument::Argument| {
        password.is_known()
            && !password.text.eq_ignore_ascii_case("password")
            && !password.text.starts_with(['<', '{', '['])
    };
    if options.value(&["p"]).filter(is_real).is_some() {
        call.tell(EffectKind::RevealSecret, None, "password argument");
    }
}

/// `gpg`: input files are read, `--output` is written.
pub(super) fn gpg(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "oruNz",
        long: &[
            "output=",
            "recipient=",
            "local-user=",
            "passphrase=",
            "passphrase-file=",
            "passphrase-fd=",
            "homedir=",
            "cipher-algo=",
            "keyserver=",
            "batch",
            "yes",
            "armor",
        ],
        ..Grammar::default()
    };
    let options = call.options(&grammar);
    if let Some(file) = options.value(&["o", "output"]) {
        call.write(file, "");
    }
    let detail = if options.has(&["c", "symmetric"]) { "encrypt" } else { "" };
    for file in options.operands.iter().filter(|o| o.text.contains(['/', '.', '~'])) {
        call.read(file, false, detail);
    }
}
