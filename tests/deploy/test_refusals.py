"""Values that cannot work are refused with a message that says what to do (refusals.yaml)."""

import pytest
import yaml
from conftest import CHART, HERE, VALUE_SETS, helm

CASES = yaml.safe_load((HERE / "refusals.yaml").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["about"] for case in CASES])
def test_refused(case, tmp_path):
    assert set(case) <= {"about", "with", "values", "message"}
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(case["values"]))
    base = ["--values", str(VALUE_SETS[case["with"]])] if "with" in case else []
    result = helm("template", "portcullis", str(CHART), *base, "--values", str(values))
    assert result.returncode != 0
    assert case["message"] in result.stderr
    assert "nil pointer" not in result.stderr and "wrong type" not in result.stderr


def test_what_is_refused_is_told_apart_by_its_name():
    abouts = [case["about"] for case in CASES]
    assert len(abouts) == len(set(abouts)) >= 50
