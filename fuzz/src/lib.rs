//! What the fuzz targets do: one function each, from arbitrary bytes to a panic when something promised does not hold.
//!
//! Bytes that are no UTF-8 are read with replacement characters where the code under test takes text, as a server only
//! ever gets text there. Nothing here limits how long a run may take; libFuzzer does (`-timeout`), and the smoke test
//! keeps its inputs small.

mod commands;
mod layers;
mod validators;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use portcullis::bundles::code::{self, Language};
use portcullis::bundles::rules::BundleRules;
use portcullis::commands::CommandRules;
use portcullis::config::{Overrides, Settings};
use portcullis::decision::{Direction, Mode, OutputStream};
use portcullis::detect::{PII, SECRETS};
use portcullis::messages::{
    CacheConfig, CheckOutcome, CheckRequest, Field, FieldPath, Message, MessageEngine, MessagesConfig,
};
use portcullis::monitor::{
    Attachment, Effect, Event, Ids, Limits as SessionLimits, MonitorPreparer, Plan, Session,
};
use portcullis::policy::{self, CallerRole, Snapshot, Sources, Vocabulary};
use portcullis::rules::{CountrySet, Role, RuleSet, RuleSetConfig, RuleSource};
use portcullis::shell::ast::{Ast, Part, Span};
use portcullis::text::{self, Limits, OffsetEncoding, View};
use portcullis::tools::condition::{Expression, Input, Inputs, Variable};
use portcullis::tools::json::{Document, Duplicates, Member};
use portcullis::tools::{Hook, strip_ansi};

pub use commands::commands;
pub use layers::layers;
pub use validators::validators;

/// The body of a fuzz target: must hold for any bytes.
pub type Target = fn(&[u8]);

/// Every target by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("text_views", text_views),
    ("layers", layers),
    ("validators", validators),
    ("rule_file", rule_file),
    ("rules_import", rules_import),
    ("engine", engine),
    ("policy_file", policy_file),
    ("settings", settings),
    ("tool_rules", tool_rules),
    ("shell_syntax", shell_syntax),
    ("commands", commands),
    ("paths", paths),
    ("monitor", monitor),
    ("bundle_code", bundle_code),
];

/// Ranges looked at in one view. More would make long inputs cost their square.
const RANGES_MAX: usize = 64;

/// Views of any text: every range of every view leads back to whole characters of the text.
pub fn text_views(data: &[u8]) {
    let source = String::from_utf8_lossy(data);
    let made = text::views(&source, &Limits::default());
    assert_eq!(made.views[0].text(), source, "the first view is the text as sent");
    for view in &made.views {
        check_view(&source, view);
        check_view(&source, &text::rot13(view));
        check_view(&source, &text::reversed(view));
        text::leet(view).iter().for_each(|view| check_view(&source, view));
        text::spaced(view).iter().for_each(|view| check_view(&source, view));
        text::morse(view).iter().for_each(|view| check_view(&source, view));
        text::pig_latin(view, |_| true).iter().for_each(|view| check_view(&source, view));
        check_view(&source, &text::reversed_words(view));
        let middle = view.text().len() / 2;
        let sign = middle..middle;
        text::layout(view, std::slice::from_ref(&sign), |_| true)
            .iter()
            .for_each(|undone| check_view(&source, &undone.view));
    }
    check_offsets(&source);
}

fn check_view(source: &str, view: &View<'_>) {
    let starts: Vec<usize> =
        view.text().char_indices().map(|(at, _)| at).chain([view.text().len()]).collect();
    let step = starts.len().div_ceil(RANGES_MAX).max(1);
    for (nth, start) in starts.iter().copied().enumerate().step_by(step) {
        for end in [nth, nth + 1, nth + 7, starts.len() - 1].map(|nth| starts[nth.min(starts.len() - 1)]) {
            if end < start {
                continue;
            }
            let range = view.to_source(start..end);
            assert!(
                source.get(range.clone()).is_some(),
                "{start}..{end} leads to {range:?}, which cuts a character"
            );
            assert!(start == end || !range.is_empty(), "{start}..{end} leads nowhere");
            let is_changed = view.is_changed(start..end);
            assert!(start == end || !is_changed || view.may_be_new(start..end), "{start}..{end} is not new");
            let _ = view.layers_in(start..end);
        }
    }
}

/// Offsets in the three units agree with counting by hand.
fn check_offsets(source: &str) {
    let step = source.len().div_ceil(RANGES_MAX).max(1);
    let bytes: Vec<usize> = source.char_indices().map(|(at, _)| at).step_by(step).collect();
    for (encoding, count) in [
        (OffsetEncoding::Utf8, (|text| text.len()) as fn(&str) -> usize),
        (OffsetEncoding::Utf16, |text| text.encode_utf16().count()),
        (OffsetEncoding::Utf32, |text| text.chars().count()),
    ] {
        let mut offsets = bytes.clone();
        text::convert_offsets(source, encoding, &mut offsets);
        let wanted: Vec<usize> = bytes.iter().map(|at| count(&source[..*at])).collect();
        assert_eq!(offsets, wanted, "{encoding:?}");
        assert_eq!(text::line_columns(source, encoding, &bytes).len(), bytes.len());
    }
}

/// Any configuration of another scanner: it is refused, or every rule is imported or said, and what came out compiles.
pub fn rules_import(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(imported) =
        portcullis::rules::import::import_gitleaks(&text, portcullis::decision::Severity::High)
    else {
        return;
    };
    let source = RuleSource::custom("imported.toml", "secrets", imported.toml.as_str());
    match RuleSet::compile(&[source], &RuleSetConfig::default()) {
        Ok(rules) => assert_eq!(rules.rules().len(), imported.rules),
        Err(problems) => panic!("{problems}\n{}", imported.toml),
    }
}

/// Any rules file: it compiles or has problems; what compiles can be run over anything, its own text included.
pub fn rule_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    let source = RuleSource::custom("fuzz.toml", "fuzz", text.as_str());
    match RuleSet::compile(&[source], &RuleSetConfig::default()) {
        Ok(rules) => {
            let scanner = portcullis::detect::Scanner::new(rules.into());
            let request =
                portcullis::detect::Request { text: &text, plugins: u32::MAX, role: None, surface: None };
            let scanned = scanner.scan(request, &portcullis::rules::Budget::UNLIMITED);
            for found in scanned.unwrap_or_default().findings {
                assert!(text.get(found.range.clone()).is_some(), "{:?} cuts a character", found.range);
            }
        }
        Err(problems) => assert!(!problems.0.is_empty() && !problems.to_string().is_empty()),
    }
}

/// The rules and policies that ship with the program.
static SNAPSHOT: LazyLock<Snapshot> =
    LazyLock::new(|| policy::load(&Sources::default(), None).expect("what ships with the program loads"));

/// An engine that remembers nothing, so that every run is the first.
static ENGINE: LazyLock<MessageEngine> = LazyLock::new(|| {
    let cache = CacheConfig { enabled: false, ..CacheConfig::default() };
    MessageEngine::new(MessagesConfig::default(), &cache, Vec::new(), Vec::new())
});

/// Any conversation under the policy that ships: every finding lies in its field, redaction leaves nothing of what it
/// takes out, and JSON stays JSON.
///
/// The first byte chooses roles and the unit of offsets; the rest, cut at bytes 0xFF, are the fields.
pub fn engine(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let texts: Vec<_> = rest.split(|byte| *byte == 0xFF).map(String::from_utf8_lossy).collect();
    let messages: Vec<Message<'_>> =
        texts.iter().enumerate().map(|(nth, text)| message(*choice, nth, text)).collect();
    let encoding =
        [OffsetEncoding::Utf8, OffsetEncoding::Utf16, OffsetEncoding::Utf32][usize::from(choice >> 2) % 3];
    let outcome = check(&messages, encoding);
    for reported in &outcome.reported {
        check_place(&messages, reported);
    }
    let mut cleaned = messages.clone();
    for field in &outcome.redacted {
        let old = &mut cleaned[field.message_index as usize].fields;
        let old = old.iter_mut().find(|old| old.path == field.path).expect("a field that was sent");
        if old.path.is_json() {
            let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            assert!(!is_json(old.text) || is_json(&field.text), "{} became {}", old.text, field.text);
        }
        old.text = &field.text;
    }
    let left = check(&cleaned, encoding);
    // What the first round listed as unjudged it did not look into, so it may be found now.
    if outcome.unjudged.is_empty() {
        let is_left = |category: &portcullis::decision::Category| {
            category.is_within(PII) || category.is_within(SECRETS)
        };
        let left =
            left.reported.iter().find(|left| left.finding.is_effective() && is_left(&left.finding.category));
        assert!(left.is_none(), "redaction left {left:?} of {messages:?}");
    }
}

fn message(choice: u8, nth: usize, text: &str) -> Message<'_> {
    let role = [Role::User, Role::Tool, Role::Assistant, Role::System][(usize::from(choice) + nth) % 4];
    let path = match role {
        Role::Assistant => FieldPath::ToolArgs(0),
        Role::Tool => FieldPath::PartJson(0),
        _ => FieldPath::Text,
    };
    Message { role, fields: vec![Field { path, text }], media_parts: 0 }
}

fn check(messages: &[Message<'_>], encoding: OffsetEncoding) -> CheckOutcome {
    let request = CheckRequest {
        messages,
        policy: "",
        caller_roles: &[CallerRole::Agent],
        tenant: "",
        plugins: &[],
        allow_list: &[],
        countries: CountrySet::EMPTY,
        direction: Direction::Input,
        encoding,
        redact: true,
        reveal: false,
        deadline: None,
        decision_id: "",
        sent: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(ENGINE.check(&SNAPSHOT, request)).expect("a conversation without a deadline is judged")
}

fn check_place(messages: &[Message<'_>], reported: &portcullis::messages::Reported) {
    let span = &reported.finding.span;
    let fields = &messages[span.message_index as usize].fields;
    let field =
        fields.iter().find(|field| *field.path.to_pointer() == *span.path).expect("a field that was sent");
    assert!(field.text.get(span.start..span.end).is_some(), "{span:?} does not lie in {:?}", field.text);
    assert!(span.start < span.end, "{span:?} is empty");
    assert!(reported.start <= reported.end && reported.line >= 1 && reported.column >= 1);
    assert!((0.0..=1.0).contains(&reported.finding.score));
    assert!(reported.finding.shadow <= (messages[span.message_index as usize].role == Role::System));
}

/// Any policy file: it compiles or has problems; what compiles and is written out again is the same policy.
pub fn policy_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let vocabulary = Vocabulary::default();
    match policy::compile(&[policy::Source { file: "fuzz.yaml", text: &text }], &vocabulary) {
        Ok(set) => {
            for policy in set.iter() {
                let yaml = policy.to_yaml();
                let again =
                    policy::compile(&[policy::Source { file: "again.yaml", text: &yaml }], &vocabulary);
                let again = again.unwrap_or_else(|problems| panic!("{problems}\nin:\n{yaml}"));
                let same = again.get(policy.name()).expect("it keeps its name");
                assert_eq!(same.to_yaml(), yaml, "written out twice");
                assert_eq!(same.plugin_mode(PII) == Mode::Off, policy.plugin_mode(PII) == Mode::Off);
            }
        }
        Err(problems) => {
            assert!(problems.iter().count() > 0);
            for problem in problems.iter() {
                assert!(problem.place.file.ends_with("fuzz.yaml"), "{problem} is about another file");
            }
        }
    }
}

/// Any settings: they load or have problems.
///
/// The bytes are variables of the environment, a line each. A file would have to be written first, and passes through
/// the same reader of YAML as policies do.
pub fn settings(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let variables = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (format!("PORTCULLIS_{}", name.to_ascii_uppercase()), value.to_owned()));
    let is_file = |name: &str| name == "PORTCULLIS_CONFIG";
    let variables = variables.filter(|(name, _)| !is_file(name));
    match Settings::load(Overrides::default(), variables, Path::new("/nonexistent")) {
        Ok((settings, sources)) => {
            let mut problems = Vec::new();
            settings.check(&mut problems);
            assert!(problems.is_empty(), "{problems:?}");
            assert!(!portcullis::config::render_text(&settings, &sources).is_empty());
        }
        Err(problems) => assert!(!problems.0.is_empty() && !problems.to_string().is_empty()),
    }
}

/// A call with this document as every variable that is JSON.
struct Everywhere<'d>(&'d Document<'d>);

impl Inputs for Everywhere<'_> {
    fn input(&self, variable: Variable) -> Input<'_> {
        match variable {
            Variable::Hook | Variable::Tool | Variable::Message => Input::Text(self.0.text()),
            Variable::Params => Input::Absent,
            _ => Input::Json(self.0),
        }
    }
}

/// Arguments, a patch and an expression, cut at bytes 0xFF: reading keeps the text, what an edit leaves is JSON, no
/// terminal sequence is left, and an expression compiles or has a place, and runs to a value or an error.
pub fn tool_rules(data: &[u8]) {
    let texts: Vec<_> = data.splitn(3, |byte| *byte == 0xFF).map(String::from_utf8_lossy).collect();
    let text = |nth: usize| texts.get(nth).map_or("", |text| &**text);
    // A single text is looked at as everything.
    let (args, patch, code) = (text(0), text(texts.len().min(2) - 1), text(texts.len() - 1));
    let stripped = strip_ansi::strip(args);
    assert_eq!(strip_ansi::strip(&stripped), stripped, "stripped twice");
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let parsed = Document::parse(args, Duplicates::Keep);
    if let Ok(document) = &parsed {
        assert!(is_json(args) && document.text() == args);
        if let Some((stripped, count)) = strip_ansi::strip_json(document) {
            assert!(is_json(&stripped) && count > 0, "{args} became {stripped}");
        }
        if let (Ok(patch), Ok(_)) = (Document::parse_object(patch), Document::parse_object(args))
            && let Some(merged) = document.merge(&patch)
        {
            let merged = Document::parse_object(merged).expect("merging leaves an object");
            assert_eq!(merged.merge(&patch), None, "a patch applied twice changes nothing");
        }
        if let Ok(member) = Member::parse(code)
            && let Ok(Some(set)) = document.set(&member, "[1.10]")
        {
            assert!(is_json(&set), "{args} became {set}");
        }
    }
    match Expression::compile(code, Hook::ALL[data.len() % 4]) {
        Ok(expression) => {
            if let Ok(document) = &parsed {
                let value = expression.json(&Everywhere(document));
                assert!(value.is_err() || value.as_deref().is_ok_and(is_json), "{code} gives {value:?}");
            }
        }
        Err(error) => assert!(error.line >= 1 && error.column >= 1 && !error.what.is_empty()),
    }
}

/// Any script, under limits that the first two bytes choose: the tree lies in the source, is of bounded size, and is
/// the same every time.
pub fn shell_syntax(data: &[u8]) {
    let Some((choice, rest)) = data.split_first_chunk::<2>() else { return };
    let source = String::from_utf8_lossy(rest);
    let limits = portcullis::shell::limits::Limits {
        nesting_max: usize::from(choice[0]),
        steps_max: if choice[1] == 0 { 100 } else { 200_000 },
        bytes_max: if choice[1] == 1 { 50 } else { 1 << 20 },
        ..Default::default()
    };
    let parse = || portcullis::shell::syntax::parse(&source, &limits);
    let ast = parse();
    check_tree(&source, &ast);
    let nodes = ast.words.len() + ast.commands.len();
    assert!(nodes <= 2 * source.len() + 2, "{nodes} nodes of {} bytes", source.len());
    assert_eq!(format!("{ast:?}"), format!("{:?}", parse()), "read twice");
}

fn check_tree(source: &str, ast: &Ast<'_>) {
    let check = |span: Span| {
        let text = source.get(span.start as usize..span.end as usize);
        assert!(text.is_some(), "{span:?} does not lie in {source:?}");
    };
    ast.problems.iter().for_each(|problem| check(problem.span));
    for command in &ast.commands {
        check(command.span);
        command.redirects.iter().for_each(|redirect| check(redirect.span));
    }
    for word in &ast.words {
        check(word.span);
        for part in &word.parts {
            match part {
                Part::Bare(text) => assert!(!text.is_empty() && !text.contains('\0'), "{text:?}"),
                Part::Quoted(text) => assert!(!text.contains('\0'), "{text:?}"),
                Part::Command { body, .. } | Part::Process { body, .. } => {
                    assert!((body.0 as usize) < ast.lists.len(), "a list that is not there");
                }
                Part::Parameter(_) | Part::Arithmetic { .. } => {}
            }
        }
    }
}

/// Any path, place and patch: one spelling stays one, what a link leads to never makes an answer milder, a prefix of
/// the answer's work is enough for any length, and a file of path rules compiles or has problems.
///
/// The first byte chooses system, tool and wildcards; the rest, cut at bytes 0xFF, is a path, the working directory,
/// the home, a root of the workspace, and where the path leads.
pub fn paths(data: &[u8]) {
    use portcullis::paths::{
        Access, Os, PathRequest, PathRuleSource, Place, SensitivePaths, Via, kind_of, normalise, patch_paths,
        within,
    };
    let Some((choice, rest)) = data.split_first() else { return };
    let texts: Vec<_> = rest.split(|byte| *byte == 0xFF).map(String::from_utf8_lossy).collect();
    let text = |nth: usize| texts.get(nth).map_or("", |text| text);
    let os = [Os::Linux, Os::MacOs, Os::Windows][usize::from(choice & 3) % 3];
    let place = Place { cwd: text(1), home: text(2), os };
    let path = text(0);

    let spelled = normalise(path, &place);
    assert_eq!(normalise(&spelled, &place), spelled, "{path:?} at {place:?} has two spellings");
    let _ = kind_of(&spelled, &place);
    assert!(within(&spelled, &spelled, os), "{spelled:?} is not within itself");

    let roots = if text(3).is_empty() { Vec::new() } else { vec![text(3).to_owned()] };
    let request = PathRequest {
        path,
        access: Access::ALL[usize::from(choice >> 2) % 3],
        via: if choice & 16 == 0 { Via::FileTool } else { Via::Shell("cat") },
        has_glob: choice & 32 != 0,
        is_recursive: choice & 64 != 0,
        place: &place,
        workspace_roots: &roots,
        resolved: texts.get(4).map(|text| &**text),
    };
    let set = SensitivePaths::builtin();
    let judged = set.judge(&request);
    let alone = set.judge(&PathRequest { resolved: None, ..request });
    let strictness = |hit: &Option<portcullis::paths::SensitiveHit<'_>>| {
        hit.as_ref().map(|hit| (hit.action, hit.severity))
    };
    assert!(strictness(&judged.hit) >= strictness(&alone.hit), "{path:?} is milder for where it leads");
    assert_eq!(judged.oddity, alone.oddity);

    let whole = String::from_utf8_lossy(rest);
    for touched in patch_paths(&whole).paths {
        assert!(!touched.path.is_empty() && touched.path.len() <= 2 * whole.len() + 1, "{touched:?}");
    }
    if whole.contains("rule") {
        let source = PathRuleSource { file: "fuzz.toml", text: &whole };
        if let Err(problems) = SensitivePaths::load(&[source]) {
            assert!(!problems.0.is_empty() && !problems.to_string().is_empty());
        }
    }
}

/// The plan of the built-in policy.
static PLAN: LazyLock<Arc<Plan>> = LazyLock::new(|| {
    let sources = Sources { prepare: vec![Arc::new(MonitorPreparer)], ..Sources::default() };
    let snapshot = policy::load(&sources, None).expect("what ships with the program loads");
    Plan::of(&snapshot, policy::DEFAULT_POLICY).expect("the monitor has prepared")
});

/// Ids that count.
struct Counted(u64);

impl Ids for Counted {
    fn next(&mut self) -> Arc<str> {
        self.0 += 1;
        self.0.to_string().into()
    }
}

/// Any output of a process, cut anywhere: the incidents are the same, their offsets lie in the output, their texts are
/// short, and the memory that is held stays small. The first byte chooses where it is cut.
pub fn monitor(data: &[u8]) {
    let Some((choice, output)) = data.split_first() else { return };
    let whole = incidents(output, output.len().max(1));
    assert_eq!(incidents(output, usize::from(*choice) % 61 + 1), whole, "cut after every few bytes");
    for (_, offset, matched, excerpt) in &whole {
        assert!(*offset < output.len() as u64, "{offset} lies beyond {} bytes", output.len());
        assert!(matched.chars().count() <= 301 && excerpt.chars().count() <= 4_000);
        assert!(!excerpt.contains('\u{1b}') && !matched.contains('\u{1b}'), "{matched:?}");
    }
}

/// Rule, offset, matched text and excerpt of every incident.
fn incidents(output: &[u8], chunk: usize) -> Vec<(String, u64, String, String)> {
    let mut effects = Vec::new();
    let ids = Box::new(Counted(0));
    let mut session =
        Session::attach(Attachment::default(), PLAN.clone(), SessionLimits::default(), ids, &mut effects);
    let now = portcullis::monitor::now();
    for data in output.chunks(chunk) {
        session.on(Event::Chunk { stream: OutputStream::Stdout, data, seq: 0 }, now, &mut effects);
        let memory = session.memory();
        assert!(memory < 512 * 1024, "{memory} bytes are held");
    }
    session.on(Event::Closed, now, &mut effects);
    assert!(matches!(effects.last(), Some(Effect::End(Ok(())))), "the session has ended");
    let incident = |effect: &Effect| match effect {
        Effect::Incident(one) => {
            Some((one.rule_id.to_string(), one.offset, one.matched_text.clone(), one.excerpt.to_string()))
        }
        _ => None,
    };
    effects.iter().filter_map(incident).collect()
}

/// Code of a bundle, in either language: the same report each time, and findings that stand in the file.
pub fn bundle_code(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = text.split('\n').count();
    for (language, path) in [(Language::Python, "a.py"), (Language::JavaScript, "a.tsx")] {
        let look = || code::scan(language, path, &text, BundleRules::builtin(), CommandRules::builtin());
        let report = look();
        for finding in &report.findings {
            assert!((1..=lines).contains(&(finding.line as usize)), "a line of the file: {finding:?}");
            assert_eq!(finding.file, path);
        }
        assert_eq!(report, look(), "the same each time");
    }
}
