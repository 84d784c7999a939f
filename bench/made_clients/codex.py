"""Codex over HTTP: all in `input`, items with ids, reasoning sealed; newer models with their tools in there, too."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from made_clients.shape import Client, ClientMessage, ClientRequest, RequestKind, Worked
from made_clients.tongues import SCHEMA, ResponsesTongue, tools_of
from made_clients.wording import Pen

SUMMARISE = "You are performing a CONTEXT CHECKPOINT COMPACTION. Write a summary for whoever goes on."
CONTINUED = "Another language model started to solve this problem and produced a summary of what it did:\n"


class Codex(Client):
    """With a provider of the user's own."""

    name = "codex"
    format = "openai_responses"
    path = "/v1/responses"
    model = "gpt-5.5-codex"
    frame = 9_000  # tokens of instructions and tools

    def __init__(self, pen: Pen, conversation: str) -> None:
        super().__init__(pen, conversation)
        own = Pen(self.name)
        self.tongue = ResponsesTongue(pen)
        self.prompts = own.prose(self.frame // 2), f"<permissions>\n{own.prose(200)}\n</permissions>"
        self.tools = tools_of(own, self.frame // 2, ("shell", "apply_patch", "update_plan", "view_image"))
        self.rules = f"# AGENTS.md instructions for /srv/app\n\n<INSTRUCTIONS>\n{own.prose(300)}\n</INSTRUCTIONS>"
        self.history = self._opening()
        self.typed: list[str] = []
        self.turn = 0
        self.window = 0

    def _opening(self) -> list[ClientMessage]:
        place = "<environment_context>\n  <cwd>/srv/app</cwd>\n  <shell>bash</shell>\n</environment_context>"
        said = [self.tongue.message("developer", text) for text in self.prompts]
        return [*said, self.tongue.message("user", self.rules, place)]

    def ask(self, text: str) -> None:
        self.turn += 1
        self.typed.append(text)
        self.history += self.tongue.asked(text)

    def work(self, work: Worked) -> None:
        self.history += self.tongue.worked(work)

    def answer(self, text: str) -> None:
        self.history += self.tongue.answered(text)

    def body(self) -> ClientMessage:
        return self._body(self.history, "turn")

    def _body(self, history: list[ClientMessage], kind: str) -> ClientMessage:
        tools = self.tools if kind == "turn" else []
        body = self.tongue.body(self.model, "", tools, deepcopy(history))
        body["reasoning"] = {"effort": "high", "summary": "auto"}
        body |= {"tool_choice": "auto", "parallel_tool_calls": False, "prompt_cache_key": self.id}
        return self._with_metadata(body)

    def _with_metadata(self, body: ClientMessage) -> ClientMessage:
        about = {"session_id": self.id, "thread_id": self.id, "turn_id": f"{self.id}-{self.turn}"}
        about |= {"x-codex-window-id": f"{self.id}:{self.window}", "request": self.pen.uuid()}
        keys = self.pen.random.sample(sorted(about), len(about))  # as they come
        return {**body, "client_metadata": {key: about[key] for key in keys}}

    def headers(self, kind: RequestKind) -> dict[str, str]:
        about: dict[str, Any] = {"request_kind": "compaction" if kind == "compaction" else "turn"}
        about |= {"window_number": self.window, "history_initialization": "new"}
        ids = {"session-id": self.id, "thread-id": self.id, "x-codex-window-id": f"{self.id}:{self.window}"}
        return {**super().headers(kind), **ids, "x-codex-turn-metadata": json.dumps(about)}

    def compact(self, summary: str) -> Iterator[ClientRequest]:
        yield self.sent("compaction", self._body([*self.history, *self.tongue.asked(SUMMARISE)], "compaction"))
        self.window += 1
        kept = [m for text in self.typed for m in self.tongue.asked(text)]
        self.history = [*self._opening(), *kept, *self.tongue.asked(f"{CONTINUED}{summary}")]


class CodexLite(Codex):
    """With OpenAI's own provider and its newest models."""

    name = "codex-lite"
    model = "gpt-6-codex"
    frame = 12_000

    def _opening(self) -> list[ClientMessage]:
        tools = [
            {"type": "custom", "name": name, "description": about, "format": {"type": "text"}}
            for name, about in self.tools[:2]
        ]
        others = [
            {"type": "function", "name": name, "description": about, "strict": False, "parameters": SCHEMA}
            for name, about in self.tools[2:]
        ]
        group = {"type": "namespace", "name": "box", "description": "Work in a box.", "tools": [*tools, *others]}
        return [{"type": "additional_tools", "role": "developer", "tools": [group]}, *super()._opening()]

    def work(self, work: Worked) -> None:
        items = [self.tongue.thought(work.thought), self.tongue.message("assistant", work.said or "Go on.")]
        for c in work.calls:
            about = {"call_id": f"call_{c.id}", "name": c.name, "namespace": "box", "input": json.dumps(c.given)}
            items.append({"type": "custom_tool_call", "id": self.pen.id("ctc_"), "status": "completed", **about})
        for c in work.calls:
            back: ClientMessage = {
                "type": "custom_tool_call_output",
                "id": self.pen.id("ctco_"),
                "call_id": f"call_{c.id}",
            }
            items.append({**back, "output": [{"type": "input_text", "text": c.output}]})
        passed = {"turn": self.turn}
        self.history += [{**item, "internal_chat_message_metadata_passthrough": passed} for item in items]

    def _body(self, history: list[ClientMessage], kind: str) -> ClientMessage:
        body = super()._body(history, kind)
        body.pop("tools", None)
        body["reasoning"] = {"effort": "high", "context": "all_turns"}
        if kind == "turn" and self.turn % 2 == 0:
            body["input"].append({"type": "configuration_update", "reasoning": {"effort": "high"}})
        return body

    def headers(self, kind: RequestKind) -> dict[str, str]:
        return {**super().headers(kind), "x-openai-internal-codex-responses-lite": "true"}

    def compact(self, summary: str) -> Iterator[ClientRequest]:
        yield self.sent("compaction", self._body([*self.history, {"type": "compaction_trigger"}], "compaction"))
        self.window += 1
        kept = [m for text in self.typed for m in self.tongue.asked(text)]
        sealed = {"type": "compaction", "id": self.pen.id("cmp_"), "encrypted_content": self.pen.seal(900)}
        self.history = [*self._opening(), *kept, sealed]
