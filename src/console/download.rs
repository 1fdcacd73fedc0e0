//! The bytes of a submission, as the service packs them.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use prost::Message as _;

use super::path::Path;
use super::visitor::{Sent, Visitor};
use crate::grpc::Refusal;
use crate::pb::v1;
use v1::download_bundle_response::Kind;

/// Sends the archive, where the form of a page of ours asks for it: a download is recorded, so an address alone is none.
/// The name is the service's, which knows letters, digits, `-`, `_` and `.` only.
pub(super) async fn bundle(Path(id): Path<String>, sent: Sent) -> Response {
    let Sent { visitor, fields } = sent;
    if fields.one("confirm") != "yes" {
        return visitor.refused(&Refusal::wrong("Confirm that you want the bytes; nothing was sent."));
    }
    visitor.show(made(&visitor, id).await)
}

async fn made(visitor: &Visitor, submission_id: String) -> Result<Response, Refusal> {
    let request = v1::DownloadBundleRequest { submission_id }.encode_to_vec();
    let path = "/portcullis.v1.SubmissionService/DownloadBundle";
    let answers =
        visitor.calls().stream::<v1::DownloadBundleResponse>(path, visitor.caller(), &request).await?;
    let mut answers = Box::pin(answers);
    let head = match answers.next().await {
        Some(Ok(v1::DownloadBundleResponse { kind: Some(Kind::Header(head)) })) => head,
        Some(Err(refusal)) => return Err(refusal),
        _ => return Err(Refusal::internal()),
    };
    let chunks = answers.map(|answer| match answer {
        Ok(v1::DownloadBundleResponse { kind: Some(Kind::Chunk(chunk)) }) => Ok(chunk),
        Ok(_) => Err(std::io::Error::other("a download went on with something else")),
        Err(refusal) => Err(std::io::Error::other(refusal)),
    });
    let mut response = Body::from_stream(chunks).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/zip"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(head.size));
    let name = file_name(&head.file_name);
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

/// The name, held once more to what can stand between quotation marks in a header and means a file everywhere.
fn file_name(told: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let kept: String = told.chars().map(|c| if is_kept(c) { c } else { '-' }).take(160).collect();
    match kept.trim_start_matches('.') {
        "" => "bundle.zip".to_owned(),
        kept => kept.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_name_cannot_leave_its_quotation_marks() {
        for (told, wanted) in [
            ("notes-1.2.0.zip", "notes-1.2.0.zip"),
            ("a\"; filename*=x\r\nset-cookie: y", "a---filename--x--set-cookie--y"),
            ("../../etc/passwd", "-..-etc-passwd"),
            ("", "bundle.zip"),
        ] {
            assert_eq!(file_name(told), wanted, "{told:?}");
        }
    }
}
