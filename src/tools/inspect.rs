//! What the arguments of a guarded tool would do: commands analysed, paths named. Shared by the guards and conditions.

use std::ops::Range;

use super::arguments::Fault;
use super::call::Call;
use super::json::Value;
use crate::paths::{Access, Place, normalise, patch_paths};
use crate::shell::analysis::Analysis;
use crate::shell::effect::{Effect, TargetKind};
use crate::shell::limits::Limits;
use crate::shell::{analyse, analyse_argv};
use crate::text::json;

/// Most addresses of one call that are looked at.
const URLS_MAX: usize = 64;

/// What the arguments of a guarded tool would do. Empty for a tool that no guard knows.
#[derive(Debug, Default)]
pub struct Inspection {
    /// Commands, in the order of the arguments.
    pub commands: Vec<InspectedCommand>,
    /// Paths that arguments name themselves.
    pub paths: Vec<InspectedPath>,
    /// What is wrong with the arguments.
    pub faults: Vec<Fault>,
    /// Working directory of the commands, absolute where that is known.
    pub cwd: String,
}

/// A command among the arguments.
#[derive(Debug)]
pub struct InspectedCommand {
    /// What it would do.
    pub analysis: Analysis,
    /// Whether it is fed to a running process, which may be no shell, or is none but an address: what no shell accepts is then no
    /// fault.
    pub is_input: bool,
    /// Where its text is written in the arguments: one string, or the items of a vector with the start of each in the
    /// spans of the analysis.
    source: Source,
}

#[derive(Debug)]
enum Source {
    Script(Range<usize>),
    Vector(Vec<(usize, Range<usize>)>),
}

/// A path that an argument names.
#[derive(Debug)]
pub struct InspectedPath {
    /// The path as it was given.
    pub path: String,
    /// What would be done to it.
    pub access: &'static [Access],
    /// Where it is written in the arguments, in bytes.
    pub raw: Range<usize>,
}

impl InspectedCommand {
    /// Where a span of the analysis is written in the arguments, in bytes.
    pub fn raw_span(&self, args: &str, span: &Range<usize>) -> Range<usize> {
        match &self.source {
            Source::Script(range) => {
                let raw = &args[range.clone()];
                let decoded = json::decode(raw);
                let end = span.end.min(decoded.text().len());
                let inner = decoded.to_raw(span.start.min(end)..end);
                range.start + inner.start..range.start + inner.end
            }
            Source::Vector(items) => {
                // Whole items: a span of an analysis of a vector seldom cuts one.
                let first = items.partition_point(|(start, _)| *start <= span.start).saturating_sub(1);
                let last = items.partition_point(|(start, _)| *start < span.end).saturating_sub(1).max(first);
                match (items.get(first), items.get(last)) {
                    (Some((_, first)), Some((_, last))) => first.start..last.end,
                    _ => 0..0,
                }
            }
        }
    }
}

impl Inspection {
    pub(super) fn of(call: &Call<'_>) -> Self {
        let args = call.args_document().root();
        let gathered = call.tools.arguments().gather(call.tool, call.tool_sent, args);
        let place = call.place();
        let cwd = match gathered.folder.and_then(Value::as_str) {
            Some(folder) => normalise(&folder, &place).into_owned(),
            None => place.cwd.to_owned(),
        };
        let place = Place { cwd: &cwd, ..place };
        let limits = Limits::default();
        let mut inspection = Self { faults: gathered.faults, ..Self::default() };
        for (value, is_input) in gathered.scripts {
            let text = value.as_str().unwrap_or_default();
            let analysis = analyse(&text, place, &limits);
            inspection.commands.push(InspectedCommand {
                analysis,
                is_input,
                source: Source::Script(contents(value)),
            });
        }
        for items in gathered.vectors {
            let argv: Vec<String> =
                items.iter().map(|item| item.as_str().unwrap_or_default().into_owned()).collect();
            let mut start = 0;
            let source = items.iter().zip(&argv).map(|(item, text)| {
                let at = start;
                start += text.len() + 1;
                (at, contents(*item))
            });
            let source = Source::Vector(source.collect());
            let analysis = analyse_argv(&argv, place, &limits);
            inspection.commands.push(InspectedCommand { analysis, is_input: false, source });
        }
        for (value, access) in gathered.paths {
            let path = value.as_str().unwrap_or_default().into_owned();
            inspection.paths.push(InspectedPath { path, access, raw: contents(value) });
        }
        if gathered.urls.len() > URLS_MAX {
            inspection.faults.push(Fault::TooManyUrls);
        }
        for value in gathered.urls.into_iter().take(URLS_MAX) {
            inspection.add_url(value, place, &limits);
        }
        for value in gathered.patches {
            inspection.add_patch(value);
        }
        inspection.cwd = cwd;
        inspection
    }

    /// What fetching an address would do: the same as for a program that does nothing else; and a file is read.
    fn add_url(&mut self, value: Value<'_>, place: Place<'_>, limits: &Limits) {
        const FETCHER: &str = "curl";
        let Some(url) = value.as_str().map(|text| cleaned_url(&text)) else { return };
        let at = contents(value);
        if url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:")) {
            let path = url.replace('\\', "/");
            self.paths.push(InspectedPath { path, access: &[Access::Read], raw: at });
            return;
        }
        // To that program it would be an option, to a browser it is no address.
        if url.is_empty() || url.starts_with('-') {
            return;
        }
        let source = Source::Vector(vec![(0, at.clone()), (FETCHER.len() + 1, at)]);
        let mut analysis = analyse_argv(&[FETCHER.to_owned(), url], place, limits);
        analysis.effects.iter_mut().for_each(|effect| effect.program.clear());
        self.commands.push(InspectedCommand { analysis, is_input: true, source });
    }

    fn add_patch(&mut self, value: Value<'_>) {
        let text = value.as_str().unwrap_or_default();
        let found = patch_paths(&text);
        if found.paths.is_empty() {
            self.faults.push(Fault::UnreadablePatch);
        }
        if found.is_cut {
            self.faults.push(Fault::TooManyPaths);
        }
        // A patch is as long as it is; its paths are told at the whole of it.
        for path in found.paths {
            self.paths.push(InspectedPath {
                path: path.path.into_owned(),
                access: match path.access {
                    Access::Delete => &[Access::Delete, Access::Write, Access::Read],
                    Access::Write | Access::Read => &[Access::Write, Access::Read],
                },
                raw: contents(value),
            });
        }
    }

    /// Every effect of every command.
    pub fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.commands.iter().flat_map(|command| &command.analysis.effects)
    }
}

/// An address without what browsers drop of it (WHATWG URL, section 4.4), and not as one whose source is to be shown.
fn cleaned_url(text: &str) -> String {
    const SHOWN: &str = "view-source:";
    let is_dropped = |c: char| c <= ' ';
    let kept: String = text.trim_matches(is_dropped).replace(['\t', '\n', '\r'], "");
    let mut url = kept.as_str();
    while let Some(shown) = url.get(..SHOWN.len()).filter(|scheme| scheme.eq_ignore_ascii_case(SHOWN)) {
        url = url[shown.len()..].trim_start_matches(is_dropped);
    }
    url.to_owned()
}

/// Where the contents of a string are written, without its quotes.
fn contents(value: Value<'_>) -> Range<usize> {
    let range = value.range();
    range.start + 1..range.end - 1
}

/// Where a path leads, if the caller resolved it: under the spelling that was sent, or under any that means the same.
pub(super) fn resolved<'c>(call: &'c Call<'_>, path: &str, place: &Place<'_>) -> Option<&'c str> {
    let resolved = call.environment.as_ref()?.resolved_paths;
    let found = resolved.get(path).or_else(|| {
        let wanted = normalise(path, place);
        resolved.iter().find(|(written, _)| normalise(written, place) == wanted).map(|(_, real)| real)
    })?;
    Some(found)
}

/// The analysis with each path where the caller says that it leads; `None` when it says so of none.
pub(super) fn resolved_analysis(call: &Call<'_>, analysis: &Analysis, place: &Place<'_>) -> Option<Analysis> {
    if call.environment.as_ref().is_none_or(|environment| environment.resolved_paths.is_empty()) {
        return None;
    }
    let mut any = false;
    let mut analysis = analysis.clone();
    for effect in &mut analysis.effects {
        let target = effect.target.as_mut().filter(|target| target.kind == TargetKind::Path);
        if let Some(target) = target
            && let Some(real) = resolved(call, &target.text, place)
        {
            target.text = normalise(real, place).into_owned();
            any = true;
        }
    }
    any.then_some(analysis)
}
