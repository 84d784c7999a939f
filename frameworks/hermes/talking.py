"""A tool, the settings of Hermes, and the model that it talks to."""

import json
import re
from threading import Event
from typing import Any

from tools.registry import registry

from clew.testing import Answer, Call

WINDOW = 64_000  # Hermes refuses less
PARTS = 24
FACT = re.compile(r"code\d+x is \d+\.")
PLAIN = {
    "api_key": "none",
    "provider": "custom",
    "model": "gpt-4o-mini",
    "max_tokens": 4_000,
    "session_id": "parts",
    "quiet_mode": True,
    "skip_context_files": True,
    "skip_memory": True,
    "tool_delay": 0,
    "enabled_toolsets": ["parts", "context_engine"],
}
SCHEMA = {
    "name": "read_part",
    "description": "Read a part.",
    "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
}


def contents(number: int) -> str:
    """What is in a part: one line of interest."""
    filling = (f"part {number}, line {n} of no interest" for n in range(400))
    return "\n".join([f"code{number}x is {number * 4711}.", *filling])


registry.register(
    name="read_part",
    toolset="parts",
    schema=SCHEMA,
    handler=lambda args, **_: json.dumps({"content": contents(int(args["number"]))}),
    check_fn=lambda: True,
)


def settings(engine: str = "clew", window: int = WINDOW) -> str:
    """What the user writes into Hermes' config.yaml."""
    return f"""
plugins: {{enabled: [clew]}}
context: {{engine: {engine}}}
model: {{context_length: {window}}}
agent: {{api_max_retries: 1}}
"""


class Model:
    """A model that reads one part more with each call, two at a time if asked, and then says that it is done."""

    def __init__(self) -> None:
        self.next = 0
        self.answered = 0  # what was refused never comes here
        self.last = PARTS
        self.replies: dict[str, Answer] = {}  # to what a user says
        self.replied = Event()
        self.says: list[Answer] = []  # before anything else

    def __call__(self, heard: dict[str, Any]) -> Answer:
        self.answered += 1
        if not heard.get("tools"):  # it is asked for a summary: as good a one as can be
            facts = sorted(set(FACT.findall(str(heard["messages"]))))
            return Answer("\n".join(["Parts were read.", *facts]))
        asked = str(heard["messages"][-1].get("content"))
        if heard["messages"][-1]["role"] == "user" and asked in self.replies:
            self.replied.set()
            return self.replies[asked]
        if self.says:
            return self.says.pop(0)
        if self.next >= self.last:
            return Answer("All are read.")
        self.next += 2
        return Answer(calls=tuple(Call("read_part", {"number": n}) for n in (self.next - 2, self.next - 1)))
