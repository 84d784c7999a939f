"""A call of a model by an agent of OpenAI's Agents SDK, as a request of the Responses API."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents import FunctionTool, Model, TResponseInputItem
from agents.models.default_models import get_default_model
from agents.run_config import CallModelData

from clew.adapters.restoring import restored
from clew.core.items import canonical

AGENTS_FORMAT = "openai_responses"  # which the SDK writes for models of all providers
KNOWN_BY = ("role", "content", "call_id", "output", "name", "arguments", "summary")  # keys by which an item is known


def request_of(data: CallModelData[Any], model: str | Model | None) -> dict[str, Any]:
    """What the SDK is about to send; of its tools, those that are functions."""
    body: dict[str, Any] = {"model": _name(model or data.agent.model), "input": list(data.model_data.input)}
    if data.model_data.instructions:
        body["instructions"] = data.model_data.instructions
    tools = [_declared(tool) for tool in data.agent.tools if isinstance(tool, FunctionTool)]
    if most := data.agent.model_settings.max_tokens:
        body["max_output_tokens"] = most
    return {**body, "tools": tools} if tools else body


def items_of(body: Mapping[str, Any], given: Sequence[TResponseInputItem]) -> list[TResponseInputItem]:
    """The items to send: the SDK's own wherever they are unchanged."""
    held: list[tuple[Any, Sequence[Any]]] = [(item, [item]) for item in given]
    return restored(body["input"], held, lambda item: item)


def mark_of(item: Any) -> str:
    """What an item says, whatever its id and its state: the SDK leaves these out here and there."""
    return canonical({key: item[key] for key in KNOWN_BY if key in item})


def _name(model: str | Model | None) -> str:
    """By which the catalog may know a model."""
    if model is None:
        return get_default_model()
    return model if isinstance(model, str) else str(getattr(model, "model", ""))


def _declared(tool: FunctionTool) -> dict[str, Any]:
    given = {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
    return {"type": "function", **given, "strict": tool.strict_json_schema}
