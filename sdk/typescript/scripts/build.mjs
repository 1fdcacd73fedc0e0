// Builds the package: stubs from the contract of this clone, then ES modules and CommonJS, each with its types.
//
//     node scripts/build.mjs

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const [sources, esm, cjs] = ["src", "dist/esm", "dist/cjs"].map((folder) => join(here, folder));
// A container may lack a home folder for the cache.
const env = { BUF_CACHE_DIR: join(here, "node_modules/.cache/buf"), ...process.env };

function run(program, ...args) {
  execFileSync(process.execPath, [join(here, "node_modules", program), ...args], { cwd: here, env, stdio: "inherit" });
}

rmSync(join(here, "dist"), { recursive: true, force: true });
run("@bufbuild/buf/bin/buf", "generate");
run("@bufbuild/buf/bin/buf", "generate", "--template", "buf.gen.errors.yaml");

// ES modules, checked.
run("typescript/bin/tsc", "-p", "tsconfig.json");

// CommonJS, file by file: the types were checked above, and their declarations are the same in both formats.
const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.CommonJS, esModuleInterop: true };
cpSync(esm, cjs, { recursive: true, filter: (path) => !path.endsWith(".js") });
for (const entry of readdirSync(sources, { recursive: true, withFileTypes: true })) {
  if (!entry.name.endsWith(".ts")) continue;
  const path = join(entry.parentPath ?? entry.path, entry.name);
  const { outputText } = ts.transpileModule(readFileSync(path, "utf8"), { compilerOptions, fileName: path });
  const to = join(cjs, relative(sources, path).replace(/\.ts$/, ".js"));
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, outputText);
}

// Tells Node.js and TypeScript how to read the files beside it.
writeFileSync(join(esm, "package.json"), '{ "type": "module" }\n');
writeFileSync(join(cjs, "package.json"), '{ "type": "commonjs" }\n');
