/**
 * Adapter for clients of the Model Context Protocol (`@modelcontextprotocol/sdk`): tool calls, results and what servers
 * say about themselves are judged on their way to the model.
 */

import { createHash } from "node:crypto";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";

import { type Portcullis, SHARED } from "./client.js";
import { BlockedError, ConfigurationError } from "./errors.js";
import { GUARD_NAMES, guardCall, type GuardOptions } from "./guard.js";
import { toJsonText } from "./json.js";
import { judge, TEXT_NAMES, type TextOptions } from "./judge.js";
import type { PartInput } from "./messages.js";
import { checkNames, type Names } from "./options.js";

/** How an MCP client is guarded. */
export interface GuardMcpOptions extends Omit<GuardOptions, "signal">, TextOptions {
  /** Name of the server, as in `mcp__files__read`. Default: the name the server gives itself. */
  readonly serverName?: string;
  /**
   * What becomes of a tool whose description is refused. `drop`, the default: `listTools` leaves it out, and calls of it
   * are refused. `throw`: `listTools` throws.
   */
  readonly onBlockedDescription?: "drop" | "throw";
  /** Told of each tool that was dropped. */
  readonly onDropped?: (error: BlockedError) => void;
  /** `throw`, the default. `return`: a refused call answers a result with `isError` that tells the model why. */
  readonly onBlocked?: "throw" | "return";
}

const { signal: _, ...GUARD } = GUARD_NAMES;
const NAMES: Names<GuardMcpOptions> = {
  ...GUARD,
  ...TEXT_NAMES,
  serverName: true,
  onBlockedDescription: true,
  onDropped: true,
  onBlocked: true,
};

type CallTool = Client["callTool"];
type ListTools = Client["listTools"];

/** What servers say that is judged as a whole before it is answered. */
const JUDGED_ANSWERS = [
  "readResource",
  "getPrompt",
  "listPrompts",
  "listResources",
  "listResourceTemplates",
  "complete",
] as const;
/** Ways around the guard. */
const UNGUARDED: readonly (string | symbol)[] = ["request", "experimental"];
/** What a tool name may be made of; anything else in the server's own name would make it another tool. */
const NAME_SIGN = /[^A-Za-z0-9-]+/g;

/**
 * The same client under guard: `callTool` asks before and after, `listTools` judges descriptions and schemas, and
 * resources and prompts are judged before they are answered. Images, sounds and binary resources are what nobody can judge:
 * the policy says whether they pass, as with media in messages. `request` and `experimental`, which lead around the guard,
 * throw ConfigurationError. Everything else is as before. What the server says at the start (`getInstructions`) is not
 * judged.
 */
export function guardMcpClient<C extends Client>(portcullis: Portcullis, client: C, options: GuardMcpOptions = {}): C {
  checkNames(options, NAMES, "the options of guardMcpClient");
  const refused = new Map<string, BlockedError>();
  const guarded = new Map<string | symbol, unknown>([
    ["callTool", callToolOf(portcullis, client, options, refused)],
    ["listTools", listToolsOf(portcullis, client, options, refused)],
  ]);
  for (const name of JUDGED_ANSWERS) {
    guarded.set(name, async (...args: unknown[]) => {
      const method = client[name] as unknown as (...args: unknown[]) => Promise<unknown>;
      const answer = await method.apply(client, args);
      await judgeAnswer(portcullis, answer, "answer", name, options);
      return answer;
    });
  }
  return new Proxy(client, {
    get(target, name) {
      if (guarded.has(name)) return guarded.get(name);
      if (UNGUARDED.includes(name)) {
        throw new ConfigurationError(
          `\`${String(name)}\` of an MCP client leads around its guard; use callTool, or the client itself.`,
        );
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
    set: (target, name, value) => Reflect.set(target, name, value, target),
  });
}

function callToolOf(
  portcullis: Portcullis,
  client: Client,
  options: GuardMcpOptions,
  refused: Map<string, BlockedError>,
): CallTool {
  return (async (params, resultSchema, requestOptions) => {
    const refusal = refused.get(params.name);
    const signal = requestOptions?.signal;
    const call = {
      ...options,
      toolName: toolNameOf(client, params.name, options),
      ...(signal === undefined ? {} : { signal }),
    };
    try {
      if (refusal !== undefined) throw refusal;
      const run = (args: object) =>
        client.callTool({ ...params, arguments: args as typeof params.arguments }, resultSchema, requestOptions);
      const result = await guardCall(portcullis[SHARED], call, params.arguments ?? {}, run);
      const media = mediaOf(result);
      if (media.length > 0) {
        // No rule reads these, so it is for the policy to say what becomes of what nobody judged.
        const messages = [{ role: "tool", parts: media, name: call.toolName }];
        await judge(portcullis, { messages, phase: "after", toolName: call.toolName, signal }, options);
      }
      return result as never;
    } catch (error) {
      if (options.onBlocked === "return" && error instanceof BlockedError) {
        return { content: [{ type: "text", text: error.blockedResultJson }], isError: true };
      }
      throw error;
    }
  }) as CallTool;
}

function listToolsOf(
  portcullis: Portcullis,
  client: Client,
  options: GuardMcpOptions,
  refused: Map<string, BlockedError>,
): ListTools {
  return async (params, requestOptions) => {
    const listed = await client.listTools(params, requestOptions);
    const tools: typeof listed.tools = [];
    for (const tool of listed.tools) {
      try {
        await judgeAnswer(portcullis, tool, "description", tool.name, options);
        refused.delete(tool.name);
        tools.push(tool);
      } catch (error) {
        if (!(error instanceof BlockedError) || options.onBlockedDescription === "throw") throw error;
        refused.set(tool.name, error);
        options.onDropped?.(error);
      }
    }
    return { ...listed, tools };
  };
}

/** Judges what a server answered, as the least trusted of all turns. */
async function judgeAnswer(
  portcullis: Portcullis,
  answer: unknown,
  phase: "answer" | "description",
  toolName: string,
  options: GuardMcpOptions,
): Promise<void> {
  const json = toJsonText(answer, `the ${phase} of ${toolName}`);
  // A tool that is described has no media; a default of its schema may look like some.
  const media = phase === "answer" ? mediaOf(answer) : [];
  const messages = [{ role: "tool", parts: [{ json }, ...media], name: toolName }];
  await judge(portcullis, { messages, phase, toolName }, options);
}

/**
 * References to images, sounds and binary resources in what a server answered, for the policy to decide about: as the
 * base64 that they are, nothing would be found in them.
 */
function mediaOf(answer: unknown): PartInput[] {
  if (Array.isArray(answer)) return answer.flatMap(mediaOf);
  if (typeof answer !== "object" || answer === null) return [];
  const { type, data, blob, mimeType } = answer as Record<string, unknown>;
  const base64 = type === "image" || type === "audio" ? data : blob;
  if (typeof base64 !== "string") return Object.values(answer).flatMap(mediaOf);
  const sha256 = createHash("sha256").update(Buffer.from(base64, "base64")).digest();
  return [{ media: { mimeType: typeof mimeType === "string" ? mimeType : "application/octet-stream", sha256 } }];
}

function toolNameOf(client: Client, tool: string, options: GuardMcpOptions): string {
  const server = options.serverName ?? client.getServerVersion()?.name ?? "server";
  return `mcp__${server.replace(NAME_SIGN, "-")}__${tool}`;
}
