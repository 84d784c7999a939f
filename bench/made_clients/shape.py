"""What happens in a session, and what a client sends of it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from made_clients.wording import Pen

ClientMessage = dict[str, Any]
# A turn of the conversation; a call beside it, for a title or a memory; one of a sub-agent; a request to sum up; the
# first turn of the conversation after that.
RequestKind = Literal["main", "side", "subagent", "compaction", "continued"]


@dataclass(frozen=True)
class UsedTool:
    """A call, and what it gives back."""

    id: str
    name: str
    given: Mapping[str, Any]
    output: str


def cut_result(text: str, most: int = 2_000) -> str:
    """A result as opencode and pi quote it when they have a conversation summed up."""
    more = len(text) - most
    return f"{text[:most]}\n\n[... {more} more characters truncated]" if more > 0 else text


@dataclass(frozen=True)
class Asked:
    """The user types something."""

    text: str


@dataclass(frozen=True)
class Worked:
    """The assistant calls tools together and gets their results."""

    thought: str
    said: str
    calls: tuple[UsedTool, ...]


@dataclass(frozen=True)
class Delegated:
    """The assistant has a sub-agent do something; its report is the result of the call."""

    task: str
    work: Worked


@dataclass(frozen=True)
class Replied:
    """The assistant says something and waits."""

    text: str


@dataclass(frozen=True)
class ClientCompacted:
    """The client compacts the conversation, by itself or because somebody wants it."""

    summary: str


@dataclass(frozen=True)
class Resumed:
    """The client is closed and opened again, and goes on."""


ClientStep = Asked | Worked | Delegated | Replied | ClientCompacted | Resumed


@dataclass(frozen=True)
class ClientRequest:
    """A request as the client makes it, and what one must know to judge what becomes of it."""

    client: str
    conversation: str  # a word that stands in all that is said in it, and in no other one
    kind: RequestKind
    format: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: ClientMessage = field(repr=False)
    wants: tuple[str, ...] = field(repr=False)  # what the model asked for, or was asked, since it last spoke
    asked: str = field(repr=False)  # the newest request of the user


RESULTS = (500, 700, 1_000, 1_500, 2_000, 3_000, 4_500, 8_000)  # tokens
COMMAND_SHAPES = ("pytest tests/test_{}.py", "cat src/{}.py", "grep -rn {} src", "git log -5 -- {}.md", "make {}")


def script(pen: Pen, word: str, turns: int, in_loop: bool = False, delegates: bool = False) -> list[ClientStep]:
    """What happens in so many turns: the user asks now and then, the assistant works; once all of it is summed up."""
    steps: list[ClientStep] = []
    made = asks = 0
    compacted = delegated = False
    while made < turns:
        due = bool(asks) and made >= turns // 2 and not compacted
        if due and not in_loop:
            steps.append(ClientCompacted(_summary(pen, word)))
        asks += 1
        steps.append(Asked(f"Request {asks} of {word}: {pen.prose(60)} Do not touch the {word} notes."))
        made += 1
        for _ in range(min(turns - made, pen.random.randint(3, max(3, min(8, turns // 4))))):
            made += 1
            if delegates and made > turns // 4 and not delegated:
                steps.append(
                    Delegated(f"Look for {word} in all folders. {pen.prose(80)}", _delegation(pen, word, made))
                )
                delegated = True
                continue
            steps.append(_work(pen, word, made))
            if due and in_loop:
                steps.append(ClientCompacted(_summary(pen, word)))
                due, compacted, made = False, True, made + 1
        compacted |= due
        steps.append(Replied(f"Request {asks} of {word} is done. {pen.prose(90)}"))
        if asks == 2:
            steps.append(Resumed())
    return steps


def _summary(pen: Pen, word: str) -> str:
    return f"All that was done in {word} so far. {pen.prose(900)}"


def _work(pen: Pen, word: str, n: int) -> Worked:
    names = [
        f"{word}-{n:03d}" + "ab"[: pen.random.choice((0, 0, 0, 1))] for _ in range(pen.random.choice((1, 1, 1, 2)))
    ]
    calls = []
    for k, name in enumerate(names):
        mark, size = f"{name}-{k}", pen.random.choice(RESULTS) // len(names)
        command = pen.random.choice(COMMAND_SHAPES).format(mark)
        calls.append(UsedTool(pen.id(), "shell", {"command": command}, pen.output(size, mark)))
    return Worked(f"In {word} I should look. {pen.prose(40)}", f"Next in {word}: step {n}.", tuple(calls))


def _delegation(pen: Pen, word: str, n: int) -> Worked:
    call = UsedTool(pen.id(), "task", {"prompt": f"Look for {word}."}, f"Report on {word}-{n:03d}: {pen.prose(300)}")
    return Worked(f"Somebody else may look for {word}.", "", (call,))


class Client(ABC):
    """A program that talks to a model: what it keeps, and what it sends of it."""

    name = ""
    format = ""
    path = ""
    in_loop = False  # whether it compacts while the assistant works
    delegates = False

    def __init__(self, pen: Pen, conversation: str) -> None:
        self.pen = pen
        self.conversation = conversation
        self.id = pen.uuid()
        self.asked = ""
        self.wants: tuple[str, ...] = ()

    # --- what happens -------------------------------------------------------------------------------------------------

    @abstractmethod
    def ask(self, text: str) -> None:
        """The user types this."""

    @abstractmethod
    def work(self, work: Worked) -> None:
        """The assistant calls tools, and they give this back."""

    @abstractmethod
    def answer(self, text: str) -> None:
        """The assistant says this and waits."""

    def resume(self) -> None:  # noqa: B027 most do nothing then
        """The client is opened again."""

    # --- what is sent -------------------------------------------------------------------------------------------------

    @abstractmethod
    def body(self) -> ClientMessage:
        """The request for the next turn."""

    def headers(self, kind: RequestKind) -> dict[str, str]:
        """What goes with a request."""
        return {"content-type": "application/json"}

    def opening(self) -> Iterator[ClientRequest]:
        """What is sent beside the first turn."""
        yield from ()

    def resting(self) -> Iterator[ClientRequest]:
        """What is sent once the assistant has answered."""
        yield from ()

    def delegate(self, task: str) -> Iterator[ClientRequest]:
        """What a sub-agent sends."""
        yield from ()

    def compact(self, summary: str) -> Iterator[ClientRequest]:
        """The request for a summary; what it keeps is then that summary."""
        yield from ()

    def sent(self, kind: RequestKind, body: ClientMessage, **more: Any) -> ClientRequest:
        """A request with all that belongs to it; what the model wants to see is only in a turn."""
        turn = kind in ("main", "continued")
        about: dict[str, Any] = {"path": self.path, "headers": self.headers(kind), **more}
        wants, asked = (self.wants, self.asked) if turn else ((), "")
        return ClientRequest(
            self.name, self.conversation, kind, self.format, body=body, wants=wants, asked=asked, **about
        )


def play(client: Client, steps: Sequence[ClientStep]) -> Iterator[ClientRequest]:
    """All requests of a session, in the order in which they are made."""
    kind: RequestKind = "main"
    first = True
    for step in steps:
        match step:
            case Asked(text):
                client.ask(text)
                client.asked, client.wants = text, (text,)
            case Delegated(task, work):
                yield from client.delegate(task)
                client.work(work)
                client.wants = tuple(call.output for call in work.calls)
            case Worked(_, _, calls):
                client.work(step)
                client.wants = tuple(call.output for call in calls)
            case Replied(text):
                client.answer(text)
                yield from client.resting()
                continue
            case ClientCompacted(summary):
                found = list(client.compact(summary))
                yield from found
                kind, client.wants = ("continued" if found else "main"), ()
                if not (client.in_loop and found):
                    continue
            case Resumed():
                client.resume()
                continue
        beside = list(client.opening()) if first else []
        turn = client.sent(kind, client.body())
        # They are sent at the same time: either may come first.
        yield from ([*beside, turn] if client.pen.random.random() < 0.5 else [turn, *beside])
        kind, first = "main", False
