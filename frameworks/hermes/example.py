"""An agent of Hermes that reads twenty parts through its smallest window, and a history that stays whole.

Runs offline: the provider is a server in this process, which refuses what is longer than its window.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(tempfile.mkdtemp())
os.environ |= {"HERMES_HOME": str(FOLDER), "XDG_DATA_HOME": str(FOLDER), "XDG_CONFIG_HOME": str(FOLDER)}
SETTINGS = """
plugins: {enabled: [clew]}
context: {engine: clew}
model: {context_length: 64000}
"""
(FOLDER / "config.yaml").write_text(SETTINGS, encoding="utf-8")

from hermes_cli.plugins import discover_plugins
from run_agent import AIAgent
from tools.registry import registry

from clew import Sessions, configured
from clew.testing import Answer, Call, StrictProvider

WINDOW = 64_000
PARTS = 20


def read(number: int) -> str:
    return "\n".join([f"code{number}x is {number * 4711}.", *(f"line {n} of no interest" for n in range(800))])


def model() -> Iterator[Answer]:
    """What the model says: a part at a time, then that it is done."""
    for n in range(PARTS):
        yield Answer(calls=(Call("read_part", {"number": n}),))
    yield Answer("All are read.")


def main() -> None:
    number = {"type": "object", "properties": {"number": {"type": "integer"}}}
    schema = {"name": "read_part", "description": "Read a part.", "parameters": number}
    registry.register("read_part", "parts", schema, lambda args, **_: json.dumps({"text": read(args["number"])}))
    discover_plugins(force=True)
    answers = model()
    with StrictProvider(lambda _: next(answers), window=WINDOW) as provider:
        agent = AIAgent(
            base_url=f"{provider.url}/v1",
            api_key="none",
            provider="custom",
            model="gpt-4o-mini",
            max_tokens=4_000,
            session_id="parts",
            quiet_mode=True,
            skip_memory=True,
            tool_delay=0,
            enabled_toolsets=["parts", "context_engine"],
        )
        came = agent.run_conversation("Read all parts.")
    print("model:", came["final_response"])
    largest = max(heard.spent.input for heard in provider.heard)
    print(f"{len(provider.heard)} requests, the largest of {largest:,} tokens; the window has {WINDOW:,}")
    sent = provider.heard[-1].body["messages"]
    print(f"{len(came['messages'])} messages in the history, {len(sent)} in the last request")
    chain = asyncio.run(Sessions(configured()).lineage("parts"))
    print(f"sessions of {chain[0].name}: {', '.join(session.cause for session in chain)}")


if __name__ == "__main__":
    main()
