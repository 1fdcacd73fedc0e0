"""Guards the tools of a LangGraph `ToolNode`. Needs the extra `langchain`.

    guard = ToolCallGuard(client)
    ToolNode(tools, wrap_tool_call=guard.wrap, awrap_tool_call=guard.awrap)

What is refused reaches the model as a tool message of status `error` (`on_block="raise"` raises it). When nothing
could be judged, the error is raised and the run stops.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Union

from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from typing_extensions import Unpack

from portcullis import values
from portcullis.errors import Blocked, ConfigurationError, CouldNotJudge, ToolFailed
from portcullis.tool import GuardSettings, ToolCall, agent_guard, ask_async, ask_sync, blocked_json, told_by

if TYPE_CHECKING:
    from portcullis.aio import AsyncClient
    from portcullis.client import Client

Answer = Union[ToolMessage, "Command[Any]"]


class ToolCallGuard:
    """The hooks before and after each tool call of a graph. The settings are those of `portcullis.tool.Guard`."""

    def __init__(self, client: Client | AsyncClient, **settings: Unpack[GuardSettings]) -> None:
        self._client = client
        self._guard = agent_guard(settings)
        if self._guard.name or self._guard.exclude:
            raise ConfigurationError("ToolCallGuard stands around many tools: `name` and `exclude` do not go with it")

    def wrap(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        """For `wrap_tool_call`. Needs a `Client`."""
        from portcullis.client import Client

        if not isinstance(self._client, Client):
            raise ConfigurationError(
                "a graph that is not run with `ainvoke` or `astream` needs a Client, not AsyncClient"
            )
        client = self._client
        call, question = self._begun(request)
        try:
            request = _with_args(request, question, ask_sync(call, client, question))
            answer, failure = None, None
            try:
                answer = handler(request)
            except GraphBubbleUp:
                # An interrupt is no result.
                raise
            except Exception as error:
                failure = error
            if failure is not None:
                after = call.after(json.dumps(told_by(failure), ensure_ascii=False), is_error=True)
                raise _failure(failure, after, ask_sync(call, client, after))
            pieces = _pieces(answer)
            told = []
            for piece in pieces:
                after = call.after(piece.result_json, piece.is_error)
                told.append(ask_sync(call, client, after))
            rebuilt: Answer = _rebuilt(answer, pieces, told)
            return rebuilt
        except Blocked as blocked:
            return self._refused(blocked, request)

    async def awrap(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]) -> Answer:
        """For `awrap_tool_call`. Takes either client."""
        client = self._client
        call, question = self._begun(request)
        try:
            request = _with_args(request, question, await ask_async(call, client, question))
            answer, failure = None, None
            try:
                answer = await handler(request)
            except GraphBubbleUp:
                raise
            except Exception as error:
                failure = error
            if failure is not None:
                after = call.after(json.dumps(told_by(failure), ensure_ascii=False), is_error=True)
                raise _failure(failure, after, await ask_async(call, client, after))
            pieces = _pieces(answer)
            told = []
            for piece in pieces:
                after = call.after(piece.result_json, piece.is_error)
                told.append(await ask_async(call, client, after))
            rebuilt: Answer = _rebuilt(answer, pieces, told)
            return rebuilt
        except Blocked as blocked:
            return self._refused(blocked, request)

    def _begun(self, request: ToolCallRequest) -> tuple[ToolCall, dict[str, Any]]:
        name = request.tool_call["name"]
        call = ToolCall(self._guard, name, request.tool_call["id"] or "")
        try:
            return call, call.before(values.to_json(request.tool_call["args"], self._guard.encode))
        except (TypeError, ValueError) as error:
            raise CouldNotJudge(
                f"{name}: its arguments cannot be written as JSON, so it was not run: {error}"
            ) from error

    def _refused(self, blocked: Blocked, request: ToolCallRequest) -> ToolMessage:
        if self._guard.on_block == "raise":
            raise blocked
        call = request.tool_call
        return ToolMessage(
            content=blocked_json(blocked), name=call["name"], tool_call_id=call["id"] or "", status="error"
        )


class _Piece:
    """Something of an answer that the model or the state of the graph will see."""

    def __init__(self, message: ToolMessage | None, content: object) -> None:
        self.message = message
        self.is_error = message is not None and message.status == "error"
        try:
            self.result_json = values.to_json(content, None)
        except (TypeError, ValueError) as error:
            raise CouldNotJudge(
                f"the tool has run, and its result cannot be judged and is withheld: {error}"
            ) from error


def _with_args(request: ToolCallRequest, question: dict[str, Any], args_json: str) -> ToolCallRequest:
    if args_json == question["args_json"]:
        return request
    return request.override(tool_call={**request.tool_call, "args": values.from_json(args_json, "arguments")})


def _failure(error: Exception, question: dict[str, Any], result_json: str) -> Exception:
    if result_json == question["result_json"]:
        return error
    text = values.from_json(result_json, "a result")
    return ToolFailed(text if isinstance(text, str) else result_json)


def _pieces(answer: Any) -> list[_Piece]:
    """What is to be judged of an answer: each tool message, and what else a command writes into the state."""
    if isinstance(answer, list):
        return [piece for one in answer for piece in _pieces(one)]
    if isinstance(answer, ToolMessage):
        return [_Piece(answer, answer.content)]
    update = answer.update
    if not isinstance(update, dict):
        return [] if update is None else [_Piece(None, update)]
    messages = update.get("messages", ())
    messages = messages if isinstance(messages, (list, tuple)) else [messages]
    tools = [message for message in messages if isinstance(message, ToolMessage)]
    rest: dict[str, Any] = {key: value for key, value in update.items() if key != "messages"}
    others = [message for message in messages if not isinstance(message, ToolMessage)]
    if others:
        rest["messages"] = others
    return [_Piece(message, message.content) for message in tools] + ([_Piece(None, rest)] if rest else [])


def _rebuilt(answer: Any, pieces: list[_Piece], told: list[str]) -> Any:
    changed: dict[int, ToolMessage] = {}
    for piece, result_json in zip(pieces, told):
        if result_json == piece.result_json:
            continue
        if piece.message is None:
            raise CouldNotJudge(
                "the tool has run; the policy changed what its command writes, which only messages allow"
            )
        content = values.from_json(result_json, "a result")
        content = content if isinstance(content, (str, list)) else result_json
        # What the tool kept beside its text was not judged, and may hold what was taken out of the text.
        changed[id(piece.message)] = piece.message.model_copy(update={"content": content, "artifact": None})
    return _replaced(answer, changed) if changed else answer


def _replaced(answer: Any, changed: dict[int, ToolMessage]) -> Any:
    if isinstance(answer, (list, tuple)):
        return [_replaced(one, changed) for one in answer]
    if isinstance(answer, Command):
        update: Any = answer.update
        return Command(
            graph=answer.graph,
            update={**update, "messages": _replaced(update["messages"], changed)},
            resume=answer.resume,
            goto=answer.goto,
        )
    return changed.get(id(answer), answer)
