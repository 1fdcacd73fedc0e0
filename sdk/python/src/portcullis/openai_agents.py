"""Guards agents of the OpenAI Agents SDK. Needs the extra `openai-agents`.

    agent = Agent(name="helper", tools=guard_tools(client, [read, write]), input_guardrails=[input_guardrail(client)])

What is refused reaches the model as the tool's output (`on_block="raise"` raises it). When nothing could be judged,
the error is raised and the run stops.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from agents import Agent, FunctionTool, GuardrailFunctionOutput, InputGuardrail, RunContextWrapper, Tool
from agents.tool_context import ToolContext
from typing_extensions import Unpack

from portcullis import values
from portcullis.decision import Decision
from portcullis.errors import Blocked, ConfigurationError, CouldNotJudge, InvalidRequest, ToolFailed
from portcullis.messages import MessageLike, conversation
from portcullis.options import ContextLike
from portcullis.tool import Guard, GuardSettings, ToolCall, agent_guard, ask_async, blocked_json, told_by
from portcullis.v1 import messages_pb2

if TYPE_CHECKING:
    from portcullis.aio import AsyncClient
    from portcullis.client import Client


def guard_tools(client: Client | AsyncClient, tools: Iterable[Tool], **settings: Unpack[GuardSettings]) -> list[Tool]:
    """Each tool with the hooks around it. The settings are those of `portcullis.tool.Guard`.

    A tool that is no `FunctionTool` runs where no hook reaches, at the provider or inside of the framework: it is a
    `ConfigurationError` here, so add it to the agent beside these if you want it unguarded.
    """
    return [guard_function_tool(client, tool, **settings) for tool in tools]


def guard_function_tool(client: Client | AsyncClient, tool: Tool, **settings: Unpack[GuardSettings]) -> FunctionTool:
    """One tool with the hooks around it."""
    if not isinstance(tool, FunctionTool):
        raise ConfigurationError(f"{type(tool).__name__} is no FunctionTool, and cannot be guarded from here")
    guard = agent_guard(settings)
    if guard.exclude:
        raise ConfigurationError("`exclude` does not go with tools of the Agents SDK: the model gives all arguments")
    guarded = copy.copy(tool)
    guarded.on_invoke_tool = _Invoker(client, guard, guard.name or tool.name, tool.on_invoke_tool)
    return guarded


class _Invoker:
    """What runs in place of a tool's own function."""

    def __init__(self, client: Client | AsyncClient, guard: Guard, name: str, run: Callable[..., Any]) -> None:
        self._client = client
        self._guard = guard
        self._name = name
        self._run = run

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        call = ToolCall(self._guard, self._name, context.tool_call_id)
        # As the model wrote them, byte for byte.
        before = call.before(arguments or "{}")
        try:
            args_json = await ask_async(call, self._client, before)
            if args_json != before["args_json"]:
                # A tool may read them there as well.
                context = copy.copy(context)
                context.tool_arguments = args_json
                arguments = args_json
            result: Any = None
            failure: Exception | None = None
            try:
                result = await self._run(context, arguments)
            except Exception as error:
                failure = error
            if failure is not None:
                after = call.after(json.dumps(told_by(failure), ensure_ascii=False), is_error=True)
                text = await ask_async(call, self._client, after)
                raise failure if text == after["result_json"] else ToolFailed(str(values.from_json(text, "a result")))
            after = call.after(self._json(result), is_error=False)
            result_json = await ask_async(call, self._client, after)
        except Blocked as blocked:
            if self._guard.on_block == "raise":
                raise
            return blocked_json(blocked)
        except InvalidRequest as refused:
            if "args_json" not in refused.fields:
                raise
            # The model wrote what is no clear JSON object. It may try again; the tool was not run.
            fields = {"status": "blocked", "tool": self._name, "reason": refused.fields["args_json"]}
            return json.dumps(fields, ensure_ascii=False)
        if result_json == after["result_json"]:
            return result
        return _shown(result, values.from_json(result_json, "a result"))

    def _json(self, result: object) -> str:
        encode = self._guard.encode

        def form(value: Any) -> object:
            # The framework shows the model the text of what it does not know.
            return str(value) if encode is None else encode(value)

        try:
            return values.to_json(result, form if not hasattr(result, "model_dump") else encode)
        except (TypeError, ValueError) as error:
            raise CouldNotJudge(f"{self._name}: it has run, and its result cannot be judged: {error}") from error


def _shown(result: object, changed: Any) -> Any:
    try:
        return values.restored(result, changed)
    except Exception:
        return changed if isinstance(changed, str) else json.dumps(changed, ensure_ascii=False)


def input_guardrail(
    client: Client | AsyncClient, *, policy: str | None = None, context: ContextLike | None = None
) -> InputGuardrail[Any]:
    """Judges what is handed to an agent before its model sees it; ASK and BLOCK trip the wire."""
    from portcullis.client import Client

    async def judge(_: RunContextWrapper[Any], agent: Agent[Any], given: str | list[Any]) -> GuardrailFunctionOutput:
        turns = conversation(given) if isinstance(given, str) else [_turn(item) for item in given]
        asked: dict[str, Any] = {"policy": policy, "context": context}
        if isinstance(client, Client):
            answer = await asyncio.to_thread(client.check_messages, turns, **asked)
        else:
            answer = await client.check_messages(turns, **asked)
        refused = Decision.of(answer.decision) >= Decision.ASK
        return GuardrailFunctionOutput(output_info=answer, tripwire_triggered=refused)

    # Beside the agent it would come too late for the first tool call.
    return InputGuardrail(guardrail_function=judge, name="portcullis", run_in_parallel=False)


def _turn(item: Any) -> MessageLike:
    """An input item: a message, or anything else as the JSON it is."""
    if isinstance(item, dict) and set(item) <= {"role", "content", "type", "id", "status"} and "role" in item:
        return {"role": item["role"], "content": item.get("content")}
    part = messages_pb2.Part(json=values.to_json(item, None))
    return messages_pb2.Message(role="tool", parts=messages_pb2.Parts(parts=[part]))
