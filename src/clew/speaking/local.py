"""The model in this process as a speaker: of text alone, for it is too small to call tools."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from clew.models.local import LocalModel
from clew.speaking.chat import ChatAnswer
from clew.speaking.pieces import Piece
from clew.wire import openai_chat

# What it is not told: who it is, and of tools.
_UNSAID = frozenset({"model", "parallel_tool_calls", "stream", "stream_options", "tool_choice", "tools"})


class LocalSpeaker:
    """A model in process, asked in Chat Completions; tools in a request are left out, and it calls none."""

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

    async def speak(self, body: Mapping[str, Any]) -> AsyncGenerator[Piece, None]:
        """Have it answer; `Spoken` is the last piece, and closing early ends the work."""
        answer = ChatAnswer()
        asked = {key: value for key, value in body.items() if key not in _UNSAID}
        async with aclosing(self._model.chunks(asked)) as chunks:
            async for chunk in chunks:
                for piece in answer.add(chunk):
                    yield piece
        yield answer.spoken()

    async def close(self) -> None:
        """Free the memory."""
        await self._model.close()
