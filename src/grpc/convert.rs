//! Between the contract and the engine's types.
//!
//! Requests are borrowed: no text is copied on its way to the engine. Field paths in errors are those of the contract.

use pbjson_types::Timestamp;

use super::RequestError;
use crate::decision::{Decision, Direction, RiskLevel, Severity, Unjudged};
use crate::messages::{CheckOutcome, Field, FieldPath, Message, RedactedField, Reported, parse_role};
use crate::pb::v1;
use crate::rules::CountrySet;
use crate::text::OffsetEncoding;

/// The messages of a request as the engine reads them.
///
/// # Errors
/// The first field that is wrong: an unknown role, or a part that holds nothing.
pub fn conversation(request: &v1::CheckMessagesRequest) -> Result<Vec<Message<'_>>, RequestError> {
    request.messages.iter().enumerate().map(|(index, message)| one_message(index, message)).collect()
}

fn one_message(index: usize, message: &v1::Message) -> Result<Message<'_>, RequestError> {
    let role =
        parse_role(&message.role).map_err(|e| RequestError::field(format!("messages[{index}].role"), e))?;
    let mut fields = Vec::with_capacity(1 + message.tool_calls.len());
    let mut media_parts = 0;
    match &message.content {
        None => {}
        Some(v1::message::Content::Text(text)) => fields.push(Field { path: FieldPath::Text, text }),
        Some(v1::message::Content::Parts(parts)) => {
            for (nth, part) in parts.parts.iter().enumerate() {
                let at = nth as u32;
                match &part.part {
                    Some(v1::part::Part::Text(text)) => {
                        fields.push(Field { path: FieldPath::PartText(at), text });
                    }
                    Some(v1::part::Part::Json(text)) => {
                        fields.push(Field { path: FieldPath::PartJson(at), text });
                    }
                    Some(v1::part::Part::Media(media)) => {
                        if !matches!(media.sha256.len(), 0 | 32) {
                            return Err(RequestError::field(
                                format!("messages[{index}].parts.parts[{nth}].media.sha256"),
                                format!("has {} bytes; a SHA-256 has 32", media.sha256.len()),
                            ));
                        }
                        media_parts += 1;
                        fields.push(Field { path: FieldPath::PartMediaUri(at), text: &media.uri });
                    }
                    None => {
                        return Err(RequestError::field(
                            format!("messages[{index}].parts.parts[{nth}].part"),
                            "is not set; send text, json or media",
                        ));
                    }
                }
            }
        }
    }
    for (nth, call) in message.tool_calls.iter().enumerate() {
        fields.push(Field { path: FieldPath::ToolArgs(nth as u32), text: &call.args_json });
    }
    fields.push(Field { path: FieldPath::Name, text: &message.name });
    fields.retain(|field| !field.text.is_empty());
    Ok(Message { role, fields, media_parts })
}

/// The direction; absent means into the model.
///
/// # Errors
/// A number that the contract does not have.
pub fn direction(number: i32) -> Result<Direction, RequestError> {
    match v1::Direction::try_from(number) {
        Ok(v1::Direction::Unspecified | v1::Direction::Input) => Ok(Direction::Input),
        Ok(v1::Direction::Output) => Ok(Direction::Output),
        Err(_) => Err(RequestError::field("direction", format!("{number} is no Direction"))),
    }
}

/// Most entries of an allow-list of a request.
const ALLOWED_MAX: usize = 1_000;
/// Longest entry, in bytes: the longest e-mail address.
const ALLOWED_BYTES_MAX: usize = 320;

/// Personal data that the caller excuses.
///
/// # Errors
/// Too many entries, or one that is empty or too long.
pub fn allow_list(entries: &[String]) -> Result<&[String], RequestError> {
    if entries.len() > ALLOWED_MAX {
        let message = format!("has {} entries; send at most {ALLOWED_MAX}", entries.len());
        return Err(RequestError::field("allow_list", message));
    }
    for (at, entry) in entries.iter().enumerate() {
        let fault = match entry.len() {
            _ if entry.trim_matches([' ', '@']).is_empty() => {
                "is empty; send a value, or leave it out".to_owned()
            }
            bytes if bytes > ALLOWED_BYTES_MAX => {
                format!("has {bytes} bytes; a value has at most {ALLOWED_BYTES_MAX}")
            }
            _ => continue,
        };
        return Err(RequestError::field(format!("allow_list[{at}]"), fault));
    }
    Ok(entries)
}

/// The countries whose personal data the caller wants looked for.
///
/// # Errors
/// A code that is no country's.
pub fn countries(codes: &[String]) -> Result<CountrySet, RequestError> {
    let mut countries = CountrySet::EMPTY;
    for (at, code) in codes.iter().enumerate() {
        countries
            .add(code)
            .map_err(|error| RequestError::field(format!("countries[{at}]"), error.to_string()))?;
    }
    Ok(countries)
}

/// The unit of offsets; absent means UTF-8 bytes.
///
/// # Errors
/// A number that the contract does not have.
pub fn offset_encoding(number: i32) -> Result<OffsetEncoding, RequestError> {
    match v1::OffsetEncoding::try_from(number) {
        Ok(v1::OffsetEncoding::Unspecified | v1::OffsetEncoding::Utf8) => Ok(OffsetEncoding::Utf8),
        Ok(v1::OffsetEncoding::Utf16) => Ok(OffsetEncoding::Utf16),
        Ok(v1::OffsetEncoding::Utf32) => Ok(OffsetEncoding::Utf32),
        Err(_) => Err(RequestError::field("offset_encoding", format!("{number} is no OffsetEncoding"))),
    }
}

/// The answer to a CheckMessages request. `messages` are those of the request, given back redacted when that was asked.
pub fn response(
    outcome: CheckOutcome,
    messages: Option<Vec<v1::Message>>,
    decision_id: String,
    policy_revision: &str,
) -> v1::CheckMessagesResponse {
    v1::CheckMessagesResponse {
        decision: decision(outcome.verdict.decision).into(),
        risk_level: risk_level(outcome.verdict.risk_level).into(),
        risk_score: outcome.verdict.risk_score,
        findings: outcome.reported.into_iter().map(finding).collect(),
        redacted_messages: messages.map(|m| redacted(m, outcome.redacted)).unwrap_or_default(),
        unjudged: outcome.unjudged.into_iter().map(unjudged).collect(),
        decision_id,
        policy_revision: policy_revision.to_owned(),
        error: None,
    }
}

fn redacted(mut messages: Vec<v1::Message>, fields: Vec<RedactedField>) -> Vec<v1::Message> {
    for field in fields {
        if let Some(message) = messages.get_mut(field.message_index as usize)
            && let Some(place) = field_mut(message, field.path)
        {
            *place = field.text;
        }
    }
    messages
}

fn field_mut(message: &mut v1::Message, path: FieldPath) -> Option<&mut String> {
    match path {
        FieldPath::Text => match message.content.as_mut()? {
            v1::message::Content::Text(text) => Some(text),
            v1::message::Content::Parts(_) => None,
        },
        FieldPath::PartText(at) | FieldPath::PartJson(at) | FieldPath::PartMediaUri(at) => {
            match message.content.as_mut()? {
                v1::message::Content::Parts(parts) => {
                    match parts.parts.get_mut(at as usize)?.part.as_mut()? {
                        v1::part::Part::Text(text) | v1::part::Part::Json(text) => Some(text),
                        v1::part::Part::Media(media) => Some(&mut media.uri),
                    }
                }
                v1::message::Content::Text(_) => None,
            }
        }
        FieldPath::ToolArgs(at) => message.tool_calls.get_mut(at as usize).map(|call| &mut call.args_json),
        FieldPath::Name => Some(&mut message.name),
    }
}

/// A finding on the wire.
pub fn finding(reported: Reported) -> v1::Finding {
    let Reported { finding, start, end, line, column, matched_text, fingerprint } = reported;
    v1::Finding {
        plugin: finding.plugin.to_string(),
        plugin_version: finding.plugin_version.to_string(),
        rule_id: finding.rule_id.to_string(),
        category: finding.category.as_str().to_owned(),
        severity: severity(finding.severity).into(),
        score: finding.score,
        description: finding.description.to_string(),
        matched_text,
        recommendation: finding.recommendation.to_string(),
        span: Some(v1::Span {
            message_index: finding.span.message_index,
            path: finding.span.path.to_string(),
            start,
            end,
            line,
            column,
        }),
        evasions: finding.evasions.into_iter().map(str::to_owned).collect(),
        fingerprint,
        shadow: finding.shadow,
        suppressed: finding.suppressed,
    }
}

/// A check that did not run to its end, on the wire.
pub fn unjudged(unjudged: Unjudged) -> v1::Unjudged {
    v1::Unjudged {
        plugin: unjudged.plugin.to_string(),
        reason: unjudged.reason.as_str().to_owned(),
        failed_open: unjudged.failed_open(),
        detail: unjudged.detail,
    }
}

/// A decision on the wire.
pub fn decision(decision: Decision) -> v1::Decision {
    match decision {
        Decision::Allow => v1::Decision::Allow,
        Decision::Warn => v1::Decision::Warn,
        Decision::Ask => v1::Decision::Ask,
        Decision::Block => v1::Decision::Block,
    }
}

/// A decision off the wire.
pub fn decided(decision: v1::Decision) -> Decision {
    match decision {
        v1::Decision::Allow => Decision::Allow,
        v1::Decision::Warn => Decision::Warn,
        v1::Decision::Ask => Decision::Ask,
        // A decision that this program does not know must stop the caller.
        v1::Decision::Block | v1::Decision::Unspecified => Decision::Block,
    }
}

fn risk_level(level: RiskLevel) -> v1::RiskLevel {
    match level {
        RiskLevel::Safe => v1::RiskLevel::Safe,
        RiskLevel::Low => v1::RiskLevel::Low,
        RiskLevel::Medium => v1::RiskLevel::Medium,
        RiskLevel::High => v1::RiskLevel::High,
        RiskLevel::Critical => v1::RiskLevel::Critical,
    }
}

/// A severity on the wire.
pub fn severity(severity: Severity) -> v1::Severity {
    match severity {
        Severity::Low => v1::Severity::Low,
        Severity::Medium => v1::Severity::Medium,
        Severity::High => v1::Severity::High,
        Severity::Critical => v1::Severity::Critical,
    }
}

/// A time on the wire.
pub fn timestamp(time: jiff::Timestamp) -> Timestamp {
    Timestamp { seconds: time.as_second(), nanos: time.subsec_nanosecond() }
}
