"""Streams of Anthropic's Messages as one."""

from clew.wire.formats.plain import Block
from clew.wire.streams.joined import OPENINGS, HeardEvent, IsOurs, JoinedStream


class MessagesStream(JoinedStream):
    """Of Anthropic: blocks have an index, and a message begins once."""

    def __init__(self, is_ours: IsOurs) -> None:
        super().__init__(is_ours)
        self._places: dict[int, int | None] = {}  # of this answer's blocks among all that are told
        self._told_blocks = 0
        self._usage: Block = {}  # as the answer began

    def _passes(self, event: HeardEvent) -> bool:
        said = event.block or {}
        return said.get("type") == "content_block_delta" and self._places.get(said["index"], -1) == said["index"]

    def _ends(self, said: Block) -> bool:
        return said.get("type") in ("message_delta", "message_stop")

    def _is_last(self, said: Block) -> bool:
        return said.get("type") == "message_stop"

    def _shows(self, told: Block) -> bool:
        return told.get("type") not in OPENINGS

    def _passed_on(self, event: HeardEvent) -> Block | None:
        said = event.block or {}
        if said.get("type") == "message_start":
            self._usage = said["message"].get("usage") or {}
            return None if self._later else said
        if "index" not in said:
            return said
        index = said["index"]
        if said.get("type") == "content_block_start":
            ours = said["content_block"].get("type") == "tool_use" and self._is_ours(said["content_block"]["name"])
            self._places[index] = None if ours else self._told_blocks
            self._told_blocks += not ours
        place = self._places.get(index, index)
        if place is None:
            return None
        return said if place == index else {**said, "index": place}

    def _ended(self, event: HeardEvent, muted: bool) -> Block | None:
        told = event.block or {}
        if told.get("type") != "message_delta":
            return told
        if muted and (told.get("delta") or {}).get("stop_reason"):
            told = {**told, "delta": {**told["delta"], "stop_reason": "end_turn"}}
        if self._later:  # the start of this answer was not told
            began = {key: value for key, value in self._usage.items() if key.endswith("_tokens")}
            said = {key: value for key, value in (told.get("usage") or {}).items() if value is not None}
            told = {**told, "usage": began | said}
        return told

    def _reset(self) -> None:
        self._places = {}
