// A model that reviews bundles: the wire format of Ollama's `/api/chat`, and an answer that comes when the test says so.

import { createServer } from "node:http";

/** An answer that lets a bundle pass, with changes. */
export const verdict = (changes = {}) => ({
  risk_level: "safe",
  summary: "A skill that keeps notes.",
  findings: [],
  placeholders: 0,
  ...changes,
});

/** Starts it on a free port. Until `hold` every question is answered at once. */
export async function startModel() {
  const waiting = [];
  const watchers = [];
  let held = false;
  let said = verdict();

  const answer = ({ response, model }, content) => {
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        model,
        created_at: "2026-01-01T00:00:00Z",
        message: { role: "assistant", content: JSON.stringify(content) },
        done: true,
        done_reason: "stop",
        total_duration: 5_000_000,
        prompt_eval_count: 1000,
        eval_count: 100,
      }),
    );
  };
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      if (request.url !== "/api/chat") {
        response.statusCode = 404;
        response.end('{"error":"no such endpoint"}');
        return;
      }
      const question = { response, model: JSON.parse(Buffer.concat(parts).toString()).model };
      if (held) {
        waiting.push(question);
        for (const told of watchers.splice(0)) told();
      } else {
        answer(question, said);
      }
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** What it answers from now on. */
    says(content) {
      said = content;
    },
    /** Lets every question wait from now on. */
    hold() {
      held = true;
    },
    /** Resolves once a question waits. */
    asked() {
      return waiting.length > 0 ? Promise.resolve() : new Promise((told) => watchers.push(told));
    },
    /** Answers what waits, and what comes. */
    release(content = said) {
      held = false;
      said = content;
      for (const question of waiting.splice(0)) answer(question, content);
    },
    stop() {
      server.closeAllConnections();
      return new Promise((done) => server.close(done));
    },
  };
}
