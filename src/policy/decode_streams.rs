//! `streams` of a policy file.

use std::collections::BTreeMap;
use std::time::Duration;

use super::decode::{Decoder, at, join, parse_duration};
use super::schema::{
    FAIL_MODES, KNOWN_SAFE_KEYS, Located, SEVERITIES, STREAM_CATEGORIES, STREAM_FAMILIES, STREAMS_KEYS,
    VERDICTS,
};
use super::streams::{COOLDOWN_MAX, KnownSafe, StreamsLayer};
use super::tree::{Node, Value};
use super::values::{nearest_or_list, shown};
use crate::decision::{Mode, Severity};

impl Decoder<'_> {
    pub(super) fn streams(&mut self, node: &Node, path: &str) -> StreamsLayer {
        let mut layer = StreamsLayer::default();
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "rules" => layer.rules = self.stream_rules(node, &inner),
                "families" => layer.families = self.families(node, &inner),
                "known_safe" => layer.known_safe = self.known_safe(node, &inner),
                "cooldown" => layer.cooldown = self.cooldown(node, &inner),
                "kill_from" => layer.kill_from = self.share(node, &inner).map(|share| share.value),
                "verdicts" => layer.verdicts = self.by_severity(node, &inner, VERDICTS),
                "fail" => layer.fail = self.by_severity(node, &inner, FAIL_MODES),
                _ => self.unknown_key(key, path, STREAMS_KEYS),
            }
        }
        layer
    }

    /// `id: mode` or `category: mode`.
    fn stream_rules(&mut self, node: &Node, path: &str) -> BTreeMap<String, Mode> {
        let mut rules = BTreeMap::new();
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            let is_category = STREAM_CATEGORIES.contains(&key.text.split('.').next().unwrap_or_default());
            let place = self.place(key.line, key.column, &inner);
            if is_category {
                self.categories.push(Located { value: key.text.clone(), place });
            } else {
                self.check_rule(&key.text, place);
            }
            rules.extend(self.mode(node, &inner).map(|mode| (key.text.clone(), mode.value)));
        }
        rules
    }

    fn families(&mut self, node: &Node, path: &str) -> Option<Vec<String>> {
        let items = self.list(node, path, "a list of families of rules")?;
        let mut families = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let Some(family) = self.text(item, &at(path, index)) else { continue };
            if STREAM_FAMILIES.contains(&family.value.as_str()) {
                families.push(family.value);
            } else {
                let what = format!("unknown family `{}`", shown(&family.value));
                self.report(family.place, what, nearest_or_list(&family.value, STREAM_FAMILIES));
            }
        }
        Some(families)
    }

    fn cooldown(&mut self, node: &Node, path: &str) -> Option<Duration> {
        let text = self.text(node, path)?;
        let duration = parse_duration(&text.value).filter(|span| *span <= COOLDOWN_MAX);
        if duration.is_none() {
            let what = format!("`{}` is not a usable time span", shown(&text.value));
            let fix = "write a whole number and a unit, at most 1440m, such as `500ms`, `30s` or `5m`";
            self.report(text.place, what, fix.to_owned());
        }
        duration
    }

    /// One word for every severity, or a word for some.
    fn by_severity<T: Copy>(&mut self, node: &Node, path: &str, words: &[(&str, T)]) -> [Option<T>; 4] {
        if !matches!(node.value, Value::Map(_)) {
            return [self.word(node, path, words).map(|word| word.value); 4];
        }
        let mut all = [None; 4];
        for (key, node) in self.mapping(node, path) {
            let severity = Severity::ALL.into_iter().find(|severity| severity.as_str() == key.text);
            match severity {
                Some(severity) => {
                    all[severity as usize] =
                        self.word(node, &join(path, &key.text), words).map(|word| word.value);
                }
                None => self.unknown_key(key, path, SEVERITIES),
            }
        }
        all
    }

    fn known_safe(&mut self, node: &Node, path: &str) -> Vec<KnownSafe> {
        let items = self.list(node, path, "a list of what is known to be safe").unwrap_or_default();
        let mut known = Vec::new();
        for (index, item) in items.iter().enumerate() {
            known.extend(self.known_safe_entry(item, &at(path, index)));
        }
        known
    }

    fn known_safe_entry(&mut self, node: &Node, path: &str) -> Option<KnownSafe> {
        let before = self.problems.len();
        let (mut pattern, mut rule, mut category, mut reason) = (None, None, None, None);
        let mut labels = BTreeMap::new();
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "pattern" => pattern = self.filled(node, &inner),
                "rule" => rule = self.filled(node, &inner),
                "category" => category = self.filled(node, &inner),
                "reason" => reason = self.filled(node, &inner),
                "labels" => {
                    for (label, node) in self.mapping(node, &inner) {
                        let value = self.text(node, &join(&inner, &label.text));
                        labels.extend(value.map(|value| (label.text.clone(), value.value)));
                    }
                }
                _ => self.unknown_key(key, path, KNOWN_SAFE_KEYS),
            }
        }
        if let Some(rule) = &rule {
            self.check_rule(&rule.value, rule.place.clone());
        }
        if let Some(category) = &category {
            self.check_category(&category.value, category.place.clone());
        }
        let place = self.place(node.line, node.column, path);
        if self.problems.len() == before {
            for (name, is_missing) in [("pattern", pattern.is_none()), ("reason", reason.is_none())] {
                if is_missing {
                    let what = format!("what is known to be safe needs a {name}");
                    self.report(place.clone(), what, format!("add `{name}:`"));
                }
            }
        }
        let pattern = pattern?;
        Some(KnownSafe {
            place: pattern.place.clone(),
            pattern: pattern.value,
            rule: rule.map(|rule| rule.value),
            category: category.map(|category| category.value),
            labels,
            reason: reason?.value,
        })
    }
}
