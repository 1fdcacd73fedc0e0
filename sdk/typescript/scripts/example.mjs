// Runs an example of this package: `npm run example -- NAME ARGUMENTS`, NAME being a file of examples/ without its ending.
//
// Builds the package where that is due, and turns the one file into JavaScript, without a check of its types: the tests do
// that. The example runs in the folder in which npm was called, and asks the service at PORTCULLIS_ADDRESS, by default
// 127.0.0.1:50051.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const [name = "", ...args] = process.argv.slice(2);
const names = readdirSync(join(here, "examples")).map((file) => file.replace(/\.ts$/, ""));
if (!names.includes(name)) {
  console.error(`usage: npm run example -- NAME ARGUMENTS; NAME is one of ${names.join(", ")}`);
  process.exit(64);
}

/** Runs Node.js; what fails ends this program in the same way. */
function node(cwd, ...words) {
  const { status, signal } = spawnSync(process.execPath, words, { cwd, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? (signal === null ? 70 : 128));
}

node(here, join(here, "scripts/build.mjs"));

// Inside of the package, so that the example finds it by its name.
const made = join(here, "build/run", `${name}.js`);
const { outputText } = ts.transpileModule(readFileSync(join(here, "examples", `${name}.ts`), "utf8"), {
  compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
});
mkdirSync(dirname(made), { recursive: true });
// Left alone where it is the same: it may be running.
if (!existsSync(made) || readFileSync(made, "utf8") !== outputText) writeFileSync(made, outputText);
node(process.env["INIT_CWD"] ?? process.cwd(), made, ...args);
