//! Tests of the text module.
