// Builds the package: stubs from the contract of this clone, then ES modules and CommonJS, each with its types.
//
//     node scripts/build.mjs
//
// What is built from the present sources already is left as it is, so that npm may ask for a build as often as it likes.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
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

/** A hash over everything that the build reads but the packages it uses, which the lock file names. */
function sourcesHash() {
  const hash = createHash("sha256");
  for (const path of [
    "src",
    "proto",
    "scripts",
    "package-lock.json",
    "tsconfig.json",
    "buf.gen.yaml",
    "buf.gen.errors.yaml",
    "../../proto",
  ]) {
    const at = join(here, path);
    const isFile = statSync(at).isFile();
    const names = isFile ? [""] : readdirSync(at, { recursive: true }).map(String).sort();
    for (const name of names.filter((name) => isFile || (/\.\w+$/.test(name) && !name.startsWith("generated")))) {
      hash
        .update(`${path}/${name}\0`)
        .update(readFileSync(join(at, name)))
        .update("\0");
    }
  }
  return hash.digest("hex");
}

const stamp = join(here, "dist/.sources");
const hash = sourcesHash();
if (existsSync(stamp) && readFileSync(stamp, "utf8") === hash) process.exit(0);

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

// Last, when everything is there.
writeFileSync(stamp, hash);
