// Starts the built server on free ports and stops it.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
  /** What changes of state need. */
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
}

/** Resolves once the server says that it serves. */
export async function startServer({ settings = {}, policy, listen = "127.0.0.1:0" }: Settings = {}): Promise<Server> {
  const binary = process.env["TEST_SERVER"];
  if (binary === undefined) throw new Error("TEST_SERVER must name the built binary");
  const folder = mkdtempSync(join(tmpdir(), "portcullis-sdk-"));
  const policies = policy === undefined ? {} : { policy: { path: "policies" } };
  if (policy !== undefined) {
    mkdirSync(join(folder, "policies"));
    writeFileSync(join(folder, "policies", "default.yaml"), policy);
  }
  writeFileSync(join(folder, "portcullis.yaml"), JSON.stringify({ ...policies, ...settings }));
  const child = spawn(
    binary,
    ["serve", "--listen", listen, "--http-listen", "127.0.0.1:0", "--data-dir", join(folder, "data")],
    { cwd: folder, env: {}, stdio: ["ignore", "ignore", "pipe"] },
  );
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  try {
    const { grpc, http } = await serving(child);
    return {
      grpc,
      http,
      adminToken: readFileSync(join(folder, "data", "admin-token"), "utf8").trim(),
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
function serving(child: ChildProcess): Promise<{ grpc: string; http: string }> {
  return new Promise((resolve, reject) => {
    const seen: string[] = [];
    const fail = (why: string) => reject(new Error(`${why}; its log:\n${seen.join("\n")}`));
    const timer = setTimeout(() => fail("the server did not start in time"), WAIT_MS);
    child.once("error", (error) => fail(String(error)));
    child.once("exit", (code) => fail(`the server ended with ${code}`));
    createInterface({ input: child.stderr! }).on("line", (line) => {
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
