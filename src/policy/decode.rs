//! A tree becomes a [`Layer`], and every deviation from the schema a problem.
//!
//! Reading goes on after each problem, so that a person mends a file once.
//!
//! The keys of a mapping are listed twice, as a constant and as match arms; a test holds the two together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::problem::{Place, Problem};
use super::schema::{
    CALLER_ROLES, CATEGORY_KEYS, CallerRole, CategoryLayer, ENFORCED, EVERYBODY, FAIL_KEYS, FAIL_MODES,
    INJECTION_KEYS, Layer, Located, PII_KEYS, PLUGIN_KEYS, POLICY_NAME_FIX, PluginLayer, ROOT_KEYS,
    RULE_KEYS, SUPPRESSION_KEYS, THRESHOLD_KEYS, TIMEOUT_MAX, ThresholdsLayer, Vocabulary, is_policy_name,
};
use super::suppression::Suppression;
use super::tree::{Key, Node, Value};
use super::values::{nearest, nearest_or_list, shown};
use crate::decision::{FailMode, Mode};
use crate::rules::CountrySet;

/// Reads the tree of one file. The layer is of use only if no problem was added. Every category that it names is added to
/// `categories`.
pub(super) fn decode(
    root: &Node,
    file: &str,
    vocabulary: &Vocabulary<'_>,
    problems: &mut Vec<Problem>,
    categories: &mut Vec<Located<String>>,
) -> Layer {
    Decoder { file: file.into(), vocabulary, problems, categories }.layer(root)
}

/// Reads one file.
pub(super) struct Decoder<'a> {
    pub(super) file: Arc<str>,
    vocabulary: &'a Vocabulary<'a>,
    pub(super) problems: &'a mut Vec<Problem>,
    /// Every category that is named.
    pub(super) categories: &'a mut Vec<Located<String>>,
}

impl Decoder<'_> {
    fn layer(&mut self, root: &Node) -> Layer {
        let mut layer = Layer::default();
        for (key, node) in self.mapping(root, "") {
            let path = key.text.as_str();
            match path {
                "name" => layer.name = self.policy_name(node, path),
                "extends" => layer.extends = self.policy_name(node, path),
                "description" => layer.description = self.text(node, path).map(|text| text.value),
                "allowed_callers" => layer.allowed_callers = self.allowed_callers(node, path),
                "required_plugins" => layer.required_plugins = self.required_plugins(node, path),
                "thresholds" => layer.thresholds = self.thresholds(node, path),
                "categories" => layer.categories = self.categories(node, path),
                "rules" => layer.rules = self.rules(node, path),
                "plugins" => layer.plugins = self.plugins(node, path),
                "injection" => layer.system_role = self.injection(node, path),
                "pii" => self.pii(node, path, &mut layer),
                "reveal" => layer.reveal = self.boolean(node, path),
                "suppressions" => layer.suppressions = self.suppressions(node, path),
                "audit" => self.audit(&mut layer, node, path),
                "tools" => layer.tools = self.tools(node, path),
                "workspace_roots" => layer.workspace_roots = self.workspace_roots(node, path),
                "interceptors" => layer.interceptors = self.interceptors(node, path),
                "streams" => layer.streams = self.streams(node, path),
                _ => self.unknown_key(key, "", ROOT_KEYS),
            }
        }
        layer
    }

    fn policy_name(&mut self, node: &Node, path: &str) -> Option<Located<String>> {
        let name = self.text(node, path)?;
        if is_policy_name(&name.value) {
            return Some(name);
        }
        self.report(
            name.place,
            format!("`{}` cannot name a policy", shown(&name.value)),
            POLICY_NAME_FIX.to_owned(),
        );
        None
    }

    fn allowed_callers(&mut self, node: &Node, path: &str) -> Option<Option<Vec<CallerRole>>> {
        if is_word(node, EVERYBODY) {
            return Some(None);
        }
        let items = self.list(node, path, "a list of roles, or `everybody`")?;
        let roles = items.iter().enumerate().map(|(i, item)| self.word(item, &at(path, i), CALLER_ROLES));
        let mut roles: Vec<_> =
            roles.collect::<Vec<_>>().into_iter().flatten().map(|role| role.value).collect();
        roles.sort_unstable();
        roles.dedup();
        Some(Some(roles))
    }

    fn required_plugins(&mut self, node: &Node, path: &str) -> Option<Option<Vec<Located<String>>>> {
        if is_word(node, ENFORCED) {
            return Some(None);
        }
        let items = self.list(node, path, "a list of plugin ids, or `enforced`")?;
        let mut plugins = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if let Some(plugin) = self.text(item, &at(path, index)) {
                self.check_plugin(&plugin.value, &plugin.place);
                plugins.push(plugin);
            }
        }
        Some(Some(plugins))
    }

    fn thresholds(&mut self, node: &Node, path: &str) -> ThresholdsLayer {
        let mut layer = ThresholdsLayer::default();
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "warn" => layer.warn = self.share(node, &inner),
                "block" => layer.block = self.share(node, &inner),
                _ => self.unknown_key(key, path, THRESHOLD_KEYS),
            }
        }
        layer
    }

    fn categories(&mut self, node: &Node, path: &str) -> BTreeMap<String, CategoryLayer> {
        let mut categories = BTreeMap::new();
        for (key, node) in self.mapping(node, path) {
            let path = join(path, &key.text);
            self.check_category(&key.text, self.place(key.line, key.column, &path));
            categories.insert(key.text.clone(), self.category(node, &path));
        }
        categories
    }

    fn category(&mut self, node: &Node, path: &str) -> CategoryLayer {
        let mut layer = CategoryLayer::default();
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "mode" => layer.mode = self.mode(node, &inner).map(|mode| mode.value),
                "warn" => layer.thresholds.warn = self.share(node, &inner),
                "block" => layer.thresholds.block = self.share(node, &inner),
                _ => self.unknown_key(key, path, CATEGORY_KEYS),
            }
        }
        layer
    }

    fn rules(&mut self, node: &Node, path: &str) -> BTreeMap<String, Mode> {
        let mut rules = BTreeMap::new();
        for (key, node) in self.mapping(node, path) {
            let path = join(path, &key.text);
            self.check_rule(&key.text, self.place(key.line, key.column, &path));
            for (inner, node) in self.mapping(node, &path) {
                match inner.text.as_str() {
                    "mode" => {
                        let mode = self.mode(node, &join(&path, "mode"));
                        rules.extend(mode.map(|mode| (key.text.clone(), mode.value)));
                    }
                    _ => self.unknown_key(inner, &path, RULE_KEYS),
                }
            }
        }
        rules
    }

    fn plugins(&mut self, node: &Node, path: &str) -> BTreeMap<String, PluginLayer> {
        let mut plugins = BTreeMap::new();
        for (key, node) in self.mapping(node, path) {
            let path = join(path, &key.text);
            let place = self.place(key.line, key.column, &path);
            self.check_plugin(&key.text, &place);
            plugins.insert(key.text.clone(), self.plugin(node, &path));
        }
        plugins
    }

    fn plugin(&mut self, node: &Node, path: &str) -> PluginLayer {
        let mut layer = PluginLayer::default();
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "mode" => layer.mode = self.mode(node, &inner),
                "fail" => (layer.fail_input, layer.fail_output) = self.fail(node, &inner),
                "timeout" => layer.timeout = self.timeout(node, &inner),
                _ => self.unknown_key(key, path, PLUGIN_KEYS),
            }
        }
        layer
    }

    /// One word for both directions, or a word for each.
    fn fail(&mut self, node: &Node, path: &str) -> (Option<FailMode>, Option<FailMode>) {
        if !matches!(node.value, Value::Map(_)) {
            let both = self.word(node, path, FAIL_MODES).map(|word| word.value);
            return (both, both);
        }
        let (mut input, mut output) = (None, None);
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "input" => input = self.word(node, &inner, FAIL_MODES).map(|word| word.value),
                "output" => output = self.word(node, &inner, FAIL_MODES).map(|word| word.value),
                _ => self.unknown_key(key, path, FAIL_KEYS),
            }
        }
        (input, output)
    }

    fn timeout(&mut self, node: &Node, path: &str) -> Option<Duration> {
        let text = self.text(node, path)?;
        let duration = parse_duration(&text.value).filter(|span| !span.is_zero() && *span <= TIMEOUT_MAX);
        if duration.is_none() {
            let fix = "write a whole number and a unit, from 1ms to 10m, such as `250ms`, `5s` or `1m`";
            let what = format!("`{}` is not a usable time span", shown(&text.value));
            self.report(text.place, what, fix.to_owned());
        }
        duration
    }

    fn injection(&mut self, node: &Node, path: &str) -> Option<Mode> {
        let mut system_role = None;
        for (key, node) in self.mapping(node, path) {
            match key.text.as_str() {
                "system_role" => {
                    system_role = self.mode(node, &join(path, &key.text)).map(|mode| mode.value);
                }
                _ => self.unknown_key(key, path, INJECTION_KEYS),
            }
        }
        system_role
    }

    fn pii(&mut self, node: &Node, path: &str, layer: &mut Layer) {
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "allow_list" => {
                    let items = self.list(node, &inner, "a list of values").unwrap_or_default();
                    let values = items.iter().enumerate();
                    let values: Vec<_> = values.map(|(i, item)| self.filled(item, &at(&inner, i))).collect();
                    layer.allow_list.extend(values.into_iter().flatten().map(|value| value.value));
                }
                "countries" => layer.countries = self.countries(node, &inner),
                "caller_allow_list" => layer.caller_allow_list = self.boolean(node, &inner),
                "caller_countries" => layer.caller_countries = self.boolean(node, &inner),
                _ => self.unknown_key(key, path, PII_KEYS),
            }
        }
    }

    fn countries(&mut self, node: &Node, path: &str) -> Option<CountrySet> {
        let items = self.list(node, path, "a list of country codes, such as `[DE, FR]`")?;
        let mut countries = CountrySet::EMPTY;
        for (i, item) in items.iter().enumerate() {
            let Some(code) = self.filled(item, &at(path, i)) else { continue };
            if let Err(error) = countries.add(&code.value) {
                let what = format!("`{}` is no ISO 3166-1 code of a country", shown(&error.code));
                self.report(code.place, what, error.fix());
            }
        }
        Some(countries)
    }

    fn suppressions(&mut self, node: &Node, path: &str) -> Vec<Suppression> {
        let items = self.list(node, path, "a list of suppressions").unwrap_or_default();
        let suppressions = items.iter().enumerate().map(|(i, item)| self.suppression(item, &at(path, i)));
        suppressions.collect::<Vec<_>>().into_iter().flatten().collect()
    }

    fn suppression(&mut self, node: &Node, path: &str) -> Option<Suppression> {
        let before = self.problems.len();
        let (mut rule, mut category, mut fingerprint, mut file, mut tenant) = (None, None, None, None, None);
        let (mut reason, mut expires) = (None, None);
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "rule" => rule = self.filled(node, &inner),
                "category" => category = self.filled(node, &inner),
                "fingerprint" => fingerprint = self.filled(node, &inner),
                "path" => file = self.filled(node, &inner),
                "tenant" => tenant = self.filled(node, &inner),
                "reason" => reason = self.filled(node, &inner),
                "expires" => expires = self.expires(node, &inner),
                _ => self.unknown_key(key, path, SUPPRESSION_KEYS),
            }
        }
        if let Some(rule) = &rule {
            self.check_rule(&rule.value, rule.place.clone());
        }
        if let Some(category) = &category {
            self.check_category(&category.value, category.place.clone());
        }
        if self.problems.len() == before {
            self.check_suppression(node, path, rule.is_some() || category.is_some() || fingerprint.is_some());
        }
        let text = |scope: Option<Located<String>>| scope.map(|scope| scope.value);
        Some(Suppression {
            rule: text(rule),
            category: text(category),
            fingerprint: text(fingerprint),
            path: text(file),
            tenant: text(tenant),
            reason: reason?.value,
            expires: expires?,
        })
    }

    /// What must be there; asked only when nothing else is wrong, so that one slip is not told twice.
    fn check_suppression(&mut self, node: &Node, path: &str, is_narrow: bool) {
        let Value::Map(entries) = &node.value else { return };
        let has = |wanted: &str| entries.iter().any(|(key, _)| key.text == wanted);
        let place = self.place(node.line, node.column, path);
        if !has("reason") {
            let fix = "add `reason:` and say why this is excused";
            self.report(place.clone(), "a suppression needs a reason".to_owned(), fix.to_owned());
        }
        if !has("expires") {
            let fix = "add `expires:` with a date such as `2031-12-31`";
            self.report(place.clone(), "a suppression needs an end".to_owned(), fix.to_owned());
        }
        if !is_narrow {
            let what = "a suppression by path or tenant alone would excuse everything there";
            self.report(place, what.to_owned(), "name a `rule`, `category` or `fingerprint`".to_owned());
        }
    }

    fn expires(&mut self, node: &Node, path: &str) -> Option<Timestamp> {
        let text = self.text(node, path)?;
        let expires = parse_expiry(&text.value);
        if expires.is_none() {
            let fix =
                "write a date such as `2031-12-31` (its whole day counts, in UTC) or `2031-12-31T18:00:00Z`";
            self.report(text.place, format!("`{}` is not a time", shown(&text.value)), fix.to_owned());
        }
        expires
    }
}

/// Names that must be known.
impl Decoder<'_> {
    fn check_plugin(&mut self, plugin: &str, place: &Place) {
        let known: Vec<_> = self.vocabulary.all_plugins().collect();
        if !known.contains(&plugin) {
            let what = format!("unknown plugin `{}`", shown(plugin));
            self.report(place.clone(), what, nearest_or_list(plugin, &known));
        }
    }

    pub(super) fn check_rule(&mut self, rule: &str, place: Place) {
        let Some(known) = self.vocabulary.rules else { return };
        if !known.contains(&rule) {
            let fix = nearest(rule, known).map_or_else(
                || "see `portcullis rules list` for the rules that there are".to_owned(),
                |name| format!("did you mean `{name}`?"),
            );
            self.report(place, format!("unknown rule `{}`", shown(rule)), fix);
        }
    }

    pub(super) fn check_category(&mut self, category: &str, place: Place) {
        let is_piece = |piece: &str| {
            !piece.is_empty()
                && piece
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'))
        };
        if !category.split('.').all(is_piece) {
            let fix = "write lower-case words joined by dots, such as `pii.email`";
            self.report(place, format!("`{}` cannot be a category", shown(category)), fix.to_owned());
            return;
        }
        self.categories.push(Located { value: category.to_owned(), place });
    }

    pub(super) fn unknown_key(&mut self, key: &Key, within: &str, valid: &[&str]) {
        let place = self.place(key.line, key.column, within);
        self.report(place, format!("unknown key `{}`", shown(&key.text)), nearest_or_list(&key.text, valid));
    }
}

/// `250ms`, `5s`, `1m`.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(unit_ms)?))
}

/// A moment, or a date, which lasts to its end in UTC.
fn parse_expiry(text: &str) -> Option<Timestamp> {
    if text.len() != "2031-12-31".len() {
        return text.parse().ok();
    }
    let next_day = text.parse::<Date>().ok()?.tomorrow().ok()?;
    Some(next_day.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

fn is_word(node: &Node, word: &str) -> bool {
    matches!(&node.value, Value::Scalar { text, .. } if text == word)
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

pub(super) fn at(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}
