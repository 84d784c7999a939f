"""What items and frames cost a model: their text, what the provider wraps around it, and their images."""

from dataclasses import dataclass
from typing import Any

from clew.core import rawjson
from clew.core.items import Frame, Item, extras
from clew.tokens import media
from clew.tokens.names import vocabulary_for
from clew.tokens.vocabulary import Vocabulary

_FRAMES = 8
_HIDDEN = ("encrypted_content", "data")  # reasoning that only the provider can read
_HIDDEN_CHARACTERS = 5  # of base64 per token: four bytes and their encryption


@dataclass(frozen=True, slots=True)
class Overhead:
    """Tokens a provider adds around what is said."""

    message: int  # role and delimiters
    name: int  # of a message's author
    call: int
    result: int
    priming: int  # once, for the answer to come
    tools: int  # once, if there are tools: for Anthropic a hidden prompt
    tool: int  # for each, beyond its JSON


_OPENAI = Overhead(message=4, name=1, call=8, result=8, priming=3, tools=24, tool=6)
_ANTHROPIC = Overhead(message=2, name=1, call=20, result=15, priming=6, tools=549, tool=25)


class Counter:
    """Counts in one vocabulary, as one wire format renders it."""

    def __init__(self, vocabulary: Vocabulary, format: str = "openai_chat") -> None:
        self.vocabulary = vocabulary.name
        self.exact = vocabulary.exact
        self.format = format
        self.text = vocabulary.count
        self._vocabulary = vocabulary
        self._overhead = _ANTHROPIC if format in ("anthropic", "bedrock") else _OPENAI
        self._frames: list[tuple[Any, int]] = []  # by what is counted of each

    def __repr__(self) -> str:
        return f"Counter({self._vocabulary!r}, {self.format!r})"

    def item(self, item: Item) -> int:
        """The tokens of an item, with its message's overhead if it opens one, as a summary always does."""
        opens = item.opens is not None or item.kind == "summary"
        return self._item_tokens(item) + self._extras(item) + (self._overhead.message if opens else 0)

    def images(self, item: Item) -> int:
        """How many images an item carries."""
        return sum(map(media.is_image, media.blocks(item.wire)))

    def frame(self, frame: Frame) -> int:
        """The tokens of all that is sent beside the history."""
        schema = frame.body.get("response_format") or frame.body.get("text")
        counted = frame.lead, frame.system, frame.tools, schema  # not what some clients change every turn
        for known, count in self._frames:
            if known == counted:
                return count
        count = self._frame(frame)
        self._frames = [(counted, count), *self._frames[: _FRAMES - 1]]
        return count

    def _item_tokens(self, item: Item) -> int:
        match item.kind:
            case "call":
                return self.text(item.name) + self.text(item.text) + self._overhead.call
            case "result":
                return self.text(item.text) + self._media(item) + self._overhead.result
            case "reasoning":
                return max(self.text(item.text), self._hidden(item))
            case "media":
                return self.text(item.text) + (self._media(item) or self._json(item.wire))
            case "opaque":
                return self.text(item.text) if item.wire is None else self._json(item.wire)
            case _:
                return self.text(item.text)

    def _media(self, item: Item) -> int:
        return sum(media.cost(block, self.format, self._vocabulary) for block in media.blocks(item.wire))

    def _hidden(self, item: Item) -> int:
        """Reasoning that came back sealed, by its length; a signature stands for it only where no text does."""
        wire = item.wire or {}
        keys = _HIDDEN if item.text else (*_HIDDEN, "signature")
        sealed = [value for key in keys if isinstance(value := wire.get(key), str)]
        if not sealed and not item.text and wire:  # sealed deeper down, as Bedrock and Gemini do
            return len(rawjson.dumps(wire)) // _HIDDEN_CHARACTERS
        return sum(map(len, sealed)) // _HIDDEN_CHARACTERS

    def _extras(self, item: Item) -> int:
        """What the item's message says beyond its items, such as its author's name."""
        said = extras(item.opens)
        if said is None:
            return 0
        name = said.pop("name", "")
        count = self.text(str(name)) + self._overhead.name if name else 0
        return count + (self._json(said) if said else 0)

    def _frame(self, frame: Frame) -> int:
        cost = self._overhead
        count = cost.priming + cost.message * len(frame.lead) + self.text(frame.system)
        if frame.tools:
            count += cost.tools + sum(cost.tool + self._json(tool) for tool in frame.tools)
        # A schema for the answer is shown to the model like a tool's.
        schema = frame.body.get("response_format") or frame.body.get("text")
        return count + (self._json(schema) if schema else 0)

    def _json(self, value: Any) -> int:
        if not value:
            return 0
        return self.text(rawjson.dumps(value).decode())


def counter_for(model: str, format: str = "openai_chat") -> Counter:
    """A counter for a model by its name."""
    return Counter(vocabulary_for(model), format)
