// Starts the built server on free ports and stops it.

import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

// How long a start and a stop may take on a busy machine.
const WAIT_MS = 30_000;

export interface Server {
  /** Address of the gRPC listener. */
  grpc: string;
  /** Address of the HTTP listener. */
  http: string;
  /** What changes of state need; empty where callers have credentials. */
  adminToken: string;
  /** A folder that goes with the server. */
  folder: string;
  signal(name: NodeJS.Signals): void;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface Settings {
  /** Text of the settings file; JSON is YAML. */
  settings?: object;
  /** Text of the default policy. */
  policy?: string;
  /** Address to listen on. */
  listen?: string;
  /** Prepares the folder of the server before its start. */
  prepare?: (folder: string) => void;
}

/** Resolves once the server says that it serves. */
export async function startServer(wanted: Settings = {}): Promise<Server> {
  const { settings = {}, policy, listen = "127.0.0.1:0", prepare } = wanted;
  const binary = process.env["TEST_SERVER"];
  if (binary === undefined) throw new Error("TEST_SERVER must name the built binary");
  const folder = mkdtempSync(join(tmpdir(), "portcullis-sdk-"));
  const policies = policy === undefined ? {} : { policy: { path: "policies" } };
  if (policy !== undefined) {
    mkdirSync(join(folder, "policies"));
    writeFileSync(join(folder, "policies", "default.yaml"), policy);
  }
  writeFileSync(join(folder, "portcullis.yaml"), JSON.stringify({ ...policies, ...settings }));
  prepare?.(folder);
  const log: string[] = [];
  const child = spawn(
    binary,
    ["serve", "--listen", listen, "--http-listen", "127.0.0.1:0", "--data-dir", join(folder, "data")],
    { cwd: folder, env: {}, stdio: ["ignore", "ignore", "pipe"] },
  );
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  const removeFolder = () => {
    keep(folder, log);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const { grpc, http } = await serving(child, log);
    const tokenFile = join(folder, "data", "admin-token");
    return {
      grpc,
      http,
      adminToken: existsSync(tokenFile) ? readFileSync(tokenFile, "utf8").trim() : "",
      folder,
      signal: (name) => void child.kill(name),
      stop: async (signal = "SIGTERM") => {
        child.kill(signal);
        const timer = setTimeout(() => child.kill("SIGKILL"), WAIT_MS);
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

/** Reads log lines up to the one that names the bound addresses; later lines are read too, so that none blocks. */
function serving(child: ChildProcess, seen: string[]): Promise<{ grpc: string; http: string }> {
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${why}; its log:\n${seen.join("\n")}`));
    const timer = setTimeout(() => fail("the server did not start in time"), WAIT_MS);
    child.once("error", (error) => fail(String(error)));
    child.once("exit", (code) => fail(`the server ended with ${code}`));
    createInterface({ input: child.stderr! }).on("line", (line) => {
      seen.push(line);
      if (!line.startsWith("{")) return;
      const event = JSON.parse(line);
      if (event.message === "serving" && event.grpc !== undefined) {
        clearTimeout(timer);
        resolve({ grpc: event.grpc, http: event.http });
      }
    });
  });
}

/** Keeps log and audit files below PORTCULLIS_TEST_LOGS, where they are searched for secrets. */
function keep(folder: string, log: readonly string[]): void {
  const where = process.env["PORTCULLIS_TEST_LOGS"];
  if (where === undefined || where === "") return;
  const kept = mkdtempSync(join(where, "sdk-typescript-"));
  writeFileSync(join(kept, "stderr.log"), log.join("\n"));
  const audit = join(folder, "data", "audit");
  if (existsSync(audit)) cpSync(audit, join(kept, "audit"), { recursive: true });
}
