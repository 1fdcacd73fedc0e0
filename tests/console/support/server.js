// Starts the built server on free ports, calls its services, and stops it.

import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const PROTO = fileURLToPath(new URL("../../../proto", import.meta.url));
const SERVICES = ["policy_decision", "submission", "entity", "incident", "audit", "policy"];
// How long a start, a stop and a call may take on a busy machine.
const WAIT_MS = 30_000;

// How to end each server that runs, without waiting.
const running = new Set();
// The runner ends a file that takes too long with SIGTERM; its servers and their databases must not stay.
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, () => {
    for (const abandon of running) abandon();
    process.kill(process.pid, signal);
  });
}

const definition = loader.loadSync(
  SERVICES.map((name) => `portcullis/v1/${name}_service.proto`),
  { includeDirs: [PROTO], keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true },
);
const api = grpc.loadPackageDefinition(definition).portcullis.v1;

/**
 * Resolves once the server says that it serves.
 *
 * @param {object} [options]
 * @param {object} [options.settings] its settings file
 * @param {Record<string, string>} [options.policies] policy files by name
 * @param {Record<string, {roles: string[], tenant?: string}>} [options.people] who has a token; nobody: `auth.mode` is none
 * @param {(folder: string) => void} [options.before] what is done in its folder before it starts
 */
export async function startServer({ settings = {}, policies = {}, people, before } = {}) {
  const binary = process.env.TEST_SERVER;
  if (binary === undefined) throw new Error("TEST_SERVER must name the built binary");
  const folder = mkdtempSync(join(tmpdir(), `portcullis-console-${process.pid}-`));
  const policyFolder = join(folder, "policies");
  mkdirSync(policyFolder);
  for (const [name, text] of Object.entries(policies)) writeFileSync(join(policyFolder, name), text);
  const tokens = {};
  let revoke;
  const all = { console: { enabled: true }, ...settings };
  if (people !== undefined) {
    const entries = Object.entries(people).map(([name, { roles, tenant }]) => {
      tokens[name] = `pct_${randomBytes(32).toString("hex")}`;
      return { name, hash: `sha256:${createHash("sha256").update(tokens[name]).digest("hex")}`, roles, tenant };
    });
    // JSON is YAML.
    writeFileSync(join(folder, "tokens.yaml"), JSON.stringify(entries));
    revoke = (name) => writeFileSync(join(folder, "tokens.yaml"), JSON.stringify(entries.filter((entry) => entry.name !== name)));
    all.auth = { ...settings.auth, mode: "tokens", tokens: { path: "tokens.yaml" } };
  }
  writeFileSync(join(folder, "portcullis.yaml"), JSON.stringify(all));
  before?.(folder);
  const child = spawn(
    binary,
    [
      ...["serve", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"],
      ...["--data-dir", join(folder, "data"), "--set", "policy.path=policies"],
    ],
    { cwd: folder, env: {}, stdio: ["ignore", "ignore", "pipe"] },
  );
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const removeFolder = () => {
    rmSync(folder, { recursive: true, force: true });
    running.delete(abandon);
  };
  const abandon = () => {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  running.add(abandon);
  try {
    const serving = await addresses(child);
    if (people === undefined) tokens.admin = readFileSync(join(folder, "data", "admin-token"), "utf8").trim();
    const services = connect(serving.grpc);
    return {
      /** Where the pages are. */
      url: `http://${serving.http}`,
      /** Tokens by name; without `people` only that of `admin`. */
      tokens,
      policyFolder,
      dataFolder: join(folder, "data"),
      ...services,
      /** Resolves once nothing more happens to a submission by itself. */
      settled: (id) => {
        const as = { token: tokens.admin ?? tokens.root };
        const rests = async () =>
          (await services.call("SubmissionService", "GetSubmission", { submission_id: id }, as)).submission.status !==
          "SUBMISSION_STATUS_PENDING_LLM";
        return eventually(rests, `submission ${id} is decided`);
      },
      /** Takes a token off the list; resolves once it opens nothing. */
      revoke: (name) => {
        revoke(name);
        const refused = () =>
          services.call("PolicyService", "GetPolicy", {}, { token: tokens[name] }).then(
            () => false,
            (error) => error.code === grpc.status.UNAUTHENTICATED,
          );
        return eventually(refused, `the token of ${name} is taken back`);
      },
      /** Ends it; resolves with its exit code. */
      stop: async () => {
        services.close();
        child.kill("SIGTERM");
        const timer = global.setTimeout(() => child.kill("SIGKILL"), WAIT_MS);
        const code = await exited;
        clearTimeout(timer);
        removeFolder();
        return code;
      },
    };
  } catch (error) {
    child.kill("SIGKILL");
    removeFolder();
    throw error;
  }
}

/** Asks again until it is so. */
export async function eventually(isSo, what) {
  for (const end = Date.now() + WAIT_MS; !(await isSo()); await setTimeout(50)) {
    if (Date.now() > end) throw new Error(`not in time: ${what}`);
  }
}

/** Reads log lines up to the one that names the bound addresses; later lines are read too, so that none blocks. */
function addresses(child) {
  return new Promise((resolve, reject) => {
    const seen = [];
    const fail = (why) => reject(new Error(`${why}; its log:\n${seen.join("\n")}`));
    const timer = global.setTimeout(() => fail("the server did not start in time"), WAIT_MS);
    child.once("error", (error) => fail(String(error)));
    child.once("exit", (code) => fail(`the server ended with ${code}`));
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (seen.length < 100) seen.push(line);
      if (!line.startsWith("{")) return;
      const event = JSON.parse(line);
      if (event.message === "serving" && event.grpc !== undefined) {
        clearTimeout(timer);
        resolve({ grpc: event.grpc, http: event.http });
      }
    });
  });
}

/** The services of a server as promises. */
function connect(address) {
  const clients = new Map();
  const client = (service) => {
    if (!clients.has(service)) clients.set(service, new api[service](address, grpc.credentials.createInsecure()));
    return clients.get(service);
  };
  const metadata = ({ token, submitter } = {}) => {
    const made = new grpc.Metadata();
    if (token !== undefined) made.set("authorization", `Bearer ${token}`);
    if (submitter !== undefined) made.set("portcullis-submitter", submitter);
    return made;
  };
  const deadline = () => ({ deadline: Date.now() + WAIT_MS });

  return {
    close: () => clients.forEach((open) => open.close()),
    /** One call, such as `call("SubmissionService", "GetSubmission", {…}, {token})`. */
    call: (service, rpc, request, as) =>
      new Promise((resolve, reject) =>
        client(service)[rpc](request, metadata(as), deadline(), (error, answer) => (error ? reject(error) : resolve(answer))),
      ),
    /** Uploads an archive. */
    upload: (archive, header = {}, as = {}) =>
      new Promise((resolve, reject) => {
        const call = client("PolicyDecisionService").ReviewBundle(metadata(as), deadline(), (error, answer) =>
          error ? reject(error) : resolve(answer),
        );
        const sha256 = createHash("sha256").update(archive).digest("hex");
        call.write({ header: { kind: "BUNDLE_KIND_SKILL", sha256, size: archive.length, ...header } });
        for (let start = 0; start < archive.length; start += 60_000) {
          call.write({ chunk: archive.subarray(start, start + 60_000) });
        }
        call.end();
      }),
    /** Streams output past the monitor; resolves with the incidents once the server has ended the session. */
    watch: (output, attach = {}, as = {}) =>
      new Promise((resolve, reject) => {
        const call = client("PolicyDecisionService").StreamMonitor(metadata(as), deadline());
        const incidents = [];
        call.on("data", (told) => told.incident && incidents.push(told.incident));
        call.on("error", reject);
        call.on("end", () => resolve(incidents));
        call.write({ attach: { session_id: "session", ...attach } });
        call.write({ chunk: { stream: "OUTPUT_STREAM_STDOUT", data: Buffer.from(output), seq: 1 } });
        call.write({ detach: { exit_code: { value: 0 } } });
        call.end();
      }),
  };
}
