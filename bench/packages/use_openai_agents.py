"""OpenAI's Agents SDK: `ToolOutputTrimmer`; its sessions that compact ask a server of OpenAI's."""

from collections.abc import Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any


class OutputTrimming:
    """Results over 500 characters before the last two user messages keep 200."""

    def __init__(self, window: int) -> None:
        self._trim = import_module("agents.extensions").ToolOutputTrimmer()
        self._data = import_module("agents.run_config").ModelInputData

    def fit(self, messages: Sequence[Any]) -> list[Any]:
        items = [item for message in messages for item in _items(message)]
        data = SimpleNamespace(model_data=self._data(input=items, instructions=None), agent=None, context=None)
        short = {i["call_id"]: i["output"] for i in self._trim(data).input if i.get("type") == "function_call_output"}
        return [{**m, "content": short[m["tool_call_id"]]} if m["role"] == "tool" else m for m in messages]


def _items(message: Any) -> list[Any]:
    """A message as Responses has it."""
    if message["role"] == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}]
    said = [{"role": message["role"], "content": message["content"]}] if message.get("content") else []
    return said + [
        {"type": "function_call", "call_id": c["id"], **c["function"]} for c in message.get("tool_calls") or ()
    ]


WAYS = {"trim": OutputTrimming}
