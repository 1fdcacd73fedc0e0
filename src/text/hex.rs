//! hex
