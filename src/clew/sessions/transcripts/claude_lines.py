"""What the lines of Claude Code say, one after the other."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace as with_
from typing import Any

from clew.clients.voices import ATTACHED, typed
from clew.core.items import Item
from clew.errors import BadRequest
from clew.sessions.transcripts.shape import Script, TranscriptCompaction
from clew.sessions.transcripts.source import Source, mapping, number, objects, string, time
from clew.sessions.transcripts.tree import TreeEntry
from clew.wire.formats.plain import text_of


def answer_of(entry: TreeEntry) -> str:
    """The id of the answer that a line is a part of."""
    return string(mapping(entry.value.get("message")).get("id")) if entry.value.get("type") == "assistant" else ""


def blocks_of(entry: TreeEntry) -> list[Mapping[str, Any]]:
    """The content blocks of a line."""
    return objects(mapping(entry.value.get("message")).get("content"))


class LineListener:
    """Puts together what one answer was split into, and summaries with the compactions that they belong to."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.script = Script()
        self.answers: dict[str, int] = {}  # where each answer stands
        self.places: dict[str, int] = {}  # how much had been said before each line
        self.heard: list[tuple[int, int]] = []  # how many messages and compactions there were before each line
        self.born: dict[int, int] = {}  # the line with which each answer began
        self.compacted = 0  # the line of the last boundary
        self.joined: list[tuple[int, int]] = []  # a line, and a later one that says more of the same

    def starts(self) -> list[int]:
        """For each line, the last one up to it at which nothing is half said."""
        opened = Counter(first + 1 for first, _ in self.joined)
        closed = Counter(last + 1 for _, last in self.joined)
        found, inside = [0], 0
        for line in range(1, len(self.heard) + 1):
            inside += opened[line] - closed[line]
            found.append(found[-1] if inside else line)
        return found

    def before(self, line: int, source: Source) -> "LineListener":
        """Who has heard all lines but this one and those after it."""
        other = LineListener(source)
        said, cuts = self.heard[line] if line < len(self.heard) else (len(self.script.messages), len(self.script.cuts))
        other.script = Script(self.script.messages[:said], self.script.cuts[:cuts])
        other.places, other.born = dict(self.places), dict(self.born)
        other.answers = {id: place for id, place in self.answers.items() if place < said}
        return other

    def hear(self, entry: TreeEntry) -> None:
        """Take in the next line."""
        self.heard.append((len(self.script.messages), len(self.script.cuts)))
        self.places[entry.id] = len(self.script.messages)
        hearing: Mapping[str, Callable[[TreeEntry], None]] = {
            "user": self._user,
            "assistant": self._assistant,
            "system": self._system,
            "attachment": self._attachment,
        }
        if hear := hearing.get(string(entry.value.get("type"))):
            hear(entry)

    def _content(self, entry: TreeEntry) -> str | list[Any]:
        message = entry.value.get("message")
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, str) or (isinstance(content, list) and all(isinstance(b, Mapping) for b in content)):
            return content
        expected = "expected `message` with `content`, a string or a list of blocks"
        raise BadRequest(f"{self.source.where(entry.line)}: {expected}, got {type(content).__name__}")

    def _user(self, entry: TreeEntry) -> None:
        content = self._content(entry)
        if entry.value.get("isCompactSummary"):
            self._summary(text_of(content), entry)
        elif entry.value.get("isVisibleInTranscriptOnly"):
            self.source.skipped["line that only the user saw"] += 1
        else:
            text = text_of(content)
            if entry.value.get("isMeta") and not _results(content) and typed(Item("text", "user", text)):
                content = f"{ATTACHED} meta]\n{text}"  # the client's own words: "Continue from where you left off."
            self.script.say({"role": "user", "content": content})

    def _assistant(self, entry: TreeEntry) -> None:
        content = self._content(entry)
        if entry.value.get("isApiErrorMessage"):
            self.source.skipped["error of the API, shown as an answer"] += 1
            return
        id = answer_of(entry)
        place = self.answers.get(id) if id else None
        start = self.script.cuts[-1][0] if self.script.cuts else 0
        if place is None or place < start or isinstance(content, str):
            self.answers[id] = len(self.script.messages)
            self.born[len(self.script.messages)] = len(self.heard) - 1
            self.script.say({"role": "assistant", "content": content})
            return
        self.places[entry.id] = place
        self.joined.append((self.born[place], len(self.heard) - 1))
        said = self.script.messages[place]["content"]
        called = {string(b.get("id")) for b in objects(said)} - {""}
        # A session that was resumed may hold a call twice; no API takes it so.
        more = [b for b in content if string(mapping(b).get("id")) not in called]
        self.script.messages[place] = {"role": "assistant", "content": [*said, *more]}

    def _system(self, entry: TreeEntry) -> None:
        subtype = entry.value.get("subtype")
        if subtype == "microcompact_boundary":
            self.source.skipped["clearing of old results (microcompact), which are all here"] += 1
        if subtype != "compact_boundary":
            return
        about = mapping(entry.value.get("compactMetadata") or entry.value.get("compact_metadata"))
        tokens = about.get("preTokens", about.get("pre_tokens"))
        self.compacted = len(self.heard) - 1
        trigger, at = string(about.get("trigger")), time(entry.value.get("timestamp"))
        self.script.compact(TranscriptCompaction(None, trigger, number(tokens) or None, self._kept(about), at))

    def _kept(self, about: Mapping[str, Any]) -> int:
        """How many of the last messages stayed, by the first of them."""
        segment = mapping(about.get("preservedSegment") or about.get("preserved_segment"))
        listed = mapping(about.get("preservedMessages") or about.get("preserved_messages")).get("uuids")
        uuids = listed if isinstance(listed, list) else []
        first = segment.get("headUuid") or segment.get("head_uuid") or next(iter(uuids), "")
        said = len(self.script.messages)
        return said - self.places.get(string(first), said)

    def _summary(self, text: str, entry: TreeEntry) -> None:
        cuts = self.script.cuts
        if cuts and cuts[-1][0] == len(self.script.messages) and cuts[-1][1].summary is None:
            cuts[-1] = (cuts[-1][0], with_(cuts[-1][1], summary=text))
            self.joined.append((self.compacted, len(self.heard) - 1))
        else:
            self.script.compact(TranscriptCompaction(text, at=time(entry.value.get("timestamp"))))

    def _attachment(self, entry: TreeEntry) -> None:
        held = mapping(entry.value.get("attachment"))
        kind, prompt = string(held.get("type")), held.get("prompt")
        if kind == "queued_command" and prompt and isinstance(prompt, str | list):
            self.script.say({"role": "user", "content": prompt})  # typed while the agent was at work
        elif text := _attached(held):
            name = string(held.get("filename")) or string(held.get("displayPath"))
            label = " ".join(filter(None, (ATTACHED, kind, name)))
            self.script.say({"role": "user", "content": f"{label}]\n{text}"})
        else:
            self.source.skipped[f"attachment without words: {kind}"] += 1


def _results(content: str | list[Any]) -> bool:
    return isinstance(content, list) and any(mapping(block).get("type") != "text" for block in content)


def _attached(held: Mapping[str, Any]) -> str:
    """What an attachment shows, where it is text."""
    for content in (held.get("content"), held.get("snippet")):
        file = mapping(mapping(content).get("file"))
        if text := string(file.get("content")) or text_of(content):
            return text
    return ""
