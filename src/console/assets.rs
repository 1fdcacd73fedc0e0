//! Files that pages load: one style sheet, one picture and two scripts, all of them part of the program.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

use super::answer;
use super::visitor::Known;

struct Asset {
    name: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

static ASSETS: [Asset; 4] = [
    Asset {
        name: "console.css",
        kind: "text/css; charset=utf-8",
        content: include_bytes!("assets/console.css"),
    },
    Asset { name: "console.js", kind: SCRIPT, content: include_bytes!("assets/console.js") },
    Asset { name: "htmx.min.js", kind: SCRIPT, content: include_bytes!("assets/htmx.min.js") },
    Asset { name: "icon.svg", kind: "image/svg+xml", content: include_bytes!("assets/icon.svg") },
];

/// Tags by which a browser knows whether it has a file already.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let tag = |asset: &Asset| {
        let mut tag = String::from("\"");
        for byte in &Sha256::digest(asset.content)[..12] {
            let _ = write!(tag, "{byte:02x}"); // writing to a String cannot fail
        }
        tag.push('"');
        tag
    };
    ASSETS.iter().map(tag).collect()
});

/// One file.
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(at) = ASSETS.iter().position(|asset| asset.name == name) else {
        return answer::no_page(Known(None)).await;
    };
    let (asset, tag) = (&ASSETS[at], &TAGS[at]);
    let mut response = if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag.as_str()) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        asset.content.into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    // Asked for again each time, and sent again only after an upgrade.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}
