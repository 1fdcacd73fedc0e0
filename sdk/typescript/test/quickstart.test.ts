// The page docs/QUICKSTART_TYPESCRIPT.md, followed to the letter in a fresh copy of the sources: each command is run, each
// program saved and run, and each output that the page shows is compared.

import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

const REPOSITORY = join(process.cwd(), "../..");
const PAGE = readFileSync(join(REPOSITORY, "docs/QUICKSTART_TYPESCRIPT.md"), "utf8");
/** What a clone does not hold. */
const BUILT = ["node_modules", "dist", "build", "generated"];

interface Block {
  language: string;
  text: string;
  /** Number of the step it stands in; undefined outside of the numbered list. */
  step: number | undefined;
}

/** The fenced blocks of the page, in order. */
function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  let step: number | undefined;
  let open: { fence: string; block: Block } | undefined;
  for (const line of page.split("\n")) {
    const fence = /^( *)```(\w*)$/.exec(line);
    if (open !== undefined && fence?.[1] === open.fence) {
      blocks.push(open.block);
      open = undefined;
    } else if (open !== undefined) open.block.text += `${line.slice(open.fence.length)}\n`;
    else if (fence !== null) open = { fence: fence[1]!, block: { language: fence[2]!, text: "", step } };
    else if (/^\d+\. /.test(line)) step = Number.parseInt(line, 10);
    else if (line.startsWith("#")) step = undefined;
  }
  assert.equal(open, undefined, "a block of the page does not end");
  return blocks;
}

const blocks = blocksOf(PAGE);
const folder = mkdtempSync(join(tmpdir(), "portcullis-quickstart-"));
let service: ChildProcess | undefined;

before(() => {
  const clone = join(folder, "portcullis");
  cpSync(join(REPOSITORY, "proto"), join(clone, "proto"), { recursive: true });
  const isSource = (path: string) => !BUILT.includes(basename(path));
  cpSync(process.cwd(), join(clone, "sdk/typescript"), { recursive: true, filter: isSource });
  // What `cargo run --release --` would build is there already. Free ports, as others may use the usual ones.
  mkdirSync(join(folder, "bin"));
  writeFileSync(
    join(folder, "bin/cargo"),
    '#!/bin/sh\n[ "$1 $2 $3" = "run --release --" ] || exit 64\nshift 3\nexec "$TEST_SERVER" "$@" --listen 127.0.0.1:0 --http-listen 127.0.0.1:0\n',
  );
  chmodSync(join(folder, "bin/cargo"), 0o755);
});

after(async () => {
  if (service !== undefined) {
    const ended = new Promise((done) => service!.once("exit", done));
    service.kill("SIGTERM");
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
});

test("the first message is blocked after at most six commands", () => {
  const commands = blocks.filter(({ language, step }) => language === "sh" && step !== undefined);
  assert.deepEqual(
    commands.map(({ step }) => step),
    commands.map((_, index) => index + 1),
  );
  assert.ok(commands.length <= 6);
  for (const { text } of commands) assert.equal(text.trim().split("\n").length, 1);
});

test("the page does what it says", async (context) => {
  // A variable of ours that is no setting would keep the service from starting.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("PORTCULLIS_"));
  const env: NodeJS.ProcessEnv = {
    ...Object.fromEntries(inherited),
    PATH: `${join(folder, "bin")}:${process.env["PATH"]}`,
    npm_config_prefer_offline: "true",
  };
  let cwd = join(folder, "portcullis");
  let printed = "";
  for (const { language, text } of blocks) {
    if (language === "js") {
      const name = /^\/\/ (\S+\.mjs)$/m.exec(text)![1]!;
      writeFileSync(join(cwd, name), text);
    } else if (language === "sh" && text.startsWith("cargo ")) {
      service = spawn("sh", ["-c", `exec ${text}`], { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
      Object.assign(env, { PORTCULLIS_ADDRESS: await addressOf(service) });
    } else if (language === "sh") {
      await context.test(text.trim(), async () => {
        const script = `set -e\n${text}\npwd >"$WHERE"`;
        const where = join(folder, "where");
        const { stdout } = await promisify(execFile)("sh", ["-c", script], {
          cwd,
          env: { ...env, WHERE: where },
          timeout: 180_000,
        });
        printed = stdout;
        cwd = readFileSync(where, "utf8").trim();
      });
    } else if (language === "text") {
      await context.test(`prints ${text.split("\n")[0]} …`, () => compare(printed, text));
    } else assert.fail(`a block of ${language}, which nobody runs`);
  }
});

/** The page shows whole lines in order; `…` stands for any text, and a line of it for lines too. */
function compare(printed: string, shown: string): void {
  const escape = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const lines = shown
    .trim()
    .split("\n")
    .map((line) => line.split("…").map(escape).join("[^]*"));
  assert.match(printed, new RegExp(`^${lines.join("\\n+")}\\s*$`));
}

function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the service ended with ${code}`)));
    createInterface({ input: child.stderr! }).on("line", (line) => {
      if (!line.startsWith("{")) return;
      const event = JSON.parse(line) as { message?: string; grpc?: string };
      if (event.message === "serving" && event.grpc !== undefined) resolve(event.grpc);
    });
  });
}
