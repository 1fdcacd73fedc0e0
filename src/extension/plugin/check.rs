//! A strict reading of what `ExtensionService.Check` answers.

use super::config::is_category;
use super::found::{Place, Seen, byte_range};
use super::mapping::name_of;
use crate::decision::{Reason, Severity};
use crate::extension::convert::presentable;
use crate::extension::failure::Failure;
use crate::messages::{Conversation, FieldPath, Message};
use crate::pb::v1;
use crate::text::OffsetEncoding;

/// Most findings of one answer.
const FINDINGS_MAX: usize = 10_000;
/// Longest id of a rule, in bytes.
const RULE_BYTES_MAX: usize = 256;

/// What one answer holds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Checked {
    /// What was seen, each with the message and the field it stands in; `None` for all of the request.
    pub(super) seen: Vec<(Seen, Option<(u32, String)>)>,
    /// What could not be judged.
    pub(super) unjudged: Vec<Failure>,
}

/// Reads an answer; `categories` are those that the extension said it has, none meaning any.
///
/// # Errors
/// A finding lacks what it needs or lies outside of what was sent: then nothing of the answer can be relied upon.
pub(super) fn read(
    answer: v1::CheckResponse,
    categories: &[String],
    messages: &Conversation<'_>,
) -> Result<Checked, Failure> {
    let encoding = match v1::OffsetEncoding::try_from(answer.offset_encoding) {
        Ok(v1::OffsetEncoding::Unspecified | v1::OffsetEncoding::Utf8) => OffsetEncoding::Utf8,
        Ok(v1::OffsetEncoding::Utf16) => OffsetEncoding::Utf16,
        Ok(v1::OffsetEncoding::Utf32) => OffsetEncoding::Utf32,
        Err(_) => return Err(bad("has an `offset_encoding` that is not known")),
    };
    if answer.findings.len() > FINDINGS_MAX {
        return Err(Failure::refused(
            Reason::Limit,
            format!("its answer has more than {FINDINGS_MAX} findings"),
        ));
    }
    let mut checked = Checked::default();
    let mut is_foreign = false;
    for finding in answer.findings {
        let severity = severity_of(&finding)?;
        for (field, is_there) in [
            ("rule_id", !finding.rule_id.trim().is_empty() && finding.rule_id.len() <= RULE_BYTES_MAX),
            ("category", is_category(&finding.category)),
            ("description", !finding.description.trim().is_empty()),
        ] {
            if !is_there {
                return Err(bad(&format!("has a finding without a usable `{field}`")));
            }
        }
        if !(categories.is_empty() || categories.iter().any(|category| covers(category, &finding.category))) {
            is_foreign = true;
            continue;
        }
        let (place, field) = place_of(finding.span.as_ref(), encoding, messages)?;
        let seen = Seen {
            rule: presentable(&finding.rule_id),
            category: finding.category,
            severity,
            score: score_of(finding.score, severity)?,
            description: presentable(&finding.description),
            recommendation: presentable(&finding.recommendation),
            place,
        };
        checked.seen.push((seen, field));
    }
    if is_foreign {
        checked.unjudged.push(bad("has a finding of a category that it does not say it has"));
    }
    checked.unjudged.extend(answer.unjudged.iter().map(unjudged));
    Ok(checked)
}

/// A message as the contract tells it, of what the engine knows of it: for requests that did not come in by the contract.
pub(super) fn message_of(message: &Message<'_>) -> v1::Message {
    let mut sent = v1::Message { role: name_of(message.role).to_owned(), ..Default::default() };
    let mut parts = Vec::new();
    for field in &message.fields {
        let text = field.text.to_owned();
        match field.path {
            FieldPath::Text => sent.content = Some(v1::message::Content::Text(text)),
            FieldPath::Name => sent.name = text,
            FieldPath::PartText(at) => put(&mut parts, at, v1::part::Part::Text(text)),
            FieldPath::PartJson(at) => put(&mut parts, at, v1::part::Part::Json(text)),
            FieldPath::PartMediaUri(at) => {
                put(&mut parts, at, v1::part::Part::Media(v1::MediaRef { uri: text, ..Default::default() }));
            }
            FieldPath::ToolArgs(at) => {
                let at = at as usize;
                if sent.tool_calls.len() <= at {
                    sent.tool_calls.resize_with(at + 1, Default::default);
                }
                sent.tool_calls[at].args_json = text;
            }
        }
    }
    if !parts.is_empty() {
        sent.content = Some(v1::message::Content::Parts(v1::Parts { parts }));
    }
    sent
}

/// Puts a part where it was; parts that were empty are empty texts.
fn put(parts: &mut Vec<v1::Part>, at: u32, part: v1::part::Part) {
    let at = at as usize;
    if parts.len() <= at {
        parts.resize_with(at + 1, || v1::Part { part: Some(v1::part::Part::Text(String::new())) });
    }
    parts[at].part = Some(part);
}

/// Whether `category` is `known` or below it.
fn covers(known: &str, category: &str) -> bool {
    category.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn severity_of(finding: &v1::Finding) -> Result<Severity, Failure> {
    match v1::Severity::try_from(finding.severity) {
        Ok(v1::Severity::Low) => Ok(Severity::Low),
        Ok(v1::Severity::Medium) => Ok(Severity::Medium),
        Ok(v1::Severity::High) => Ok(Severity::High),
        Ok(v1::Severity::Critical) => Ok(Severity::Critical),
        Ok(v1::Severity::Unspecified) | Err(_) => Err(bad("has a finding without a known `severity`")),
    }
}

fn score_of(score: f64, severity: Severity) -> Result<f64, Failure> {
    match score {
        0.0 => Ok(severity.score()),
        score if (0.0..=1.0).contains(&score) => Ok(score),
        _ => Err(bad("has a finding with a `score` that is not from 0.0 to 1.0")),
    }
}

type Placed = (Place, Option<(u32, String)>);

fn place_of(
    span: Option<&v1::Span>,
    encoding: OffsetEncoding,
    messages: &Conversation<'_>,
) -> Result<Placed, Failure> {
    let Some(span) = span else { return Ok((Place::Whole, None)) };
    let outside = || bad("has a span outside the messages");
    let message = messages.get(span.message_index as usize).ok_or_else(outside)?;
    let field =
        message.fields.iter().find(|field| field.path.to_pointer() == span.path).ok_or_else(outside)?;
    let unit = |offset: u64| usize::try_from(offset).map_err(|_| outside());
    let range = byte_range(field.text, encoding, unit(span.start)?..unit(span.end)?).ok_or_else(outside)?;
    Ok((Place::Bytes(range.start, range.end), Some((span.message_index, span.path.clone()))))
}

/// What the extension could not judge. Its words are not passed on.
fn unjudged(unjudged: &v1::Unjudged) -> Failure {
    let reasons =
        [Reason::Timeout, Reason::Unavailable, Reason::BadAnswer, Reason::Limit, Reason::UnsupportedContent];
    let known = reasons.into_iter().find(|reason| reason.as_str() == unjudged.reason);
    Failure::refused(known.unwrap_or(Reason::Error), "says that it could not judge everything")
}

fn bad(what: &str) -> Failure {
    Failure::refused(Reason::BadAnswer, format!("its answer {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Field;
    use crate::rules::Role;

    fn finding(change: impl FnOnce(&mut v1::Finding)) -> v1::Finding {
        let mut finding = v1::Finding {
            rule_id: "tone".into(),
            category: "tone.rude".into(),
            severity: v1::Severity::High.into(),
            description: "Rude.".into(),
            span: Some(v1::Span { path: "/text".into(), start: 1, end: 3, ..Default::default() }),
            ..Default::default()
        };
        change(&mut finding);
        finding
    }

    fn answer(finding: v1::Finding) -> Result<Checked, Failure> {
        let messages = [Message {
            role: Role::User,
            fields: vec![Field { path: FieldPath::Text, text: "aé😀b" }],
            media_parts: 0,
        }];
        let answer = v1::CheckResponse {
            findings: vec![finding],
            offset_encoding: v1::OffsetEncoding::Utf32.into(),
            ..Default::default()
        };
        read(answer, &["tone".into(), "taste.bad".into()], &messages)
    }

    #[test]
    fn a_finding_is_taken_over() {
        let checked = answer(finding(|_| {})).expect("an answer");
        let (seen, field) = &checked.seen[0];
        assert_eq!((seen.severity, seen.score, seen.place), (Severity::High, 0.8, Place::Bytes(1, 7)));
        assert_eq!((field.as_ref(), checked.unjudged.len()), (Some(&(0, "/text".to_owned())), 0));
        let whole = answer(finding(|finding| finding.span = None)).expect("an answer");
        assert_eq!((whole.seen[0].0.place, &whole.seen[0].1), (Place::Whole, &None));
        let scored = answer(finding(|finding| finding.score = 0.3)).expect("an answer");
        assert_eq!(scored.seen[0].0.score, 0.3);
    }

    #[test]
    fn a_category_it_does_not_have_is_not_judged() {
        for category in ["tones", "taste", "pii.email"] {
            let checked = answer(finding(|finding| finding.category = category.into())).expect("an answer");
            assert!(checked.seen.is_empty() && checked.unjudged[0].reason == Reason::BadAnswer, "{category}");
        }
    }

    #[test]
    fn what_cannot_be_relied_upon_is_refused() {
        let span =
            |change: fn(&mut v1::Span)| finding(|finding| change(finding.span.as_mut().expect("it has one")));
        for (wrong, wanted) in [
            (finding(|finding| finding.rule_id.clear()), "rule_id"),
            (finding(|finding| finding.category.clear()), "category"),
            (finding(|finding| finding.category = "A B".into()), "category"),
            (finding(|finding| finding.description = " ".into()), "description"),
            (finding(|finding| finding.severity = 0), "severity"),
            (finding(|finding| finding.severity = 77), "severity"),
            (finding(|finding| finding.score = 1.5), "score"),
            (finding(|finding| finding.score = f64::NAN), "score"),
            (span(|span| span.end = 9), "span"),
            (span(|span| span.start = 4), "span"),
            (span(|span| span.message_index = 1), "span"),
            (span(|span| span.path = "/name".into()), "span"),
        ] {
            let failure = answer(wrong).expect_err(wanted);
            assert!(
                failure.reason == Reason::BadAnswer && failure.detail.contains(wanted),
                "{}",
                failure.detail
            );
        }
    }

    #[test]
    fn a_message_is_rebuilt_with_its_places() {
        let field = |path, text| Field { path, text };
        let fields = vec![
            field(FieldPath::PartJson(1), "{}"),
            field(FieldPath::ToolArgs(1), "[]"),
            field(FieldPath::Name, "n"),
        ];
        let message = message_of(&Message { role: Role::Assistant, fields, media_parts: 0 });
        assert_eq!((message.role.as_str(), message.name.as_str()), ("assistant", "n"));
        assert_eq!(message.tool_calls.iter().map(|call| &*call.args_json).collect::<Vec<_>>(), ["", "[]"]);
        let Some(v1::message::Content::Parts(parts)) = message.content else { panic!("parts") };
        assert_eq!(parts.parts[1].part, Some(v1::part::Part::Json("{}".into())));
        assert_eq!(parts.parts.len(), 2);
    }

    #[test]
    fn what_it_could_not_judge_is_told() {
        for (reason, wanted) in
            [("timeout", Reason::Timeout), ("limit", Reason::Limit), ("moon", Reason::Error)]
        {
            let told =
                v1::Unjudged { reason: reason.into(), detail: "secret words".into(), ..Default::default() };
            let answer = v1::CheckResponse { unjudged: vec![told], ..Default::default() };
            let checked = read(answer, &[], &[]).expect("an answer");
            assert_eq!(checked.unjudged[0].reason, wanted);
            assert!(!checked.unjudged[0].detail.contains("secret"));
        }
    }
}
