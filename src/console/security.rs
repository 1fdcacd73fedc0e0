//! Headers of every answer below `/console`, and what a request must show before it changes anything.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

/// Scripts, styles and pictures come from here alone; nothing stands in a page itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Headers that every answer carries.
const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    // Not `no-referrer`: browsers would then send `Origin: null` with forms.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

/// Whether a path belongs to the console.
pub(super) fn is_ours(path: &str) -> bool {
    path.strip_prefix("/console").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Gives every answer below `/console` its headers, whoever made it.
pub(crate) async fn with_headers(request: Request, next: Next) -> Response {
    let is_ours = is_ours(request.uri().path());
    let mut response = next.run(request).await;
    if is_ours {
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if !headers.contains_key(header::CACHE_CONTROL) {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
    }
    response
}

/// Whether a browser says that a page from elsewhere sent this. That of another host was refused already (`Origin`); this
/// catches what browsers tell besides. Programs that are no browser send no such header.
pub(super) fn is_cross_site(headers: &HeaderMap) -> bool {
    headers.get_all("sec-fetch-site").iter().any(|site| site != "same-origin" && site != "none")
}

/// Whether the cookie may travel over encrypted connections only: unless the browser is on this machine. The HTTP side has
/// no TLS of its own, so whoever comes from elsewhere comes through a proxy that has, or should.
pub(super) fn is_secure(headers: &HeaderMap) -> bool {
    let told = headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    if told.is_some_and(|told| told.eq_ignore_ascii_case("https")) {
        return true;
    }
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let host = host.parse::<axum::http::uri::Authority>().ok();
    let host = host.as_ref().map_or("", |authority| authority.host());
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    !(host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback()))
}

/// Whether a browser will not keep a cookie that is for encrypted connections only: it says that the page of the form came
/// without encryption.
pub(super) fn loses_cookie(headers: &HeaderMap) -> bool {
    let told = headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    if told.is_some_and(|told| told.eq_ignore_ascii_case("https")) {
        return false;
    }
    let origin = headers.get(header::ORIGIN).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_plain = origin.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
    is_plain && is_secure(headers)
}

/// Where to go after a login: a page of the console, and nothing else.
pub(super) fn next_page(asked: &str) -> &str {
    let is_plain = asked.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\<>\"'`".contains(&byte));
    let is_inside = asked.starts_with("/console/") && !asked.contains("//") && !asked.contains("..");
    // Browsers read an escaped full stop in a path as one that leads upwards.
    let path = asked.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let is_inside = is_inside && !path.contains("%2e");
    let is_login = asked.starts_with("/console/log");
    if is_plain && is_inside && !is_login && asked.len() <= 1_024 { asked } else { super::HOME }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_pages_of_the_console_alone() {
        for good in
            ["/console/rules", "/console/submissions?status=blocked_inline&sort=name", "/console/rules/a.b"]
        {
            assert_eq!(next_page(good), good);
        }
        for bad in [
            "",
            "https://evil.example/",
            "//evil.example/console/",
            "/console//evil.example",
            "/\\evil.example",
            "/console/\\evil.example",
            "/console/../metrics",
            "/console/%2e%2e/metrics",
            "/console/.%2E/metrics",
            "/console/a\r\nset-cookie: x=y",
            "/consoles/",
            "javascript:alert(1)",
            "/console/logout",
            "/console/login?next=/console/login",
            "/console/\u{202e}",
        ] {
            assert_eq!(next_page(bad), super::super::HOME, "{bad:?}");
        }
    }

    #[test]
    fn cookies_are_for_encrypted_connections_unless_the_browser_is_here() {
        for (host, proxy, wanted) in [
            ("127.0.0.1:8080", None, false),
            ("localhost:8080", None, false),
            ("LOCALHOST", None, false),
            ("[::1]:8080", None, false),
            ("console.internal", None, true),
            ("10.0.0.7:8080", None, true),
            ("localhost.evil.example", None, true),
            ("127.0.0.1:8080", Some("https"), true),
            ("127.0.0.1:8080", Some("http"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            if let Some(proxy) = proxy {
                headers.insert("x-forwarded-proto", HeaderValue::from_static(proxy));
            }
            assert_eq!(is_secure(&headers), wanted, "{host} {proxy:?}");
        }
    }

    #[test]
    fn a_browser_without_encryption_keeps_no_cookie_for_encrypted_connections() {
        for (host, origin, wanted) in [
            ("console.internal", Some("http://console.internal"), true),
            ("console.internal", Some("https://console.internal"), false),
            ("console.internal", None, false),
            ("127.0.0.1:8080", Some("http://127.0.0.1:8080"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(loses_cookie(&headers), wanted, "{host} {origin:?}");
        }
    }

    #[test]
    fn only_paths_of_the_console_are_ours() {
        for (path, wanted) in [
            ("/console", true),
            ("/console/", true),
            ("/console/x", true),
            ("/consoles", false),
            ("/", false),
        ] {
            assert_eq!(is_ours(path), wanted, "{path}");
        }
    }
}
