//! The guardrail webhook of agentgateway.
//!
//! Prompts come to `/agentgateway/request`, answers of models to `/agentgateway/response`. An answer has no tag: the
//! gateway takes the first of mask, reject and pass that fits. So a pass has no `body`, the body of a rejection is a text
//! and that of a mask an object, and each fits one form alone. An error has no `action` and leaves the decision to the
//! gateway's failure mode, which is closed unless it is set otherwise.
//! Source: `crates/agentgateway/src/llm/policy/webhook.rs` of <https://github.com/agentgateway/agentgateway>.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use super::judging::{Conversation, Judged, judge, role, text, text_of};
use super::{Adapters, Problem, Received};
use crate::pb::v1;

const REQUEST_PATH: &str = "/agentgateway/request";
const RESPONSE_PATH: &str = "/agentgateway/response";

#[derive(Deserialize)]
struct Asked<B> {
    body: B,
}

#[derive(Deserialize, Serialize)]
struct Prompts {
    messages: Vec<Message>,
}

#[derive(Deserialize, Serialize)]
struct Choices {
    choices: Vec<Choice>,
}

#[derive(Deserialize, Serialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize, Serialize)]
struct Message {
    role: String,
    content: String,
}

#[derive(Serialize)]
struct Answer<B> {
    action: Action<B>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Action<B> {
    Mask {
        body: B,
        #[serde(skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    Reject {
        body: String,
        status_code: u16,
        reason: String,
    },
    Pass {
        #[serde(skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

pub(super) fn routes(adapters: &Adapters) -> Router {
    let routes = Router::new().route(REQUEST_PATH, post(prompts)).route(RESPONSE_PATH, post(choices));
    routes.with_state(adapters.clone())
}

async fn prompts(
    State(adapters): State<Adapters>,
    request: Request,
) -> Result<Json<Answer<Prompts>>, Problem> {
    let received = adapters.receive(request).await?;
    let Asked { body: Prompts { mut messages } } = received.json()?;
    let judged = ask(&received, messages.iter(), v1::Direction::Input).await?;
    let is_masked = mask(messages.iter_mut(), &judged);
    Ok(answer(judged, is_masked.then_some(Prompts { messages })))
}

async fn choices(
    State(adapters): State<Adapters>,
    request: Request,
) -> Result<Json<Answer<Choices>>, Problem> {
    let received = adapters.receive(request).await?;
    let Asked { body: Choices { mut choices } } = received.json()?;
    let judged = ask(&received, choices.iter().map(|choice| &choice.message), v1::Direction::Output).await?;
    let is_masked = mask(choices.iter_mut().map(|choice| &mut choice.message), &judged);
    Ok(answer(judged, is_masked.then_some(Choices { choices })))
}

async fn ask(
    received: &Received,
    messages: impl Iterator<Item = &Message>,
    direction: v1::Direction,
) -> Result<Judged, Problem> {
    let messages = messages.map(|message| text(role(&message.role), &message.content)).collect();
    let context = v1::CallContext { agent_id: received.agent_id.clone(), ..Default::default() };
    let policy = received.policy.clone();
    judge(received, Conversation { messages, direction, context, policy, ..Default::default() }).await
}

/// Puts the masked texts in place; whether any differs.
fn mask<'m>(messages: impl Iterator<Item = &'m mut Message>, judged: &Judged) -> bool {
    let mut is_masked = false;
    for (message, masked) in messages.zip(&judged.messages) {
        let masked = text_of(masked);
        if message.content != masked {
            masked.clone_into(&mut message.content);
            is_masked = true;
        }
    }
    is_masked
}

fn answer<B>(judged: Judged, masked: Option<B>) -> Json<Answer<B>> {
    let reason = judged.reason;
    let action = match masked {
        _ if !judged.passes => {
            Action::Reject { body: reason.clone(), status_code: StatusCode::FORBIDDEN.as_u16(), reason }
        }
        Some(body) => Action::Mask { body, reason },
        None => Action::Pass { reason },
    };
    Json(Answer { action })
}
