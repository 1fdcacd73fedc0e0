//! Bytes in a folder and in a stand-in for S3, by the same tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::setting::Secret;
use crate::store::Config;

/// Objects of the stand-in, each with the parts of an upload that has not ended under its name and `?`.
type Bucket = Arc<Mutex<BTreeMap<String, Bytes>>>;

/// What S3 does with the few requests that the store makes: put, if nothing is there, get, head, delete, list, and an
/// upload in parts. It takes any signature, but wants one.
async fn stand_in(State(bucket): State<Bucket>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
    let query = parts.uri.query().unwrap_or_default().to_owned();
    if !parts
        .headers
        .get("authorization")
        .is_some_and(|it| it.to_str().is_ok_and(|it| it.contains("AKIDEXAMPLE")))
    {
        return StatusCode::FORBIDDEN.into_response();
    }
    let mut bucket = bucket.lock().expect("whole");
    let key = parts.uri.path().trim_start_matches("/bucket").trim_start_matches('/').to_owned();
    let parameter = |name: &str| {
        query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    };
    match parts.method {
        Method::GET if parameter("list-type").is_some() => {
            list(&bucket, parameter("prefix").unwrap_or_default())
        }
        Method::GET | Method::HEAD => match bucket.get(&key) {
            None => StatusCode::NOT_FOUND.into_response(),
            Some(bytes) => {
                let headers = [("etag", "\"x\""), ("last-modified", "Sat, 14 Nov 2026 00:00:00 GMT")];
                (headers, bytes.clone()).into_response()
            }
        },
        Method::PUT => put(&mut bucket, &parts.headers, key, parameter("partNumber"), body),
        Method::POST if query.starts_with("uploads") => {
            let answer = "InitiateMultipartUploadResult";
            xml(format!("<{answer}><UploadId>u</UploadId></{answer}>"))
        }
        Method::POST if parameter("uploadId").is_some() => {
            let begin = format!("{key}?");
            let found: Vec<String> = bucket.keys().filter(|part| part.starts_with(&begin)).cloned().collect();
            let whole: Vec<u8> = found.iter().flat_map(|part| bucket.remove(part).expect("there")).collect();
            bucket.insert(key, whole.into());
            xml("<CompleteMultipartUploadResult><ETag>\"x\"</ETag></CompleteMultipartUploadResult>"
                .to_owned())
        }
        Method::DELETE => {
            bucket.remove(&key);
            StatusCode::NO_CONTENT.into_response()
        }
        _ => StatusCode::NOT_IMPLEMENTED.into_response(),
    }
}

fn put(
    bucket: &mut BTreeMap<String, Bytes>,
    headers: &HeaderMap,
    key: String,
    part: Option<&str>,
    body: Bytes,
) -> Response {
    let key = match part {
        Some(part) => format!("{key}?{part:0>5}"),
        None if headers.contains_key("if-none-match") && bucket.contains_key(&key) => {
            return StatusCode::PRECONDITION_FAILED.into_response();
        }
        None => key,
    };
    bucket.insert(key, body);
    ([("etag", "\"x\"")], StatusCode::OK).into_response()
}

fn list(bucket: &BTreeMap<String, Bytes>, prefix: &str) -> Response {
    let prefix = prefix.replace("%2F", "/");
    let contents: String = bucket
        .iter()
        .filter(|(key, _)| key.starts_with(&prefix) && !key.contains('?'))
        .map(|(key, bytes)| {
            let size = bytes.len();
            let time = "2026-11-14T00:00:00.000Z";
            format!(
                "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>{time}</LastModified><ETag>x</ETag></Contents>"
            )
        })
        .collect();
    xml(format!("<ListBucketResult>{contents}</ListBucketResult>"))
}

fn xml(text: String) -> Response {
    ([("content-type", "application/xml")], text).into_response()
}

/// A stand-in that listens, and the settings that lead there.
async fn s3() -> (Bucket, Config) {
    let bucket = Bucket::default();
    let router = axum::Router::new().fallback(stand_in).with_state(bucket.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let s3 = S3Config {
        endpoint: Some(endpoint),
        access_key_id: Some("AKIDEXAMPLE".to_owned()),
        secret_access_key: Some(Secret::new("hunter2")),
        ..S3Config::default()
    };
    (bucket, Config { bundles: Some("s3://bucket/some/prefix".to_owned()), s3, ..Config::default() })
}

fn file(folder: &Path, name: &str, size: usize) -> (PathBuf, Vec<u8>) {
    let path = folder.join(name);
    let bytes: Vec<u8> = (0..size).map(|at| (at.wrapping_mul(31) >> 3) as u8).collect();
    std::fs::write(&path, &bytes).expect("written");
    (path, bytes)
}

/// What holds for every place.
async fn keeps_bytes(place: &dyn BundleBytes) {
    let folder = tempfile::tempdir().expect("a folder");
    // Of no byte, small, exactly one piece, and several pieces with a rest.
    let sizes = [("none", 0), ("small", 20_000), ("piece", 5 << 20), ("large", (11 << 20) + 7)];
    for (id, size) in sizes {
        let (path, bytes) = file(folder.path(), id, size);
        assert!(!place.exists(id.to_owned()).await.expect("answered"), "{id}");
        place.put_file(id.to_owned(), path.clone()).await.expect(id);
        assert!(place.exists(id.to_owned()).await.expect("answered"), "{id}");
        let twice = place.put_file(id.to_owned(), path).await;
        assert!(matches!(twice, Err(BytesError::AlreadyExists { .. })), "{id} {twice:?}");
        let back = folder.path().join(format!("{id}.back"));
        assert_eq!(place.get_file(id.to_owned(), back.clone()).await.expect(id), size as u64);
        assert!(std::fs::read(&back).expect("read") == bytes, "{id} comes back as it was");
        let over = place.get_file(id.to_owned(), back.clone()).await;
        assert!(matches!(over, Err(BytesError::File { .. })), "{id} {over:?}");
        assert!(std::fs::read(&back).expect("read") == bytes, "a file that is there stays");
    }
    let mut listed = place.list().await.expect("listed");
    listed.sort_by_key(|kept| kept.size);
    let seen: Vec<(&str, u64)> = listed.iter().map(|kept| (kept.submission_id.as_str(), kept.size)).collect();
    assert_eq!(seen, sizes.map(|(id, size)| (id, size as u64)));
    assert!(listed.iter().all(|kept| kept.written > Timestamp::UNIX_EPOCH));

    let missing = place.get_file("missing".to_owned(), folder.path().join("missing")).await;
    assert!(matches!(missing, Err(BytesError::NotFound { .. })), "{missing:?}");
    assert!(!folder.path().join("missing").exists());
    let unread = place.put_file("unread".to_owned(), folder.path().join("nothing")).await;
    assert!(matches!(unread, Err(BytesError::File { .. })), "{unread:?}");
    for id in ["", "../x", "a/b", "a.zip", "a#1", "☃", &"x".repeat(65)] {
        for outcome in [
            place.put_file(id.to_owned(), folder.path().join("small")).await,
            place.delete(id.to_owned()).await,
            place.get_file(id.to_owned(), folder.path().join("y")).await.map(|_| ()),
        ] {
            assert!(matches!(outcome, Err(BytesError::BadId { .. })), "{id} {outcome:?}");
        }
    }
    for _ in 0..2 {
        place.delete("large".to_owned()).await.expect("gone, and it is no error that it is");
    }
    assert!(!place.exists("large".to_owned()).await.expect("answered"));
    assert_eq!(place.list().await.expect("listed").len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_keeps_bytes() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let bundles = folder.path().join("below/bundles");
    let place = open(&Config::default(), &bundles).expect("it opens");
    keeps_bytes(&*place).await;
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&bundles), 0o700);
    for entry in std::fs::read_dir(&bundles).expect("a folder") {
        let path = entry.expect("an entry").path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3_keeps_bytes() {
    let (bucket, config) = s3().await;
    let place = open(&config, Path::new("unused")).expect("it opens");
    keeps_bytes(&*place).await;
    let names: Vec<String> = bucket.lock().expect("whole").keys().cloned().collect();
    assert_eq!(names, ["some/prefix/none.zip", "some/prefix/piece.zip", "some/prefix/small.zip"]);
    bucket.lock().expect("whole").insert("some/other/x.zip".to_owned(), Bytes::new());
    assert_eq!(place.list().await.expect("listed").len(), 3, "what lies beside is not ours");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_of_s3_is_told_without_the_key() {
    let (_, mut config) = s3().await;
    config.s3.access_key_id = Some("SOMEBODYELSE".to_owned());
    let place = open(&config, Path::new("unused")).expect("it opens");
    let error = place.exists("x".to_owned()).await.expect_err("refused");
    let text = format!("{error} {error:?} {config:?}");
    assert!(matches!(error, BytesError::Access { .. }), "{text}");
    assert!(text.contains("s3://bucket/some/prefix") && !text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn what_an_interrupted_write_left_is_swept_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = open(&Config::default(), folder.path()).expect("it opens");
    for name in ["a.zip", "a.zip#1", "b.zip#12", "notes.txt", "b.zip#x", "#1", "x#1"] {
        std::fs::write(folder.path().join(name), "x").expect("written");
    }
    let now = Timestamp::now();
    assert_eq!(place.list().await.expect("listed").len(), 1, "only whole ones are listed");
    assert_eq!(place.sweep_unfinished(now - SignedDuration::from_hours(1)).await.expect("swept"), 0);
    assert_eq!(place.sweep_unfinished(now + SignedDuration::from_hours(1)).await.expect("swept"), 2);
    let mut left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    left.sort();
    assert_eq!(left, ["#1", "a.zip", "b.zip#x", "notes.txt", "x#1"]);
}

#[test]
fn a_place_is_a_folder_or_a_bucket() {
    let s3 = |bucket: &str, prefix: &str| Place::S3 { bucket: bucket.into(), prefix: prefix.into() };
    for (text, wanted) in [
        ("bundles", Some(Place::Folder("bundles".into()))),
        ("/var/lib/x", Some(Place::Folder("/var/lib/x".into()))),
        ("s3://b", Some(s3("b", ""))),
        ("s3://b/", Some(s3("b", ""))),
        ("s3://b-1/x/y/", Some(s3("b-1", "x/y"))),
        ("s3://", None),
        ("s3:///x", None),
        ("s3://user:pw@b/x", None),
        ("s3://b/x?y", None),
        ("gs://b/x", None),
        ("", None),
    ] {
        assert_eq!(Place::parse(text).ok(), wanted, "{text}");
    }
}
