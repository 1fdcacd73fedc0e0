//! What a policy says about streams, compiled: which rules run, what is known to be safe, what a severity leads to.

/// What sessions under one policy go by. Immutable and shared.
#[derive(Debug, Default)]
pub struct Plan {}
