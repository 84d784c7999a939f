"""A loop of tools, as a user of LiteLLM would write it, and the model that it talks to."""

import json
from collections.abc import Callable
from typing import Any

import litellm
from frameworks.reading import contents
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

TURNS = 12
TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Read a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}


async def streamed(**given: Any) -> Any:
    """The message that a stream of LiteLLM's comes to."""
    chunks = [chunk async for chunk in await litellm.acompletion(**given, stream=True)]
    whole: Any = litellm.stream_chunk_builder(chunks)
    return whole.choices[0].message


async def whole(**given: Any) -> Any:
    answer: Any = await litellm.acompletion(**given)
    return answer.choices[0].message


async def talk(said: list[Any], ask: Callable[..., Any], turns: int = TURNS, lines: int = 60, **given: Any) -> None:
    """A loop of tools, as users of LiteLLM write it: its own objects are appended to the list."""
    for _ in range(turns):
        said.append({"role": "user", "content": "Read the next two parts."})
        while True:
            message = await ask(messages=said, tools=[TOOL], **given)
            said.append(message)
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                result = contents(json.loads(call.function.arguments)["path"], lines)
                said.append({"role": "tool", "tool_call_id": call.id, "content": result})
    await GLOBAL_LOGGING_WORKER.flush()
