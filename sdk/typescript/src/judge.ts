/** Conversations judged on the way through an adapter: what is refused is thrown. */

import { type CheckResult, type Portcullis, SHARED } from "./client.js";
import { BlockedError, type BlockedPhase } from "./errors.js";
import { Decision, type Finding, type Unjudged } from "./generated/api/portcullis/v1/decision.js";
import type { MessageInput } from "./messages.js";
import { CALL_NAMES, type CallOptions, type Names } from "./options.js";

/** A text that passed with a warning, or waits for a person. Texts in it are masked. */
export interface TextNotice {
  readonly decision: Decision;
  /** `input` and `output` of a model, the `description` of a tool, the `answer` of an MCP server, or media `after` a tool. */
  readonly phase: BlockedPhase;
  /** The tool or method it is about. Empty where there is none. */
  readonly toolName: string;
  readonly findings: readonly Finding[];
  readonly unjudged: readonly Unjudged[];
  readonly decisionId: string;
}

/** What to do where a decision is neither plain. */
export interface TextOptions extends Omit<CallOptions, "signal"> {
  /** Asked where a person must approve. Only `true` approves. Without it every ASK is refused. */
  readonly onAskText?: (notice: TextNotice) => boolean | Promise<boolean>;
  /** Told of what passes with a warning. */
  readonly onWarnText?: (notice: TextNotice) => void | Promise<void>;
}

const { signal: _, ...CALLS } = CALL_NAMES;
/** @internal */
export const TEXT_NAMES: Names<TextOptions> = { ...CALLS, onAskText: true, onWarnText: true };

/** What is judged. */
export interface Judged {
  readonly messages: readonly MessageInput[];
  readonly phase: BlockedPhase;
  readonly toolName: string;
  readonly redact?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Answers what passed. @throws {BlockedError} for what did not */
export async function judge(portcullis: Portcullis, judged: Judged, options: TextOptions): Promise<CheckResult> {
  const { messages, phase, toolName, redact = false, signal } = judged;
  const { onAskText, onWarnText, ...call } = options;
  const { counts } = portcullis[SHARED];
  const direction = phase === "output" ? "output" : "input";
  const ended = signal === undefined ? {} : { signal };
  const answer = await portcullis.checkMessages(messages, { ...callOf(call), ...ended, redact, direction });
  const { decision, findings, unjudged, decisionId } = answer;
  const notice: TextNotice = { decision, phase, toolName, findings, unjudged, decisionId };
  switch (decision) {
    case Decision.ALLOW:
      return answer;
    case Decision.WARN:
      counts.warned += 1;
      await onWarnText?.(notice);
      return answer;
    case Decision.ASK:
      counts.asked += 1;
      if (onAskText !== undefined && (await onAskText(notice)) === true) return answer;
      break;
    default:
  }
  counts.blocked += 1;
  const blockReason = reasonOf(findings, unjudged);
  const tool = toolName === "" || phase === "answer" ? {} : { tool: toolName };
  throw new BlockedError({
    ...notice,
    blockReason,
    blockedResultJson: JSON.stringify({ status: "blocked", ...tool, reason: blockReason }),
  });
}

/** The options of a call alone, out of those of an adapter. */
function callOf({ deadlineMs, policy, context }: CallOptions): CallOptions {
  return {
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(policy === undefined ? {} : { policy }),
    ...(context === undefined ? {} : { context }),
  };
}

/** Why something was refused: its worst finding, or what could not be judged. */
function reasonOf(findings: readonly Finding[], unjudged: readonly Unjudged[]): string {
  const counting = findings.filter((finding) => !finding.shadow && !finding.suppressed);
  const [worst] = counting.sort((a, b) => b.score - a.score);
  if (worst !== undefined) return `${worst.description} (${worst.ruleId})`;
  const [first] = unjudged.filter((one) => !one.failedOpen);
  return first === undefined ? "refused by the policy" : `${first.plugin} could not judge it: ${first.reason}`;
}
