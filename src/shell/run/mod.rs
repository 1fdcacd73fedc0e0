//! Runs a script without running it: follows commands in order, keeps what is known of variables, files and pipes,
//! and notes what each command would do.
//!
//! Invariants: every loop charges the one step budget, every recursion one of the depth counters, so that no text can
//! take more than a bounded amount of work; whatever is cut off is noted as [`Unresolved`].

mod batch;
mod builtins;
mod call;
mod command;
mod compound;
mod decode;
mod doubts;
mod filters;
mod flow;
mod handed;
mod interpreters;
mod io;
mod later;
mod lists;
mod names;
mod output;
mod printf;
mod redirect;
mod scope;
mod signin;
mod simple;
mod sink;
mod suspicion;
mod telling;
#[cfg(test)]
mod tests;
mod unseen;
mod walk;
mod wrapper_table;
mod wrappers;

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use super::analysis::{Analysis, Unresolved, UnresolvedCause};
use super::argument::{Argument, CARRIED_HOLE, HOLE, Origin};
use super::ast::{Ast, CommandId, Span, SyntaxProblemKind};
use super::carried::{Carried, Read};
use super::effect::{Effect, EffectKind, Target, TargetKind};
use super::limits::Limits;
use super::programs::{Attributes, Language};
use super::syntax;
use crate::paths::Place;

pub(in crate::shell) use io::Io;
pub use later::{HOOK, UNCALLED};
pub(in crate::shell) use names::is_variable;
pub(in crate::shell) use scope::{Scope, Value};

/// Effects one analysis reports at most.
const EFFECTS_MAX: usize = 1_024;
/// Steps that one effect costs.
const EFFECT_STEPS: usize = 20;
/// Bytes that cost one step.
const BYTES_PER_STEP: usize = 32;
/// Calls of functions inside one another.
const CALLS_MAX: usize = 12;

/// What a shell command would do. Pure: the same answer for the same arguments.
///
/// `command` is text for a POSIX shell or bash; `place` is what is known of where it would run.
pub fn analyse(command: &str, place: Place<'_>, limits: &Limits) -> Analysis {
    let mut engine = Engine::new(place, limits);
    if command.len() > limits.bytes_max {
        engine.note(UnresolvedCause::TooLarge, 0..command.len());
        return engine.analysis;
    }
    engine.run_root(command);
    engine.analysis
}

/// What a command given as a vector of arguments would do; no shell splits or expands them.
///
/// Spans count bytes as if the arguments were joined by single blanks.
pub fn analyse_argv(argv: &[String], place: Place<'_>, limits: &Limits) -> Analysis {
    let mut engine = Engine::new(place, limits);
    let bytes = argv.iter().map(|argument| argument.len() + 1).sum::<usize>();
    if bytes > limits.bytes_max {
        engine.note(UnresolvedCause::TooLarge, 0..bytes);
        return engine.analysis;
    }
    let mut start = 0;
    let arguments: Vec<Argument> = argv
        .iter()
        .map(|text| {
            let span = start..start + text.len();
            start = span.end + 1;
            Argument::constant(text.replace('\0', ""), span)
        })
        .collect();
    engine.run_argv(&arguments, &(0..bytes.saturating_sub(1)));
    engine.analysis
}

/// A parsed script that is running.
#[derive(Clone, Copy)]
pub(in crate::shell) struct Script<'s> {
    /// Its tree.
    pub ast: &'s Ast<'s>,
    /// Its text.
    pub text: &'s str,
    /// Number of this script.
    id: u32,
    /// For a script inside a script: the span of the argument it came from, which is what its parts report.
    from: Option<&'s Range<usize>>,
}

impl Script<'_> {
    /// A span of this script as a span of the whole command.
    pub fn span(&self, span: Span) -> Range<usize> {
        self.from.map_or_else(|| span.start as usize..span.end as usize, Clone::clone)
    }
}

/// A function call that is under way.
struct Call {
    /// The text of the function's body, which tells it from another of the same name.
    body: std::rc::Rc<str>,
    /// How many pipelines and background jobs were under way when it began.
    concurrency: usize,
}

/// State of one analysis.
pub(in crate::shell) struct Engine<'a> {
    /// What is known of where the command would run.
    pub place: Place<'a>,
    limits: &'a Limits,
    steps: usize,
    stopped: bool,
    /// Variables and the like.
    pub scope: Scope,
    io: Io,
    files: io::Files,
    analysis: Analysis,
    seen: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
    via: Vec<&'static str>,
    calls: Vec<Call>,
    /// Functions that were called, by where their texts are.
    called: HashSet<*const u8>,
    /// Functions that the shell was told to call by itself.
    hooks: Vec<String>,
    concurrency: usize,
    /// The coprocess that was started last, by the script that it stands in.
    coprocess: Option<(u32, CommandId)>,
    nesting: usize,
    depth: usize,
    scripts: u32,
    /// Which of the values that branches left is looked at.
    pub choice: usize,
    /// Where the unknown pieces of the running script come from.
    holes: Origin,
    remote: usize,
    trial: usize,
    facts: io::Facts,
    /// Files that were read so far.
    reads: Vec<Read>,
    /// How many were read before the command that runs.
    reads_from: usize,
    /// The first thing that the program which runs did with another host, whether it was told before or not.
    talk: Option<Effect>,
    /// What that program was told to send.
    sent: Vec<Effect>,
    /// What runs when the script ends.
    at_exit: Vec<Argument>,
    /// Files whose text the unknown pieces of the running script may be.
    holes_carried: Carried,
    unseen: unseen::Unseen,
    /// Variables that may be empty and how far they were looked at.
    doubts: doubts::Doubts,
    /// Process substitutions that wait for their command.
    sinks: Vec<super::ast::ListId>,
    /// Every command that ran, for tests.
    #[cfg(test)]
    trace: Vec<Vec<String>>,
}

impl<'a> Engine<'a> {
    fn new(place: Place<'a>, limits: &'a Limits) -> Self {
        Self {
            place,
            limits,
            steps: limits.steps_max,
            stopped: false,
            scope: Scope::default(),
            io: Io::default(),
            files: io::Files::default(),
            analysis: Analysis::default(),
            seen: HashSet::default(),
            via: Vec::new(),
            calls: Vec::new(),
            called: HashSet::new(),
            hooks: Vec::new(),
            concurrency: 0,
            coprocess: None,
            nesting: 0,
            depth: 0,
            scripts: 0,
            choice: 0,
            holes: Origin::Environment,
            remote: 0,
            trial: 0,
            facts: io::Facts::default(),
            reads: Vec::new(),
            reads_from: 0,
            talk: None,
            sent: Vec::new(),
            at_exit: Vec::new(),
            holes_carried: Carried::default(),
            unseen: unseen::Unseen::default(),
            doubts: doubts::Doubts::default(),
            sinks: Vec::new(),
            #[cfg(test)]
            trace: Vec::new(),
        }
    }

    /// Arguments of every call of a program.
    #[cfg(test)]
    fn calls_of(&self, program: &str) -> Vec<Vec<String>> {
        let calls = self.trace.iter().filter(|argv| argv[0] == program);
        calls.map(|argv| argv[1..].to_vec()).collect()
    }

    fn run_root(&mut self, command: &str) {
        // NUL stands for unknown pieces inside; no shell would see one.
        let cleaned;
        let text = if command.contains('\0') {
            cleaned = command.replace('\0', " ");
            &cleaned
        } else {
            command
        };
        // A whole file of another language, whose first line says which. To a shell that line is a comment, and what
        // stands below it runs as commands: both are looked at.
        let language = command::language_of(text).or_else(|| command::language_of_source(text));
        if let Some(language) = language {
            self.run_script_text(language, &Argument::constant(text, 0..text.len()), "script");
        }
        if self.place.os == crate::paths::Os::Windows || command::looks_like_powershell(text) {
            self.run_script_text(
                Language::PowerShell,
                &Argument::constant(text, 0..text.len()),
                "powershell",
            );
        }
        let ast = syntax::parse(text, self.limits);
        let script = Script { ast: &ast, text, id: 0, from: None };
        self.run_script(&script);
        // By now the variables hold what they hold at the end.
        for text in std::mem::take(&mut self.at_exit) {
            self.run_text(&text, Some("trap"));
        }
        if self.limits.is_whole {
            self.run_later(&script);
        }
        if language.is_some() {
            // Another language is no valid shell, which says nothing.
            self.analysis.unresolved.retain(|unresolved| unresolved.cause != UnresolvedCause::Syntax);
        }
    }

    /// Runs a text as a script of its own, such as that of `bash -c`, in the current scope.
    pub fn run_text(&mut self, text: &Argument, via: Option<&'static str>) {
        let span = text.span.clone();
        if self.depth >= self.limits.depth_max {
            self.note(UnresolvedCause::TooDeep, span);
            return;
        }
        if !self.charge(50 + text.text.len() / 4) {
            return;
        }
        if self.is_opaque(text) {
            self.opaque(text, via);
            return;
        }
        self.note_decoded(&text.text, &span);
        let marked = (!text.carried.is_empty() && text.text.contains(HOLE))
            .then(|| text.text.replace(HOLE, CARRIED_HOLE.encode_utf8(&mut [0; 4])));
        let source = marked.as_deref().unwrap_or(&text.text);
        let ast = syntax::parse(source, self.limits);
        self.scripts += 1;
        self.depth += 1;
        self.via.extend(via);
        let holes = std::mem::replace(&mut self.holes, text.origin.clone());
        let carried = std::mem::replace(&mut self.holes_carried, text.carried.clone());
        self.run_script(&Script { ast: &ast, text: source, id: self.scripts, from: Some(&span) });
        self.holes = holes;
        self.holes_carried = carried;
        self.via.truncate(self.via.len() - usize::from(via.is_some()));
        self.depth -= 1;
    }

    fn run_script(&mut self, script: &Script<'_>) {
        for problem in &script.ast.problems {
            let cause = match problem.kind {
                SyntaxProblemKind::Unterminated | SyntaxProblemKind::Unexpected => UnresolvedCause::Syntax,
                SyntaxProblemKind::TooDeep => UnresolvedCause::TooDeep,
                SyntaxProblemKind::TooLarge => UnresolvedCause::TooLarge,
            };
            self.note(cause, script.span(problem.span));
        }
        if let Some(root) = script.ast.root {
            self.list(script, root);
        }
    }

    /// Takes steps from the budget; false when it is used up.
    pub fn charge(&mut self, steps: usize) -> bool {
        if self.stopped {
            return false;
        }
        match self.steps.checked_sub(steps) {
            Some(left) => self.steps = left,
            None => {
                self.stopped = true;
                self.analysis.unresolved.push(Unresolved { cause: UnresolvedCause::TooMuchWork, span: 0..0 });
            }
        }
        !self.stopped
    }

    /// Takes the steps that so many bytes cost.
    pub fn charge_bytes(&mut self, bytes: usize) -> bool {
        self.charge(1 + bytes / BYTES_PER_STEP)
    }

    /// Notes what could not be analysed.
    pub fn note(&mut self, cause: UnresolvedCause, span: Range<usize>) {
        let new = Unresolved { cause, span };
        // Only the first few are compared: the list is for people, and each cause counts once for a decision.
        let list = &mut self.analysis.unresolved;
        if list.len() < 32 && !list.contains(&new) || !list.iter().any(|old| old.cause == cause) {
            list.push(new);
        }
    }

    /// Adds an effect unless it was seen.
    fn push(&mut self, effect: Effect) {
        let mut hasher = DefaultHasher::new();
        effect.kind.hash(&mut hasher);
        if let Some(target) = &effect.target {
            target.text.hash(&mut hasher);
            target.has_glob.hash(&mut hasher);
            target.kind.hash(&mut hasher);
        }
        (effect.recursive, effect.forced, &effect.detail, &effect.program).hash(&mut hasher);
        (effect.span.start, effect.span.end).hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return;
        }
        if self.analysis.effects.len() >= EFFECTS_MAX {
            self.note(UnresolvedCause::TooMuchWork, effect.span);
            return;
        }
        self.analysis.effects.push(effect);
    }

    /// Adds an effect of a command or redirection.
    fn effect(
        &mut self,
        kind: EffectKind,
        target: Option<Target>,
        attributes: Attributes,
        program: &str,
        argv: &Arc<[Argument]>,
        span: &Range<usize>,
    ) {
        let target = target.map(|target| self.resolve_target(target));
        // Whoever judges the effect looks at all of the path.
        let bytes = target.as_ref().map_or(0, |target| target.text.len());
        if !self.charge(EFFECT_STEPS + bytes / 8) {
            return;
        }
        // Pipes of process substitutions are no files.
        let is_file = matches!(kind, EffectKind::ReadPath | EffectKind::WritePath);
        if is_file && target.as_ref().is_some_and(|target| target.text.starts_with("/dev/fd/")) {
            return;
        }
        if let Some(target) =
            target.as_ref().filter(|_| kind == EffectKind::ReadPath && attributes.detail != "option")
        {
            self.note_read(target, attributes.recursive);
        }
        if kind == EffectKind::RevealSecret {
            self.note_secret(program, &attributes.detail, argv);
        }
        let effect = Effect {
            kind,
            target,
            recursive: attributes.recursive,
            forced: attributes.forced,
            detail: attributes.detail,
            program: program.to_owned(),
            argv: Arc::clone(argv),
            span: span.clone(),
            via: self.via.clone(),
        };
        if matches!(kind, EffectKind::Fetch | EffectKind::SendData) {
            self.talk.get_or_insert_with(|| effect.clone());
            if kind == EffectKind::SendData {
                self.sent.push(effect.clone());
            }
        }
        self.push(effect);
    }

    /// Spells a path in its one way; on another machine or in a container it becomes a remote one.
    fn resolve_target(&mut self, mut target: Target) -> Target {
        if target.kind == TargetKind::Path {
            let cwd = self.cwd();
            let place = if self.remote > 0 {
                target.kind = TargetKind::Remote;
                Place { cwd: &cwd, home: "", os: crate::paths::Os::Linux }
            } else {
                Place { cwd: &cwd, ..self.place }
            };
            if let std::borrow::Cow::Owned(spelled) = redirect::spell(&target.text, &place) {
                target.text = spelled;
            }
        }
        target
    }

    /// Enters a level of syntax; false when there are too many.
    pub fn enter(&mut self, span: impl FnOnce() -> Range<usize>) -> bool {
        if self.nesting >= self.limits.nesting_max {
            let span = span();
            self.note(UnresolvedCause::TooDeep, span);
            return false;
        }
        self.nesting += 1;
        true
    }

    /// Leaves a level of syntax.
    pub fn leave(&mut self) {
        self.nesting -= 1;
    }
}
