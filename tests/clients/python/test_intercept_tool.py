"""The table of `tests/cases/intercept_tool`, asked from Python: the same requests and wanted answers as in Rust."""

import pathlib

import grpc
import pytest
import tomli
from google.protobuf import json_format
from google.rpc import error_details_pb2
from portcullis.v1 import (
    decision_pb2,
    interceptors_pb2,
    policy_decision_service_pb2,
    policy_decision_service_pb2_grpc,
)
from test_client import TIMEOUT_S, detail_of

TEXTS = (
    "tool_name",
    "args_json",
    "result_json",
    "metadata_json",
    "message",
    "mutated",
    "block_reason",
    "blocked_result_json",
)
FOLDER = pathlib.Path(__file__).parent.parent.parent / "cases" / "intercept_tool"


def cases():
    files = sorted(FOLDER.glob("*.toml"))
    assert files, "the table is there"
    for file in files:
        for case in tomli.loads(file.read_text(encoding="utf-8"))["case"]:
            yield pytest.param(case, id=f"{file.stem}: {case['about']}")


@pytest.fixture(scope="module")
def stub(channel):
    return policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(channel)


@pytest.mark.parametrize("case", list(cases()))
def test_case(stub, case):
    want = case["want"]
    rpc = case.get("rpc", "InterceptTool")
    request = getattr(policy_decision_service_pb2, f"{rpc}Request")()
    json_format.ParseDict(case["request"], request)
    call = getattr(stub, rpc)
    if "error" in want:
        with pytest.raises(grpc.RpcError) as refused:
            call(request, timeout=TIMEOUT_S)
        assert refused.value.code().name == want["error"]["code"]
        if "field" in want["error"]:
            violations = detail_of(refused.value, error_details_pb2.BadRequest).field_violations
            assert [v.field for v in violations] == [want["error"]["field"]]
        return
    answer = call(request, timeout=TIMEOUT_S)
    got = json_format.MessageToDict(answer)
    if "decision" in want:
        assert decision_pb2.Decision.Name(answer.decision) == f"DECISION_{want['decision']}", got
    for field in TEXTS:
        if field in want:
            assert getattr(answer, field) == want[field], got
    if "params" in want:
        assert got.get("params") == want["params"]
    if "changed_fields" in want:
        assert list(answer.changed_fields) == want["changed_fields"]
    if "events" in want:
        outcome = interceptors_pb2.InterceptorOutcome.Name
        prefix = "INTERCEPTOR_OUTCOME_"
        events = [f"{e.interceptor_id} {outcome(e.outcome).removeprefix(prefix)}" for e in answer.events]
        assert events == want["events"]
    for wanted in want.get("findings", []):
        names = [name for f in answer.findings for name in (f.rule_id, f.category)]
        assert any(name == wanted or name.startswith(f"{wanted}.") for name in names), got
    unknown = set(want) - set(TEXTS) - {"decision", "params", "changed_fields", "events", "findings"}
    assert not unknown, f"the table wants {unknown}, which nobody looks at here"
