"""A client and the acts of which its sessions are made: it says, edits, drops, rewinds, decorates and switches.

An act is data, so that a session can be written down, run again and made smaller.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_
from typing import NamedTuple

import clew
from clew.core.view import View
from owning import Speaker
from tagging import FORMATS, SYSTEM, TAG, Body, Calls, Message, Results, Text, history, tags, words_of, written

TRIMMED, HEAD = "[trimmed]", 60
VALUES: Mapping[object, Sequence[object]] = {0: (0, 0.0, False), 1: (1, 1.0, True)}  # equal, and not the same


class Act(NamedTuple):
    """One thing that one client does; which message it does it to, its numbers say."""

    who: int
    what: str
    a: int
    b: int
    sends: bool  # a request follows


@dataclass
class Client:
    """One conversation as its client has it, with what became of all that it ever sent."""

    speaker: Speaker
    format: str
    said: list[Message | Body] = field(default_factory=list)
    system: str = SYSTEM
    model: str = ""
    changed: set[str] = field(default_factory=set)  # tags of what was edited, or taken back to go on otherwise
    removed: set[str] = field(default_factory=set)  # tags of old history that was dropped or trimmed
    behind: set[str] = field(default_factory=set)  # tags that are behind stand-ins of ours which it keeps
    before: list[Message | Body] = field(default_factory=list)  # what it rewound
    edits: int = 0
    last: View | None = None

    @property
    def name(self) -> str:
        return self.speaker.name

    def body(self) -> Body:
        placed = self.speaker.ids == "placed"
        return written(self.format, self.said, not placed, self.system, self.model)

    def says(self) -> set[str]:
        """Tags that its newest request must bring to the model, or within its reach."""
        return self.behind | {tag for m in self.said for tag in tags(words(m))}

    def do(self, act: Act) -> None:
        """Change the history; an act that finds nothing to do leaves it as it is."""
        had, took_back = self.says(), act.what in TAKEN_BACK
        ACTS[act.what](self, act)
        self.last = None
        gone = had - self.says()
        (self.changed if took_back else self.removed).update(gone)
        (self.removed if took_back else self.changed).difference_update(gone)

    def version(self) -> int:
        self.edits += 1
        return self.edits

    def recount(self) -> None:
        """Ids that count up go on from what is left: those of two tries are equal."""
        self.speaker.calls = sum(len(m.calls) for m in self.said if isinstance(m, Calls))

    def own(self, kind: type, a: int) -> int | None:
        """Some message of a kind that the client wrote itself, by its place."""
        places = [i for i, m in enumerate(self.said) if isinstance(m, kind)]
        return places[a % len(places)] if places else None

    def groups(self) -> list[tuple[int, int]]:
        """What can be moved or dropped by itself: a message, or calls with their results; not what we returned."""
        found: list[tuple[int, int]] = []
        for i, message in enumerate(self.said):
            if isinstance(message, Results) and found and isinstance(self.said[i - 1], Calls):
                found[-1] = found[-1][0], i + 1
            elif not isinstance(message, dict):
                found.append((i, i + 1))
        return found


def words(message: Message | Body) -> str:
    return json.dumps(message) if isinstance(message, dict) else words_of(message)


def go_on(client: Client, act: Act) -> None:
    client.speaker.said = client.said
    client.speaker.go_on()


def edit_text(client: Client, act: Act) -> None:
    """Other words, or more of them."""
    if (at := client.own(Text, act.a)) is not None and isinstance(message := client.said[at], Text):
        client.said[at] = with_(message, text=_edited(client, message.text, act.b), note="")


def edit_result(client: Client, act: Act) -> None:
    if (at := client.own(Results, act.a)) is not None and isinstance(message := client.said[at], Results):
        [(id, text), *rest] = message.given or (("", ""),)
        client.said[at] = Results(((id, _edited(client, text, act.b)), *rest))


def edit_call(client: Client, act: Act) -> None:
    if (at := client.own(Calls, act.a)) is not None and isinstance(message := client.said[at], Calls):
        [(id, asked), *rest] = message.calls
        client.said[at] = with_(message, calls=((id, _edited(client, asked, 0)), *rest))


def edit_value(client: Client, act: Act) -> None:
    """Another value that is equal to the one before, but not the same."""
    if (at := client.own(Calls, act.a)) is not None and isinstance(message := client.said[at], Calls):
        client.said[at] = with_(message, value=VALUES[message.value or 0][act.b % 3])


def _edited(client: Client, text: str, how: int) -> str:
    version = client.version()
    if how % 3 == 1:
        return f"{text} But never touch {client.speaker.tagged()}."
    if how % 3 == 2:
        return f"CORRECTED: the limit is {client.speaker.tagged()}"
    return TAG.sub(lambda found: f"{found[1]}{found[2]}v{version}z", text)


def reorder(client: Client, act: Act) -> None:
    groups = client.groups()[1:]
    if len(groups) > 1:
        (a, b), (c, d) = groups[act.a % (len(groups) - 1)], groups[act.a % (len(groups) - 1) + 1]
        client.said[a:d] = [*client.said[c:d], *client.said[b:c], *client.said[a:b]]


def truncate(client: Client, act: Act) -> None:
    """The oldest messages go, with the first one or without it."""
    groups = client.groups()
    if len(groups) > 3 and not any(isinstance(m, dict) for m in client.said):
        first, last = act.b % 2, act.a % (len(groups) - 2) + 1
        del client.said[groups[first][0] : groups[last][0]]


def drop(client: Client, act: Act) -> None:
    groups = client.groups()[1:-1]
    if groups:
        a, b = groups[act.a % len(groups)]
        del client.said[a:b]


def lose_result(client: Client, act: Act) -> None:
    if (at := client.own(Results, act.a)) is not None and isinstance(message := client.said[at], Results):
        rest = message.given[1:]
        client.said[at : at + 1] = [Results(rest)] if rest else []


def trim(client: Client, act: Act) -> None:
    """All results but the newest few become one word, or end early."""
    places = [i for i, m in enumerate(client.said) if isinstance(m, Results)]
    for i in places[: -1 - act.a % 3]:
        message = client.said[i]
        assert isinstance(message, Results)
        short = [f"{text[: act.b % 2 * HEAD]}{TRIMMED}" for _, text in message.given]
        client.said[i] = Results(tuple((id, text) for (id, _), text in zip(message.given, short, strict=True)))


def retry(client: Client, act: Act) -> None:
    """The same again."""


def rewind(client: Client, act: Act) -> None:
    """Back to an earlier point, to go on otherwise."""
    groups = client.groups()
    # What ends with calls is no point to go on from.
    ends = [stop for _, stop in groups if getattr(client.said[stop - 1], "role", "user") == "user"]
    if len(ends) > 1:
        client.before = list(client.said)
        del client.said[ends[-1 - (1 + act.a % 6) % len(ends)] :]
        client.recount()


def go_back(client: Client, act: Act) -> None:
    """To what was left by rewinding."""
    if client.before and not any(isinstance(m, dict) for m in (*client.before, *client.said)):
        client.said, client.before = client.before, client.said
        client.recount()


def repeat(client: Client, act: Act) -> None:
    """What was said before, once more."""
    if (at := client.own(Text, act.a)) is not None:
        client.said += [Text("assistant", "go on"), client.said[at]]


def decorate(client: Client, act: Act) -> None:
    """A reminder behind a message, or no longer; a clock in it."""
    if (at := client.own(Text, act.a)) is not None and isinstance(message := client.said[at], Text):
        note = f"\n<system-reminder>It is {act.b % 24} o'clock.</system-reminder>"
        client.said[at] = with_(message, note=note if act.b % 4 else "")


def mark(client: Client, act: Act) -> None:
    """The newest message gets the cache mark; a string becomes a list of blocks."""
    newest = client.own(Text, -1)
    for i, message in enumerate(client.said):
        if isinstance(message, Text):
            client.said[i] = with_(message, mark=i == newest, blocks=message.blocks or i == act.a % len(client.said))


def tell_time(client: Client, act: Act) -> None:
    client.system = f"{SYSTEM} It is {act.a % 24}:00."


def switch(client: Client, act: Act) -> None:
    """Another provider."""
    if not any(isinstance(m, dict) for m in client.said):
        client.format, client.model = FORMATS[act.a % len(FORMATS)], ""


def rename(client: Client, act: Act) -> None:
    """Another model of the same provider."""
    client.model = f"{written(client.format, []).get('model', '')}-{act.a % 3}".removesuffix("-0")
    client.model = "" if client.format == "bedrock" else client.model


def keep(client: Client, act: Act) -> None:
    """From now on the host has what we returned instead of what it said."""
    if client.last is not None and client.last.frame.format == client.format:
        client.behind = client.says()
        client.said = list[Message | Body](history(clew.body(client.last)))


WEIGHTS: Mapping[Callable[[Client, Act], None], int] = {
    go_on: 60,
    edit_text: 7,
    edit_result: 6,
    edit_call: 7,
    edit_value: 8,
    reorder: 2,
    truncate: 3,
    drop: 3,
    lose_result: 2,
    trim: 3,
    retry: 5,
    rewind: 6,
    go_back: 3,
    repeat: 3,
    decorate: 4,
    mark: 3,
    tell_time: 2,
    switch: 4,
    rename: 2,
    keep: 4,
}
ACTS = {act.__name__: act for act in WEIGHTS}
TAKEN_BACK = {"edit_text", "edit_result", "edit_call", "rewind", "go_back"}
