/** Ends a process and everything of its group. */

import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";

/** What was signalled. `none`: the process had no id, or was gone. */
export type KillReach = "group" | "process" | "none";

/**
 * Continues and kills the process group that a child leads; the child alone where it leads none, as without
 * `detached: true`. The group of this very process is never signalled. What has moved to a group of its own lives on.
 *
 * @param wantsGroup false kills the one process
 */
export function killChild(child: ChildProcess, wantsGroup: boolean): KillReach {
  const { pid } = child;
  // 0, 1 and -1 mean whole crowds to kill(2).
  if (pid === undefined || !Number.isInteger(pid) || pid <= 1 || pid === process.pid) return "none";
  const hasEnded = child.exitCode !== null || child.signalCode !== null;
  if (process.platform === "win32") return !hasEnded && child.kill("SIGKILL") ? "process" : "none";
  if (wantsGroup && pid !== ownGroup() && !(hasEnded && isTaken(pid))) {
    // A stopped process may otherwise linger until somebody continues it.
    signal(-pid, "SIGCONT");
    if (signal(-pid, "SIGKILL")) return "group";
  }
  if (hasEnded) return "none";
  signal(pid, "SIGCONT");
  return signal(pid, "SIGKILL") ? "process" : "none";
}

/** Whether the id of a child that has ended belongs to another process by now; a group of that id is not ours then. */
function isTaken(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** The process group of this process, where that can be known. */
function ownGroup(): number | undefined {
  try {
    // proc(5): pid, (name), state, parent, group. The name may hold anything, brackets included.
    const stat = readFileSync("/proc/self/stat", "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]);
  } catch {
    return undefined;
  }
}

function signal(target: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(target, name);
  } catch {
    // Gone, or somebody else's.
    return false;
  }
}
