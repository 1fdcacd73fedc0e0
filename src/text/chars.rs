//! chars
