"""Claude Code's messages as its mods have them, in the form that clew reads, and back.

A row that is handed back with its handle is the client's own message, with all that rows do not show: thoughts,
pictures, attachments. One without is made anew of what it shows.
"""

import re
from collections.abc import Sequence
from typing import Any

from clew.plugins.forms import HostReport, HostUnit, OwnMessage
from clew.sessions.transcripts.shape import TranscriptMessage
from clew.sessions.transcripts.source import objects, string

_SUMMARY = re.compile(r"^Summary:\s*\n(.*?)(?=\n\nIf you need specific details from before compaction|\Z)", re.M | re.S)


def units(messages: Sequence[OwnMessage]) -> list[HostUnit]:
    """Each row with what the client sends of it."""
    return [((n,), _sent(row)) for n, row in enumerate(messages)]


def _sent(row: OwnMessage) -> list[TranscriptMessage]:
    text = string(row.get("text"))
    said = [{"type": "text", "text": text}] if text.strip() else []
    if row.get("role") == "assistant":
        calls = [_call(use) for use in objects(row.get("toolUses"))]
        return [{"role": "assistant", "content": [*said, *calls]}] if said or calls else []
    results = [_result(result) for result in objects(row.get("toolResults"))]
    return [{"role": "user", "content": [*results, *said]}] if said or results else []


def _call(use: OwnMessage) -> dict[str, Any]:
    given = use.get("input")
    own = {"id": string(use.get("tool_use_id")), "name": string(use.get("tool"))}
    return {"type": "tool_use", **own, "input": given if isinstance(given, dict) else {}}


def _result(result: OwnMessage) -> dict[str, Any]:
    failed = {"is_error": True} if result.get("isError") else {}
    own = {"tool_use_id": string(result.get("tool_use_id")), "content": string(result.get("text"))}
    return {"type": "tool_result", **own, **failed}


def made(new: Sequence[TranscriptMessage], own: Sequence[OwnMessage]) -> list[OwnMessage]:
    """Messages that the client does not have, as rows; each text is one, so that it comes back as it is."""
    return [row for message in new for row in _rows(string(message.get("role")), _blocks(message))]


def _blocks(message: TranscriptMessage) -> list[Any]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def _rows(role: str, blocks: Sequence[Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for block in blocks:
        kind = block.get("type")
        last = rows[-1] if rows else None
        if kind == "tool_use":
            if last is None:
                rows.append(last := _row(role))
            use = {"tool_use_id": block["id"], "tool": block["name"], "input": block.get("input") or {}}
            last["toolUses"].append(use)
        elif kind == "tool_result":
            if last is None or last["text"]:
                rows.append(last := {**_row(role), "toolResults": []})
            result = {"tool_use_id": block["tool_use_id"], "text": _text(block.get("content"))}
            last["toolResults"].append({**result, "isError": bool(block.get("is_error"))})
        elif kind == "text":
            if last is not None and not last["text"] and last.get("toolResults"):
                last["text"] = block["text"]
            else:
                rows.append({**_row(role), "text": block["text"]})
    return rows


def _row(role: str) -> dict[str, Any]:
    return {"role": role, "text": "", "toolUses": []}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(string(block.get("text")) for block in objects(content))


def own_words(summary: str) -> str:
    """What the client's model wrote, without what the client puts around it."""
    found = _SUMMARY.search(summary)
    return found[1].strip() if found else summary


def report(messages: Sequence[OwnMessage]) -> HostReport | None:
    """Nothing: rows do not tell what was spent."""
    return None
