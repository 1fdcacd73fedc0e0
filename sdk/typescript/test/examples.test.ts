// Every example, run by the command of the README, against a real server. A program that does not end by itself fails.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
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

/** The commands of the README that run an example. */
const COMMANDS = readFileSync("README.md", "utf8")
  .split("\n")
  .filter((line) => line.startsWith("npm run --prefix sdk/typescript --silent example -- "));
const NAME = / example -- (\w+)/;

/** What a command prints that is typed in the folder of the clone. */
async function run(command: string): Promise<string> {
  // A variable of the npm that runs the tests would be that of the folder of the tests.
  const inherited = Object.entries(process.env).filter(([name]) => !/^(npm_|INIT_CWD$)/.test(name));
  const env = { ...Object.fromEntries(inherited), PORTCULLIS_ADDRESS: server.grpc };
  const { stdout } = await promisify(execFile)("sh", ["-c", command], {
    cwd: join(process.cwd(), "../.."),
    env,
    timeout: 60_000,
  });
  return stdout;
}

const cases: [start: string, wanted: RegExp[]][] = [
  [
    "check",
    [
      /^BLOCK stops here$/m,
      /^pii\.email: ada@example\.org$/m,
      /^pii\.us_ssn: 123-45-6789$/m,
      /^Write to \[EMAIL_1\] 🙂, my SSN is \[\w+_1\]$/m,
    ],
  ],
  ["guard_tool", [/^write to \[EMAIL_1\]$/m, /^blocked: .+$/m, /^\{"status":"blocked","tool":"exec",/m]],
  [
    "watch_child sh -c \"echo fine; echo '+ sudo",
    [/^fine$/m, /^KILL stream\.delete \(dangerous_command\): /m, /^killed$/m],
  ],
  ["watch_child sh -c 'echo fine; exit 3'", [/^fine$/m, /^ended with 3$/m]],
  ["review_bundle sdk/typescript/test/fixtures/notes", [/^APPROVED ALLOW$/m, /^APPROVED settled$/m]],
  [
    "vercel_ai",
    [/^"ran echo mail \[EMAIL_1\]"$/m, /^\{"status":"blocked","tool":"exec",/m, /^Done\.$/m, /^blocked: .+$/m],
  ],
  [
    "mcp_client",
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

for (const [start, wanted] of cases) {
  test(start, async () => {
    const found = COMMANDS.filter((command) => command.includes(` example -- ${start}`));
    assert.equal(found.length, 1, `the README has ${found.length} commands for this`);
    const printed = await run(found[0]!);
    for (const line of wanted) assert.match(printed, line);
    assert.doesNotMatch(printed, /evil\.example/);
  });
}

test("no example and no command is left out", () => {
  const names = readdirSync("examples").map((file) => file.replace(/\.ts$/, ""));
  assert.deepEqual([...new Set(COMMANDS.map((command) => NAME.exec(command)![1]!))].sort(), names.sort());
  for (const command of COMMANDS) {
    assert.equal(cases.filter(([start]) => command.includes(` example -- ${start}`)).length, 1, command);
  }
});

test("a name that is none is told", async () => {
  await assert.rejects(run("npm run --prefix sdk/typescript --silent example -- nothing"), /one of check, /);
});
