"""The pages for Python programmers: every fenced block is run in the order of the page, and prints what the page says.

A shell does what a reader does. Two programs are stood in for: `git clone` hands over this very source, and `cargo
build` the binary that is being tested. The address of the page is replaced by that of a free port.
"""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import socket
import stat
import subprocess
import sys
import sysconfig
import textwrap

import pytest

from conftest import ROOT

PAGES = {"quickstart": ROOT / "docs" / "QUICKSTART_PYTHON.md", "readme": ROOT / "sdk" / "python" / "README.md"}
ADDRESS = "127.0.0.1:50051"
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

GIT = """#!/bin/sh
[ "$*" = "clone https://github.com/your-org/portcullis" ] || { echo "git $*?" >&2; exit 1; }
mkdir -p portcullis/sdk/python
cp -R "$SOURCE/sdk/python/pyproject.toml" "$SOURCE/sdk/python/README.md" "$SOURCE/sdk/python/src" portcullis/sdk/python
"""
CARGO = """#!/bin/sh
[ "$*" = "build --release" ] || { echo "cargo $*?" >&2; exit 1; }
mkdir -p target/release
ln -s "$TEST_SERVER" target/release/portcullis
"""


def blocks(page):
    found = [(kind, textwrap.dedent(code)) for _, kind, code in FENCE.findall(page.read_text(encoding="utf-8"))]
    assert found
    assert {kind for kind, _ in found} <= {"sh", "python", "text"}, "a block that nobody runs"
    return found


def free_address():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def script(found, address):
    """One shell program of all blocks, each with its output in a file of its own; and what the page says of each."""
    lines, wanted = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", "top=$PWD"], {}
    for index, (kind, code) in enumerate(found):
        code = code.replace(ADDRESS, address)
        if kind == "text":
            wanted[f"out.{index - 1}"] = code
            continue
        if kind == "python":
            code = f"python - <<'PYTHON'\n{code}PYTHON\n"
        # The default address of the page's first question.
        code = code.replace("portcullis.Client()", f'portcullis.Client("{address}")')
        lines.append(f'{{\n{code}}} >"$top/out.{index}"')
    return "\n".join(lines) + "\n", wanted


def run(page, folder, address, prelude=""):
    program = folder / "bin"
    program.mkdir()
    for name, text in (("git", GIT), ("cargo", CARGO)):
        (program / name).write_text(text)
        (program / name).chmod(stat.S_IRWXU)
    text, wanted = script(blocks(page), address)
    environment = {
        "PATH": f"{program}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "SOURCE": str(ROOT),
        "TEST_SERVER": os.environ["TEST_SERVER"],
        "PORTCULLIS_SERVER__LISTEN": address,
        "PORTCULLIS_HTTP__LISTEN": "127.0.0.1:0",
        # What the package needs is there already, so that nothing is fetched.
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_INDEX": "1",
        # Its sense is turned round: 0 says "no isolation".
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    (folder / "page.sh").write_text(f"cd {shlex.quote(str(folder))}\n{prelude}{text}")
    ran = subprocess.run(
        ["bash", folder / "page.sh"], env=environment, cwd=folder, capture_output=True, text=True, timeout=80
    )
    said = {path.name: path.read_text() for path in sorted(folder.glob("out.*"))}
    assert ran.returncode == 0, f"{ran.stderr}\n{said}"
    return wanted, said, ran.stderr


def test_quickstart(tmp_path):
    wanted, said, stderr = run(PAGES["quickstart"], tmp_path, free_address())
    assert len(wanted) >= 6
    for name, text in wanted.items():
        assert said[name] == text, stderr


def test_readme(tmp_path):
    for name in ("ca.pem", "client.pem", "client.key", "token"):
        (tmp_path / name).write_text("x")
    # The page begins where the quickstart ends: with a service that runs.
    start = (
        '"$TEST_SERVER" serve 2>serve.log &\n'
        'for _ in $(seq 600); do if grep -q \'"message":"serving"\' serve.log; then break; fi; sleep 0.05; done\n'
    )
    wanted, said, stderr = run(PAGES["readme"], tmp_path, free_address(), start)
    assert wanted
    for name, text in wanted.items():
        assert said[name] == text, stderr


def test_the_quickstart_has_at_most_six_commands_to_the_first_answer():
    text = PAGES["quickstart"].read_text(encoding="utf-8")
    numbered = re.findall(r"^(\d+)\. ", text, re.MULTILINE)
    assert numbered == [str(number) for number in range(1, len(numbered) + 1)]
    assert len(numbered) <= 6
    before = [kind for kind, _ in blocks(PAGES["quickstart"])]
    assert before[: len(numbered)] == ["sh"] * len(numbered)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
