"""The model of an agent as one that writes chapters, and when it may be asked."""

from typing import Any

from agents import Agent, FunctionTool, Model, ModelSettings, RunConfig
from agents.models.interface import ModelTracing
from agents.models.openai_responses import OpenAIResponsesModel
from agents.tracing import custom_span
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from clew.adapters.host import CHAPTER
from clew.catalog.usage import Spent
from clew.steps.chapters.model import Prompt, Reply


def may_be_asked(agent: Agent[Any], config: RunConfig) -> bool:
    """Whether its model may; not where it must call, answer with an object, or has tools of its provider's."""
    choices = [settings.tool_choice for settings in (agent.model_settings, config.model_settings) if settings]
    is_free = all(choice in (None, "auto", "none") for choice in choices)
    is_text = agent.output_type in (None, str)
    return is_free and is_text and all(isinstance(tool, FunctionTool) for tool in agent.tools)


async def asked(model: Model | str | None, config: RunConfig, prompt: Prompt) -> Reply:
    """What a model says to a question of clew's, which has a span in the trace of its run."""
    speaking = model if isinstance(model, Model) else config.model_provider.get_model(model)
    settings = ModelSettings(max_tokens=prompt.max_tokens)
    if isinstance(speaking, OpenAIResponsesModel):
        settings.store = False
    tracing = ModelTracing.DISABLED if config.tracing_disabled else ModelTracing.ENABLED_WITHOUT_DATA
    elsewhere: dict[str, Any] = {"previous_response_id": None, "conversation_id": None, "prompt": None}
    with custom_span(CHAPTER, disabled=config.tracing_disabled):
        answer = await speaking.get_response(
            prompt.system or None, prompt.text, settings, [], None, [], tracing, **elsewhere
        )
    said = [part for item in answer.output if isinstance(item, ResponseOutputMessage) for part in item.content]
    text = "".join(part.text for part in said if isinstance(part, ResponseOutputText))
    calls = tuple(item.name for item in answer.output if isinstance(item, ResponseFunctionToolCall))
    return Reply(text, spent_of(answer.usage), calls, bool(answer.output) and not text)


def spent_of(usage: Usage | Any) -> Spent:
    """What the SDK counted, whose input includes what was cached."""
    cached = getattr(usage.input_tokens_details, "cached_tokens", 0) or 0
    return Spent(usage.input_tokens, usage.output_tokens, cached)
