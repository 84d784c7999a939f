"""Messages of Inspect AI, made of those that clew changed or wrote."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentReasoning,
    ContentText,
)
from inspect_ai.tool import ToolCall

INSPECT_FORMAT = "openai_chat"
SESSION_MARK = "clew_session"  # in the metadata of a message, by which its conversation is known again


def session_in(messages: Sequence[ChatMessage]) -> str | None:
    """The conversation of messages that clew compacted before."""
    marks = ((message.metadata or {}).get(SESSION_MARK) for message in messages)
    return next((str(mark) for mark in marks if mark), None)


def made(wire: Mapping[str, Any], messages: Sequence[ChatMessage], session: str) -> ChatMessage:
    """A message of Inspect's that says what this one says."""
    content, metadata = _content(wire.get("content")), {SESSION_MARK: session}
    match wire["role"]:
        case "system" | "developer":
            return ChatMessageSystem(content=content, metadata=metadata)
        case "assistant":
            calls = [
                ToolCall(
                    id=call["id"],
                    function=call["function"]["name"],
                    arguments=_arguments(call["function"]["arguments"]),
                )
                for call in wire.get("tool_calls") or ()
            ]
            return ChatMessageAssistant(content=content, tool_calls=calls or None, metadata=metadata)
        case "tool":
            id = wire["tool_call_id"]
            function = next((m.function for m in messages if m.role == "tool" and m.tool_call_id == id), None)
            return ChatMessageTool(content=content, tool_call_id=id, function=function, metadata=metadata)
    return ChatMessageUser(content=content, metadata=metadata)


def _content(said: Any) -> str | list[Content]:
    if not isinstance(said, list):
        return str(said or "")
    return [
        ContentImage(image=part["image_url"]["url"])
        if part.get("type") == "image_url"
        else ContentText(text=str(part.get("text", "")))
        for part in said
    ]


def _arguments(written: str) -> dict[str, Any]:
    try:
        read = json.loads(written)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def unbound(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages without the thinking of a model."""
    return [
        message.model_copy(update={"content": [c for c in message.content if not isinstance(c, ContentReasoning)]})
        if message.role == "assistant" and isinstance(message.content, list)
        else message
        for message in messages
    ]
