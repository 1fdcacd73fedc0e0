"""Outputs that the pages show are what the program prints. `…` stands for anything."""

import re

import pytest
from conftest import SKILL, block_with, write
from pages import blocks

# Pages whose outputs are compared by tests of their own.
ELSEWHERE = {"docs/QUICKSTART_PYTHON.md", "docs/QUICKSTART_TYPESCRIPT.md", "sdk/python/README.md"}
RUN_PY = 'import base64\n\nexec(base64.b64decode("cHJpbnQoMSk="))\n'


def blocked_skill(work, folder):
    write(folder / "skills/notes/SKILL.md", SKILL.format(n="").replace("notes-", "notes").partition("\n\n# Notes")[0] + "\n\n# Notes\n")
    write(folder / "skills/notes/scripts/run.py", RUN_PY)
    return "portcullis review skills/notes"


def killed(work, folder):
    return "portcullis watch -- sh -c 'echo \"$ rm -rf --no-preserve-root /\"; sleep 5' 2>&1 >/dev/null"


def broken_policy(work, folder):
    write(folder / "policies/support.yaml", "name: support\n\ntreshold: 0.2\n\n\n\n\nrules:\n  pii.emial: {mode: off}\n")
    return "portcullis policy validate policies"


def good_rules(work, folder):
    write(folder / "my-rules/company/badges.toml", block_with("toml", "# my-rules/company/badges.toml"))
    return "portcullis rules test my-rules"


def bad_rules(work, folder):
    text = block_with("toml", "# my-rules/company/badges.toml")
    found = text.replace('"Part EMP-45320157 is in stock."', '"Badge EMP-45320157."')
    assert found != text
    write(folder / "my-rules/company/badges.toml", found)
    return "portcullis rules test my-rules 2>&1"


def rules_with_a_gap(work, folder):
    text = (
        'plugin = "code"\n\n[[rule]]\nid = "code.drop"\ncategory = "code.sql"\nseverity = "high"\n'
        """literals = ["drop table"]\npattern = 'drop(?:ped)?\\s{1,4}table'\n"""
        'description = "Drops a table."\nrecommendation = "Ask first."\n'
        'examples = ["drop table"]\nnegative_examples = ["drop it"]\n'
    )
    write(folder / "my-rules/db.toml", text)
    return "portcullis rules test my-rules"


# By the beginning of the output.
MAKERS = {
    "blocked_inline  skill": blocked_skill,
    "portcullis: KILL": killed,
    "policies/support.yaml:3:1": broken_policy,
    "1 rule, 3 texts": good_rules,
    "my-rules/company/badges.toml:2": bad_rules,
    "note: my-rules/db.toml:3": rules_with_a_gap,
}
# A listing of files, no output.
NO_OUTPUT = ["my-rules/\n"]
SHOWN = [
    block for block in blocks("", "text") if block.page not in ELSEWHERE and not any(block.text.startswith(start) for start in NO_OUTPUT)
]


@pytest.mark.parametrize("block", SHOWN, ids=str)
def test_outputs_are_what_is_printed(work, tmp_path, block):
    (maker,) = [each for start, each in MAKERS.items() if block.text.startswith(start)]
    command = maker(work, tmp_path)
    printed = work.run(f"cd {tmp_path} && {command}").stdout
    wanted = ".*".join(re.escape(part) for part in block.text.rstrip().split("…"))
    assert re.search(rf"(?m:^){wanted}", printed, re.S), f"{printed}\n--- is not\n{block.text}"
