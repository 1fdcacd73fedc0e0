/**
 * Values to JSON text and back, without a silent change on either way.
 *
 * What the guard judges must be what the tool gets. `JSON.stringify` leaves out functions, makes NaN `null`, asks objects
 * for a text of their own choice (`toJSON`) and drops what a class hides. Such values are refused here, with their place.
 */

import { PortcullisError, UnserializableError } from "./errors.js";

/** A value that JSON carries as it is. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [member: string]: JsonValue };

/** What to do about half of a pair, which would be judged as U+FFFD and used as it is. */
const WELL_FORMED = "do not cut between the halves of a character, or make it well formed with toWellFormed()";

/** Deepest nesting that is walked; the service takes less than that. */
const DEPTH_MAX = 500;

/**
 * The JSON text of a value.
 *
 * @param subject what the value is, for the error: `the arguments of tool X`
 * @throws {UnserializableError} for what JSON cannot carry: lone surrogates, BigInt, functions, symbols, cycles, NaN and infinities, holes
 * and undefined in lists, undefined itself, and objects of classes (Date, Map, Buffer, …). Members that are undefined are
 * left out.
 */
export function toJsonText(value: unknown, subject: string): string {
  return JSON.stringify(copy(value, "$", subject, [])) as string;
}

/** A plain copy, made by reading each member once, so that getters and proxies cannot answer twice. */
function copy(value: unknown, path: string, subject: string, above: object[]): JsonValue {
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) throw refused(path, subject, "a string with a lone surrogate", WELL_FORMED);
      return value;
    case "boolean":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw refused(path, subject, `the number ${value}`, "use null or a string");
      return value;
    case "bigint":
      throw refused(path, subject, "a BigInt", "use a number, or a string of digits");
    case "function":
    case "symbol":
      throw refused(path, subject, `a ${typeof value}`, "leave it out");
    case "undefined":
      throw refused(path, subject, "undefined", "use null, or leave the member out");
    case "object":
    default:
  }
  if (value === null) return null;
  const object = value as object;
  if (above.includes(object)) throw refused(path, subject, "a cycle", "break it");
  if (above.length >= DEPTH_MAX) throw refused(path, subject, `more than ${DEPTH_MAX} levels`, "flatten it");
  above.push(object);
  const copied = Array.isArray(object)
    ? copyList(object, path, subject, above)
    : copyObject(object, path, subject, above);
  above.pop();
  return copied;
}

function copyList(list: unknown[], path: string, subject: string, above: object[]): JsonValue[] {
  // An index loop, as holes must be seen.
  const copied: JsonValue[] = [];
  for (let index = 0; index < list.length; index++) copied.push(copy(list[index], `${path}[${index}]`, subject, above));
  return copied;
}

function copyObject(object: object, path: string, subject: string, above: object[]): JsonValue {
  const prototype: unknown = Object.getPrototypeOf(object);
  // An object of another realm (a vm context) is plain too: its prototype is the last one of its chain.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  if (!isPlain) {
    const name = (object as { constructor?: { name?: unknown } }).constructor?.name;
    const what = typeof name === "string" && name !== "" ? `an object of class ${name}` : "an object of a class";
    throw refused(
      path,
      subject,
      what,
      "use a plain object, list, number or string, such as an ISO date or base64 text",
    );
  }
  // No prototype, so that a member called `__proto__` stays a member.
  const copied = Object.create(null) as { [member: string]: JsonValue };
  for (const member of Object.keys(object)) {
    const inner = (object as Record<string, unknown>)[member];
    if (inner === undefined) continue;
    if (!member.isWellFormed())
      throw refused(memberPath(path, member), subject, "named with a lone surrogate", WELL_FORMED);
    copied[member] = copy(inner, memberPath(path, member), subject, above);
  }
  return copied;
}

function memberPath(path: string, member: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(member) ? `${path}.${member}` : `${path}[${JSON.stringify(member)}]`;
}

function refused(path: string, subject: string, what: string, advice: string): UnserializableError {
  return new UnserializableError(
    path,
    `${subject} cannot be judged: ${path} is ${what}, which JSON does not carry; ${advice}.`,
  );
}

/**
 * A text that travels as it is.
 *
 * @throws {UnserializableError} for a lone surrogate: half of a character has no UTF-8, so something else would be judged
 */
export function wellFormed(text: string, at: string): string {
  if (text.isWellFormed()) return text;
  throw new UnserializableError(at, `${at} cannot be judged: it holds a lone surrogate; ${WELL_FORMED}.`);
}

/**
 * The value of a JSON text that the service sent.
 *
 * @throws {PortcullisError} when it is no JSON, or holds a number that JavaScript would round
 */
export function fromJsonText(text: string, subject: string): JsonValue {
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new PortcullisError(`${subject} came back as no JSON: ${(error as Error).message}`, { cause: error });
  }
  const rounded = roundedNumber(text);
  if (rounded !== undefined) {
    throw new PortcullisError(
      `${subject} came back with the number ${rounded}, which JavaScript would round; have the policy write it as a string.`,
    );
  }
  return value;
}

/** The first number of a JSON text whose value a double does not hold; fractions are meant to be rounded. */
function roundedNumber(text: string): string | undefined {
  // By hand, as an expression that skips strings would need a stack as deep as a string is long.
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      for (at++; text.charCodeAt(at) !== QUOTE; at++) if (text.charCodeAt(at) === BACKSLASH) at++;
    } else if (unit === MINUS || isDigit(unit)) {
      let end = at + 1;
      while (isNumberPart(text.charCodeAt(end))) end++;
      const token = text.slice(at, end);
      if (isRounded(token)) return token;
      at = end - 1;
    }
  }
  return undefined;
}

const [QUOTE, BACKSLASH, MINUS] = [0x22, 0x5c, 0x2d];

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}

function isNumberPart(unit: number): boolean {
  return isDigit(unit) || unit === 0x2e || unit === 0x2b || unit === MINUS || unit === 0x65 || unit === 0x45;
}

function isRounded(token: string): boolean {
  // Fewer than 16 digits always fit.
  if (token.length < 16 && !/[eE]/.test(token)) return false;
  const value = Number(token);
  if (!Number.isFinite(value)) return true;
  if (/[.eE]/.test(token)) return false;
  // `JSON.stringify` itself writes large doubles with digits that are not theirs: those come back as they went.
  return String(value) !== token && BigInt(value) !== BigInt(token);
}
