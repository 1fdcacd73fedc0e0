//! hidden
