//! The JSON of an HTTP plugin: what is posted, and a strict reading of what comes back.

use serde_json::{Map, Value, json};

use super::config::{AnswerMapping, RequestMapping, is_category};
use super::found::{Place, Seen, byte_range};
use crate::decision::{Direction, Reason, Severity};
use crate::extension::convert::presentable;
use crate::extension::failure::Failure;
use crate::rules::Role;
use crate::text::strict_json;

/// What a finding says that does not say anything.
const GENERAL: &str = "An external check found this unsafe.";
/// Most findings of one answer.
const FINDINGS_MAX: usize = 1_000;

/// What goes with a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around<'a> {
    pub(super) direction: Direction,
    pub(super) decision_id: &'a str,
}

/// The body of one post about one text.
pub(super) fn about_text(mapping: &RequestMapping, role: Role, text: &str, around: Around<'_>) -> Value {
    let mut body = frame(mapping, around);
    put(&mut body, &mapping.text, text.into());
    put(&mut body, &mapping.role, name_of(role).into());
    body
}

/// The body of one post about all texts.
pub(super) fn about_all<'t>(
    mapping: &RequestMapping,
    texts: impl Iterator<Item = (Role, &'t str)>,
    around: Around<'_>,
) -> Value {
    let mut body = frame(mapping, around);
    let texts: Vec<Value> = texts.map(|(role, text)| json!({"role": name_of(role), "text": text})).collect();
    put(&mut body, &mapping.messages, texts.into());
    body
}

fn frame(mapping: &RequestMapping, around: Around<'_>) -> Value {
    let mut body = Value::Object(mapping.fixed.clone());
    let direction = match around.direction {
        Direction::Input => "input",
        Direction::Output => "output",
    };
    put(&mut body, &mapping.direction, direction.into());
    put(&mut body, &mapping.decision_id, around.decision_id.into());
    body
}

/// The name of a role in the contract.
pub(super) fn name_of(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// Puts a value where a pointer leads, making the objects on the way. An empty pointer leads nowhere.
fn put(body: &mut Value, pointer: &str, value: Value) {
    let Some(path) = pointer.strip_prefix('/') else { return };
    let mut place = body;
    for step in path.split('/') {
        let step = step.replace("~1", "/").replace("~0", "~");
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[step];
    }
    *place = value;
}

/// Reads an answer. What is unsafe beyond doubt is a finding, also where the rest of it cannot be read: that is told
/// beside it.
///
/// # Errors
/// The answer does not say what is unsafe.
pub(super) fn read(
    mapping: &AnswerMapping,
    body: &[u8],
    text: Option<&str>,
) -> Result<(Vec<Seen>, Option<Failure>), Failure> {
    let answer = strict_json::read_bytes(body).map_err(|error| {
        // The text of the error could quote the answer.
        let place = format!("line {}, column {}", error.line(), error.column());
        bad(&format!("is no JSON that can be relied upon ({place})"))
    })?;
    let items: Vec<&Value> = if mapping.findings.is_empty() {
        vec![&answer]
    } else {
        let list = answer.pointer(&mapping.findings).and_then(Value::as_array);
        list.ok_or_else(|| bad("has no list at `answer.findings`"))?.iter().collect()
    };
    if items.len() > FINDINGS_MAX {
        return Err(Failure::refused(
            Reason::Limit,
            format!("its answer has more than {FINDINGS_MAX} findings"),
        ));
    }
    let (mut found, mut unread) = (Vec::new(), None);
    for item in items {
        if is_unsafe(mapping, item)? {
            found.push(seen(mapping, item, text, &mut unread));
        }
    }
    Ok((found, unread))
}

fn is_unsafe(mapping: &AnswerMapping, item: &Value) -> Result<bool, Failure> {
    if mapping.is_unsafe.is_empty() {
        return Ok(true);
    }
    let value = item.pointer(&mapping.is_unsafe).ok_or_else(|| bad("has nothing at `answer.is_unsafe`"))?;
    let is_among = |values: &[Value]| values.contains(value);
    match (is_among(&mapping.unsafe_values), is_among(&mapping.safe_values)) {
        (true, _) => Ok(true),
        (false, true) => Ok(false),
        (false, false) => Err(bad("has a value at `answer.is_unsafe` that is neither unsafe nor safe")),
    }
}

fn seen(mapping: &AnswerMapping, item: &Value, text: Option<&str>, unread: &mut Option<Failure>) -> Seen {
    let at = |pointer: &str| {
        if pointer.is_empty() { None } else { item.pointer(pointer).filter(|value| !value.is_null()) }
    };
    let mut cannot_read = |what: &str| {
        unread.get_or_insert_with(|| bad(&format!("has a {what} that cannot be understood")));
    };
    let category = at(&mapping.category).map_or(Ok(mapping.default_category.clone()), |value| {
        let name = value.as_str().ok_or(())?;
        let known = mapping.categories.get(name).cloned();
        let category = known.unwrap_or_else(|| name.trim().to_lowercase().replace([' ', '/'], "_"));
        if is_category(&category) { Ok(category) } else { Err(()) }
    });
    let category = category.unwrap_or_else(|()| {
        cannot_read("category");
        mapping.default_category.clone()
    });
    let severity = at(&mapping.severity)
        .map_or(Ok(mapping.default_severity), |value| severity_of(mapping, value).ok_or(()));
    let severity = severity.unwrap_or_else(|()| {
        cannot_read("severity");
        // Whoever says that something is bad in a way we do not know may mean the worst.
        Severity::Critical
    });
    let score = at(&mapping.score).map_or(Ok(severity.score()), |value| {
        value.as_f64().filter(|score| (0.0..=1.0).contains(score)).ok_or(())
    });
    let score = score.unwrap_or_else(|()| {
        cannot_read("score");
        severity.score()
    });
    let description = at(&mapping.description).and_then(Value::as_str).map(presentable);
    let place = match (text, mapping.start.is_empty()) {
        (Some(text), false) => span_of(mapping, item, text).unwrap_or_else(|()| {
            cannot_read("span");
            Place::Whole
        }),
        _ => Place::Whole,
    };
    Seen {
        rule: category.clone(),
        category,
        severity,
        score,
        description: description.filter(|text| !text.is_empty()).unwrap_or_else(|| GENERAL.to_owned()),
        recommendation: String::new(),
        place,
    }
}

/// Our own names in any case, and those of the settings.
fn severity_of(mapping: &AnswerMapping, value: &Value) -> Option<Severity> {
    let name = match value {
        Value::String(name) => name.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let own = Severity::ALL.into_iter().find(|severity| severity.as_str().eq_ignore_ascii_case(name.trim()));
    mapping.severities.get(&name).copied().or(own)
}

fn span_of(mapping: &AnswerMapping, item: &Value, text: &str) -> Result<Place, ()> {
    let (start, end) = (item.pointer(&mapping.start), item.pointer(&mapping.end));
    let (Some(start), Some(end)) = (start, end) else { return Ok(Place::Whole) };
    let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok()).ok_or(());
    let range = byte_range(text, mapping.offsets.into(), number(start)?..number(end)?);
    range.map(|range| Place::Bytes(range.start, range.end)).ok_or(())
}

fn bad(what: &str) -> Failure {
    Failure::refused(Reason::BadAnswer, format!("its answer {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(value: Value) -> AnswerMapping {
        serde_json::from_value(value).expect("the shape of a mapping")
    }

    fn read_text(
        mapping: &AnswerMapping,
        answer: &Value,
        text: &str,
    ) -> Result<(Vec<Seen>, Option<Failure>), Failure> {
        read(mapping, answer.to_string().as_bytes(), Some(text))
    }

    const AROUND: Around<'_> = Around { direction: Direction::Output, decision_id: "d1" };

    #[test]
    fn requests_look_as_the_mapping_says() {
        let default = RequestMapping::default();
        assert_eq!(about_text(&default, Role::User, "hi", AROUND), json!({"text": "hi"}));
        let mapping: RequestMapping = serde_json::from_value(json!({
            "text": "/input/content", "role": "/input/who", "direction": "/way", "decision_id": "/a~1b",
            "fixed": {"model": "m", "input": {"lang": "en"}}
        }))
        .expect("the shape of a mapping");
        assert_eq!(
            about_text(&mapping, Role::Assistant, "hi", AROUND),
            json!({"model": "m", "input": {"lang": "en", "content": "hi", "who": "assistant"},
                   "way": "output", "a/b": "d1"})
        );
        let mapping = RequestMapping { text: String::new(), messages: "/messages".into(), ..default };
        let texts = [(Role::User, "a"), (Role::Tool, "b")];
        assert_eq!(
            about_all(&mapping, texts.into_iter(), AROUND),
            json!({"messages": [{"role": "user", "text": "a"}, {"role": "tool", "text": "b"}]})
        );
    }

    #[test]
    fn the_answer_of_the_default_mapping() {
        let default = AnswerMapping::default();
        let (found, unread) = read_text(&default, &json!({"is_unsafe": false}), "x").expect("safe");
        assert!(found.is_empty() && unread.is_none());
        let answer =
            json!({"is_unsafe": true, "category": "Self Harm", "severity": "HIGH", "description": "a\nb"});
        let (found, unread) = read_text(&default, &answer, "x").expect("unsafe");
        let wanted = Seen {
            rule: "self_harm".into(),
            category: "self_harm".into(),
            severity: Severity::High,
            score: 0.8,
            description: "a b".into(),
            recommendation: String::new(),
            place: Place::Whole,
        };
        assert_eq!((found, unread), (vec![wanted], None));
        let (found, unread) = read_text(&default, &json!({"is_unsafe": true}), "x").expect("unsafe");
        assert_eq!((found[0].category.as_str(), found[0].severity), ("unknown", Severity::Medium));
        assert_eq!((found[0].description.as_str(), unread), (GENERAL, None));
    }

    #[test]
    fn what_does_not_say_is_not_safe() {
        let default = AnswerMapping::default();
        for answer in
            [json!({}), json!({"is_unsafe": "yes"}), json!({"is_unsafe": null}), json!([]), json!(true)]
        {
            let failure = read_text(&default, &answer, "x").expect_err("not judged");
            assert_eq!(failure.reason, Reason::BadAnswer, "{answer}");
        }
        for body in [
            &b""[..],
            b"<html>",
            b"{\"is_unsafe\": false",
            b"\xff",
            b"{\"is_unsafe\":true,\"is_unsafe\":false}",
        ] {
            assert_eq!(read(&default, body, None).expect_err("no JSON").reason, Reason::BadAnswer);
        }
        // What is unsafe stays so when the rest cannot be read.
        for (key, value) in [("category", json!(7)), ("severity", json!("purple")), ("severity", json!([]))] {
            let mut answer = json!({"is_unsafe": true});
            answer[key] = value;
            let (found, unread) = read_text(&default, &answer, "x").expect("unsafe");
            assert_eq!(found.len(), 1);
            assert!(unread.expect("told").detail.contains(key), "{answer}");
            assert!(key != "severity" || found[0].severity == Severity::Critical);
        }
    }

    #[test]
    fn other_shapes_of_answers() {
        let list = mapping(json!({
            "findings": "/result/hits", "is_unsafe": "", "category": "/label", "severity": "/level", "score": "/p",
            "description": "", "severities": {"3": "high"}, "categories": {"HARM": "violence"},
            "start": "/from", "end": "/to", "offsets": "utf16"
        }));
        let answer = json!({"result": {"hits": [
            {"label": "HARM", "level": 3, "p": 0.25, "from": 3, "to": 4},
            {"label": "other", "level": "low"}
        ]}});
        let (found, unread) = read_text(&list, &answer, "é😀x").expect("two");
        assert_eq!(unread, None);
        assert_eq!(
            (found[0].category.as_str(), found[0].severity, found[0].score),
            ("violence", Severity::High, 0.25)
        );
        assert_eq!(found[0].place, Place::Bytes(6, 7));
        assert_eq!((found[1].place, found[1].score), (Place::Whole, 0.2));
        for (from, to) in [(0, 9), (9, 9), (3, 1)] {
            let answer = json!({"result": {"hits": [{"label": "a", "from": from, "to": to}]}});
            let (found, unread) = read_text(&list, &answer, "é😀x").expect("one");
            assert_eq!((found[0].place, unread.is_some()), (Place::Whole, true), "{from}..{to}");
        }
        assert!(read_text(&list, &json!({"result": {"hits": {}}}), "x").is_err());
        let words = mapping(
            json!({"is_unsafe": "/verdict", "unsafe_values": ["unsafe", 1], "safe_values": ["safe", 0]}),
        );
        for (verdict, wanted) in
            [(json!("unsafe"), Some(1)), (json!(1), Some(1)), (json!("safe"), Some(0)), (json!(true), None)]
        {
            let found =
                read_text(&words, &json!({"verdict": verdict}), "x").ok().map(|(found, _)| found.len());
            assert_eq!(found, wanted, "{verdict}");
        }
    }
}
