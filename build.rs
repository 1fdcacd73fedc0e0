//! Puts the built-in rules into the binary.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    embed_rules()?;
    Ok(())
}

/// Writes `builtin_rules.rs`: every `rules/<plugin>/*.toml` as (name, plugin, text), in the order of their paths.
fn embed_rules() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it for build scripts"));
    println!("cargo:rerun-if-changed=rules");
    let mut files = Vec::new();
    for folder in sorted(&root.join("rules"))? {
        if folder.is_dir() {
            println!("cargo:rerun-if-changed={}", folder.display());
            files.extend(sorted(&folder)?.into_iter().filter(|f| f.extension().is_some_and(|e| e == "toml")));
        }
    }
    let mut code = String::from("static BUILTIN_RULES: &[(&str, &str, &str)] = &[\n");
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string().replace('\\', "/");
        let plugin = name.split('/').nth(1).unwrap_or_default().to_owned();
        let path = file.display().to_string();
        let _ = writeln!(code, "    ({name:?}, {plugin:?}, include_str!({path:?})),");
    }
    code.push_str("];\n");
    fs::write(out.join("builtin_rules.rs"), code)
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}
