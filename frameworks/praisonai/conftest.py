"""Nothing of PraisonAI's reaches out or writes at home; conversations that tests are made of."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

os.environ |= {"PRAISONAI_TELEMETRY_DISABLED": "true", "PRAISONAI_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}

Message = dict[str, Any]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PraisonAI and clew keep things by default."""
    for name in ("HOME", "PRAISONAI_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "OPENAI_MODEL_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def call() -> Callable[..., Message]:
    """A message of the assistant's with calls of `read`, one for each name."""

    def made(*names: str) -> Message:
        calls = [
            {
                "id": f"call_{name}",
                "type": "function",
                "function": {"name": "read", "arguments": json.dumps({"path": f"src/{name}.py"})},
            }
            for name in names
        ]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    return made


@pytest.fixture
def result() -> Callable[[str, str], Message]:
    def made(name: str, text: str) -> Message:
        return {"role": "tool", "tool_call_id": f"call_{name}", "content": text}

    return made


@pytest.fixture
def talk(call: Callable[..., Message], result: Callable[[str, str], Message]) -> list[Message]:
    """A system prompt, a first exchange with a call, and fifty turns of which each has a fact of its own."""
    said: list[Message] = [
        {"role": "system", "content": "You port parsers."},
        {"role": "user", "content": "Port the parser to Rust, and never touch tests/golden."},
        call("start"),
        result("start", "def parse(): ..."),
    ]
    for n in range(50):
        said += [
            {"role": "user", "content": f"Now module_{n}: it listens on port {8000 + n}."},
            call(f"module_{n}"),
            result(f"module_{n}", f"def function_{n}(): return {n}\n" + "unremarkable words of a file " * 12),
            {"role": "assistant", "content": f"module_{n} is ported; error E{1000 + n} is fixed."},
        ]
    return [*said, {"role": "user", "content": "What is left to do?"}]
