// Triage of uploaded bundles from TypeScript: list, get, override, rescan, retry, archive, restore, delete.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, type Server as Model } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import * as grpc from "@grpc/grpc-js";

import { AuditServiceClient, type ListAuditEventsResponse } from "../gen/portcullis/v1/audit_service.js";
import { BundleKind, SubmissionStatus, Visibility } from "../gen/portcullis/v1/bundles.js";
import { EntityServiceClient } from "../gen/portcullis/v1/entity_service.js";
import {
  PolicyDecisionServiceClient,
  ReviewBundleRequest,
  type ReviewBundleResponse,
} from "../gen/portcullis/v1/policy_decision_service.js";
import {
  type ListSubmissionsResponse,
  type Submission,
  SubmissionServiceClient,
  WatchSubmissionRequest,
  type WatchSubmissionResponse,
} from "../gen/portcullis/v1/submission_service.js";
import { type Server, startServer } from "./server.js";

const DOCUMENT = `---
name: notes
description: Sorts the notes of a meeting by speaker and topic, and writes a short summary of each part.
---

# Notes

Read the notes that the user gives for {{project}}. Sort them by speaker, then by topic. Write one paragraph for each
topic, in plain words, and list open questions at the end. Keep every name as it is written.
`;

/** What the model answers next. */
let risk = "critical";
let model: Model;
let server: Server;
let decisions: PolicyDecisionServiceClient;
let submissions: SubmissionServiceClient;
let entities: EntityServiceClient;
let audit: AuditServiceClient;

before(async () => {
  model = createServer((request, response) => {
    request.resume().on("end", () => {
      const content = JSON.stringify({ risk_level: risk, summary: "Looked at.", findings: [], placeholders: 1 });
      const message = { role: "assistant", content };
      response.setHeader("content-type", "application/json");
      response.end(
        JSON.stringify({ model: "m", created_at: "2026-01-01T00:00:00Z", done: true, done_reason: "stop", message }),
      );
    });
  });
  await new Promise<void>((done) => model.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${(model.address() as AddressInfo).port}`;
  // JSON is YAML.
  const llm = { backend: "ollama", model: "m", base_url: url, attempts_max: 1 };
  server = await startServer(JSON.stringify({ llm }));
  const insecure = grpc.credentials.createInsecure();
  decisions = new PolicyDecisionServiceClient(server.grpc, insecure);
  submissions = new SubmissionServiceClient(server.grpc, insecure);
  entities = new EntityServiceClient(server.grpc, insecure);
  audit = new AuditServiceClient(server.grpc, insecure);
});

after(async () => {
  for (const client of [decisions, submissions, entities, audit]) client?.close();
  const code = await server?.stop();
  model?.close();
  assert.equal(code, 0, "SIGTERM ends the server in good order");
});

const options = () => ({ deadline: new Date(Date.now() + 20_000) });

function admin(): grpc.Metadata {
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${server.adminToken}`);
  return metadata;
}

type Unary<Q, A> = (
  request: Q,
  metadata: grpc.Metadata,
  options: Partial<grpc.CallOptions>,
  callback: (error: grpc.ServiceError | null, answer: A) => void,
) => unknown;

/** One call of the administrator. */
function asked<Q, A>(client: grpc.Client, method: Unary<Q, A>, request: Q): Promise<A> {
  return new Promise((done, fail) => {
    method.call(client, request, admin(), options(), (error, answer) => (error ? fail(error) : done(answer)));
  });
}

async function refused(call: Promise<unknown>): Promise<grpc.status> {
  return call.then(
    () => assert.fail("the call must be refused"),
    (error: grpc.ServiceError) => error.code,
  );
}

const CRC = Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});

/** A ZIP archive of one stored file. */
function zip(path: string, text: string): Buffer {
  const data = Buffer.from(text);
  const crc = (data.reduce((crc, byte) => (crc >>> 8) ^ CRC[(crc ^ byte) & 0xff]!, 0xffffffff) ^ 0xffffffff) >>> 0;
  const name = Buffer.from(path);
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0); // needed to unpack
  common.writeUInt16LE(0x21, 8); // the first day of 1980
  common.writeUInt32LE(crc, 10);
  common.writeUInt32LE(data.length, 14);
  common.writeUInt32LE(data.length, 18);
  common.writeUInt16LE(name.length, 22);
  const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, name, data]);
  const central = Buffer.concat([Buffer.from("PK\x01\x02\x14\x00"), common, Buffer.alloc(14), name]);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(1, 4);
  end.writeUInt16LE(1, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(local.length, 12);
  return Buffer.concat([local, central, Buffer.from("PK\x05\x06"), end]);
}

function upload(archive: Buffer): Promise<ReviewBundleResponse> {
  return new Promise((done, fail) => {
    const call = decisions.reviewBundle(new grpc.Metadata(), options(), (error, answer) =>
      error ? fail(error) : done(answer),
    );
    const sha256 = createHash("sha256").update(archive).digest("hex");
    const header = { kind: BundleKind.BUNDLE_KIND_SKILL, submitter: "ada", sha256 };
    call.write(ReviewBundleRequest.fromPartial({ header }));
    for (let at = 0; at < archive.length; at += 100) {
      call.write(ReviewBundleRequest.fromPartial({ chunk: archive.subarray(at, at + 100) }));
    }
    call.end();
  });
}

/** Follows a submission to its end. */
function settled(submissionId: string): Promise<Submission> {
  return new Promise((done, fail) => {
    let last: WatchSubmissionResponse | undefined;
    const request = WatchSubmissionRequest.fromPartial({ submissionId });
    submissions
      .watchSubmission(request, admin(), options())
      .on("data", (message: WatchSubmissionResponse) => (last = message))
      .on("error", fail)
      .on("end", () => (last?.final && last.submission ? done(last.submission) : fail(new Error("cut off"))));
  });
}

async function get(submissionId: string): Promise<Submission> {
  const answer = await asked(submissions, submissions.getSubmission, { submissionId, view: 0 });
  return answer.submission!;
}

function list(filter: object): Promise<ListSubmissionsResponse> {
  const all = {
    statuses: [],
    kinds: [],
    submitter: "",
    archived: 0,
    entityId: "",
    bundleSha256: "",
    query: "",
    startTime: undefined,
    endTime: undefined,
    orderBy: "",
    pageSize: 0,
    pageToken: "",
    view: 0,
  };
  return asked(submissions, submissions.listSubmissions, { ...all, ...filter });
}

test("an administrator decides about a submission", async () => {
  const answer = await upload(zip("SKILL.md", DOCUMENT));
  assert.equal(answer.status, SubmissionStatus.SUBMISSION_STATUS_PENDING_LLM, JSON.stringify(answer));
  const { submissionId, entityId } = answer;
  const blocked = await settled(submissionId);
  assert.equal(blocked.status, SubmissionStatus.SUBMISSION_STATUS_BLOCKED_LLM);
  assert.equal(blocked.visibility, Visibility.VISIBILITY_HIDDEN);
  assert.equal(blocked.checks?.llmReview?.riskLevel, "critical");

  const listed = await list({ statuses: [SubmissionStatus.SUBMISSION_STATUS_BLOCKED_LLM], submitter: "ada" });
  assert.deepEqual(listed.submissions.map((one) => one.id), [submissionId]);
  assert.equal(await refused(list({ orderBy: "id" })), grpc.status.INVALID_ARGUMENT);

  await asked(submissions, submissions.retryReview, { submissionId });
  assert.equal((await settled(submissionId)).attempts.length, 2);
  const rescanned = await asked(submissions, submissions.rescanSubmission, { submissionId });
  assert.equal(rescanned.submission?.attempts.length, 3);
  await settled(submissionId);

  const override = (reason: string) => asked(submissions, submissions.overrideSubmission, { submissionId, reason });
  assert.equal(await refused(override("no")), grpc.status.INVALID_ARGUMENT);
  const published = (await override("known to be harmless")).submission!;
  assert.equal(published.status, SubmissionStatus.SUBMISSION_STATUS_OVERRIDDEN);
  assert.equal(published.visibility, Visibility.VISIBILITY_APPROVED);
  assert.equal(published.override?.priorStatus, SubmissionStatus.SUBMISSION_STATUS_BLOCKED_LLM);
  assert.equal(await refused(override("known to be harmless")), grpc.status.FAILED_PRECONDITION);

  const reason = "out of date";
  const archived = await asked(entities, entities.archiveEntity, { entityId, reason });
  assert.equal(archived.entity?.visibility, Visibility.VISIBILITY_ARCHIVED);
  assert.equal((await get(submissionId)).visibility, Visibility.VISIBILITY_ARCHIVED);
  const restored = await asked(entities, entities.restoreEntity, { entityId, reason: "needed after all" });
  assert.equal(restored.entity?.visibility, Visibility.VISIBILITY_APPROVED);

  await asked(submissions, submissions.deleteSubmission, { submissionId, reason });
  const tombstone = await get(submissionId);
  assert.equal(tombstone.status, SubmissionStatus.SUBMISSION_STATUS_DELETED);
  assert.equal(tombstone.bundleSha256, answer.bundleSha256);
  assert.equal(await refused(asked(entities, entities.getEntity, { entityId })), grpc.status.NOT_FOUND);

  const events: ListAuditEventsResponse = await asked(audit, audit.listAuditEvents, {
    actions: [],
    actor: "",
    resource: `submission:${submissionId}`,
    decisionId: "",
    startTime: undefined,
    endTime: undefined,
    orderBy: "time",
    pageSize: 0,
    pageToken: "",
  });
  assert.deepEqual(
    events.events.map((event) => event.action),
    [
      "store.submission.accepted",
      "store.submission.blocked_llm",
      "store.submission.retry",
      "store.submission.blocked_llm",
      "store.submission.rescan",
      "store.submission.blocked_llm",
      "store.submission.overridden",
      "store.submission.deleted",
    ],
  );
});

test("what changes something needs the admin token", async () => {
  risk = "safe";
  const { submissionId } = await upload(zip("SKILL.md", DOCUMENT.replaceAll("notes", "minutes")));
  assert.equal((await settled(submissionId)).status, SubmissionStatus.SUBMISSION_STATUS_APPROVED);
  const call = new Promise((done, fail) => {
    const request = { submissionId, reason: "for a test" };
    submissions.deleteSubmission(request, new grpc.Metadata(), options(), (error, answer) =>
      error ? fail(error) : done(answer),
    );
  });
  assert.equal(await refused(call), grpc.status.PERMISSION_DENIED);
});
