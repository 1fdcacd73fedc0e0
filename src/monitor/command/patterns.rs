//! What stands around a command in output: prompts, heads of log lines, labels, reports, lists, elements and code.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

/// What may stand before a prompt: a time, the number of a step, who printed it, what a theme draws.
const DECORATION: &str = concat!(
    r"(?:(?:[^\x00-\x7f]{1,8}|\[[^\[\]\n]{1,120}\](?:[ \t]+\| )?|#[0-9]{1,4} [0-9.]{1,9}|[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?",
    r"|[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T ][0-9:.,]{5,20}(?:Z|[+-][0-9]{2}:?[0-9]{2})?(?: [0-9]{2}[OE]\+?)?",
    r"|(?:stdout|stderr)(?: [FP] |: )|remote: |[A-Za-z0-9_.-]{1,60} [A-Za-z0-9_./-]{1,40}\[[0-9]{1,8}\]:",
    r"|[A-Za-z_][A-Za-z0-9_.\[\]-]{0,80} \([a-z-]{4,20}\):",
    // A pod of Kubernetes ends in five of the characters that never form a word, and its container follows.
    r"|[a-z0-9][a-z0-9.-]{0,80}-[bcdfghjklmnpqrstvwxz2456789]{5} [a-z0-9][a-z0-9-]{0,62} ",
    r"|[A-Za-z][A-Za-z0-9_.-]{0,40}[ \t]+\| |[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [A-Za-z0-9_.-]{1,60} [A-Za-z0-9_./-]{1,40}(?:\[[0-9]{1,8}\])?:",
    r")[ \t]*){0,3}",
);

/// The level of a line of a log, with who wrote it.
const LEVEL: &str = concat!(
    r"(?:\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|trace|debug|info|notice|warn|warning|error)\]?:?[ \t]+",
    r"(?:(?:- )?[A-Za-z_][A-Za-z0-9_.:/-]{0,60}[ \t]+){0,2}(?:- )?)?",
);

/// A prompt that nothing else looks like, with who, where and an environment before it. A `#`, `%` or `>` alone begins
/// comments and quotations too, so it counts only behind a user, a folder or the name of a shell.
pub(super) static PROMPT: LazyLock<Regex> = LazyLock::new(|| {
    let prompt = concat!(
        r"(?:\([^()]{1,40}\) ?)?(?:@[A-Za-z0-9_-]{1,40} ➜ [~/][^$\n]{0,80}\$[ \t]+|",
        r"(?:\[[^\[\]]{1,80}\] ?|[A-Za-z0-9_.@~:/\\-]{1,80} ?)?(?:[$❯➜»λ›▸]|\$>)(?:[ \t]+|$)",
        r"|[^❯\n]{0,80}❯[ \t]+",
        r"|[A-Za-z0-9_.-]{1,40}@[A-Za-z0-9_.-]{1,60}:[A-Za-z0-9_.~/-]{0,80}[$#]",
        r"|(?:\[[^\[\]@]{0,60}@[^\[\]]{1,60}\] ?",
        r"|[A-Za-z0-9_.-]{1,40}@[A-Za-z0-9_.-]{1,60}(?:[ :][A-Za-z0-9_.~/-]{0,80})?(?: \([^()]{1,40}\))?(?: \[[0-9|]{1,12}\])? ?",
        r"|[~/][A-Za-z0-9_./-]{0,80} ?|(?:ba|z|k|da)?sh-[0-9.]{1,8})(?:[#%](?:[ \t]+|$)|> )",
        r"|[A-Za-z0-9_.-]{1,40}@[A-Za-z0-9_.-]{1,60}[ :][^$\n]{0,80}\$[ \t]+",
        r"|[A-Za-z0-9_./@:~-]{1,60} [A-Za-z0-9_:-]{1,40}\$[ \t]+",
        r"|[A-Za-z0-9_-]{1,40} [~/][A-Za-z0-9_./-]{0,80}(?: \([^()\n]{1,60}\))? \$[ \t]+",
        r"|\+{1,4} ?\(?[A-Za-z0-9_./-]{1,80}:[0-9]{1,6}[)>:]{1,2}[ \t]+",
        r"|In \[[0-9]{1,5}\]: ?[!%]|mysql> \\! |\(gdb\) shell ",
        r"|PS [^>\n]{0,80}> ?|[A-Za-z]:\\[^>\n]{0,80}> ?)[ \t]*",
    );
    known(&format!(r"^[ \t]*(?:[-*•●⏺▶] ?)?{DECORATION}{prompt}"))
});

/// What builds, agents and terminals print before a command that they run.
pub(super) static OPENER: LazyLock<Regex> = LazyLock::new(|| {
    let opener = concat!(
        r"(?:(?:##)?\[command\]|##\[group\]Run |#[0-9]{1,4} \[[^\[\]\n]{1,40}\] RUN |Step [0-9]{1,4}/[0-9]{1,4} : RUN |\[(?:exec|cmd|command|shell|run)\] ",
        r"|npm (?:ERR!|error|verb|info) (?:command (?:(?:/bin/)?(?:ba)?sh -c )?|lifecycle [^ \n]{1,80}: )|TASK \[(?:[A-Za-z0-9_. -]{1,60} : )?(?:shell|command|raw) ?: ?",
        r"|:!|ERROR: process \x22/bin/(?:ba)?sh -c |> \[[^\[\]\n]{1,40}\] RUN |[0-9]{1,4} \| >>> RUN ",
        r"|[•●⏺] Ran |(?:[│┃|][ \t]*)?[✔✓✗✘⊷?][ \t]+(?:Shell|Bash)[ \t]+|\|[ \t]+Bash[ \t]{2,}|Every [0-9.]{1,6}s: )[ \t]*",
    );
    known(&format!(r"^[ \t]*(?:{DECORATION})?{opener}"))
});

/// The same where a sentence, a quotation or a list may begin like this.
pub(super) static WEAK_OPENER: LazyLock<Regex> = LazyLock::new(|| known(&format!(r"^[ \t]*{WEAK_OPENERS}")));

const WEAK_OPENERS: &str = concat!(
    r"(?:(?:[-*•●⏺▶>] ?)?(?:RUN|CMD|Run|Ran|Running(?: command)?|Executing(?: command)?|exec)|~|>>|==>|-->|\[[0-9]{1,4}/[0-9]{1,4}\]",
    r"|(?:(?:[Oo]kay|[Oo]k|[Nn]ow|[Nn]ext|[Ff]irst|[Tt]hen)[,:]? )?(?:I(?:'|’)ll|I will|I(?:'|’)m going to|I am going to|[Ll]et me|[Ll]et(?:'|’)s|[Ll]et us)",
    r" (?:(?:now|just|first|also|simply|try to) ){0,2}(?:run|execute|try):?)[ \t]+",
);

/// The same in a line of a log.
pub(super) static LOGGED_OPENER: LazyLock<Regex> =
    LazyLock::new(|| known(&format!(r"^[ \t]*{DECORATION}{LEVEL}{WEAK_OPENERS}")));

/// What a line of a log begins with.
pub(super) static LOG_HEAD: LazyLock<Regex> =
    LazyLock::new(|| known(&format!(r"^[ \t]*(?:E[ \t]+)?{DECORATION}{LEVEL}")));

/// What says that a command was run: a quotation follows, and then nothing that makes it a sentence about the command.
pub(super) static REPORT: LazyLock<Regex> = LazyLock::new(|| {
    let report = concat!(
        r"(?:[^\x22`:\n]{1,60}:[ \t]+){0,3}(?i:(?:the )?command(?: line)?|(?:running|executing|spawning|invoking|ran|executed)",
        r"(?: (?:the )?(?:command|process|cmd))?:?|process didn't exit successfully:|(?:failed|unable) to (?:run|execute|spawn)",
        r"(?: (?:the )?(?:command|process))?:?|error (?:running|executing)(?: command)?:?)[ \t]+",
    );
    known(&format!(r"^{report}"))
});

/// What may follow on the quotation: what became of it, or nothing.
pub(super) static REPORT_END: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"^[.,:;)]{0,2}[ \t]*(?:$|\(exit|(?i:returned|failed|exited|timed out|died|finished|succeeded|terminated|with exit)\b)",
    )
});

/// The same without a quotation.
pub(super) static FAILED: LazyLock<Regex> = LazyLock::new(|| {
    let failed = concat!(
        r"(?:[^\s'\x22`:]{1,60}:[ \t]+){0,3}(?i:command failed(?: with [^:\n]{1,40})?|failed command|(?:error|failed) (?:running|executing)",
        r"(?: command)?|failed to (?:run|execute)(?: command)?):[ \t]+",
    );
    known(&format!(r"^{failed}"))
});

/// What is given to a shell by code and by files of settings that are shown.
pub(super) static IN_CODE: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r#"(?:\b(?:subprocess\.(?:run|call|check_call|check_output|Popen|getoutput)|os\.(?:system|popen)|(?:child_process\.)?exec(?:Sync)?"#,
        r#"|execa(?:Command)?|shell_exec|passthru|popen|system)\([ \t]*f?|\bExec(?:Start|Stop)(?:Pre|Post)?=[-+!@]{0,3}"#,
        r#"|\x22(?:pre|post)?(?:install|build|test|start|prepare|publish|pack|version|dev|deploy|clean)\x22[ \t]*:[ \t]*)"#,
    ))
});

/// A logged tool call, whose command an agent wraps and indents.
pub(super) static CALL: LazyLock<Regex> =
    LazyLock::new(|| known(r"^[ \t]*[•●⏺] ?(?:Bash|Shell|bash|shell|run_shell_command)\("));

/// What ends a command in a frame: a remark, and the frame.
pub(super) static FRAME_END: LazyLock<Regex> =
    LazyLock::new(|| known(r"(?:[ \t]\([^()\n]{0,120}\))?[ \t]*[│┃][ \t]*$"));

/// What a shell shows at the right edge of the terminal: a time, how long the last command took, whether it failed.
pub(super) static RIGHT_PROMPT: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"[ ]{4,}(?:\[[^\[\]\n]{1,30}\]|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?: [AP]M)?|(?:took )?[0-9.]{1,6}m?s",
        r"|[✔✘✓✗][^\n]{0,40})[ \t]*$",
    ))
});

/// What an agent writes behind a command: where it runs, and why.
pub(super) static PLACE: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"[ \t]+\[(?:current working directory|in) [^\[\]\n]{1,160}\](?:[ \t]\([^()\n]{0,120}\))?[ \t]*←?[ \t]*[│┃]?[ \t]*$",
    )
});

/// The element of a logged tool call that holds a command.
pub(super) static TAG: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r#"<(?i:parameter name=\\?"(?:command|cmd|script|input)\\?"|command|cmd|execute_bash|execute_command|bash"#,
        r"|bash-input|shell|run|run_command|tool_input)>[ \t]*",
    ))
});

/// The prompt with the folder behind its sign: `➜  app git:(main) ✗ `.
pub(super) static FOLDER_PROMPT: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"^[ \t]*(?:\([^()]{1,40}\) ?)?➜[ \t]+[A-Za-z0-9_.~/@-]{1,80}(?:[ \t]+git:\([^()\n]{1,60}\))?(?:[ \t]+[✗✔×±*])?[ \t]+",
    )
});

/// What begins a command as well as a comment, a quotation or a difference.
pub(super) static WEAK_PROMPT: LazyLock<Regex> = LazyLock::new(|| {
    let prompt = concat!(
        r"(?:(?:\([^()]{1,40}\) ?)?(?:\[[^\[\]]{1,80}\] ?|[A-Za-z0-9_.@~:/\\-]{1,80} ?)?(?:[#%](?:[ \t]+|$)|> )",
        r"|\++ (?:[^ \t]|$))",
    );
    known(&format!(r"^[ \t]*(?:[-*•●⏺▶] ?)?{DECORATION}{prompt}"))
});

/// What a shell prints before a line that goes on with the one before.
pub(super) static CONTINUATION_PROMPT: LazyLock<Regex> =
    LazyLock::new(|| known(r"^(?:(?:[a-z]{2,10} ?){0,3})?> ?"));

/// What a traced script or a prompt begins with: such a line goes on with none.
pub(super) static TRACE: LazyLock<Regex> = LazyLock::new(|| known(r"^[ \t]*(?:\++|#) "));

/// What says that a command follows: `Running: `, `Bash(command=`.
pub(super) static LABEL: LazyLock<Regex> = LazyLock::new(|| known(&format!(r"^[ \t]*{LABELS}")));

const LABELS: &str = concat!(
    r"(?:[-*•●⏺▶] ?)?(?:",
    r"(?i:(?:now |i'?ll |i will )?(?:running|run|executing|execute|exec|command|cmd|shell|bash|sh|input|action)",
    r"(?: (?:command|cmd|shell|bash|now|input))?[ \t]*[:=>][ \t]*)",
    r"|(?i:bash|shell|execute|run|exec|terminal|run_command|execute_command|execute_bash|run_shell_command)\([ \t]*",
    r"(?:(?i:command|cmd|script|code|input)[ \t]*[:=][ \t]*)?)",
);

/// The same in a line of a log.
pub(super) static LOGGED_LABEL: LazyLock<Regex> =
    LazyLock::new(|| known(&format!(r"^[ \t]*{DECORATION}{LEVEL}{LABELS}")));

/// The same inside a line: what sudo and cron write into a log.
pub(super) static LOG_LABEL: LazyLock<Regex> =
    LazyLock::new(|| known(r"(?:^|[ ;])(?:COMMAND=|CMD \(|cmd=|command=)[ \t]*"));

/// The member of a logged tool call that holds a command.
pub(super) static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r#"(?:\\?["'](?i:command|cmd|commands|bash|shell|script|input|code|run|arguments|args)\\?["'][ \t]*:[ \t]*\[?[ \t]*|[ \t,](?i:cmd|command|exec)=)\\?["']"#,
    )
});

/// A program, before the list of its arguments.
pub(super) static PROGRAM_BEFORE_LIST: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r#"(?:\\?["'](?i:command|cmd|program|executable)\\?["']|(?i:command|cmd))[ \t]*[:=][ \t]*\[?[ \t]*\\?["'][A-Za-z0-9_./-]{1,60}\\?["'][ \t]*\]?[ \t]*,?"#,
        r#"(?:[ \t]*\\?["'][A-Za-z_]{1,24}\\?["'][ \t]*:[ \t]*(?:\\?["'][^"'\\]{0,80}\\?["']|[0-9.]{1,12}|true|false|null)[ \t]*,){0,4}"#,
        r#"[ \t]*(?:\\?["'](?i:args|arguments|argv)\\?["']|(?i:args|arguments|argv))[ \t]*[:=][ \t]*$"#,
    ))
});

/// A program, behind the list of its arguments.
pub(super) static PROGRAM_AFTER_LIST: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r#"^[ \t]*,(?:[ \t]*\\?["'][A-Za-z_]{1,24}\\?["'][ \t]*:[ \t]*(?:\\?["'][^"'\\]{0,80}\\?["']|[0-9.]{1,12}|true|false|null)[ \t]*,){0,4}"#,
        r#"[ \t]*\\?["'](?i:command|cmd|program|executable)\\?["'][ \t]*:[ \t]*\\?["'](?P<program>[A-Za-z0-9_./-]{1,60})\\?["']"#,
    ))
});

/// The same from the program on.
pub(super) static LIST_AFTER_PROGRAM: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r#"^\\?["']?[A-Za-z0-9_./-]{1,60}\\?["'][ \t]*,(?:[ \t]*\\?["'][A-Za-z_]{1,24}\\?["'][ \t]*:[ \t]*"#,
        r#"(?:\\?["'][^"'\\]{0,80}\\?["']|[0-9.]{1,12}|true|false|null)[ \t]*,){0,4}"#,
        r#"[ \t]*\\?["'](?i:args|arguments|argv)\\?["'][ \t]*:[ \t]*\["#,
    ))
});

/// What stands before a list of arguments that is run.
pub(super) static LIST_LABEL: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r#"(?:\\?["'](?i:command|cmd|commands|argv|arguments|args|exec|entrypoint|shell|input)\\?["'][ \t]*:"#,
        r"|\b(?i:run|call|check_call|check_output|popen|spawn[a-z_]*|exec[a-z_]*|system|argv|args|cmd|command)[ \t]*[(=:])[ \t]*$",
    ))
});

fn known(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
}
