"""Qwen Code: lines that name the one before them, with messages of the Gemini API in them."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_
from typing import Any

from clew.core import rawjson
from clew.sessions.transcripts.shape import Script, Transcript, TranscriptCompaction, TranscriptMessage
from clew.sessions.transcripts.source import SessionFolder, Source, mapping, number, objects, string, time
from clew.sessions.transcripts.tree import TreeEntry, branches
from clew.wire.formats import gemini

NAME = "qwen-code"
WIRE = gemini.NAME
FOLDERS = (SessionFolder("QWEN_HOME", ".qwen", "projects"),)
MARKS = (b'"chat_compression"',)
SPOKEN_TYPES = frozenset({"user", "assistant", "tool_result"})


def recognises(value: Mapping[str, Any]) -> bool:
    """Whether a record is a line of Qwen Code's; those of Claude Code have no parts."""
    return "parentUuid" in value and ("systemPayload" in value or "parts" in mapping(value.get("message")))


def read(source: Source) -> list[Transcript]:
    """The session of a file; branches that were left are its forks."""
    entries = [
        TreeEntry(string(value.get("uuid")), string(value.get("parentUuid")) or None, value, line)
        for line, value in source.records
    ]
    about = _about(entries, source)
    way, beside = branches(entries)
    whole = Script()
    heard: list[tuple[int, int]] = []  # how many messages and compactions there were before each entry
    for i in way:
        heard.append((len(whole.messages), len(whole.cuts)))
        _hear(entries[i], whole, source)
    heard.append((len(whole.messages), len(whole.cuts)))
    forks = []
    for branch in beside:
        said, cuts = heard[bisect_right(way, branch.at)]
        left = Script(whole.messages[:said], whole.cuts[:cuts])
        for i in branch.entries:
            _hear(entries[i], left, Source(source.name, []))
        if len(left.messages) > said:
            forks.append(with_(about, stretches=left.stretches, cause="fork", parent=about.name, shared=said))
    return [with_(about, stretches=whole.stretches, children=tuple(forks), notes=source.all_notes())]


def _about(entries: Sequence[TreeEntry], source: Source) -> Transcript:
    values = [entry.value for entry in entries]
    times = [at for value in values if (at := time(value.get("timestamp")))]
    return Transcript(
        WIRE,
        name=_last(values[:1], "sessionId") or source.name,
        agent=NAME,
        model=_last(values, "model"),
        cwd=_last(values[:1], "cwd"),
        began=times[0] if times else "",
        ended=times[-1] if times else "",
    )


def _last(values: Sequence[Mapping[str, Any]], key: str) -> str:
    return next((found for value in reversed(values) if (found := string(value.get(key)))), "")


def _hear(entry: TreeEntry, script: Script, source: Source) -> None:
    """Take in the next line."""
    value = entry.value
    kind = string(value.get("type"))
    if value.get("subtype") == "chat_compression":
        script.compact(_compaction(value, script.messages))
    elif kind in SPOKEN_TYPES:
        message = mapping(value.get("message"))
        if parts := objects(message.get("parts")):
            script.say({"role": "model" if kind == "assistant" else "user", "parts": parts})
    elif kind != "system":
        source.skipped[f"line of an unknown type {kind or 'none'}"] += 1


def _compaction(value: Mapping[str, Any], said: Sequence[TranscriptMessage]) -> TranscriptCompaction:
    payload = mapping(value.get("systemPayload"))
    history, info = objects(payload.get("compressedHistory")), mapping(payload.get("info"))
    pairs = zip(map(_key, reversed(said)), map(_key, reversed(history)), strict=False)
    kept = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(said), len(history)))
    told = history[0] if len(history) > kept else {}
    summary = "\n".join(string(part.get("text")) for part in objects(told.get("parts")))
    tokens, trigger = number(info.get("originalTokenCount")), string(info.get("triggerReason"))
    return TranscriptCompaction(summary or None, trigger, tokens, kept, time(value.get("timestamp")))


def _key(message: TranscriptMessage) -> bytes:
    return rawjson.dumps([message.get("role"), message.get("parts")])
