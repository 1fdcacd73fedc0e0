// What is published: packed, installed elsewhere without any of the optional packages, compiled and run.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { VERSION } from "@portcullis/sdk";
import { type Server, startServer } from "./support/server.js";

const HERE = process.cwd();
const QUIET = ["--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts"];
const folder = mkdtempSync(join(tmpdir(), "portcullis-sdk-package-"));
const manifest = JSON.parse(readFileSync("package.json", "utf8"));
let server: Server;
let tarball: string;

before(async () => {
  server = await startServer();
  execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  tarball = join(
    folder,
    readdirSync(folder).find((name) => name.endsWith(".tgz"))!,
  );
  // Both programs below find it from their own folder.
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
  const types = `@types/node@${manifest.devDependencies["@types/node"]}`;
  execFileSync("npm", ["install", ...QUIET, "--prefer-offline", tarball, types], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
});

after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("the version is the one that is told to the service", () => {
  assert.equal(VERSION, manifest.version);
});

test("optional packages are not needed", () => {
  for (const name of ["ai", "@modelcontextprotocol", "@opentelemetry"]) {
    assert.equal(readdirSync(join(folder, "node_modules")).includes(name), false, name);
  }
});

test("nothing but the built package is packed", () => {
  const listed = execFileSync("tar", ["-tzf", tarball], { encoding: "utf8" }).trim().split("\n");
  const strange = listed.filter((path) => !/^package\/(dist\/(esm|cjs)\/|package\.json$|README\.md$)/.test(path));
  assert.deepEqual(strange, []);
  assert.ok(listed.includes("package/README.md"));
});

describe("programs that have installed it", () => {
  test("compile, as ES modules and as CommonJS", () => {
    cpSync(join(HERE, "test/consumers"), folder, { recursive: true });
    // The types of the package itself are checked too.
    const compilerOptions = {
      target: "es2022",
      module: "nodenext",
      strict: true,
      skipLibCheck: false,
      types: ["node"],
      exactOptionalPropertyTypes: true,
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["esm.mts", "cjs.cts"] }));
    execFileSync(process.execPath, [join(HERE, "node_modules/typescript/bin/tsc"), "-p", "."], {
      cwd: folder,
      stdio: ["ignore", "inherit", "inherit"],
    });
  });

  for (const name of ["ai", "ai-7"]) {
    test(`compile with the AI SDK, ${name}`, () => {
      const [major] = /\d+/.exec(manifest.devDependencies[name])!;
      assert.ok(manifest.peerDependencies.ai.split(" || ").includes(`^${major}.0.0`), "it can be installed beside it");
      // In a folder of its own, so that nothing finds the other one.
      const project = join(folder, name);
      mkdirSync(join(project, "node_modules"), { recursive: true });
      symlinkSync(join(HERE, "node_modules", name), join(project, "node_modules/ai"));
      cpSync(join(folder, "node_modules"), join(project, "node_modules"), { recursive: true });
      cpSync(join(HERE, "test/consumers/ai.mts"), join(project, "ai.mts"));
      const compilerOptions = { target: "es2022", lib: ["es2023"], module: "nodenext", strict: true, skipLibCheck: true, noEmit: true, types: ["node"] };
      writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["ai.mts"] }));
      execFileSync(process.execPath, [join(HERE, "node_modules/typescript/bin/tsc"), "-p", "."], {
        cwd: project,
        stdio: ["ignore", "inherit", "inherit"],
      });
    });
  }

  test("load every entry, in both formats", () => {
    const entries = ["", "/v1", "/ai", "/mcp"].map((entry) => `@portcullis/sdk${entry}`);
    const imports = entries.map((entry) => `await import("${entry}");`).join(" ");
    const requires = entries.map((entry) => `require("${entry}");`).join(" ");
    execFileSync(process.execPath, ["--input-type=module", "-e", imports], { cwd: folder });
    execFileSync(process.execPath, ["--input-type=commonjs", "-e", requires], { cwd: folder });
  });

  for (const program of ["esm.mjs", "cjs.cjs"]) {
    test(`run: ${program}`, () => {
      const env = { ...process.env, PORTCULLIS_ADDRESS: server.grpc };
      const printed = execFileSync(process.execPath, [program], {
        cwd: folder,
        env,
        encoding: "utf8",
        timeout: 30_000,
      });
      assert.match(printed, new RegExp(`^${VERSION} (BLOCK|WARN) number 3 BlockedError function$`, "m"));
    });
  }
});
