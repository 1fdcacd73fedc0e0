//! The judgement of an analysis: which rules hold for which effects.

use regex_automata::meta::Regex;

use super::CommandRules;
use super::rule::{CommandRule, Condition};
use crate::decision::Severity;
use crate::paths::{Access, PathRequest, Place, SensitivePaths};
use crate::shell::analysis::Analysis;
use crate::shell::effect::{Effect, EffectKind, TargetKind};

/// What is known of where a command would run.
#[derive(Clone, Copy, Debug, Default)]
pub struct GuardContext<'a> {
    /// Working directory, home and notation.
    pub place: Place<'a>,
    /// Roots of the workspace, absolute; none if it is not known.
    pub workspace_roots: &'a [String],
}

/// Classes of one effect's target, found when a rule first asks.
#[derive(Default)]
struct Bits {
    /// Those of places.
    listed: Option<u64>,
    /// That of sensitive paths, which takes longer.
    sensitive: Option<u64>,
}

/// A rule that holds for an effect.
#[derive(Clone, Copy, Debug)]
pub struct RuleHit<'r> {
    /// The rule.
    pub rule: &'r CommandRule,
    /// Index of the effect in the analysis.
    pub effect: usize,
}

impl CommandRules {
    /// Every rule that holds, effect by effect, in the order of rules. Pure.
    pub fn judge(&self, analysis: &Analysis, context: &GuardContext<'_>) -> Vec<RuleHit<'_>> {
        let mut hits = Vec::new();
        for (index, effect) in analysis.effects.iter().enumerate() {
            let mut classes = Bits::default();
            for rule in &self.by_kind[effect.kind as usize] {
                let rule = &self.rules[*rule];
                if self.holds(&rule.condition, effect, analysis, context, &mut classes) {
                    hits.push(RuleHit { rule, effect: index });
                }
            }
        }
        hits
    }

    fn holds(
        &self,
        condition: &Condition,
        effect: &Effect,
        analysis: &Analysis,
        context: &GuardContext<'_>,
        classes: &mut Bits,
    ) -> bool {
        let is = |wanted: Option<bool>, value: bool| wanted.is_none_or(|wanted| wanted == value);
        let one_of = |list: &[String], text: &str| list.iter().any(|entry| entry == text);
        let kind = effect.target.as_ref().map(|target| target.kind);
        if !is(condition.recursive, effect.recursive)
            || !is(condition.forced, effect.forced)
            || !is(condition.has_target, effect.target.is_some())
            || !(condition.target_kinds.is_empty()
                || kind.is_some_and(|kind| condition.target_kinds.contains(&kind)))
            || !(condition.programs.is_empty() || one_of(&condition.programs, &effect.program))
            || one_of(&condition.not_programs, &effect.program)
            || !(condition.details.is_empty() || one_of(&condition.details, &effect.detail))
            || one_of(&condition.not_details, &effect.detail)
            || !(condition.via.is_empty() || effect.via.iter().any(|via| one_of(&condition.via, via)))
            || effect.via.iter().any(|via| one_of(&condition.not_via, via))
        {
            return false;
        }
        let fits =
            |regex: &Option<Regex>, text: &str| regex.as_ref().is_none_or(|regex| regex.is_match(text));
        let avoids =
            |regex: &Option<Regex>, text: &str| regex.as_ref().is_none_or(|regex| !regex.is_match(text));
        // Most rules about a target ask for its class, which is found once for all of them: fewer expressions are asked then.
        if (condition.classes | condition.not_classes) != 0 {
            let listed = *classes.listed.get_or_insert_with(|| self.classes_of(effect, context));
            let may_be = listed | self.classes.sensitive;
            if (condition.classes != 0 && may_be & condition.classes == 0)
                || listed & condition.not_classes != 0
            {
                return false;
            }
        }
        let target = effect.target.as_ref().map_or("", |target| target.text.as_str());
        if !fits(&condition.detail, &effect.detail)
            || !avoids(&condition.not_detail, &effect.detail)
            || !fits(&condition.target, target)
            || !avoids(&condition.not_target, target)
            || condition.target_validator.is_some_and(|validator| !validator.holds(target))
        {
            return false;
        }
        if (condition.classes | condition.not_classes) & self.classes.sensitive != 0 {
            let listed = *classes.listed.get_or_insert_with(|| self.classes_of(effect, context));
            let bits = listed | *classes.sensitive.get_or_insert_with(|| self.sensitive_of(effect, context));
            if (condition.classes != 0 && bits & condition.classes == 0) || bits & condition.not_classes != 0
            {
                return false;
            }
        }
        condition.with.is_empty() || analysis.effects.iter().any(|other| condition.with.contains(&other.kind))
    }

    fn classes_of(&self, effect: &Effect, context: &GuardContext<'_>) -> u64 {
        let Some(target) = &effect.target else { return 0 };
        let (place, roots) = match target.kind {
            TargetKind::Path => (context.place, context.workspace_roots),
            // Nothing is known of another machine.
            TargetKind::Remote => (Place::default(), &[][..]),
            TargetKind::Network | TargetKind::Name => return 0,
        };
        self.classes.of(&target.text, target.has_glob, &place, roots)
    }

    fn sensitive_of(&self, effect: &Effect, context: &GuardContext<'_>) -> u64 {
        let place = match effect.target.as_ref().map(|target| target.kind) {
            Some(TargetKind::Path) => context.place,
            Some(TargetKind::Remote) => Place::default(),
            _ => return 0,
        };
        if is_sensitive(effect, &place) { self.classes.sensitive } else { 0 }
    }
}

/// Whether the rules about sensitive paths would refuse what the effect does to its target.
pub fn is_sensitive(effect: &Effect, place: &Place<'_>) -> bool {
    let Some(target) = &effect.target else { return false };
    let access = match effect.kind {
        EffectKind::WritePath | EffectKind::ChangeMode | EffectKind::ChangeOwner => Access::Write,
        EffectKind::DeletePath => Access::Delete,
        _ => Access::Read,
    };
    let request = PathRequest {
        has_glob: target.has_glob,
        is_recursive: effect.recursive,
        ..PathRequest::of_shell(&target.text, access, "", place)
    };
    SensitivePaths::builtin().judge(&request).hit.is_some_and(|hit| hit.severity >= Severity::High)
}
