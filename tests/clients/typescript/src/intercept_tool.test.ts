// The table of `tests/cases/intercept_tool`, asked from TypeScript: the same requests and wanted answers as in Rust.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import { parse } from "smol-toml";

import { BadRequest } from "../gen/google/rpc/error_details.js";
import { Status } from "../gen/google/rpc/status.js";
import { decisionToJSON } from "../gen/portcullis/v1/decision.js";
import { type InterceptorEvent, interceptorOutcomeToJSON, Params } from "../gen/portcullis/v1/interceptors.js";
import {
  InterceptMessageRequest,
  type InterceptMessageResponse,
  InterceptParamsRequest,
  type InterceptParamsResponse,
  InterceptToolRequest,
  type InterceptToolResponse,
  PolicyDecisionServiceClient,
} from "../gen/portcullis/v1/policy_decision_service.js";
import { type Server, startServer } from "./server.js";

const FOLDER = resolve("../../cases/intercept_tool");

interface Want {
  decision?: string;
  error?: { code: string; field?: string };
  [field: string]: unknown;
}

interface Case {
  about: string;
  rpc?: string;
  request: Record<string, unknown>;
  want: Want;
}

type Answer = InterceptToolResponse | InterceptMessageResponse | InterceptParamsResponse;

let server: Server;
let client: PolicyDecisionServiceClient;

before(async () => {
  server = await startServer();
  client = new PolicyDecisionServiceClient(server.grpc, grpc.credentials.createInsecure());
});

after(async () => {
  client?.close();
  await server?.stop();
});

/** Names of fields in the spelling of the stubs; the keys of maps are values and stay. */
function camel(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camel);
  if (typeof value !== "object" || value === null) return value;
  const maps = ["labels", "resolved_paths"];
  const entries = Object.entries(value).map(([name, inner]) => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    maps.includes(name) ? inner : camel(inner),
  ]);
  return Object.fromEntries(entries);
}

function ask({ rpc, request }: Case): Promise<Answer> {
  const json = camel(request);
  const options = { deadline: new Date(Date.now() + 20_000) };
  const metadata = new grpc.Metadata();
  return new Promise((done, fail) => {
    const told = (error: grpc.ServiceError | null, answer: Answer) => (error ? fail(error) : done(answer));
    switch (rpc ?? "InterceptTool") {
      case "InterceptTool":
        return client.interceptTool(InterceptToolRequest.fromJSON(json), metadata, options, told);
      case "InterceptMessage":
        return client.interceptMessage(InterceptMessageRequest.fromJSON(json), metadata, options, told);
      case "InterceptParams":
        return client.interceptParams(InterceptParamsRequest.fromJSON(json), metadata, options, told);
      default:
        return fail(new Error(`no call ${rpc}`));
    }
  });
}

/** Fields that a refusal names. */
function violations(error: grpc.ServiceError): string[] {
  const [binary] = error.metadata.get("grpc-status-details-bin");
  if (!(binary instanceof Buffer)) return [];
  return Status.decode(binary)
    .details.filter((any) => any.typeUrl.endsWith("google.rpc.BadRequest"))
    .flatMap((any) => BadRequest.decode(any.value).fieldViolations.map((violation) => violation.field));
}

for (const file of readdirSync(FOLDER).filter((name) => name.endsWith(".toml"))) {
  const cases = parse(readFileSync(join(FOLDER, file), "utf8"))["case"] as unknown as Case[];
  describe(file, () => {
    for (const one of cases) {
      test(one.about, async () => {
        const { error, decision, ...fields } = one.want;
        if (error !== undefined) {
          const refused = await ask(one).then(
            () => assert.fail("the call must be refused"),
            (refused: grpc.ServiceError) => refused,
          );
          assert.equal(grpc.status[refused.code], error.code);
          if (error.field !== undefined) assert.deepEqual(violations(refused), [error.field]);
          return;
        }
        const answer = await ask(one);
        if (decision !== undefined) assert.equal(decisionToJSON(answer.decision), `DECISION_${decision}`);
        for (const [name, wanted] of Object.entries(fields)) check(answer, name, wanted);
      });
    }
  });
}

const TEXTS = [
  "tool_name",
  "args_json",
  "result_json",
  "metadata_json",
  "message",
  "mutated",
  "block_reason",
  "blocked_result_json",
];

/** One field of an answer against what is wanted of it. */
function check(answer: Answer, name: string, wanted: unknown): void {
  if (TEXTS.includes(name)) {
    assert.equal((answer as unknown as Record<string, unknown>)[camelName(name)], wanted);
    return;
  }
  switch (name) {
    case "params":
      assert.deepEqual(Params.toJSON((answer as InterceptParamsResponse).params!), { ...(wanted as object) });
      return;
    case "changed_fields":
      assert.deepEqual((answer as InterceptParamsResponse).changedFields, wanted);
      return;
    case "events": {
      const outcome = (event: InterceptorEvent) =>
        interceptorOutcomeToJSON(event.outcome).replace("INTERCEPTOR_OUTCOME_", "");
      const events = answer.events.map((event) => `${event.interceptorId} ${outcome(event)}`);
      assert.deepEqual(events, wanted);
      return;
    }
    case "findings": {
      const names = answer.findings.flatMap((finding) => [finding.ruleId, finding.category]);
      for (const one of wanted as string[]) {
        assert.ok(names.some((known) => known === one || known.startsWith(`${one}.`)), `${one} in ${names}`);
      }
      return;
    }
    default:
      assert.fail(`the table wants ${name}, which nobody looks at here`);
  }
}

function camelName(name: string): string {
  return Object.keys(camel({ [name]: 0 }) as object)[0]!;
}
