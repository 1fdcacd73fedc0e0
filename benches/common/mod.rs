//! Texts and figures that the benchmarks share.

#![allow(dead_code, reason = "each benchmark uses its part")]

pub mod process;
pub mod processors;

/// Ordinary prose, written for this purpose: a support conversation with names, numbers and punctuation, and nothing
/// that any rule looks for.
pub const PROSE: &str = "The delivery that was planned for Tuesday has moved to the end of the week, because two of the \
machines in the workshop are still waiting for spare parts. Could you tell the customer that we are sorry, and ask \
whether the morning or the afternoon suits them better? If they need the first twelve boxes sooner, Martina can take \
them along in the small van; she drives past the harbour anyway. Everything else stays as agreed: the same prices, the \
same colours, and the invoice at the end of the month. I have looked through the plans for the new hall as well. The \
windows on the north side are larger than in the first drawing, which is good for the light but will make the room \
colder in winter. Let us talk about it on Monday, when the architect is back from her holiday. One more thing: the \
summary of the meeting lists eleven open points, and most of them are small. Please sort them by the amount of work, \
not by date, and write down next to each who will do it. Thank you for the quick answer yesterday, it helped a lot. \
";

/// Ordinary code.
pub const CODE: &str = include_str!("../../src/decision/risk.rs");

/// What a service writes about its requests, in which nothing is found: times, durations, identifiers, paths, hosts.
pub const LOGS: &str = include_str!("requests.log");

/// `bytes` bytes of `source`, repeated and cut.
pub fn text_of(source: &str, bytes: usize) -> String {
    let mut text = source.repeat(bytes / source.len() + 1);
    text.truncate(text.floor_char_boundary(bytes));
    text
}

/// The median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
