//! base64
