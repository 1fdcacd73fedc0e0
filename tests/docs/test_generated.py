"""Pages that are written by a program are what it writes."""

import os
import subprocess
import sys

import pytest
from pages import ROOT


@pytest.mark.parametrize("command", [["make_api.py"], ["make_reference.py", os.environ["TEST_SERVER"]]], ids=lambda command: command[0])
def test_pages_are_what_is_generated(command):
    result = subprocess.run([sys.executable, ROOT / "docs" / command[0], *command[1:], "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
