/** Conversations in the words of a JavaScript program, and as the contract has them. */

import { Message, type Part, type ToolCall } from "./generated/api/portcullis/v1/messages.js";
import { ConfigurationError } from "./errors.js";
import { toJsonText, wellFormed } from "./json.js";

/** One part of a turn. Exactly one of the three. */
export type PartInput =
  | { readonly text: string }
  /** A value as JSON text, kept byte for byte. */
  | { readonly json: string }
  /** A reference to what is no text. It is not fetched. */
  | { readonly media: { readonly mimeType?: string; readonly uri?: string; readonly sha256?: Uint8Array } };

/** A tool call that the model asks for. */
export interface ToolCallInput {
  readonly id?: string;
  readonly name?: string;
  /** The arguments as JSON text, kept byte for byte. */
  readonly argsJson?: string;
  /** The arguments as a value, where no text is given. */
  readonly args?: unknown;
}

/** One turn of a conversation. */
export interface MessageInput {
  /** `system`, `developer`, `user`, `human`, `assistant`, `ai`, `model`, `tool` or `function`. */
  readonly role: string;
  /** What is said: a text, or parts in order. */
  readonly content?: string | readonly PartInput[];
  /** What is said, as a text. */
  readonly text?: string;
  /** What is said, as parts. */
  readonly parts?: readonly PartInput[];
  /** Name of the speaker or tool. */
  readonly name?: string;
  /** In a tool turn: the call this is the result of. */
  readonly toolCallId?: string;
  /** Tools the model asks for. */
  readonly toolCalls?: readonly ToolCallInput[];
}

const MEMBERS = ["role", "content", "text", "parts", "name", "toolCallId", "toolCalls"];

/**
 * A conversation as the contract has it. A string is one message of a user.
 *
 * A member that is not known is an error: what is not read would not be judged. So is a lone surrogate, which would be
 * judged as another character than it is.
 */
export function messagesOf(given: string | readonly MessageInput[]): Message[] {
  if (typeof given === "string") return [Message.create({ role: "user", text: wellFormed(given, "the text") })];
  if (!Array.isArray(given)) throw new ConfigurationError("messages are a string, or a list of { role, text }.");
  return given.map(messageOf);
}

function messageOf(given: MessageInput, index: number): Message {
  const at = `messages[${index}]`;
  known(given, MEMBERS, at);
  const said = (["content", "text", "parts"] as const).filter(
    (member) => given[member] !== undefined && given[member] !== null,
  );
  if (said.length > 1)
    throw new ConfigurationError(`${at} has both \`${said[0]}\` and \`${said[1]}\`; give one of them.`);
  const content: unknown = given.content ?? given.text ?? given.parts;
  const message = Message.create({ role: text(given.role, `${at}.role`) });
  if (typeof content === "string") message.text = wellFormed(content, `${at}.${said[0]}`);
  else if (Array.isArray(content) && said[0] !== "text") {
    message.parts = { parts: content.map((part: PartInput, number) => partOf(part, `${at}.${said[0]}[${number}]`)) };
  } else if (content !== undefined)
    throw new ConfigurationError(`${at}.${said[0]} is ${typeof content}; give a string.`);
  message.name = text(given.name ?? "", `${at}.name`);
  message.toolCallId = text(given.toolCallId ?? "", `${at}.toolCallId`);
  message.toolCalls = (given.toolCalls ?? []).map((call, number) => toolCallOf(call, `${at}.toolCalls[${number}]`));
  return message;
}

function partOf(given: PartInput, at: string): Part {
  known(given, ["text", "json", "media"], at);
  const names = Object.keys(given);
  if (names.length !== 1) throw new ConfigurationError(`${at} must have exactly one of text, json, media.`);
  if ("text" in given) return { text: text(given.text, `${at}.text`) };
  if ("json" in given) return { json: text(given.json, `${at}.json`) };
  known(given.media, ["mimeType", "uri", "sha256"], `${at}.media`);
  const { mimeType = "", uri = "", sha256 = new Uint8Array() } = given.media;
  return {
    media: {
      mimeType: text(mimeType, `${at}.media.mimeType`),
      uri: text(uri, `${at}.media.uri`),
      sha256: Buffer.from(sha256),
    },
  };
}

function toolCallOf(given: ToolCallInput, at: string): ToolCall {
  known(given, ["id", "name", "argsJson", "args"], at);
  const { id = "", name = "", argsJson, args } = given;
  const json = argsJson ?? (args === undefined ? "" : toJsonText(args, `${at}.args`));
  return { id: text(id, `${at}.id`), name: text(name, `${at}.name`), argsJson: text(json, `${at}.argsJson`) };
}

function text(value: unknown, at: string): string {
  if (typeof value !== "string") throw new ConfigurationError(`${at} is ${typeof value}; give a string.`);
  return wellFormed(value, at);
}

function known(given: unknown, members: readonly string[], at: string): void {
  if (typeof given !== "object" || given === null) throw new ConfigurationError(`${at} is no object.`);
  const unknown = Object.keys(given).find((member) => !members.includes(member));
  if (unknown !== undefined) {
    const list = members.join(", ");
    throw new ConfigurationError(`${at} has the member \`${unknown}\`, which would not be judged; known are ${list}.`);
  }
}
