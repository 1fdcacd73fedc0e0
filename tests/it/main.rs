//! End-to-end and repository tests: one binary, because each further one takes its own time to link.
//!
//! - `adapters`: contracts of others over HTTP, as data in `tests/cases/adapters`.
//! - `architecture`: the sources keep the import rules of the crate.
//! - `audit`: one record per decision, and what it must not hold.
//! - `bad_input`: what no honest client sends.
//! - `bundle_code`: Python and JavaScript of bundles, as data in `tests/cases/bundles/code` and as properties.
//! - `bundle_crash`: the server killed in the midst of uploads and reviews.
//! - `bundles`: no tests; bundles of tests, and their upload.
//! - `check_messages`: requests and wanted answers as data, in `tests/cases/check_messages`.
//! - `console`: pages for people: roles and tenants cell by cell, and what hostile pages and uploads cannot do.
//! - `eval`: figures, sweeps, wrong answers, comparisons and documents.
//! - `explain`: why a text was judged as it was.
//! - `ext_mcp`: calls of the Model Context Protocol that the gateway agentgateway asks about.
//! - `extensions`: interceptors that live elsewhere, good and bad ones.
//! - `fuzz_smoke`: the fuzz targets on a fixed, seeded run.
//! - `gate`: thousands of texts of our own, as data in `tests/cases/gate`, which must be judged as before.
//! - `hook`: the hook of Claude Code.
//! - `identity`: no tests; tokens, and any call of any RPC as bytes.
//! - `identity_jwt`: tokens of an issuer, as data in `tests/cases/identity/jwt.toml`, and its keys.
//! - `identity_roles`: every RPC by every role and by nobody, as data in `tests/cases/identity/roles.toml`.
//! - `identity_tenants`: what one tenant has is nothing to another, RPC by RPC.
//! - `identity_tls`: certificates replaced while the server runs, and callers known by theirs.
//! - `identity_tokens`: tokens made, used, replaced; limits of calls; what is found nowhere.
//! - `incidents`: kept incidents, over gRPC and on the command line.
//! - `intercept`: interception requests and wanted answers as data, in `tests/cases/intercept_tool`.
//! - `interception`: records, counts and reloads of interceptions.
//! - `interceptor_registry`: who may change interceptors, what is kept, who sees it.
//! - `lifecycle`: start, probes, health, reflection, stop and kill.
//! - `llama_guard`: the plugin through a real server.
//! - `llm`: language models, their wire formats and their faults.
//! - `llm_stand_in`: no tests; the providers that they are tested against.
//! - `metrics`: exact deltas of `/metrics`.
//! - `monitor`: the protocol of `StreamMonitor`, and what a client can do wrong in it.
//! - `monitor_cases`: sessions of `StreamMonitor` as data, in `tests/cases/stream_monitor`.
//! - `monitor_incidents`: what is kept, recorded and judged of a session.
//! - `monitoring`: no tests; one session of `StreamMonitor`.
//! - `overload`: more calls than can be decided.
//! - `plugins`: plugins of `CheckMessages` that live elsewhere, good and bad ones.
//! - `policy_service`: looking at policies and rules, and the admin token.
//! - `postgres`: no tests; a database of its own for one test.
//! - `registry`: no tests; changing interceptors and asking about tools.
//! - `reload`: policies and rules replaced while the server runs.
//! - `reviews`: bundles reviewed by a model behind the wire.
//! - `shell_syntax`: our parser of bash beside bash and another parser.
//! - `stream`: `CheckMessagesStream`.
//! - `watch`: commands under watch, killed or not; on pipes and on a terminal.
//! - `review_cli`: bundles on the command line.
//! - `review_bundle`: the upload of bundles.
//! - `submissions`: triage of what was uploaded.
//! - `room`: whether the disk has room for a run of `./test`.
//! - `rules_import`: rules of gitleaks, from their file to a finding.
//! - `server`: no tests; a real server for one test.

mod adapters;
mod architecture;
mod audit;
mod bad_input;
mod bundle_code;
mod bundle_crash;
mod bundle_policy;
mod bundles;
mod check_messages;
mod cli;
mod console;
mod eval;
mod explain;
mod ext_mcp;
mod extensions;
mod fuzz_smoke;
mod gate;
mod hook;
mod identity;
mod identity_jwt;
mod identity_roles;
mod identity_tenants;
mod identity_tls;
mod identity_tokens;
mod incidents;
mod intercept;
mod interception;
mod interceptor_registry;
mod lifecycle;
mod llama_guard;
mod llm;
#[path = "../support/llm.rs"]
mod llm_stand_in;
mod metrics;
mod monitor;
mod monitor_cases;
mod monitor_incidents;
mod monitoring;
mod overload;
mod plugins;
mod policy_service;
#[path = "../support/postgres.rs"]
mod postgres;
mod registry;
mod reload;
mod review_bundle;
mod review_cli;
mod reviews;
mod room;
mod rules_import;
mod server;
mod shell_syntax;
mod shell_words;
mod stream;
mod submissions;
mod watch;
