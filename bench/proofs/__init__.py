"""What clew claims, measured beside others: one module for each claim, named in PARTS, in the order in which they run.

A part has two functions. `measure(settings)` gives its figures as plain JSON. `blocks(figures)` gives what the
documents say of them, as Markdown by name; a name that ends in .svg is a picture. Nothing else writes measured
numbers into the documents. A part may have two more: `behind(figures)` gives a sentence for every figure in which
clew is behind others, and the page begins with them; `published(figures)` gives rows for its table of figures that
others published: test, measure, what they say and where, clew.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from benchmark.judging import Heard
from benchmark.public import Source, Unreachable

PARTS = (
    "compint",
    "longmemeval",
    "lostfacts",
    "compactbench",
    "reader",
    "rules",
    "planted",
    "dollars",
    "cost",
    "frames",
    "validity",
    "load",
)

Figures = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    seed: int  # of everything that is made up
    data: Path | None = None  # a folder with corpora that may not be shipped
    quick: bool = False  # a small sample of each, to see that it runs
    share: float = 1.0  # of the material that is measured
    processes: int = 2
    heard: Heard = lambda what, done, whole: None

    def some(self, many: int) -> int:
        """How many of so many are measured."""
        return max(1, round(many * self.share))


class Part(Protocol):
    """A module of this package."""

    def measure(self, settings: Settings) -> Figures:
        """The figures of one run. A part that lacks what it needs (a corpus, a package) raises Missing."""

    def blocks(self, figures: Figures) -> Mapping[str, str]:
        """What the documents say of these figures, by the names of the blocks."""


class Missing(Exception):
    """What a part needs is not there; the message says what, and how to get it."""


def place(source: Source, settings: Settings) -> Path:
    """Where the material of a public test is."""
    try:
        return source.place(settings.data)
    except Unreachable as error:
        raise Missing(str(error)) from error


def part(name: str) -> Part:
    """The part of this name."""
    return cast(Part, import_module(f"proofs.{name}"))
