"""The hooks before and after a tool: what is asked, and what the answers mean.

The tool does not run, and its result is not handed out, when the policy says BLOCK, when nobody approves what must be
approved, when something cannot be written as JSON, and when the service is away (unless the client was made with
`on_unavailable="open"`). `function` puts the hooks around Python functions; the adapters put them into frameworks.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import uuid
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

from portcullis import values
from portcullis.core import local_environment
from portcullis.decision import Decision, Phase
from portcullis.errors import ApprovalRefused, Blocked, ConfigurationError, CouldNotJudge
from portcullis.options import ContextLike
from portcullis.v1 import context_pb2, decision_pb2
from portcullis.v1 import policy_decision_service_pb2 as pdp

if TYPE_CHECKING:
    from portcullis.aio import AsyncClient
    from portcullis.client import Client


@dataclasses.dataclass(frozen=True)
class Interception:
    """What a callback is told about an answer of the service."""

    #: The name of the tool as it was given.
    tool_name: str
    #: Which side of the call it is about.
    phase: Phase
    #: The JSON that was judged: arguments before, result after.
    judged_json: str
    #: The whole answer.
    response: pdp.InterceptToolResponse

    @property
    def decision(self) -> Decision:
        """What the policy decided."""
        return Decision.of(self.response.decision)

    @property
    def findings(self) -> list[decision_pb2.Finding]:
        """Every finding; spans count code points in `judged_json`."""
        return list(self.response.findings)

    @property
    def block_reason(self) -> str:
        """Why, fit to be shown. Empty for a warning."""
        return self.response.block_reason

    @property
    def decision_id(self) -> str:
        """Id of the decision; the audit record carries the same."""
        return self.response.decision_id


#: Asked when a person must approve: only the answer True approves. May be async around an async tool.
OnAsk = Callable[[Interception], Any]
#: Told of what passes with a warning. May be async around an async tool.
OnWarn = Callable[[Interception], Any]


class GuardSettings(TypedDict, total=False):
    """The settings of `guard_tool`; see `Guard`."""

    name: str
    on_block: Literal["raise", "return"]
    on_ask: OnAsk | None
    on_warn: OnWarn | None
    policy: str | None
    context: ContextLike | None
    environment: context_pb2.ExecutionContext | Literal["local"] | None
    metadata_json: str
    exclude: Collection[str]
    encode: values.Encode | None
    timeout: float | None


@dataclasses.dataclass(frozen=True)
class Guard:
    """How a tool is guarded."""

    #: The name the agent knows the tool by, which decides which rules hold for it. Empty: the name of the function.
    name: str = ""
    #: `raise`: a refusal raises `Blocked`. `return`: the call answers with the text of `blocked_result_json`, which is
    #: meant for the model. Errors that are no verdict raise either way.
    on_block: Literal["raise", "return"] = "raise"
    #: Asked for approval. None: what must be approved is refused with `ApprovalRefused`.
    on_ask: OnAsk | None = None
    #: Told of warnings. None: they pass in silence.
    on_warn: OnWarn | None = None
    #: Another policy than the client's.
    policy: str | None = None
    #: Said on top of the client's context.
    context: ContextLike | None = None
    #: Where the tool runs. `local`, the default, is this process; None says that nothing is known.
    environment: context_pb2.ExecutionContext | Literal["local"] | None = "local"
    #: Metadata of the run so far, as `intercept_message` answered it.
    metadata_json: str = ""
    #: Parameters that are not sent, so not judged: only for what the agent cannot choose, such as a database handle.
    exclude: Collection[str] = ()
    #: Gives the form in JSON of values that have none, or raises TypeError.
    encode: values.Encode | None = None
    #: Seconds for each of the two questions. None: `timeouts.intercept_s`.
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.on_block not in ("raise", "return"):
            raise ConfigurationError(f"`on_block` is {self.on_block!r}; it is 'raise' or 'return'")
        for name in ("on_ask", "on_warn", "encode"):
            given = getattr(self, name)
            if given is not None and not callable(given):
                raise ConfigurationError(f"`{name}` is {type(given).__name__}, which cannot be called")


def agent_guard(settings: GuardSettings) -> Guard:
    """The guard of an adapter: it tells refusals to the model unless it is told to raise them."""
    return dataclasses.replace(Guard(**settings), on_block=settings.get("on_block", "return"))


class ToolCall:
    """One call of a guarded tool: what is asked, and what the answers mean. It asks nobody itself."""

    def __init__(self, guard: Guard, name: str, tool_call_id: str = "") -> None:
        self.guard = guard
        self.name = name
        self._id = tool_call_id or str(uuid.uuid4())
        self._metadata_json = guard.metadata_json
        self._args_json = "{}"

    def before(self, args_json: str) -> dict[str, Any]:
        """The question before the tool runs, as arguments of `intercept_tool`."""
        self._args_json = args_json
        return self._question(Phase.BEFORE)

    def after(self, result_json: str, is_error: bool) -> dict[str, Any]:
        """The question after the tool ran."""
        return self._question(Phase.AFTER) | {"result_json": result_json, "is_error": is_error}

    def _question(self, phase: Phase) -> dict[str, Any]:
        where = self.guard.environment
        return {
            "tool_name": self.name,
            "args_json": self._args_json,
            "phase": phase,
            "tool_call_id": self._id,
            "metadata_json": self._metadata_json,
            "policy": self.guard.policy,
            "context": self.guard.context,
            "environment": local_environment() if where == "local" else where,
            "timeout": self.guard.timeout,
        }

    def told(self, question: dict[str, Any], response: pdp.InterceptToolResponse) -> Interception:
        """An answer, for the callbacks."""
        phase: Phase = question["phase"]
        judged = question["args_json"] if phase is Phase.BEFORE else question["result_json"]
        return Interception(self.name, phase, judged, response)

    def passed(self, told: Interception, approved: bool) -> str:
        """The arguments or the result to go on with; raises `Blocked` when it must not go on."""
        response = told.response
        if told.decision is Decision.BLOCK:
            raise Blocked(_refusal(told, "is blocked"), response, told.phase)
        if told.decision is Decision.ASK and not approved:
            raise ApprovalRefused(_refusal(told, "needs approval, and nobody approved"), response, told.phase)
        self._metadata_json = response.metadata_json
        if told.phase is Phase.AFTER:
            return response.result_json
        if not response.args_json:
            raise CouldNotJudge(f"{self.name}: the service answered without arguments, so the tool was not run")
        self._args_json = response.args_json
        return response.args_json


def _refusal(told: Interception, what: str) -> str:
    side = "" if told.phase is Phase.BEFORE else "the result of "
    reason = told.block_reason or "no reason was given"
    return f"{side}{told.tool_name} {what}: {reason} (decision {told.decision_id})"


def blocked_json(blocked: Blocked) -> str:
    """What to give a model in place of a result: a JSON object with `status`, `tool` and `reason`."""
    given = blocked.response.blocked_result_json
    if given:
        return given
    fields = {"status": "blocked", "tool": blocked.tool_name, "reason": blocked.block_reason or str(blocked)}
    return json.dumps(fields, ensure_ascii=False)


def ask_sync(call: ToolCall, client: Client, question: dict[str, Any]) -> str:
    """Asks, hears the callbacks, and answers what to go on with."""
    told = call.told(question, client.intercept_tool(**question))
    approved = False
    if told.decision is Decision.WARN and call.guard.on_warn is not None:
        _no_awaitable("on_warn", call.guard.on_warn(told))
    if told.decision is Decision.ASK and call.guard.on_ask is not None:
        approved = _no_awaitable("on_ask", call.guard.on_ask(told)) is True
    return call.passed(told, approved)


async def ask_async(call: ToolCall, client: Client | AsyncClient, question: dict[str, Any]) -> str:
    """The same for async callers; a client with threads is asked in one, so that the loop goes on."""
    from portcullis.client import Client

    if isinstance(client, Client):
        response = await asyncio.to_thread(client.intercept_tool, **question)
    else:
        response = await client.intercept_tool(**question)
    told = call.told(question, response)
    approved = False
    if told.decision is Decision.WARN and call.guard.on_warn is not None:
        await awaited(call.guard.on_warn(told))
    if told.decision is Decision.ASK and call.guard.on_ask is not None:
        approved = await awaited(call.guard.on_ask(told)) is True
    return call.passed(told, approved)


async def awaited(value: Any) -> Any:
    """The value, or what it comes to."""
    return await value if inspect.isawaitable(value) else value


def _no_awaitable(name: str, value: Any) -> Any:
    if inspect.isawaitable(value):
        close(value)
        raise ConfigurationError(f"`{name}` is async around a tool that is not; the tool was stopped")
    return value


def told_by(error: BaseException) -> str:
    """What an exception tells, those that it came from and notes included: a traceback shows them all."""
    lines: list[str] = []
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        lines.append(f"{type(one).__name__}: {one}")
        lines.extend(str(note) for note in getattr(one, "__notes__", ()))
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    # A lone surrogate cannot travel, and is shown as an escape.
    return "\n".join(lines).encode(errors="backslashreplace").decode()


def close(value: Any) -> None:
    """Closes what has a `close`: a coroutine or generator that nobody will run."""
    end = getattr(value, "close", None)
    if end is not None:
        end()
