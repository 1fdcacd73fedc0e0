//! Tests of the message engine.
