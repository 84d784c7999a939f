"""A transcript as opencode exports a session."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from clew.core import rawjson
from clew.sessions.transcripts.opencode import FAILED
from clew.sessions.transcripts.shape import Transcript, TranscriptCompaction, TranscriptMessage
from clew.sessions.transcripts.source import milliseconds, objects, string, uuid_for
from clew.wire.convert.media import words
from clew.wire.formats.plain import text_of

AnthropicBlock = Mapping[str, Any]
VERSION = "1.0.0"
NO_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def write(transcript: Transcript) -> bytes:
    """The export of a session."""
    return rawjson.dumps(ExportWriting(transcript).export())


class ExportWriting:
    """A session on its way into an export: every id is of this session only, and they ascend."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        # Never the name itself: its import adds to a session that is there, and would have everything twice.
        self.session = f"ses_{uuid_for(transcript.name).replace('-', '')}"
        self.began = milliseconds(transcript.began)
        self.numbers = count(1)
        self.asked = ""  # the id of the user's last message
        self.pairs, self.taken = _paired(transcript.messages)

    def export(self) -> dict[str, Any]:
        """The whole session."""
        told = self.transcript
        info = {
            "id": self.session,
            "slug": self.session,
            "projectID": "global",
            "directory": told.cwd,
            "title": told.title,
            "version": VERSION,
            "time": {"created": self.began, "updated": milliseconds(told.ended) or self.began},
        }
        return {"info": info, "messages": [*self._messages()]}

    def _messages(self) -> Iterator[dict[str, Any]]:
        ids: dict[int, str] = {}  # of the messages that opencode has too
        said = 0
        for stretch in self.transcript.stretches:
            if stretch.began is not None:
                kept = range(said - stretch.began.kept, said)
                yield from self._compacted(stretch.began, next((ids[n] for n in kept if n in ids), ""))
            for message in stretch.messages:
                if (written := self._message(said, message)) is not None:
                    ids[said] = written["info"]["id"]
                    yield written
                said += 1

    def _message(self, n: int, message: TranscriptMessage) -> dict[str, Any] | None:
        """A message in opencode's form; None where it has only results, which stand with their calls there."""
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
        id = self._id("msg")
        if message.get("role") == "assistant":
            parts = [self._part(id, "step-start"), *(self._entry(b, id, n) for b in blocks)]
            end = self._part(id, "step-finish", reason="stop", cost=0, tokens=NO_TOKENS)
            return {"info": self._answer(id, self.began), "parts": [*parts, end]}
        rest = [b for i, b in enumerate(blocks) if (n, i) not in self.taken]
        if not rest:
            return None
        self.asked = id
        return {"info": self._question(id, self.began), "parts": [self._shown(b, id) for b in rest]}

    def _compacted(self, why: TranscriptCompaction, tail: str) -> Iterator[dict[str, Any]]:
        """Who asked for a compaction, and the answer that is its summary."""
        at = milliseconds(why.at)
        request, answer = self._id("msg"), self._id("msg")
        kept = {"tail_start_id": tail} if tail else {}
        part = self._part(request, "compaction", auto=why.trigger != "manual", **kept)
        yield {"info": self._question(request, at), "parts": [part]}
        self.asked = request
        spent = NO_TOKENS | {"input": why.tokens_before or 0}
        info = self._answer(answer, at) | {"summary": True, "mode": "compaction", "tokens": spent}
        yield {"info": info, "parts": [self._part(answer, "text", text=why.summary)] if why.summary else []}

    def _question(self, id: str, at: int) -> dict[str, Any]:
        model = {"providerID": "anthropic", "modelID": self.transcript.model}
        info = {"id": id, "sessionID": self.session, "role": "user", "time": {"created": at}}
        system = {"system": self.transcript.system} if self.transcript.system else {}
        return info | {"agent": "build", "model": model} | system

    def _answer(self, id: str, at: int) -> dict[str, Any]:
        info = {"id": id, "sessionID": self.session, "role": "assistant", "time": {"created": at, "completed": at}}
        place = {"cwd": self.transcript.cwd, "root": self.transcript.cwd}
        model = {"providerID": "anthropic", "modelID": self.transcript.model, "mode": "build", "agent": "build"}
        return info | {"parentID": self.asked, **model, "path": place, "cost": 0, "tokens": NO_TOKENS, "finish": "stop"}

    def _entry(self, block: AnthropicBlock, message: str, n: int) -> dict[str, Any]:
        """A block of an answer."""
        lived = {"start": self.began, "end": self.began}
        match block:
            case {"type": "thinking"}:
                own = {"anthropic": {"signature": string(block.get("signature"))}}
                return self._part(message, "reasoning", text=string(block.get("thinking")), metadata=own, time=lived)
            case {"type": "redacted_thinking"}:
                sealed = {"anthropic": {"redactedData": string(block.get("data"))}}
                return self._part(message, "reasoning", text="", metadata=sealed, time=lived)
            case {"type": "tool_use", "id": str(id), "name": name}:
                state = _state(block, self.pairs.get((n, id)), lived)
                for shown in state.get("attachments", []):
                    shown |= {"id": self._id("prt"), "sessionID": self.session, "messageID": message}
                return self._part(message, "tool", callID=id, tool=name, state=state)
        return self._shown(block, message)

    def _shown(self, block: AnthropicBlock, message: str) -> dict[str, Any]:
        """Text, or a file; what opencode has nothing for becomes words."""
        if (file := _file(block)) is not None:
            return self._part(message, **file)
        if block.get("type") == "text":
            return self._part(message, "text", text=string(block.get("text")))
        return self._part(message, "text", text=f"[{block.get('type')}: {words(block)}]")

    def _part(self, message: str, type: str, **rest: Any) -> dict[str, Any]:
        return {"id": self._id("prt"), "sessionID": self.session, "messageID": message, "type": type, **rest}

    def _id(self, kind: str) -> str:
        return f"{kind}_{next(self.numbers):012d}{self.session[-14:]}"


def _paired(
    messages: Sequence[TranscriptMessage],
) -> tuple[dict[tuple[int, str], AnthropicBlock], set[tuple[int, int]]]:
    """The result of each call, by the message and the id of the call, and the places of these results."""
    pairs: dict[tuple[int, str], AnthropicBlock] = {}
    taken: set[tuple[int, int]] = set()
    calls: dict[str, int] = {}
    for n, message in enumerate(messages):
        for i, block in enumerate(objects(message.get("content"))):
            if block.get("type") == "tool_use":
                calls[string(block.get("id"))] = n
            elif block.get("type") == "tool_result" and (call := string(block.get("tool_use_id"))) in calls:
                pairs[calls.pop(call), call] = block
                taken.add((n, i))
    return pairs, taken


def _state(call: AnthropicBlock, result: AnthropicBlock | None, lived: Mapping[str, int]) -> dict[str, Any]:
    """What became of a call."""
    state: dict[str, Any] = {"input": call.get("input"), "time": lived}
    if result is None:
        return {"status": "running", **state, "time": {"start": lived["start"]}}
    content = result.get("content")
    text, failed = text_of(content), result.get("is_error") is True
    files = [file for block in objects(content) if (file := _file(block)) is not None]
    if failed and not files:
        return {"status": "error", **state, "error": text}
    # What failed can show nothing in opencode: it is said to be done, and beside it that it failed.
    done = {"status": "completed", **state, "output": text, "title": "", "metadata": {FAILED: True} if failed else {}}
    return done | ({"attachments": files} if files else {})


def _file(block: AnthropicBlock) -> dict[str, Any] | None:
    """A picture or a document as a file."""
    match block:
        case {"type": "image" | "document", "source": {"type": "base64", "media_type": str(mime), "data": data}}:
            return {"type": "file", "mime": mime, "url": f"data:{mime};base64,{data}"}
        case {"type": "image" | "document" as kind, "source": {"type": "url", "url": str(url)}}:
            return {"type": "file", "mime": "image/png" if kind == "image" else "application/pdf", "url": url}
    return None
