// An interceptor as an ExtensionService over gRPC.
//
//     node dist/grpc_guard.js --listen 127.0.0.1:9001 [--token-file FILE]
//
// Needs @grpc/grpc-js, and the stubs made of the contract; README.md says how. An error, or an answer without a
// decision, counts as not judged, and the fail mode of the interceptor decides.

import { timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { type Metadata, Server, ServerCredentials, status } from "@grpc/grpc-js";

import {
  DescribeResponse,
  ExtensionServiceService,
  type ExtensionServiceServer,
  InterceptResponse,
} from "./gen/portcullis/v1/extension_service.js";
import { Hook, hookToJSON } from "./gen/portcullis/v1/interceptors.js";
import { judge } from "./rule.js";

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

const guard: ExtensionServiceServer = {
  describe(call, answer) {
    if (!isAuthentic(call.metadata)) return answer(unauthenticated);
    // Portcullis asks this first, and refuses to use the extension on any other hook.
    const hooks = [Hook.HOOK_TOOL_BEFORE];
    answer(null, DescribeResponse.fromPartial({ name: "Web guard", version: "1.0.0", hooks }));
  },
  intercept(call, answer) {
    if (!isAuthentic(call.metadata)) return answer(unauthenticated);
    const { hook, toolName, argsJson } = call.request;
    answer(null, InterceptResponse.fromJSON(judge(hookToJSON(hook), toolName, argsJson)));
  },
  // This extension is no plugin of CheckMessages.
  check: (_, answer) => answer({ code: status.UNIMPLEMENTED, details: "there is no Check here" }),
};

const server = new Server();
server.addService(ExtensionServiceService, guard);
// Plain text: put TLS before it, or use ServerCredentials.createSsl, when calls leave the machine.
server.bindAsync(values.listen, ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(`listening on http://${values.listen.replace(/:\d+$/, "")}:${port}`);
});
