"""Calls that end in each decision, and the records of them."""

import grpc
import pytest
from portcullis.v1 import (
    interceptors_pb2,
    messages_pb2,
    policy_decision_service_pb2,
    policy_decision_service_pb2_grpc,
)

decisions = policy_decision_service_pb2
# Policies of the tests: allowed decisions are recorded, left out, left out by half, and left out for some tools and agents.
POLICIES = {
    "default": "name: default\n",
    "quiet": "name: quiet\naudit: {sample_allow: 0.0}\n",
    "half": "name: half\naudit: {sample_allow: 0.5}\n",
    "filtered": "name: filtered\naudit: {filters: [{tools: ['re*']}, {rpcs: [CheckMessages], agents: ['ci-*']}]}\n",
    "asking": """name: asking
audit: {sample_allow: 0.0}
interceptors:
  - {id: t:ask, hook: tool.before, tools: "^pay$", allow_unknown_tools: true, when: "args.amount > 100", do: [{ask: "A person must agree."}]}
  - {id: t:block, hook: tool.before, tools: "^pay$", allow_unknown_tools: true, when: "args.amount > 900", do: [{block: "Too much."}]}
""",
}


@pytest.fixture
def policies(tmp_path):
    """The folder of the policies."""
    folder = tmp_path / "policies"
    folder.mkdir()
    for name, text in POLICIES.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


class Caller:
    """Calls of one server."""

    def __init__(self, server):
        self.channel = grpc.insecure_channel(server.grpc)
        self.stub = policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(self.channel)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def check(self, text, policy="", agent=""):
        """CheckMessages about one message, asked by that agent."""
        part = messages_pb2.Part(text=text)
        message = messages_pb2.Message(role="user", parts=messages_pb2.Parts(parts=[part]))
        request = decisions.CheckMessagesRequest(messages=[message], policy=policy)
        request.context.agent_id = agent
        return self.stub.CheckMessages(request, timeout=30)

    def tool(self, name, args_json, policy=""):
        """InterceptTool before the call."""
        request = decisions.InterceptToolRequest(
            phase=interceptors_pb2.TOOL_PHASE_BEFORE, tool_name=name, args_json=args_json, policy=policy
        )
        return self.stub.InterceptTool(request, timeout=30)
