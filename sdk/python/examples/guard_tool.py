"""A tool under guard: what is harmless runs, what would destroy something does not. `guard_tool.py [ADDRESS]`"""

import subprocess
import sys

from portcullis import Blocked, Client, Interception


def approve(asked: Interception) -> bool:
    """Where a person sits, ask them. Here nobody does, so nothing is approved."""
    print(f"needs a person: {asked.block_reason}")
    return False


def main(address: str) -> None:
    with Client(address, context={"agent_id": "example"}) as client:

        @client.guard_tool(on_ask=approve, on_warn=lambda told: print(f"warning: {told.findings[0].description}"))
        def bash(command: str) -> str:
            """Runs a command of the shell."""
            return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=10).stdout

        print(bash("echo hello").strip())
        # The result reaches the agent without the address in it.
        print(bash("echo Write to jane.roe@corp-mail.net").strip())
        try:
            bash("rm -rf /")
        except Blocked as blocked:
            print(f"{blocked.decision}: {blocked.block_reason}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051")
