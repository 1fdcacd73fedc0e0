//! escapes
