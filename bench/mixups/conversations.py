"""One conversation as its client has it: what is said in it next, and which words are its own."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal, NamedTuple

from mixups.clients import ClientShape
from mixups.words import Kit, words_in
from tagging import Body, Calls, Message, Results, Text, words_of

Ids = Literal["counting", "equal", "random", "placed"]
CANNED = ("Done.", "Done.", "OK.")
SAID = ("Let me look at the file {}", "I will run the tests of {} now", "The error is in {}, and I will mend it")
SHORT = ("go on", "yes", "ok", "thanks")
PLEASE = "please mend the bug in the parser and run all of the tests again"
SUMMED_UP = "[clew log "  # in every summary of clew's
ENDINGS = ("...", " ...", "…")


class Manner(NamedTuple):
    """How often words are planted in what a user, an assistant and a tool says; and how often a text is cut short."""

    user: float
    assistant: float
    result: float
    dots: float


MANNERS = (
    Manner(0.4, 0.3, 0.15, 0.1),
    Manner(0.8, 0.0, 0.0, 0.0),
    Manner(0.0, 0.9, 0.0, 0.0),
    Manner(0.0, 0.0, 0.0, 0.9),
    Manner(0.1, 0.1, 0.4, 0.2),
)


@dataclass(eq=False)
class Conversation:
    """What was said, with what is known of it that clew is not told."""

    owner: str
    client: ClientShape
    kit: Kit
    script: Random  # equal ones give conversations of one shape
    own: Random
    manner: Manner
    ids: Ids
    scope: str
    system: str
    name: str | None = None
    parent: "Conversation | None" = None  # who sent it, where its client says so
    shares_name: bool = False  # others have the same one
    task: str = ""  # of a sub-agent
    greets: bool = False
    said: list[Message | Body] = field(default_factory=list)
    words: set[str] = field(default_factory=set)  # all that it ever said
    tainted: set[str] = field(default_factory=set)  # words of others that it was given: each is a fault once
    logged: set[str] = field(default_factory=set)  # words that clew was sent in messages of it
    gone: dict[str, str] = field(default_factory=dict)  # of those, which its client no longer has, and how they went
    results: set[str] = field(default_factory=set)  # all it ever had
    summed_up: set[str] = field(default_factory=set)  # words that it had when its past was last summed up
    planted: int = 0
    called: int = 0
    # What was seen of it.
    branch: str = ""
    seen_ids: list[str] = field(default_factory=list)  # that it was offered to recall

    def __post_init__(self) -> None:
        if self.own.random() < 0.3:
            self.system = f"{self.system} The password of this machine is {self.plant()}."

    # --- what is its own ----------------------------------------------------------------------------------------------

    def allowed(self) -> set[str]:
        """Every word that it may be shown: its own, and those of who sent it."""
        mine = self.words | self.tainted
        return mine | self.parent.allowed() if self.parent else mine

    def visible(self) -> set[str]:
        """The words that its client has, but for the system prompt and for what clew told it of its past."""
        texts = map(said_in, self.said)
        return {word for text in texts if SUMMED_UP not in text for word in words_in(text)}

    def is_summed_up(self) -> bool:
        """Whether its client has a summary of clew's, which tells whose past it is: it may have edited that away."""
        return any(isinstance(m, dict) or SUMMED_UP in said_in(m) for m in self.said)

    def shown(self) -> set[str]:
        """The words that its model is shown, as far as its client knows."""
        return {word for message in self.said for word in words_in(said_in(message))} | words_in(self.system)

    def line(self) -> Iterator["Conversation"]:
        """It, and who sent it."""
        yield self
        if self.parent:
            yield from self.parent.line()

    def plant(self) -> str:
        self.planted += 1
        word = f"zq{self.owner}{self.planted}z"
        self.words.add(word)
        return word

    # --- what is said next --------------------------------------------------------------------------------------------

    def is_waiting(self) -> bool:
        """Whether the assistant is to speak."""
        return bool(self.said) and not _is_assistant(self.said[-1])

    def listen(self) -> None:
        """What comes before the assistant's next answer, if it is not there yet."""
        if not self.said:
            self.said.append(Text("user", self.dressed(self._opening(), "user")))
        elif isinstance(last := self.said[-1], Calls):
            self.said.append(Results(tuple((id, self._result(asked)) for id, asked in last.calls)))
        elif not self.is_waiting():
            self.said.append(Text("user", self.dressed(self._wish(), "user")))

    def answer(self) -> Text | Calls:
        """What the assistant will say now; it is not said yet."""
        if self.greets and len(self.said) == 1:
            return Text("assistant", self.kit.greeting)
        if self.client.tools and self.script.random() < 0.6:
            return self._calls()
        if self.script.random() < 0.5:
            return Text("assistant", self.script.choice(CANNED))
        said = self.script.choice(SAID).format(self.script.choice(sorted(self.kit.files)))
        return Text("assistant", self.dressed(said, "assistant"))

    def go_on_unseen(self) -> None:
        """A turn of which clew hears nothing."""
        self.listen()
        self.said.append(self.answer())

    def _opening(self) -> str:
        return self.task or ("hi" if self.greets else self.script.choice(self.kit.openings))

    def _wish(self) -> str:
        if self.script.random() < 0.25:
            return self.script.choice(self.kit.traces)
        return self.script.choice((*SHORT, PLEASE))

    def _calls(self) -> Calls:
        count = self.script.choice((1, 1, 1, 2))
        files = [self.script.choice(sorted(self.kit.files)) for _ in range(count)]
        text = self.script.choice(("", SAID[0], SAID[0])).format(files[0])
        calls = tuple((self._id(n), file) for n, file in enumerate(files))
        return Calls(calls, self.dressed(text, "assistant") if text else "")

    def _result(self, file: str) -> str:
        text = self.kit.files.get(file, "")
        if self.own.random() < self.manner.result:
            text = f"{text}error in {file}: the password of the service is {self.plant()}\n"
        self.results.add(text)
        return text

    def _id(self, place: int) -> str:
        self.called += 1
        if self.ids == "random":
            return f"call_{self.own.getrandbits(64):016x}"
        return f"call_{place}" if self.ids == "equal" else f"call_{self.called}"

    def dressed(self, text: str, role: Literal["user", "assistant"]) -> str:
        """A text as this one says it: with a word of its own, cut short, or as everybody does."""
        if self.own.random() < getattr(self.manner, role):
            return f"{text} because the password of the service is {self.plant()}"
        if self.own.random() < self.manner.dots:
            return f"{text}{self.own.choice(ENDINGS)}"
        return text


def said_in(message: Message | Body) -> str:
    """The words of a message."""
    return str(message) if isinstance(message, dict) else words_of(message)


def _is_assistant(message: Message | Body) -> bool:
    if isinstance(message, dict):
        return message.get("role") in ("assistant", "model")
    return isinstance(message, Calls) or (isinstance(message, Text) and message.role == "assistant")
