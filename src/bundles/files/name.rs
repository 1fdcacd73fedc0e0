//! How a text file is written, by its name and its first line.

use crate::bundles::code::{self, Language};

/// How a text file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bundles) enum Syntax {
    /// Markdown.
    Markdown,
    /// Text for people in another form.
    Prose,
    /// A script for a shell.
    Shell,
    /// Python or JavaScript.
    Code(Language),
    /// A script in another language.
    Script(Script),
    /// JSON, with or without comments.
    Json,
    /// YAML.
    Yaml,
    /// TOML.
    Toml,
    /// A Makefile.
    Make,
    /// A Dockerfile.
    Docker,
    /// A Jupyter notebook.
    Notebook,
    /// Requirements of pip.
    Requirements,
    /// Settings of other kinds.
    Config,
    /// Anything else that is text.
    Data,
}

impl Syntax {
    /// Every surface; `hidden` is that of the parts of documents that readers do not see.
    pub(in crate::bundles) const SURFACES: [&str; 5] = ["document", "script", "config", "data", "hidden"];

    /// The surface that rules about text name.
    pub(in crate::bundles) const fn surface(self) -> &'static str {
        match self {
            Self::Markdown | Self::Prose => "document",
            Self::Shell | Self::Code(_) | Self::Script(_) | Self::Make | Self::Docker | Self::Notebook => {
                "script"
            }
            Self::Json | Self::Yaml | Self::Toml | Self::Requirements | Self::Config => "config",
            Self::Data => "data",
        }
    }
}

/// Languages of scripts that are read as text only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bundles) enum Script {
    /// PowerShell.
    PowerShell,
    /// Batch files of Windows.
    Batch,
    /// Everything else.
    Other,
}

/// Extensions of scripts in other languages.
const SCRIPTS: &[&str] = &[
    "rb",
    "pl",
    "pm",
    "php",
    "lua",
    "go",
    "rs",
    "applescript",
    "scpt",
    "vbs",
    "vbe",
    "wsf",
    "hta",
    "jl",
    "r",
    "java",
    "kt",
    "kts",
    "cs",
    "c",
    "cc",
    "cpp",
    "h",
    "hpp",
    "swift",
    "scala",
    "groovy",
    "gradle",
    "gemspec",
    "podspec",
    "rake",
    "ru",
    "cmake",
    "vim",
    "el",
    "jsp",
    "asp",
    "aspx",
    "pde",
    "ino",
    "zig",
    "nim",
    "cr",
    "ml",
    "fs",
    "fsx",
    "d",
    "pas",
    "bicep",
    "hcl",
    "tcl",
    "awk",
    "sed",
    "ex",
    "exs",
    "erl",
    "hs",
    "clj",
    "dart",
    "m",
    "mm",
    "sql",
    "nix",
    "ahk",
    "reg",
    "vue",
    "svelte",
    "astro",
    "tf",
    "tfvars",
    "nomad",
    "jenkinsfile",
    "phtml",
    "php5",
    "v",
    "vb",
    "csx",
    "sc",
    "cls",
    "raku",
    "exp",
];
/// Names of files, in lower case, that a tool reads as a program or as a list of commands.
const RUN_BY_TOOLS: &[&str] = &[
    "vimrc",
    ".vimrc",
    "_vimrc",
    ".exrc",
    ".gdbinit",
    ".lldbinit",
    ".emacs",
    ".irbrc",
    ".pryrc",
    "jenkinsfile",
    "rakefile",
    "gemfile",
    "vagrantfile",
    "podfile",
    "fastfile",
    "appfile",
    "guardfile",
    "dangerfile",
    "capfile",
    "berksfile",
    "brewfile",
    "procfile",
    "procfile.dev",
    "tiltfile",
    "snakefile",
    "earthfile",
    "caddyfile",
    "cmakelists.txt",
    "meson.build",
    "build.bazel",
    "workspace.bazel",
    ".vimrc",
    ".gvimrc",
    ".exrc",
    ".nvimrc",
    ".tmux.conf",
    "tmux.conf",
    ".screenrc",
    ".emacs",
    ".gdbinit",
    ".lldbinit",
    ".irbrc",
    ".pryrc",
    ".rprofile",
    ".guile",
];
const CONFIGS: &[&str] = &[
    "ini",
    "cfg",
    "conf",
    "env",
    "properties",
    "plist",
    "service",
    "timer",
    "desktop",
    "cron",
    "crontab",
    "editorconfig",
    "npmrc",
    "lock",
    "mod",
    "sum",
    "gitconfig",
    "gitmodules",
    "gitattributes",
    "inf",
];

/// How the text file at `path` that begins with `head` is written.
pub(in crate::bundles) fn syntax_of(path: &str, head: &str) -> Syntax {
    let name = path.rsplit('/').next().unwrap_or(path);
    let lower = name.to_ascii_lowercase();
    let extension = lower.rsplit_once('.').map_or("", |(_, extension)| extension);
    let first = head.lines().next().unwrap_or_default();
    if let Some(language) = code::language_of(path, head.as_bytes()) {
        return Syntax::Code(language);
    }
    match extension {
        "md" | "mdx" | "markdown" | "mdc" => return Syntax::Markdown,
        "sh" | "bash" | "zsh" | "ksh" | "bats" | "command" | "fish" | "nu" | "elv" | "xsh" => {
            return Syntax::Shell;
        }
        "json" | "jsonc" | "json5" | "code-workspace" | "webmanifest" => return Syntax::Json,
        "yaml" | "yml" => return Syntax::Yaml,
        "toml" => return Syntax::Toml,
        "ps1" | "psm1" | "psd1" => return Syntax::Script(Script::PowerShell),
        "bat" | "cmd" => return Syntax::Script(Script::Batch),
        "mk" | "mak" => return Syntax::Make,
        "dockerfile" | "containerfile" => return Syntax::Docker,
        "ipynb" => return Syntax::Notebook,
        _ => {}
    }
    match lower.as_str() {
        "makefile" | "gnumakefile" | "justfile" => return Syntax::Make,
        _ if lower.starts_with("dockerfile") || lower.starts_with("containerfile") => return Syntax::Docker,
        _ if lower.starts_with("requirements") && extension == "txt" => return Syntax::Requirements,
        "constraints.txt" => return Syntax::Requirements,
        "crontab" => return Syntax::Config,
        name if RUN_BY_TOOLS.contains(&name) => return Syntax::Script(Script::Other),
        ".cursorrules" | ".windsurfrules" | ".clinerules" => return Syntax::Markdown,
        _ => {}
    }
    if first.starts_with("#!") {
        let is_shell = ["sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "nu", "elvish", "xonsh", "osh"]
            .iter()
            .any(|shell| first.split(['/', ' ']).any(|word| word.trim() == *shell));
        return if is_shell { Syntax::Shell } else { Syntax::Script(Script::Other) };
    }
    // Shell profiles and hooks of git have no extension.
    let is_profile = [
        "bashrc",
        "bash_profile",
        "bash_login",
        "bash_aliases",
        "zshrc",
        "zprofile",
        "zlogin",
        "profile",
        "zshenv",
        "kshrc",
        "envrc",
    ];
    let bare = lower.strip_prefix(['.', '_']).unwrap_or(&lower);
    if is_profile.contains(&bare) && (bare != "profile" || lower.starts_with('.'))
        || path.contains(".git/hooks/")
        || path.contains(".husky/")
    {
        return Syntax::Shell;
    }
    if is_git_settings(path, &lower) {
        return Syntax::Config;
    }
    if SCRIPTS.contains(&extension) {
        return Syntax::Script(Script::Other);
    }
    if CONFIGS.contains(&extension) || (lower.starts_with('.') && !lower[1..].contains('.')) {
        return Syntax::Config;
    }
    match extension {
        "txt" | "rst" | "adoc" | "html" | "htm" | "xhtml" | "svg" | "xml" | "rtf" | "tex" | "org" | ""
        | "prompt" | "tmpl" | "j2" | "jinja" | "hbs" | "mustache" | "example" | "template" => Syntax::Prose,
        _ => Syntax::Data,
    }
}

/// Whether a file without an extension holds settings of git, by the folder that it lies in.
fn is_git_settings(path: &str, name: &str) -> bool {
    let folders = path.split('/').rev().skip(1).map(str::to_ascii_lowercase);
    matches!(name, "config" | "config.worktree")
        && folders.into_iter().any(|folder| folder == "git" || folder.ends_with(".git"))
}

/// Extensions that promise something to look at.
const HARMLESS: &[&str] = &[
    "png", "jpg", "jpeg", "gif", "webp", "bmp", "ico", "tif", "tiff", "svg", "pdf", "txt", "md", "doc",
    "docx", "xls", "xlsx", "ppt", "pptx", "csv", "mp3", "mp4", "mov", "avi", "wav", "ogg", "ttf", "otf",
    "woff", "woff2", "html",
];
/// Extensions of what runs when opened.
const RUNS: &[&str] = &[
    "exe", "scr", "com", "pif", "lnk", "bat", "cmd", "ps1", "vbs", "vbe", "js", "jse", "wsf", "hta", "msi",
    "cpl", "jar", "app", "command", "url", "iso", "img", "dmg", "pkg", "reg",
];

/// How telling a file is: those that a client or a person acts on first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::bundles) enum Rank {
    /// The manifest, the primary document, and what a client loads by itself: hooks, servers, settings.
    Loaded,
    /// Scripts and what is executable.
    Script,
    /// Python and JavaScript.
    Code,
    /// Documents.
    Document,
    /// Settings of other kinds.
    Settings,
    /// Everything else.
    Other,
}

impl Rank {
    /// The last one.
    pub(in crate::bundles) const MAX: Self = Self::Other;
}

/// Names of files that clients load by themselves, in lower case.
const LOADED: &[&str] = &[
    "skill.md",
    "plugin.json",
    "hooks.json",
    "settings.json",
    "settings.local.json",
    ".mcp.json",
    "claude.md",
    "agents.md",
];
/// Folders of which clients load every file, in lower case.
const LOADED_FOLDERS: &[&str] = &["hooks", ".claude-plugin", "agents", "commands"];

/// How telling a file is by its name; `None` for what can wait.
pub(in crate::bundles) fn rank(path: &str, is_executable: bool) -> Option<Rank> {
    let lower = path.to_ascii_lowercase();
    let (folders, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    if LOADED.contains(&name) || folders.split('/').any(|folder| LOADED_FOLDERS.contains(&folder)) {
        return Some(Rank::Loaded);
    }
    match syntax_of(path, "") {
        _ if is_executable => Some(Rank::Script),
        Syntax::Shell | Syntax::Script(_) | Syntax::Make | Syntax::Docker => Some(Rank::Script),
        Syntax::Code(_) | Syntax::Notebook => Some(Rank::Code),
        Syntax::Markdown => Some(Rank::Document),
        Syntax::Json | Syntax::Yaml | Syntax::Toml | Syntax::Requirements | Syntax::Config => {
            Some(Rank::Settings)
        }
        Syntax::Prose | Syntax::Data => None,
    }
}

/// Whether a name ends like something to look at, followed by the extension of something that runs: `photo.jpg.exe`.
pub(in crate::bundles) fn is_disguised(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let mut parts = name.rsplit('.');
    let (last, before) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default().trim());
    parts.next().is_some() && RUNS.contains(&last) && HARMLESS.contains(&before)
        // Pages and styles are built by scripts of their name: `page.html.js`.
        && !(matches!(last, "js" | "cmd" | "bat" | "ps1") && matches!(before, "html" | "md" | "csv" | "txt" | "svg"))
}

/// Whether a file is a test or an example, by its path.
pub(in crate::bundles) fn is_sample(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    ["test", "spec", "example", "fixture", "mock", "sample", "docs/"].iter().any(|part| lower.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_by_their_names() {
        for (path, head, wanted) in [
            ("notes.txt", "import os\n", Syntax::Prose),
            ("Jenkinsfile", "pipeline {\n", Syntax::Script(Script::Other)),
            ("ops/Procfile", "web: node a.js\n", Syntax::Script(Script::Other)),
            (".vimrc", "set nu\n", Syntax::Script(Script::Other)),
            ("x/.git/config", "[core]\n", Syntax::Config),
            ("x/.GIT/modules/a/config", "[core]\n", Syntax::Config),
            ("x/config", "[core]\n", Syntax::Prose),
        ] {
            assert_eq!(syntax_of(path, head), wanted, "{path} {head}");
        }
    }

    #[test]
    fn what_is_acted_on_first_ranks_first() {
        for (path, is_executable, wanted) in [
            ("x/SKILL.md", false, Some(Rank::Loaded)),
            (".claude-plugin/plugin.json", false, Some(Rank::Loaded)),
            ("x/Hooks/after.py", false, Some(Rank::Loaded)),
            ("agents/writer.md", false, Some(Rank::Loaded)),
            ("run.sh", false, Some(Rank::Script)),
            ("Makefile", false, Some(Rank::Script)),
            ("a.rb", false, Some(Rank::Script)),
            ("bin/tool", true, Some(Rank::Script)),
            ("a.py", false, Some(Rank::Code)),
            ("a.ipynb", false, Some(Rank::Code)),
            ("references/a.md", false, Some(Rank::Document)),
            ("a.yaml", false, Some(Rank::Settings)),
            ("a.csv", false, None),
            ("a.log", false, None),
        ] {
            assert_eq!(rank(path, is_executable), wanted, "{path}");
        }
        assert!(Rank::Loaded < Rank::Script && Rank::Document < Rank::MAX);
    }
}
