//! No tests; what the tests of interceptors have in common: changing the registry, and calls of tools.

use portcullis::pb::v1;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use v1::interceptor::Handler;
use v1::interceptor_action::Action;
use v1::interceptor_registry_service_client::InterceptorRegistryServiceClient;

use super::server::Server;

/// A client of the registry that holds the admin token.
pub struct Registry {
    client: InterceptorRegistryServiceClient<Channel>,
    token: String,
}

impl Registry {
    /// The registry of a server, as its admin.
    pub async fn of(server: &Server) -> Self {
        let client = InterceptorRegistryServiceClient::new(server.channel().await);
        Self { client, token: format!("Bearer {}", server.admin_token()) }
    }

    /// The client as such, for calls without the token.
    pub fn client(&self) -> InterceptorRegistryServiceClient<Channel> {
        self.client.clone()
    }

    fn admin<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.token.parse().expect("ASCII"));
        request
    }

    /// AddInterceptor with everything else unset.
    pub async fn add(&self, interceptor: v1::Interceptor) -> Result<v1::AddInterceptorResponse, Status> {
        self.add_with(v1::AddInterceptorRequest { interceptor: Some(interceptor), ..Default::default() })
            .await
    }

    /// AddInterceptor.
    pub async fn add_with(
        &self,
        request: v1::AddInterceptorRequest,
    ) -> Result<v1::AddInterceptorResponse, Status> {
        self.client().add_interceptor(self.admin(request)).await.map(Response::into_inner)
    }

    /// RemoveInterceptor.
    pub async fn remove(&self, id: &str) -> Result<v1::Interceptor, Status> {
        let request = v1::RemoveInterceptorRequest { interceptor_id: id.to_owned() };
        let answer = self.client().remove_interceptor(self.admin(request)).await?;
        Ok(answer.into_inner().interceptor.expect("it answers what it removed"))
    }

    /// ClearInterceptors.
    pub async fn clear(&self, hook: v1::Hook) -> Result<Vec<String>, Status> {
        let request = v1::ClearInterceptorsRequest { hook: hook.into() };
        let answer = self.client().clear_interceptors(self.admin(request)).await?;
        Ok(answer.into_inner().interceptor_ids)
    }

    /// ListInterceptors of one source, all pages.
    pub async fn list(&self, source: v1::InterceptorSource) -> Vec<v1::Interceptor> {
        let mut all = Vec::new();
        let mut request = v1::ListInterceptorsRequest { source: source.into(), ..Default::default() };
        loop {
            let page = self.client().list_interceptors(request.clone()).await.expect("a page").into_inner();
            all.extend(page.interceptors);
            if page.next_page_token.is_empty() {
                return all;
            }
            request.page_token = page.next_page_token;
        }
    }

    /// Ids of those added by API, in the order of the list.
    pub async fn added(&self) -> Vec<String> {
        self.list(v1::InterceptorSource::Api).await.into_iter().map(|one| one.id).collect()
    }
}

/// An interceptor before a tool runs.
pub fn interceptor(id: &str, tools: &str, handler: Handler) -> v1::Interceptor {
    v1::Interceptor {
        id: id.to_owned(),
        hook: v1::Hook::ToolBefore.into(),
        tool_matcher: tools.to_owned(),
        handler: Some(handler),
        ..Default::default()
    }
}

/// A rule that always blocks.
pub fn blocks(reason: &str) -> Handler {
    let action = v1::InterceptorAction { action: Some(Action::Block(reason.to_owned())) };
    Handler::Rule(v1::InterceptorRule { when: String::new(), actions: vec![action] })
}

/// A webhook.
pub fn webhook(url: impl Into<String>) -> v1::InterceptorWebhook {
    v1::InterceptorWebhook { url: url.into(), ..Default::default() }
}

/// An extension.
pub fn extension(endpoint: impl Into<String>) -> v1::InterceptorExtension {
    v1::InterceptorExtension { endpoint: endpoint.into(), ..Default::default() }
}

/// Asks before a tool runs.
pub async fn before(server: &Server, tool: &str, args: &str) -> v1::InterceptToolResponse {
    let request = v1::InterceptToolRequest {
        phase: v1::ToolPhase::Before.into(),
        tool_name: tool.to_owned(),
        args_json: args.to_owned(),
        verbose: true,
        ..Default::default()
    };
    server.client().await.intercept_tool(request).await.expect("a decision").into_inner()
}

/// Decision, and reasons of what was not judged.
pub fn verdict(answer: &v1::InterceptToolResponse) -> (v1::Decision, Vec<&str>) {
    (answer.decision(), answer.unjudged.iter().map(|one| one.reason.as_str()).collect())
}
