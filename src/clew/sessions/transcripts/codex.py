"""Codex: a rollout, in which the items of the Responses API stand as they were."""

from collections.abc import Mapping, Sequence
from dataclasses import replace as with_
from hashlib import blake2b
from typing import Any

from clew.clients.voices import typed
from clew.core import rawjson
from clew.core.items import Item
from clew.errors import BadRequest
from clew.sessions.transcripts.shape import (
    Script,
    Transcript,
    TranscriptCompaction,
    TranscriptMessage,
    TranscriptStretch,
)
from clew.sessions.transcripts.source import Record, SessionFolder, Source, mapping, number, objects, string, time
from clew.wire.formats.plain import text_of

NAME = "codex"
FRAME = "clew"  # a key of our own in the head: the prompt and tools of whoever had the session
WIRE = "openai_responses"
FOLDERS = tuple(SessionFolder("CODEX_HOME", ".codex", below) for below in ("sessions", "archived_sessions"))
MARKS = (b'"compacted"',)
LINE_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
ASIDE = frozenset({"world_state", "security_risk_score", "inter_agent_communication_metadata", "token_usage_record"})
BARE = frozenset(  # items that stood in the file by themselves, before September 2025
    "message reasoning function_call function_call_output custom_tool_call custom_tool_call_output local_shell_call "
    "web_search_call".split()
)
STAND_INS = frozenset({"compaction", "compaction_summary", "context_compaction"})
SAYING = ("role", "content", "call_id", "name", "arguments", "input", "output", "encrypted_content", "action")
USERS_BYTES = 80_000  # of the user's messages that stay beside a summary: 20,000 tokens, as Codex counts
SILENT_ITEMS = frozenset({"ghost_snapshot", "compaction_trigger"})


def recognises(value: Mapping[str, Any]) -> bool:
    """Whether a record is a line of a rollout."""
    if string(value.get("type")) in LINE_TYPES and "payload" in value:
        return True
    return value.get("record_type") == "state" or (
        "type" not in value and {"id", "timestamp", "instructions"} <= value.keys()
    )


def read(source: Source) -> list[Transcript]:
    """The session of a rollout; turns that were rolled back are its forks."""
    reading = RolloutReading(source)
    for record in source.records:
        reading.take(record)
    about = with_(reading.about, agent=NAME, began=reading.times[0], ended=reading.times[1])
    about = with_(about, name=about.name or source.name)
    forks = tuple(
        with_(about, stretches=stretches, cause="fork", parent=about.name, shared=shared, children=())
        for shared, stretches in reading.left
    )
    return [with_(about, stretches=reading.script.stretches, children=forks, notes=source.all_notes())]


class RolloutReading:
    """A rollout, line by line."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.script = Script()
        self.about = Transcript(WIRE)
        self.times = ("", "")
        self.tokens: int | None = None  # as last reported
        self.left: list[tuple[int, tuple[TranscriptStretch, ...]]] = []
        self.keys: list[bytes] = []  # of the messages, as far as they were needed
        self.met = False

    def take(self, record: Record) -> None:
        """Take in the next line."""
        kind, value = string(record.value.get("type")), record.value
        if at := time(value.get("timestamp")):
            self.times = (self.times[0] or at, at)
        if kind in BARE and "payload" not in value:
            self._item({k: v for k, v in value.items() if k != "timestamp"})
        elif "type" not in value and "id" in value:
            self._meta(value)
        elif kind in LINE_TYPES:
            payload = value.get("payload")
            if not isinstance(payload, Mapping):
                where = self.source.where(record.line)
                raise BadRequest(f"{where}: expected `payload`, an object, in a line of type {kind}")
            match kind:
                case "session_meta":
                    self._meta(payload)
                case "response_item":
                    self._item(payload)
                case "event_msg":
                    self._event(payload)
                case "turn_context":
                    self._turn(payload)
                case _:
                    self._compacted(payload, at)
        elif kind not in ASIDE and value.get("record_type") != "state":
            self.source.skipped[f"line of an unknown type {kind or 'none'}"] += 1

    def _meta(self, meta: Mapping[str, Any]) -> None:
        if self.met:
            return  # a fork holds the first line of its parent too
        self.met = True
        if meta.get("history_base"):
            self.source.notes.append("it goes on from another file, which holds its beginning")
        spawned = mapping(mapping(mapping(meta.get("source")).get("subagent")).get("thread_spawn"))
        above = string(meta.get("parent_thread_id")) or string(spawned.get("parent_thread_id"))
        forked = string(meta.get("forked_from_id"))
        ours = mapping(meta.get(FRAME))
        instructions = meta.get("base_instructions") or meta.get("instructions") or ours.get("system")
        self.about = with_(
            self.about,
            name=string(meta.get("id")),
            title=string(meta.get("title")),
            cwd=string(meta.get("cwd")) or self.about.cwd,
            system=text_of(instructions),
            tools=(*map(_declared, objects(meta.get("dynamic_tools"))), *objects(ours.get("tools"))),
            parent=above or forked,
            cause="subagent" if above else "fork" if forked else "",
        )

    def _turn(self, context: Mapping[str, Any]) -> None:
        model, cwd = string(context.get("model")), string(context.get("cwd"))
        self.about = with_(self.about, model=model or self.about.model, cwd=self.about.cwd or cwd)

    def _item(self, item: Mapping[str, Any]) -> None:
        if string(item.get("type")) not in STAND_INS | SILENT_ITEMS:
            self.script.say(item)

    def _event(self, event: Mapping[str, Any]) -> None:
        match event.get("type"):
            case "token_count":
                usage = mapping(mapping(event.get("info")).get("last_token_usage"))
                if usage.get("input_tokens"):  # else it is an estimate of Codex's own
                    self.tokens = number(usage.get("total_tokens")) or self.tokens
            case "thread_rolled_back":
                self._roll_back(number(event.get("num_turns")) or 0)
            case "thread_name_updated":
                name = event.get("thread_name") or event.get("name")
                self.about = with_(self.about, title=string(name) or self.about.title)

    def _roll_back(self, turns: int) -> None:
        """The last turns were taken back: they become a fork."""
        said = self.script.messages
        starts = [i for i, message in enumerate(said) if _begins_turn(message)]
        keep = starts[max(len(starts) - turns, 0)] if turns > 0 and starts else len(said)
        if keep == len(said):
            return
        self.left.append((keep, self.script.stretches))
        del said[keep:], self.keys[keep:]
        self.script.cuts = [cut for cut in self.script.cuts if cut[0] <= keep]

    def _compacted(self, payload: Mapping[str, Any], at: str) -> None:
        summary = string(payload.get("message")) or None
        history = objects(payload.get("replacement_history"))
        legible = [m for m in history if string(m.get("type")) not in STAND_INS]
        self._forget_answer(summary or next((text_of(m.get("content")) for m in reversed(legible)), ""))
        self.keys += map(_key, self.script.messages[len(self.keys) :])
        kept, unsaid = _matched(self.keys, legible)
        if summary is None and len(legible) == len(history):
            summary = next((text_of(m.get("content")) for m in reversed(unsaid) if _begins_turn(m)), None)
        if again := sum(not text_of(m.get("content")).endswith(summary or "\0") for m in unsaid):
            self.source.skipped["message that a compaction put there, or shortened"] += again
        self.script.compact(TranscriptCompaction(summary, "", self.tokens, kept, at, self._also(kept, legible)))
        self.tokens = None

    def _forget_answer(self, summary: str) -> None:
        """What the model answered when it was asked for a summary is no part of the conversation."""
        said = self.script.messages
        answer = text_of(said[-1].get("content")) if said and said[-1].get("role") == "assistant" else ""
        if answer.strip() and summary.rstrip().endswith(answer.rstrip()):
            said.pop()
            while said and said[-1].get("type") == "reasoning":
                said.pop()

    def _also(self, kept: int, history: Sequence[TranscriptMessage]) -> tuple[int, ...]:
        """The messages before the last that stayed: as a history says, else the user's, as Codex makes one."""
        places = range(len(self.keys) - kept)
        if history:
            shown = {_key(m) for m in history}
            return tuple(i for i in places if self.keys[i] in shown)
        found: list[int] = []
        room = USERS_BYTES
        for i in reversed(places):
            if _begins_turn(self.script.messages[i]):
                room -= len(text_of(self.script.messages[i].get("content")).encode("utf-8", "surrogatepass"))
                if room < 0:
                    break
                found.append(i)
        return tuple(reversed(found))


def _declared(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    about = {"name": string(tool.get("name")), "description": string(tool.get("description"))}
    return {"type": "function", **about, "parameters": mapping(tool.get("inputSchema") or tool.get("input_schema"))}


def _begins_turn(message: TranscriptMessage) -> bool:
    return message.get("role") == "user" and bool(typed(Item("text", "user", text_of(message.get("content")))))


def _matched(said: Sequence[bytes], history: Sequence[TranscriptMessage]) -> tuple[int, list[TranscriptMessage]]:
    """How many of the last messages are in a history that took their place, and what in it nobody had said."""
    known = set(said) if history else set()
    again = [key for m in history if (key := _key(m)) in known]
    pairs = zip(reversed(said), reversed(again), strict=False)
    kept = next((i for i, (a, b) in enumerate(pairs) if a != b), len(again))
    return kept, [m for m in history if _key(m) not in known]


def _key(message: TranscriptMessage) -> bytes:
    """What a message says: ids and other marks do not count."""
    said = {k: message[k] for k in SAYING if k in message}
    return blake2b(rawjson.dumps(said), digest_size=16).digest()
