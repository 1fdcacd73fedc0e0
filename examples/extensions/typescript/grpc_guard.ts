// An interceptor, and a plugin of CheckMessages, as an ExtensionService over gRPC.
//
//     node dist/grpc_guard.js --listen 127.0.0.1:9001 [--token-file FILE]
//
// Needs @grpc/grpc-js, and the stubs made of the contract; README.md says how. An error, or an answer without a
// decision, counts as not judged, and the fail mode of the interceptor or plugin decides.

import { timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { type Metadata, Server, ServerCredentials, status } from "@grpc/grpc-js";

import { OffsetEncoding, Severity } from "./gen/portcullis/v1/decision.js";
import {
  CheckResponse,
  DescribeResponse,
  ExtensionServiceService,
  type ExtensionServiceServer,
  InterceptResponse,
} from "./gen/portcullis/v1/extension_service.js";
import { Hook, hookToJSON } from "./gen/portcullis/v1/interceptors.js";
import type { Message } from "./gen/portcullis/v1/messages.js";
import { CATEGORY, judge, namesIn } from "./rule.js";

const { values } = parseArgs({
  options: { listen: { type: "string", default: "127.0.0.1:9001" }, "token-file": { type: "string" } },
});
const token = values["token-file"] ? readFileSync(values["token-file"], "utf8").trim() : "";

function isAuthentic(metadata: Metadata): boolean {
  if (token === "") return true;
  const [a, b] = [Buffer.from(String(metadata.get("authorization")[0] ?? "")), Buffer.from(`Bearer ${token}`)];
  return a.length === b.length && timingSafeEqual(a, b);
}

const unauthenticated = { code: status.UNAUTHENTICATED, details: "the token is wrong" };

/** Every text of a message with its place. */
function textsOf(message: Message): { path: string; text: string }[] {
  const texts: { path: string; text: string | undefined }[] = [{ path: "/text", text: message.text }];
  message.parts?.parts.forEach((part, at) => {
    texts.push({ path: `/parts/${at}/text`, text: part.text }, { path: `/parts/${at}/json`, text: part.json });
  });
  message.toolCalls.forEach((toolCall, at) => {
    texts.push({ path: `/tool_calls/${at}/args_json`, text: toolCall.argsJson });
  });
  return texts.flatMap(({ path, text }) => (text ? [{ path, text }] : []));
}

const guard: ExtensionServiceServer = {
  describe(call, answer) {
    if (!isAuthentic(call.metadata)) return answer(unauthenticated);
    // Portcullis asks this first; it refuses to use the extension on any other hook, and findings of any other category.
    const [hooks, categories] = [[Hook.HOOK_TOOL_BEFORE], [CATEGORY]];
    answer(null, DescribeResponse.fromPartial({ name: "Web guard", version: "1.0.0", hooks, categories }));
  },
  intercept(call, answer) {
    if (!isAuthentic(call.metadata)) return answer(unauthenticated);
    const { hook, toolName, argsJson } = call.request;
    answer(null, InterceptResponse.fromJSON(judge(hookToJSON(hook), toolName, argsJson)));
  },
  check(call, answer) {
    if (!isAuthentic(call.metadata)) return answer(unauthenticated);
    const findings = call.request.messages.flatMap((message, messageIndex) =>
      textsOf(message).flatMap(({ path, text }) =>
        namesIn(text).map(({ start, end }) => ({
          ruleId: "project-name",
          category: CATEGORY,
          severity: Severity.SEVERITY_HIGH,
          description: "Names a project that is not public.",
          span: { messageIndex, path, start, end },
        })),
      ),
    );
    // JavaScript counts units of UTF-16.
    const offsetEncoding = OffsetEncoding.OFFSET_ENCODING_UTF16;
    answer(null, CheckResponse.fromPartial({ findings, offsetEncoding }));
  },
};

const server = new Server();
server.addService(ExtensionServiceService, guard);
// Plain text: put TLS before it, or use ServerCredentials.createSsl, when calls leave the machine.
server.bindAsync(values.listen, ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(`listening on http://${values.listen.replace(/:\d+$/, "")}:${port}`);
});
