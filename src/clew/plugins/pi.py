"""pi's messages in the form that clew reads, and back."""

from collections.abc import Sequence
from typing import Any

from clew.plugins.forms import HostReport, HostUnit, OwnMessage
from clew.sessions.transcripts import pi
from clew.sessions.transcripts.pi_write import written
from clew.sessions.transcripts.shape import TranscriptMessage
from clew.sessions.transcripts.source import mapping, number, objects, string

FAILED_STOPS = ("error", "aborted")  # pi does not send such answers again


def units(messages: Sequence[OwnMessage]) -> list[HostUnit]:
    """Each message with what pi sends of it; the results of one answer are one message there."""
    found: list[HostUnit] = []
    for n, message in enumerate(messages):
        role = message.get("role")
        sent = [] if role == "assistant" and message.get("stopReason") in FAILED_STOPS else pi.wire_messages(message)
        if role == "toolResult" and n and messages[n - 1].get("role") == "toolResult":
            (places, [before]), [one] = found.pop(), sent
            found.append(((*places, n), [{**before, "content": [*before["content"], *one["content"]]}]))
        else:
            found.append(((n,), sent))
    return found


def made(new: Sequence[TranscriptMessage], own: Sequence[OwnMessage]) -> list[OwnMessage]:
    """Messages that pi does not have, as it would have them."""
    answers = [message for message in own if message.get("role") == "assistant"]
    calls = [block for message in (*own, *new) for block in objects(message.get("content"))]
    names = {string(b.get("id")): string(b.get("name")) for b in calls if b.get("type") in ("toolCall", "tool_use")}
    return [_of_model(message, answers) for message in written(new, names, "clew")]


def _of_model(message: dict[str, Any], answers: Sequence[OwnMessage]) -> OwnMessage:
    """An answer as one of this model if it has thoughts, which only that one reads, else of another.

    What pi sends of another model's answers has none of the ids that belong to a thought.
    """
    thinks = message["role"] == "assistant" and any(part["type"] == "thinking" for part in message["content"])
    if not (thinks and answers):
        return message
    return message | {key: answers[-1].get(key) for key in ("api", "provider", "model")}


def report(messages: Sequence[OwnMessage]) -> HostReport | None:
    """What the provider reported for the newest answer, and which that is."""
    answers = [m for m in messages if m.get("role") == "assistant" and m.get("stopReason") not in FAILED_STOPS]
    if not answers:
        return None
    spent = mapping(answers[-1].get("usage"))
    read, wrote, new = (number(spent.get(key)) or 0 for key in ("cacheRead", "cacheWrite", "input"))
    usage: dict[str, Any] = {"input_tokens": new, "cache_read_input_tokens": read, "cache_creation_input_tokens": wrote}
    usage["output_tokens"] = number(spent.get("output")) or 0
    return HostReport(f"{answers[-1].get('timestamp')}", usage) if new + read + wrote else None
