//! `builtin:security-audit`: which files would this call read, write or delete?

use std::collections::HashSet;
use std::sync::Arc;

use crate::decision::Reason;
use crate::paths::{Access, Oddity, PathJudgement, PathRequest, SensitivePaths, Via};
use crate::shell::effect::{Effect, EffectKind, TargetKind};
use crate::tools::arguments::Fault;
use crate::tools::inspect::resolved;
use crate::tools::interceptor::Local;
use crate::tools::verdict::{self, Hit, PATH_AUDIT};
use crate::tools::{Call, InterceptError, Step};

/// The interceptor.
pub(super) struct SecurityAudit {
    paths: Arc<SensitivePaths>,
}

impl SecurityAudit {
    pub(super) fn new(paths: Arc<SensitivePaths>) -> Self {
        Self { paths }
    }
}

/// What an effect does to the path it names; `None` when it does nothing to a path.
fn access(kind: EffectKind) -> Option<Access> {
    match kind {
        EffectKind::ReadPath | EffectKind::SendData => Some(Access::Read),
        EffectKind::WritePath | EffectKind::ChangeMode | EffectKind::ChangeOwner | EffectKind::Persist => {
            Some(Access::Write)
        }
        EffectKind::DeletePath => Some(Access::Delete),
        _ => None,
    }
}

/// What one run gathers.
struct Run<'c, 'r> {
    call: &'c Call<'r>,
    step: Step,
    /// Rule and place of what was found: a path that two effects name is told once.
    seen: HashSet<(Arc<str>, usize, usize)>,
}

impl Local for SecurityAudit {
    fn run(&self, call: &Call<'_>) -> Result<Step, InterceptError> {
        let inspection = call.inspection();
        let mut run = Run { call, step: Step::default(), seen: HashSet::new() };
        let environment = call.place();
        for path in &inspection.paths {
            for access in path.access {
                let request = PathRequest {
                    path: &path.path,
                    access: *access,
                    via: Via::FileTool,
                    has_glob: false,
                    is_recursive: false,
                    place: &environment,
                    workspace_roots: call.workspace_roots(),
                    resolved: resolved(call, &path.path, &environment),
                };
                run.judged(&self.paths.judge(&request), || path.raw.clone());
            }
        }
        let place = crate::paths::Place { cwd: &inspection.cwd, ..environment };
        for command in &inspection.commands {
            for effect in &command.analysis.effects {
                let Some((access, target)) = path_of(effect) else { continue };
                let request = PathRequest {
                    path: &target.text,
                    access,
                    via: Via::Shell(&effect.program),
                    has_glob: target.has_glob,
                    is_recursive: effect.recursive,
                    place: &place,
                    workspace_roots: call.workspace_roots(),
                    resolved: resolved(call, &target.text, &place),
                };
                let judgement = self.paths.judge(&request);
                run.judged(&judgement, || command.raw_span(call.args(), &effect.span));
            }
        }
        if call.tools.arguments().names_paths(call.tool) {
            inspection.faults.iter().for_each(|fault| run.fault(fault));
        }
        Ok(run.step)
    }
}

fn path_of(effect: &Effect) -> Option<(Access, &crate::shell::effect::Target)> {
    let access = access(effect.kind)?;
    let target = effect.target.as_ref().filter(|target| target.kind == TargetKind::Path)?;
    Some((access, target))
}

impl Run<'_, '_> {
    fn judged(&mut self, judgement: &PathJudgement<'_>, raw: impl Fn() -> std::ops::Range<usize>) {
        if let Some(hit) = &judgement.hit {
            let raw = raw();
            if self.seen.insert((hit.rule.id.clone(), raw.start, raw.end)) {
                let hit = Hit {
                    plugin: PATH_AUDIT,
                    rule_id: &hit.rule.id,
                    category: &hit.rule.category,
                    severity: hit.severity,
                    confidence: 1.0,
                    description: &hit.rule.description,
                    recommendation: &hit.rule.recommendation,
                };
                self.step.findings.push(hit.finding(self.call, raw));
            }
        }
        if let Some(oddity) = judgement.oddity {
            let (reason, detail) = match oddity {
                Oddity::TooLong => (Reason::Limit, "a path is longer than any system takes"),
                Oddity::Nul => (Reason::UnsupportedContent, "a path holds a NUL"),
                Oddity::Control => (Reason::UnsupportedContent, "a path holds a control character"),
            };
            self.unjudged(reason, detail.to_owned());
        }
    }

    fn fault(&mut self, fault: &Fault) {
        self.step.unjudged.push(verdict::faulty(self.call, PATH_AUDIT, fault));
    }

    fn unjudged(&mut self, reason: Reason, detail: String) {
        let unjudged = verdict::unjudged(self.call, PATH_AUDIT, reason, detail);
        if !self.step.unjudged.contains(&unjudged) {
            self.step.unjudged.push(unjudged);
        }
    }
}
