"""Values of Python as JSON text for the service, and back.

What has no clear form in JSON is an error: a value that the service cannot see is a value it cannot judge.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import os
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from portcullis.errors import CouldNotJudge

#: Gives the form in JSON of a value that has none of its own, or raises TypeError.
Encode = Callable[[Any], object]

_PLAIN = (str, int, float, bool, list, tuple, dict, type(None))


def to_json(value: object, encode: Encode | None) -> str:
    """The JSON text of a value; TypeError or ValueError when it has none.

    Besides what JSON knows: paths, UUIDs, dates and times, decimals, enums, dataclasses and pydantic models, and what
    `encode` makes of the rest. Numbers that JSON has no word for, such as NaN, have no form.
    """

    def form(other: object) -> object:
        if encode is not None:
            try:
                return encode(other)
            except TypeError:
                pass
        return _form(other)

    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=form)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    # A lone surrogate is no character and cannot travel.
    text.encode()
    return text


def _form(value: object) -> object:
    if isinstance(value, (os.PathLike, uuid.UUID, decimal.Decimal)):
        return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        return dump(value, mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def from_json(text: str, what: str) -> Any:
    """The value of JSON text that the service sent."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CouldNotJudge(f"the service answered with {what} that is no JSON: {error}") from error


def restored(original: object, changed: Any) -> Any:
    """A changed value in the type of the original; TypeError where that type cannot be made from JSON."""
    if isinstance(original, _PLAIN) and not isinstance(original, enum.Enum):
        return tuple(changed) if type(original) is tuple and isinstance(changed, list) else changed
    validate = getattr(type(original), "model_validate", None)
    if validate is not None:
        return validate(changed)
    made_of_text = (os.PathLike, uuid.UUID, decimal.Decimal, enum.Enum)
    if isinstance(original, made_of_text) and isinstance(changed, (str, int)):
        make: Any = type(original)
        return make(changed)
    raise TypeError(f"{type(original).__name__} cannot be made from the changed value")
