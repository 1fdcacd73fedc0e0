/**
 * Tools under guard: asked about before they run, and about their results before anybody sees them.
 *
 * The tool gets, and the caller sees, values made from the JSON text that was judged, never the objects that were handed
 * in: so nothing can change between the check and the use.
 */

import { Decision, type Finding, OffsetEncoding, type Unjudged } from "./generated/api/portcullis/v1/decision.js";
import { ToolPhase } from "./generated/api/portcullis/v1/interceptors.js";
import { ExecutionContext } from "./generated/api/portcullis/v1/context.js";
import {
  InterceptToolRequest,
  type InterceptToolResponse,
  PolicyDecisionServiceService as Service,
} from "./generated/api/portcullis/v1/policy_decision_service.js";
import { aborted, type Limit } from "./calls.js";
import { BlockedError, ConfigurationError, PortcullisError, type Refusal, ToolError } from "./errors.js";
import { fromJsonText, type JsonValue, toJsonText, wellFormed } from "./json.js";
import { CALL_NAMES, type CallOptions, checkNames, type Names } from "./options.js";
import type { Shared } from "./shared.js";

/** What passed with a warning, or waits for a person. Texts in it are masked. */
export interface Notice {
  readonly decision: Decision;
  /** Before the tool ran, or after. */
  readonly phase: "before" | "after";
  /** The tool, as the caller names it. */
  readonly toolName: string;
  /** Why. May be empty for a warning. */
  readonly reason: string;
  readonly findings: readonly Finding[];
  readonly unjudged: readonly Unjudged[];
  readonly decisionId: string;
}

/** What a person is asked. */
export interface AskRequest extends Notice {
  /** What would be let through: the arguments to run with, or the result to show. */
  readonly value: JsonValue | undefined;
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined;
}

/** How a tool is guarded. */
export interface GuardOptions extends CallOptions {
  /** Asked where a person must approve. Only `true` approves; an error refuses. Without it every ASK is refused. */
  readonly onAsk?: (request: AskRequest) => boolean | Promise<boolean>;
  /** Told of what passes with a warning. An error of it stops the call. */
  readonly onWarn?: (notice: Notice) => void | Promise<void>;
  /** Where the tool would run: working directory, home, links that were resolved. Unset: nothing is known. */
  readonly environment?: Partial<ExecutionContext>;
  /** Metadata of the run so far, as JSON text: what `interceptMessage` answered. */
  readonly metadataJson?: string;
}

/** One call of a tool. */
export interface GuardedCall extends GuardOptions {
  /** Name of the tool, as the agent knows it. */
  readonly toolName: string;
  /** Id of this call, for records. */
  readonly toolCallId?: string;
}

/** In place of a result, where `onBlocked: "return"` is chosen. */
export interface BlockedResult {
  readonly status: "blocked";
  readonly tool: string;
  readonly reason: string;
}

/** How a function becomes a guarded tool. */
export interface GuardToolOptions extends GuardOptions {
  /** Name of the tool. Default: the name of the function. */
  readonly name?: string;
  /**
   * Names of the arguments of a function that takes more than one object: `guardTool(readFile, { parameters: ["path"] })`.
   * Rules about commands and paths look for names such as `command` and `path`. Without it, a call with one plain object
   * is judged as that object, and any other as `{"args":[…]}`.
   */
  readonly parameters?: readonly string[];
  /** `throw`, the default: a refusal is thrown as BlockedError. `return`: the caller gets `{status: "blocked", …}`. */
  readonly onBlocked?: "throw" | "return";
  /** Makes plain JSON of the arguments, where they hold more than that. The tool is called with what it answers. */
  readonly encodeArgs?: (args: unknown[]) => object;
  /** Makes plain JSON of a result, such as base64 text of a Buffer. The caller gets what it answers. */
  readonly encodeResult?: (result: unknown) => unknown;
}

/** @internal */
export const GUARD_NAMES: Names<GuardOptions> = {
  ...CALL_NAMES,
  onAsk: true,
  onWarn: true,
  environment: true,
  metadataJson: true,
};
const GUARD_TOOL_NAMES: Names<GuardToolOptions> = {
  ...GUARD_NAMES,
  name: true,
  parameters: true,
  onBlocked: true,
  encodeArgs: true,
  encodeResult: true,
};

type Arguments = { [name: string]: JsonValue };

/** Runs one call of a tool between its two checks. `run` gets the arguments to use. */
export async function guardCall(
  shared: Shared,
  call: GuardedCall,
  args: unknown,
  run: (args: Arguments) => unknown,
  encodeResult: (result: unknown) => unknown = (result) => result,
): Promise<JsonValue | undefined> {
  const { toolName } = call;
  if (typeof toolName !== "string" || toolName === "") throw new ConfigurationError("a guarded tool needs a name.");
  wellFormed(toolName, "the name of a tool");
  const argsJson = toJsonText(args, `the arguments of tool \`${toolName}\``);
  if (!argsJson.startsWith("{")) {
    throw new ConfigurationError(`the arguments of tool \`${toolName}\` are no object; call it with { name: value }.`);
  }
  const before = await ask(shared, call, { phase: ToolPhase.BEFORE, argsJson });
  const judged = before === undefined ? argsJson : before.argsJson;
  const used = argumentsOf(judged, toolName);
  if (before !== undefined) await obey(shared, call, "before", before, used);

  const metadataJson = before?.metadataJson ?? call.metadataJson ?? "";
  const after = { phase: ToolPhase.AFTER, argsJson: judged, metadataJson };
  let result: unknown;
  try {
    result = encodeResult(await run(used));
  } catch (error) {
    throw await judgeFailure(shared, call, after, error);
  }
  const resultJson = result === undefined ? "" : toJsonText(result, `the result of tool \`${toolName}\` (it has run)`);
  const answer = await ask(shared, call, { ...after, resultJson });
  const shownJson = answer === undefined ? resultJson : answer.resultJson;
  const shown =
    shownJson === "" ? undefined : fromJsonText(shownJson, `the result of tool \`${toolName}\` (it has run)`);
  if (answer !== undefined) await obey(shared, call, "after", answer, shown);
  return shown;
}

function argumentsOf(json: string, toolName: string): Arguments {
  const subject = `the arguments of tool \`${toolName}\``;
  const used = fromJsonText(json === "" ? "{}" : json, subject);
  if (typeof used === "object" && used !== null && !Array.isArray(used)) return used;
  throw new PortcullisError(`${subject} came back as no object.`);
}

/** What to throw when a tool has failed: its own error, or what the guard leaves of it. */
async function judgeFailure(
  shared: Shared,
  call: GuardedCall,
  after: Partial<InterceptToolRequest>,
  error: unknown,
): Promise<unknown> {
  const seen = { values: 0, isMended: false };
  const told = failureOf(error, 0, seen);
  const resultJson = JSON.stringify(told);
  const answer = await ask(shared, call, { ...after, resultJson, isError: true });
  if (answer === undefined) return error;
  const shown =
    answer.resultJson === "" ? undefined : fromJsonText(answer.resultJson, `the error of tool \`${call.toolName}\``);
  await obey(shared, call, "after", answer, shown);
  // Where half of a character was mended, the error itself is not what was judged.
  if (answer.resultJson === resultJson && !seen.isMended) return error;
  const message = (shown as { message?: unknown } | undefined)?.message;
  return new ToolError(typeof message === "string" ? message : answer.resultJson, shown);
}

/** How deep causes and members of an error are read, and how many of them in all. */
const FAILURE = { depthMax: 5, valuesMax: 1_000 };

/** What is known while an error is read: how many values it has, and whether lone surrogates were replaced. */
interface FailureSeen {
  values: number;
  isMended: boolean;
}

/** Everything that an error tells, as JSON: message and name, output of a child process, causes. */
function failureOf(value: unknown, depth: number, seen: FailureSeen): JsonValue {
  seen.values += 1;
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return mended(value, seen);
  if (typeof value === "boolean") return value;
  if (typeof value !== "object" || depth > FAILURE.depthMax || seen.values > FAILURE.valuesMax)
    return mended(textOf(value), seen);
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  if (Array.isArray(value)) return value.map((one) => failureOf(one, depth + 1, seen));
  const told: Arguments = Object.create(null) as Arguments;
  const names = [...(value instanceof Error ? ["name", "message", "cause"] : []), ...Object.keys(value)];
  for (const name of new Set(names)) {
    const inner = memberOf(value, name);
    if (inner !== undefined && typeof inner !== "function")
      told[mended(name, seen)] = failureOf(inner, depth + 1, seen);
  }
  return told;
}

/** The text with U+FFFD in place of lone surrogates: a tool has failed, so there is nobody to refuse it to. */
function mended(text: string, seen: FailureSeen): string {
  if (text.isWellFormed()) return text;
  seen.isMended = true;
  return text.toWellFormed();
}

function memberOf(value: object, name: string): unknown {
  try {
    return (value as Record<string, unknown>)[name];
  } catch {
    return "a member that cannot be read";
  }
}

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return "a value that cannot be read";
  }
}

/** Asks the service; undefined when nobody answered and the client is set to go on. */
async function ask(
  shared: Shared,
  call: GuardedCall,
  fields: Partial<InterceptToolRequest>,
): Promise<InterceptToolResponse | undefined> {
  const { toolName } = call;
  checkNames(call.environment, ExecutionContext.create() as unknown as Names<Partial<ExecutionContext>>, "`environment`");
  const isAfter = fields.phase === ToolPhase.AFTER;
  const request = InterceptToolRequest.create({
    metadataJson: call.metadataJson ?? "",
    ...fields,
    toolName,
    toolCallId: call.toolCallId ?? "",
    policy: shared.policy(call),
    context: shared.context(call),
    environment: call.environment === undefined ? undefined : ExecutionContext.fromPartial(call.environment),
    offsetEncoding: OffsetEncoding.UTF16,
  });
  const what = isAfter
    ? `InterceptTool after tool \`${toolName}\` (it has run)`
    : `InterceptTool before tool \`${toolName}\` (it has not run)`;
  const limit: Limit = shared.caller.limit(call, "call");
  try {
    return await shared.caller.unary({ method: Service.interceptTool, request, what, isIdempotent: true }, limit);
  } catch (error) {
    try {
      shared.mayGoOn(error, { call: "guardTool", toolName });
    } catch (refused) {
      // Told only where it is so: by choice the result may be handed out.
      if (isAfter && refused === error && error instanceof PortcullisError) {
        error.message += " The result of the tool is withheld.";
      }
      throw refused;
    }
    return undefined;
  }
}

/** Does what the decision says: returns when the call goes on, and throws otherwise. */
async function obey(
  shared: Shared,
  call: GuardedCall,
  phase: "before" | "after",
  answer: InterceptToolResponse,
  value: JsonValue | undefined,
): Promise<void> {
  const { decision, findings, unjudged, decisionId, blockReason } = answer;
  const { toolName, signal } = call;
  const notice: Notice = { decision, phase, toolName, reason: blockReason, findings, unjudged, decisionId };
  switch (decision) {
    case Decision.ALLOW:
      break;
    case Decision.WARN:
      shared.counts.warned += 1;
      await call.onWarn?.(notice);
      break;
    case Decision.ASK:
      shared.counts.asked += 1;
      if (await approves(call, { ...notice, value, signal })) break;
      throw refusal(shared, call, phase, answer);
    // Also what this version does not know.
    default:
      throw refusal(shared, call, phase, answer);
  }
  if (signal?.aborted) throw aborted(`tool \`${toolName}\``, signal);
}

async function approves(call: GuardedCall, request: AskRequest): Promise<boolean> {
  if (call.onAsk === undefined) return false;
  // Anything but `true` is no approval: a forgotten `return` must not be one.
  return (await call.onAsk(request)) === true;
}

function refusal(
  shared: Shared,
  call: GuardedCall,
  phase: Refusal["phase"],
  answer: InterceptToolResponse,
): BlockedError {
  shared.counts.blocked += 1;
  const reason = answer.blockReason || "refused by the policy";
  const fallback: BlockedResult = { status: "blocked", tool: answer.toolName || call.toolName, reason };
  return new BlockedError({
    ...answer,
    phase,
    toolName: call.toolName,
    blockedResultJson: answer.blockedResultJson || JSON.stringify(fallback),
  });
}

/** A function that is guarded. See `Portcullis.guardTool`. */
export function guardTool(shared: Shared, tool: (...args: never[]) => unknown, options: GuardToolOptions) {
  checkNames(options, GUARD_TOOL_NAMES, "the options of guardTool");
  if (typeof tool !== "function") throw new ConfigurationError("guardTool takes a function.");
  const toolName = options.name ?? tool.name;
  if (toolName === "")
    throw new ConfigurationError('the function has no name; give one: guardTool(fn, { name: "…" }).');
  const { parameters, encodeArgs, encodeResult, onBlocked = "throw" } = options;
  if (onBlocked !== "throw" && onBlocked !== "return") {
    throw new ConfigurationError(`\`onBlocked\` is ${JSON.stringify(onBlocked)}; give "throw" or "return".`);
  }
  return async function guarded(this: unknown, ...given: unknown[]): Promise<unknown> {
    const shape = encodeArgs === undefined ? shapeOf(given, parameters, toolName) : undefined;
    const args = shape === undefined ? encodeArgs!(given) : shape.args;
    const run = (used: Arguments) => tool.apply(this, (shape === undefined ? [used] : shape.unpack(used)) as never[]);
    try {
      return await guardCall(shared, { ...options, toolName }, args, run, encodeResult);
    } catch (error) {
      if (onBlocked === "return" && error instanceof BlockedError)
        return JSON.parse(error.blockedResultJson) as BlockedResult;
      throw error;
    }
  };
}

interface Shape {
  readonly args: object;
  /** The list of arguments again, from an object of the same shape. */
  unpack(used: Arguments): unknown[];
}

/** Arguments by position as the object that is judged, and back. */
function shapeOf(given: unknown[], parameters: readonly string[] | undefined, toolName: string): Shape {
  if (parameters !== undefined) {
    if (given.length > parameters.length) {
      const named = `${parameters.length} of ${given.length} arguments`;
      throw new ConfigurationError(
        `tool \`${toolName}\`: \`parameters\` names ${named}; what has no name is not judged.`,
      );
    }
    const pairs = given.map((value, index) => [parameters[index]!, value] as const);
    const args = Object.fromEntries(pairs);
    return { args, unpack: (used) => unpackNamed(used, parameters, toolName) };
  }
  const [only] = given;
  if (given.length === 0) return { args: {}, unpack: (used) => (Object.keys(used).length === 0 ? [] : [used]) };
  const isObject = given.length === 1 && typeof only === "object" && only !== null && !Array.isArray(only);
  if (isObject) return { args: only, unpack: (used) => [used] };
  const unpack = (used: Arguments) => {
    const list = used["args"];
    if (Array.isArray(list) && Object.keys(used).length === 1) return list;
    throw new PortcullisError(
      `tool \`${toolName}\`: the policy changed the arguments to what the function does not take.`,
    );
  };
  return { args: { args: given }, unpack };
}

function unpackNamed(used: Arguments, parameters: readonly string[], toolName: string): unknown[] {
  const strange = Object.keys(used).find((name) => !parameters.includes(name));
  if (strange !== undefined) {
    throw new PortcullisError(
      `tool \`${toolName}\`: the policy added \`${strange}\`, which the function does not take.`,
    );
  }
  const values = parameters.map((name) => used[name]);
  while (values.length > 0 && values.at(-1) === undefined) values.pop();
  return values;
}
