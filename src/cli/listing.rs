//! What commands that list kept things share: moments, tables, counts, pages, and the store that must be there.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::Failure;
use crate::config::Settings;

/// A moment as RFC 3339 in UTC, to the second; `-` when there is none.
pub(super) fn time(time: Option<&pbjson_types::Timestamp>) -> String {
    let moment = time.and_then(|time| Timestamp::new(time.seconds, time.nanos).ok());
    moment.map_or_else(|| "-".to_owned(), |moment| format!("{moment:.0}"))
}

/// A moment of a filter: a time, or a duration before now.
fn moment(flag: &str, given: Option<&str>) -> Result<Option<pbjson_types::Timestamp>, Failure> {
    let Some(given) = given else { return Ok(None) };
    let ago = crate::setting::duration::parse(given).and_then(|ago| Timestamp::now().checked_sub(ago).ok());
    let moment = ago.or_else(|| given.parse().ok()).ok_or_else(|| {
        Failure::usage(format_args!(
            "{flag}: `{given}` is neither a time such as 2026-01-31T12:00:00Z nor a duration such as 24h"
        ))
    })?;
    Ok(Some(crate::grpc::convert::timestamp(moment)))
}

/// Between which times things are listed.
#[derive(Debug, Args)]
pub(super) struct Between {
    /// Only those since this time: RFC 3339, or a duration before now such as 24h.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

impl Between {
    /// The first moment, and the one before which the last lies.
    pub(super) fn moments(&self) -> Result<[Option<pbjson_types::Timestamp>; 2], Failure> {
        Ok([moment("--since", self.since.as_deref())?, moment("--until", self.until.as_deref())?])
    }
}

/// That something is to be listed at all.
pub(super) fn check_limit(limit: usize) -> Result<(), Failure> {
    if limit == 0 { Err(Failure::usage("--limit: must be at least 1")) } else { Ok(()) }
}

/// Columns of a table, each as wide as its widest cell; the last one is not filled up.
pub(super) fn table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(at, cell)| format!("{cell:width$}", width = widths[at]));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// How many are shown, and of how many.
pub(super) fn count(shown: usize, total: u64, (one, more): (&str, &str)) -> String {
    let name = if total == 1 { one } else { more };
    if shown as u64 >= total { format!("{shown} {name}") } else { format!("{shown} of {total} {name}") }
}

/// One page: its items, the token of the next one, and what else the answer says.
pub(super) type Page<I, R> = (Vec<I>, String, R);

/// Page after page until `limit` items are there. `ask` gets how many to ask for, `most` at most, and the token of the page.
pub(super) fn pages<I, R>(
    limit: usize,
    most: usize,
    mut ask: impl FnMut(u32, String) -> Result<Page<I, R>, Failure>,
) -> Result<Page<I, R>, Failure> {
    let (mut all, mut token) = (Vec::new(), String::new());
    loop {
        let left = limit - all.len();
        let size = u32::try_from(left.clamp(1, most)).unwrap_or(u32::MAX);
        let (items, next, rest) = ask(size, token)?;
        all.extend(items.into_iter().take(left));
        if next.is_empty() || all.len() >= limit {
            return Ok((all, next, rest));
        }
        token = next;
    }
}

/// Where the store of the settings is. Looking must not leave an empty database behind in the wrong folder.
pub(super) fn existing_store(settings: &Settings) -> Result<PathBuf, Failure> {
    let path = settings.store_path();
    match settings.store.sqlite_path(&path).filter(|path| !path.exists()) {
        None => Ok(path),
        Some(missing) => Err(Failure::configuration(format_args!(
            "{}: there is no store; run this where the service runs, name its settings with --config, or ask a server \
             with --server",
            missing.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_straight_columns() {
        let rows = [["a", "bb", "c"], ["aaa", "b", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), ["a    bb  c", "aaa  b"]);
        assert_eq!(table(&[]), Vec::<String>::new());
    }

    #[test]
    fn counts_are_sentences() {
        let what = ("submission", "submissions");
        assert_eq!(count(1, 1, what), "1 submission");
        assert_eq!(count(0, 0, what), "0 submissions");
        assert_eq!(count(2, 7, what), "2 of 7 submissions");
    }

    #[test]
    fn pages_are_asked_for_until_there_are_enough() {
        for (limit, wanted, sizes, next) in [
            (1, vec![0], vec![1], "1"),
            (3, vec![0, 1, 2], vec![2, 1], "3"),
            (5, vec![0, 1, 2, 3, 4], vec![2, 2, 1], ""),
            (9, vec![0, 1, 2, 3, 4], vec![2, 2, 2], ""),
        ] {
            let mut asked = Vec::new();
            let (all, token, ()) = pages(limit, 2, |size, token| {
                asked.push(size);
                let from: usize = token.parse().unwrap_or(0);
                let to = (from + size as usize).min(5);
                Ok(((from..to).collect(), if to < 5 { to.to_string() } else { String::new() }, ()))
            })
            .expect("five things in pages of two");
            assert_eq!((all, asked, token.as_str()), (wanted, sizes, next), "{limit}");
        }
    }
}
