"""The model in this process as a speaker.

SmolLM2, which clew fetches, says text alone: its template has no place for tools, so it never learns of any. Those of
another file can be called if its template has one.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from clew.llm.local import LocalModel
from clew.llm.streaming.answers import Answer, told
from clew.llm.streaming.chat import ChatAnswer
from clew.llm.streaming.pieces import Piece
from clew.wire.formats import openai_chat

_UNSAID = frozenset({"model", "stream", "stream_options"})  # what a model in process need not be told


class LocalSpeaker:
    """A model in process, asked in Chat Completions; SmolLM2 calls no tools."""

    format = openai_chat.NAME

    def __init__(self, **settings: Any) -> None:
        self._model = LocalModel(**settings)

    def __repr__(self) -> str:
        return f"LocalSpeaker({self.name!r})"

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def window(self) -> int:
        return self._model.window

    @property
    def address(self) -> None:
        return None

    def speak(self, body: Mapping[str, Any]) -> AsyncGenerator[Piece, None]:
        """Have it answer; `Spoken` is the last piece, and closing early ends the work."""
        answer = ChatAnswer()
        return told(self.name, self._pieces(body, answer), answer)

    async def close(self) -> None:
        """Free the memory."""
        await self._model.close()

    async def _pieces(self, body: Mapping[str, Any], answer: Answer) -> AsyncGenerator[Piece, None]:
        asked = {key: value for key, value in body.items() if key not in _UNSAID}
        async with aclosing(self._model.chunks(asked)) as chunks:
            async for chunk in chunks:
                for piece in answer.add(chunk):
                    yield piece
