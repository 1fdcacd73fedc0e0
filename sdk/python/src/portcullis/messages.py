"""Conversations in the forms Python programs have them in, as messages of the contract.

Every form that is accepted is sent whole: what is not understood is an error and never left out, as it would reach the
model unseen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Union

from portcullis.errors import ConfigurationError
from portcullis.v1 import messages_pb2

#: One turn: a message of the contract, or a dictionary as chat APIs have it (`role`, `content`, `name`, `tool_calls`,
#: `tool_call_id`).
MessageLike = Union[messages_pb2.Message, Mapping[str, object]]

#: A conversation: one user message as text, one turn, or several turns, oldest first.
MessagesLike = Union[str, MessageLike, Sequence[MessageLike]]

_KNOWN = {"role", "content", "text", "name", "tool_calls", "tool_call_id"}


def conversation(messages: MessagesLike) -> list[messages_pb2.Message]:
    """The turns of a conversation, ready to be sent."""
    if isinstance(messages, str):
        return [messages_pb2.Message(role="user", text=messages)]
    if isinstance(messages, (messages_pb2.Message, Mapping)):
        return [_message(messages, 0)]
    return [_message(message, index) for index, message in enumerate(messages)]


def _message(message: MessageLike, index: int) -> messages_pb2.Message:
    if isinstance(message, messages_pb2.Message):
        return message
    where = f"messages[{index}]"
    if not isinstance(message, Mapping):
        raise ConfigurationError(f"{where}: {type(message).__name__} is no message; give a dict with role and content")
    strange = sorted(key for key, value in message.items() if key not in _KNOWN and value not in (None, "", [], {}))
    if strange:
        raise ConfigurationError(
            f"{where}: {', '.join(strange)} would not be judged; put it into content or leave it out"
        )
    if message.get("content") is not None and message.get("text") is not None:
        raise ConfigurationError(f"{where}: give content or text, not both")
    turn = messages_pb2.Message(
        role=_text(message, "role", where),
        name=_text(message, "name", where),
        tool_call_id=_text(message, "tool_call_id", where),
    )
    content = message.get("content", message.get("text"))
    if isinstance(content, str):
        turn.text = content
    elif isinstance(content, Sequence):
        turn.parts.CopyFrom(messages_pb2.Parts(parts=[_part(part) for part in content]))
    elif content is not None:
        turn.parts.CopyFrom(messages_pb2.Parts(parts=[messages_pb2.Part(json=_json(content, where))]))
    turn.tool_calls.extend(_tool_calls(message.get("tool_calls"), where))
    return turn


def _text(message: Mapping[str, object], key: str, where: str) -> str:
    value = message.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConfigurationError(f"{where}.{key}: {type(value).__name__} is no text")
    return value


def _part(part: object) -> messages_pb2.Part:
    if isinstance(part, messages_pb2.Part):
        return part
    if isinstance(part, str):
        return messages_pb2.Part(text=part)
    if isinstance(part, Mapping) and set(part) <= {"type", "text"} and isinstance(part.get("text"), str):
        return messages_pb2.Part(text=str(part["text"]))
    uri = _media_uri(part)
    if uri is not None:
        return messages_pb2.Part(media=messages_pb2.MediaRef(uri=uri))
    # Any other part is judged as the JSON it is.
    return messages_pb2.Part(json=_json(part, "content"))


def _media_uri(part: object) -> str | None:
    """Where the image of a part lies, if the part is that and nothing else."""
    if not isinstance(part, Mapping) or set(part) != {"type", "image_url"}:
        return None
    image = part["image_url"]
    if isinstance(image, Mapping) and set(image) <= {"url", "detail"}:
        image = image.get("url")
    return image if isinstance(image, str) and not image.startswith("data:") else None


def _tool_calls(calls: object, where: str) -> Iterable[messages_pb2.ToolCall]:
    if calls is None:
        return
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise ConfigurationError(f"{where}.tool_calls: {type(calls).__name__} is no list")
    for index, call in enumerate(calls):
        if isinstance(call, messages_pb2.ToolCall):
            yield call
            continue
        if not isinstance(call, Mapping):
            raise ConfigurationError(f"{where}.tool_calls[{index}]: {type(call).__name__} is no tool call")
        # OpenAI nests name and arguments in `function`; LangChain has `name` and `args`.
        function = call.get("function")
        inner: Mapping[str, object] = function if isinstance(function, Mapping) else call
        arguments = inner.get("arguments", inner.get("args", inner.get("input")))
        yield messages_pb2.ToolCall(
            id=str(call.get("id") or ""),
            name=str(inner.get("name") or ""),
            args_json="" if arguments is None else arguments if isinstance(arguments, str) else _json(arguments, where),
        )


def _json(value: object, where: str) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{where}: cannot be written as JSON, so it cannot be judged: {error}") from error
