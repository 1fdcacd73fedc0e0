//! Bundles of tests, their upload, and who calls. No tests.

use std::io::Cursor;
use std::time::Duration;

use portcullis::bundles::archive::{Archive, ArchiveLimits, Totals};
use portcullis::bundles::pack::Packer;
use portcullis::pb::v1;
use tonic::transport::Channel;
use tonic::{Request, Status};
use v1::audit_service_client::AuditServiceClient;
use v1::entity_service_client::EntityServiceClient;
use v1::review_bundle_request::Kind;
use v1::submission_service_client::SubmissionServiceClient;

use super::server::{Client, PATIENCE, Server, eventually};

/// Settings under which nothing waits for a model.
pub const NO_MODEL: &str = "guardrails:\n  enabled: false\n";

/// An archive of these files.
pub fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let mut packer = Packer::new(Cursor::new(Vec::new()));
    for (path, text) in files {
        packer.add_file(path, path.ends_with(".sh"), &mut text.as_bytes()).expect("it fits");
    }
    packer.finish().expect("it fits").into_inner()
}

/// A document of a skill that nobody has anything against.
pub fn document(name: &str, version: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Sorts the notes of a meeting by speaker and topic, and writes a short summary of \
         each part.\nmetadata:\n  version: \"{version}\"\n---\n\n# {name}\n\nRead the notes that the user gives for \
         {{{{project}}}}. Sort them by speaker, then by topic.\nWrite one paragraph for each topic, in plain words, and \
         list open questions at the end.\nKeep every name as it is written. Say which parts could not be sorted, and \
         why.\n"
    )
}

/// A harmless skill.
pub fn skill(name: &str) -> Vec<u8> {
    zip(&[("SKILL.md", &document(name, "1.0.0")), ("examples/notes.md", "Ada: we ship on Monday.\n")])
}

/// A skill whose archive holds a link, which the gate refuses.
pub fn refused(name: &str) -> Vec<u8> {
    let mut packer = Packer::new(Cursor::new(Vec::new()));
    packer.add_file("SKILL.md", false, &mut document(name, "1.0.0").as_bytes()).expect("it fits");
    packer.add("notes", 0o120_777, &mut &b"elsewhere"[..]).expect("it fits");
    packer.finish().expect("it fits").into_inner()
}

/// The files of an archive.
pub fn files(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let limits = ArchiveLimits::default();
    let opened = Archive::open(archive, &limits).expect("a sound archive");
    let mut totals = Totals::new(limits, archive.len() as u64);
    let mut files = Vec::new();
    for entry in opened.entries() {
        let (mut content, mut data) = (opened.read(entry, &mut totals), Vec::new());
        while let Some(piece) = content.next_piece().expect("sound data") {
            data.extend_from_slice(piece);
        }
        files.push((entry.path.clone(), data));
    }
    files
}

/// The header of a skill.
pub fn header() -> v1::BundleHeader {
    v1::BundleHeader { kind: v1::BundleKind::Skill.into(), ..Default::default() }
}

/// A header of this submitter.
pub fn header_of(submitter: &str) -> v1::BundleHeader {
    v1::BundleHeader { submitter: submitter.to_owned(), ..header() }
}

/// The messages of an upload, in chunks of `size` bytes.
pub fn messages(header: v1::BundleHeader, bytes: &[u8], size: usize) -> Vec<v1::ReviewBundleRequest> {
    let message = |kind| v1::ReviewBundleRequest { kind: Some(kind) };
    let mut messages = vec![message(Kind::Header(header))];
    messages.extend(bytes.chunks(size).map(|chunk| message(Kind::Chunk(chunk.to_vec().into()))));
    messages
}

/// Uploads.
pub async fn upload(
    client: &mut Client,
    header: v1::BundleHeader,
    bytes: &[u8],
) -> Result<v1::ReviewBundleResponse, Status> {
    let messages = messages(header, bytes, 1_000);
    client.review_bundle(tokio_stream::iter(messages)).await.map(tonic::Response::into_inner)
}

/// A request of the administrator.
pub fn as_admin<T>(server: &Server, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let token = format!("Bearer {}", server.admin_token());
    request.metadata_mut().insert("authorization", token.parse().expect("ASCII"));
    request
}

/// A request of a submitter.
pub fn as_submitter<T>(name: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("portcullis-submitter", name.parse().expect("ASCII"));
    request
}

/// A client of the submissions.
pub async fn submissions(server: &Server) -> SubmissionServiceClient<Channel> {
    SubmissionServiceClient::new(server.channel().await).max_decoding_message_size(64 << 20)
}

/// A client of the entities.
pub async fn entities(server: &Server) -> EntityServiceClient<Channel> {
    EntityServiceClient::new(server.channel().await).max_decoding_message_size(64 << 20)
}

/// One submission, asked for by the administrator.
pub async fn submission(server: &Server, id: &str) -> v1::Submission {
    let request = v1::GetSubmissionRequest { submission_id: id.to_owned(), ..Default::default() };
    let answer = submissions(server).await.get_submission(as_admin(server, request)).await;
    answer.expect("the administrator sees all").into_inner().submission.expect("it is set")
}

/// The submission once its status is final.
pub async fn decided(server: &Server, id: &str) -> v1::Submission {
    eventually(PATIENCE, "the review ends", || async {
        let now = submission(server, id).await;
        let waits =
            matches!(now.status(), v1::SubmissionStatus::PendingInline | v1::SubmissionStatus::PendingLlm)
                && now.hold_reason() == v1::HoldReason::None;
        (!waits).then_some(now)
    })
    .await
}

/// Administrative events, the oldest first.
pub async fn events(server: &Server, request: v1::ListAuditEventsRequest) -> Vec<v1::AuditEvent> {
    let request = v1::ListAuditEventsRequest { order_by: "time".to_owned(), page_size: 1_000, ..request };
    let mut client = AuditServiceClient::new(server.channel().await);
    let answer = client.list_audit_events(as_admin(server, request)).await;
    answer.expect("the administrator sees all").into_inner().events
}

/// Actions recorded about a submission, the oldest first.
pub async fn actions(server: &Server, id: &str) -> Vec<String> {
    let request = v1::ListAuditEventsRequest { resource: format!("submission:{id}"), ..Default::default() };
    events(server, request).await.into_iter().map(|event| event.action).collect()
}

/// Names of files below a folder of the server's data, at any depth.
pub fn files_below(server: &Server, folder: &str) -> Vec<String> {
    fn walk(folder: &std::path::Path, found: &mut Vec<String>) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.map_while(Result::ok) {
            if entry.path().is_dir() {
                walk(&entry.path(), found);
            } else {
                found.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(&server.data().join(folder), &mut found);
    found
}

/// Waits until no upload lies in its folder any more.
pub async fn no_upload_left(server: &Server) {
    eventually(Duration::from_secs(10), "uploads are removed", || async {
        files_below(server, "uploads").is_empty().then_some(())
    })
    .await;
}
