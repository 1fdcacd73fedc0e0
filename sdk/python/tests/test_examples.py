"""Every example runs as it is, in a process of its own, and says what it should."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"
SAID = {
    "guard_tool": ["hello", "Write to [EMAIL_1]", "BLOCK: Deletes the root of the tree"],
    "watch_child": ["Reading the login test", "killed by: verdict", "stream.delete at byte 25: rm -rf"],
    "review_bundle": ["0 of ", "SUBMISSION_STATUS_PENDING_LLM", "final"],
    "langchain_agent": [
        "tool: ls -la: done; mail [EMAIL_1] about it",
        'tool: {"status":"blocked","tool":"exec"',
        "ran: ['ls -la']\n",
        "refused: the conversation is refused",
    ],
    "langgraph_tools": ['1 error: {"status":"blocked","tool":"read"', '2 error: {"status":"blocked"'],
    "openai_agent": [
        "1: ls -la: done; mail [EMAIL_1] about it",
        '2: {"status":"blocked","tool":"exec"',
        "ran: ['ls -la']\n",
        "refused: ",
    ],
}


def test_every_example_is_told_of_here():
    assert sorted(SAID) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", sorted(SAID))
def test_example(server, name):
    ran = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", server.grpc], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    for said in SAID[name]:
        assert said in ran.stdout


def test_the_bench_tells_every_ratio_and_none_is_above_its_limit(server):
    """With PORTCULLIS_OVERHEAD_MAX, such as 1.10, that is the limit; without it a short run shows that the bench works."""
    bench = EXAMPLES.parent / "bench" / "overhead.py"
    limit = os.environ.get("PORTCULLIS_OVERHEAD_MAX")
    rounds = ["20"] if limit is None else ["3000", limit]
    ran = subprocess.run([sys.executable, bench, server.grpc, *rounds], capture_output=True, text=True, timeout=300)
    print(ran.stdout)
    assert ran.returncode == 0, ran.stderr
    assert [line.partition(":")[0] for line in ran.stdout.splitlines()] == [
        "CheckMessages, threads",
        "InterceptTool, threads",
        "CheckMessages, asyncio",
        "InterceptTool, asyncio",
    ]
    assert all(float(line.rpartition(" ")[2]) > 0 for line in ran.stdout.splitlines())


def test_the_bench_fails_above_its_limit(server):
    bench = EXAMPLES.parent / "bench" / "overhead.py"
    ran = subprocess.run([sys.executable, bench, server.grpc, "20", "0.01"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert "CheckMessages, threads: the ratio" in ran.stderr and "is above 0.01" in ran.stderr
