"""A loop of tools, as a user of LiteLLM would write it, and the model that it talks to."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import litellm
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

from clew.testing import Answer, Call

WINDOW = 8_000
TURNS = 12
TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Read a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}


def contents(path: str) -> str:
    """What is in a file: one line of interest."""
    number = int(path.removeprefix("part_").removesuffix(".py"))
    return "\n".join([f"KEY_{number} = {number * 4711}", *(f"{path} line {n} of no interest" for n in range(60))])


def reading() -> Iterator[Answer]:
    """A model that reads two files a turn."""
    for n in range(0, 2 * TURNS, 2):
        yield Answer(calls=(Call("read", {"path": f"part_{n}.py"}), Call("read", {"path": f"part_{n + 1}.py"})))
        yield Answer(f"Read parts {n} and {n + 1}.")


async def streamed(**given: Any) -> Any:
    """The message that a stream of LiteLLM's comes to."""
    chunks = [chunk async for chunk in await litellm.acompletion(**given, stream=True)]
    whole: Any = litellm.stream_chunk_builder(chunks)
    return whole.choices[0].message


async def whole(**given: Any) -> Any:
    answer: Any = await litellm.acompletion(**given)
    return answer.choices[0].message


async def talk(said: list[Any], ask: Callable[..., Any], turns: int = TURNS, **given: Any) -> None:
    """A loop of tools, as users of LiteLLM write it: its own objects are appended to the list."""
    for _ in range(turns):
        said.append({"role": "user", "content": "Read the next two parts."})
        while True:
            message = await ask(messages=said, tools=[TOOL], **given)
            said.append(message)
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                result = contents(json.loads(call.function.arguments)["path"])
                said.append({"role": "tool", "tool_call_id": call.id, "content": result})
    await GLOBAL_LOGGING_WORKER.flush()
