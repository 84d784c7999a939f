"""The model of a chat, or what is in its place while there is none."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from clew.errors import ClewError, ModelError
from clew.llm.streaming import Piece, Speaker, speaker


class Absent:
    """A model that is not to be had here; asked all the same, it says why."""

    format = "openai_chat"
    name = "none"
    window = None
    address = None

    def __init__(self, why: str) -> None:
        self.why = why

    async def speak(self, body: Mapping[str, Any]) -> AsyncGenerator[Piece, None]:
        raise ModelError(f"{self.why}; or choose a model with /model", "refused")
        yield  # what makes it a stream

    async def close(self) -> None:
        pass


def chosen_speaker(model: str) -> Speaker:
    """Who answers; where no model can be had, it says why."""
    if not model:
        return Absent("no model is set: `clew config set agent.model NAME`")
    try:
        return speaker(model)
    except ClewError as error:
        return Absent(str(error))
