"""Copilot CLI: events, among them what was said and what tools gave back."""

from collections.abc import Mapping
from dataclasses import replace as with_
from typing import Any

from clew.core import rawjson
from clew.sessions.transcripts.shape import Script, Transcript, TranscriptCompaction
from clew.sessions.transcripts.source import SessionFolder, Source, mapping, number, objects, string, time

NAME = "copilot-cli"
WIRE = "openai_chat"
FOLDERS = (SessionFolder("COPILOT_HOME", ".copilot", "session-state"),)
MARKS = (b'"session.compaction_complete"',)


def recognises(value: Mapping[str, Any]) -> bool:
    """Whether a record is an event."""
    return "." in string(value.get("type")) and isinstance(value.get("data"), Mapping) and "parentId" in value


def read(source: Source) -> list[Transcript]:
    """The session of a file."""
    script, about = Script(), Transcript(WIRE, agent=NAME)
    for _, value in source.records:
        data, at = mapping(value.get("data")), time(value.get("timestamp"))
        about = with_(about, began=about.began or at, ended=at or about.ended)
        if data.get("parentToolCallId"):  # a sub-agent's: its parent has what came of it
            source.skipped["event of a sub-agent"] += 1
            continue
        match value.get("type"):
            case "session.start" | "session.resume":
                about = _started(about, data)
            case "system.message":
                about = with_(about, system=about.system or string(data.get("content")))
            case "user.message" if text := string(data.get("content")):
                script.say({"role": "user", "content": text})
            case "assistant.message":
                about = with_(about, model=string(data.get("model")) or about.model)
                _answer(script, data)
            case "tool.execution_complete":
                told = {"role": "tool", "tool_call_id": string(data.get("toolCallId")), "content": _result(data)}
                script.say(told)
            case "session.compaction_complete" if data.get("success", True):
                script.compact(_compaction(data, at))
    about = with_(about, name=about.name or source.name)
    return [with_(about, stretches=script.stretches, notes=source.all_notes())]


def _started(about: Transcript, data: Mapping[str, Any]) -> Transcript:
    cwd = string(mapping(data.get("context")).get("cwd"))
    return with_(
        about,
        name=about.name or string(data.get("sessionId")),
        cwd=about.cwd or cwd,
        model=string(data.get("selectedModel")) or about.model,
    )


def _answer(script: Script, data: Mapping[str, Any]) -> None:
    calls = [
        {
            "id": string(call.get("toolCallId")),
            "type": "function",
            "function": {"name": string(call.get("name")), "arguments": _arguments(call.get("arguments"))},
        }
        for call in objects(data.get("toolRequests"))
    ]
    text = string(data.get("content"))
    if text or calls:
        script.say({"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})})


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else rawjson.dumps({} if given is None else given).decode()


def _result(data: Mapping[str, Any]) -> str:
    result = mapping(data.get("result"))
    failed = string(mapping(data.get("error")).get("message"))
    return string(result.get("content")) or (f"Error: {failed}" if failed else "")


def _compaction(data: Mapping[str, Any], at: str) -> TranscriptCompaction:
    summary = string(data.get("summaryContent")) or None
    return TranscriptCompaction(summary, string(data.get("trigger")), number(data.get("preCompactionTokens")), 0, at)
