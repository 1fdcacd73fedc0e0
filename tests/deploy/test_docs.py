"""docs/KUBERNETES.md: what it tells to type works."""

import re
import shlex

import pytest
from conftest import CHART, DEPLOY, ROOT, helm
from service import run

TEXT = (ROOT / "docs" / "KUBERNETES.md").read_text()
NUMBER = {"five": 5, "six": 6}
COMMANDS = re.findall(r"^\d+\. `(.*?)`", TEXT, re.M) + [
    line.split("# ")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.S)
    for line in block.splitlines()
    if line.strip()
]  # fmt: skip


def test_quick_starts_are_short():
    found = re.findall(r"^## (.*?) in (\w+) commands\n(.*?)(?=^## )", TEXT, re.M | re.S)
    assert [title for title, _, _ in found] == ["A guarded agent", "A dashboard with data"]
    for _, number, text in found:
        steps = re.findall(r"^(\d+)\. `", text, re.M)
        assert [int(step) for step in steps] == list(range(1, NUMBER[number] + 1))
        assert len(steps) <= 6


def test_files_are_there():
    for command in COMMANDS:
        # `deploy/portcullis` is a Deployment to kubectl.
        command = command.replace("exec deploy/portcullis ", "exec ")
        for path in re.findall(r"(?<![\w/.])(deploy/[\w./-]+|tests/[\w./-]+)", command):
            assert (ROOT / path).exists() or path == "deploy/.env", path
    for path in re.findall(r"`(deploy/[\w./-]+)`", TEXT):
        # Rules and dashboards may be absent as a whole.
        assert (ROOT / path).exists() or path in ("deploy/prometheus", "deploy/grafana", "deploy/.env"), path


def test_calls_of_the_program_are_known():
    commands = {line.split()[0] for line in run("--help").stdout.splitlines() if re.match(r"  [a-z]", line)}
    assert {"config", "watch"} <= commands
    found = 0
    for command in COMMANDS:
        words = shlex.split(command)
        starts = [i for i, word in enumerate(words[:-1]) if word in ("portcullis", "./portcullis") and words[i + 1] in commands]
        for start in starts:
            call = words[start + 1 :]
            ours = call[: call.index("--")] if "--" in call else call
            subcommand = [call[0], *(word for word in call[1:2] if re.fullmatch("[a-z]+", word))]
            help_text = run(*subcommand, "--help").stdout
            assert help_text, command
            for flag in (word for word in ours if word.startswith("--")):
                assert f"{flag} " in help_text, command
            found += 1
    assert found >= 4


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.startswith("helm install")])
def test_the_chart_installs(command):
    """As it is typed, but for the cluster."""
    _, *arguments = shlex.split(command)
    arguments[arguments.index("deploy/helm/portcullis")] = str(CHART)
    result = helm(*arguments, "--dry-run=client")
    assert result.returncode == 0, result.stderr
    assert "STATUS: pending-install" in result.stdout and "kind: Deployment" in result.stdout


def test_examples_of_values_render(tmp_path):
    (example,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.S)
    values = tmp_path / "values.yaml"
    values.write_text(example)
    result = helm("template", "portcullis", str(CHART), "--values", str(values))
    assert result.returncode == 0, result.stderr


def test_the_passwords_of_compose_are_those_that_are_made():
    (command,) = [each for each in COMMANDS if "deploy/.env" in each and each.startswith("printf")]
    made = set(re.findall(r"([A-Z_]+)=%s", command))
    wanted = set(re.findall(r"\$\{([A-Z_]+):\?", (DEPLOY / "compose.yaml").read_text()))
    assert made == wanted
    assert command in (DEPLOY / "compose.yaml").read_text()
