"""A child process that is watched, and killed when its output says that it must be. `watch_child.py [ADDRESS]`"""

import subprocess
import sys

from portcullis import Client

# Stands for an agent: it works, then prints the command it is about to run.
AGENT = """
echo 'Reading the login test'
echo '$ rm -rf --no-preserve-root /'
sleep 60
"""


def main(address: str) -> None:
    with Client(address) as client:
        agent = subprocess.Popen(
            ["sh", "-c", AGENT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        watch = client.attach(
            agent,
            {"goal": "Fix the login test", "scope": "src/login"},
            stdout=sys.stdout,
            stderr=sys.stderr,
            on_disconnect="kill",
        )
        ended = watch.wait(timeout=30)
        print(f"killed by: {ended.killed_by}")
        for incident in watch.get_incidents():
            print(f"{incident.rule_id} at byte {incident.offset}: {incident.matched_text}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051")
