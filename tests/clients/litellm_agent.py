"""A loop around LiteLLM's `completion`, for the environment that has it: reads what to do, and says what came of it."""

import json
import sys
from importlib import import_module
from itertools import count
from typing import Any

LONG = "\n".join(f"line {n}" for n in range(1_500))
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "read", "description": "Read a file.", "parameters": SCHEMA}}


def work(litellm: Any, given: dict[str, Any]) -> dict[str, Any]:
    """One turn: ask, read what is called for, ask again; each page begins with a fact."""
    history = [*given["history"], {"role": "user", "content": given["text"]}]
    pages = count()
    while True:
        asked = {"model": given["model"], "api_base": given["url"], "api_key": "sk-none", "num_retries": 2}
        answer = litellm.completion(**asked, messages=history, tools=[TOOL], stream=given["streamed"], max_tokens=500)
        if given["streamed"]:
            answer = litellm.stream_chunk_builder(list(answer), messages=history)
        said = answer.choices[0].message
        history.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return {"history": history, "said": said.content}
        for call in said.tool_calls:
            page = f"fact-{next(pages)}\n{LONG}"
            history.append({"role": "tool", "tool_call_id": call.id, "content": page})


if __name__ == "__main__":
    sys.stdout.write(json.dumps(work(import_module("litellm"), json.load(sys.stdin))))
