"""Guards an agent of LangChain: `create_agent(model, tools, middleware=[PortcullisMiddleware(client)])`.

Needs the extra `langchain`. Each tool call is judged before and after it runs, and each turn of the user before the
model sees it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from typing_extensions import Unpack

from portcullis.decision import Decision
from portcullis.errors import ConfigurationError, MessagesBlocked
from portcullis.langgraph import Answer, ToolCallGuard
from portcullis.tool import GuardSettings
from portcullis.v1 import policy_decision_service_pb2 as pdp

if TYPE_CHECKING:
    from portcullis.aio import AsyncClient
    from portcullis.client import Client


class PortcullisMiddleware(AgentMiddleware[Any, Any]):
    """Judges the tool calls of an agent, and the turns of its user (`messages=False` leaves those out).

    A refused tool call is told to the model as a tool message of status `error`; a refused turn raises
    `MessagesBlocked`. The other settings are those of `portcullis.tool.Guard`.
    """

    def __init__(
        self, client: Client | AsyncClient, *, messages: bool = True, **settings: Unpack[GuardSettings]
    ) -> None:
        super().__init__()
        self._client: Any = client
        self._messages = messages
        self._tools = ToolCallGuard(client, **settings)
        self._policy = settings.get("policy")
        self._context = settings.get("context")

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        return self._tools.wrap(request, handler)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        return await self._tools.awrap(request, handler)

    def before_model(self, state: Any, runtime: Any) -> None:
        from portcullis.client import Client

        turns = self._turns(state)
        if turns:
            if not isinstance(self._client, Client):
                raise ConfigurationError("an agent that is not run with `ainvoke` or `astream` needs a Client")
            _decide(self._client.check_messages(turns, policy=self._policy, context=self._context))

    async def abefore_model(self, state: Any, runtime: Any) -> None:
        from portcullis.client import Client

        turns = self._turns(state)
        if not turns:
            return
        asked: dict[str, Any] = {"policy": self._policy, "context": self._context}
        if isinstance(self._client, Client):
            _decide(await asyncio.to_thread(self._client.check_messages, turns, **asked))
        else:
            _decide(await self._client.check_messages(turns, **asked))

    def _turns(self, state: Any) -> list[dict[str, object]]:
        """What the user said; results of tools were judged when they came."""
        if not self._messages:
            return []
        said: list[AnyMessage] = state["messages"]
        return [{"role": "user", "content": turn.content} for turn in said if isinstance(turn, HumanMessage)]


def _decide(answer: pdp.CheckMessagesResponse) -> None:
    decision = Decision.of(answer.decision)
    if decision >= Decision.ASK:
        why = "; ".join(sorted({finding.description for finding in answer.findings})) or "no finding"
        raise MessagesBlocked(f"the conversation is refused: {why} (decision {answer.decision_id})", answer)
