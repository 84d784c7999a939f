"""Thoughts that a server leaves in the text, between tags at its beginning."""

from collections.abc import Sequence

from clew.wire.streams.pieces import Text, Thought

_OPEN, _CLOSE = "<think>", "</think>"


class Tagged:
    """Parts thoughts from text as they come; a few characters are held back while they may be half a tag."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self._held = ""
        self._thinks: bool | None = None  # None: it cannot be told yet
        self._blank = False  # whether the text would begin with the blanks after a tag

    def add(self, part: str) -> Sequence[Text | Thought]:
        """Some more of the content: what can be told of it."""
        thoughts: Sequence[Text | Thought] = ()
        self._held += part
        if self._thinks is None:
            start = self._held.lstrip()
            if start.startswith(_OPEN):
                self._thinks, self._held = True, start.removeprefix(_OPEN)
            elif not _OPEN.startswith(start):
                self._thinks = False
        if self._thinks:
            thoughts = self._think()
        return (*thoughts, *self.end()) if self._thinks is False else thoughts

    def end(self) -> Sequence[Text | Thought]:
        """What was held back."""
        held, self._held = self._held, ""
        if self._thinks:
            return (Thought(held),) if held else ()
        if self._blank:
            held = held.lstrip()
            self._blank = not held
        if not held:
            return ()
        self.text.append(held)
        return (Text(held),)

    def _think(self) -> Sequence[Thought]:
        thought, tag, rest = self._held.partition(_CLOSE)
        if tag:
            self._thinks, self._blank, self._held = False, True, rest
        else:
            half = next(n for n in range(len(_CLOSE) - 1, -1, -1) if thought.endswith(_CLOSE[:n]))
            thought, self._held = thought[: len(thought) - half], thought[len(thought) - half :]
        return (Thought(thought),) if thought else ()
