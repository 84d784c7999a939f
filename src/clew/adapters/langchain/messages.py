"""What LangChain sends, in the format of OpenAI's Chat Completions, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from clew.adapters.restoring import WireMessage, restored

LANGCHAIN_FORMAT = "openai_chat"  # into which LangChain itself writes the messages of all providers
THOUGHTS = ("thinking", "redacted_thinking", "reasoning")  # blocks of what a model thought, by their types
REPEATED = ("tool_use", "tool_call", "function_call", "input_json_delta")  # blocks of what is in `tool_calls` too
DETAILS = "reasoning_details"  # under which clew finds what a model thought

HeldMessage = tuple[AnyMessage, Sequence[WireMessage]]


def name_of(model: BaseChatModel) -> str:
    """By which the catalog may know a model."""
    return str(getattr(model, "model_name", None) or getattr(model, "model", None) or "")


def body_of(
    request: ModelRequest[Any], held: Sequence[HeldMessage], tools: Sequence[BaseTool | dict[str, Any]]
) -> WireMessage:
    """A call of a model as one request."""
    system = convert_to_openai_messages([request.system_message]) if request.system_message else []
    body = {"model": name_of(request.model), "messages": [*system, *(part for _, parts in held for part in parts)]}
    if tools:
        body["tools"] = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in tools]
    most = request.model_settings.get("max_tokens") or getattr(request.model, "max_tokens", None)
    return {**body, "max_tokens": most} if isinstance(most, int) else body


def held(messages: Sequence[AnyMessage]) -> list[HeldMessage]:
    """Messages of LangChain, each with what is made of it."""
    return [(message, _written(message)) for message in messages]


def sendable(body: WireMessage, known: Sequence[HeldMessage]) -> list[AnyMessage]:
    """The messages of a body as LangChain sends them, which has the system prompt elsewhere."""
    results = {message.tool_call_id: message for message, _ in known if isinstance(message, ToolMessage)}
    sent: list[WireMessage] = body["messages"]
    lead = next((n for n, message in enumerate(sent) if message["role"] not in ("system", "developer")), len(sent))
    opening = next((n for n, (message, _) in enumerate(known) if message.type != "system"), len(known))
    # Messages of the host's that are system prompts too stand at the beginning, after the agent's own.
    return restored(sent[lead - opening :], known, lambda message: _made(message, results))


def without_thoughts(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Messages without Claude's thinking, which is bound to what stood before it."""
    return [_without(message, ("thinking", "redacted_thinking"))[0] for message in messages]


def usage_of(message: AIMessage) -> dict[str, Any] | None:
    """What a provider reported, whose input has what was cached; LangChain writes that alike for all of them."""
    if not (told := message.usage_metadata) or not told["input_tokens"]:
        return None
    cached = told.get("input_token_details", {}).get("cache_read", 0)
    return {
        "prompt_tokens": told["input_tokens"],
        "completion_tokens": told["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def _written(message: AnyMessage) -> Sequence[WireMessage]:
    rest, thoughts = _without(message, (*THOUGHTS, *REPEATED))
    written = convert_to_openai_messages([rest])
    thoughts = [block for block in thoughts if block["type"] in THOUGHTS]
    return [{**written[0], DETAILS: thoughts}, *written[1:]] if thoughts and written else written


def _without(message: AnyMessage, types: Sequence[str]) -> tuple[AnyMessage, list[dict[str, Any]]]:
    """What a model said without blocks of these types, and these blocks."""
    if not isinstance(message, AIMessage) or isinstance(message.content, str):
        return message, []
    taken = [block for block in message.content if isinstance(block, dict) and block.get("type") in types]
    if not taken:
        return message, []
    left = [block for block in message.content if block not in taken]
    return message.model_copy(update={"content": left or ""}), taken


def _made(wire: WireMessage, results: Mapping[str, ToolMessage]) -> AnyMessage:
    """A message that clew wrote or changed."""
    content = wire.get("content") or ""
    match wire["role"]:
        case "tool" if result := results.get(wire["tool_call_id"]):
            return result.model_copy(update={"content": content})
        case "assistant":
            (made,) = convert_to_messages([{k: v for k, v in wire.items() if k != DETAILS} | {"content": content}])
            return made  # type: ignore[return-value]
    return HumanMessage(content)  # not a system message: in the middle, not all providers of LangChain take one
