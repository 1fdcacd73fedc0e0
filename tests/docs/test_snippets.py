"""Settings, policies, rules and code that the pages show are taken by the program that they are for."""

import json
import os
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from conftest import WAIT_S, make_archive, write
from pages import FENCE, PAGES, ROOT, blocks

# Snippets that are a part of something: what stands around them, by the beginning of the block.
AROUND = {
    "moderation:": "extensions:\n  plugins:\n    {}",
    "- id: acme:classifier": "name: part\ninterceptors:\n  {}",
}
# YAML that another program reads; it must parse.
OTHERS = {
    "# .github/workflows/skills.yml": "GitHub Actions",
    "livenessProbe:": "Kubernetes",
    "containers:": "Kubernetes",
    "guardrails:\n  - guardrail_name:": "LiteLLM",
    "promptGuard:": "agentgateway",
    "config:": "values of the chart, rendered by tests/deploy",
    '- name: "ci"': "a file of tokens whose hash is cut short",
}
# Code that tests of its own pages run.
CODE_ELSEWHERE = {
    "docs/QUICKSTART_PYTHON.md": "sdk/python/tests/test_pages.py",
    "docs/QUICKSTART_TYPESCRIPT.md": "sdk/typescript/test/quickstart.test.ts",
    "sdk/python/README.md": "sdk/python/tests/test_pages.py",
}
SETTINGS_ONLY = {"server", "http", "data_dir", "auth", "client", "rate_limit", "policy", "extensions", "llm", "llama_guard", "log", "store", "bundles", "guardrails"}
POLICY_ONLY = {"name", "extends", "thresholds", "categories", "suppressions", "interceptors", "tools", "workspace_roots", "streams"}


def indented(text, pattern):
    """`text` in the place of `{}`, each line as deep as that."""
    line = next(line for line in pattern.splitlines() if "{}" in line)
    depth = " " * line.index("{}")
    return pattern.replace("{}", text.rstrip().replace("\n", f"\n{depth}")) + "\n"


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_yaml_is_accepted(work, tmp_path, block):
    text = block.text
    for start, around in AROUND.items():
        if text.startswith(start):
            text = indented(text, around)
    found = yaml.safe_load(text)
    assert found
    if any(block.text.startswith(start) for start in OTHERS):
        return
    if "cases" in found:
        write(work.folder / "page-tests/page.yaml", text)
        check(work, "portcullis policy test page-tests --policy-path ./policies")
    elif SETTINGS_ONLY & set(found) or "portcullis.yaml" in text.splitlines()[0]:
        assert not POLICY_ONLY & set(found), "settings and policy in one"
        file = tmp_path / "portcullis.yaml"
        file.write_text(text)
        check(work, f"portcullis config --config {file}")
    else:
        assert isinstance(found, dict)
        write(tmp_path / "policies/page.yaml", text if "name" in found else f"name: page\n{text}")
        check(work, f"portcullis policy validate {tmp_path}/policies")


def check(work, command):
    result = work.run(command)
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_toml_rules_pass_their_tests(work, tmp_path, block):
    found = tomllib.loads(block.text)
    named = re.match(r"# my-rules/(\S+\.toml)", block.text)
    if named:
        path = named[1]
    elif any("text" in rule or "call" in rule for rule in found.get("rule", [])):
        path = "bundles/page.toml"
    elif any(rule["id"].startswith("stream.") for rule in found.get("rule", [])):
        path = "streams/page.toml"
    else:
        path = "injection/page.toml"
    write(tmp_path / "my-rules" / path, block.text)
    # A rule about streams may name rules about commands of this page.
    for other in blocks("toml"):
        if path.startswith("streams/") and other.page == block.page and (there := re.match(r"# my-rules/(commands/\S+)", other.text)):
            write(tmp_path / "my-rules" / there[1], other.text)
    check(work, f"portcullis rules test {tmp_path}/my-rules")


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_json_parses(block):
    json.loads(block.text)


@pytest.mark.parametrize("block", blocks("python", "js", "ts", "javascript", "typescript"), ids=str)
def test_code_runs(work, stubs, tmp_path, block):
    if block.page in CODE_ELSEWHERE:
        assert (ROOT / CODE_ELSEWHERE[block.page]).exists()
        return
    make_archive(tmp_path / "notes.zip", 2)
    (tmp_path / "proto").symlink_to(ROOT / "proto")
    code = work.here(block.text)
    if block.language == "python":
        write(tmp_path / "page.py", code)
        command, env = [sys.executable, "page.py"], {**work.env, "PYTHONPATH": str(stubs)}
    else:
        write(tmp_path / "page.mjs", code)
        (tmp_path / "node_modules").symlink_to(os.environ["TEST_NODE_MODULES"])
        command, env = ["node", "page.mjs"], work.env
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=WAIT_S)
    assert result.returncode == 0 and result.stdout.strip(), result.stdout + result.stderr
    assert re.search("BLOCK|PENDING", result.stdout), result.stdout


def test_what_is_said_not_to_be_caught_is_not(work):
    text = (ROOT / "docs/SECURITY_MODEL.md").read_text()
    section = re.search(r"\*\*Credentials and personal data\*\*\n(.*?)\n\*\*", text, re.S)[1]
    examples = re.findall(r"`([^`]+)`", section)
    assert len(examples) >= 6
    for example in examples:
        result = subprocess.run([work.bin / "portcullis", "check", example], cwd=work.folder, env=work.env, capture_output=True, text=True)
        assert result.returncode == 0, f"{example}: {result.stdout}{result.stderr}: it is caught; take it off the page"


def test_exceptions_occur():
    """An exception that no page needs any longer is taken off the list."""
    texts = [block.text for block in blocks("yaml")]
    for start in [*AROUND, *OTHERS]:
        assert any(text.startswith(start) for text in texts), start


def test_every_language_is_looked_at():
    """A block in a language that no test knows would go unread."""
    known = {"", "sh", "yaml", "toml", "json", "python", "js", "ts", "text", "promql"}
    found = {match[2] for page in PAGES for match in FENCE.finditer(page.read_text())}
    assert found <= known, found - known
