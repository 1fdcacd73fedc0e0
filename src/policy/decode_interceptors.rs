//! The keys `tools`, `workspace_roots` and `interceptors` of a policy file.
//!
//! Shapes are checked here; what patterns and expressions mean is checked by the engine that runs them, with the places
//! that are kept beside each interceptor.

use std::collections::BTreeMap;
use std::time::Duration;

use super::decode::{Decoder, at, join, parse_duration};
use super::interceptor::{
    ActionSpec, BUILTIN_INTERCEPTORS, BUILTIN_PREFIX, BuiltinSwitch, HandlerSpec, INTERCEPTOR_ID_FIX,
    InjectionAction, InterceptorSpec, Params, Places, PolicyInterceptor, RemoteSpec, RuleSpec,
    TIMEOUT_DEFAULT, TIMEOUT_MAX, is_interceptor_id,
};
use super::schema::{
    ACTION_KEYS, ARGUMENT_KIND_KEYS, BUILTIN_KEYS, EXTENSION_KEYS, FAIL_MODES, HOOKS, INJECTION_ACTIONS,
    INTERCEPTOR_KEYS, InterceptorLayer, PARAMS_KEYS, TOOLS_KEYS, WEBHOOK_KEYS,
};
use super::tools::{ArgumentKind, ToolSettings};
use super::tree::{Key, Node, Typed, Value};
use super::values::{nearest_or_list, shown};
use crate::decision::{FailMode, Mode};

/// Most tries of a remote call.
const ATTEMPTS_MAX: u32 = 5;

impl Decoder<'_> {
    pub(super) fn tools(&mut self, node: &Node, path: &str) -> ToolSettings {
        let mut settings = ToolSettings::default();
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "known" => settings.known = self.known_tools(node, &inner),
                "arguments" => settings.arguments = self.tool_arguments(node, &inner),
                _ => self.unknown_key(key, path, TOOLS_KEYS),
            }
        }
        settings
    }

    /// A list of names, or a mapping of names to other spellings.
    fn known_tools(&mut self, node: &Node, path: &str) -> BTreeMap<String, Vec<String>> {
        let mut known = BTreeMap::new();
        if let Value::List(items) = &node.value {
            for (index, item) in items.iter().enumerate() {
                if let Some(name) = self.filled(item, &at(path, index)) {
                    known.insert(name.value, Vec::new());
                }
            }
            return known;
        }
        for (key, node) in self.mapping(node, path) {
            let spellings = self.texts(node, &join(path, &key.text), "a list of other spellings");
            known.insert(key.text.clone(), spellings);
        }
        known
    }

    fn tool_arguments(
        &mut self,
        node: &Node,
        path: &str,
    ) -> BTreeMap<String, BTreeMap<ArgumentKind, Vec<String>>> {
        let mut tools = BTreeMap::new();
        for (tool, node) in self.mapping(node, path) {
            let path = join(path, &tool.text);
            let mut arguments = BTreeMap::new();
            for (key, node) in self.mapping(node, &path) {
                match ArgumentKind::ALL.into_iter().find(|kind| kind.as_str() == key.text) {
                    Some(kind) => {
                        let names = self.texts(node, &join(&path, &key.text), "a list of argument names");
                        arguments.insert(kind, names);
                    }
                    None => self.unknown_key(key, &path, ARGUMENT_KIND_KEYS),
                }
            }
            tools.insert(tool.text.clone(), arguments);
        }
        tools
    }

    pub(super) fn workspace_roots(&mut self, node: &Node, path: &str) -> Option<Vec<String>> {
        let items = self.list(node, path, "a list of absolute folders")?;
        let mut roots = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let Some(root) = self.filled(item, &at(path, index)) else { continue };
            if is_absolute(&root.value) {
                roots.push(root.value);
            } else {
                let what = format!("`{}` is not absolute", shown(&root.value));
                self.report(root.place, what, "write the whole path, from `/` or from a drive".to_owned());
            }
        }
        Some(roots)
    }

    pub(super) fn interceptors(&mut self, node: &Node, path: &str) -> Vec<InterceptorLayer> {
        let items = self.list(node, path, "a list of interceptors").unwrap_or_default();
        let mut layers: Vec<InterceptorLayer> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let Some(layer) = self.interceptor(item, &at(path, index)) else { continue };
            if layers.iter().any(|other| other.id() == layer.id()) {
                let place = self.place(item.line, item.column, &at(path, index));
                let what = format!("the id `{}` stands twice", shown(layer.id()));
                self.report(place, what, "rename or remove one of the two".to_owned());
                continue;
            }
            layers.push(layer);
        }
        layers
    }

    fn interceptor(&mut self, node: &Node, path: &str) -> Option<InterceptorLayer> {
        let entries = self.mapping(node, path);
        let Some((_, id)) = entries.iter().find(|(key, _)| key.text == "id") else {
            let place = self.place(node.line, node.column, path);
            self.report(place, "an interceptor needs an `id`".to_owned(), INTERCEPTOR_ID_FIX.to_owned());
            return None;
        };
        let id = self.filled(id, &join(path, "id"))?;
        if id.value.starts_with(BUILTIN_PREFIX) {
            if !BUILTIN_INTERCEPTORS.contains(&id.value.as_str()) {
                let what = format!("unknown built-in interceptor `{}`", shown(&id.value));
                self.report(id.place, what, nearest_or_list(&id.value, BUILTIN_INTERCEPTORS));
                return None;
            }
            let switch = self.builtin_switch(&id.value, entries, path);
            return Some(InterceptorLayer::Builtin { id: id.value, switch });
        }
        if !is_interceptor_id(&id.value) {
            let what = format!("`{}` cannot be the id of an interceptor", shown(&id.value));
            self.report(id.place, what, INTERCEPTOR_ID_FIX.to_owned());
            return None;
        }
        self.own_interceptor(id.value, node, entries, path).map(|own| InterceptorLayer::Own(Box::new(own)))
    }

    fn builtin_switch(&mut self, id: &str, entries: &[(Key, Node)], path: &str) -> BuiltinSwitch {
        let mut switch = BuiltinSwitch::default();
        for (key, node) in entries {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "id" => {}
                "mode" => switch.mode = self.mode(node, &inner).map(|mode| mode.value),
                "fail" => switch.fail = self.word(node, &inner, FAIL_MODES).map(|word| word.value),
                "timeout" => switch.timeout = self.interceptor_timeout(node, &inner),
                "categories" if id == "builtin:redact-secrets" => {
                    switch.categories = Some(self.categories_of(node, &inner, "a list of categories"));
                }
                "injection" if id == "builtin:injection-guard" => {
                    switch.injection = self.injection_action(node, &inner);
                }
                _ => {
                    let valid: Vec<&str> = BUILTIN_KEYS
                        .iter()
                        .copied()
                        .filter(|key| *key != "categories" || id == "builtin:redact-secrets")
                        .filter(|key| *key != "injection" || id == "builtin:injection-guard")
                        .collect();
                    self.unknown_key(key, path, &valid);
                }
            }
        }
        switch
    }

    fn injection_action(&mut self, node: &Node, path: &str) -> Option<InjectionAction> {
        if let Value::Scalar { typed: Some(Typed::Bool(false)), .. } = node.value {
            return Some(InjectionAction::Off);
        }
        self.word(node, path, INJECTION_ACTIONS).map(|word| word.value)
    }

    fn interceptor_timeout(&mut self, node: &Node, path: &str) -> Option<Duration> {
        let text = self.text(node, path)?;
        let duration = parse_duration(&text.value).filter(|span| !span.is_zero() && *span <= TIMEOUT_MAX);
        if duration.is_none() {
            let fix = "write a whole number and a unit, from 1ms to 60s, such as `250ms` or `2s`";
            self.report(
                text.place,
                format!("`{}` is not a usable time span", shown(&text.value)),
                fix.to_owned(),
            );
        }
        duration
    }

    fn own_interceptor(
        &mut self,
        id: String,
        node: &Node,
        entries: &[(Key, Node)],
        path: &str,
    ) -> Option<PolicyInterceptor> {
        let before = self.problems.len();
        let mut places = Places::default();
        places.0.insert(String::new(), self.place(node.line, node.column, path));
        let (mut hook, mut priority, mut mode, mut fail) = (None, 0, Mode::Enforce, FailMode::Closed);
        let (mut tools, mut agents, mut description) = (String::new(), String::new(), String::new());
        let (mut timeout, mut allow_unknown_tools) = (TIMEOUT_DEFAULT, false);
        let (mut when, mut actions) = (None, None);
        let mut remote = Vec::new();
        for (key, node) in entries {
            let inner = join(path, &key.text);
            places.0.insert(key.text.clone(), self.place(node.line, node.column, &inner));
            match key.text.as_str() {
                "id" => {}
                "hook" => hook = self.word(node, &inner, HOOKS).map(|word| word.value),
                "priority" => priority = self.integer(node, &inner).unwrap_or(0),
                "tools" => tools = self.filled(node, &inner).map(|text| text.value).unwrap_or_default(),
                "agents" => agents = self.filled(node, &inner).map(|text| text.value).unwrap_or_default(),
                "description" => {
                    description = self.text(node, &inner).map(|text| text.value).unwrap_or_default();
                }
                "mode" => mode = self.mode(node, &inner).map_or(mode, |mode| mode.value),
                "fail" => fail = self.word(node, &inner, FAIL_MODES).map_or(fail, |word| word.value),
                "timeout" => timeout = self.interceptor_timeout(node, &inner).unwrap_or(timeout),
                "when" => when = self.filled(node, &inner).map(|text| text.value),
                "do" => actions = Some(self.actions(node, &inner, &mut places)),
                "extension" => remote.push(HandlerSpec::Extension(self.remote(
                    node,
                    (&inner, &key.text),
                    "endpoint",
                    EXTENSION_KEYS,
                    &mut places,
                ))),
                "webhook" => remote.push(HandlerSpec::Webhook(self.remote(
                    node,
                    (&inner, &key.text),
                    "url",
                    WEBHOOK_KEYS,
                    &mut places,
                ))),
                "allow_unknown_tools" => allow_unknown_tools = self.boolean(node, &inner).unwrap_or(false),
                _ => self.unknown_key(key, path, INTERCEPTOR_KEYS),
            }
        }
        let place = self.place(node.line, node.column, path);
        if hook.is_none() && self.problems.len() == before {
            let names: Vec<_> = HOOKS.iter().map(|(name, _)| *name).collect();
            let fix = format!("add `hook:` with one of: {}", names.join(", "));
            self.report(place.clone(), "an interceptor needs a `hook`".to_owned(), fix);
        }
        let has_rule = when.is_some() || actions.is_some();
        if remote.len() + usize::from(has_rule) != 1 && self.problems.len() == before {
            let what = "an interceptor needs exactly one of `do`, `extension` and `webhook`";
            let fix = "write actions under `do`, or name who does the work";
            self.report(place.clone(), what.to_owned(), fix.to_owned());
        }
        let actions = actions.unwrap_or_default();
        if has_rule && actions.is_empty() && self.problems.len() == before {
            let fix = "add at least one action, such as `- block: the reason`";
            self.report(place, "an interceptor without actions does nothing".to_owned(), fix.to_owned());
        }
        if self.problems.len() != before {
            return None;
        }
        let rule = HandlerSpec::Rule(RuleSpec { when: when.unwrap_or_default(), actions });
        let handler = remote.pop().unwrap_or(rule);
        let spec = InterceptorSpec {
            id,
            hook: hook?,
            priority,
            tools,
            agents,
            description,
            mode,
            fail,
            timeout,
            handler,
            allow_unknown_tools,
        };
        Some(PolicyInterceptor { spec, places })
    }

    fn actions(&mut self, node: &Node, path: &str, places: &mut Places) -> Vec<ActionSpec> {
        let items = self.list(node, path, "a list of actions").unwrap_or_default();
        let mut actions = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let (path, field) = (at(path, index), format!("do[{index}]"));
            places.0.insert(field.clone(), self.place(item.line, item.column, &path));
            let entries = self.mapping(item, &path);
            if let [(key, value)] = entries {
                actions.extend(self.action(key, value, (&path, &field), places));
            } else if matches!(item.value, Value::Map(_)) {
                let place = self.place(item.line, item.column, &path);
                let what = format!("an action has one key, found {}", entries.len());
                self.report(place, what, "begin each action with a dash of its own".to_owned());
            }
        }
        actions
    }

    fn action(
        &mut self,
        key: &Key,
        node: &Node,
        (path, field): (&str, &str),
        places: &mut Places,
    ) -> Option<ActionSpec> {
        let (inner, field) = (join(path, &key.text), join(field, &key.text));
        places.0.insert(field.clone(), self.place(node.line, node.column, &inner));
        Some(match key.text.as_str() {
            "block" => ActionSpec::Block(self.filled(node, &inner)?.value),
            "ask" => ActionSpec::Ask(self.filled(node, &inner)?.value),
            "append" => ActionSpec::Append(self.filled(node, &inner)?.value),
            "audit" => ActionSpec::Audit(self.filled(node, &inner)?.value),
            "merge_args" => {
                self.mapping(node, &inner);
                ActionSpec::MergeArgs(json_of(node))
            }
            "set_args" => ActionSpec::SetArgs(self.assignments(node, &inner, &field, places)),
            "set_metadata" => ActionSpec::SetMetadata(self.assignments(node, &inner, &field, places)),
            "redact" => ActionSpec::Redact(match &node.value {
                Value::Scalar { typed: Some(Typed::Bool(true)), .. } => Vec::new(),
                _ => self.categories_of(node, &inner, "a list of categories, or `true` for secrets and pii"),
            }),
            "strip_ansi" => {
                if self.boolean(node, &inner)? {
                    ActionSpec::StripAnsi
                } else {
                    let place = self.place(node.line, node.column, &inner);
                    self.report(place, "does nothing".to_owned(), "write `true`, or remove it".to_owned());
                    return None;
                }
            }
            "set_params" => ActionSpec::SetParams(self.params(node, &inner)),
            _ => {
                self.unknown_key(key, path, ACTION_KEYS);
                return None;
            }
        })
    }

    fn assignments(
        &mut self,
        node: &Node,
        path: &str,
        field: &str,
        places: &mut Places,
    ) -> BTreeMap<String, String> {
        let before = self.problems.len();
        let mut values = BTreeMap::new();
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            places.0.insert(join(field, &key.text), self.place(node.line, node.column, &inner));
            if let Some(expression) = self.filled(node, &inner) {
                values.insert(key.text.clone(), expression.value);
            }
        }
        if values.is_empty() && self.problems.len() == before {
            let place = self.place(node.line, node.column, path);
            let fix = "write at least one name and the expression of its value";
            self.report(place, "sets nothing".to_owned(), fix.to_owned());
        }
        values
    }

    fn params(&mut self, node: &Node, path: &str) -> Params {
        let before = self.problems.len();
        let mut params = Params::default();
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "temperature" => params.temperature = self.number(node, &inner),
                name => {
                    let slot = match name {
                        "provider" => &mut params.provider,
                        "model" => &mut params.model,
                        "think_level" => &mut params.think_level,
                        "reasoning_level" => &mut params.reasoning_level,
                        _ => {
                            self.unknown_key(key, path, PARAMS_KEYS);
                            continue;
                        }
                    };
                    // Tools that follow YAML 1.1 turn a plain `off` and `on` into booleans when they rewrite a file.
                    *slot = match &node.value {
                        Value::Scalar { typed: Some(Typed::Bool(on)), .. } if name.ends_with("_level") => {
                            if *on {
                                "on".to_owned()
                            } else {
                                "off".to_owned()
                            }
                        }
                        _ => self.filled(node, &inner).map(|text| text.value).unwrap_or_default(),
                    };
                }
            }
        }
        let place = self.place(node.line, node.column, path);
        if let Err((name, what)) = params.check() {
            self.report(place, format!("`{name}` {what}"), "correct the value".to_owned());
        } else if params.is_empty() && self.problems.len() == before {
            self.report(place, "sets nothing".to_owned(), "state at least one parameter".to_owned());
        }
        params
    }

    fn remote(
        &mut self,
        node: &Node,
        (path, field): (&str, &str),
        address: &'static str,
        valid: &[&str],
        places: &mut Places,
    ) -> RemoteSpec {
        let before = self.problems.len();
        let mut spec = RemoteSpec { attempts_max: 1, ..RemoteSpec::default() };
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            let place = self.place(node.line, node.column, &inner);
            places.0.insert(join(field, &key.text), place.clone());
            match key.text.as_str() {
                name if name == address => {
                    // The engine knows one name for both.
                    places.0.insert(join(field, "endpoint"), place);
                    spec.endpoint = self.filled(node, &inner).map(|text| text.value).unwrap_or_default();
                }
                "credential" => {
                    spec.credential = self.filled(node, &inner).map(|text| text.value).unwrap_or_default();
                }
                "attempts_max" => match self.integer(node, &inner).map(u32::try_from) {
                    Some(Ok(n @ 1..=ATTEMPTS_MAX)) => spec.attempts_max = n,
                    Some(_) => {
                        let fix = format!("use a whole number from 1 to {ATTEMPTS_MAX}");
                        self.report(place, "is out of range".to_owned(), fix);
                    }
                    None => {}
                },
                _ => self.unknown_key(key, path, valid),
            }
        }
        if spec.endpoint.is_empty() && self.problems.len() == before {
            let place = self.place(node.line, node.column, path);
            self.report(place, format!("needs `{address}`"), format!("add `{address}: https://…`"));
        }
        spec
    }

    fn number(&mut self, node: &Node, path: &str) -> Option<f64> {
        if let Value::Scalar { typed: Some(Typed::Number(value)), .. } = node.value {
            return Some(value);
        }
        self.expected(node, path, "a number");
        None
    }

    #[allow(clippy::cast_possible_truncation, reason = "the range is checked before")]
    fn integer(&mut self, node: &Node, path: &str) -> Option<i32> {
        if let Value::Scalar { typed: Some(Typed::Number(value)), .. } = node.value
            && value.fract() == 0.0
            && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value)
        {
            return Some(value as i32);
        }
        self.expected(node, path, "a whole number");
        None
    }
}

/// Whether a path is absolute in the notation of any system.
fn is_absolute(path: &str) -> bool {
    let is_drive = |b: &[u8]| b.len() >= 3 && b[0].is_ascii_alphabetic() && b[1] == b':';
    path.starts_with('/')
        || path.starts_with("\\\\")
        || (is_drive(path.as_bytes()) && matches!(path.as_bytes()[2], b'/' | b'\\'))
}

/// The node as JSON. Numbers keep their spelling where JSON has it.
fn json_of(node: &Node) -> String {
    let mut out = String::new();
    write_json(node, &mut out);
    out
}

fn write_json(node: &Node, out: &mut String) {
    let text = |text: &str, out: &mut String| out.push_str(&serde_json::Value::from(text).to_string());
    match &node.value {
        Value::Null => out.push_str("null"),
        Value::Scalar { typed: Some(Typed::Bool(value)), .. } => out.push_str(&value.to_string()),
        Value::Scalar { typed: Some(Typed::Number(value)), text: spelling } => {
            // YAML knows more ways to write a number than JSON does.
            if serde_json::from_str::<serde_json::Number>(spelling).is_ok() {
                out.push_str(spelling);
            } else {
                out.push_str(&serde_json::Value::from(*value).to_string());
            }
        }
        Value::Scalar { typed: None, text: value } => text(value, out),
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                text(&key.text, out);
                out.push(':');
                write_json(value, out);
            }
            out.push('}');
        }
    }
}
