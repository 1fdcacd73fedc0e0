//! Cheap looks at a text.
pub(super) fn has_leet(_: &str) -> bool {
    false
}
pub(super) fn has_spaced(_: &str) -> bool {
    false
}
