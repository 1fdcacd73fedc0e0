//! What a bundle is made of: the gate of archives, and files that are inert.
//!
//! Pure and synchronous. `ReviewBundle` will stand on it; no call of this release does.

pub mod archive;
pub mod media;
pub mod pack;
pub mod spool;
