"""The hooks before and after a tool, around a Python function.

Before: the arguments are bound to the parameters and sent as JSON; the tool runs with those of the answer. After: the
result is sent, and the caller gets that of the answer. The tool does not run, and its result is not handed out, when the
policy says BLOCK, when nobody approves what must be approved, when something cannot be written as JSON, and when the
service is away (unless the client was made with `on_unavailable="open"`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import json
import typing
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

from portcullis import values
from portcullis.arguments import Bound, Shape
from portcullis.core import local_environment
from portcullis.decision import Decision, Phase
from portcullis.errors import ApprovalRefused, Blocked, ConfigurationError, CouldNotJudge, ToolFailed
from portcullis.options import ContextLike
from portcullis.v1 import context_pb2, decision_pb2
from portcullis.v1 import policy_decision_service_pb2 as pdp

if TYPE_CHECKING:
    from portcullis.aio import AsyncClient
    from portcullis.client import Client

# A generator's values are collected before anybody sees one; past this much JSON it is refused, as the service would.
_ITEMS_BYTES_MAX = 4 * 1024 * 1024


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
        await _awaited(call.guard.on_warn(told))
    if told.decision is Decision.ASK and call.guard.on_ask is not None:
        approved = await _awaited(call.guard.on_ask(told)) is True
    return call.passed(told, approved)


def _caught(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Exception | None]:
    """What a function answers or raises. A future cannot hold StopIteration, and would never end."""
    try:
        return function(*args, **kwargs), None
    except Exception as error:
        return None, error


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _no_awaitable(name: str, value: Any) -> Any:
    if inspect.isawaitable(value):
        _close(value)
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


def _close(value: Any) -> None:
    close = getattr(value, "close", None)
    if close is not None:
        close()


def guarded(function: Any, guard: Guard, client: Client | AsyncClient) -> Any:
    """The function with the hooks around it: async where the function or the client is."""
    from portcullis.client import Client

    is_async = not isinstance(client, Client)
    if not callable(function):
        raise ConfigurationError(f"guard_tool: {type(function).__name__} cannot be called")
    name = guard.name or _name(function)
    looks = Shape(function, name, (), guard.encode).signature
    given: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
    dressed_as = function
    if isinstance(function, functools.partial):
        # What a partial fills in is judged as well: the tool runs with it.
        given, function = (function.args, function.keywords), function.func
    shape = Shape(function, name, guard.exclude, guard.encode)
    tool = _Tool(function, name, guard, shape, client, given)
    inner = _inner(function)
    wrapper: Callable[..., Any]
    if inspect.isasyncgenfunction(inner) or (is_async and inspect.isgeneratorfunction(inner)):

        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            for item in await tool.call_async_items(args, kwargs):
                yield item

    elif inspect.isgeneratorfunction(inner):

        def wrapper(*args: Any, **kwargs: Any) -> Iterator[Any]:
            yield from tool.call_items(args, kwargs)

    elif is_async or inspect.iscoroutinefunction(inner):

        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await tool.call_async(args, kwargs)

    else:

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return tool.call(args, kwargs)

    return _dressed(wrapper, dressed_as, looks)


def _inner(function: Any) -> Any:
    """What tells whether a callable is async or a generator: of an object, its `__call__`."""
    if not inspect.isroutine(function) and not inspect.isclass(function):
        return type(function).__call__
    return function


def _name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    if name == "<lambda>":
        raise ConfigurationError("guard_tool: a lambda has no name that rules could know it by; give `name`")
    return str(name)


def _dressed(wrapper: Any, function: Any, signature: inspect.Signature) -> Any:
    """Gives the wrapper the looks of the function, which frameworks make schemas from."""
    functools.update_wrapper(wrapper, function)
    # Nobody shall find the way around the guard by unwrapping.
    del wrapper.__wrapped__
    inner = function.func if isinstance(function, functools.partial) else function
    try:
        # Annotations that are text are resolved here, as this module does not know the names in them.
        hints = typing.get_type_hints(inner, include_extras=True)
    except Exception:
        hints = dict(getattr(inner, "__annotations__", {}))
    wrapper.__annotations__ = hints
    wrapper.__signature__ = signature.replace(
        parameters=[
            parameter.replace(annotation=hints.get(parameter.name, parameter.annotation))
            for parameter in signature.parameters.values()
        ],
        return_annotation=hints.get("return", signature.return_annotation),
    )
    return wrapper


class _Tool:
    """A function under guard: the four ways to call it."""

    def __init__(self, function: Any, name: str, guard: Guard, shape: Shape, client: Any, given: Any) -> None:
        self._given_args, self._given_kwargs = given
        self._function = function
        self._name = name
        self._guard = guard
        self._shape = shape
        self._client = client

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call, bound = self._begun(args, kwargs)
        try:
            run_args, run_kwargs = bound.run_with(ask_sync(call, self._client, call.before(bound.args_json)))
            raised: Exception | None = None
            result: Any = None
            try:
                result = self._function(*run_args, **run_kwargs)
                self._check_done(result)
            except CouldNotJudge:
                raise
            except Exception as error:
                raised = error
            question = self._question_after(call, result, raised)
            return self._outcome(question, ask_sync(call, self._client, question), result, raised)
        except Blocked as blocked:
            return self._refused(blocked)

    async def call_async(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call, bound = self._begun(args, kwargs)
        try:
            asked = await ask_async(call, self._client, call.before(bound.args_json))
            run_args, run_kwargs = bound.run_with(asked)
            raised: Exception | None = None
            result: Any = None
            try:
                if inspect.iscoroutinefunction(_inner(self._function)):
                    result = await self._function(*run_args, **run_kwargs)
                else:
                    # A function that blocks shall not hold up the loop.
                    result, failure = await asyncio.to_thread(_caught, self._function, run_args, run_kwargs)
                    if failure is not None:
                        raise failure
                    result = await _awaited(result)
                self._check_done(result)
            except CouldNotJudge:
                raise
            except Exception as error:
                raised = error
            if isinstance(raised, StopIteration):
                # No coroutine can raise it.
                raised = RuntimeError(told_by(raised))
            question = self._question_after(call, result, raised)
            return self._outcome(question, await ask_async(call, self._client, question), result, raised)
        except Blocked as blocked:
            return self._refused(blocked)

    def call_items(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        call, bound = self._begun(args, kwargs)
        try:
            run_args, run_kwargs = bound.run_with(ask_sync(call, self._client, call.before(bound.args_json)))
            items, raised = self._collected(run_args, run_kwargs)
            question = self._question_after(call, items, raised)
            return self._items(self._outcome(question, ask_sync(call, self._client, question), items, raised))
        except Blocked as blocked:
            return [self._refused(blocked)]

    async def call_async_items(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        call, bound = self._begun(args, kwargs)
        try:
            asked = await ask_async(call, self._client, call.before(bound.args_json))
            run_args, run_kwargs = bound.run_with(asked)
            if inspect.isasyncgenfunction(_inner(self._function)):
                items, raised = await self._async_collected(run_args, run_kwargs)
            else:
                items, raised = await asyncio.to_thread(self._collected, run_args, run_kwargs)
            question = self._question_after(call, items, raised)
            return self._items(self._outcome(question, await ask_async(call, self._client, question), items, raised))
        except Blocked as blocked:
            return [self._refused(blocked)]

    def _begun(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[ToolCall, Bound]:
        bound = self._shape.bind((*self._given_args, *args), {**self._given_kwargs, **kwargs})
        return ToolCall(self._guard, self._name), bound

    def _refused(self, blocked: Blocked) -> str:
        if self._guard.on_block == "return":
            return blocked_json(blocked)
        raise blocked

    def _check_done(self, result: object) -> None:
        """A result that is still to come cannot be judged."""
        if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
            _close(result)
            raise CouldNotJudge(
                f"{self._name}: it answered with a {type(result).__name__}, which cannot be judged before it has run;"
                " guard an async function or a generator function itself"
            )

    def _collected(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Exception | None]:
        items: list[Any] = []
        room = _ITEMS_BYTES_MAX
        generator = self._function(*args, **kwargs)
        try:
            for item in generator:
                room = self._room(room, item)
                items.append(item)
        except CouldNotJudge:
            raise
        except Exception as error:
            return items, error
        finally:
            generator.close()
        return items, None

    async def _async_collected(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Exception | None]:
        items: list[Any] = []
        room = _ITEMS_BYTES_MAX
        generator = self._function(*args, **kwargs)
        try:
            async for item in generator:
                room = self._room(room, item)
                items.append(item)
        except CouldNotJudge:
            raise
        except Exception as error:
            return items, error
        finally:
            await generator.aclose()
        return items, None

    def _room(self, room: int, item: object) -> int:
        left = room - len(self._json(item).encode()) - 2
        if left < 0:
            raise CouldNotJudge(f"{self._name}: it gave more than {_ITEMS_BYTES_MAX} bytes, more than can be judged at once")
        return left

    def _json(self, result: object) -> str:
        try:
            return values.to_json(result, self._guard.encode)
        except (TypeError, ValueError) as error:
            raise CouldNotJudge(
                f"{self._name}: it has run, and its result cannot be written as JSON, so it cannot be judged and is"
                f" withheld: {error}. Answer with JSON values, or give `encode`"
            ) from error

    def _question_after(self, call: ToolCall, result: object, raised: Exception | None) -> dict[str, Any]:
        if raised is None:
            return call.after(self._json(result), is_error=False)
        # Its text reaches the model as a result does.
        return call.after(json.dumps(told_by(raised), ensure_ascii=False), is_error=True)

    def _outcome(self, question: dict[str, Any], result_json: str, result: Any, raised: Exception | None) -> Any:
        changed = result_json != question["result_json"]
        if raised is not None:
            if not changed:
                raise raised
            text = values.from_json(result_json, "a result")
            raise ToolFailed(text if isinstance(text, str) else result_json)
        if not changed:
            return result
        value = values.from_json(result_json, "a result")
        try:
            return values.restored(result, value)
        except Exception:
            # The changed JSON is what may be seen, whatever the type was.
            return value

    def _items(self, outcome: Any) -> list[Any]:
        return outcome if isinstance(outcome, list) else [outcome]
