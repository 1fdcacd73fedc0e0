//! No tests; what the tests of callers have in common: tokens, and any call of any RPC as bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use http::uri::PathAndQuery;
use portcullis::identity::new_token;
use portcullis::pb::{self, v1};
use prost::Message as _;
use prost::bytes::{Buf as _, BufMut as _};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::server::{PATIENCE, Server, Setup, eventually};

/// Services that users implement: in the contract, and not served.
const NOT_SERVED: &str = "portcullis.v1.ExtensionService";

/// Tokens by the name of their holder.
pub struct Tokens(pub BTreeMap<&'static str, String>);

/// One entry of a file of tokens.
pub struct Entry {
    /// Name of the holder.
    pub name: &'static str,
    /// Roles, comma separated.
    pub roles: &'static str,
    /// Tenant.
    pub tenant: &'static str,
}

/// An entry.
pub const fn entry(name: &'static str, roles: &'static str, tenant: &'static str) -> Entry {
    Entry { name, roles, tenant }
}

/// Makes tokens and writes their file into the folder of a server.
pub fn write_tokens(setup: &Setup, entries: &[Entry]) -> Tokens {
    let (mut file, mut tokens) = (String::new(), BTreeMap::new());
    for Entry { name, roles, tenant } in entries {
        let new = new_token().expect("random bits");
        file.push_str(&format!(
            "- {{ name: {name}, hash: '{}', roles: [{roles}], tenant: '{tenant}' }}\n",
            new.hash
        ));
        tokens.insert(*name, new.token);
    }
    std::fs::write(setup.folder().join("tokens.yaml"), file).expect("tokens can be written");
    Tokens(tokens)
}

impl Tokens {
    /// The token of this holder.
    pub fn of(&self, name: &str) -> &str {
        &self.0[name]
    }
}

/// A request with a token.
pub fn with_token<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let value = format!("Bearer {token}").parse().expect("ASCII");
    request.metadata_mut().insert("authorization", value);
    request
}

/// What the service recorded by itself with actions that begin so, the oldest first; `auditor` is a token.
pub async fn own_events(channel: Channel, auditor: &str, action: &str) -> Vec<v1::AuditEvent> {
    let request = v1::ListAuditEventsRequest {
        actions: vec![action.to_owned()],
        actor: "system".to_owned(),
        order_by: "time".to_owned(),
        ..Default::default()
    };
    let mut client = v1::audit_service_client::AuditServiceClient::new(channel);
    let answer = client.list_audit_events(with_token(auditor, request)).await;
    answer.expect("an auditor sees them").into_inner().events
}

/// Full names of all RPCs that a server has, as `service/rpc`, from the descriptors of the contract.
pub fn every_rpc() -> Vec<String> {
    let of = |bytes: &[u8]| prost_types::FileDescriptorSet::decode(bytes).expect("a descriptor set");
    let files =
        of(pb::FILE_DESCRIPTOR_SET).file.into_iter().chain(of(tonic_health::pb::FILE_DESCRIPTOR_SET).file);
    let mut names = Vec::new();
    for file in files {
        for service in &file.service {
            let full = format!("{}.{}", file.package(), service.name());
            if full != NOT_SERVED {
                names.extend(service.method.iter().map(|method| format!("{full}/{}", method.name())));
            }
        }
    }
    let reflection = "grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    names.push(reflection.to_owned());
    names.push(reflection.replace("v1.", "v1alpha."));
    names.sort();
    names.dedup();
    names
}

/// What a server said to a call.
#[derive(Debug)]
pub struct Said {
    /// Messages as bytes.
    pub messages: Vec<Vec<u8>>,
    /// How it ended: `Ok` when well, or when enough was heard.
    pub status: Status,
}

impl Said {
    /// The code at its end.
    pub fn code(&self) -> Code {
        self.status.code()
    }

    /// Whether any message holds these bytes.
    pub fn holds(&self, text: &str) -> bool {
        let text = text.as_bytes();
        self.messages.iter().any(|message| message.windows(text.len()).any(|window| window == text))
    }
}

/// Calls `path` (`service/rpc`) with these messages and hears at most `answers_max` answers.
pub async fn call(
    channel: &Channel,
    path: &str,
    headers: &[(&'static str, String)],
    messages: Vec<Vec<u8>>,
    answers_max: usize,
) -> Said {
    let heard = async {
        let mut said = Said { messages: Vec::new(), status: Status::ok("") };
        let mut client = Grpc::new(channel.clone()).max_decoding_message_size(usize::MAX);
        client.ready().await.expect("the connection is there");
        let mut request = Request::new(tokio_stream::iter(messages));
        for (name, value) in headers {
            request.metadata_mut().insert(*name, value.parse().expect("ASCII"));
        }
        let path: PathAndQuery = format!("/{path}").parse().expect("a path");
        let mut answers = match client.streaming(request, path, Raw).await {
            Ok(answers) => answers.into_inner(),
            Err(status) => return Said { status, ..said },
        };
        while said.messages.len() < answers_max {
            match answers.message().await {
                Ok(Some(message)) => said.messages.push(message),
                Ok(None) => break,
                Err(status) => return Said { status, ..said },
            }
        }
        said
    };
    tokio::time::timeout(PATIENCE, heard).await.unwrap_or_else(|_| panic!("{path} says nothing"))
}

/// The header that carries a token.
pub fn bearer(token: &str) -> (&'static str, String) {
    ("authorization", format!("Bearer {token}"))
}

/// The audit log once it holds enough: records are written behind the answers.
pub async fn records(server: &Server, is_enough: impl Fn(&str) -> bool) -> String {
    eventually(PATIENCE, "records are written", || async {
        std::fs::read_to_string(server.audit_file()).ok().filter(|text| is_enough(text))
    })
    .await
}

/// How soon a changed file must be in force.
pub const RELOADED_WITHIN: Duration = Duration::from_secs(2);

/// Messages as they are.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; from.remaining()];
        from.copy_to_slice(&mut bytes);
        Ok(Some(bytes))
    }
}
