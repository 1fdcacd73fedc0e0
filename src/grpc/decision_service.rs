//! `PolicyDecisionService`: routes each RPC to its file.

use std::sync::Arc;

use tonic::{Request, Response, Status, Streaming};

use super::server::Shared;
use super::{check_messages, check_messages_stream, intercept, review_bundle, stream_monitor};
use crate::pb::v1;
use crate::pb::v1::policy_decision_service_server::PolicyDecisionService;

/// The service.
pub(super) struct Decisions(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl PolicyDecisionService for Decisions {
    type CheckMessagesStreamStream = check_messages_stream::Answers;
    type StreamMonitorStream = stream_monitor::Answers;

    async fn check_messages(
        &self,
        request: Request<v1::CheckMessagesRequest>,
    ) -> Result<Response<v1::CheckMessagesResponse>, Status> {
        check_messages::call(&self.0, request).await
    }

    async fn check_messages_stream(
        &self,
        request: Request<Streaming<v1::CheckMessagesRequest>>,
    ) -> Result<Response<Self::CheckMessagesStreamStream>, Status> {
        check_messages_stream::call(self.0.clone(), request)
    }

    async fn intercept_message(
        &self,
        request: Request<v1::InterceptMessageRequest>,
    ) -> Result<Response<v1::InterceptMessageResponse>, Status> {
        intercept::intercept_message(&self.0, request).await
    }

    async fn intercept_params(
        &self,
        request: Request<v1::InterceptParamsRequest>,
    ) -> Result<Response<v1::InterceptParamsResponse>, Status> {
        intercept::intercept_params(&self.0, request).await
    }

    async fn intercept_tool(
        &self,
        request: Request<v1::InterceptToolRequest>,
    ) -> Result<Response<v1::InterceptToolResponse>, Status> {
        intercept::intercept_tool(&self.0, request).await
    }

    async fn stream_monitor(
        &self,
        request: Request<Streaming<v1::StreamMonitorRequest>>,
    ) -> Result<Response<Self::StreamMonitorStream>, Status> {
        stream_monitor::call(&self.0, request)
    }

    async fn review_bundle(
        &self,
        request: Request<Streaming<v1::ReviewBundleRequest>>,
    ) -> Result<Response<v1::ReviewBundleResponse>, Status> {
        review_bundle::call(&self.0, request).await
    }
}
