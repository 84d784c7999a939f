"""What signed thinking is bound to: the exact system prompt, tools and messages that it was thought after."""

from collections.abc import Iterator, Mapping
from typing import Any

from clew.core.items import canonical


class Bindings:
    """One conversation: what was sent when each block of thinking was made, and whether it still stands before it."""

    def __init__(self) -> None:
        self._after: dict[str, list[str]] = {}  # by signature
        self._sent: list[str] = []  # the request that was last answered

    def broken(self, given: Mapping[str, Any], sent: Mapping[str, Any], answered: bool) -> int:
        """How many blocks of thinking in a request stand after something else than they were thought after."""
        for signature, _ in _thoughts(given):
            self._after.setdefault(signature, self._sent)
        free = "block_binding" in (sent.get("thinking") or {})
        parts = list(_parts(sent))
        # What the assistant said before it in the same message came after what was sent, and is bound with it.
        wrong = sum(parts[: len(self._after[s])] != self._after[s] for s, _ in _thoughts(sent) if s in self._after)
        if answered:
            self._sent = parts
        return 0 if free else wrong


def _thoughts(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("type") == "thinking":
                yield block["signature"], block


def _parts(body: Mapping[str, Any]) -> Iterator[str]:
    """A request piece by piece, however its texts are wrapped."""
    yield canonical([body.get("system"), body.get("tools")])
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            yield message["role"] + canonical(block)
