"""The session files of other agents, read and written: bytes in, a `Transcript` out, and back.

A format of an agent is a module that `recognises` its records and `read`s them, and one that writes.
"""

from collections.abc import Callable, Mapping
from types import ModuleType

from clew.errors import BadRequest
from clew.sessions.transcripts import (
    claude_code,
    claude_write,
    codex,
    codex_write,
    copilot_cli,
    gemini_cli,
    opencode,
    opencode_write,
    pi,
    pi_write,
    plain,
    qwen_code,
)
from clew.sessions.transcripts.converting import convert
from clew.sessions.transcripts.shape import Transcript, TranscriptCompaction, TranscriptMessage, TranscriptStretch
from clew.sessions.transcripts.source import Source, parse
from clew.store.upkeep import Progress
from clew.wire.formats import FORMATS as WIRE

__all__ = [
    "AGENTS",
    "READERS",
    "WRITERS",
    "Progress",
    "Transcript",
    "TranscriptCompaction",
    "TranscriptMessage",
    "TranscriptStretch",
    "convert",
    "read",
    "read_all",
    "write",
]

TranscriptWriter = Callable[[Transcript], bytes]

AGENTS: Mapping[str, ModuleType] = {
    m.NAME: m for m in (claude_code, codex, pi, opencode, gemini_cli, qwen_code, copilot_cli)
}
# Bodies, by any of their names.
PLAIN_FORMATS: Mapping[str, str] = {"openai": "openai_chat"} | {name: name for name in WIRE}
READERS = (*AGENTS, *PLAIN_FORMATS)
# Each with the wire format that it wants its messages in.
WRITERS: Mapping[str, tuple[str, TranscriptWriter]] = {
    claude_code.NAME: (claude_code.WIRE, claude_write.write),
    codex.NAME: (codex.WIRE, codex_write.write),
    pi.NAME: (pi.WIRE, pi_write.write),
    opencode.NAME: (opencode.WIRE, opencode_write.write),
    "openai": ("openai_chat", plain.write),
    "openai_responses": ("openai_responses", plain.write),
    "anthropic": ("anthropic", plain.write),
}


def read(data: bytes, name: str = "", *, format: str | None = None, progress: Progress | None = None) -> Transcript:
    """The session of a file that holds one; its format shows by itself, or is one of `READERS`."""
    found = read_all(data, name, format=format, progress=progress)
    if len(found) != 1:
        raise BadRequest(f"{name or 'the file'}: {len(found)} conversations, expected one; read_all reads them all")
    return found[0]


def read_all(
    data: bytes, name: str = "", *, format: str | None = None, progress: Progress | None = None
) -> list[Transcript]:
    """All sessions of a file: most hold one, a corpus one a line."""
    if format is not None and format not in READERS:
        raise BadRequest(f"unknown format {format!r}: use one of {', '.join(READERS)}")
    source = parse(data, name, progress)
    format = format or _detected(source)
    try:
        found: list[Transcript] = (
            AGENTS[format].read(source) if format in AGENTS else plain.read(source, PLAIN_FORMATS.get(format))
        )
    except RecursionError:
        raise BadRequest(f"{name or 'the file'}: nested too deeply to read") from None
    return found


def write(transcript: Transcript, format: str) -> bytes:
    """The session as a file of that format; its children are written by themselves."""
    if format not in WRITERS:
        raise BadRequest(f"unknown format {format!r}: use one of {', '.join(WRITERS)}")
    wire, writer = WRITERS[format]
    try:
        return writer(convert(transcript, wire))
    except RecursionError:
        raise BadRequest("the transcript is nested too deeply to write") from None


def _detected(source: Source) -> str:
    """The agent whose file it is; empty for bodies and messages."""
    for _, value in source.records:
        for name, module in AGENTS.items():
            if module.recognises(value):
                return name
        if plain.recognises(value):
            return ""
    known = ", ".join(AGENTS)
    raise BadRequest(f"{source.where(1)}: unknown session format; expected a file of {known}, or messages")
