//! From policy files to policies: parents are found, layers merged, and the whole checked.
//!
//! A policy lies over the one it `extends`, or over `default` when it extends none; `default` lies over the built-in
//! policy. Field by field the child's value wins; suppressions and filters of the audit log add up.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::DEFAULT_POLICY;
use super::allow_list::AllowList;
use super::audit::{AuditFilter, AuditSettings};
use super::decode;
use super::interceptor::BuiltinSwitch;
use super::problem::{Place, PolicyProblems, Problem};
use super::schema::{
    CategoryLayer, InterceptorLayer, Layer, Located, POLICY_NAME_FIX, PluginLayer, ThresholdsLayer,
    Vocabulary, is_policy_name,
};
use super::set::PolicySet;
use super::snapshot::{self, CategorySettings, PluginSettings, Policy, TIMEOUT_DEFAULT};
use super::suppression::Suppression;
use super::tree::{self, Value};
use crate::decision::{FailModes, Mode, Thresholds};

const BUILT_IN: &str = include_str!("default.yaml");
const BUILT_IN_FILE: &str = "built-in default";

/// A policy file that has been read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Path for messages; without a `name` in the file, its stem names the policy.
    pub file: &'a str,
    /// The YAML.
    pub text: &'a str,
}

/// Builds a set from every file, or tells everything that is wrong with them.
///
/// # Errors
/// Returns every problem of every file, in the order of files and lines.
pub fn compile(sources: &[Source<'_>], vocabulary: &Vocabulary<'_>) -> Result<PolicySet, PolicyProblems> {
    let (mut problems, mut categories) = (Vec::new(), Vec::new());
    let built_in =
        read(&Source { file: BUILT_IN_FILE, text: BUILT_IN }, vocabulary, &mut problems, &mut categories);
    let mut family = Family { built_in: built_in.unwrap_or_default(), layers: BTreeMap::new() };
    for source in sources {
        if let Some(layer) = read(source, vocabulary, &mut problems, &mut categories) {
            family.add(layer, source, &mut problems);
        }
    }
    let policies = family.resolve_all(vocabulary, &mut problems);
    PolicyProblems::check(problems)?;
    Ok(PolicySet::new(policies, family.files(), categories))
}

/// The layer of one file; `None` when there is nothing to go on with.
fn read(
    source: &Source<'_>,
    vocabulary: &Vocabulary<'_>,
    problems: &mut Vec<Problem>,
    categories: &mut Vec<Located<String>>,
) -> Option<Layer> {
    let place = Place::file(source.file);
    match tree::parse(source.text) {
        Ok(root) if matches!(root.value, Value::Null) => {
            let fix = "write at least a `name`, or remove the file";
            problems.push(Problem { place, what: "is empty".to_owned(), fix: fix.to_owned() });
            None
        }
        Ok(root) => Some(decode::decode(&root, source.file, vocabulary, problems, categories)),
        Err(broken) => {
            let place = Place { line: broken.line, column: broken.column, ..place };
            let what = format!("cannot be read as YAML: {}", broken.what);
            problems.push(Problem { place, what, fix: broken.fix.to_owned() });
            None
        }
    }
}

/// Every layer by the name of its policy.
struct Family {
    built_in: Layer,
    layers: BTreeMap<String, Layer>,
}

impl Family {
    fn add(&mut self, mut layer: Layer, source: &Source<'_>, problems: &mut Vec<Problem>) {
        let name = match &layer.name {
            Some(name) => name.clone(),
            None => match name_of_file(source.file) {
                Some(value) => Located { value, place: Place::file(source.file) },
                None => {
                    let place = Place::file(source.file);
                    let what = "the name of the file cannot name a policy".to_owned();
                    problems.push(Problem { place, what, fix: format!("add `name:`; {POLICY_NAME_FIX}") });
                    return;
                }
            },
        };
        if let Some(other) = self.layers.get(&name.value).and_then(|other| other.name.as_ref()) {
            let what = format!("policy name `{}` is taken by {}", name.value, other.place.file);
            problems.push(Problem { place: name.place, what, fix: "rename one of the two".to_owned() });
            return;
        }
        layer.name = Some(name.clone());
        self.layers.insert(name.value, layer);
    }

    /// Where each policy of a file came from.
    fn files(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        let named = self.layers.iter().filter_map(|(name, layer)| Some((name, layer.name.as_ref()?)));
        named.map(|(name, said)| (name.as_str().into(), said.place.file.clone())).collect()
    }

    fn resolve_all(&self, vocabulary: &Vocabulary<'_>, problems: &mut Vec<Problem>) -> Vec<Policy> {
        let mut policies = Vec::with_capacity(self.layers.len() + 1);
        for name in self.layers.keys() {
            if let Some(merged) = self.merged(name, problems) {
                policies.push(build(name, merged, vocabulary, problems));
            }
        }
        if !self.layers.contains_key(DEFAULT_POLICY) {
            policies.push(build(DEFAULT_POLICY, self.built_in.clone(), vocabulary, problems));
        }
        policies
    }

    /// The layer of `name` over all its parents; `None` when they cannot be found, which one of them reports.
    fn merged(&self, name: &str, problems: &mut Vec<Problem>) -> Option<Layer> {
        let mut chain: Vec<(&str, &Layer)> = Vec::new();
        let mut next = Some(name);
        while let Some(current) = next {
            if let Some(loop_start) = chain.iter().position(|(seen, _)| *seen == current) {
                if loop_start == 0 {
                    report_cycle(&chain, problems);
                }
                return None;
            }
            let Some(layer) = self.layers.get(current) else {
                // A parent without a layer is reported by the child that names it, and by nobody below.
                if let [(_, child)] = chain[..] {
                    self.report_unknown_parent(child, problems);
                }
                return None;
            };
            chain.push((current, layer));
            next = self.parent_of(current, layer);
        }
        let mut merged = self.built_in.clone();
        for (_, layer) in chain.iter().rev() {
            merged = over(merged, (*layer).clone());
        }
        // A description is of its own policy; a parent's would mislead.
        merged.description = chain.first().and_then(|(_, layer)| layer.description.clone());
        Some(merged)
    }

    /// The policy below `name`; `None` stands for the built-in one.
    fn parent_of<'l>(&self, name: &str, layer: &'l Layer) -> Option<&'l str> {
        match layer.extends.as_ref().map(|extends| extends.value.as_str()) {
            // The `default` of a file may say that it extends `default`: the built-in one.
            Some(DEFAULT_POLICY) | None if name == DEFAULT_POLICY => None,
            Some(DEFAULT_POLICY) | None if !self.layers.contains_key(DEFAULT_POLICY) => None,
            Some(parent) => Some(parent),
            None => Some(DEFAULT_POLICY),
        }
    }

    fn report_unknown_parent(&self, child: &Layer, problems: &mut Vec<Problem>) {
        let Some(extends) = &child.extends else { return };
        let mut names: Vec<_> = self.layers.keys().map(String::as_str).collect();
        if !self.layers.contains_key(DEFAULT_POLICY) {
            names.push(DEFAULT_POLICY);
        }
        problems.push(Problem {
            place: extends.place.clone(),
            what: format!("unknown policy `{}`", extends.value),
            fix: format!("policies that there are: {}", names.join(", ")),
        });
    }
}

/// Told once, by the member of the loop whose name comes first.
fn report_cycle(chain: &[(&str, &Layer)], problems: &mut Vec<Problem>) {
    let Some((first, _)) = chain.first().filter(|(first, _)| chain.iter().all(|(name, _)| first <= name))
    else {
        return;
    };
    let names: Vec<_> = chain.iter().map(|(name, _)| *name).chain([*first]).collect();
    // Every circle has a member that says `extends`: without it, all roads lead to the built-in policy.
    let place =
        chain.iter().find_map(|(_, layer)| layer.extends.as_ref()).map(|extends| extends.place.clone());
    problems.push(Problem {
        place: place.unwrap_or_else(|| Place::file(first)),
        what: format!("policies extend each other in a circle: {}", names.join(" -> ")),
        fix: "let one of them extend something else; without `extends`, a policy extends `default`"
            .to_owned(),
    });
}

fn name_of_file(file: &str) -> Option<String> {
    let stem = Path::new(file).file_stem()?.to_str()?;
    is_policy_name(stem).then(|| stem.to_owned())
}

/// `child` over `parent`.
fn over(parent: Layer, child: Layer) -> Layer {
    let mut merged = Layer {
        name: child.name,
        extends: child.extends,
        description: child.description,
        allowed_callers: child.allowed_callers.or(parent.allowed_callers),
        required_plugins: child.required_plugins.or(parent.required_plugins),
        thresholds: thresholds_over(parent.thresholds, child.thresholds),
        categories: parent.categories,
        rules: parent.rules,
        plugins: parent.plugins,
        system_role: child.system_role.or(parent.system_role),
        allow_list: [parent.allow_list, child.allow_list].concat(),
        countries: child.countries.or(parent.countries),
        caller_allow_list: child.caller_allow_list.or(parent.caller_allow_list),
        caller_countries: child.caller_countries.or(parent.caller_countries),
        reveal: child.reveal.or(parent.reveal),
        sample_allow: child.sample_allow.or(parent.sample_allow),
        filters: without_doubles([child.filters, parent.filters].concat()),
        suppressions: parent.suppressions,
        tools: parent.tools.extended(child.tools),
        workspace_roots: child.workspace_roots.or(parent.workspace_roots),
        interceptors: parent.interceptors,
        streams: parent.streams.extended(child.streams),
    };
    for layer in child.interceptors {
        interceptor_over(&mut merged.interceptors, layer);
    }
    for (name, layer) in child.categories {
        let below = merged.categories.remove(&name).unwrap_or_default();
        merged.categories.insert(name, category_over(below, layer));
    }
    for (id, layer) in child.plugins {
        let below = merged.plugins.remove(&id).unwrap_or_default();
        merged.plugins.insert(id, plugin_over(below, layer));
    }
    merged.rules.extend(child.rules);
    // One that says the same adds nothing; a policy that is written out and read again stays the same.
    let mut seen: HashSet<Suppression> = merged.suppressions.iter().cloned().collect();
    let news = child.suppressions.into_iter().filter(|suppression| seen.insert(suppression.clone()));
    merged.suppressions.extend(news);
    merged
}

/// One that says the same as one before it adds nothing; a policy that is written out and read again stays the same.
fn without_doubles(filters: Vec<AuditFilter>) -> Vec<AuditFilter> {
    let mut kept: Vec<AuditFilter> = Vec::with_capacity(filters.len());
    for filter in filters {
        if !kept.contains(&filter) {
            kept.push(filter);
        }
    }
    kept
}

fn thresholds_over(parent: ThresholdsLayer, child: ThresholdsLayer) -> ThresholdsLayer {
    ThresholdsLayer { warn: child.warn.or(parent.warn), block: child.block.or(parent.block) }
}

fn category_over(parent: CategoryLayer, child: CategoryLayer) -> CategoryLayer {
    CategoryLayer {
        mode: child.mode.or(parent.mode),
        thresholds: thresholds_over(parent.thresholds, child.thresholds),
    }
}

/// A child's interceptor takes the place of its parent's of the same id; what it says about a built-in one adds up.
fn interceptor_over(layers: &mut Vec<InterceptorLayer>, child: InterceptorLayer) {
    let Some(place) = layers.iter_mut().find(|layer| layer.id() == child.id()) else {
        layers.push(child);
        return;
    };
    *place = match (std::mem::replace(place, child.clone()), child) {
        (
            InterceptorLayer::Builtin { id, switch: parent },
            InterceptorLayer::Builtin { switch: child, .. },
        ) => {
            let switch = BuiltinSwitch {
                mode: child.mode.or(parent.mode),
                fail: child.fail.or(parent.fail),
                timeout: child.timeout.or(parent.timeout),
                categories: child.categories.or(parent.categories),
                injection: child.injection.or(parent.injection),
            };
            InterceptorLayer::Builtin { id, switch }
        }
        (_, child) => child,
    };
}

fn plugin_over(parent: PluginLayer, child: PluginLayer) -> PluginLayer {
    PluginLayer {
        mode: child.mode.or(parent.mode),
        fail_input: child.fail_input.or(parent.fail_input),
        fail_output: child.fail_output.or(parent.fail_output),
        timeout: child.timeout.or(parent.timeout),
    }
}

/// Compiles a merged layer, and checks what only shows after merging.
fn build(name: &str, layer: Layer, vocabulary: &Vocabulary<'_>, problems: &mut Vec<Problem>) -> Policy {
    check_required(&layer, problems);
    let thresholds = thresholds_at(&[&layer.thresholds], problems);
    let categories =
        layer.categories.keys().map(|id| (id.clone(), category_at(id, &layer, problems))).collect();
    let mut plugins: BTreeMap<String, PluginSettings> =
        vocabulary.all_plugins().map(|id| (id.to_owned(), PluginSettings::default())).collect();
    plugins.extend(layer.plugins.iter().map(|(id, plugin)| (id.clone(), plugin_settings(plugin))));
    let (mut interceptors, mut builtins) = (Vec::new(), BTreeMap::new());
    for interceptor in layer.interceptors {
        match interceptor {
            InterceptorLayer::Own(own) => interceptors.push(*own),
            InterceptorLayer::Builtin { id, switch } => {
                builtins.insert(id, switch);
            }
        }
    }
    Policy {
        name: Arc::from(name),
        description: layer.description.unwrap_or_default(),
        allowed_callers: layer.allowed_callers.flatten(),
        required_plugins: layer
            .required_plugins
            .flatten()
            .map(|list| list.into_iter().map(|plugin| plugin.value).collect()),
        thresholds,
        categories,
        rules: layer.rules,
        plugins,
        system_role: layer.system_role.unwrap_or(Mode::Shadow),
        allow_list: AllowList::new(layer.allow_list),
        countries: layer.countries.unwrap_or_default(),
        caller_allow_list: layer.caller_allow_list.unwrap_or(false),
        caller_countries: layer.caller_countries.unwrap_or(false),
        reveal: layer.reveal.unwrap_or(false),
        audit: AuditSettings { sample_allow: layer.sample_allow.unwrap_or(1.0), filters: layer.filters },
        suppressions: layer.suppressions,
        tools: layer.tools,
        workspace_roots: layer.workspace_roots.unwrap_or_default(),
        interceptors,
        builtins,
        streams: layer.streams.settings(),
    }
}

fn plugin_settings(layer: &PluginLayer) -> PluginSettings {
    PluginSettings {
        mode: layer.mode.as_ref().map(|mode| mode.value).unwrap_or_default(),
        fail: FailModes {
            input: layer.fail_input.unwrap_or_default(),
            output: layer.fail_output.unwrap_or_default(),
        },
        timeout: layer.timeout.unwrap_or(TIMEOUT_DEFAULT),
    }
}

/// What holds for `id`: each value from the nearest category that gives one.
fn category_at(id: &str, layer: &Layer, problems: &mut Vec<Problem>) -> CategorySettings {
    let chain: Vec<&CategoryLayer> =
        snapshot::ancestors(id).filter_map(|ancestor| layer.categories.get(ancestor)).collect();
    let mut thresholds: Vec<_> = chain.iter().map(|category| &category.thresholds).collect();
    thresholds.push(&layer.thresholds);
    CategorySettings {
        mode: chain.iter().find_map(|category| category.mode).unwrap_or_default(),
        thresholds: thresholds_at(&thresholds, problems),
    }
}

/// The nearest `warn` and the nearest `block`, nearest first; they may come from different places and contradict.
fn thresholds_at(chain: &[&ThresholdsLayer], problems: &mut Vec<Problem>) -> Thresholds {
    let warn = chain.iter().find_map(|layer| layer.warn.as_ref());
    let block = chain.iter().find_map(|layer| layer.block.as_ref());
    let default = Thresholds::default();
    let thresholds = Thresholds {
        warn: warn.map_or(default.warn, |warn| warn.value),
        block: block.map_or(default.block, |block| block.value),
    };
    if let (Some(warn), Some(block)) = (warn, block)
        && warn.value > block.value
    {
        report_crossed(warn, block, problems);
    }
    thresholds
}

/// Told at the value that does not come from the built-in policy, which the author cannot change.
fn report_crossed(warn: &Located<f64>, block: &Located<f64>, problems: &mut Vec<Problem>) {
    let culprit = if warn.place.file.as_ref() == BUILT_IN_FILE { block } else { warn };
    problems.push(Problem {
        place: culprit.place.clone(),
        what: format!("`{}` {} is above `{}` {}", warn.place.key, warn.value, block.place.key, block.value),
        fix: "lower the one or raise the other".to_owned(),
    });
}

/// A plugin that is off never runs, so it cannot be required.
fn check_required(layer: &Layer, problems: &mut Vec<Problem>) {
    for required in layer.required_plugins.iter().flatten().flatten() {
        let mode = layer.plugins.get(&required.value).and_then(|plugin| plugin.mode.as_ref());
        if mode.is_some_and(|mode| mode.value == Mode::Off) {
            problems.push(Problem {
                place: required.place.clone(),
                what: format!("`{}` is required, and its mode is off", required.value),
                fix: format!("set `plugins.{}.mode` or take it from the list", required.value),
            });
        }
    }
}
