// The rules of the examples: which pages may an agent fetch, and which names must it not speak of?
//
// Unlisted hosts are blocked, hosts of the intranet need a person's word, and plain HTTP becomes HTTPS. Names of projects
// that are not public are found in messages. Replace this file by your own rules; the servers beside it stay as they are.

const ALLOWED_HOSTS = new Set(["nodejs.org", "example.com", "www.example.com"]);
const INTRANET = ".corp.example";

/** Category of what is found in messages. */
export const CATEGORY = "confidential";

/** Where names that are not public stand, in units of UTF-16. */
export function namesIn(text: string): { start: number; end: number }[] {
  const matches = [...text.matchAll(/\bproject (?:nightingale|osprey)\b/gi)];
  return matches.map((match) => ({ start: match.index, end: match.index + match[0].length }));
}

/** The JSON form of InterceptResponse. What is left out changes nothing. */
export interface Verdict {
  decision: "DECISION_ALLOW" | "DECISION_ASK" | "DECISION_BLOCK";
  argsJson?: string;
  reason?: string;
}

export function judge(hook: string, toolName: string, argsJson: string): Verdict {
  if (hook !== "HOOK_TOOL_BEFORE" || toolName !== "web_fetch") return { decision: "DECISION_ALLOW" };
  // An argument may be missing or of any type: whatever cannot be judged is blocked, not passed.
  let args: Record<string, unknown>;
  let url: URL;
  try {
    args = JSON.parse(argsJson);
    url = new URL(String(args["url"]));
  } catch {
    return { decision: "DECISION_BLOCK", reason: "the call has no url that can be read" };
  }
  // Programs disagree about where the host of such a URL is.
  if (/[\\@\u0000- ]/.test(String(args["url"]))) {
    return { decision: "DECISION_BLOCK", reason: "the url holds a user, a backslash or a blank" };
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return { decision: "DECISION_BLOCK", reason: "only http and https pages may be fetched" };
  }
  const host = url.hostname.replace(/\.$/, "");
  if (host.endsWith(INTRANET)) {
    return { decision: "DECISION_ASK", reason: `${host} is a host of the intranet` };
  }
  if (!ALLOWED_HOSTS.has(host)) {
    return { decision: "DECISION_BLOCK", reason: `${host} is not on the list of allowed hosts` };
  }
  if (url.protocol === "http:") {
    url.protocol = "https:";
    const changed = JSON.stringify({ ...args, url: url.href });
    return { decision: "DECISION_ALLOW", argsJson: changed, reason: "http became https" };
  }
  return { decision: "DECISION_ALLOW" };
}
