"""Gemini CLI: messages one a line, each written again when it changes; now and then the whole history anew.

A history that does not go on from what was in view, but begins with something that nobody said, is a compaction. The
answers of tools stand in the file twice, with their call and as a message; they are taken once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_
from typing import Any

from clew.core import rawjson
from clew.sessions.transcripts.shape import Script, Transcript, TranscriptCompaction, TranscriptMessage
from clew.sessions.transcripts.source import SessionFolder, Source, mapping, objects, string, time
from clew.wire.formats import gemini

NAME = "gemini-cli"
WIRE = gemini.NAME
FOLDERS = (SessionFolder("GEMINI_CLI_HOME", "", ".gemini/tmp"),)
MARKS = (b'"$set"',)
CHAT_TYPES = frozenset({"user", "gemini"})
ASIDE = frozenset({"info", "error", "warning"})
CONTEXT = "<session_context>"  # how what the client says first begins
_WORKSPACE = re.compile(r"Workspace Directories:\**\s*\n\s*- (\S[^\n]*)")


def recognises(value: Mapping[str, Any]) -> bool:
    """Whether a record is a line of a chat, or a whole one."""
    if "sessionId" in value and "projectHash" in value:
        return True
    return isinstance(value.get("$set"), Mapping)


def read(source: Source) -> list[Transcript]:
    """The session of a file; none where nobody said anything yet: such files are left when a session is resumed."""
    reading = ChatReading(source)
    for _, value in source.records:
        reading.take(value)
    reading.flush()
    said = reading.script.messages
    texts = [_text(message) for message in said]
    if all(text.startswith(CONTEXT) for text in texts):
        return []
    places = (found[1] for text in texts if text.startswith(CONTEXT) and (found := _WORKSPACE.search(text)))
    about = with_(reading.about, agent=NAME, cwd=next(places, ""), name=reading.about.name or source.name)
    return [with_(about, stretches=reading.script.stretches, notes=source.all_notes())]


class ChatReading:
    """A chat, line by line."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.script = Script()
        self.about = Transcript(WIRE)
        self._view: list[bytes] = []  # the keys of what the model sees
        self._first = ""  # the id of the first of them that somebody said
        self._rows: dict[str, tuple[int, int]] = {}  # of each message, its places in the script and in the view
        self._answers: dict[str, Mapping[str, Any]] = {}  # of tools, by call, that no message has told yet

    def take(self, value: Mapping[str, Any]) -> None:
        """Take in the next line."""
        if at := time(value.get("timestamp") or value.get("lastUpdated") or value.get("startTime")):
            self.about = with_(self.about, began=self.about.began or at, ended=at)
        if "projectHash" in value:
            self.about = with_(self.about, name=string(value.get("sessionId")))
            for message in objects(value.get("messages")):
                self._message(message)
        elif "$set" in value:
            if "messages" in (new := mapping(value["$set"])):
                self._history(objects(new["messages"]), time(new.get("lastUpdated")))
        elif value.get("type") in CHAT_TYPES:
            self._message(value)
        elif value.get("type") not in ASIDE:
            self.source.skipped[f"line of an unknown type {string(value.get('type')) or 'none'}"] += 1

    def _message(self, record: Mapping[str, Any]) -> None:
        if record.get("type") not in CHAT_TYPES:
            return
        content, id = _content(record), string(record.get("id"))
        if model := string(record.get("model")):
            self.about = with_(self.about, model=model)
        if id in self._rows:
            said, seen = self._rows[id]
            self.script.messages[said], self._view[seen] = content, _key(content)
        elif content["parts"] or record.get("type") == "gemini":
            self._say(content, id)
        for call in objects(record.get("toolCalls")):
            if results := objects(call.get("result")):
                self._answers[string(call.get("id"))] = results[0]

    def _say(self, content: TranscriptMessage, id: str) -> None:
        told = {string(mapping(part.get("functionResponse")).get("id")) for part in content["parts"]}
        if told & self._answers.keys():
            self._answers.clear()
        self.flush()
        if id:
            self._rows[id] = len(self.script.messages), len(self._view)
        self.script.say(content)
        self._view.append(_key(content))

    def flush(self) -> None:
        """Say what tools answered, if no message did."""
        answers, self._answers = [*self._answers.values()], {}
        if answers:
            message = {"role": "user", "parts": answers}
            self.script.say(message)
            self._view.append(_key(message))

    def _history(self, records: Sequence[Mapping[str, Any]], at: str) -> None:
        """The whole history anew: longer, shorter, or with something in place of its beginning."""
        told = [record for record in records if record.get("type") in CHAT_TYPES]
        contents = [*map(_content, told)]
        keys = [*map(_key, contents)]
        pairs = zip(keys, self._view, strict=False)
        same = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(keys), len(self._view)))
        if same == len(self._view):
            for record in told[same:]:
                self._message(record)
            return
        first = next((string(r.get("id")) for r, c in zip(told, contents, strict=True) if not _is_context(c)), "")
        anew = bool(self._first) and self._first != first  # two summaries may be equal, and are two
        self._first = first
        same = next((n for n, c in enumerate(contents) if not _is_context(c)), same) if anew else same
        if same < len(keys) and contents[same]["role"] == "user" and (anew or keys[same] not in self._view):
            tail = zip(reversed(keys[same:]), reversed(self._view), strict=False)
            kept = next((n for n, (a, b) in enumerate(tail) if a != b), min(len(keys) - same, len(self._view)))
            why = TranscriptCompaction(_text(contents[same]), "", None, min(kept, len(self.script.messages)), at)
            self.script.compact(why)
        elif same == len(keys):  # the user went back
            since = self.script.cuts[-1][0] if self.script.cuts else 0
            del self.script.messages[max(since, len(self.script.messages) - len(self._view) + same) :]
        self._view = keys
        self._rows.clear()


def _content(record: Mapping[str, Any]) -> dict[str, Any]:
    said = record.get("content")
    parts = [{"text": said}] if isinstance(said, str) and said else [dict(part) for part in objects(said)]
    calls = [
        {"functionCall": {key: call[key] for key in ("id", "name", "args") if key in call}}
        for call in objects(record.get("toolCalls"))
    ]
    known = any("functionCall" in part for part in parts)
    return {"role": "model" if record.get("type") == "gemini" else "user", "parts": parts if known else parts + calls}


def _key(content: Mapping[str, Any]) -> bytes:
    """What a message says: ids and signatures do not count, nor what the client says first, each time anew."""
    if _is_context(content):
        return CONTEXT.encode()
    said: list[Any] = [content["role"]]
    for part in objects(content["parts"]):
        for told in (mapping(part.get("functionCall")), mapping(part.get("functionResponse"))):
            said += [[told.get("name"), told.get("args"), told.get("response")]] if told else []
        if text := part.get("text"):
            said.append(text)
    return rawjson.dumps(said)


def _is_context(content: Mapping[str, Any]) -> bool:
    return _text(content).startswith(CONTEXT)


def _text(content: Mapping[str, Any]) -> str:
    return "\n".join(string(part.get("text")) for part in objects(content.get("parts")) if part.get("text"))
