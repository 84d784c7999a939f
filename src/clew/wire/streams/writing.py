"""An answer to be written as a provider writes it: what is said, and to which request."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from clew.catalog.usage import Spent
from clew.core import rawjson
from clew.errors import BadRequest

ProviderBody = dict[str, Any]
Stop = Literal["end", "length", "window", "filter"]

CREATED = 1_760_000_000  # when everything was made: the same bytes in every run
CHARACTERS = 4  # in a token, more or less


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool; arguments that are text go out as they are, JSON or not.

    Where no id is given, one is made, but for Gemini.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def written(self) -> str:
        """The arguments as JSON."""
        return self.arguments if isinstance(self.arguments, str) else rawjson.dumps(self.arguments).decode()

    @property
    def given(self) -> ProviderBody:
        """The arguments as an object; in one piece, Anthropic and Gemini cannot say others."""
        try:
            given = rawjson.loads(self.written or "{}")
        except BadRequest:
            return {}
        return given if isinstance(given, dict) else {}


@dataclass(frozen=True, slots=True)
class SaidAnswer:
    """What is said, before any format."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    redacted: bool = False  # of Anthropic: the reasoning comes as what only it can read
    stop: Stop = "end"
    output: int | None = None  # tokens to report; else as many as it is long
    piece: int = 12  # characters in a delta of a stream


@dataclass(frozen=True, slots=True)
class WrittenTurn:
    """A request and what is said to it."""

    format: str
    body: ProviderBody = field(default_factory=dict)
    answer: SaidAnswer = SaidAnswer()
    spent: Spent = field(default_factory=lambda: Spent(0))
    number: int | str = 0  # of the request; ids are made of it
    created: int = CREATED
    seal: str = ""  # with which thoughts are signed; nothing: they are not

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    @property
    def output(self) -> int:
        """Tokens of the answer."""
        answer = self.answer
        said = answer.text + answer.reasoning + "".join(call.name + call.written for call in answer.calls)
        long = max(1, len(said.encode("utf-8", "surrogatepass")) // CHARACTERS)
        return long if answer.output is None else answer.output

    @property
    def thought(self) -> int:
        """Tokens of the answer that are reasoning."""
        return min(self.output, len(self.answer.reasoning) // CHARACTERS)

    def id(self, prefix: str, n: int = 0) -> str:
        """An id as long as real ones, the same in every run."""
        return prefix + blake2b(f"{prefix}{self.number}/{n}".encode(), digest_size=12).hexdigest()

    def pieces(self, text: str) -> Iterator[str]:
        """A text as the deltas of a stream have it."""
        size = self.answer.piece
        return (text[i : i + size] for i in range(0, len(text), size))


def sse(data: Mapping[str, Any] | str, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + (data.encode() if isinstance(data, str) else rawjson.dumps(data)) + b"\n\n"
