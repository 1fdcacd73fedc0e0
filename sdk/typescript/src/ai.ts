/**
 * Adapter for the Vercel AI SDK (`ai` 6 and 7): guarded tools, and a middleware that judges what goes into a model and what
 * comes out of it.
 */

import { createHash } from "node:crypto";
import type { LanguageModelMiddleware, ToolSet } from "ai";

import { type Portcullis, SHARED } from "./client.js";
import { BlockedError, ConfigurationError } from "./errors.js";
import { type BlockedResult, GUARD_NAMES, guardCall, type GuardOptions } from "./guard.js";
import { judge, TEXT_NAMES, type TextNotice, type TextOptions } from "./judge.js";
import type { MessageInput, PartInput } from "./messages.js";
import { checkNames, type Names } from "./options.js";

export type { TextNotice };

/** How the tools of a model are guarded. */
export interface GuardToolsOptions extends Omit<GuardOptions, "signal"> {
  /** `return`, the default: the model reads `{status: "blocked", …}` as the result. `throw`: the AI SDK reports an error. */
  readonly onBlocked?: "throw" | "return";
  /** Names of tools without `execute`, which run elsewhere and cannot be guarded here. Any other of that kind is refused. */
  readonly unguarded?: readonly string[];
}

const { signal: _, ...GUARD } = GUARD_NAMES;
const TOOLS_NAMES: Names<GuardToolsOptions> = { ...GUARD, onBlocked: true, unguarded: true };

type Execute = (input: unknown, options: { toolCallId: string; abortSignal?: AbortSignal }) => unknown;

/**
 * The same tools, each asking before it runs and about its result.
 *
 * Of a tool that yields preliminary results only the last one is given on, once it is judged.
 *
 * @throws {ConfigurationError} for a tool without `execute` that `unguarded` does not name
 */
export function guardTools<T extends ToolSet>(portcullis: Portcullis, tools: T, options: GuardToolsOptions = {}): T {
  checkNames(options, TOOLS_NAMES, "the options of guardTools");
  const { onBlocked = "return", unguarded = [], ...guard } = options;
  const guarded = Object.entries(tools).map(([toolName, tool]) => {
    const execute = (tool as { execute?: Execute }).execute;
    if (execute === undefined) {
      if (unguarded.includes(toolName)) return [toolName, tool];
      throw new ConfigurationError(
        `the tool \`${toolName}\` has no \`execute\`: it runs elsewhere, unguarded; name it in \`unguarded\`.`,
      );
    }
    const run: Execute = async (input, called) => {
      const { toolCallId, abortSignal } = called;
      const call = { ...guard, toolName, toolCallId, ...(abortSignal === undefined ? {} : { signal: abortSignal }) };
      try {
        return await guardCall(portcullis[SHARED], call, input, (args) => last(execute.call(tool, args, called)));
      } catch (error) {
        if (onBlocked === "return" && error instanceof BlockedError)
          return JSON.parse(error.blockedResultJson) as BlockedResult;
        throw error;
      }
    };
    return [toolName, { ...tool, execute: run }];
  });
  return Object.fromEntries(guarded) as T;
}

async function last(result: unknown): Promise<unknown> {
  if (typeof result !== "object" || result === null || !(Symbol.asyncIterator in result)) return result;
  let final: unknown;
  for await (const one of result as AsyncIterable<unknown>) final = one;
  return final;
}

/** What of a model call is judged. */
export interface MiddlewareOptions extends TextOptions {
  /** Judges the prompt before the model gets it. Default true. */
  readonly input?: boolean;
  /** Judges the answer before anybody gets it; a streamed one is held back until it is complete. Default true. */
  readonly output?: boolean;
  /**
   * Judges the arguments of tool calls as part of prompt and answer. Default true. Say false where {@link guardTools} guards
   * every tool: a call that was refused there stays in the conversation, and would stop it here.
   */
  readonly toolCalls?: boolean;
  /** Gives the model the prompt redacted. Default false. Without a service the call throws, whatever `onUnavailable` says. */
  readonly redactInput?: boolean;
}

const MIDDLEWARE_NAMES: Names<MiddlewareOptions> = {
  ...TEXT_NAMES,
  input: true,
  output: true,
  toolCalls: true,
  redactInput: true,
};

type Transform = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0];
type Params = Transform["params"];
type Generated = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapGenerate"]>>>;
type Content = Generated["content"];
type Streamed = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>>;
type StreamPart = Streamed["stream"] extends ReadableStream<infer P> ? P : never;

/**
 * A middleware for `wrapLanguageModel`. What is refused is thrown as BlockedError out of `generateText` and its like.
 */
export function portcullisMiddleware(portcullis: Portcullis, options: MiddlewareOptions = {}): LanguageModelMiddleware {
  checkNames(options, MIDDLEWARE_NAMES, "the options of portcullisMiddleware");
  const { input = true, output = true, redactInput = false, toolCalls = true, ...text } = options;
  const judgeOutput = async (content: Content, signal: AbortSignal | undefined) => {
    const messages = [outputOf(content, toolCalls)];
    await judge(portcullis, { messages, phase: "output", toolName: "", signal }, text);
  };
  return {
    specificationVersion: "v3",
    transformParams: async ({ params }: Transform): Promise<Params> => {
      if (!input) return params;
      const prompt = readPrompt(params.prompt, toolCalls);
      const messages = prompt.map(({ message }) => message);
      const { abortSignal: signal } = params;
      const answer = await judge(
        portcullis,
        { messages, phase: "input", toolName: "", redact: redactInput, signal },
        text,
      );
      if (!redactInput) return params;
      return { ...params, prompt: prompt.map(({ write }, index) => write(partsOf(answer.redactedMessages[index]!))) };
    },
    wrapGenerate: async ({ doGenerate, params }) => {
      const result = await doGenerate();
      if (output) await judgeOutput(result.content, params.abortSignal);
      return result;
    },
    wrapStream: async ({ doStream, params }) => {
      const result = await doStream();
      if (!output) return result;
      const parts: StreamPart[] = [];
      for await (const part of result.stream as unknown as AsyncIterable<StreamPart>) parts.push(part);
      await judgeOutput(contentOf(parts), params.abortSignal);
      return { ...result, stream: replay(parts) };
    },
  };
}

function replay(parts: readonly StreamPart[]): ReadableStream<StreamPart> {
  return new ReadableStream<StreamPart>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

/** A streamed answer as if it had come at once. */
function contentOf(parts: readonly StreamPart[]): Content {
  const texts = new Map<string, { type: "text" | "reasoning"; text: string }>();
  const whole: Content = [];
  for (const part of parts) {
    switch (part.type) {
      case "text-start":
      case "reasoning-start": {
        const open = { type: part.type === "text-start" ? ("text" as const) : ("reasoning" as const), text: "" };
        texts.set(part.id, open);
        whole.push(open);
        break;
      }
      case "text-delta":
      case "reasoning-delta": {
        const open = texts.get(part.id);
        if (open !== undefined) open.text += part.delta;
        else whole.push({ type: "text", text: part.delta });
        break;
      }
      default:
        // Whatever a later release adds is content, and judged as it stands.
        if (!CONTROL_PARTS.has(part.type)) whole.push(part as Content[number]);
    }
  }
  return whole;
}

/** Parts of a stream that say how it goes on, and nothing that anybody reads. */
const CONTROL_PARTS: ReadonlySet<string> = new Set([
  "stream-start",
  "response-metadata",
  "text-end",
  "reasoning-end",
  "tool-input-start",
  "tool-input-delta",
  "tool-input-end",
  "finish",
  "raw",
  "error",
]);

/** The answer of a model as one turn. */
function outputOf(content: Content, withCalls: boolean): MessageInput {
  const parts: PartInput[] = [];
  const toolCalls = [];
  for (const one of content) {
    if (isFile(one)) {
      parts.push(fileOf(one.mediaType, one.data));
      continue;
    }
    switch (one.type) {
      case "text":
      case "reasoning":
        parts.push({ text: one.text });
        break;
      case "tool-call":
        if (withCalls) toolCalls.push({ id: one.toolCallId, name: one.toolName, argsJson: one.input });
        break;
      default:
        parts.push({ json: JSON.stringify(one) });
    }
  }
  return { role: "assistant", parts, toolCalls };
}

type PromptMessage = Params["prompt"][number];

/** One turn of a prompt, and how to write back what the redaction made of its parts. */
interface ReadMessage {
  readonly message: MessageInput;
  readonly write: (parts: string[]) => PromptMessage;
}

/** The parts of a redacted turn as texts: tool calls after the rest, as {@link readPrompt} puts them. */
function partsOf(redacted: {
  parts?: { parts: { text?: string; json?: string }[] } | undefined;
  toolCalls: { argsJson: string }[];
}): string[] {
  const parts = redacted.parts?.parts.map((part) => part.text ?? part.json ?? "") ?? [];
  return [...parts, ...redacted.toolCalls.map((call) => call.argsJson)];
}

function readPrompt(prompt: Params["prompt"], withCalls: boolean): ReadMessage[] {
  return prompt.map((message): ReadMessage => {
    if (typeof message.content === "string") {
      const parts = [{ text: message.content }];
      return {
        message: { role: message.role, parts },
        write: ([text]) => ({ ...message, content: text }) as PromptMessage,
      };
    }
    const parts: PartInput[] = [];
    const toolCalls: { id: string; name: string; argsJson: string }[] = [];
    // For each part of the prompt, how to make it anew from its redacted text.
    const writers: { readonly isCall: boolean; readonly at: number; readonly write: (text: string) => unknown }[] = [];
    for (const part of message.content) {
      if (part.type === "tool-call" && !withCalls) {
        writers.push({ isCall: false, at: -1, write: () => part });
      } else if (part.type === "tool-call") {
        const at =
          toolCalls.push({ id: part.toolCallId, name: part.toolName, argsJson: JSON.stringify(part.input) ?? "" }) - 1;
        writers.push({
          isCall: true,
          at,
          write: (text) => ({ ...part, input: text === "" ? part.input : JSON.parse(text) }),
        });
      } else {
        const { sent, write } = readPart(part);
        writers.push({ isCall: false, at: parts.push(sent) - 1, write });
      }
    }
    const write = (texts: string[]) => {
      const made = writers.map((one) => one.write(texts[one.at + (one.isCall ? parts.length : 0)] ?? ""));
      return { ...message, content: made } as PromptMessage;
    };
    return { message: { role: message.role, parts, toolCalls }, write };
  });
}

type PromptPart = Exclude<Exclude<PromptMessage["content"], string>[number], { type: "tool-call" }>;

function readPart(part: PromptPart): { sent: PartInput; write: (text: string) => unknown } {
  if (isFile(part)) {
    const { mediaType, data } = part;
    const sent = fileOf(mediaType, data);
    return { sent, write: (text) => ("text" in sent ? { ...part, data: rewritten(data, text) } : part) };
  }
  switch (part.type) {
    case "text":
    case "reasoning":
      return { sent: { text: part.text }, write: (text) => ({ ...part, text }) };
    case "tool-result": {
      const { output } = part;
      if (output.type === "text" || output.type === "error-text") {
        return { sent: { text: output.value }, write: (value) => ({ ...part, output: { ...output, value } }) };
      }
      return { sent: { json: JSON.stringify(output) }, write: (text) => ({ ...part, output: JSON.parse(text) }) };
    }
    // Whatever a later release adds is judged as it stands.
    default:
      return { sent: { json: JSON.stringify(part) }, write: (text) => JSON.parse(text) as unknown };
  }
}

/** What a file holds: in `ai` 6 itself, in `ai` 7 with a tag that says what it is. */
type FileData =
  | Uint8Array
  | string
  | URL
  | { readonly type: "data"; readonly data: Uint8Array | string }
  | { readonly type: "url"; readonly url: URL }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reference"; readonly reference: unknown };

/** Whether a part is a file, of the answer or of what a model thought. */
function isFile(part: { readonly type: string }): part is { type: string; mediaType: string; data: FileData } {
  return part.type === "file" || part.type === "reasoning-file";
}

/** A file: its text where it has one, else a reference that the policy may refuse as not judged. */
function fileOf(mimeType: string, data: FileData): PartInput {
  if (data instanceof URL) return { media: { mimeType, uri: data.href } };
  if (typeof data === "object" && "type" in data) {
    switch (data.type) {
      case "data":
        return fileOf(mimeType, data.data);
      case "url":
        return fileOf(mimeType, data.url);
      case "text":
        return { text: data.text };
      default:
        // Kept by the provider of the model, or of a kind that a later release adds: nothing of it is here.
        return { media: { mimeType, sha256: digest(JSON.stringify(data)) } };
    }
  }
  const bytes = typeof data === "string" ? Buffer.from(data, "base64") : data;
  if (/^(text\/|application\/(json|xml|yaml|javascript))/.test(mimeType))
    return { text: Buffer.from(bytes).toString() };
  return { media: { mimeType, sha256: digest(bytes) } };
}

/** The data of a file with another text, in the same form. */
function rewritten(data: FileData, text: string): FileData {
  const base64 = Buffer.from(text).toString("base64");
  if (data instanceof URL || typeof data !== "object" || !("type" in data)) return base64;
  return data.type === "text" ? { type: "text", text } : { type: "data", data: base64 };
}

const digest = (bytes: Uint8Array | string): Buffer => createHash("sha256").update(bytes).digest();
