//! Tests of the text module: tables of disguises, and properties that hold for every text.

mod disguises;
mod offsets;
mod properties;
