// An interceptor as an HTTP endpoint, with node:http alone.
//
//     node dist/webhook_guard.js --listen 127.0.0.1:9000 [--token-file FILE]
//
// Portcullis posts an InterceptRequest as JSON; the answer is an InterceptResponse as JSON with status 200. Anything
// else counts as not judged, and the fail mode of the interceptor decides.

import { timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";

import { judge } from "./rule.js";

const BODY_BYTES_MAX = 16 * 1024 * 1024;

const { values } = parseArgs({
  options: { listen: { type: "string", default: "127.0.0.1:9000" }, "token-file": { type: "string" } },
});
const token = values["token-file"] ? readFileSync(values["token-file"], "utf8").trim() : "";

const server = createServer(async (request, response) => {
  const answer = (status: number, value: object) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  };
  if (request.method !== "POST") return answer(405, { error: "only POST is answered" });
  if (!isAuthentic(request.headers.authorization ?? "")) return answer(401, { error: "the token is wrong" });
  try {
    const call = JSON.parse(await bodyOf(request));
    // Fields with their default are left out.
    answer(200, judge(call.hook ?? "", call.toolName ?? "", call.argsJson ?? ""));
  } catch {
    answer(400, { error: "the body is no InterceptRequest" });
  }
});

function isAuthentic(given: string): boolean {
  if (token === "") return true;
  const [a, b] = [Buffer.from(given), Buffer.from(`Bearer ${token}`)];
  return a.length === b.length && timingSafeEqual(a, b);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new Error("too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

const [host, port] = values.listen.split(/:(?=\d+$)/);
server.listen(Number(port), host, () => {
  console.log(`listening on http://${host}:${(server.address() as AddressInfo).port}`);
});
