//! What a command would do to the world.

use std::ops::Range;
use std::sync::Arc;

use super::argument::Argument;

/// One thing that a command would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// What.
    pub kind: EffectKind,
    /// To what: a path, device, host, image, reference… as the command names it, made absolute and normalised where it
    /// is a path and that is possible. `None` where the kind needs none.
    pub target: Option<Target>,
    /// Whether everything below the target is meant as well.
    pub recursive: bool,
    /// Whether the command was told not to ask or not to stop (`-f`, `--force`, `--no-preserve-root`, `-y`).
    pub forced: bool,
    /// A detail that rules may ask for: the mode of `chmod`, the sub-command of `git`, the name of a data base
    /// statement. Lower case where case means nothing. Empty when there is none.
    pub detail: String,
    /// Base name of the program that does it; empty for a redirection.
    pub program: String,
    /// Arguments of that program, itself first, as resolved. Shared by the effects of one command.
    pub argv: Arc<[Argument]>,
    /// Where it stands in the command, in UTF-8 bytes. What came out of a decoder has the span of the decoder's text.
    pub span: Range<usize>,
    /// The wrappers it was found through, outermost first, such as `sudo`, `bash -c`, `base64`.
    pub via: Vec<&'static str>,
}

/// What an effect is done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name; pieces that are not known stand as [`super::argument::HOLE`].
    pub text: String,
    /// Whether it holds glob characters that the shell would expand.
    pub has_glob: bool,
    /// What kind of name it is.
    pub kind: TargetKind,
}

/// Kinds of [`Target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// A path of the file system.
    Path,
    /// A host, address or URL.
    Network,
    /// A path on another machine or in a container's own file system.
    Remote,
    /// Anything else, such as a git reference, a volume or a table.
    Name,
}

macro_rules! effect_kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Kinds of [`Effect`]. The names are used in rules, conditions and reports.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EffectKind {
            $($(#[$doc])* $variant,)*
        }

        impl EffectKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The snake-case name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

effect_kinds! {
    /// A file or folder is deleted.
    DeletePath = "delete_path",
    /// A file is written, made, moved onto or emptied.
    WritePath = "write_path",
    /// A file is read.
    ReadPath = "read_path",
    /// Permissions are changed; the detail is the mode.
    ChangeMode = "change_mode",
    /// The owner is changed; the detail is the owner.
    ChangeOwner = "change_owner",
    /// A block device is written, formatted, partitioned or wiped.
    RawDiskWrite = "raw_disk_write",
    /// Code fetched from the network is run. The target is where it comes from.
    FetchAndExecute = "fetch_and_execute",
    /// Text that nobody can see before it runs is run: the output of a decoder or command that could not be computed.
    /// The detail says what it comes from.
    OpaqueExecution = "opaque_execution",
    /// A shell is connected to another host.
    ReverseShell = "reverse_shell",
    /// A shell is offered to whoever connects.
    BindShell = "bind_shell",
    /// A port of this machine is offered to another host or to the internet through a tunnel. The detail says what is
    /// behind it: `shell`, `everything` or `service`.
    OpenTunnel = "open_tunnel",
    /// Processes multiply without end.
    ForkBomb = "fork_bomb",
    /// Checks that guard a repository are skipped (`--no-verify`, `core.hooksPath`). The detail is the sub-command.
    BypassGitHooks = "bypass_git_hooks",
    /// Commits or work that is not committed is thrown away. The detail is the sub-command.
    DestroyGitWork = "destroy_git_work",
    /// Published history is overwritten or deleted.
    DestroyGitRemote = "destroy_git_remote",
    /// Containers, images or volumes are deleted beyond the one that is named. The detail is the sub-command.
    WipeContainers = "wipe_containers",
    /// Volumes, the data of containers, are deleted.
    WipeVolumes = "wipe_volumes",
    /// Resources of a cluster or cloud are deleted. The detail is the sub-command.
    DestroyInfrastructure = "destroy_infrastructure",
    /// Data of a data base is dropped, emptied or deleted without a condition. The detail is the statement.
    DestroyData = "destroy_data",
    /// A way out of a container, sandbox or guard: privileged containers, the host's root mounted, namespaces entered.
    EscapeSandbox = "escape_sandbox",
    /// A protection of the machine is switched off: firewall, SELinux, logging, history, antivirus.
    DisableProtection = "disable_protection",
    /// Something is made to run later or at every start: cron, services, shell profiles.
    Persist = "persist",
    /// The machine is switched off or every process is killed.
    StopSystem = "stop_system",
    /// Accounts, passwords or privileges are changed.
    ChangeAccount = "change_account",
    /// The kernel is changed: modules, parameters, its memory.
    ChangeKernel = "change_kernel",
    /// Local data is sent to another host. The target is what is sent where that is known, else the host.
    SendData = "send_data",
    /// Credentials are printed or copied out of a store by the program that keeps them. The detail is the command.
    RevealSecret = "reveal_secret",
    /// Files are searched for, by name or by what they hold, in a whole tree; the detail is `find NAME` or `grep PATTERN` in
    /// lower case.
    SearchFiles = "search_files",
    /// Something is fetched from the network and not run.
    Fetch = "fetch",
    /// A package or an extension is installed; the target is its source.
    Install = "install",
    /// A program runs that is not known, with a dangerous command among its arguments.
    SuspiciousWrapper = "suspicious_wrapper",
}
