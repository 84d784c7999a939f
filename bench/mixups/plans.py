"""All that a world is made of, as data: so that it can be written down, run again and made smaller."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal, NamedTuple

from clew.gateway.settings import ClientCompaction
from clew.store.records import Method
from mixups.clients import APPS, CLIENTS, ClientShape

Way = Literal["gateway", "library"]
WAYS: tuple[tuple[Way, ...], ...] = (
    ("gateway",),
    ("gateway",),
    ("gateway", "gateway"),
    ("gateway", "library"),
    ("library", "library"),
)
WEIGHTS: Mapping[str, int] = {
    "go_on": 38,
    "ask": 16,
    "compact": 13,
    "spawn": 8,
    "fresh": 7,
    "sum_up": 5,
    "edit": 5,
    "trim": 2,
    "fork": 4,
    "rewind": 3,
    "retry": 3,
    "fail": 3,
    "beside": 2,
    "switch": 1,
    "restart": 2,
}
FEWEST, MOST = 40, 75  # acts


class Act(NamedTuple):
    """One thing that happens to the conversation in one place; what exactly, its numbers say."""

    who: int
    what: str
    a: int
    b: int


@dataclass(frozen=True)
class Plan:
    """A world."""

    seed: int
    places: int  # for conversations at the same time
    ways: tuple[Way, ...]  # in which requests come, in turn: each its own engine
    method: Method
    tools: bool
    compaction: ClientCompaction
    window: int
    files: bool  # each engine has a store of its own over one file, as two processes have
    at_once: int  # acts that are done at the same time
    alike: bool  # all conversations are of one shape: only what the assistant says differs
    clients: tuple[ClientShape, ...]
    acts: tuple[Act, ...]


def plan(seed: int) -> Plan:
    """A world, the same for the same seed."""
    random = Random(seed)
    places, method = random.choice((4, 6, 8)), random.choices(("auto", "llm"), (4, 1))[0]
    clients = tuple(random.choice(random.choice((CLIENTS, APPS))) for _ in range(random.choice((1, 2, 2, 3))))
    alike, count = random.random() < 0.25, random.randint(FEWEST, MOST)
    chosen = random.choices(list(WEIGHTS), [*WEIGHTS.values()], k=count)
    acts = [Act(random.randrange(places), what, random.randrange(10_000), random.randrange(10_000)) for what in chosen]
    return Plan(
        seed,
        places,
        ways=random.choice(WAYS),
        method="llm" if method == "llm" else "auto",
        tools=random.random() < 0.6,
        compaction=random.choice(("prevent", "prevent", "answer", "pass")),
        window=random.choice((1_500, 2_000, 3_000)) + (3_000 if method == "llm" else 0),
        files=random.random() < 0.3,
        at_once=random.choice((1, 1, 1, 3)),
        alike=alike,
        clients=clients[:1] if alike else clients,
        acts=tuple(acts),
    )
