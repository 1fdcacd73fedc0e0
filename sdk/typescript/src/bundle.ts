/** Uploads a skill, a plugin or an agent for review: an archive as it is, or a folder packed on the way. */

import { createHash } from "node:crypto";
import { lstat, open, readdir, readFile, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import type { ClientWritableStream, ServiceError } from "@grpc/grpc-js";

import { BundleKind } from "./generated/api/portcullis/v1/bundles.js";
import {
  PolicyDecisionServiceService as Service,
  ReviewBundleRequest,
  type ReviewBundleResponse,
} from "./generated/api/portcullis/v1/policy_decision_service.js";
import { aborted, type Opened } from "./calls.js";
import { BundleError, callError, PortcullisError } from "./errors.js";
import { CALL_NAMES, type CallOptions, checkNames, type Names } from "./options.js";
import type { Shared } from "./shared.js";
import { Packer, pathsOf } from "./zip.js";

/** How far an upload is. */
export interface BundleProgress {
  /** `packing` a folder, `uploading`, or `checking`: everything is sent and the service looks at it. */
  readonly phase: "packing" | "uploading" | "checking";
  /** Bytes done in this phase. */
  readonly bytes: number;
  /** Bytes in all in this phase. */
  readonly totalBytes: number;
}

/** How a bundle is uploaded. */
export interface ReviewBundleOptions extends CallOptions {
  /** What it is. Default: a plugin by `.claude-plugin/plugin.json`, a skill by `SKILL.md`, an agent by any other `*.md`. */
  readonly kind?: "skill" | "plugin" | "agent";
  /** Name to list it under. Default: that of its manifest. */
  readonly name?: string;
  /** The entity this is a new version of. Default: a new one. */
  readonly entityId?: string;
  /** Checks only: nothing is kept, no model is asked. */
  readonly dryRun?: boolean;
  /** Told as it goes on. What it throws ends the upload, and is thrown as it is. */
  readonly onProgress?: (progress: BundleProgress) => void;
}

const NAMES: Names<ReviewBundleOptions> = {
  ...CALL_NAMES,
  kind: true,
  name: true,
  entityId: true,
  dryRun: true,
  onProgress: true,
};
const WHAT = "ReviewBundle";
const KINDS = { skill: BundleKind.SKILL, plugin: BundleKind.PLUGIN, agent: BundleKind.AGENT } as const;
/** Folders of version control: not part of a bundle. */
const LEFT_OUT = [".git", ".hg", ".svn"];
/** Bounds of what is read: more than any service takes, and little enough for the memory of this machine. */
const FILES_MAX = 60_000;
const BYTES_MAX = 2 * 1024 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;
const LINK_MODE = 0o120_777;

/** What `onProgress` has thrown: neither the bundle nor the call is to blame. */
class ProgressFailure extends Error {
  constructor(readonly thrown: unknown) {
    super("onProgress has failed");
  }
}

function tell({ onProgress }: ReviewBundleOptions, progress: BundleProgress): void {
  try {
    onProgress?.(progress);
  } catch (error) {
    throw new ProgressFailure(error);
  }
}

/** See `Portcullis.reviewBundle`. */
export async function reviewBundle(
  shared: Shared,
  path: string,
  options: ReviewBundleOptions,
): Promise<ReviewBundleResponse> {
  try {
    return await review(shared, path, options);
  } catch (error) {
    throw error instanceof ProgressFailure ? error.thrown : error;
  }
}

async function review(
  shared: Shared,
  path: string,
  options: ReviewBundleOptions,
): Promise<ReviewBundleResponse> {
  checkNames(options, NAMES, "the options of reviewBundle");
  const { archive, paths } = await load(path, options);
  const header = {
    kind: kindOf(path, paths, options.kind),
    name: options.name ?? "",
    entityId: options.entityId ?? "",
    sha256: createHash("sha256").update(archive).digest("hex"),
    size: archive.length,
    dryRun: options.dryRun ?? false,
    context: shared.context(options),
    policy: shared.policy(options),
  };
  // Only now: packing takes none of the time.
  const limit = shared.caller.limit(options, "upload");
  let target = "";
  shared.caller.calls += 1;
  try {
    if (limit.signal?.aborted) throw aborted(WHAT, limit.signal);
    const opened = await shared.caller.open(limit);
    target = opened.lane.target.name;
    // Never asked again: what was sent may have been kept.
    return await send(opened, ReviewBundleRequest.fromPartial({ header }), archive, options);
  } catch (error) {
    if (error instanceof ProgressFailure) throw error;
    if (limit.signal?.aborted) throw aborted(WHAT, limit.signal);
    throw callError(error, WHAT, target);
  }
}

function send(
  opened: Opened,
  first: ReviewBundleRequest,
  archive: Buffer,
  told: ReviewBundleOptions,
): Promise<ReviewBundleResponse> {
  const { path, requestSerialize, responseDeserialize } = Service.reviewBundle;
  const { lane, metadata, options } = opened;
  const totalBytes = archive.length;
  return new Promise((resolve, reject) => {
    let isOver = false;
    const answered = (error: ServiceError | Error | null, answer?: ReviewBundleResponse) => {
      isOver = true;
      told.signal?.removeEventListener("abort", cancel);
      if (error === null) resolve(answer!);
      else reject(error);
    };
    const call: ClientWritableStream<ReviewBundleRequest> = lane.client.makeClientStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      metadata,
      options,
      answered,
    );
    const cancel = () => call.cancel();
    told.signal?.addEventListener("abort", cancel, { once: true });
    // The callback tells every error; without a listener the stream would throw it once more.
    call.on("error", () => undefined);
    let at = 0;
    const goOn = () => {
      try {
        let mayWrite = true;
        while (at < totalBytes && mayWrite && !isOver) {
          mayWrite = call.write(ReviewBundleRequest.create({ chunk: archive.subarray(at, at + CHUNK_BYTES) }));
          at = Math.min(at + CHUNK_BYTES, totalBytes);
          tell(told, { phase: "uploading", bytes: at, totalBytes });
        }
        if (isOver) return;
        if (at < totalBytes) return void call.once("drain", goOn);
        call.end();
        tell(told, { phase: "checking", bytes: 0, totalBytes });
      } catch (error) {
        // `onProgress` failed: the upload is given up, and its error told.
        answered(error as Error);
        call.cancel();
      }
    };
    call.write(first);
    goOn();
  });
}

async function load(path: string, options: ReviewBundleOptions): Promise<{ archive: Buffer; paths: string[] }> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return await pack(path, options);
    if (!found.isFile()) throw new BundleError(`${path} is neither a file nor a folder.`);
    if (found.size > BYTES_MAX) throw new BundleError(`${path} has ${found.size} bytes; no service takes that much.`);
    const archive = await readFile(path);
    return { archive, paths: pathsOf(archive) };
  } catch (error) {
    if (error instanceof PortcullisError || error instanceof ProgressFailure) throw error;
    throw new BundleError(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

interface Walked {
  readonly path: string;
  readonly name: string;
  readonly size: number;
}

async function pack(
  folder: string,
  options: ReviewBundleOptions,
): Promise<{ archive: Buffer; paths: string[] }> {
  const walked: Walked[] = [];
  await walk(folder, "", walked);
  if (walked.length === 0) throw new BundleError(`${folder} holds no file.`);
  walked.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  const totalBytes = walked.reduce((sum, { size }) => sum + size, 0);
  if (totalBytes > BYTES_MAX) throw new BundleError(`${folder} holds ${totalBytes} bytes; no service takes that much.`);
  const packer = new Packer();
  let bytes = 0;
  for (const one of walked) {
    if (options.signal?.aborted) throw aborted(WHAT, options.signal);
    await packer.add({ path: one.name, ...(await read(one.path)) });
    bytes += one.size;
    tell(options, { phase: "packing", bytes, totalBytes });
  }
  return { archive: packer.finish(), paths: walked.map(({ name }) => name) };
}

async function walk(folder: string, prefix: string, walked: Walked[]): Promise<void> {
  for (const name of await readdir(folder, { encoding: "buffer" })) {
    const text = name.toString();
    if (!Buffer.from(text).equals(name)) throw new BundleError(`${join(folder, text)}: the name is no UTF-8.`);
    if (LEFT_OUT.includes(text)) continue;
    const path = join(folder, text);
    const found = await lstat(path);
    if (found.isDirectory()) await walk(path, `${prefix}${text}/`, walked);
    else walked.push({ path, name: `${prefix}${text}`, size: found.size });
    if (walked.length > FILES_MAX)
      throw new BundleError(`${folder} holds more than ${FILES_MAX} files; is it the right one?`);
  }
}

async function read(path: string): Promise<{ mode: number; data: Uint8Array }> {
  const found = await lstat(path);
  // The service says what it thinks of links; following one could lead anywhere.
  if (found.isSymbolicLink()) return { mode: LINK_MODE, data: await readlink(path, "buffer") };
  // A socket or a device is named and never opened.
  if (!found.isFile()) return { mode: found.mode, data: new Uint8Array() };
  const file = await open(path, "r");
  try {
    // Only the owner's right to run it is kept; the rest tells of this machine.
    return { mode: (found.mode & 0o111) !== 0 ? 0o100_755 : 0o100_644, data: await file.readFile() };
  } finally {
    await file.close();
  }
}

/** What a bundle is, lying at the top of an archive or in one folder of it. */
function kindOf(path: string, paths: readonly string[], said: ReviewBundleOptions["kind"]): BundleKind {
  if (said !== undefined) {
    if (!Object.hasOwn(KINDS, said))
      throw new BundleError(`\`kind\` is ${JSON.stringify(said)}; give "skill", "plugin" or "agent".`);
    return KINDS[said];
  }
  const names = (name: string) => paths.some((one) => one === name || one.slice(one.indexOf("/") + 1) === name);
  if (names(".claude-plugin/plugin.json")) return BundleKind.PLUGIN;
  // One that cannot be opened is refused whatever it is.
  if (names("SKILL.md") || paths.length === 0) return BundleKind.SKILL;
  if (paths.some((one) => one.toLowerCase().endsWith(".md"))) return BundleKind.AGENT;
  throw new BundleError(`${path} has no SKILL.md, plugin.json or other document that tells what it is; give \`kind\`.`);
}
