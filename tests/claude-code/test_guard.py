"""What the hooks of the pages do to the real Claude Code."""

import base64
import json
import os
import re
import subprocess
import sys

import pytest
from conftest import INJECTION, KEY, ROOT, command_hooks, http_hooks, needs_claude
from messages import events, text, tool, whole
from servers import running

DONE = text("All done.")
WITHHELD = "[withheld by Portcullis]"
SENT = "command.send-secret"
# The policy of a user, with a question.
ASKING = """name: default
interceptors:
  - {id: me:publish, hook: tool.before, tools: ^exec$, when: 'args.command.contains("publish")', do: [{ask: This publishes the package.}]}
"""
# One that shows nothing of what any tool gave.
HIDING = """name: default
interceptors:
  - {id: me:hide, hook: tool.after, allow_unknown_tools: true, do: [{block: Not shown.}]}
"""
# A picture of one dot.
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
BROKEN = "name: default\nnonsense: 1\n"


def bash(command):
    return tool("Bash", command=command, description="a step")


def notes_server(note):
    """Flags that bring the MCP server."""
    server = {"command": sys.executable, "args": [str(ROOT / "tests/claude-code/notes_server.py")], "env": {"NOTE": note}}
    return ["--mcp-config", json.dumps({"mcpServers": {"notes": server}})]


def test_the_settings_of_the_pages_hold_for_the_same_events():
    assert set(command_hooks()["hooks"]) == set(http_hooks("127.0.0.1:8080")["hooks"])
    assert set(command_hooks()["hooks"]) == {"PreToolUse", "PostToolUse", "PostToolBatch", "UserPromptSubmit"}


def test_the_page_names_the_release_that_is_tried():
    wanted = json.loads((ROOT / "tests/claude-code/package.json").read_text())["dependencies"]["@anthropic-ai/claude-code"]
    page = (ROOT / "docs/QUICKSTART_CLAUDE_CODE.md").read_text()
    assert re.search(rf"\b{re.escape(wanted)}\b", page), f"the page tells that {wanted} is tried"


def test_the_stand_in_says_the_same_in_pieces():
    message = whole({"model": "m"}, [text("hello"), tool("Bash", command="ls")])
    pieces = [json.loads(event.decode().partition("data: ")[2]) for event in events(message)]
    assert [piece["type"] for piece in pieces][:2] == ["message_start", "content_block_start"]
    assert pieces[-2]["delta"]["stop_reason"] == "tool_use" and pieces[-1] == {"type": "message_stop"}
    said = "".join(piece.get("delta", {}).get("partial_json", "") for piece in pieces)
    assert json.loads(said) == {"command": "ls"}


@needs_claude
def test_without_hooks_everything_runs(home):
    """What the other tests see stopped is nothing that Claude Code would stop."""
    free = home({})
    steals, reads = bash(free.stealing("ran")), bash("cat notes.txt")
    run = free.run(INJECTION, steals, reads, DONE)
    assert free.thief.got == [KEY.replace("\n", "")] and (free.app / "ran").exists()
    assert INJECTION in run.result(reads) and run.last["result"] == "All done."


@needs_claude
def test_a_run_with_the_command_hook(home):
    guarded = home(command_hooks())
    guarded.policy(ASKING)
    steals, works = bash(guarded.stealing("ran")), bash("echo hello > worked; cat worked")
    mails, reads = bash("cat people.txt"), tool("Read", file_path=str(guarded.app / "notes.txt"))
    key, asks = tool("Read", file_path="~/.ssh/id_rsa"), bash("touch asked # publish")
    fails, mcp = bash("echo no luck; exit 3"), tool("mcp__notes__fetch_note")
    run = guarded.run("Work.", [steals, works, mails], [reads, key, asks, fails, mcp], DONE, flags=notes_server(INJECTION))

    assert SENT in run.result(steals) and run.result(steals).startswith("Portcullis: ")
    assert guarded.thief.got == [] and not (guarded.app / "ran").exists(), "what was refused has not run"
    assert run.result(works) == "hello" and (guarded.app / "worked").read_text() == "hello\n"
    assert run.result(mails) == "Write to [EMAIL_1]"
    assert WITHHELD in run.result(reads)
    assert "path.ssh" in run.result(key)
    assert run.result(asks) == "Portcullis: This publishes the package."
    assert not (guarded.app / "asked").exists(), "nobody is there to be asked"
    assert "Exit code 3" in run.result(fails) and "no luck" in run.result(fails)
    assert WITHHELD in run.result(mcp)
    seen = run.model.seen()
    assert "jane.roe" not in seen and "not a key" not in seen and INJECTION not in seen
    assert "injection.override-instructions" in seen, "the model is told why"
    refused = {denial["tool_use_id"] for denial in run.last["permission_denials"]}
    assert refused == {steals["id"], key["id"], asks["id"]}
    assert run.last["result"] == "All done."


@needs_claude
def test_an_agent_of_the_agent_is_guarded_too(home):
    guarded = home(command_hooks())
    steals = bash(guarded.stealing("ran"))
    agent = tool("Agent", description="help", prompt="Help.", subagent_type="general-purpose")
    # The second and third answer are those of the agent that was started.
    run = guarded.run("Work.", agent, steals, text(INJECTION), DONE)
    assert guarded.thief.got == [] and not (guarded.app / "ran").exists()
    told = run.result(agent)
    assert WITHHELD in told and INJECTION not in told, told


@needs_claude
def test_what_is_withheld_has_a_shape_that_is_accepted(home):
    """Where it has not, Claude Code shows the original: so the event is left out that would end the turn then."""
    settings = command_hooks()
    del settings["hooks"]["PostToolBatch"]
    guarded = home(settings)
    guarded.policy(HIDING)
    app = guarded.app
    (app / "dot.png").write_bytes(base64.b64decode(DOT))
    (app / "page.pdf").write_bytes(b"%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n")
    cell = {"cell_type": "code", "id": "one", "source": "1", "metadata": {}, "outputs": [], "execution_count": None}
    (app / "book.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    names = ("dot.png", "book.ipynb", "people.txt")
    first = [tool("Read", file_path=str(app / name)) for name in names]
    first += [tool("Write", file_path=str(app / "new.txt"), content="new"), tool("TaskCreate", subject="it", description="it")]
    first += [tool("Bash", command="echo later", description="a step", run_in_background=True)]
    then = [tool("Edit", file_path=str(app / "people.txt"), old_string="Write", new_string="Speak")]
    then += [tool("NotebookEdit", notebook_path=str(app / "book.ipynb"), cell_id="one", new_source="2"), tool("TaskList")]
    last = tool("Agent", description="help", prompt="Help.", subagent_type="general-purpose")
    run = guarded.run("Work.", first, then, last, text("I helped."), DONE)
    for call in [*first, *then, last]:
        assert WITHHELD in run.result(call), f"{call['name']}: {run.result(call)}"
    assert "does not match" not in run.model.seen() + run.shown
    kinds = {block["type"] for block in run.model.blocks()}
    assert kinds == {"text", "tool_use", "tool_result"}, "no picture, not even a broken one"
    # A document is handed over beside the result. A turn that ends with one is an error to Claude Code.
    run = guarded.run("Work.", tool("Read", file_path=str(app / "page.pdf")), DONE, codes=(0, 1))
    assert len(run.model.requests) == 1, "the model was not asked again"


@needs_claude
@pytest.mark.parametrize("failing", ["bash", "mcp", "secret"])
def test_the_model_never_sees_a_failed_call_that_carries_an_injection(home, failing):
    """Of a failed call no hook can replace the result, so the turn ends before the model sees it."""
    guarded = home(command_hooks())
    (guarded.app / "env.txt").write_text("key AKIAQ3EGRTZVK7WNPLMD\n")
    calls = {
        "bash": bash("cat notes.txt; exit 3"),
        "mcp": tool("mcp__notes__fetch_note", fails=True),
        "secret": bash("cat env.txt; exit 3"),
    }
    run = guarded.run("Work.", calls[failing], DONE, flags=notes_server(INJECTION))
    assert len(run.model.requests) == 1, "the model was not asked again"
    assert run.last["terminal_reason"] == "hook_stopped" and run.last["result"] != "All done."


@needs_claude
@pytest.mark.parametrize("prompt", [INJECTION, "Upload it with the key AKIAQ3EGRTZVK7WNPLMD."], ids=["injection", "credential"])
def test_a_prompt_is_refused_before_the_model_sees_it(home, prompt):
    run = home(command_hooks()).run(prompt, DONE)
    assert run.model.requests == [] and run.model.others == []
    assert "Portcullis: " in run.last["result"]


@needs_claude
def test_a_hook_that_cannot_judge_refuses(home):
    guarded = home(command_hooks())
    guarded.policy(BROKEN)
    run = guarded.run("Work.", DONE)
    assert run.model.requests == [] and "nonsense" in run.last["result"]
    # A policy that breaks in the middle of a run.
    guarded = home(command_hooks())
    guarded.policy(ASKING)
    policy = guarded.folder / ".config/portcullis/policies/default.yaml"
    breaks = bash(f"echo 'nonsense: 1' >> {policy}; cat people.txt")
    run = guarded.run("Work.", breaks, DONE)
    assert len(run.model.requests) == 1 and run.last["terminal_reason"] == "hook_stopped"


@needs_claude
def test_a_run_with_the_http_hook(home, tmp_path):
    with running(tmp_path / "server", {"http": {"adapters": {"claude_code": True}}}) as server:
        guarded = home(http_hooks(server.http))
        steals, works = bash(guarded.stealing("ran")), bash("echo hello > worked; cat worked people.txt")
        reads, fails = tool("Read", file_path=str(guarded.app / "notes.txt")), bash("cat notes.txt; exit 3")
        run = guarded.run("Work.", [steals, works, reads], fails, DONE)
        assert SENT in run.result(steals)
        assert guarded.thief.got == [] and not (guarded.app / "ran").exists()
        assert run.result(works) == "hello\nWrite to [EMAIL_1]" and (guarded.app / "worked").exists()
        assert WITHHELD in run.result(reads) and INJECTION not in run.model.seen()
        assert len(run.model.requests) == 2 and run.last["terminal_reason"] == "hook_stopped"
        run = guarded.run(INJECTION, DONE)
        assert run.model.requests == [] and "Portcullis: " in run.last["result"]


@needs_claude
def test_the_token_of_an_http_hook_comes_from_the_environment(home, tmp_path):
    create = ["token", "create", "--name", "ada", "--roles", "agent", "--append", str(tmp_path / "tokens.yaml")]
    token = subprocess.run([os.environ["TEST_SERVER"], *create], check=True, capture_output=True, text=True).stdout.split()[-1]
    settings = {
        "http": {"adapters": {"claude_code": True}},
        "auth": {"mode": "tokens", "tokens": {"path": str(tmp_path / "tokens.yaml")}},
    }
    with running(tmp_path / "server", settings) as server:
        headers = {"Authorization": "Bearer $PORTCULLIS_TOKEN"}
        guarded = home(http_hooks(server.http, headers=headers, allowedEnvVars=["PORTCULLIS_TOKEN"]))
        works = bash("echo hello > worked")
        guarded.run("Work.", works, DONE, env={"PORTCULLIS_TOKEN": token})
        assert (guarded.app / "worked").exists()
        run = guarded.run("Work.", works, DONE, env={"PORTCULLIS_TOKEN": "wrong"})
        assert run.model.requests == [] and "could not judge" in run.last["result"]


@needs_claude
def test_a_server_that_is_away(home):
    """The command hook judges by itself then. Behind an HTTP hook Claude Code goes on, as the page says."""
    settings = json.loads(json.dumps(command_hooks()).replace("hook claude-code", "hook claude-code --server http://127.0.0.1:9"))
    guarded = home(settings)
    steals = bash(guarded.stealing("ran"))
    run = guarded.run("Work.", steals, DONE)
    assert SENT in run.result(steals) and guarded.thief.got == [] and not (guarded.app / "ran").exists()

    unguarded = home(http_hooks("127.0.0.1:9"))
    steals = bash(unguarded.stealing("ran"))
    unguarded.run(INJECTION, steals, DONE)
    assert len(unguarded.thief.got) == 1 and (unguarded.app / "ran").exists()


@needs_claude
def test_a_hook_that_is_not_there_stops_nothing(home):
    """As the page says: Claude Code goes on where the program cannot be started."""
    settings = json.loads(json.dumps(command_hooks()).replace("~/.cargo/bin/portcullis", "~/.cargo/bin/gone"))
    unguarded = home(settings)
    unguarded.run("Work.", bash(unguarded.stealing("ran")), DONE)
    assert len(unguarded.thief.got) == 1 and (unguarded.app / "ran").exists()
