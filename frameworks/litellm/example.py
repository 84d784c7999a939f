"""A loop of tools over LiteLLM that reads twenty-four files through a small window, and a list that stays whole.

Runs offline: the provider is a server in this process, which refuses what is longer than its window.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none"}

import litellm

from clew import Budget, Engine, Sessions, SQLite
from clew.adapters.litellm import ClewLogger
from clew.testing import Answer, Call, StrictProvider

WINDOW = 8_000
FILES = 24
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}


def read(path: str) -> str:
    number = int(path.removeprefix("part_").removesuffix(".py"))
    return "\n".join([f"KEY_{number} = {number * 4711}", *(f"{path} line {n} of no interest" for n in range(100))])


def model() -> Iterator[Answer]:
    """What the model says: a file at a time, then that it is done."""
    for n in range(FILES):
        yield Answer(calls=(Call("read", {"path": f"part_{n}.py"}),))
    yield Answer("All are read.")


async def main(folder: Path) -> None:
    engine = Engine(SQLite(folder / "clew.db"), Budget(window=WINDOW, reserve=500))
    litellm.callbacks = [ClewLogger(engine)]
    said: list[Any] = [{"role": "user", "content": "Read all parts."}]
    answers = model()
    with StrictProvider(lambda _: next(answers), window=WINDOW) as provider:
        given = {"model": "openai/gpt-4o-mini", "api_base": f"{provider.url}/v1", "tools": [TOOL]}
        while True:
            answer: Any = await litellm.acompletion(messages=said, litellm_session_id="parts", **given)
            said.append(message := answer.choices[0].message)
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                result = read(json.loads(call.function.arguments)["path"])
                said.append({"role": "tool", "tool_call_id": call.id, "content": result})
    print("model:", message.content)
    largest = max(heard.spent.input for heard in provider.heard)
    print(f"{len(provider.heard)} requests, the largest of {largest:,} tokens; the window has {WINDOW:,}")
    print(f"{len(said)} messages in the list, {len(provider.heard[-1].body['messages'])} in the last request")
    chain = await Sessions(engine).lineage("parts")
    print(f"sessions of {chain[0].name}: {', '.join(session.cause for session in chain)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
