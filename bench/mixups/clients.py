"""What real clients send, in small: how each names its conversation, asks for a summary of it, and goes on from one."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tagging import Body, Calls, Message, Results, Text, written

# A message at the end; another system prompt over the same history; the history quoted in one message, under another
# system prompt; an item at the end; a path of its own; a parameter of a turn.
Asking = Literal["last", "agent", "quoted", "item", "path", "parameter"]
SEALED = ("item", "path", "parameter")  # what comes back is for the provider, and the client keeps it as it is

PATHS = {"openai_chat": "/v1/chat/completions", "openai_responses": "/v1/responses", "anthropic": "/v1/messages"}
GEMINI = "/v1beta/models/gemini-2.5-pro:"
CONTINUED = "This session is being continued from a previous conversation that ran out of context. It was about:\n{}"
SNAPSHOT = "<state_snapshot>\n{}\n</state_snapshot>"
QUOTED = 2_000  # characters of one message that are quoted


@dataclass(frozen=True)
class ClientShape:
    """A client of some kind."""

    name: str
    format: str
    header: str = ""  # in which it names its conversation; `metadata`: in the body; none: nowhere
    asks: Asking = "last"
    wish: str = "Your task is to create a detailed summary of the conversation so far."
    begins: str = CONTINUED  # the first message of a history that goes on from a summary
    answered: str = ""  # what the assistant says to that
    keeps: int = 0  # of the newest messages, beside a summary
    typed: bool = False  # all that the user typed is kept, before the summary
    tools: bool = True
    greets: bool = False  # the program greets with words of its own, in every session

    @property
    def is_quoting(self) -> bool:
        return self.asks == "quoted"


class Sent(NamedTuple):
    """A request as it is sent."""

    path: str
    headers: dict[str, str]
    body: Body


def _opencode(format: str) -> ClientShape:
    wish = "You are a context summarization agent. Leave nothing out."
    return ClientShape(
        f"opencode {format}", format, "x-session-id", "quoted", wish, "What did we do so far?", "{}", keeps=3
    )


def _pi(format: str) -> ClientShape:
    wish = "You are a context summarization assistant. Leave nothing out."
    begins = "The conversation history before this point was compacted into the following summary:\n\n{}"
    return ClientShape(f"pi {format}", format, "", "quoted", wish, begins, keeps=4)


CLAUDE_WISH = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary."
CODEX_WISH = "You are performing a CONTEXT CHECKPOINT COMPACTION. Write a summary for whoever goes on."
CODEX_BEGINS = "Another language model started to solve this problem and produced a summary of what it did:\n{}"
GEMINI_WISH = "You are a specialized system component responsible for distilling chat history into a <state_snapshot>."
QWEN_WISH = "You are the component that summarizes a conversation into a <state_snapshot>."
AIDER_WISH = "*Briefly* summarize this partial conversation about programming.\nInclude less detail about older parts."
COPILOT_WISH = "Please create a detailed summary of the conversation so far. The history is being compacted now."
COPILOT_BEGINS = "Some of the conversation history has been summarized to free up context.\n\n<summary>\n{}\n</summary>"
SEEN = "I see where we are."

CLIENTS = (
    ClientShape("claude", "anthropic", "x-claude-code-session-id", wish=CLAUDE_WISH),
    ClientShape("codex", "openai_responses", "thread-id", wish=CODEX_WISH, begins=CODEX_BEGINS, typed=True),
    ClientShape("codex items", "openai_responses", "thread-id", "item", typed=True),
    ClientShape("sdk", "openai_responses", "", "path", keeps=1),
    ClientShape("sdk messages", "anthropic", "", "parameter"),
    ClientShape("gemini", "gemini", "", "agent", GEMINI_WISH, SNAPSHOT, SEEN, keeps=2),
    ClientShape("qwen", "openai_chat", "", wish=QWEN_WISH, begins=SNAPSHOT, answered=SEEN, keeps=2),
    _opencode("openai_chat"),
    _opencode("anthropic"),
    _opencode("openai_responses"),
    _pi("openai_chat"),
    _pi("anthropic"),
    ClientShape(
        "aider",
        "openai_chat",
        "",
        "quoted",
        AIDER_WISH,
        "I spoke to you previously about a number of things.\n{}",
        "Ok.",
        keeps=2,
        tools=False,
    ),
    ClientShape("copilot", "openai_chat", wish=COPILOT_WISH, begins=COPILOT_BEGINS),
    ClientShape(
        "crush", "openai_chat", "x-session-id", "agent", "You are summarizing a conversation to preserve context.", "{}"
    ),
)
# Programs of anybody's: named in one of the ways there are, or not at all.
APPS = tuple(
    ClientShape(f"app {format} {header}".strip(), format, header, keeps=keeps, greets=greets)
    for format in (*PATHS, "gemini")
    for header, keeps, greets in (
        ("", 3, False),
        ("", 0, True),
        ("x-clew-session", 3, False),
        ("x-clew-session", 0, True),
        ("metadata", 2, False),
    )
    if header != "metadata" or format != "gemini"
)


# --- requests ---------------------------------------------------------------------------------------------------------


class Speaker(NamedTuple):
    """What a request is made of beside its messages."""

    client: ClientShape
    system: str
    ids: bool  # whether calls have ids; Gemini's need none
    name: str | None
    parent: str | None


def request(who: Speaker, said: Sequence[Message | Body], streamed: bool, system: str = "", tools: bool = True) -> Sent:
    """A turn of a conversation, or with another system prompt something beside it."""
    client = who.client
    body = written(client.format, said, who.ids, system or who.system)
    if not (tools and client.tools):
        body.pop("tools", None)
    headers = _names(who)
    if client.header == "metadata" and who.name:
        body["metadata"] = {"session_id": who.name}
        if client.format == "anthropic":
            body["metadata"] = {"user_id": json.dumps({"device_id": "0", "session_id": who.name})}
    if client.format == "gemini":
        body.pop("model")
        verb = "streamGenerateContent?alt=sse" if streamed else "generateContent"
        return Sent(GEMINI + verb, headers, body)
    if streamed:
        body["stream"] = True
        if client.format == "openai_chat":
            body["stream_options"] = {"include_usage": True}
    return Sent(PATHS[client.format], headers, body)


def _names(who: Speaker) -> dict[str, str]:
    header, name, parent = who.client.header, who.name, who.parent
    if not name or header in ("", "metadata"):
        return {}
    if parent is None:
        return {header: name} | ({"session-id": name} if header == "thread-id" else {})
    match header:
        case "x-claude-code-session-id":
            return {header: parent, "x-claude-code-agent-id": name}
        case "thread-id":
            return {header: name, "session-id": parent}
        case "x-session-id":
            return {header: name, "x-parent-session-id": parent}
    return {header: name, "x-clew-parent": parent}


COMPACT = {
    "type": "compact_20260112",
    "trigger": {"type": "input_tokens", "value": 1},
    "pause_after_compaction": True,
}


def asking(who: Speaker, said: Sequence[Message | Body], streamed: bool) -> Sent:
    """A request for a summary."""
    client = who.client
    match client.asks:
        case "last":
            return request(who, [*said, Text("user", client.wish)], streamed)
        case "agent":
            last = "Generate a new <state_snapshot>." if client.begins == SNAPSHOT else "Sum up all that stands above."
            return request(who, [*said, Text("user", last)], streamed, client.wish, tools=False)
        case "quoted":
            return request(who, [Text("user", _quoted(client, said))], streamed, client.wish, tools=False)
        case "item":
            return request(who, [*said, {"type": "compaction_trigger"}], False)
        case "parameter":
            sent = request(who, said, False)
            sent.body["context_management"] = {"edits": [COMPACT]}
            return sent
    sent = request(who, said, False)
    return sent._replace(path="/v1/responses/compact")


def asking_again(who: Speaker, said: Sequence[Message | Body], summary: str) -> Sent:
    """The same once more, as Gemini CLI does, which shows what it was told."""
    more = [Text("user", "Generate a new <state_snapshot>."), Text("assistant", summary)]
    last = Text("user", "Critically evaluate the <state_snapshot> you wrote, and give a better one.")
    return request(who, [*said, *more, last], False, who.client.wish, tools=False)


def _quoted(client: ClientShape, said: Sequence[Message | Body]) -> str:
    parts = [part for message in said for part in _parts(message)]
    if client.name == "aider":
        return "".join(f"# {role.upper()}\n{text}\n" for role, text in parts)
    told = "\n\n".join(f"[{role}] {text[:QUOTED]}" for role, text in parts)
    if client.name.startswith("pi"):
        return f"<conversation>\n{told}\n</conversation>\n\nSum it up."
    return f"Here is the conversation so far: <conversation>\n{told}\n</conversation>\n\nWrite an anchored summary."


def _parts(message: Message | Body) -> list[tuple[str, str]]:
    match message:
        case Text():
            return [(message.role, message.text)]
        case Calls():
            return [("assistant", message.text)] if message.text else []
        case Results():
            return [("tool", text) for _, text in message.given]
    return []


def continued(client: ClientShape, summary: str | Body, said: Sequence[Message | Body]) -> list[Message | Body]:
    """The history with which a client goes on from a summary, or from an item that only its provider reads."""
    typed: list[Message | Body] = [m for m in said if _is_asked(m)] if client.typed else []
    kept = list(said[-client.keeps :]) if client.keeps else []
    while kept and (isinstance(kept[0], Results) or (client.answered and not _is_asked(kept[0]))):
        kept.pop(0)
    if isinstance(summary, dict):
        return [*typed, summary, *kept]
    begun: list[Message | Body] = [Text("user", _filled(client.begins, summary))]
    if client.answered:
        begun.append(Text("assistant", _filled(client.answered, summary)))
    return [*typed, *begun, *kept]


def _is_asked(message: Message | Body) -> bool:
    return isinstance(message, Text) and message.role == "user"


def _filled(text: str, summary: str) -> str:
    if text == SNAPSHOT and summary.lstrip().startswith("<state_snapshot>"):
        return summary
    return text.replace("{}", summary)


def item_of(answer: Any) -> Body | None:
    """The item or block in which a summary came that only its provider reads."""
    for item in answer.get("output") or answer.get("content") or ():
        if item.get("type") == "compaction":
            return {"role": "assistant", "content": [item]} if "content" in answer else dict(item)
    return None
