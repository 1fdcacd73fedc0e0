//! Tables written into a document, between markers, with everything around them left as it is.
//!
//! A block begins with the line `<!-- eval:KIND -->` and ends with `<!-- /eval:KIND -->`, KIND being one of `injection`,
//! `secrets`, `pii`, `commands`, `paths`, `streams`, `bundles`, `archives`. A run writes the blocks of the kinds it
//! measured. A block that is missing is added at the end under a heading. Times are left out: the tables are the same on
//! every machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::figures::{Figure, Standing, figures};
use super::record::Kind;
use super::sweep::{Sweep, fpr_max};
use super::table::percent;
use super::tally::{Group, Report, Totals};

/// Every kind, by its name in markers.
const KINDS: [Kind; 8] = [
    Kind::Injection,
    Kind::Secrets,
    Kind::Pii,
    Kind::Commands,
    Kind::Paths,
    Kind::Streams,
    Kind::Bundles,
    Kind::Archives,
];

/// What is wrong with the markers of a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkdownError {
    /// A block of nothing that is measured.
    #[error(
        "line {line}: no kind `{name}`; a block is one of: injection, secrets, pii, commands, paths, streams, bundles, archives"
    )]
    UnknownKind {
        /// Line of the marker, from 1.
        line: usize,
        /// As written.
        name: String,
    },
    /// A block without an end, or one that ends as another.
    #[error(
        "line {line}: the block `{name}` does not end before the next marker; put `<!-- /eval:{name} -->` on a line of its own after it"
    )]
    Unclosed {
        /// Line of its first marker, from 1.
        line: usize,
        /// Its kind.
        name: String,
    },
    /// An end without a beginning.
    #[error("line {line}: `<!-- /eval:{name} -->` ends a block that did not begin; remove it")]
    Unopened {
        /// Line of the marker, from 1.
        line: usize,
        /// As written.
        name: String,
    },
    /// Two blocks of one kind.
    #[error("line {line}: a second block `{name}`; keep one")]
    Twice {
        /// Line of the second one, from 1.
        line: usize,
        /// Its kind.
        name: String,
    },
}

/// `document` with the blocks of every kind that `report` measured written anew.
///
/// # Errors
/// The first marker that makes no sense; nothing is written then.
pub fn written_into(document: &str, report: &Report, sweeps: &[Sweep]) -> Result<String, MarkdownError> {
    let figures = figures(&report.totals);
    let mut blocks: BTreeMap<&str, String> = BTreeMap::new();
    for kind in report.totals.kinds.keys() {
        let sweep = sweeps.iter().find(|sweep| sweep.kind == *kind);
        blocks.insert(kind.as_str(), block(*kind, &report.totals, &figures, sweep));
    }
    replace(document, blocks)
}

/// Name and whether it is an end, when a line is a marker.
fn marker(line: &str) -> Option<(&str, bool)> {
    let inner = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    match inner.strip_prefix("/eval:") {
        Some(name) => Some((name, true)),
        None => inner.strip_prefix("eval:").map(|name| (name, false)),
    }
}

fn replace(document: &str, mut blocks: BTreeMap<&str, String>) -> Result<String, MarkdownError> {
    let mut out = String::with_capacity(document.len());
    let mut seen: Vec<&str> = Vec::new();
    // The block that is open: its line, its kind, and whether its lines are left out.
    let mut open: Option<(usize, &str, bool)> = None;
    for (index, text) in document.split_inclusive('\n').enumerate() {
        let line = index + 1;
        match (marker(text), open) {
            (None, Some((_, _, true))) => {}
            (None, _) => out.push_str(text),
            (Some((name, false)), None) => {
                if !KINDS.iter().any(|kind| kind.as_str() == name) {
                    return Err(MarkdownError::UnknownKind { line, name: name.to_owned() });
                }
                if seen.contains(&name) {
                    return Err(MarkdownError::Twice { line, name: name.to_owned() });
                }
                seen.push(name);
                out.push_str(text);
                let block = blocks.remove(name);
                open = Some((line, name, block.is_some()));
                if let Some(block) = block {
                    if !text.ends_with('\n') {
                        out.push('\n');
                    }
                    out.push_str(&block);
                }
            }
            (Some((name, true)), Some((_, opened, _))) if name == opened => {
                out.push_str(text);
                open = None;
            }
            (Some(_), Some((line, name, _))) => {
                return Err(MarkdownError::Unclosed { line, name: name.to_owned() });
            }
            (Some((name, true)), None) => {
                return Err(MarkdownError::Unopened { line, name: name.to_owned() });
            }
        }
    }
    if let Some((line, name, _)) = open {
        return Err(MarkdownError::Unclosed { line, name: name.to_owned() });
    }
    for (name, block) in blocks {
        let gap = if out.is_empty() || out.ends_with("\n\n") { "" } else { "\n" };
        let end = if out.is_empty() || out.ends_with('\n') { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = write!(out, "{end}{gap}## {name}\n\n<!-- eval:{name} -->\n{block}<!-- /eval:{name} -->\n");
    }
    Ok(out)
}

/// The tables of one kind, with an empty line before and after.
fn block(kind: Kind, totals: &Totals, figures: &[Figure], sweep: Option<&Sweep>) -> String {
    let mut out = String::from("\n");
    // Times belong to a machine; what is left is the same on every one.
    let own = figures.iter().filter(|figure| figure.kind == kind && !figure.unit.is_of_time());
    let own: Vec<&Figure> = own.collect();
    if !own.is_empty() {
        table(
            &mut out,
            &["figure", "of", "measured", "gate", "goal", "reached"],
            "lrrrrl",
            own.iter().map(|one| {
                let bound = |value| one.unit.show(value);
                let standing = match one.standing() {
                    Standing::Missed => "**missed**".to_owned(),
                    standing => standing.as_str().to_owned(),
                };
                vec![
                    one.name.clone(),
                    thousands(one.n),
                    bound(one.value),
                    bound(one.gate),
                    bound(one.goal),
                    standing,
                ]
            }),
        );
    }
    let Some(tally) = totals.kinds.get(&kind) else { return out };
    groups(&mut out, "tier", &tally.groups(false));
    let sources = totals.sources(kind);
    let names: std::collections::BTreeSet<&str> = sources.iter().map(|row| row.name.as_str()).collect();
    if names.len() > 1 {
        groups(&mut out, "source", &sources);
    }
    if let Some(sweep) = sweep {
        sweep_table(&mut out, sweep);
    }
    out
}

fn groups(out: &mut String, what: &str, rows: &[Group]) {
    table(
        out,
        &[what, "label", "records", "found or flagged", "rate"],
        "llrrr",
        rows.iter().map(|row| {
            let (n, found) = (thousands(row.count.n), thousands(row.count.found));
            vec![row.name.clone(), row.label.clone(), n, found, percent(row.count.rate())]
        }),
    );
}

fn sweep_table(out: &mut String, sweep: &Sweep) {
    let most = percent(Some(fpr_max(sweep.kind)));
    let rows = sweep.rows.iter().map(|row| (row.name.clone(), row));
    let best = sweep.best.iter().map(|row| (format!("{}: lowest with at most {most}", row.name), row));
    let rows = rows.chain(best);
    table(
        out,
        &["threshold", "found", "mean over sources", "falsely flagged"],
        "lrrr",
        rows.map(|(name, row)| {
            let rate = row.macro_recall;
            vec![name, percent(row.positive.rate()), percent(rate), percent(row.negative.rate())]
        }),
    );
    if let (Some(recall), fpr) = (sweep.left_out_recall(), sweep.left_out_fpr()) {
        let sources = sweep.left_out.len();
        let _ = writeln!(
            out,
            "With the threshold of each source fixed on the {} others at no more than {} false alarms: {} found,\n\
             mean over sources, at {} false alarms.\n",
            sources - 1,
            percent(Some(fpr_max(sweep.kind))),
            percent(Some(recall)),
            percent(fpr)
        );
    }
}

/// A table with an empty line after it; `align` has a letter a column, `l` or `r`.
fn table(out: &mut String, heads: &[&str], align: &str, rows: impl Iterator<Item = Vec<String>>) {
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "| {} |", heads.join(" | "));
    let rule: Vec<&str> = align.chars().map(|side| if side == 'r' { "---:" } else { "---" }).collect();
    let _ = writeln!(out, "|{}|", rule.join("|"));
    for row in rows {
        // Names come from records: a bar would be a column, and a line end the end of the table.
        let cells: Vec<String> =
            row.iter().map(|cell| cell.replace(['\n', '\r'], " ").replace('|', "\\|")).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out.push('\n');
}

/// A number with a comma before each three digits.
fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> BTreeMap<&'static str, String> {
        BTreeMap::from([("pii", "new\n".to_owned())])
    }

    #[test]
    fn only_what_stands_between_the_markers_changes() {
        let before = "# Title\n\nwords\n<!-- eval:pii -->\nold\n<!-- /eval:pii -->\n\nmore\n<!-- eval:paths -->\nkept\n<!-- /eval:paths -->\nno line end";
        let after = replace(before, blocks()).expect("good markers");
        assert_eq!(after, before.replace("old", "new"));
        assert_eq!(replace(&after, blocks()).expect("good markers"), after, "writing twice changes nothing");
    }

    #[test]
    fn a_missing_block_is_added() {
        let added = "## pii\n\n<!-- eval:pii -->\nnew\n<!-- /eval:pii -->\n";
        assert_eq!(replace("", blocks()).expect("no marker"), added);
        assert_eq!(replace("words", blocks()).expect("no marker"), format!("words\n\n{added}"));
        assert_eq!(replace("words\n", blocks()).expect("no marker"), format!("words\n\n{added}"));
    }

    #[test]
    fn markers_that_make_no_sense_are_named_with_their_line() {
        for (document, line) in [
            ("a\n<!-- eval:moon -->\n<!-- /eval:moon -->\n", 2),
            ("<!-- eval:pii -->\nx\n", 1),
            ("<!-- eval:pii -->\n<!-- eval:paths -->\n<!-- /eval:paths -->\n", 1),
            ("<!-- eval:pii -->\n<!-- /eval:paths -->\n", 1),
            ("x\n\n<!-- /eval:pii -->\n", 3),
            ("<!-- eval:pii -->\n<!-- /eval:pii -->\n<!-- eval:pii -->\n<!-- /eval:pii -->\n", 3),
        ] {
            let error = replace(document, blocks()).expect_err(document).to_string();
            assert!(error.starts_with(&format!("line {line}: ")), "{document}: {error}");
        }
    }

    #[test]
    fn cells_cannot_break_out_of_their_table() {
        let mut out = String::new();
        table(&mut out, &["a"], "l", std::iter::once(vec!["x|y\nz".to_owned()]));
        assert_eq!(out, "| a |\n|---|\n| x\\|y z |\n\n");
        assert_eq!([0, 999, 1000, 1234567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
