"""A transcript as the lines that pi writes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clew.core import rawjson
from clew.sessions.transcripts.pi import FRAME_ENTRY, VERSION
from clew.sessions.transcripts.shape import Transcript, TranscriptCompaction, TranscriptMessage
from clew.sessions.transcripts.source import NEVER, milliseconds, objects, string, uuid_for
from clew.wire.convert.media import words
from clew.wire.formats.plain import text_of

NO_USAGE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
USAGE = {**NO_USAGE, "totalTokens": 0, "cost": {**NO_USAGE, "total": 0}}


def write(transcript: Transcript) -> bytes:
    """The file of a session."""
    began = transcript.began or NEVER
    head = {"type": "session", "version": VERSION, "id": transcript.name or uuid_for(""), "timestamp": began}
    lines: list[dict[str, Any]] = [head | {"cwd": transcript.cwd}]
    lines += (_numbered(n, entry, began) for n, entry in enumerate(_entries(transcript)))
    if len(lines) > 1 and transcript.ended:
        lines[-1]["timestamp"] = transcript.ended
    return b"".join(rawjson.dumps(line) + b"\n" for line in lines)


def written(messages: Sequence[TranscriptMessage], names: Mapping[str, str], model: str) -> list[dict[str, Any]]:
    """Messages as pi has them in a conversation; `names` are those of the tools that were called, by the calls' ids."""
    return [
        entry["message"] for message in messages for entry in _entry(message, names, model, 0) if "message" in entry
    ]


def _numbered(n: int, entry: dict[str, Any], began: str) -> dict[str, Any]:
    place = {"id": f"{n:08x}", "parentId": f"{n - 1:08x}" if n else None, "timestamp": entry.get("timestamp") or began}
    return {"type": entry["type"], **place} | {k: v for k, v in entry.items() if k != "timestamp"}


def _entries(transcript: Transcript) -> Iterator[dict[str, Any]]:
    """What each line says, without its place; a compaction names the first entry that it kept."""
    told = [*_head_entries(transcript)]
    yield from told
    starts: list[int] = []  # the entry with which each message begins
    names: dict[str, str] = {}
    at, n = milliseconds(transcript.began), len(told)
    for stretch in transcript.stretches:
        if stretch.began is not None:
            yield _compaction(stretch.began, starts, n)
            n += 1
        for message in stretch.messages:
            starts.append(n)
            names |= {string(b.get("id")): string(b.get("name")) for b in objects(message.get("content"))}
            for entry in _entry(message, names, transcript.model, at):
                yield entry
                n += 1


def _head_entries(transcript: Transcript) -> Iterator[dict[str, Any]]:
    if transcript.title:
        yield {"type": "session_info", "name": transcript.title}
    if transcript.model:
        yield {"type": "model_change", "provider": "anthropic", "modelId": transcript.model}
    if transcript.system or transcript.tools:
        held = {"system": transcript.system, "tools": [*transcript.tools]}
        yield {"type": "custom", "customType": FRAME_ENTRY, "data": held}


def _compaction(why: TranscriptCompaction, starts: list[int], n: int) -> dict[str, Any]:
    first = starts[-why.kept] if why.kept else n  # itself: nothing before it
    entry: dict[str, Any] = {"type": "compaction", "timestamp": why.at or NEVER, "summary": why.summary or ""}
    entry |= {"firstKeptEntryId": f"{first:08x}", "tokensBefore": why.tokens_before or 0}
    return entry | ({"details": {"trigger": why.trigger}} if why.trigger else {})


def _entry(message: TranscriptMessage, names: Mapping[str, str], model: str, at: int) -> Iterator[dict[str, Any]]:
    content, role = message.get("content"), message.get("role")
    if role == "assistant":
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else _parts(content)
        why = "toolUse" if any(p["type"] == "toolCall" for p in parts) else "stop"
        head = {"role": "assistant", "content": parts, "api": "anthropic-messages", "provider": "anthropic"}
        yield _message(head | {"model": model, "usage": USAGE, "stopReason": why}, at)
        return
    rest = [b for b in objects(content) if b.get("type") != "tool_result"]
    for block in objects(content):
        if block.get("type") == "tool_result":
            yield _message(_result(block, names), at)
    if role == "system":
        yield {"type": "custom_message", "customType": "system", "content": text_of(content), "display": False}
    elif isinstance(content, str) or rest:
        yield _message({"role": "user", "content": content if isinstance(content, str) else _parts(rest)}, at)


def _message(message: dict[str, Any], at: int) -> dict[str, Any]:
    return {"type": "message", "message": message | {"timestamp": at}}


def _result(block: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    content, id = block.get("content"), string(block.get("tool_use_id"))
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else _parts(content)
    head = {"role": "toolResult", "toolCallId": id, "toolName": names.get(id, ""), "content": parts}
    return head | {"isError": block.get("is_error") is True}


def _parts(content: Any) -> list[dict[str, Any]]:
    """Anthropic's blocks as pi's; what pi has none for becomes words."""
    parts: list[dict[str, Any]] = []
    for block in objects(content):
        match block:
            case {"type": "text"}:
                parts.append({"type": "text", "text": string(block.get("text"))})
            case {"type": "thinking"}:
                thought = {"type": "thinking", "thinking": string(block.get("thinking"))}
                parts.append(thought | {"thinkingSignature": string(block.get("signature"))})
            case {"type": "redacted_thinking"}:
                sealed = {"thinkingSignature": string(block.get("data")), "redacted": True}
                parts.append({"type": "thinking", "thinking": "", **sealed})
            case {"type": "tool_use", "id": id, "name": name}:
                parts.append({"type": "toolCall", "id": id, "name": name, "arguments": block.get("input")})
            case {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}:
                parts.append({"type": "image", "data": data, "mimeType": mime})
            case _:
                parts.append({"type": "text", "text": f"[{block.get('type')}: {words(block)}]"})
    return parts
