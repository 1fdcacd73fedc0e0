// HTTP without a browser: every header as the test says, no redirect followed.

import { request } from "node:http";

/**
 * Sends one request.
 *
 * @returns {Promise<{status: number, headers: import("node:http").IncomingHttpHeaders, text: string, bytes: Buffer}>}
 */
export function send(base, path, { method = "GET", headers = {}, body } = {}) {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    // The path goes as it is: no dot is resolved, and nothing is encoded.
    const sent = request({ hostname, port, path, method, headers, insecureHTTPParser: false }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => {
        const bytes = Buffer.concat(parts);
        resolve({ status: answer.statusCode, headers: answer.headers, text: bytes.toString(), bytes });
      });
      answer.on("error", reject);
    });
    sent.setTimeout(30_000, () => sent.destroy(new Error(`no answer to ${method} ${path}`)));
    sent.on("error", reject);
    sent.end(body);
  });
}

/** The body and the headers of a form. */
export const form = (fields) => ({
  method: "POST",
  headers: { "content-type": "application/x-www-form-urlencoded" },
  body: new URLSearchParams(fields).toString(),
});

/** The body of a form with a file field, as browsers send it. */
export function multipart(fields) {
  const boundary = "----------------boundary-of-the-parts";
  const parts = Object.entries(fields).map(([name, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`);
  return { body: `${parts.join("")}--${boundary}--\r\n`, type: `multipart/form-data; boundary=${boundary}` };
}

/** Logs in; the visitor sends the cookie and, with forms, the token that belongs to it. */
export async function login(base, token) {
  const answer = await send(base, "/console/login", form({ token }));
  const cookie = answer.headers["set-cookie"]?.[0]?.split(";")[0];
  if (answer.status !== 303 || cookie === undefined) throw new Error(`no login: ${answer.status} ${answer.text}`);
  const get = (path, options = {}) => send(base, path, { ...options, headers: { ...options.headers, cookie } });
  const csrf = csrfOf((await get("/console/playground")).text) ?? csrfOf((await get("/console/submissions")).text);
  if (csrf === undefined) throw new Error("no page holds a token for forms");
  return {
    cookie,
    csrf,
    get,
    post: (path, fields = {}, headers = {}) => {
      const sent = form({ csrf, ...fields });
      return send(base, path, { ...sent, headers: { ...sent.headers, cookie, ...headers } });
    },
  };
}

/** The hidden field of forms. */
export const csrfOf = (html) => /name="csrf" value="([^"]+)"/.exec(html)?.[1];
