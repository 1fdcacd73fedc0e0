//! `CheckMessagesStream`: the same answers as the single call, in order, and refusals inside the stream.

use futures_util::StreamExt as _;
use portcullis::pb::v1;
use prost::Message as _;
use tonic::Code;

use super::server::{Server, message, user};

async fn ask(
    server: &Server,
    requests: impl IntoIterator<Item = v1::CheckMessagesRequest>,
) -> Vec<v1::CheckMessagesResponse> {
    let requests: Vec<_> = requests.into_iter().collect();
    let answers = server.client().await.check_messages_stream(tokio_stream::iter(requests)).await;
    let answers = answers.expect("the stream opens").into_inner();
    answers.map(|answer| answer.expect("the stream goes on")).collect().await
}

#[tokio::test]
async fn answers_come_in_the_order_of_requests() {
    let server = Server::shared();
    let requests = (0..500).map(|n| {
        let text =
            if n % 7 == 3 { format!("My SSN is 123-45-{:04}", 1000 + n) } else { format!("Hello {n}") };
        user(&text)
    });
    let answers = ask(&server, requests).await;
    assert_eq!(answers.len(), 500);
    for (n, answer) in answers.iter().enumerate() {
        let wanted = if n % 7 == 3 { v1::Decision::Block } else { v1::Decision::Allow };
        assert_eq!(answer.decision(), wanted, "answer {n}");
    }
    let mut ids: Vec<_> = answers.iter().map(|answer| &answer.decision_id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 500, "every answer is a decision of its own");
}

#[tokio::test]
async fn a_refused_item_answers_in_its_place_and_the_stream_goes_on() {
    let server = Server::shared();
    let unknown_role =
        v1::CheckMessagesRequest { messages: vec![message("wizard", "hi")], ..Default::default() };
    let unknown_policy = v1::CheckMessagesRequest { policy: "none".into(), ..user("hi") };
    let answers =
        ask(&server, [user("Hello"), unknown_role, unknown_policy, user("My SSN is 123-45-6789")]).await;
    let codes: Vec<i32> = answers.iter().map(|a| a.error.as_ref().map_or(0, |error| error.code)).collect();
    assert_eq!(codes, [0, Code::InvalidArgument as i32, Code::InvalidArgument as i32, 0]);
    assert_eq!(answers[3].decision(), v1::Decision::Block);
    for (answer, field) in [(&answers[1], "messages[0].role"), (&answers[2], "policy")] {
        assert_eq!((answer.decision, answer.decision_id.as_str()), (0, ""), "nothing but the error");
        let details = &answer.error.as_ref().expect("refused").details;
        assert_eq!(details[0].type_url, "type.googleapis.com/google.rpc.BadRequest");
        let bad = tonic_types::pb::BadRequest::decode(&*details[0].value).expect("a BadRequest");
        assert_eq!(bad.field_violations[0].field, field);
    }
}

#[tokio::test]
async fn a_stream_without_requests_ends_well() {
    assert!(ask(&Server::shared(), []).await.is_empty());
}

#[tokio::test]
async fn stream_and_single_call_agree() {
    let server = Server::shared();
    let request =
        v1::CheckMessagesRequest { redact: true, ..user("Mail jane.roe@corp-mail.net, SSN 123-45-6789") };
    let single = server.client().await.check_messages(request.clone()).await.expect("judged").into_inner();
    let mut streamed = ask(&server, [request]).await.remove(0);
    assert_ne!(single.decision_id, streamed.decision_id);
    streamed.decision_id.clone_from(&single.decision_id);
    assert_eq!(single, streamed);
}
