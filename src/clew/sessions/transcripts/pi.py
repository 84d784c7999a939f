"""pi: entries with `id` and `parentId`, under the header of a session."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_
from typing import Any

from clew.clients.voices import LEFT_BRANCH, RAN_COMMAND
from clew.errors import BadRequest
from clew.sessions.transcripts.shape import Script, Transcript, TranscriptCompaction, TranscriptMessage
from clew.sessions.transcripts.source import SessionFolder, Source, mapping, number, objects, string, time
from clew.sessions.transcripts.tree import TreeEntry, branches

NAME = "pi"
WIRE = "anthropic"
FOLDERS = (SessionFolder("PI_CODING_AGENT_DIR", ".pi/agent", "sessions"),)
MARKS = (b'"compaction"', b'"compactionSummary"')
VERSION = 3
FRAME_ENTRY = "clew"  # the type of our own entry: what pi keeps in no file
ASIDE = frozenset({"model_change", "thinking_level_change", "label", "session_info", "custom"})
SAYING = frozenset({"message", "custom_message", "branch_summary"})
OWN_APIS = ("anthropic", "bedrock", "google-vertex-anthropic")  # whose thoughts go back to Claude


def recognises(value: Mapping[str, Any]) -> bool:
    """Whether a record is a line of pi's."""
    if value.get("type") == "session":
        return "id" in value and "timestamp" in value
    # Events of Copilot CLI have these too, and names with a dot.
    return "parentId" in value and "id" in value and "." not in string(value.get("type", "."))


def read(source: Source) -> list[Transcript]:
    """The session of a file; branches that were left are its forks."""
    header: Mapping[str, Any] = next((v for _, v in source.records if v.get("type") == "session"), {})
    entries = _entries(source, linear=(number(header.get("version")) or 1) < 2)
    about = _about(header, entries, source)
    way, beside = branches(entries)
    whole = Script()
    places: dict[str, int] = {}  # how much had been said before each entry
    heard: list[tuple[int, int]] = []  # how many messages and compactions there were, the same way
    for i in way:
        heard.append((len(whole.messages), len(whole.cuts)))
        _hear(entries[i], whole, places, source)
    heard.append((len(whole.messages), len(whole.cuts)))
    forks = []
    for branch in beside:
        said, cuts = heard[bisect_right(way, branch.at)]
        left = Script(whole.messages[:said], whole.cuts[:cuts])
        for i in branch.entries:
            _hear(entries[i], left, places, Source(source.name, []))
        if len(left.messages) > said:
            forks.append(with_(about, stretches=left.stretches, cause="fork", parent=about.name, shared=said))
    return [with_(about, stretches=whole.stretches, children=tuple(forks), notes=source.all_notes())]


def wire_messages(message: Mapping[str, Any]) -> list[TranscriptMessage]:
    """One message of pi's as it sends it."""
    script = Script()
    _say(TreeEntry("", None, {"type": "message", "message": message}, 0), script, Source("", []))
    return script.messages


def _entries(source: Source, linear: bool) -> list[TreeEntry]:
    found: list[TreeEntry] = []
    for n, (line, value) in enumerate(source.records):
        if value.get("type") == "session":
            continue
        id, parent = (f"{n}", f"{n - 1}") if linear else (string(value.get("id")), value.get("parentId"))
        found.append(TreeEntry(id, parent if isinstance(parent, str) else None, value, line))
    return found


def _about(header: Mapping[str, Any], entries: Sequence[TreeEntry], source: Source) -> Transcript:
    """All that is known of the session but what was said."""
    model, title = string(header.get("modelId")), ""
    system = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    times = [t for e in entries if (t := time(e.value.get("timestamp")))]
    for entry in entries:
        value = entry.value
        message = mapping(value.get("message"))
        model = string(value.get("modelId")) or string(message.get("model")) or model
        if value.get("type") == "session_info":
            title = string(value.get("name"))
        if value.get("customType") == FRAME_ENTRY:
            held = mapping(value.get("data"))
            system, tools = string(held.get("system")), tuple(objects(held.get("tools")))
    parent = string(header.get("parentSession")) or string(header.get("branchedFrom"))
    began = time(header.get("timestamp")) or next(iter(times), "")
    return Transcript(
        WIRE,
        name=string(header.get("id")) or source.name,
        title=title,
        agent=NAME,
        model=model,
        system=system,
        tools=tools,
        cwd=string(header.get("cwd")),
        began=began,
        ended=times[-1] if times else began,
        parent=parent,
        cause="fork" if parent else "",
    )


def _hear(entry: TreeEntry, script: Script, places: dict[str, int], source: Source) -> None:
    """Take in the next entry."""
    places[entry.id] = len(script.messages)
    kind = string(entry.value.get("type"))
    if kind == "compaction":
        script.compact(_compaction(entry, script, places))
    elif kind in SAYING:
        _say(entry, script, source)
    elif kind not in ASIDE:
        source.skipped[f"line of an unknown type {kind or 'none'}"] += 1


def _compaction(entry: TreeEntry, script: Script, places: Mapping[str, int]) -> TranscriptCompaction:
    value, said = entry.value, len(script.messages)
    first = string(value.get("firstKeptEntryId"))
    if (index := number(value.get("firstKeptEntryIndex"))) is not None:
        first = f"{index}"
    kept = said - places.get(first, said)
    tokens = number(value.get("tokensBefore")) or None
    summary = string(value.get("summary")) or None
    return TranscriptCompaction(
        summary, string(mapping(value.get("details")).get("trigger")), tokens, kept, time(value.get("timestamp"))
    )


def _say(entry: TreeEntry, script: Script, source: Source) -> None:
    value = entry.value
    if value.get("type") == "branch_summary":
        if text := string(value.get("summary")):
            script.say({"role": "user", "content": f"{LEFT_BRANCH}\n{text}"})
        return
    message = value if value.get("type") == "custom_message" else value.get("message")
    if not isinstance(message, Mapping):
        raise BadRequest(f"{source.where(entry.line)}: expected `message`, an object, in a line of type message")
    role = "custom" if value.get("type") == "custom_message" else string(message.get("role"))
    match role:
        case "user" | "custom" | "hookMessage":
            content = message.get("content")
            script.say({"role": "user", "content": content if isinstance(content, str) else _blocks(content)})
        case "assistant":
            _answer(message, script, source)
        case "toolResult":
            script.say({"role": "user", "content": [_result(message)]})
        case "bashExecution" if message.get("excludeFromContext"):
            source.skipped["command that the user kept from the model"] += 1
        case "bashExecution":
            script.say({"role": "user", "content": _ran(message)})
        case "branchSummary":
            script.say({"role": "user", "content": f"{LEFT_BRANCH}\n{message.get('summary')}"})
        case "compactionSummary":
            tokens = number(message.get("tokensBefore")) or None
            script.compact(
                TranscriptCompaction(string(message.get("summary")), "", tokens, 0, time(value.get("timestamp")))
            )
        case _:
            source.skipped[f"message in an unknown role {role!r}"] += 1


def _answer(message: Mapping[str, Any], script: Script, source: Source) -> None:
    blocks = _blocks(message.get("content"))
    api = string(message.get("api"))
    if api and not api.startswith(OWN_APIS):
        thoughts = sum(block["type"] in ("thinking", "redacted_thinking") for block in blocks)
        if thoughts:
            source.skipped[f"thought of another provider ({api}), kept as Claude's"] += thoughts
    if blocks:
        script.say({"role": "assistant", "content": blocks})
    else:
        source.skipped[f"answer without content ({string(message.get('stopReason')) or 'no reason'})"] += 1


def _blocks(content: Any) -> list[dict[str, Any]]:
    """pi's blocks as Anthropic's."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks: list[dict[str, Any]] = []
    for part in objects(content):
        match part.get("type"):
            case "text":
                blocks.append({"type": "text", "text": string(part.get("text"))})
            case "thinking" if part.get("redacted"):
                blocks.append({"type": "redacted_thinking", "data": string(part.get("thinkingSignature"))})
            case "thinking":
                thought = {"type": "thinking", "thinking": string(part.get("thinking"))}
                blocks.append(thought | {"signature": string(part.get("thinkingSignature"))})
            case "toolCall":
                called = {"type": "tool_use", "id": string(part.get("id")), "name": string(part.get("name"))}
                blocks.append(called | {"input": part.get("arguments")})
            case "image" if "mimeType" in part:
                source = {"type": "base64", "media_type": part["mimeType"], "data": part.get("data")}
                blocks.append({"type": "image", "source": source})
            case _:
                blocks.append(dict(part))
    return blocks


def _result(message: Mapping[str, Any]) -> dict[str, Any]:
    blocks = _blocks(message.get("content"))
    alone = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
    content = blocks[0]["text"] if alone else blocks
    result = {"type": "tool_result", "tool_use_id": string(message.get("toolCallId")), "content": content}
    return result | ({"is_error": True} if message.get("isError") else {})


def _ran(message: Mapping[str, Any]) -> str:
    """A command that the user ran, as text."""
    output = string(message.get("output")) or "[no output]"
    ended = "cancelled" if message.get("cancelled") else f"exit code {message.get('exitCode')}"
    return f"{RAN_COMMAND}{ended}]\n$ {string(message.get('command'))}\n{output}"
