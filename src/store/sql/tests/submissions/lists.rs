//! lists
