//! What the inline checks of a bundle cost: a typical skill, and uploads made to be slow.
//!
//! What it is for: the promises that a typical skill is checked in milliseconds, and that no upload takes more than 2 s of
//! processor time for each 50 MB that it unpacks to. Run: `cargo bench --bench bundles`; a path to a folder of archives
//! after `--` times each of them too. Archives are made here; run it on a machine that does nothing else.

mod common;

use std::hint::black_box;
use std::io::{Cursor, Write as _};
use std::sync::Arc;
use std::time::Instant;

use common::{CODE, PROSE, median, text_of};
use portcullis::bundles::archive::FileSource;
use portcullis::bundles::{InspectLimits, Inspector};
use portcullis::decision::BundleKind;
use portcullis::detect::Scanner;
use portcullis::rules::{RuleSet, RuleSetConfig, builtin_sources};
use zip::write::SimpleFileOptions;

/// Rounds of the typical skill.
const ROUNDS: usize = 51;
/// Bytes that a slow upload unpacks to.
const SLOW_BYTES: usize = 50 << 20;
const MIB: usize = 1 << 20;

const SKILL: &str = "---\nname: typical\ndescription: Plans deliveries and writes the letters about them.\n---\n\n# Typical\n";

fn main() {
    let set = RuleSet::compile(&builtin_sources(), &RuleSetConfig::default()).expect("the built-in rules");
    let inspector = Inspector::new(Arc::new(Scanner::new(Arc::new(set))), InspectLimits::default());
    let script = "#!/bin/sh\nset -eu\nfor file in \"$@\"; do\n  wc -l \"$file\" >> report.txt\ndone\n";
    let typical = archive(&[
        (
            "typical/SKILL.md".to_owned(),
            format!("{SKILL}{}\n```bash\n./run.sh a b\n```\n", text_of(PROSE, 9_000)),
        ),
        ("typical/references/plan.md".to_owned(), text_of(PROSE, 10_000)),
        ("typical/run.sh".to_owned(), script.to_owned()),
    ]);
    let times = (0..ROUNDS).map(|_| timed(&inspector, &typical)).collect();
    println!("{:<44} {:>10.2} ms", "typical skill, 3 files of 20 KB (median)", median(times) * 1e3);
    for (name, files) in slow() {
        let file = archive(&files);
        drop(files);
        println!("{name:<44} {:>10.2} s", timed(&inspector, &file));
    }
    for folder in std::env::args().skip(1).filter(|argument| !argument.starts_with('-')) {
        let mut times: Vec<f64> = std::fs::read_dir(&folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "zip"))
            .map(|path| timed(&inspector, &std::fs::File::open(path).expect("an archive")))
            .collect();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] * 1e3;
        println!(
            "{folder}: {} archives, median {:.2} ms, p95 {:.2} ms, worst {:.2} ms",
            times.len(),
            at(0.5),
            at(0.95),
            at(1.0)
        );
    }
}

/// Uploads that unpack to 50 MB each.
fn slow() -> Vec<(&'static str, Vec<(String, String)>)> {
    let many = |extension: &str, text: String| -> Vec<(String, String)> {
        let files = (0..SLOW_BYTES / text.len()).map(|index| (format!("f{index}.{extension}"), text.clone()));
        files.chain([("SKILL.md".to_owned(), SKILL.to_owned())]).collect()
    };
    let python =
        "def total(rows, factor):\n    value = sum(row * factor for row in rows)\n    return value\n\n";
    let script = "if [ -f \"$HOME/x\" ]; then cp \"$HOME/x\" /tmp/y && echo done; fi\n";
    vec![
        ("50 MB of documents", many("md", text_of(PROSE, MIB))),
        ("50 MB of one document", many("md", text_of(PROSE, SLOW_BYTES))),
        ("50 MB of code read as text", many("rs", text_of(CODE, MIB))),
        ("50 MB of Python in files of 1 MiB", many("py", text_of(python, MIB - 1))),
        ("50 MB of scripts", many("sh", text_of(script, MIB))),
        ("50 MB of spaces", many("md", " ".repeat(SLOW_BYTES))),
        ("50 MB of base64", many("txt", text_of("QWxsIGlzIHdlbGwgaW4gdGhlIGhhcmJvdXIsIHRoYW5rIHlvdS4", MIB))),
    ]
}

fn archive(files: &[(String, String)]) -> std::fs::File {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in files {
        writer.start_file(path.as_str(), SimpleFileOptions::default()).expect("a new file");
        writer.write_all(text.as_bytes()).expect("memory takes it");
    }
    let bytes = writer.finish().expect("a whole archive").into_inner();
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&bytes).expect("room on the disk");
    file
}

/// Seconds of one inspection.
fn timed(inspector: &Inspector, file: &std::fs::File) -> f64 {
    let source = FileSource::new(file.try_clone().expect("the same file")).expect("a length");
    let started = Instant::now();
    black_box(inspector.inspect(&source, BundleKind::Skill));
    started.elapsed().as_secs_f64()
}
