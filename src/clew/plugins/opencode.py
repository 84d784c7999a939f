"""opencode's messages in the form that clew reads, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

from clew.plugins.forms import HostReport, HostUnit, OwnMessage
from clew.sessions.transcripts import opencode
from clew.sessions.transcripts.opencode_write import ExportWriting
from clew.sessions.transcripts.shape import Transcript, TranscriptMessage, TranscriptStretch
from clew.sessions.transcripts.source import mapping, number, objects, string

# As opencode itself sends a request to compact.
ASKED_SO_FAR = {"type": "text", "text": "What did we do so far?"}
ABORTED = "MessageAbortedError"


def units(messages: Sequence[OwnMessage]) -> list[HostUnit]:
    """Each message with what opencode sends of it; answers that failed are not sent."""
    return [((n,), _sent(message)) for n, message in enumerate(messages)]


def _sent(message: OwnMessage) -> list[TranscriptMessage]:
    parts, error = objects(message.get("parts")), mapping(mapping(message.get("info")).get("error"))
    if error and (error.get("name") != ABORTED or all(p.get("type") in ("step-start", "reasoning") for p in parts)):
        return []
    shown = [ASKED_SO_FAR if part.get("type") == "compaction" else part for part in parts]
    return opencode.wire_messages({**message, "parts": shown})


def made(new: Sequence[TranscriptMessage], own: Sequence[OwnMessage]) -> list[OwnMessage]:
    """Messages that opencode does not have, as it would have them."""
    answers = [info for m in own if (info := mapping(m.get("info"))).get("role") == "assistant"]
    model = {key: string(answers[-1].get(key)) if answers else "" for key in ("providerID", "modelID")}
    session = string(mapping(own[0].get("info")).get("sessionID")) if own else ""
    written = ExportWriting(Transcript("anthropic", (TranscriptStretch(tuple(new)),), name=session)).export()
    out: list[OwnMessage] = written["messages"]
    return [_of_model(message, model) for message in out]


def _of_model(message: OwnMessage, model: Mapping[str, str]) -> OwnMessage:
    """An answer as one of this model if it has thoughts, which only that one reads, else of another.

    What opencode sends of another model's answers has none of the ids that belong to a thought.
    """
    info = mapping(message["info"])
    if info["role"] != "assistant":
        return message
    thinks = any(part["type"] == "reasoning" for part in message["parts"])
    return {**message, "info": {**info, **(model if thinks else {"providerID": "clew", "modelID": "clew"})}}


def report(messages: Sequence[OwnMessage]) -> HostReport | None:
    """What the provider reported for the newest answer, and which that is."""
    infos = [mapping(message.get("info")) for message in messages]
    answers = [i for i in infos if i.get("role") == "assistant" and not i.get("summary") and not i.get("error")]
    if not answers:
        return None
    spent = mapping(answers[-1].get("tokens"))
    cache = mapping(spent.get("cache"))
    read, wrote, new = (number(n) or 0 for n in (cache.get("read"), cache.get("write"), spent.get("input")))
    usage: dict[str, Any] = {"input_tokens": new, "cache_read_input_tokens": read, "cache_creation_input_tokens": wrote}
    usage["output_tokens"] = (number(spent.get("output")) or 0) + (number(spent.get("reasoning")) or 0)
    return HostReport(string(answers[-1].get("id")), usage) if new + read + wrote else None
