// Judges a message before a model gets it, and shows what was found and where.
import { Decision, Portcullis } from "@portcullis/sdk";

const portcullis = new Portcullis();
const text = "Write to ada@example.org 🙂, my SSN is 123-45-6789";

const answer = await portcullis.checkMessages([{ role: "user", text }], { redact: true });

console.log(Decision[answer.decision], answer.allowed ? "goes on" : "stops here");
for (const { category, span } of answer.findings) {
  if (span) console.log(`${category}: ${text.slice(span.start, span.end)}`);
}
console.log(answer.redactedMessages[0]?.text);
