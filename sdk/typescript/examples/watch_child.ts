// Runs a command, shows its output, and kills it with everything it started when a verdict says so.
import { spawn } from "node:child_process";
import { Portcullis, VerdictKind } from "@portcullis/sdk";

const portcullis = new Portcullis();
const [command = "sh", ...args] = process.argv.slice(2);

const child = spawn(command, args, { detached: true, stdio: ["ignore", "pipe", "pipe"] });
const monitor = portcullis.attach(child, { goal: "Fix the login test", scope: "src/login" }, { passThrough: true });
const result = await monitor.done;

for (const { ruleId, category, verdict, matchedText } of monitor.getIncidents()) {
  console.log(`${VerdictKind[verdict]} ${ruleId} (${category}): ${matchedText}`);
}
console.log(result.killed ? "killed" : `ended with ${result.exitCode}`);
