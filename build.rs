//! Turns `proto/` into Rust (messages, clients, servers, the JSON mapping, descriptors for reflection) and puts the
//! files of `rules/` into the binary, those of detectors as JSON too: it is read ten times as fast as TOML, and reading
//! rules is most of what a short-lived process does.
//!
//! The compiler is protox, a library: nobody needs to install protoc, and nothing is fetched.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Folder the contract's imports are relative to.
const PROTO_ROOT: &str = "proto";

/// Folder of the contract itself; every `.proto` file in it is compiled.
const CONTRACT: &str = "proto/portcullis/v1";

/// A service of another project that is served here too. It is no part of the contract: reflection does not tell it.
const EXT_MCP: &str = "agentgateway/dev/ext_mcp/ext_mcp.proto";

/// Fields that carry bulk bytes: as `Bytes` they are slices of the receive buffer instead of copies of it.
const BULK_BYTES: [&str; 4] = [
    ".portcullis.v1.Chunk.data",
    ".portcullis.v1.ReviewBundleRequest.chunk",
    ".portcullis.v1.DownloadBundleResponse.chunk",
    ".portcullis.v1.DownloadEntityResponse.chunk",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    compile_contract()?;
    compile_ext_mcp()?;
    embed_rules()
}

fn compile_contract() -> Result<(), Box<dyn Error>> {
    // A folder is watched with all it holds, so a new file triggers a build as well.
    println!("cargo:rerun-if-changed={PROTO_ROOT}");

    let mut compiler = protox::Compiler::new([PROTO_ROOT])?;
    compiler.include_source_info(true).include_imports(true).open_files(contract_files()?)?;
    let descriptors = compiler.file_descriptor_set();

    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    // protox's own encoding, not that of `descriptors`: it keeps custom options, which prost would drop.
    let encoded = compiler.encode_file_descriptor_set();
    fs::write(out_dir.join("portcullis_descriptor.bin"), &encoded)?;

    // Maps are ordered, so that equal messages have equal bytes and equal JSON. The well-known types come from
    // pbjson-types, as those of prost-types have no JSON mapping.
    let mut config = prost_build::Config::new();
    config.btree_map(["."]).bytes(BULK_BYTES);
    config.compile_well_known_types().extern_path(".google.protobuf", "::pbjson_types");
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        .compile_fds_with_config(descriptors, config)?;

    pbjson_build::Builder::new()
        .register_descriptors(&encoded)?
        .btree_map(["."])
        .extern_path(".google.protobuf", "::pbjson_types")
        .build(&[".portcullis.v1", ".google.rpc"])?;
    Ok(())
}

fn compile_ext_mcp() -> Result<(), Box<dyn Error>> {
    let mut compiler = protox::Compiler::new([PROTO_ROOT])?;
    compiler.include_source_info(true).include_imports(true).open_files([EXT_MCP])?;
    let mut config = prost_build::Config::new();
    config.compile_well_known_types().extern_path(".google.protobuf", "::pbjson_types");
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        .compile_fds_with_config(compiler.file_descriptor_set(), config)?;
    Ok(())
}

/// Every file of the contract, sorted, so that the descriptors come out the same on every machine.
fn contract_files() -> std::io::Result<Vec<PathBuf>> {
    let mut files = fs::read_dir(CONTRACT)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|file| file.extension() == Some("proto".as_ref()));
    files.sort();
    // Inside the root the compiler wants paths relative to it.
    Ok(files
        .iter()
        .map(|file| file.strip_prefix(PROTO_ROOT).map(Path::to_path_buf).unwrap_or(file.clone()))
        .collect())
}

/// Folders of `rules/` that do not hold detectors of text: each becomes `builtin_<folder>.rs`, (name, text) a file.
const OTHER_RULES: [&str; 4] = ["bundles", "commands", "paths", "streams"];

/// Writes `builtin_rules.rs`: every `rules/<plugin>/*.toml` as (name, plugin, text), in the order of their paths; and one
/// file like it for each of [`OTHER_RULES`].
fn embed_rules() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed=rules");
    let mut files = Vec::new();
    for folder in sorted(&root.join("rules"))? {
        if folder.is_dir() {
            println!("cargo:rerun-if-changed={}", folder.display());
            files.extend(sorted(&folder)?.into_iter().filter(|f| f.extension().is_some_and(|e| e == "toml")));
        }
    }
    let mut json = JsonRules { folder: out.join("rules"), count: 0 };
    fs::create_dir_all(&json.folder)?;
    let mut bundle_rules = Vec::new();
    for folder in OTHER_RULES {
        let prefix = root.join("rules").join(folder);
        let mut code = String::from("&[\n");
        for file in files.iter().filter(|file| file.starts_with(&prefix)) {
            let name = file.strip_prefix(&root).unwrap_or(file).display().to_string().replace('\\', "/");
            let path = file.display().to_string();
            if folder == "streams" {
                let json = json.of(file)?;
                let _ = writeln!(code, "    ({name:?}, include_str!({path:?}), include_str!({json:?})),");
            } else {
                let _ = writeln!(code, "    ({name:?}, include_str!({path:?})),");
            }
            if folder == "bundles" {
                bundle_rules.extend(rules_of(file)?);
            }
        }
        code.push_str("]\n");
        fs::write(out.join(format!("builtin_{folder}.rs")), code)?;
    }
    fs::write(out.join("builtin_bundle_kinds.rs"), format!("&{bundle_rules:?}\n"))?;
    files.retain(|file| !OTHER_RULES.iter().any(|folder| file.starts_with(root.join("rules").join(folder))));
    let mut code = String::from("static BUILTIN_RULES: &[(&str, &str, &str, &str)] = &[\n");
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string().replace('\\', "/");
        let plugin = name.split('/').nth(1).unwrap_or_default().to_owned();
        let path = file.display().to_string();
        let json = json.of(&file)?;
        let _ = writeln!(code, "    ({name:?}, {plugin:?}, include_str!({path:?}), include_str!({json:?})),");
    }
    code.push_str("];\n");
    fs::write(out.join("builtin_rules.rs"), code)?;
    Ok(())
}

/// Id, category and severity of a rule.
type RuleKind = (String, String, String);

/// The rules in a file, in its order.
fn rules_of(file: &Path) -> Result<Vec<RuleKind>, Box<dyn Error>> {
    let table: toml::Table =
        toml::from_str(&fs::read_to_string(file)?).map_err(|error| format!("{}: {error}", file.display()))?;
    let rules = table.get("rule").and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let of = |rule: &toml::Value| {
        let text = |field: &str| rule.get(field)?.as_str().map(str::to_owned);
        Some((text("id")?, text("category")?, text("severity")?))
    };
    Ok(rules.iter().filter_map(of).collect())
}

/// Rule files as JSON: `{"plugin": …, "define": …, "rules": [{"line": 1, "rule": {…}}], …}`.
struct JsonRules {
    folder: PathBuf,
    count: usize,
}

/// The parts of a rule file. What a rule may hold is checked when it is read.
#[derive(serde::Deserialize)]
struct RuleFile {
    plugin: Option<String>,
    #[serde(default)]
    define: toml::Table,
    #[serde(default, rename = "rule")]
    rules: Vec<toml::Spanned<toml::Table>>,
    #[serde(default)]
    words: toml::Table,
    #[serde(default)]
    meanings: Option<toml::Spanned<toml::Table>>,
    #[serde(default, rename = "concept")]
    concepts: Vec<toml::Spanned<toml::Table>>,
    model: Option<toml::Spanned<toml::Table>>,
    #[serde(flatten)]
    unknown: toml::Table,
}

impl JsonRules {
    /// Writes the JSON form of a rule file; answers the path of it.
    fn of(&mut self, file: &Path) -> Result<String, Box<dyn Error>> {
        let text = fs::read_to_string(file)?;
        let RuleFile { plugin, define, rules, words, meanings, concepts, model, unknown } =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        if let Some(key) = unknown.keys().next() {
            return Err(format!("{}: a rule file has no `{key}`", file.display()).into());
        }
        let lined = |key: &str, table: toml::Spanned<toml::Table>| {
            let line = text[..table.span().start].matches('\n').count() + 1;
            serde_json::json!({"line": line, key: table.into_inner()})
        };
        let rules: Vec<_> = rules.into_iter().map(|rule| lined("rule", rule)).collect();
        let concepts: Vec<_> = concepts.into_iter().map(|concept| lined("concept", concept)).collect();
        let json = serde_json::json!({
            "plugin": plugin,
            "define": define,
            "rules": rules,
            "words": words,
            "meanings": meanings.map(|meanings| lined("meanings", meanings)),
            "concepts": concepts,
            "model": model.map(|model| lined("model", model)),
        });
        let path = self.folder.join(format!("{}.json", self.count));
        self.count += 1;
        fs::write(&path, json.to_string())?;
        Ok(path.display().to_string())
    }
}

fn sorted(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}
