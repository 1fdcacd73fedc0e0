use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// One file of `tests/cases/config`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    /// Text of `portcullis.yaml`; absent: there is no file.
    file: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    flags: Vec<FlagCase>,
    want: Want,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlagCase {
    key: String,
    value: String,
    flag: String,
}

/// Exactly one of the three.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Want {
    /// All problems, as they are printed.
    problems: Vec<String>,
    /// The beginnings of all problems, where the rest is another library's wording.
    problem_starts: Vec<String>,
    /// Some settings, as they are printed.
    settings: BTreeMap<String, WantSetting>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WantSetting {
    value: Value,
    source: String,
}

fn load(case: &Case) -> Result<(Settings, Sources), ConfigProblems> {
    let cwd = tempfile::tempdir().expect("a folder");
    if let Some(file) = &case.file {
        fs::write(cwd.path().join(FILE_NAME), file).expect("it writes");
    }
    let mut overrides = Overrides::default();
    for FlagCase { key, value, flag } in &case.flags {
        overrides.set(key, value, flag);
    }
    Settings::load(overrides, case.env.clone().into_iter(), cwd.path())
}

fn check(name: &str, case: &Case) {
    let about = format!("{name}: {}", case.about);
    let loaded = load(case);
    if case.want.settings.is_empty() {
        let found: Vec<String> = loaded.expect_err(&about).0.iter().map(Problem::to_string).collect();
        if case.want.problem_starts.is_empty() {
            assert_eq!(found, case.want.problems, "{about}");
        } else {
            let starts =
                found.iter().zip(&case.want.problem_starts).all(|(found, start)| found.starts_with(start));
            assert!(starts && found.len() == case.want.problem_starts.len(), "{about}\nfound {found:#?}");
        }
        return;
    }
    let (settings, sources) = loaded.unwrap_or_else(|problems| panic!("{about}\n{problems}"));
    let effective = effective(&settings, &sources);
    for (key, want) in &case.want.settings {
        let found = effective.iter().find(|setting| setting.key == *key).expect("the key exists");
        assert_eq!((&found.value, &found.source), (&want.value, &want.source), "{about}\n{key}");
    }
}

#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/config");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the cases are there") {
        let path = entry.expect("it can be listed").path();
        let text = fs::read_to_string(&path).expect("it can be read");
        let name = path.display().to_string();
        let case: Case = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(&name, &case);
        count += 1;
    }
    assert!(count >= 11, "only {count} cases were found");
}

fn load_with(
    flags: Overrides,
    env: &[(&str, &str)],
    cwd: &Path,
) -> Result<(Settings, Sources), ConfigProblems> {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings::load(flags, env, cwd)
}

#[test]
fn nothing_at_all_gives_the_defaults() {
    let cwd = tempfile::tempdir().expect("a folder");
    let (settings, sources) = load_with(Overrides::default(), &[], cwd.path()).expect("defaults are good");
    assert_eq!((&settings, &sources), (&Settings::default(), &Sources::default()));
    assert_eq!(settings.server.request_bytes_max, 4_194_304);
    assert_eq!(settings.audit_path(), Path::new("./data/audit/audit.jsonl"));
    assert_eq!(settings.plugins.enabled_ids(), ["injection", "pii", "secrets", "code"]);
    assert!(PluginsConfig { enabled: false, ..PluginsConfig::default() }.enabled_ids().is_empty());
}

#[test]
fn a_named_file_must_exist_and_the_flag_names_it_first() {
    let cwd = tempfile::tempdir().expect("a folder");
    fs::write(cwd.path().join(FILE_NAME), "log: { level: error }").expect("it writes");
    fs::write(cwd.path().join("by_env.yaml"), "log: { level: warn }").expect("it writes");
    fs::write(cwd.path().join("by_flag.yaml"), "log: { level: debug }").expect("it writes");
    let flag = |file: &str| Overrides { config_file: Some(file.into()), ..Overrides::default() };
    let level = |loaded: Result<(Settings, Sources), ConfigProblems>| {
        let (settings, sources) = loaded.expect("it loads");
        (settings.log.level, sources.get("log.level").to_string())
    };
    // The address that clients are told is no setting.
    let env = [("PORTCULLIS_CONFIG", "by_env.yaml"), ("PORTCULLIS_ADDRESS", "127.0.0.1:50051")];
    let found = level(load_with(Overrides::default(), &[], cwd.path()));
    assert_eq!(found, ("error".to_owned(), "file portcullis.yaml:1".to_owned()));
    let found = level(load_with(Overrides::default(), &env, cwd.path()));
    assert_eq!(found, ("warn".to_owned(), "file by_env.yaml:1".to_owned()));
    let found = level(load_with(flag("by_flag.yaml"), &env, cwd.path()));
    assert_eq!(found, ("debug".to_owned(), "file by_flag.yaml:1".to_owned()));
    let problems = load_with(flag("missing.yaml"), &env, cwd.path()).expect_err("it is missing").to_string();
    assert!(
        problems.contains("could not read `missing.yaml`") && problems.contains("(flag --config)"),
        "{problems}"
    );
}

#[test]
fn the_report_names_every_setting_once_and_hides_secrets() {
    let cwd = tempfile::tempdir().expect("a folder");
    let env = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:hunter2@collector:4317/x@y")];
    let (settings, sources) = load_with(Overrides::default(), &env, cwd.path()).expect("it loads");
    let text = render_text(&settings, &sources);
    assert!(text.contains("server.listen = 127.0.0.1:50051   (default)\n"), "{text}");
    assert!(text.contains(
        "tracing.otlp_endpoint = http://***@collector:4317/x@y   (env OTEL_EXPORTER_OTLP_ENDPOINT)\n"
    ));
    assert!(text.contains("policy.path = (unset)   (default)\n"));
    let json = render_json(&settings, &sources).to_string();
    assert!(!text.contains("hunter2") && !json.contains("hunter2"));
    assert_eq!(text.lines().count(), effective(&settings, &sources).len());
}

#[test]
fn the_console_is_served_by_default_where_only_this_machine_reaches_it() {
    let cwd = tempfile::tempdir().expect("a folder");
    let load = |pairs: &[&str]| {
        let mut overrides = Overrides::default();
        for pair in pairs {
            overrides.set_pair(pair).expect("it is a pair");
        }
        load_with(overrides, &[], cwd.path())
    };
    for (pairs, wanted) in [
        (&[][..], true),
        (&["http.listen=[::1]:8080"][..], true),
        (&["console.enabled=false"][..], false),
        (&["http.allowed_hosts=portcullis.internal"][..], false),
        (&["http.allowed_hosts=portcullis.internal", "console.enabled=true"][..], true),
        (&["http.listen=0.0.0.0:8080", "server.insecure_allow_anonymous=true"][..], false),
    ] {
        let (settings, _) = load(pairs).expect("it loads");
        assert_eq!(settings.serves_console(), wanted, "{pairs:?}");
    }
    for pairs in [
        &["http.listen=0.0.0.0:8080", "server.insecure_allow_anonymous=true", "console.enabled=true"][..],
        &["auth.mode=mtls", "console.enabled=true"][..],
        &["console.session_idle=2h", "console.session_max=1h"][..],
        &["console.sessions_max=0"][..],
        &["console.decisions_max=100001"][..],
    ] {
        let problems = load(pairs).expect_err("it is refused").to_string();
        assert!(problems.contains("console."), "{pairs:?}: {problems}");
    }
}

#[test]
fn a_pair_without_a_value_is_refused() {
    let mut overrides = Overrides::default();
    overrides.set_pair("log.level=info,portcullis=debug").expect("it is a pair");
    assert_eq!(overrides.values[0].value, "info,portcullis=debug");
    let problem = overrides.set_pair("log.level").expect_err("it has no value").to_string();
    assert_eq!(problem, "`log.level` is not of the form key=value (flag --set)");
}

proptest! {
    /// Whatever a file or a variable holds, loading ends with settings or with problems that can be printed.
    #[test]
    fn no_text_makes_loading_panic(
        file in r"((server|log|rules|audit|x)(: |:\n  )[\[\]{}a-z0-9:,.~*&!|> \n-]{0,40}\n?){0,4}",
        any in any::<String>(),
        value in any::<String>(),
    ) {
        for file in [&file, &any] {
            let mut layers = layer::Layers::new(&Settings::default());
            file::overlay("portcullis.yaml", file, &mut layers);
            for key in ["server.listen", "server.max_connection_age", "rules.paths", "audit.path", "plugins.pii", &any] {
                layers.set_text(key, &value, Source::Flag { name: "--set".to_owned() });
            }
            let (settings, _, mut problems) = layers.finish();
            settings.check(&mut problems);
            let _ = ConfigProblems(problems).to_string();
        }
    }
}
