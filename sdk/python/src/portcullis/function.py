"""Python functions under guard: the hooks of `tool` around each kind of function.

Before: the arguments are bound to the parameters and sent as JSON; the function runs with those of the answer. After:
the result is sent, and the caller gets that of the answer.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import typing
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from portcullis import values
from portcullis.arguments import Bound, Shape
from portcullis.errors import Blocked, ConfigurationError, CouldNotJudge, ToolFailed
from portcullis.tool import Guard, ToolCall, ask_async, ask_sync, awaited, blocked_json, close, told_by

if TYPE_CHECKING:
    from portcullis.aio import AsyncClient
    from portcullis.client import Client

# A generator's values are collected before anybody sees one; past this much JSON it is refused, as the service would.
_ITEMS_BYTES_MAX = 4 * 1024 * 1024


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


def _caught(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Exception | None]:
    """What a function answers or raises. A future cannot hold StopIteration, and would never end."""
    try:
        return function(*args, **kwargs), None
    except Exception as error:
        return None, error


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
                    result = await awaited(result)
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
            close(result)
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

    async def _async_collected(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], Exception | None]:
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
            raise CouldNotJudge(
                f"{self._name}: it gave more than {_ITEMS_BYTES_MAX} bytes, more than can be judged at once"
            )
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
