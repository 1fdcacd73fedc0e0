//! What calls of other services have in common: the circuit breaker, pauses between attempts, deadlines, private addresses.
//!
//! Stands below the clients (`extension`, `judge`) and opens no connection itself.

mod address;
mod breaker;
mod pause;
mod until;

pub use address::{is_within, kind_of_address};
pub use breaker::{Breaker, Permit};
pub use pause::{jitter, pause_before};
pub use until::Until;
