"""Bodies, lists of messages and lines of messages, in every wire format; and files of whole conversations.

A conversation may say where its product compacted it: `real_compactions`, each with the `index` of the first message
after it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from clew.core import rawjson
from clew.errors import BadRequest
from clew.sessions.transcripts.shape import Script, Transcript, TranscriptCompaction, TranscriptMessage
from clew.sessions.transcripts.source import Source, mapping, number, objects, string, time
from clew.wire.formats import detect, detect_list, named
from clew.wire.formats.plain import text_of

TURNS, CONVERSATION = "conversations", "conversation"
# Calls and their results have no ids there: they are read as what they are, text of who wrote them.
SPEAKERS: Mapping[str, str] = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("observation", "tool", "function_response"), "function"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "bing", "bard", "model", "function_call"), "assistant"),
    "system": "system",
}


LISTS = ("messages", "input", "contents", TURNS, CONVERSATION)
CUTS = "real_compactions"


def recognises(value: Mapping[str, Any]) -> bool:
    """Whether a record is a body or a message."""
    return any(key in value for key in LISTS) or "role" in value or "content" in value or "call_id" in value


def is_body(value: Mapping[str, Any]) -> bool:
    """Whether a record is a whole conversation."""
    return any(key in value for key in LISTS) and "role" not in value


def read(source: Source, format: str | None = None) -> list[Transcript]:
    """The conversations of a file: one a body, or one of all messages."""
    bodies = [is_body(value) for _, value in source.records]
    if all(bodies):
        return [_transcript(value, source, line, format) for line, value in source.records]
    if any(bodies):
        odd = next(r.line for r, is_body in zip(source.records, bodies, strict=True) if is_body != bodies[0])
        raise BadRequest(f"{source.where(odd)}: expected messages in every line, or a body in every line")
    messages = [value for _, value in source.records]
    format = format or detect_list(messages)
    for i, (line, message) in enumerate(source.records):
        _check(message, f"{named(format).LIST}[{i}]", format, source.where(line))
    return [_transcript({named(format).LIST: messages}, source, 1, format)]


def _check(message: Any, place: str, format: str, where: str) -> None:
    try:
        named(format).read(message, place)
    except BadRequest as error:
        raise BadRequest(f"{where}: {error}") from None


def _transcript(body: Mapping[str, Any], source: Source, line: int, format: str | None) -> Transcript:
    try:
        body = as_body(body)
    except BadRequest as error:
        raise BadRequest(f"{source.where(line)}: {error}") from None
    format = format or detect(body)
    key = named(format).LIST
    said = body.get(key)
    if isinstance(said, str) and format == "openai_responses":
        said = [{"role": "user", "content": said}]
    if not isinstance(said, list):
        raise BadRequest(f"{source.where(line)}: expected `{key}`, a list of messages, got {type(said).__name__}")
    for i, message in enumerate(said):
        _check(message, f"{key}[{i}]", format, source.where(line))
    system, lead = _system(body, said, format)
    script = _script(said, lead, objects(body.get(CUTS)), source)
    return Transcript(
        format,
        script.stretches,
        name=string(body.get("id")) or source.name,
        title=string(body.get("title")),
        agent=string(body.get("agent")),
        model=string(body.get("model")) or string(body.get("modelId")),
        system=system,
        tools=tuple(objects(body.get("tools") or mapping(body.get("toolConfig")).get("tools"))),
        cwd=string(body.get("cwd")),
        notes=source.all_notes(),
    )


def _system(body: Mapping[str, Any], said: Sequence[TranscriptMessage], format: str) -> tuple[str, int]:
    """The system prompt, and how many of the messages it takes."""
    if named(format).lead("."):
        match said:
            case [{"role": "system", "content": str(text), **rest}, *_] if not rest and text:
                return text, 1
        return "", 0
    told = body.get(next(iter(named(format).system(" "))))  # the key under which it says it
    return text_of(mapping(told).get("parts", told)), 0


def _script(said: Sequence[TranscriptMessage], lead: int, cuts: Sequence[Mapping[str, Any]], source: Source) -> Script:
    script = Script()
    at = lead
    for cut in sorted(cuts, key=lambda cut: number(cut.get("index")) or 0):
        index = number(cut.get("index"))
        if index is None or not 0 <= index <= len(said):
            source.skipped[f"compaction without a place among the messages: index {cut.get('index')!r}"] += 1
            continue
        script.say(*said[at : max(index, at)])
        at = max(index, at)
        script.compact(_compaction(cut, len(script.messages)))
    script.say(*said[at:])
    return script


def _compaction(cut: Mapping[str, Any], said: int) -> TranscriptCompaction:
    summary = cut.get("summary")
    return TranscriptCompaction(
        summary if isinstance(summary, str) else None,
        string(cut.get("trigger")),
        number(cut.get("pre_tokens")),
        max(0, min(number(cut.get("kept")) or 0, said)),
        time(cut.get("at")),
    )


def write(transcript: Transcript) -> bytes:
    """The body that would send all of it; where it was compacted is said beside it, which no provider takes."""
    body = transcript.body()
    lead = len(body[named(transcript.format).LIST]) - len(transcript.messages)
    cuts = [_cut(place + lead, why) for place, why in transcript.compactions]
    return rawjson.dumps(body | ({CUTS: cuts} if cuts else {}))


def _cut(index: int, why: TranscriptCompaction) -> dict[str, Any]:
    told = {"index": index, "trigger": why.trigger, "pre_tokens": why.tokens_before, "summary": why.summary}
    return told | ({"kept": why.kept} if why.kept else {}) | ({"at": why.at} if why.at else {})


def as_body(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The conversation as a body with `messages`; one that has other names for its parts, as it is."""
    if "messages" in value:
        return value
    if isinstance(turns := value.get(TURNS), list):
        said = [_message(turn, n) for n, turn in enumerate(turns)]
    elif isinstance(turns := value.get(CONVERSATION), list):
        said = turns
    else:
        return value
    return {key: part for key, part in value.items() if key not in (TURNS, CONVERSATION)} | {"messages": said}


def _message(turn: Any, n: int) -> dict[str, Any]:
    if not isinstance(turn, Mapping) or not isinstance(turn.get("value"), str):
        raise BadRequest(f"{TURNS}[{n}]: expected an object with `from` and `value`")
    role = SPEAKERS.get(string(turn.get("from")).lower())
    if role is None:
        raise BadRequest(f"{TURNS}[{n}].from: unknown {turn.get('from')!r}; expected one of {', '.join(SPEAKERS)}")
    named = {"name": string(turn["from"]).lower()} if role == "function" else {}
    return {"role": role, **named, "content": turn["value"]}
