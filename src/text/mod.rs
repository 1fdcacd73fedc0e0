//! Text layers.
