/** Where the bearer token of a call comes from. */

import { readFile } from "node:fs/promises";

import { ConfigurationError } from "./errors.js";
import type { TokenSource } from "./options.js";

const REFRESH_MS = 5_000;

/** A token that may change while the client lives. */
export interface Token {
  /** The token to send now. A string where it is at hand, so that most calls need not wait. */
  current(): string | Promise<string>;
  /** Forgets what was read, as the service has refused it. False when a new look would find the same. */
  refused(): boolean;
}

/** Reads a token source; undefined when there is none. */
export function tokenOf(source: TokenSource | undefined): Token | undefined {
  if (source === undefined) return undefined;
  if (typeof source === "string") {
    const token = checked(source, "`token`");
    return { current: () => token, refused: () => false };
  }
  if (typeof source === "function") {
    const ask = async () => checked(await source(), "what the `token` function answered");
    return { current: ask, refused: () => true };
  }
  if (typeof source !== "object" || source === null || typeof source.file !== "string") {
    throw new ConfigurationError("`token` is a string, a function that answers one, or { file }.");
  }
  return new FileToken(source.file, source.refreshMs ?? REFRESH_MS);
}

/** A token in a file that is written anew from time to time, as Kubernetes does. */
class FileToken implements Token {
  #last: { token: string; readAt: number } | undefined;
  #reading: Promise<string> | undefined;

  constructor(
    readonly path: string,
    readonly refreshMs: number,
  ) {}

  current(): string | Promise<string> {
    if (this.#last !== undefined && performance.now() - this.#last.readAt < this.refreshMs) return this.#last.token;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  refused(): boolean {
    this.#last = undefined;
    return true;
  }

  async #read(): Promise<string> {
    let text: string;
    try {
      text = await readFile(this.path, "utf8");
    } catch (error) {
      throw new ConfigurationError(`the token file cannot be read: ${(error as Error).message}`, { cause: error });
    }
    const token = checked(text.trim(), `the token file ${this.path}`);
    this.#last = { token, readAt: performance.now() };
    return token;
  }
}

/** A token that a header can carry. The text of a wrong one is never shown. */
function checked(token: unknown, what: string): string {
  if (typeof token !== "string" || token === "")
    throw new ConfigurationError(`${what} is empty; give the token as text.`);
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new ConfigurationError(`${what} holds white space or characters outside of ASCII, which a token never does.`);
  }
  return token;
}
