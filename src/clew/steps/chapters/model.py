"""What a model is asked, and what it answers."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from clew.catalog.usage import Spent
from clew.core.view import View


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked: a text by itself, or one more message after a request that was sent before."""

    text: str
    max_tokens: int
    system: str = ""
    after: View | None = None  # the provider reads all of it from its cache, if it is the one that was sent it


class Reply(NamedTuple):
    """What a model wrote, and what that took."""

    text: str
    spent: Spent = Spent(0)
    calls: tuple[str, ...] = ()  # tools it wanted to call instead of writing
    reasoning: bool = False  # it thought aloud apart from the text
    cut: bool = False  # it had more to say than `max_tokens`


class Model(Protocol):
    """Whatever can write a summary. What goes wrong is a `ModelError`."""

    @property
    def name(self) -> str:
        """By which the catalog knows it."""

    @property
    def window(self) -> int:
        """Tokens of prompt and answer together."""

    async def __call__(self, prompt: Prompt) -> Reply: ...
