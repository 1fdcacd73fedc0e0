//! The generated code of the contract, wrapped once.
//!
//! [`v1`] holds the messages, enums, clients and servers of `portcullis.v1`, each with its JSON mapping: field names
//! in lower camel case when written and in either spelling when read, 64-bit integers as strings, bytes as base64.
//! What the fields mean is told in `proto/portcullis/v1`, whose comments are the docs here.
//!
//! Does not: convert. Engines never see these types; `grpc` and `http` turn them into those of the engines.

/// The package `portcullis.v1`.
pub use portcullis::v1;

// Generated code refers to its neighbours by path from the package root, so the modules repeat the packages' nesting.
#[allow(
    clippy::all,
    missing_docs,
    rustdoc::all,
    reason = "generated; its comments are written for proto readers"
)]
mod portcullis {
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/portcullis.v1.rs"));
        include!(concat!(env!("OUT_DIR"), "/portcullis.v1.serde.rs"));
    }
}

/// The vendored package `google.rpc`: [`Status`](google::rpc::Status) as it travels inside a message.
///
/// The same bytes as the status of `tonic-types`, but with a JSON mapping.
#[allow(
    clippy::all,
    missing_docs,
    rustdoc::all,
    reason = "generated; its comments are written for proto readers"
)]
pub mod google {
    pub mod rpc {
        include!(concat!(env!("OUT_DIR"), "/google.rpc.rs"));
        include!(concat!(env!("OUT_DIR"), "/google.rpc.serde.rs"));
    }
}

/// The vendored package `agentgateway.dev.ext_mcp`.
#[allow(
    clippy::all,
    missing_docs,
    rustdoc::all,
    reason = "generated; its comments are written for proto readers"
)]
pub mod ext_mcp {
    include!(concat!(env!("OUT_DIR"), "/agentgateway.dev.ext_mcp.rs"));
}

/// The encoded descriptors of the contract and of all it imports, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/portcullis_descriptor.bin"));

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::{FILE_DESCRIPTOR_SET, google, v1};

    #[test]
    fn json_keeps_what_the_wire_carries() {
        let response = v1::CheckMessagesResponse {
            decision: v1::Decision::Block.into(),
            risk_score: 0.8,
            findings: vec![v1::Finding {
                rule_id: "pii.email".into(),
                span: Some(v1::Span { path: "/text".into(), end: u64::MAX, ..Default::default() }),
                ..Default::default()
            }],
            ..Default::default()
        };
        let json = serde_json::to_value(&response).expect("a response has a JSON form");
        assert_eq!(json["decision"], "DECISION_BLOCK");
        assert_eq!(json["findings"][0]["ruleId"], "pii.email");
        assert_eq!(json["findings"][0]["span"]["end"], u64::MAX.to_string());
        let back: v1::CheckMessagesResponse = serde_json::from_value(json).expect("the JSON form reads back");
        assert_eq!(back, response);
    }

    #[test]
    fn json_reads_proto_names_and_refuses_unknown_ones() {
        let request =
            r#"{"messages":[{"role":"user","text":"hi"}],"offset_encoding":"OFFSET_ENCODING_UTF16"}"#;
        let request: v1::CheckMessagesRequest = serde_json::from_str(request).expect("proto names are read");
        assert_eq!(request.offset_encoding(), v1::OffsetEncoding::Utf16);
        assert!(serde_json::from_str::<v1::CheckMessagesRequest>(r#"{"mesages":[]}"#).is_err());
    }

    #[test]
    fn json_speaks_well_known_types() {
        let detach = v1::Detach { exit_code: Some(137.into()) };
        assert_eq!(serde_json::to_string(&detach).expect("detach has a JSON form"), r#"{"exitCode":137}"#);
        let event = v1::InterceptorEvent {
            elapsed: Some(std::time::Duration::from_millis(1500).into()),
            ..Default::default()
        };
        assert_eq!(
            serde_json::to_string(&event).expect("an event has a JSON form"),
            r#"{"elapsed":"1.500s"}"#
        );
    }

    #[test]
    fn our_status_is_the_status_of_the_error_model() {
        let ours = google::rpc::Status {
            code: 3,
            message: "no".into(),
            details: vec![pbjson_types::Any { type_url: "t/x".into(), value: vec![1, 2].into() }],
        };
        let theirs = tonic_types::Status::decode(ours.encode_to_vec().as_slice()).expect("same bytes");
        assert_eq!((theirs.code, theirs.message.as_str()), (3, "no"));
        assert_eq!(
            (theirs.details[0].type_url.as_str(), theirs.details[0].value.as_slice()),
            ("t/x", &[1, 2][..])
        );
    }

    #[test]
    fn descriptors_name_every_service() {
        let set =
            prost_types::FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("protox encodes descriptors");
        let mut services: Vec<_> = set.file.iter().flat_map(|file| &file.service).map(|s| s.name()).collect();
        services.sort_unstable();
        assert_eq!(
            services,
            [
                "AuditService",
                "EntityService",
                "ExtensionService",
                "IncidentService",
                "InterceptorRegistryService",
                "PolicyDecisionService",
                "PolicyService",
                "SubmissionService",
            ]
        );
    }
}
