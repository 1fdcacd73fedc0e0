//! git by sub-command: hooks skipped, work and history thrown away, published history overwritten, commands in settings.

use super::super::argument::Argument;
use super::super::effect::{EffectKind, Target};
use super::Attributes;
use super::call::{Call, base_name, name_target, network_target, path_target};
use super::options::{Grammar, Options, part};

const GLOBAL: Grammar = Grammar {
    short_values: "Cc",
    short_attached: "",
    long: &[
        "git-dir=",
        "work-tree=",
        "namespace=",
        "exec-path=?",
        "config-env=",
        "super-prefix=",
        "paginate",
        "no-pager",
        "bare",
        "no-replace-objects",
        "literal-pathspecs",
        "glob-pathspecs",
        "noglob-pathspecs",
        "icase-pathspecs",
        "version",
        "help",
        "list-cmds=",
        "attr-source=",
        "no-optional-locks",
        "html-path",
        "man-path",
        "info-path",
        "no-advice",
        "no-lazy-fetch",
    ],
    stops_at_operand: true,
    single_dash_long: false,
};

/// Settings whose value is run as a command, besides those that end in one of [`COMMAND_ENDINGS`].
const COMMAND_SETTINGS: &[&str] = &[
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.askpass",
    "core.gitproxy",
    "core.alternaterefscommand",
    "sequence.editor",
    "diff.external",
    "gpg.program",
    "credential.helper",
    "uploadpack.packobjectshook",
    "init.templatedir",
    "receive.procreceiverefs",
    "pager.log",
    "pager.diff",
    "web.browser",
];

/// Last parts of settings whose value is run: `filter.x.clean`, `difftool.x.cmd`, `pager.log`.
const COMMAND_ENDINGS: &[&str] =
    &[".cmd", ".command", ".textconv", ".clean", ".smudge", ".process", ".driver", ".program"];

/// Sub-commands with `--no-verify`.
const WITH_HOOKS: &[&str] =
    &["commit", "push", "merge", "am", "rebase", "cherry-pick", "revert", "pull", "citool", "gui"];

/// `git`.
pub(super) fn git(call: &mut Call<'_, '_>) {
    let global = call.options(&GLOBAL);
    for setting in global.values(&["c"]) {
        let (key, value) = setting.text.split_once('=').unwrap_or((setting.text.as_str(), ""));
        configured(call, key, &part(setting, value), "-c");
    }
    for setting in global.values(&["config-env"]) {
        if setting.text.to_ascii_lowercase().starts_with("core.hookspath=") {
            call.tell(EffectKind::BypassGitHooks, None, "config core.hookspath");
        }
    }
    let mut rest = global.rest;
    // `git -- reset` is refused by git; read on, so that nothing depends on that.
    while rest.first().is_some_and(|a| a.text == "--") {
        rest = &rest[1..];
    }
    let Some((verb, arguments)) = rest.split_first() else { return };
    if arguments.iter().any(|a| matches!(a.text.as_str(), "--help")) {
        return;
    }
    hooks(call, &verb.text, arguments);
    match verb.text.as_str() {
        "reset" => reset(call, arguments),
        "clean" => clean(call, arguments),
        "checkout" => checkout(call, arguments),
        "switch" => {
            let options = Options::parse(arguments, &CHECKOUT);
            if options.has(&["f", "force", "discard-changes"]) {
                lost(call, "switch --force", None, true);
            }
        }
        "restore" => restore(call, arguments),
        "stash" => stash(call, arguments),
        "branch" | "tag" => branch(call, &verb.text, arguments),
        "push" => push(call, arguments),
        "filter-branch" | "filter-repo" => filter(call, &verb.text, arguments),
        "reflog" => {
            let verb = arguments.first().map_or("", |a| a.text.as_str());
            if matches!(verb, "expire" | "delete" | "drop") {
                lost(call, &format!("reflog {verb}"), None, true);
            }
        }
        "gc" => {
            let options = Options::parse(
                arguments,
                &Grammar { long: &["prune=?", "aggressive", "auto", "force"], ..PLAIN },
            );
            let now =
                options.value(&["prune"]).is_some_and(|when| matches!(when.text.as_str(), "now" | "all"));
            if now {
                lost(call, "gc --prune=now", None, true);
            }
        }
        "prune" if !arguments.iter().any(|a| matches!(a.text.as_str(), "-n" | "--dry-run")) => {
            lost(call, "prune", None, false);
        }
        "update-ref" => {
            let options = Options::parse(arguments, &Grammar { short_values: "m", ..PLAIN });
            if options.has(&["d"]) {
                lost(call, "update-ref -d", options.operands.first().copied(), true);
            }
        }
        "worktree" => worktree(call, arguments),
        "rm" => remove(call, arguments),
        "config" => config(call, arguments),
        "submodule" => submodule(call, arguments),
        "bisect" => {
            if let Some((first, command)) = arguments.split_first().filter(|(first, _)| first.text == "run") {
                let _ = first;
                call.run(command, "git bisect run");
            }
        }
        "rebase" => {
            let options = Options::parse(
                arguments,
                &Grammar { short_values: "xsXC", long: &["exec=", "onto="], ..PLAIN },
            );
            for command in options.values(&["x", "exec"]) {
                call.shell(command, "git rebase --exec");
            }
        }
        "clone" | "fetch" | "pull" | "ls-remote" => remote(call, &verb.text, arguments),
        "hash-object" | "diff" | "blame" | "show" if arguments.iter().any(|a| a.text == "--no-index") => {
            for path in Options::parse(arguments, &PLAIN).operands {
                call.read(path, true, "");
            }
        }
        "grep" => {
            let options = Options::parse(arguments, &Grammar { short_values: "efmABCO", ..PLAIN });
            if arguments.iter().any(|a| a.text == "--no-index") {
                options.operands.iter().skip(1).for_each(|path| call.read(path, true, ""));
            }
            if let Some(pager) = options.value(&["O", "open-files-in-pager"]) {
                call.shell(pager, "git grep -O");
            }
        }
        "credential" | "credential-store" | "credential-cache"
            if arguments.iter().any(|a| matches!(a.text.as_str(), "fill" | "get")) =>
        {
            call.tell(EffectKind::RevealSecret, None, "git credential fill");
        }
        _ => {}
    }
}

const PLAIN: Grammar = Grammar {
    short_values: "",
    short_attached: "",
    long: &[],
    stops_at_operand: false,
    single_dash_long: false,
};

fn lost(call: &mut Call<'_, '_>, detail: &str, target: Option<&Argument>, forced: bool) {
    let target = target.map(|target| name_target(&target.text));
    let attributes = Attributes { recursive: false, forced, detail: detail.to_owned() };
    call.effect(EffectKind::DestroyGitWork, target, attributes);
}

/// `--no-verify` and the short form of it that a sub-command has.
fn hooks(call: &mut Call<'_, '_>, verb: &str, arguments: &[Argument]) {
    if !WITH_HOOKS.contains(&verb) {
        return;
    }
    if skips_hooks(verb, arguments) {
        call.tell(EffectKind::BypassGitHooks, None, verb);
    }
}

/// Long options with values of the sub-commands that have hooks.
const HOOK_LONG_VALUES: &[&str] = &[
    "message",
    "file",
    "author",
    "date",
    "template",
    "fixup",
    "squash",
    "reuse-message",
    "reedit-message",
    "cleanup",
    "trailer",
    "push-option",
    "repo",
    "receive-pack",
    "exec",
    "strategy",
    "strategy-option",
    "onto",
    "pathspec-from-file",
];

fn skips_hooks(verb: &str, arguments: &[Argument]) -> bool {
    // Short options with a value, and those whose value is never the next argument.
    let (values, attached) = match verb {
        "commit" => ("mFCct", "uS"),
        "merge" => ("msXF", "S"),
        "push" => ("o", ""),
        "am" => ("pC", "S"),
        "rebase" => ("xsXC", "S"),
        _ => ("mXs", "S"),
    };
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        at += 1;
        let text = argument.text.as_str();
        if text == "--" {
            return false;
        }
        if let Some(name) = text.strip_prefix("--") {
            let bare = name.split('=').next().unwrap_or_default();
            // Long options may be shortened as far as they stay unambiguous: `--no-veri`.
            if bare.len() > 4 && "no-verify".starts_with(bare) {
                return true;
            }
            at += usize::from(HOOK_LONG_VALUES.contains(&bare) && !name.contains('='));
        } else if let Some(bundle) = text.strip_prefix('-') {
            for (index, letter) in bundle.char_indices() {
                if letter == 'n' && verb == "commit" {
                    return true;
                }
                if values.contains(letter) {
                    at += usize::from(index + letter.len_utf8() == bundle.len());
                    break;
                }
                if attached.contains(letter) {
                    break;
                }
            }
        }
    }
    false
}

/// A setting given with `-c` or `git config`.
fn configured(call: &mut Call<'_, '_>, key: &str, value: &Argument, how: &str) {
    let key = key.to_ascii_lowercase();
    if key == "core.hookspath" {
        call.tell(EffectKind::BypassGitHooks, Some(path_target(value)), &format!("{how} core.hookspath"));
    } else if key.starts_with("alias.") {
        if let Some(command) = value.text.strip_prefix('!') {
            call.shell(&part(value, command), "git alias");
        }
    } else if COMMAND_SETTINGS.contains(&key.as_str()) || COMMAND_ENDINGS.iter().any(|end| key.ends_with(end))
    {
        let text = value.text.trim_start_matches('!');
        // Names of helpers (`store`, `osxkeychain`) and switches are no commands.
        if text.contains([' ', '/', '`', '$', ';', '|', '&']) || super::call::is_shell(text) {
            call.shell(&part(value, text), "git -c");
        }
    }
}

/// `git config`: the operands are the key and the value.
fn config(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let grammar = Grammar {
        short_values: "f",
        long: &[
            "file=",
            "blob=",
            "type=",
            "default=",
            "unset",
            "unset-all",
            "get",
            "list",
            "comment=",
            "value=",
            "fixed-value",
        ],
        ..PLAIN
    };
    let options = Options::parse(arguments, &grammar);
    if options.has(&["get", "list", "l", "get-all", "unset", "unset-all", "get-regexp", "show-origin"]) {
        return;
    }
    let mut operands = options.operands.as_slice();
    if operands.first().is_some_and(|first| matches!(first.text.as_str(), "set")) {
        operands = &operands[1..];
    }
    if let [key, value, ..] = operands {
        let how = if options.has(&["global", "system"]) { "config --global" } else { "config" };
        let key = key.text.to_ascii_lowercase();
        if key == "core.hookspath" {
            let detail = format!("{how} core.hookspath");
            call.tell(EffectKind::BypassGitHooks, Some(path_target(value)), &detail);
        } else if key.starts_with("alias.") && value.text.starts_with('!') {
            // It runs when the alias is used; what it would do counts now, as nobody looks at it later.
            configured(call, &key, value, how);
        }
    }
}

fn reset(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let long = &["hard", "soft", "mixed", "merge", "keep", "quiet", "patch", "pathspec-from-file="];
    let options = Options::parse(arguments, &Grammar { long, ..PLAIN });
    for mode in ["hard", "merge"] {
        if options.has(&[mode]) {
            lost(call, &format!("reset --{mode}"), options.operands.first().copied(), true);
        }
    }
}

fn clean(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let long = &["force", "dry-run", "exclude=", "quiet", "interactive"];
    let options = Options::parse(arguments, &Grammar { short_values: "e", long, ..PLAIN });
    let forced = options.has(&["f", "force"]);
    if forced && !options.has(&["n", "dry-run"]) {
        let detail = if options.has(&["x", "X"]) { "clean -fx" } else { "clean -f" };
        lost(call, detail, options.operands.first().copied(), true);
    }
}

const CHECKOUT: Grammar = Grammar {
    short_values: "bBcCU",
    short_attached: "t",
    long: &[
        "force",
        "discard-changes",
        "track=?",
        "no-track",
        "orphan=",
        "conflict=",
        "recurse-submodules=?",
        "patch",
        "ours",
        "theirs",
        "merge",
        "detach",
        "quiet",
        "progress",
        "pathspec-from-file=",
        "unified=",
        "inter-hunk-context=",
        "create=",
        "force-create=",
        "guess",
        "no-guess",
        "overwrite-ignore",
        "ignore-other-worktrees",
        "overlay",
        "no-overlay",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

fn checkout(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let dashes = arguments.iter().position(|a| a.text == "--");
    let options = Options::parse(&arguments[..dashes.unwrap_or(arguments.len())], &CHECKOUT);
    if options.has(&["f", "force"]) {
        lost(call, "checkout --force", options.operands.first().copied(), true);
    } else if let Some(at) = dashes.filter(|at| arguments.len() > at + 1) {
        for path in &arguments[at + 1..] {
            lost(call, "checkout --", Some(path), false);
        }
    } else if options.operands.last().is_some_and(|o| matches!(o.text.as_str(), "." | "./" | ":/" | "*")) {
        lost(call, "checkout --", options.operands.last().copied(), false);
    }
}

fn restore(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let long = &["source=", "staged", "worktree", "patch", "conflict=", "pathspec-from-file=", "quiet"];
    let options = Options::parse(arguments, &Grammar { short_values: "s", long, ..PLAIN });
    if options.has(&["S", "staged"]) && !options.has(&["W", "worktree"]) {
        return;
    }
    for path in &options.operands {
        lost(call, "restore", Some(path), false);
    }
}

fn stash(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let verb = arguments.first().map_or("", |a| a.text.as_str());
    if matches!(verb, "drop" | "clear") {
        lost(call, &format!("stash {verb}"), arguments.get(1), verb == "clear");
    }
}

fn branch(call: &mut Call<'_, '_>, verb: &str, arguments: &[Argument]) {
    let long = &[
        "delete",
        "force",
        "move",
        "copy",
        "set-upstream-to=",
        "list",
        "contains=?",
        "merged=?",
        "sort=",
        "format=",
    ];
    let values = if verb == "branch" { "u" } else { "mFu" };
    let options = Options::parse(arguments, &Grammar { short_values: values, long, ..PLAIN });
    let deletes = options.has(&["d", "delete"]) && options.has(&["f", "force"]) || options.has(&["D"]);
    if deletes {
        for name in &options.operands {
            lost(call, &format!("{verb} -D"), Some(name), true);
        }
    }
}

fn worktree(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    if arguments.first().is_some_and(|a| a.text == "remove") {
        let options = Options::parse(&arguments[1..], &Grammar { long: &["force"], ..PLAIN });
        if options.has(&["f", "force"]) {
            for path in &options.operands {
                lost(call, "worktree remove --force", Some(path), true);
            }
        }
    }
}

/// `git rm` deletes from the work tree too, unless `--cached`.
fn remove(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let long = &["cached", "force", "dry-run", "quiet", "ignore-unmatch", "pathspec-from-file=", "sparse"];
    let options = Options::parse(arguments, &Grammar { long, ..PLAIN });
    if options.has(&["cached", "n", "dry-run"]) {
        return;
    }
    for path in &options.operands {
        call.delete(path, options.has(&["r"]), options.has(&["f", "force"]), "git rm");
    }
}

fn push(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let long = &[
        "force",
        "force-with-lease=?",
        "force-if-includes",
        "delete",
        "mirror",
        "prune",
        "all",
        "branches",
        "tags",
        "follow-tags",
        "set-upstream",
        "dry-run",
        "repo=",
        "push-option=",
        "receive-pack=",
        "exec=",
        "quiet",
        "no-verify",
        "atomic",
        "signed=?",
        "porcelain",
        "progress",
    ];
    let options = Options::parse(arguments, &Grammar { short_values: "o", long, ..PLAIN });
    for command in options.values(&["receive-pack", "exec"]) {
        call.shell(command, "git push --receive-pack");
    }
    if options.has(&["n", "dry-run"]) {
        return;
    }
    let lease = options.has(&["force-with-lease", "force-if-includes"]);
    let mut destroyed: Vec<(&str, Option<Target>)> = Vec::new();
    let repository = options.operands.first().map(|o| name_target(&o.text));
    if options.has(&["f", "force"]) {
        destroyed.push((if lease { "push --force-with-lease" } else { "push --force" }, repository.clone()));
    } else if lease {
        destroyed.push(("push --force-with-lease", repository.clone()));
    }
    if options.has(&["mirror"]) {
        destroyed.push(("push --mirror", repository.clone()));
    }
    if options.has(&["d", "delete"]) {
        destroyed.push(("push --delete", repository.clone()));
    }
    for reference in options.operands.iter().skip(1) {
        if reference.text.starts_with('+') {
            destroyed.push(("push --force", Some(name_target(&reference.text))));
        } else if reference.text.starts_with(':') && reference.text.len() > 1 {
            destroyed.push(("push --delete", Some(name_target(&reference.text))));
        }
    }
    for (detail, target) in destroyed {
        let forced = detail != "push --force-with-lease";
        let attributes = Attributes { recursive: false, forced, detail: detail.to_owned() };
        call.effect(EffectKind::DestroyGitRemote, target, attributes);
    }
    if let Some(url) = options.operands.first() {
        command_transport(call, url);
    }
}

/// `ext::sh -c …` as the URL of a repository runs a command.
fn command_transport(call: &mut Call<'_, '_>, url: &Argument) {
    if let Some(command) = url.text.strip_prefix("ext::") {
        call.shell(&part(url, command), "git ext::");
    }
}

fn remote(call: &mut Call<'_, '_>, verb: &str, arguments: &[Argument]) {
    let long =
        &["upload-pack=", "depth=", "branch=", "origin=", "config=", "template=", "reference=", "jobs="];
    let options = Options::parse(arguments, &Grammar { short_values: "ubocj", long, ..PLAIN });
    for command in options.values(&["u", "upload-pack"]).filter(|_| verb != "pull") {
        if command.text.contains([' ', '/', ';', '$', '`']) {
            call.shell(command, "git --upload-pack");
        }
    }
    for setting in options.values(&["c", "config"]).cloned().collect::<Vec<_>>() {
        let (key, value) = setting.text.split_once('=').unwrap_or((setting.text.as_str(), ""));
        configured(call, key, &part(&setting, value), "-c");
    }
    if let Some(url) = options.operands.first() {
        command_transport(call, url);
        if url.text.contains("://") || super::transfer::is_remote(&url.text) {
            call.tell(EffectKind::Fetch, Some(network_target(url)), &format!("git {verb}"));
        }
    }
}

fn filter(call: &mut Call<'_, '_>, verb: &str, arguments: &[Argument]) {
    // `filter-repo` refuses to work on anything but a fresh clone unless it is told to.
    let forced = arguments.iter().any(|a| matches!(a.text.as_str(), "--force" | "-f"));
    let detail = if verb == "filter-repo" && forced { "filter-repo --force" } else { verb };
    lost(call, detail, None, forced || verb == "filter-branch");
    let long = &[
        "tree-filter=",
        "index-filter=",
        "env-filter=",
        "msg-filter=",
        "commit-filter=",
        "parent-filter=",
        "tag-name-filter=",
        "subdirectory-filter=",
        "setup=",
        "force",
        "prune-empty",
    ];
    if verb == "filter-branch" {
        let options = Options::parse(arguments, &Grammar { short_values: "d", long, ..PLAIN });
        // An index filter edits the index, not the disk.
        for command in
            options.values(&["env-filter", "msg-filter", "commit-filter", "parent-filter", "setup"])
        {
            call.shell(command, "git filter-branch");
        }
    }
}

fn submodule(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let operands = Options::parse(arguments, &PLAIN).operands;
    match operands.first().map(|o| o.text.as_str()) {
        Some("foreach") => {
            if let [_, command] = operands.as_slice() {
                call.shell(command, "git submodule foreach");
            } else {
                let at =
                    arguments.iter().position(|a| a.text == "foreach").map_or(arguments.len(), |at| at + 1);
                let command: Vec<Argument> =
                    arguments[at..].iter().skip_while(|a| a.text.starts_with('-')).cloned().collect();
                call.run(&command, "git submodule foreach");
            }
        }
        Some("deinit") if arguments.iter().any(|a| matches!(a.text.as_str(), "-f" | "--force")) => {
            lost(call, "submodule deinit --force", operands.get(1).copied(), true);
        }
        _ => {}
    }
}

/// BFG and other programs that rewrite history.
pub(super) fn rewrite(call: &mut Call<'_, '_>) {
    let detail = base_name(call.program()).to_owned();
    lost(call, &detail, None, true);
}

/// `gh`: what deletes repositories and prints tokens.
pub(super) fn gh(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar {
        short_values: "RXHfFqtb",
        long: &[
            "repo=",
            "method=",
            "header=",
            "field=",
            "raw-field=",
            "jq=",
            "template=",
            "hostname=",
            "input=",
            "body=",
            "title=",
            "desc=",
            "filename=",
            "notes=",
            "notes-file=",
            "target=",
        ],
        ..PLAIN
    });
    let verbs = (options.operand(0), options.operand(1));
    match verbs {
        ("gist", "create") => {
            let files: Vec<Argument> = options.operands.iter().skip(2).map(|file| (*file).clone()).collect();
            for file in &files {
                call.send_file(file, "gh gist create");
            }
            if files.is_empty() {
                call.send_input("gh gist create");
            }
        }
        ("auth", "token") => call.tell(EffectKind::RevealSecret, None, "gh auth token"),
        ("auth", "status") if options.has(&["t", "show-token"]) => {
            call.tell(EffectKind::RevealSecret, None, "gh auth token");
        }
        ("repo", "delete") => {
            let target = options.operands.get(2).map(|o| name_target(&o.text));
            call.tell(EffectKind::DestroyGitRemote, target, "gh repo delete");
        }
        ("release" | "secret" | "variable", "delete") => {
            let detail = format!("gh {} delete", verbs.0);
            call.tell(EffectKind::DestroyInfrastructure, None, &detail);
        }
        ("api", path)
            if options.value(&["X", "method"]).is_some_and(|m| m.text.eq_ignore_ascii_case("delete")) =>
        {
            call.tell(EffectKind::DestroyInfrastructure, Some(name_target(path)), "gh api delete");
        }
        // What is uploaded is public, or lies with whoever owns the account.
        ("gist", "edit") | ("release", "upload" | "create") => {
            let files: Vec<Argument> = options.operands.iter().skip(3).map(|file| (*file).clone()).collect();
            for file in files.iter().filter(|file| file.text != "-") {
                call.send_file(file, "gh");
            }
        }
        ("alias", "set") => {
            if let Some(command) =
                options.operands.get(3).filter(|o| o.text.starts_with('!') || options.has(&["s", "shell"]))
            {
                call.shell(&part(command, command.text.trim_start_matches('!')), "gh alias");
            }
        }
        _ => {}
    }
}
