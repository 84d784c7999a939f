"""A transcript as the lines that Claude Code writes."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid5

from clew.core import rawjson
from clew.sessions.transcripts.claude_code import PROMPT
from clew.sessions.transcripts.shape import Transcript, TranscriptCompaction, TranscriptMessage
from clew.sessions.transcripts.source import NEVER, SPACE, objects, uuid_for

VERSION = "2.1.81"  # whose lines these look like


def write(transcript: Transcript) -> bytes:
    """The file of a session."""
    return b"".join(rawjson.dumps(line) + b"\n" for line in _lines(transcript))


def _lines(transcript: Transcript) -> Iterator[dict[str, Any]]:
    session = uuid_for(transcript.name)
    ids = [str(uuid5(SPACE, f"{session} {i}")) for i in range(len(transcript.messages))]
    common = {
        "isSidechain": False,
        "userType": "external",
        "cwd": transcript.cwd,
        "sessionId": session,
        "version": VERSION,
        "gitBranch": "",
    }
    before: str | None = None
    if transcript.title:
        yield {"type": "custom-title", "customTitle": transcript.title, "sessionId": session}
    if transcript.system or transcript.tools:
        before = str(uuid5(SPACE, f"{session} system"))
        told = {"content": transcript.system, "tools": [*transcript.tools], "isMeta": True, "level": "info"}
        line = {"parentUuid": None, **common, "type": "system", "subtype": PROMPT, **told, "uuid": before}
        yield line | {"timestamp": transcript.began or NEVER}
    said = 0
    for n, stretch in enumerate(transcript.stretches):
        if stretch.began is not None:
            boundary, summary = (str(uuid5(SPACE, f"{session} {n} {what}")) for what in ("boundary", "summary"))
            yield _boundary(stretch.began, ids[:said], boundary, before, summary) | common
            before = boundary
            if stretch.began.summary is not None:
                yield _summary(stretch.began, summary, boundary) | common
                before = summary
        for message in stretch.messages:
            last = said == len(ids) - 1
            time = (transcript.ended if last else transcript.began) or transcript.began or NEVER
            yield {"parentUuid": before, **common, **_entry(message, ids[said], transcript.model), "timestamp": time}
            before = ids[said]
            said += 1


def _entry(message: TranscriptMessage, id: str, model: str) -> dict[str, Any]:
    if message.get("role") != "assistant":
        # Its API takes system messages among the others; Claude Code has none, and says such things as the user.
        content = message.get("content")
        if message.get("role") == "system":
            return {"type": "user", "isMeta": True, "message": {"role": "user", "content": content or ""}, "uuid": id}
        return {"type": "user", "message": {"role": "user", "content": content}, "uuid": id}
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
    calls = any(block.get("type") == "tool_use" for block in blocks)
    answer = {
        "id": f"msg_{id.replace('-', '')}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    return {"type": "assistant", "message": answer, "requestId": f"req_{id.replace('-', '')}", "uuid": id}


def _boundary(why: TranscriptCompaction, ids: list[str], id: str, before: str | None, summary: str) -> dict[str, Any]:
    about: dict[str, Any] = {"trigger": why.trigger, "preTokens": why.tokens_before or 0}
    if why.kept:
        anchor = id if why.summary is None else summary
        about["preservedSegment"] = {"headUuid": ids[-why.kept], "anchorUuid": anchor, "tailUuid": ids[-1]}
    return {
        "parentUuid": None,
        "logicalParentUuid": before,
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "isMeta": False,
        "level": "info",
        "compactMetadata": about,
        "uuid": id,
        "timestamp": why.at or NEVER,
    }


def _summary(why: TranscriptCompaction, id: str, boundary: str) -> dict[str, Any]:
    return {
        "parentUuid": boundary,
        "type": "user",
        "message": {"role": "user", "content": why.summary},
        "isVisibleInTranscriptOnly": True,
        "isCompactSummary": True,
        "uuid": id,
        "timestamp": why.at or NEVER,
    }
