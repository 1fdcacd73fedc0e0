//! The subset of JSON schema that questions use: validation, and schemas as providers take them.

use serde_json::{Map, Value};

/// Keywords that say something about a value.
const KEYWORDS: [&str; 14] = [
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "anyOf",
];
/// Keywords that say something to a person.
const NOTES: [&str; 2] = ["title", "description"];
/// Limits that not every provider accepts in a schema. They are checked here in any case.
const LIMITS: [&str; 6] = ["minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"];

/// Whether a schema stays within the subset: the keywords `type`, `enum`, `const`, `properties`, `required`,
/// `additionalProperties` (false), `items`, `anyOf`, `minItems`, `maxItems`, `minLength`, `maxLength`, `minimum`,
/// `maximum`, `title` and `description`; objects are closed.
///
/// # Errors
/// What is outside of it.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    let Value::Object(schema) = schema else { return Err("a schema must be an object".to_owned()) };
    for (keyword, value) in schema {
        match keyword.as_str() {
            "properties" => {
                let properties = value.as_object().ok_or("`properties` must be an object")?;
                properties.values().try_for_each(check_schema)?;
            }
            "items" => check_schema(value)?,
            "anyOf" => value.as_array().ok_or("`anyOf` must be a list")?.iter().try_for_each(check_schema)?,
            "additionalProperties" if *value != Value::Bool(false) => {
                return Err("`additionalProperties` must be false".to_owned());
            }
            known if KEYWORDS.contains(&known) || NOTES.contains(&known) => {}
            unknown => return Err(format!("the keyword `{unknown}` is not supported")),
        }
    }
    let is_object = schema.contains_key("properties") || schema.get("type") == Some(&Value::from("object"));
    if is_object && schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err("an object needs `additionalProperties: false`".to_owned());
    }
    Ok(())
}

/// Whether a value is valid under a schema of the subset.
///
/// # Errors
/// Where it is not and which keyword it breaks: a JSON Pointer whose names are those of the schema, never the value's.
pub(super) fn validate(schema: &Value, value: &Value) -> Result<(), String> {
    validate_at(schema, value, "")
}

fn validate_at(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Value::Object(schema) = schema else { return Err(format!("{at}: no schema")) };
    let breaks = |keyword: &str| match at {
        // The pointer of the whole is empty.
        "" => Err(format!("the whole breaks `{keyword}`")),
        _ => Err(format!("`{at}` breaks `{keyword}`")),
    };
    for (keyword, wanted) in schema {
        let holds = match keyword.as_str() {
            "type" => is_of_type(wanted, value),
            "enum" => wanted.as_array().is_some_and(|list| list.contains(value)),
            "const" => wanted == value,
            "anyOf" => {
                let mut any = wanted.as_array().into_iter().flatten();
                any.any(|schema| validate_at(schema, value, at).is_ok())
            }
            "required" => value.as_object().is_none_or(|members| {
                let mut names = wanted.as_array().into_iter().flatten().filter_map(Value::as_str);
                names.all(|name| members.contains_key(name))
            }),
            "additionalProperties" => value
                .as_object()
                .is_none_or(|members| members.keys().all(|name| property(schema, name).is_some())),
            "minItems" => value.as_array().is_none_or(|list| at_least(list.len(), wanted)),
            "maxItems" => value.as_array().is_none_or(|list| at_most(list.len(), wanted)),
            "minLength" => value.as_str().is_none_or(|text| at_least(text.chars().count(), wanted)),
            "maxLength" => value.as_str().is_none_or(|text| at_most(text.chars().count(), wanted)),
            "minimum" => {
                value.as_f64().is_none_or(|number| wanted.as_f64().is_some_and(|least| number >= least))
            }
            "maximum" => {
                value.as_f64().is_none_or(|number| wanted.as_f64().is_some_and(|most| number <= most))
            }
            "properties" | "items" | "title" | "description" => true,
            _ => false,
        };
        if !holds {
            return breaks(keyword);
        }
    }
    if let Value::Object(members) = value {
        for (name, member) in members {
            if let Some(inner) = property(schema, name) {
                validate_at(inner, member, &format!("{at}/{name}"))?;
            }
        }
    }
    if let (Value::Array(list), Some(inner)) = (value, schema.get("items")) {
        for (index, item) in list.iter().enumerate() {
            validate_at(inner, item, &format!("{at}/{index}"))?;
        }
    }
    Ok(())
}

fn property<'s>(schema: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
    schema.get("properties")?.get(name)
}

fn at_least(count: usize, least: &Value) -> bool {
    least.as_u64().is_some_and(|least| count as u64 >= least)
}

fn at_most(count: usize, most: &Value) -> bool {
    most.as_u64().is_some_and(|most| count as u64 <= most)
}

fn is_of_type(wanted: &Value, value: &Value) -> bool {
    match wanted {
        Value::Array(any) => any.iter().any(|one| is_of_type(one, value)),
        Value::String(name) => match name.as_str() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "number" => value.is_number(),
            // 3.0 is an integer in JSON schema.
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            _ => false,
        },
        _ => false,
    }
}

/// The schema without limits on lengths, counts and numbers, which some providers refuse.
pub(super) fn without_limits(schema: &Value) -> Value {
    rewrite(schema, &|keyword| LIMITS.contains(&keyword))
}

/// The schema in the older subset of OpenAPI, which knows no closed objects and no constants.
pub(super) fn open_api(schema: &Value) -> Value {
    let mut schema = rewrite(schema, &|keyword| matches!(keyword, "additionalProperties" | "title"));
    constants_to_enums(&mut schema);
    schema
}

fn constants_to_enums(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(constant) = members.remove("const") {
                members.insert("enum".to_owned(), Value::Array(vec![constant]));
            }
            for (keyword, inner) in members {
                match (keyword.as_str(), inner) {
                    // Names of members are not keywords.
                    ("properties", Value::Object(named)) => named.values_mut().for_each(constants_to_enums),
                    ("items" | "anyOf", inner) => constants_to_enums(inner),
                    _ => {}
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(constants_to_enums),
        _ => {}
    }
}

fn rewrite(schema: &Value, drop: &dyn Fn(&str) -> bool) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let kept = members.iter().filter(|(keyword, _)| !drop(keyword));
    let rewritten = kept.map(|(keyword, value)| {
        let value = match (keyword.as_str(), value) {
            // Names of members are not keywords.
            ("properties", Value::Object(inner)) => Value::Object(
                inner.iter().map(|(name, inner)| (name.clone(), rewrite(inner, drop))).collect(),
            ),
            ("items", inner) => rewrite(inner, drop),
            ("anyOf", Value::Array(any)) => any.iter().map(|inner| rewrite(inner, drop)).collect(),
            (_, other) => other.clone(),
        };
        (keyword.clone(), value)
    });
    Value::Object(rewritten.collect())
}

/// Whether every member of every object is required, which the strict mode of some providers wants.
pub(super) fn requires_all(schema: &Value) -> bool {
    let own = match schema.get("properties").and_then(Value::as_object) {
        Some(properties) => {
            let required = schema.get("required").and_then(Value::as_array);
            properties
                .keys()
                .all(|name| required.is_some_and(|list| list.contains(&Value::from(name.as_str()))))
                && properties.values().all(requires_all)
        }
        None => true,
    };
    let items = schema.get("items").is_none_or(requires_all);
    let any = schema.get("anyOf").and_then(Value::as_array);
    own && items && any.is_none_or(|any| any.iter().all(requires_all))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict() -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["verdict", "reason"],
            "properties": {
                "verdict": {"type": "string", "enum": ["SAFE", "WARN", "KILL"]},
                "reason": {"type": "string", "minLength": 1, "maxLength": 5},
                "score": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
                "lines": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}},
                "kind": {"anyOf": [{"const": "a"}, {"type": "boolean"}]},
            }
        })
    }

    #[test]
    fn values_are_valid_or_told_where_not() {
        for (value, wanted) in [
            (json!({"verdict": "SAFE", "reason": "ok"}), None),
            (
                json!({"verdict": "KILL", "reason": "é€é€é", "score": null, "lines": [1, 2.0], "kind": true}),
                None,
            ),
            (json!({"verdict": "KILL", "reason": "x", "kind": "a", "score": 1}), None),
            (json!([]), Some("the whole breaks `type`")),
            (json!({"verdict": "SAFE"}), Some("the whole breaks `required`")),
            (
                json!({"verdict": "SAFE", "reason": "x", "more": 1}),
                Some("the whole breaks `additionalProperties`"),
            ),
            (json!({"verdict": "safe", "reason": "x"}), Some("`/verdict` breaks `enum`")),
            (json!({"verdict": "SAFE", "reason": ""}), Some("`/reason` breaks `minLength`")),
            (json!({"verdict": "SAFE", "reason": "123456"}), Some("`/reason` breaks `maxLength`")),
            (json!({"verdict": "SAFE", "reason": 1}), Some("`/reason` breaks `type`")),
            (json!({"verdict": "SAFE", "reason": "x", "score": 1.1}), Some("`/score` breaks `maximum`")),
            (json!({"verdict": "SAFE", "reason": "x", "score": -1}), Some("`/score` breaks `minimum`")),
            (json!({"verdict": "SAFE", "reason": "x", "lines": []}), Some("`/lines` breaks `minItems`")),
            (
                json!({"verdict": "SAFE", "reason": "x", "lines": [1, 2, 3]}),
                Some("`/lines` breaks `maxItems`"),
            ),
            (json!({"verdict": "SAFE", "reason": "x", "lines": [1.5]}), Some("`/lines/0` breaks `type`")),
            (json!({"verdict": "SAFE", "reason": "x", "kind": "b"}), Some("`/kind` breaks `anyOf`")),
        ] {
            assert_eq!(validate(&verdict(), &value).err().as_deref(), wanted, "{value}");
        }
        assert!(validate(&json!({"pattern": "x"}), &json!("x")).is_err(), "what is not known never holds");
    }

    #[test]
    fn only_the_subset_is_accepted() {
        assert_eq!(check_schema(&verdict()), Ok(()));
        for (schema, part) in [
            (json!(true), "must be an object"),
            (json!({"type": "string", "pattern": "x"}), "`pattern` is not supported"),
            (json!({"type": "object", "properties": {}}), "additionalProperties: false"),
            (json!({"type": "array", "items": {"type": "object"}}), "additionalProperties: false"),
            (json!({"anyOf": [{"$ref": "#/x"}]}), "`$ref` is not supported"),
        ] {
            let problem = check_schema(&schema).expect_err("it is outside");
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn providers_get_what_they_take() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["minimum"],
            "properties": {"minimum": {"type": "number", "minimum": 0}, "k": {"anyOf": [{"const": "a", "maxLength": 1}]}}
        });
        assert_eq!(
            without_limits(&schema),
            json!({
                "type": "object", "additionalProperties": false, "required": ["minimum"],
                "properties": {"minimum": {"type": "number"}, "k": {"anyOf": [{"const": "a"}]}}
            })
        );
        assert_eq!(
            open_api(&schema),
            json!({
                "type": "object", "required": ["minimum"],
                "properties": {"minimum": {"type": "number", "minimum": 0}, "k": {"anyOf": [{"maxLength": 1, "enum": ["a"]}]}}
            })
        );
        assert!(!requires_all(&schema) && !requires_all(&verdict()));
        let strict = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
        assert!(requires_all(&strict));
    }
}
