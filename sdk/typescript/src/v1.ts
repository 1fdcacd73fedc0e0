/** Everything of the contract `portcullis.v1`: messages, enums, and stubs for @grpc/grpc-js, as generated. */

export * from "./generated/api/index.portcullis.v1.js";
