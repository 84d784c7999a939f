"""A request of ADK as Gemini's API has it, and its contents back."""

from collections.abc import Sequence
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.genai import types

from clew.adapters.restoring import WireMessage, restored
from clew.core import rawjson


def dumped(content: types.Content) -> dict[str, Any]:
    """A content as JSON has it."""
    return content.model_dump(mode="json", by_alias=True, exclude_none=True)


def frame_of(asked: LlmRequest) -> dict[str, Any]:
    """What a request says beside its contents."""
    config = asked.config
    tools = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True)
        for tool in config.tools or ()
        if isinstance(tool, types.Tool)
    ]
    given: dict[str, Any] = {"model": asked.model or "", "tools": tools}
    if isinstance(config.system_instruction, str):
        given["systemInstruction"] = {"parts": [{"text": config.system_instruction}]}
    elif isinstance(config.system_instruction, types.Content):
        given["systemInstruction"] = dumped(config.system_instruction)
    if config.max_output_tokens:
        given["generationConfig"] = {"maxOutputTokens": config.max_output_tokens}
    return {key: value for key, value in given.items() if value}


def back(sent: Sequence[WireMessage], contents: Sequence[types.Content]) -> list[types.Content]:
    """The contents to send, ADK's own objects where they are unchanged."""
    return restored(sent, [(content, [dumped(content)]) for content in contents], _content)


def has_room_for_tools(asked: LlmRequest) -> bool:
    """Whether functions may be offered: not beside tools of the provider's own, nor where the answer has a schema."""
    config = asked.config
    if config.response_schema or config.response_json_schema or config.response_mime_type == "application/json":
        return False
    return all(isinstance(tool, types.Tool) and tool.function_declarations for tool in config.tools or ())


def _content(message: WireMessage) -> types.Content:
    return types.Content.model_validate_json(rawjson.dumps(message))  # bytes are base64 in JSON, and only there
