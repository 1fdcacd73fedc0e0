//! What lists and look-ups have in common: ids, orders, moments in filters, and tokens of the next page.
//!
//! A token is a place, so a new thing between two pages neither repeats nor skips what stays. In hexadecimal, with a
//! digest over list and place before it: one of another list, or one that was changed, does not fit.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::RequestError;
use crate::store::KeyValue;

/// Characters of a digest in a token.
const DIGEST_CHARS: usize = 16;

/// How many to answer at most, of a request that asks for `wanted`: 0 means `usual`.
pub(super) fn size(wanted: u32, usual: usize, most: usize) -> usize {
    match usize::try_from(wanted).unwrap_or(most) {
        0 => usual,
        wanted => wanted.min(most),
    }
}

/// The key of that name, and whether larger ones come first: one of `keys`, alone or followed by ` desc`.
///
/// # Errors
/// It is none of them; the message lists all.
pub(super) fn order<K: Copy>(
    order_by: &str,
    default: &str,
    keys: &[(&str, K)],
) -> Result<(K, bool), RequestError> {
    let order_by = if order_by.is_empty() { default } else { order_by };
    let (name, is_descending) = match order_by.strip_suffix(" desc") {
        Some(name) => (name, true),
        None => (order_by, false),
    };
    match keys.iter().find(|(known, _)| *known == name) {
        Some((_, key)) => Ok((*key, is_descending)),
        None => {
            let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
            let (last, first) = names.split_last().unwrap_or((&"", &[]));
            let names = if first.is_empty() {
                format!("is not {last}")
            } else {
                format!("is none of {} and {last}", first.join(", "))
            };
            Err(RequestError::field("order_by", format!("{names}, alone or followed by ` desc`")))
        }
    }
}

/// A moment in a filter; absent means no limit.
///
/// # Errors
/// It is no moment.
pub(super) fn moment(
    field: &str,
    time: Option<&pbjson_types::Timestamp>,
) -> Result<Option<Timestamp>, RequestError> {
    let Some(time) = time else { return Ok(None) };
    let is_whole = (0..1_000_000_000).contains(&time.nanos);
    let moment = Timestamp::new(time.seconds, time.nanos).ok().filter(|_| is_whole);
    match moment {
        Some(moment) => Ok(Some(moment)),
        None => Err(RequestError::field(field, "is no moment between the years 1 and 9999")),
    }
}

/// The token of the page that follows the thing with this id, whose value of the ordering key is `value`, in `list`:
/// whose things, which filters, which order.
pub(super) fn token(value: &KeyValue, id: &str, list: &str) -> String {
    let value = match value {
        KeyValue::Number(number) => format!("n{number}"),
        KeyValue::Text(text) => format!("t{text}"),
    };
    let place = format!("{id}\n{value}");
    let mut token = digest(list, &place);
    token.extend(place.bytes().map(|byte| format!("{byte:02x}")));
    token
}

/// The value and id that a token leads to; `None` for an empty one.
///
/// # Errors
/// It is not of this list.
pub(super) fn place(token: &str, list: &str) -> Result<Option<(KeyValue, String)>, RequestError> {
    if token.is_empty() {
        return Ok(None);
    }
    let place = place_of(token, list);
    let wrong = || RequestError::field("page_token", "does not fit this list; start again without it");
    place.map(Some).ok_or_else(wrong)
}

fn place_of(token: &str, list: &str) -> Option<(KeyValue, String)> {
    let (head, rest) = token.split_at_checked(DIGEST_CHARS)?;
    if rest.len() % 2 != 0 || !rest.is_ascii() {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(&rest[at..at + 2], 16).ok();
    let place: Vec<u8> = (0..rest.len()).step_by(2).map(byte).collect::<Option<_>>()?;
    let place = String::from_utf8(place).ok()?;
    if digest(list, &place) != head {
        return None;
    }
    let (id, value) = place.split_once('\n')?;
    let value = match value.split_at_checked(1)? {
        ("n", number) => KeyValue::Number(number.parse().ok()?),
        ("t", text) => KeyValue::Text(text.to_owned()),
        _ => return None,
    };
    Some((value, id.to_owned()))
}

fn digest(list: &str, place: &str) -> String {
    let digest = Sha256::new().chain_update(list).chain_update([0]).chain_update(place).finalize();
    digest.iter().take(DIGEST_CHARS / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// The id that a request names.
///
/// # Errors
/// There is none.
pub(super) fn id(field: &str, id: String) -> Result<String, RequestError> {
    if id.is_empty() { Err(RequestError::field(field, "is empty")) } else { Ok(id) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_its_place_in_its_list_only() {
        assert_eq!(place("", "list").expect("the first page"), None);
        for value in
            [KeyValue::Number(-1), KeyValue::Text("a\nb ☃".to_owned()), KeyValue::Text(String::new())]
        {
            let token = token(&value, "0197", "list");
            assert!(token.bytes().all(|b| b.is_ascii_hexdigit()), "{token}");
            assert_eq!(place_of(&token, "list"), Some((value, "0197".to_owned())));
            assert_eq!(place_of(&token, "other"), None);
            let changed: String =
                token[..token.len() - 1].to_owned() + if token.ends_with('0') { "1" } else { "0" };
            for wrong in ["", "x", &token[1..], &token[..DIGEST_CHARS], &changed, "☃☃☃☃☃☃☃☃☃"]
            {
                assert_eq!(place_of(wrong, "list"), None, "{wrong}");
            }
        }
    }

    #[test]
    fn orders_are_read_strictly() {
        let keys = [("time", 1), ("latency", 2), ("severity", 3)];
        for (text, wanted) in [
            ("", Some((1, true))),
            ("time", Some((1, false))),
            ("latency desc", Some((2, true))),
            ("severity asc", None),
            ("time  desc", None),
            (" desc", None),
            ("id", None),
            ("time desc desc", None),
        ] {
            assert_eq!(order(text, "time desc", &keys).ok(), wanted, "{text}");
        }
        let refused = order("id", "time", &keys).expect_err("unknown").to_string();
        assert!(refused.contains("is none of time, latency and severity"), "{refused}");
        let refused = order("id", "time", &keys[..1]).expect_err("unknown").to_string();
        assert!(refused.contains("is not time"), "{refused}");
    }

    #[test]
    fn pages_have_a_usual_and_a_largest_size() {
        for (wanted, given) in [(0, 50), (1, 1), (50, 50), (500, 500), (501, 500), (u32::MAX, 500)] {
            assert_eq!(size(wanted, 50, 500), given, "{wanted}");
        }
    }

    #[test]
    fn moments_are_read_strictly() {
        let time = |seconds, nanos| pbjson_types::Timestamp { seconds, nanos };
        assert_eq!(moment("t", None).expect("absent"), None);
        assert!(moment("t", Some(&time(1, 999_999_999))).expect("a moment").is_some());
        for wrong in [time(i64::MAX, 0), time(0, -1), time(0, 1_000_000_000)] {
            assert!(moment("t", Some(&wrong)).is_err(), "{wrong:?}");
        }
    }
}
