// What `portcullis review --format sarif` writes, held against the schema of SARIF 2.1.0 as its authors' package has it.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import Ajv from "ajv";

const json = (path: string) => JSON.parse(readFileSync(resolve("node_modules", path), "utf8"));
// The schema is written in draft 4, which the validator does not know by itself.
const ajv = new Ajv({ schemaId: "auto", meta: false, allErrors: true });
ajv.addMetaSchema(json("ajv/lib/refs/json-schema-draft-04.json"));
const validate = ajv.compile(json("@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"));

const folder = mkdtempSync(join(tmpdir(), "portcullis-ts-sarif-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const DOCUMENT = `---
name: notes
description: Sorts the notes of a meeting by speaker and topic, and writes a short summary of each part.
---

# Notes

Read the notes that the user gives. Sort them by speaker, then by topic. Write one paragraph for each topic.
`;

function review(path: string): { status: number | null; log: any } {
  const binary = process.env["TEST_SERVER"];
  if (binary === undefined) throw new Error("TEST_SERVER must name the built binary");
  const ran = spawnSync(binary, ["review", path, "--format", "sarif"], { cwd: folder, env: {}, encoding: "utf8" });
  assert.ok(ran.stdout.startsWith("{"), ran.stderr);
  const log = JSON.parse(ran.stdout);
  assert.ok(validate(log), JSON.stringify(validate.errors, null, 2));
  return { status: ran.status, log };
}

test("the validator knows a log that is none", () => {
  assert.ok(!validate({ version: "2.1.0", runs: [{ results: [] }] }));
});

test("a bundle that passes is a valid log", () => {
  mkdirSync(join(folder, "good"));
  writeFileSync(join(folder, "good", "SKILL.md"), DOCUMENT);
  const { status, log } = review("good");
  assert.ok(status === 0 || status === 1, String(status));
  const results = log.runs[0].results;
  assert.ok(results.every((result: any) => result.level !== "error"), JSON.stringify(results));
});

test("findings are valid results at their files", () => {
  const bad = join(folder, "some skills", "bad one");
  mkdirSync(bad, { recursive: true });
  // A document without a manifest.
  writeFileSync(join(bad, "SKILL.md"), "# Notes\n\nSort the notes.\n");
  const { status, log } = review("some skills/bad one");
  assert.equal(status, 2);
  const errors = log.runs[0].results.filter((result: any) => result.level === "error");
  assert.ok(errors.length > 0, JSON.stringify(log));
  const uri = errors[0].locations[0].physicalLocation.artifactLocation.uri;
  assert.equal(uri, "some%20skills/bad%20one/SKILL.md");
});

test("a refused archive is a valid log", () => {
  const linked = join(folder, "linked");
  mkdirSync(linked);
  writeFileSync(join(linked, "SKILL.md"), DOCUMENT);
  symlinkSync("/etc/hostname", join(linked, "host name"));
  const { status, log } = review("linked");
  assert.equal(status, 2);
  const [result] = log.runs[0].results;
  assert.equal(result.ruleId, "archive.symlink");
  assert.equal(result.level, "error");
  assert.equal(log.runs[0].tool.driver.rules[result.ruleIndex].id, result.ruleId);
  assert.ok(result.partialFingerprints["portcullisFinding/v1"].length > 0);
});
