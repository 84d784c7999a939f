"""The agent's own model writes what stands in for old messages, and LangChain's callbacks see it by its name."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from frameworks.langchain.talking import WINDOW, blocking
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from clew import Budget, Engine, SQLite
from clew.adapters.host import CHAPTER
from clew.adapters.langchain import ClewMiddleware
from clew.testing import Answer, Call, StrictProvider

pytestmark = pytest.mark.usefixtures("as_shipped")


@tool
def read(path: str) -> str:
    """Read a file."""
    number = int(path.removeprefix("part_").removesuffix(".py"))
    return "\n".join([f"KEY_{number} = {number * 4711}", *(f"{path} line {n} of no interest" for n in range(40))])


class Listening(BaseCallbackHandler):
    """Hears the names of what is run."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **given: Any) -> None:
        self.names.append(str(given.get("name")))


def script(body: dict[str, Any]) -> Answer:
    said = json.dumps(body["messages"])
    if "<full>" in said:
        keys = dict.fromkeys(re.findall(r"KEY_\d+ = \d+", said))
        return Answer("<full>\n" + "\n".join(f"The file says {key}." for key in keys) + "\n</full>", seconds=0.02)
    script_at[0] += 1
    done = script_at[0] > 24
    return Answer("Read.") if done else Answer(calls=(Call("read", {"path": f"part_{script_at[0]}.py"}),), seconds=0.02)


script_at = [0]


def test_its_words_are_in_the_next_request(tmp_path: Path) -> None:
    script_at[0] = 0
    heard = Listening()
    with StrictProvider(script, window=WINDOW) as provider:
        model = ChatOpenAI(model="gpt-4o", base_url=f"{provider.url}/v1", api_key="none", callbacks=[heard])  # type: ignore[arg-type]
        engine = Engine(SQLite(tmp_path / "clew.db"), Budget(window=WINDOW))
        agent = create_agent(model, tools=[read], middleware=[ClewMiddleware(engine)])
        blocking(agent, "Read all parts, and tell me their keys.", {"recursion_limit": 100})
    asked = [one for one in provider.heard if "<full>" in json.dumps(one.body["messages"])]
    assert asked
    assert heard.names.count(CHAPTER) == len(asked)
    last = json.dumps([one for one in provider.heard if one not in asked][-1].body["messages"])
    assert all(f"KEY_{n} = {n * 4711}" in last for n in range(1, 25))
