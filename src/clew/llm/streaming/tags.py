"""Thoughts that a server leaves in the text, between tags at its beginning."""

from collections.abc import Iterator

from clew.llm.streaming.pieces import Text, Thought

_OPEN, _CLOSE = "<think>", "</think>"


class Tagged:
    """Parts thoughts from text as they come; a few characters are held back while they may be half a tag."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self._held = ""
        self._thinks: bool | None = None  # None: it cannot be told yet
        self._blank = False  # whether the text would begin with the blanks after a tag

    def add(self, part: str) -> Iterator[Text | Thought]:
        """Some more of the content."""
        self._held += part
        if self._thinks is None:
            start = self._held.lstrip()
            if start.startswith(_OPEN):
                self._thinks, self._held = True, start.removeprefix(_OPEN)
            elif not _OPEN.startswith(start):
                self._thinks = False
        if self._thinks:
            yield from self._think()
        if self._thinks is False:
            yield from self.end()

    def end(self) -> Iterator[Text | Thought]:
        """What was held back."""
        held, self._held = self._held, ""
        if self._thinks:
            yield from [Thought(held)] if held else []
            return
        if self._blank:
            held = held.lstrip()
            self._blank = not held
        if held:
            self.text.append(held)
            yield Text(held)

    def _think(self) -> Iterator[Thought]:
        thought, tag, rest = self._held.partition(_CLOSE)
        if tag:
            self._thinks, self._blank, self._held = False, True, rest
        else:
            half = next(n for n in range(len(_CLOSE) - 1, -1, -1) if thought.endswith(_CLOSE[:n]))
            thought, self._held = thought[: len(thought) - half], thought[len(thought) - half :]
        if thought:
            yield Thought(thought)
