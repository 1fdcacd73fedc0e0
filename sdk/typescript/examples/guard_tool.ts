// A tool that runs shell commands, under guard.
import { exec } from "node:child_process";
import { promisify } from "node:util";
import { BlockedError, Portcullis } from "@portcullis/sdk";

const portcullis = new Portcullis({ context: { agentId: "example" } });

async function bash({ command }: { command: string }): Promise<string> {
  const { stdout } = await promisify(exec)(command);
  return stdout;
}

const guarded = portcullis.guardTool(bash, {
  environment: { cwd: process.cwd(), home: process.env["HOME"] ?? "" },
  // Nobody is here to be asked: every question is refused.
  onAsk: () => false,
  onWarn: (notice) => console.error(`warning: ${notice.findings[0]?.description}`),
});

console.log(await guarded({ command: "echo write to ada@example.org" }));
try {
  await guarded({ command: "rm -rf / --no-preserve-root" });
} catch (error) {
  if (!(error instanceof BlockedError)) throw error;
  console.log(`blocked: ${error.blockReason}`);
  console.log(error.blockedResultJson);
}
