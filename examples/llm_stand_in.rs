//! The stand-in for model providers that the tests use, as a program: for clients in other languages, and for trying
//! what Portcullis does when a provider fails.
//!
//! Prints its address, then serves until its standard input ends. What it does is said by the base URL, for example
//! `llm.base_url: http://127.0.0.1:9999/fault/429-hint`; see `tests/support/llm.rs` and the table in `docs/LLM.md`.
//!
//! `cargo run --example llm_stand_in -- 127.0.0.1:9999`

// The tests look at what came; this program does not.
#[allow(dead_code)]
#[path = "../tests/support/llm.rs"]
mod llm;

use std::io::Read as _;

use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("{}", listener.local_addr()?);
    let _serving = llm::StandIn::listen(listener);
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await;
    ended.map_err(std::io::Error::other)?.map(|_| ())
}
