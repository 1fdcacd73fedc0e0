"""The unit: systemd takes it without a word, and it is closed."""

import os
import re
import subprocess

import pytest
from conftest import DEPLOY
from service import BINARY

UNIT = (DEPLOY / "systemd" / "portcullis.service").read_text()
ANALYZE = os.environ["TEST_SYSTEMD_ANALYZE"]


def value(key: str) -> str:
    (found,) = re.findall(rf"^{key}=(.*)$", UNIT, re.M)
    return found


@pytest.fixture
def unit(tmp_path):
    """Writes a unit with the built program in place of the installed one, which systemd wants to see."""

    def write(text: str):
        path = tmp_path / "portcullis.service"
        path.write_text(text.replace("/usr/local/bin/portcullis", BINARY))
        return str(path)

    return write


def verify(path: str) -> str:
    result = subprocess.run([ANALYZE, "verify", "--man=no", path], capture_output=True, text=True)
    return result.stdout + result.stderr


def test_systemd_takes_it(unit):
    assert "portcullis.service" not in verify(unit(UNIT))


def test_systemd_tells_what_is_wrong(unit):
    assert "ProtectSytem" in verify(unit(UNIT.replace("ProtectSystem=", "ProtectSytem=")))
    assert "not executable" in verify(unit(UNIT.replace("/usr/local/bin/portcullis", "/nowhere/portcullis")))


def test_it_is_closed(unit):
    """Exposure as systemd counts it, from 0 to 10, is below 2."""
    command = [ANALYZE, "security", "--offline=true", "--no-pager"]
    path = unit(UNIT)
    assert subprocess.run([*command, "--threshold=20", path], capture_output=True).returncode == 0
    opened = unit(re.sub(r"^(Protect|Restrict|Private|SystemCall)\w+=.*\n", "", UNIT, flags=re.M))
    assert subprocess.run([*command, "--threshold=20", opened], capture_output=True).returncode != 0


def test_it_starts_and_stops_as_the_service_wants():
    assert value("ExecStart") == "/usr/local/bin/portcullis serve"
    assert value("ExecReload") == "/bin/kill -HUP $MAINPID"
    # docs/OPERATING.md: wrong usage, settings that cannot be used.
    assert value("RestartPreventExitStatus").split() == ["64", "78"]
    assert int(value("TimeoutStopSec")) >= 10 + 27
    data = re.search(r"^Environment=PORTCULLIS_DATA_DIR=(.*)$", UNIT, re.M).group(1)
    assert data == f"/var/lib/{value('StateDirectory')}" and value("StateDirectoryMode") == "0700"


def test_its_user_is_made():
    sysusers = (DEPLOY / "systemd" / "sysusers.conf").read_text()
    (line,) = [line for line in sysusers.splitlines() if not line.startswith("#")]
    assert line.split()[:3] == ["u", value("User"), "-"] and value("Group") == value("User")
