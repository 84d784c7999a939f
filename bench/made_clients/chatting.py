"""Clients of Chat Completions that send no id, or one for all they do: pi, Qwen Code, Copilot, Crush, aider."""

import json
from collections.abc import Iterator
from copy import deepcopy

from made_clients.shape import Client, ClientMessage, ClientRequest, RequestKind, Worked, cut_result
from made_clients.tongues import ChatTongue, Spec, tools_of
from made_clients.wording import Pen

DATED = "The current date is"


class Chatting(Client):
    """A plain loop over Chat Completions."""

    format = "openai_chat"
    path = "/v1/chat/completions"
    model = "gpt-5.4"
    frame = 8_000
    names: tuple[str, ...] = ("shell", "read", "edit", "write", "find")

    def __init__(self, pen: Pen, conversation: str) -> None:
        super().__init__(pen, conversation)
        self.own = Pen(self.name)  # the program's own words are the same in all sessions
        self.tongue = ChatTongue(pen)
        self.system = self.own.prose(self.frame // 2)
        self.tools: list[Spec] = tools_of(self.own, self.frame // 2, self.names) if self.names else []
        self.history: list[ClientMessage] = []

    def ask(self, text: str) -> None:
        self.history += self.tongue.asked(text)

    def work(self, work: Worked) -> None:
        self.history += self.tongue.worked(work)

    def answer(self, text: str) -> None:
        self.history += self.tongue.answered(text)

    def body(self) -> ClientMessage:
        return self.written(self.system, self.tools, self.history)

    def written(self, system: str, tools: list[Spec], history: list[ClientMessage], model: str = "") -> ClientMessage:
        """A request of this client."""
        return self.tongue.body(model or self.model, system, tools, deepcopy(history))

    def retold(self) -> str:
        """The conversation as one text."""
        return "\n\n".join(f"[{m['role']}] {m.get('content') or ''}" for m in self.history)


class Pi(Chatting):
    """pi: its own summary takes the place of all but the newest part, and is updated by the next one."""

    name = "pi"
    before = ""  # the last summary

    def retold(self) -> str:
        return "\n\n".join(part for m in self.history[bool(self.before) :] for part in _quoted(m))

    def compact(self, summary: str) -> Iterator[ClientRequest]:
        system = f"You are a context summarization assistant. {self.own.prose(200)}"
        before = f"<previous-summary>\n{self.before}\n</previous-summary>\n\n" if self.before else ""
        quote = f"<conversation>\n{self.retold()}\n</conversation>\n\n{before}{self.own.prose(60)}"
        yield self.sent("compaction", self.written(system, [], self.tongue.asked(quote)))
        opening = "The conversation history before this point was compacted into the following summary:"
        kept = self.history[_last_user(self.history) :]
        self.before = summary
        self.history = [*self.tongue.asked(f"{opening}\n\n<summary>\n{summary}\n</summary>"), *kept]


class QwenCode(Chatting):
    """Qwen Code: reminders before the first question, the date before the newest one while it is that; now and then
    another agent reads the whole conversation, to remember things."""

    name = "qwen-code"
    model = "qwen3-coder-plus"
    frame = 15_000
    names = ("shell", "read_file", "edit", "glob", "grep", "todo", "task")

    def __init__(self, pen: Pen, conversation: str) -> None:
        super().__init__(pen, conversation)
        self.memory = f"You are a managed memory extraction subagent. {self.own.prose(900)}"
        self.memory_tools = tools_of(self.own, 1_500, ("read_memory", "write_memory"))
        self.rests = 0
        self.notes = [f"<system-reminder>\n{self.own.prose(size)}\n</system-reminder>" for size in (1_200, 80, 500)]

    def ask(self, text: str) -> None:
        for message in self.history:
            if message["role"] == "user" and DATED in str(message["content"][0]):
                del message["content"][0]
        notes = [f"<system-reminder>\n{DATED}: Sunday.\n</system-reminder>"] if self.history else self.notes
        self.history.append({"role": "user", "content": [{"type": "text", "text": t} for t in (*notes, text)]})

    def resting(self) -> Iterator[ClientRequest]:
        self.rests += 1
        if self.rests % 2:
            asked = [*self.history, *self.tongue.asked("Write down what should be remembered of this conversation.")]
            yield self.sent("side", self.written(self.memory, self.memory_tools, asked))

    def compact(self, summary: str) -> Iterator[ClientRequest]:
        wish = f"You are the component that summarizes a conversation into a <state_snapshot>. {self.own.prose(200)}"
        asked = [*self.history, *self.tongue.asked(wish)]
        yield self.sent("compaction", self.written(self.system, self.tools, asked))
        yield self.sent("compaction", self.written(self.system, [], asked))
        kept = self.history[_last_user(self.history) :]
        said = self.tongue.asked(f"<state_snapshot>\n{summary}\n</state_snapshot>")
        self.history = [*said, *self.tongue.answered("I see where we are."), *kept]


class Copilot(Chatting):
    """Copilot's terminal program: the time in each message of the user; it goes on from a summary and nothing else."""

    name = "copilot"
    frame = 10_000
    minute = 0

    def ask(self, text: str) -> None:
        self.minute += 7
        clock = (
            f"<current_datetime>2026-11-15T{10 + self.minute // 60:02d}:{self.minute % 60:02d}:00Z</current_datetime>"
        )
        super().ask(f"{clock}\n\n{text}")

    def headers(self, kind: RequestKind) -> dict[str, str]:
        initiator = "user" if self.history and self.history[-1]["role"] == "user" else "agent"
        about = "conversation-compaction" if kind == "compaction" else "conversation-user"
        return {**super().headers(kind), "x-initiator": initiator, "x-interaction-type": about}

    def compact(self, summary: str) -> Iterator[ClientRequest]:
        wish = "Please create a detailed summary of the conversation so far. The history is being compacted"
        asked = [*self.history, *self.tongue.asked(f"{wish} now. {self.own.prose(400)}")]
        yield self.sent("compaction", self.written(self.system, self.tools, asked))
        opening = "Some of the conversation history has been summarized to free up context."
        told = f"<user_message>\n{self.asked}\n</user_message>\n\n<summary>\n{summary}\n</summary>\n"
        self.history = self.tongue.asked(f"{opening}\n\n{told}")


class Crush(Chatting):
    """Crush: a reminder before all else, a title asked for at the same time, one id for all of it."""

    name = "crush"
    frame = 10_000

    def __init__(self, pen: Pen, conversation: str) -> None:
        super().__init__(pen, conversation)
        reminder = "<system_reminder>The todo list is currently empty.</system_reminder>"
        self.history = self.tongue.asked(reminder)
        self.titles = self.own.prose(150)

    def headers(self, kind: RequestKind) -> dict[str, str]:
        return {**super().headers(kind), "x-session-id": self.id[:16], "x-session-affinity": self.id[:16]}

    def opening(self) -> Iterator[ClientRequest]:
        asked = self.tongue.asked(f"Find a few words to call this by:\n\n{self.asked}")
        yield self.sent("side", self.written(self.titles, [], asked, "gpt-5.4-nano"))

    def compact(self, summary: str) -> Iterator[ClientRequest]:
        system = f"You are summarizing a conversation to preserve context. {self.own.prose(200)}"
        asked = [*self.history, *self.tongue.asked("Sum up all that stands above.")]
        yield self.sent("compaction", self.written(system, [], asked))
        self.history = self.tongue.asked(summary)


class Aider(Chatting):
    """aider: no tools; the files stand in the last message, each time anew, and what was typed stands there twice."""

    name = "aider"
    names = ()
    frame = 16_000  # half of it is for tools, of which it has none

    def work(self, work: Worked) -> None:
        # What a tool would give is what the user adds to the chat here.
        self.history += self.tongue.answered(work.said or "Please add the files.")
        self.history += self.tongue.asked(f"I added them. {self.asked}")
        self.files = "\n\n".join(f"{c.given['command']}\n```\n{c.output}\n```" for c in work.calls)

    files = ""

    def body(self) -> ClientMessage:
        *before, last = self.history
        text = f"Here are the files:\n\n{self.files}\n\n{last['content']}\n\n{last['content']}"
        return self.written(self.system, [], [*before, {"role": "user", "content": text}])


def _last_user(history: list[ClientMessage]) -> int:
    return max(i for i, m in enumerate(history) if m["role"] == "user")


def _quoted(message: ClientMessage) -> Iterator[str]:
    """A message as pi quotes it."""
    if message["role"] == "tool":
        yield f"[Tool result]: {cut_result(message['content'])}"
        return
    if message.get("content"):
        yield f"[{message['role'].title()}]: {message['content']}"
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    made = (
        f"{call['name']}({', '.join(f'{k}={json.dumps(v)}' for k, v in json.loads(call['arguments']).items())})"
        for call in calls
    )
    if calls:
        yield f"[Assistant tool calls]: {'; '.join(made)}"
