"""opencode: `{info, messages: [{info, parts}]}` as it exports it, or the messages one a line."""

from collections.abc import Mapping, Sequence
from typing import Any

from clew.errors import BadRequest
from clew.sessions.transcripts.shape import Script, Transcript, TranscriptCompaction, TranscriptMessage
from clew.sessions.transcripts.source import Record, SessionFolder, Source, mapping, number, objects, string, time
from clew.wire.formats.media import PDF, PICTURES

NAME = "opencode"
WIRE = "anthropic"
FOLDERS = (SessionFolder("XDG_DATA_HOME", ".local/share", "opencode"),)
MARKS = (b'"summary"',)
FAILED = "is_error"  # a mark of our own, in the metadata of a result
ASIDE = frozenset({"step-finish", "snapshot", "patch", "agent", "retry", "compaction"})


def recognises(value: Mapping[str, Any]) -> bool:
    """Whether a record is of an opencode session."""
    return isinstance(value.get("info"), Mapping) and ("parts" in value or "messages" in value)


def read(source: Source) -> list[Transcript]:
    """The session of an export."""
    session: Mapping[str, Any] = {}
    said: list[Record] = []
    for record in source.records:
        value = record.value
        info = mapping(value.get("info"))
        if "parts" in value:
            said.append(record)
        elif "messages" in value:
            session = info
            said += (Record(record.line, m) for m in objects(value["messages"]))
        elif string(info.get("id") or value.get("id")).startswith("ses"):
            session = info or value
        else:
            source.skipped["line without `info` and `parts`"] += 1
    return [_transcript(session, said, source)]


def wire_messages(message: Mapping[str, Any]) -> list[TranscriptMessage]:
    """One message of opencode's as it sends it: a question, or an answer and what its tools gave."""
    script, source = Script(), Source("", [])
    heard = _answer if mapping(message.get("info")).get("role") == "assistant" else _ask
    heard(objects(message.get("parts")), script, source)
    return script.messages


def _transcript(session: Mapping[str, Any], said: Sequence[Record], source: Source) -> Transcript:
    script = _script(said, source)
    infos = [mapping(m.get("info")) for _, m in said]
    models = [m for i in infos if (m := _model(i))]
    times = [t for i in infos if (t := time(mapping(i.get("time")).get("created")))]
    lived = mapping(session.get("time"))
    began, ended = time(lived.get("created")), time(lived.get("updated"))
    ids = [i for info in infos if (i := string(info.get("sessionID")))]
    parent = string(session.get("parentID"))
    paths = (string(mapping(i.get("path")).get("cwd")) for i in infos)
    return Transcript(
        WIRE,
        script.stretches,
        name=string(session.get("id")) or next(iter(ids), source.name),
        title=string(session.get("title")),
        agent=NAME,
        model=models[-1] if models else "",
        system=next((s for i in reversed(infos) if (s := string(i.get("system")))), ""),
        cwd=string(session.get("directory")) or next(filter(None, paths), ""),
        began=began or next(iter(times), ""),
        ended=ended or next(reversed(times), ""),
        parent=parent,
        cause="subagent" if parent else "",
        notes=source.all_notes(),
    )


def _model(info: Mapping[str, Any]) -> str:
    return string(info.get("modelID")) or string(mapping(info.get("model")).get("modelID"))


def _script(said: Sequence[Record], source: Source) -> Script:
    script = Script()
    asked: dict[str, Mapping[str, Any]] = {}  # the requests to compact, by their ids
    places: dict[str, int] = {}
    for line, message in said:
        info, parts = message.get("info"), message.get("parts")
        if not isinstance(info, Mapping) or not isinstance(parts, list):
            raise BadRequest(f"{source.where(line)}: expected a message with `info` and `parts`")
        id, held = string(info.get("id")), objects(parts)
        places[id] = len(script.messages)
        if request := next((p for p in held if p.get("type") == "compaction"), None):
            asked[id] = request
            _ask(held, script, source)  # mostly nothing
        elif info.get("role") == "assistant" and info.get("summary") is True:
            request = asked.pop(string(info.get("parentID")), {})
            script.compact(_compaction(info, held, request, len(script.messages), places))
        elif info.get("role") == "assistant":
            _answer(held, script, source)
        else:
            _ask(held, script, source)
    if asked:
        source.skipped["compaction that was asked for and not done"] += len(asked)
    return script


def _compaction(
    info: Mapping[str, Any],
    parts: Sequence[Mapping[str, Any]],
    request: Mapping[str, Any],
    said: int,
    places: Mapping[str, int],
) -> TranscriptCompaction:
    spent = mapping(info.get("tokens"))
    cache = mapping(spent.get("cache"))
    tokens = sum(number(n) or 0 for n in (spent.get("input"), cache.get("read"), cache.get("write")))
    trigger = "" if "auto" not in request else "auto" if request["auto"] else "manual"
    kept = said - places.get(string(request.get("tail_start_id")), said)
    at = time(mapping(info.get("time")).get("created"))
    summary = "\n".join(string(p.get("text")) for p in parts if p.get("type") == "text")
    return TranscriptCompaction(summary or None, trigger, tokens or None, kept, at)


def _ask(parts: Sequence[Mapping[str, Any]], script: Script, source: Source) -> None:
    """What the user said."""
    blocks: list[dict[str, Any]] = []
    for part in parts:
        match string(part.get("type")):
            case "text" if part.get("ignored"):
                source.skipped["text that the user kept from the model"] += 1
            case "text":
                blocks.append({"type": "text", "text": string(part.get("text"))})
            case "file":
                blocks += _file(part)
            case "subtask":
                task = f"[{part.get('agent')}: {part.get('description')}]\n{part.get('prompt')}"
                blocks.append({"type": "text", "text": task})
            case kind if kind not in ASIDE:
                source.skipped[f"part of an unknown type {kind or 'none'}"] += 1
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        script.say({"role": "user", "content": blocks[0]["text"]})
    elif blocks:
        script.say({"role": "user", "content": blocks})


def _answer(parts: Sequence[Mapping[str, Any]], script: Script, source: Source) -> None:
    """What the assistant said and did; each step of it is one answer, and what its tools gave."""
    blocks: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for part in [*parts, {"type": "step-start"}]:
        match string(part.get("type")):
            case "text":
                blocks.append({"type": "text", "text": string(part.get("text"))})
            case "reasoning":
                blocks.append(_thought(part))
            case "tool":
                state = mapping(part.get("state"))
                called = {"type": "tool_use", "id": string(part.get("callID")), "name": string(part.get("tool"))}
                blocks.append(called | {"input": mapping(state.get("input"))})
                results += _results(string(part.get("callID")), state)
            case "file":
                source.skipped["file in an answer"] += 1
            case "step-start":
                if blocks:
                    script.say({"role": "assistant", "content": blocks})
                if results:
                    script.say({"role": "user", "content": results})
                blocks, results = [], []
            case kind if kind not in ASIDE:
                source.skipped[f"part of an unknown type {kind or 'none'}"] += 1


def _thought(part: Mapping[str, Any]) -> dict[str, Any]:
    own = mapping(mapping(part.get("metadata")).get("anthropic"))
    if sealed := string(own.get("redactedData")):
        return {"type": "redacted_thinking", "data": sealed}
    return {"type": "thinking", "thinking": string(part.get("text")), "signature": string(own.get("signature"))}


def _results(call: str, state: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a tool gave; nothing while it runs."""
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call}
    match state.get("status"):
        case "completed":
            text, shown = string(state.get("output")), [b for f in objects(state.get("attachments")) for b in _file(f)]
            words = [{"type": "text", "text": text}] if text else []
            failed = {"is_error": True} if mapping(state.get("metadata")).get(FAILED) is True else {}
            return [result | {"content": [*words, *shown] if shown else text} | failed]
        case "error":
            return [result | {"content": string(state.get("error")), "is_error": True}]
    return []


def _file(part: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What an attached file shows; a text file is told in a text part beside it."""
    mime, url, name = (string(part.get(k)) for k in ("mime", "url", "filename"))
    kind = "image" if mime in PICTURES else "document" if mime == PDF else ""
    if mime in ("text/plain", "application/x-directory"):
        return []
    if kind and url.startswith("data:") and ";base64," in url:
        return [{"type": kind, "source": {"type": "base64", "media_type": mime, "data": url.partition(",")[2]}}]
    if kind and url.startswith(("http:", "https:")):
        return [{"type": kind, "source": {"type": "url", "url": url}}]
    return [{"type": "text", "text": f"[file {name or url} of type {mime}]"}]
