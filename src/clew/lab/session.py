"""A conversation as calls: each answer of the assistant is one, whose prompt is all before it."""

from dataclasses import replace as with_
from itertools import accumulate, pairwise
from typing import Any

from clew.clients.known import CLIENTS, KnownClient, slug
from clew.clients.voices import attributed, client_of, known_client
from clew.core.cuts import is_by_assistant
from clew.core.items import Digests, Node
from clew.core.view import View
from clew.sessions.transcripts import Transcript
from clew.tokens.meter import Meter
from clew.wire.formats import named


class LabSession:
    """A conversation, from its first call to its last."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = _introduced(transcript)
        codec = named(transcript.format)
        self.body, self._list = self.transcript.body(), codec.LIST
        frame, self.messages = codec.split(self.body)
        read = [codec.read(message, f"{codec.LIST}[{n}]") for n, message in enumerate(self.messages)]
        items = attributed([item for one in read for item in one], client_of(frame.system), begins=True)
        digests = Digests()
        self.full_view = View(frame, tuple(digests.chain(items)), digests)
        self.starts = [0, *accumulate(map(len, read))]  # of each message, in nodes
        self._lead = len(self.body[codec.LIST]) - len(self.messages)
        nodes = self.full_view.nodes
        answers = [begin < end and is_by_assistant(nodes[begin]) for begin, end in pairwise(self.starts)]
        first = [n for n, is_answer in enumerate(answers) if is_answer and n and not answers[n - 1]]
        self.turns = first  # the messages with which answers begin
        self._ends = [next((m for m in range(n, len(answers)) if not answers[m]), len(answers)) for n in first]

    @property
    def client(self) -> KnownClient | None:
        """The program that had it."""
        return known_client(self.full_view.frame.system)

    def prompt(self, turn: int) -> dict[str, Any]:
        """The request of a call, with nothing taken out."""
        return {**self.body, self._list: self.body[self._list][: self._lead + turn]}

    def nodes(self, start: int, stop: int) -> tuple[Node, ...]:
        """What these messages say."""
        return self.full_view.nodes[self.starts[start] : self.starts[stop]]

    def answer(self, number: int, meter: Meter) -> int:
        """The tokens of an answer."""
        return meter.nodes(self.nodes(self.turns[number], self._ends[number])).tokens

    def size(self, meter: Meter) -> int:
        """The tokens of all of it."""
        return meter.frame(self.full_view.frame).plus(meter.nodes(self.full_view.nodes)).tokens


def _introduced(transcript: Transcript) -> Transcript:
    """With a system prompt that says which program this is: most session files have none."""
    if transcript.system:
        return transcript
    name = next((client.name for client in CLIENTS if slug(client.name) == transcript.agent), "")
    return with_(transcript, system=f"You are {name}.") if name else transcript
