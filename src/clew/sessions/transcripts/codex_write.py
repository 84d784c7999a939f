"""A transcript as a rollout of Codex."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clew.core import rawjson
from clew.sessions.transcripts.codex import FRAME
from clew.sessions.transcripts.shape import Transcript, TranscriptCompaction, TranscriptMessage
from clew.sessions.transcripts.source import NEVER, uuid_for

RolloutLine = tuple[str, Mapping[str, Any], str]  # its type, its payload, and its time where it has one of its own
VERSION = "0.104.0"  # whose lines these look like
NO_TOKENS = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_output_tokens": 0}
TURN_CONTEXT = {"approval_policy": "on-request", "sandbox_policy": {"type": "read-only"}, "summary": "auto"}


def write(transcript: Transcript) -> bytes:
    """The rollout of a session."""
    began = transcript.began or NEVER
    lines = [{"timestamp": at or began, "type": kind, "payload": payload} for kind, payload, at in _lines(transcript)]
    lines[-1]["timestamp"] = transcript.ended or lines[-1]["timestamp"]
    return b"".join(rawjson.dumps(line) + b"\n" for line in lines)


def _lines(transcript: Transcript) -> Iterator[RolloutLine]:
    meta: dict[str, Any] = {
        "id": uuid_for(transcript.name),
        "timestamp": transcript.began or NEVER,
        "cwd": transcript.cwd,
        "originator": "codex_cli_rs",
        "cli_version": VERSION,
        "source": "cli",  # and no model_provider: Codex refuses to go on with another one
        "title": transcript.title,  # a key of our own: Codex keeps its titles in a database
        # Not under keys of Codex: it would go on with a prompt that is not its own, and offer tools that it cannot run.
        FRAME: {"system": transcript.system, "tools": [*transcript.tools]},
    }
    yield "session_meta", meta, ""
    yield "turn_context", {"cwd": transcript.cwd or "/", "model": transcript.model} | TURN_CONTEXT, ""
    before: tuple[TranscriptMessage, ...] = ()
    for stretch in transcript.stretches:
        if stretch.began is not None:
            yield from _compaction(stretch.began, before)
        for message in stretch.messages:
            yield "response_item", _item(message), ""
        before += stretch.messages


def _item(message: TranscriptMessage) -> TranscriptMessage:
    """A message with all that Codex wants to see in one."""
    if "role" not in message or not isinstance(message.get("content"), str):
        return {"type": "message", **message} if "role" in message else message
    part = "output_text" if message["role"] == "assistant" else "input_text"
    return {"type": "message", **message, "content": [{"type": part, "text": message["content"]}]}


def _compaction(why: TranscriptCompaction, before: Sequence[TranscriptMessage]) -> Iterator[RolloutLine]:
    if why.tokens_before:
        usage = NO_TOKENS | {"input_tokens": why.tokens_before, "total_tokens": why.tokens_before}
        yield "event_msg", {"type": "token_count", "info": {"last_token_usage": usage, "total_token_usage": usage}}, ""
    payload: dict[str, Any] = {"message": why.summary or ""}
    if why.kept:
        # Without it Codex makes one of the user's messages and the summary by itself.
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": why.summary}]}
        payload["replacement_history"] = [*map(_item, before[-why.kept :]), *([said] if why.summary else [])]
    yield "compacted", payload, why.at
    yield "event_msg", {"type": "context_compacted"}, why.at
