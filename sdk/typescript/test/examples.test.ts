// Every example, run as its readers do it, against a real server. A program that does not end by itself fails.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { type Server, startServer } from "./support/server.js";

let server: Server;

before(async () => {
  server = await startServer({ settings: { guardrails: { enabled: false } } });
});

after(async () => {
  await server?.stop();
});

/** What an example prints. */
async function run(name: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, PORTCULLIS_ADDRESS: server.grpc };
  const { stdout } = await promisify(execFile)(process.execPath, [`build/examples/${name}.js`, ...args], {
    env,
    timeout: 30_000,
  });
  return stdout;
}

const cases: [name: string, args: string[], wanted: RegExp[]][] = [
  [
    "check",
    [],
    [
      /^BLOCK stops here$/m,
      /^pii\.email: ada@example\.org$/m,
      /^pii\.us_ssn: 123-45-6789$/m,
      /^Write to \[EMAIL_1\] 🙂, my SSN is \[\w+_1\]$/m,
    ],
  ],
  ["guard_tool", [], [/^write to \[EMAIL_1\]$/m, /^blocked: .+$/m, /^\{"status":"blocked","tool":"exec",/m]],
  [
    "watch_child",
    ["sh", "-c", "echo fine; echo '+ sudo rm -rf --no-preserve-root /'; sleep 60"],
    [/^fine$/m, /^KILL stream\.delete \(dangerous_command\): /m, /^killed$/m],
  ],
  ["watch_child", ["sh", "-c", "echo fine; exit 3"], [/^fine$/m, /^ended with 3$/m]],
  ["review_bundle", ["test/fixtures/notes"], [/^APPROVED ALLOW$/m, /^APPROVED settled$/m]],
  [
    "vercel_ai",
    [],
    [/^"ran echo mail \[EMAIL_1\]"$/m, /^\{"status":"blocked","tool":"exec",/m, /^Done\.$/m, /^blocked: .+$/m],
  ],
  [
    "mcp_client",
    [],
    [
      /^dropped helper$/m,
      /^read_note, exec$/m,
      /\[EMAIL_1\]/,
      /^blocked after: mcp__notes__read_note$/m,
      /^blocked before: mcp__notes__exec$/m,
      /^blocked description: helper$/m,
    ],
  ],
];

for (const [name, args, wanted] of cases) {
  test(`${name} ${args.join(" ")}`, async () => {
    const printed = await run(name, ...args);
    for (const line of wanted) assert.match(printed, line);
    assert.doesNotMatch(printed, /evil\.example/);
  });
}

test("no example is left out", () => {
  const names = readdirSync("examples").map((file) => file.replace(/\.ts$/, ""));
  assert.deepEqual(names.sort(), [...new Set(cases.map(([name]) => name))].sort());
});
