//! The parts of an address that name something.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;
use serde::de::DeserializeOwned;

use super::visitor::Known;
use super::{Console, answer};

/// What an address names. One that is no text leads to the page that there is nothing, as others do.
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Console> for Path<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Response> {
        match axum::extract::Path::<T>::from_request_parts(parts, console).await {
            Ok(axum::extract::Path(named)) => Ok(Self(named)),
            Err(_) => {
                let Ok(known) = Known::from_request_parts(parts, console).await;
                Err(answer::no_page(known).await)
            }
        }
    }
}
