"""The arguments of one call of a Python function as one JSON object, and back.

Each parameter is a member. Values of `*args` are a list under that name; those of `**kwargs` are members of their
own, so that rules find `command` or `path` where they look for them. Defaults are filled in: they are what the tool
will run with.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection
from typing import Any

from portcullis import values
from portcullis.errors import ConfigurationError, CouldNotJudge

_VAR = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Shape:
    """How a function takes its arguments, looked at once."""

    def __init__(self, function: Callable[..., Any], name: str, exclude: Collection[str], encode: values.Encode | None):
        try:
            self.signature = inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{name}: its parameters cannot be told; wrap it in a function: {error}"
            ) from error
        self._name = name
        self._encode = encode
        unknown = sorted(set(exclude) - set(self.signature.parameters))
        if unknown:
            raise ConfigurationError(f"{name}: `exclude` names {', '.join(unknown)}, which it has no parameter for")
        self._exclude = set(exclude)
        first = next(iter(self.signature.parameters), "")
        if first in ("self", "cls") and not inspect.ismethod(function):
            # The object a method belongs to is not said by the agent.
            self._exclude.add(first)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        """The arguments of one call. TypeError, as without a guard, when they do not fit the function."""
        stated = self.signature.bind(*args, **kwargs)
        given = set(stated.arguments)
        stated.apply_defaults()
        members: dict[str, str] = {}
        for parameter in self.signature.parameters.values():
            if parameter.name in self._exclude or parameter.name not in stated.arguments:
                continue
            value = stated.arguments[parameter.name]
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                for key, one in value.items():
                    if key in members or key in self.signature.parameters:
                        raise CouldNotJudge(
                            f"{self._name}: two arguments are called {key!r}, and the guard and the tool might read"
                            " different ones; rename the parameter"
                        )
                    members[key] = self._text(key, one)
            elif parameter.name in given:
                members[parameter.name] = self._text(parameter.name, value)
            elif parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
                # A default is the developer's; one without a form in JSON, such as a marker object, says nothing.
                try:
                    members[parameter.name] = values.to_json(value, self._encode)
                except (TypeError, ValueError):
                    continue
        return Bound(self._name, stated, members, self._exclude)

    def _text(self, parameter: str, value: object) -> str:
        try:
            return values.to_json(value, self._encode)
        except (TypeError, ValueError) as error:
            raise CouldNotJudge(
                f"{self._name}: argument {parameter!r} cannot be written as JSON, so it cannot be judged, and the tool was"
                f" not run: {error}. Pass JSON values, or give `encode`; `exclude` leaves out what the agent cannot choose"
            ) from error


class Bound:
    """The arguments of one call, as the function and as the service read them."""

    def __init__(self, name: str, stated: inspect.BoundArguments, members: dict[str, str], exclude: Collection[str]):
        self._name = name
        self._stated = stated
        self._members = members
        self._exclude = exclude
        #: The arguments as one JSON object.
        self.args_json = (
            "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {text}" for key, text in members.items()) + "}"
        )

    def run_with(self, args_json: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments to run the tool with, from those of the answer. What was not changed stays the same object."""
        if args_json != self.args_json:
            self._change(values.from_json(args_json, "arguments"))
        return self._stated.args, self._stated.kwargs

    def _change(self, wanted: Any) -> None:
        if not isinstance(wanted, dict):
            raise self._unfit("they are no JSON object")
        left = dict(wanted)
        for parameter in self._stated.signature.parameters.values():
            if parameter.name in self._exclude:
                continue
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._change_keywords(parameter.name, left)
                left = {}
                continue
            if parameter.name not in left:
                self._remove(parameter)
                continue
            changed = left.pop(parameter.name)
            if self._is_as_sent(parameter.name, changed):
                continue
            original = self._stated.arguments.get(parameter.name)
            value = self._restored(parameter.name, original, changed)
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                if not isinstance(value, (list, tuple)):
                    raise self._unfit(f"{parameter.name!r} is no list")
                value = tuple(value)
            self._stated.arguments[parameter.name] = value
        if left:
            raise self._unfit(f"it takes no {', '.join(map(repr, sorted(left)))}")

    def _change_keywords(self, name: str, wanted: dict[str, Any]) -> None:
        strange = sorted(key for key in wanted if key in self._stated.signature.parameters)
        if strange:
            raise self._unfit(f"{', '.join(map(repr, strange))} cannot be set from outside")
        before = self._stated.arguments.get(name, {})
        self._stated.arguments[name] = {
            key: before[key]
            if key in before and self._is_as_sent(key, one)
            else self._restored(key, before.get(key), one)
            for key, one in wanted.items()
        }

    def _remove(self, parameter: inspect.Parameter) -> None:
        if parameter.name not in self._members:
            # It was not sent, so it was not removed either.
            return
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            self._stated.arguments[parameter.name] = ()
        elif parameter.default is inspect.Parameter.empty:
            raise self._unfit(f"{parameter.name!r} is missing")
        else:
            self._stated.arguments[parameter.name] = parameter.default

    def _is_as_sent(self, name: str, changed: object) -> bool:
        if name not in self._members:
            return False
        # Compared as text: to Python, 1, 1.0 and True are equal.
        return json.dumps(changed, sort_keys=True) == json.dumps(json.loads(self._members[name]), sort_keys=True)

    def _restored(self, name: str, original: object, changed: object) -> Any:
        if original is None:
            return changed
        try:
            return values.restored(original, changed)
        except Exception as error:
            raise self._unfit(f"{name!r}: {error}") from error

    def _unfit(self, why: str) -> CouldNotJudge:
        return CouldNotJudge(
            f"{self._name}: the policy changed the arguments, and the tool cannot be run with them: {why}"
        )
