use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;
use crate::decision::Decision;
use crate::tools::step::Changes;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    compile: Vec<Compile>,
    apply: Vec<Apply>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Compile {
    hook: String,
    #[serde(default)]
    when: String,
    r#do: Vec<Do>,
    #[serde(default)]
    problems: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Apply {
    name: String,
    hook: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    args: String,
    #[serde(default)]
    result: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    metadata: String,
    #[serde(default)]
    when: String,
    r#do: Vec<Do>,
    #[serde(default)]
    decision: Decision,
    #[serde(default)]
    reason: String,
    new_args: Option<String>,
    new_result: Option<String>,
    new_message: Option<String>,
    new_metadata: Option<String>,
    new_params: Option<ParamsCase>,
    #[serde(default)]
    did: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    error: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ParamsCase {
    provider: String,
    model: String,
    think_level: String,
    reasoning_level: String,
    temperature: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Do {
    Block(String),
    Ask(String),
    MergeArgs(String),
    SetArgs(BTreeMap<String, String>),
    Redact(Vec<String>),
    StripAnsi(bool),
    SetMetadata(BTreeMap<String, String>),
    SetParams(ParamsCase),
    Append(String),
    Audit(String),
}

impl From<ParamsCase> for Params {
    fn from(case: ParamsCase) -> Self {
        let ParamsCase { provider, model, think_level, reasoning_level, temperature } = case;
        Self { provider, model, think_level, reasoning_level, temperature }
    }
}

fn spec(when: String, actions: Vec<Do>) -> RuleSpec {
    let action = |action| match action {
        Do::Block(text) => ActionSpec::Block(text),
        Do::Ask(text) => ActionSpec::Ask(text),
        Do::MergeArgs(text) => ActionSpec::MergeArgs(text),
        Do::SetArgs(members) => ActionSpec::SetArgs(members),
        Do::Redact(names) => ActionSpec::Redact(names),
        Do::StripAnsi(on) => {
            assert!(on, "a switch that is off does nothing");
            ActionSpec::StripAnsi
        }
        Do::SetMetadata(members) => ActionSpec::SetMetadata(members),
        Do::SetParams(params) => ActionSpec::SetParams(params.into()),
        Do::Append(text) => ActionSpec::Append(text),
        Do::Audit(text) => ActionSpec::Audit(text),
    };
    RuleSpec { when, actions: actions.into_iter().map(action).collect() }
}

fn cases() -> Cases {
    toml::from_str(include_str!("../../../tests/cases/tools/actions.toml")).expect("cases are valid")
}

/// Takes out the word SECRET.
fn redact(_: Payload, text: &str, _: &[Category], _: &mut Placeholders) -> Result<Redacted, InterceptError> {
    let count = text.matches("SECRET").count();
    if count == 0 {
        return Ok(Redacted::default());
    }
    let kinds = BTreeMap::from([("X".to_owned(), count)]);
    Ok(Redacted { text: Some(text.replace("SECRET", "[X_1]")), kinds, ..Redacted::default() })
}

#[test]
fn compiles_and_refuses() {
    for case in cases().compile {
        let hook = Hook::parse(&case.hook).expect("a hook");
        let problems = match CompiledRule::compile(&spec(case.when, case.r#do), hook) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(problems, case.problems);
    }
}

#[test]
fn applies() {
    for case in cases().apply {
        let hook = Hook::parse(&case.hook).expect("a hook");
        let rule = CompiledRule::compile(&spec(case.when, case.r#do), hook).expect(&case.name);
        let params = Params { model: "m".to_owned(), ..Params::default() };
        let call = RuleCall {
            tool: &case.tool,
            args: &case.args,
            result: &case.result,
            message: &case.message,
            params: &params,
            metadata: &case.metadata,
            context: &|| Ok("{\"agent_id\":\"a1\"}".to_owned()),
            findings: &|| Ok("[{\"category\":\"pii.email\"}]".to_owned()),
            effects: &|| Ok("[{\"kind\":\"delete_path\",\"target\":\"/x\"}]".to_owned()),
            redact: &redact,
        };
        match (rule.apply(&call), case.error) {
            (Ok(step), None) => {
                let changes = Changes {
                    args: case.new_args,
                    result: case.new_result,
                    message: case.new_message,
                    params: case.new_params.map(Into::into),
                    metadata: case.new_metadata,
                };
                assert_eq!(step.changes, changes, "{}", case.name);
                assert_eq!((step.decision, step.reason), (case.decision, case.reason), "{}", case.name);
                assert_eq!((step.did, step.notes), (case.did, case.notes), "{}", case.name);
            }
            (Err(error), Some(wanted)) => assert_eq!(error.to_string(), wanted, "{}", case.name),
            (got, wanted) => panic!("{}: {got:?}, wanted {wanted:?}", case.name),
        }
    }
}

#[test]
fn what_no_expression_names_is_not_asked_for() {
    let never = || -> Result<String, InterceptError> { panic!("nobody asked") };
    let actions = vec![Do::Audit("x".to_owned())];
    let rule = CompiledRule::compile(&spec("tool == 'exec'".to_owned(), actions), Hook::ToolBefore);
    let params = Params::default();
    let call = RuleCall {
        tool: "exec",
        args: "not even JSON",
        result: "",
        message: "",
        params: &params,
        metadata: "",
        context: &never,
        findings: &never,
        effects: &never,
        redact: &redact,
    };
    let step = rule.expect("compiles").apply(&call).expect("applies");
    assert_eq!(step.notes, ["x"]);
}

#[test]
fn limits_are_told() {
    let many = (0..=ACTIONS_MAX).map(|_| Do::Audit("x".to_owned())).collect();
    let long = vec![Do::Block("x".repeat(TEXT_BYTES_MAX + 1))];
    let members = (0..=MEMBERS_MAX).map(|n| (format!("m{n}"), "1".to_owned())).collect();
    for actions in [many, long, vec![Do::SetArgs(members)]] {
        let problems = CompiledRule::compile(&spec(String::new(), actions), Hook::ToolBefore);
        assert_eq!(problems.map(drop).map_err(|problems| problems.len()), Err(1));
    }
}
