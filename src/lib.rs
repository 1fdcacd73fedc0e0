//! Portcullis: the policy decision point for AI agents.
//!
//! Imports point down this list only: `text` <- `decision` <- `rules` <- `detect`, and `paths` <- `shell` <- `commands`.
//! These are the core: they do no IO, hold no clock and give the same answer for the same input. `policy`, `audit` and
//! `telemetry` stand on them, the engines (`messages`, `tools`, `monitor`, `bundles`) on all of these, `grpc` and `http`
//! on the engines, and `app` puts everything together. `eval` measures the engines, and `cli` sees all. `threads` is for
//! whoever starts one.

pub mod app;
pub mod audit;
pub mod bundles;
pub mod cli;
pub mod commands;
pub mod config;
pub mod console;
pub mod decision;
pub mod detect;
pub mod eval;
pub mod extension;
pub mod grpc;
pub mod hooks;
pub mod http;
pub mod identity;
pub mod judge;
pub mod messages;
pub mod monitor;
pub mod outbound;
pub mod paths;
pub mod pb;
pub mod policy;
pub mod rules;
pub mod setting;
pub mod shell;
pub mod store;
pub mod telemetry;
pub mod text;
pub mod threads;
pub mod tools;
pub mod train;
