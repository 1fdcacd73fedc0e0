// Builds the package: stubs from the contract of this clone, then ES modules and CommonJS, each with its types.
//
//     node scripts/build.mjs

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(dirname(fileURLToPath(import.meta.url)));
// A container may lack a home folder for the cache.
const env = { BUF_CACHE_DIR: join(here, "node_modules/.cache/buf"), ...process.env };

function run(program, ...args) {
  execFileSync(process.execPath, [join(here, "node_modules", program), ...args], { cwd: here, env, stdio: "inherit" });
}

rmSync(join(here, "dist"), { recursive: true, force: true });
run("@bufbuild/buf/bin/buf", "generate");
run("@bufbuild/buf/bin/buf", "generate", "--template", "buf.gen.errors.yaml");
mkdirSync(join(here, "dist/cjs"), { recursive: true });
run("typescript/bin/tsc", "-p", "tsconfig.json");
// The second time the types need not be checked again, and their declarations are the same in both formats.
run("typescript/bin/tsc", "-p", "tsconfig.cjs.json");
cpSync(join(here, "dist/esm"), join(here, "dist/cjs"), {
  recursive: true,
  filter: (path) => !path.endsWith(".js"),
});
// Tells Node.js and TypeScript how to read the files beside it.
for (const [format, type] of [
  ["esm", "module"],
  ["cjs", "commonjs"],
]) {
  writeFileSync(join(here, "dist", format, "package.json"), `{ "type": "${type}" }\n`);
}
