"""Every regular expression of the project takes time in proportion to its text, whatever stands in that."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any

import pytest

import patterns
from amounts import MANY
from clew.catalog.names import VENDORS
from clew.tokens.bundled import _WORDS
from patterns import FROM_ANYWHERE, Found
from straining import SHAPES, Shape, attacks, grows

PARTS = 8
ATTACKS = 24  # made from each pattern by day; at night all there are, which are thousands of some
# The shapes that most patterns which are slow are slow with: by day, these of all of them.
FEW = tuple(map(repr, " a0\n\t.-_\"'`([{</\\#*|=:…")) + tuple(
    map(repr, ("a.", "a/", "a_", "a-", "a ", "a\n", " \n", "<a", "{", "1,", "a@a.", "\u2028", "漢字", "\x1b["))
)

# What is made of something that only a run knows, by module: how many there are, and examples of them. None of what a
# model asks the chat's tools for: a program of its own tries that, and is ended when it takes long.
MADE: dict[str, tuple[int, tuple[str | bytes, ...]]] = {
    "clew.agent.tools.changes": (2, (r"a\r?\nb\r?\n", "aaaa")),
    "clew.agent.tools.grep": (1, ()),
    "clew.agent.tools.searching": (1, ()),
    "clew.batch.acts": (1, (r"(?i)a\s+b\s+c",)),
    "clew.catalog.names": (1, tuple(f"^(?:{pattern})" for pattern, _ in VENDORS)),
    "clew.cli.talk": (1, (r"[;,]? ?\brecall (?:0a1b2c3d4e|5c152e6ae5)(?: for all of it)?",)),
    "clew.page.rendering": (1, ("(?i)(aaa|aa)",)),
    "clew.recognition.byte_offsets": (2, (rb'"messages"\s*:\s*\[\s*', rb'\]\s*,\s*"model"\s*:')),
    "clew.secrets.kinds": (3, ()),  # from its file of rules: they stand in its tables
    "clew.secrets.names": (1, (r'(?<!\\)(\\*)"',)),
    "clew.sessions.about": (1, ()),  # they stand in its table
    "clew.steps.notes.check": (1, (r"(?<!\w)aaa(?!\w)",)),
    "clew.steps.worklog.wording": (1, (r"(?<![\w./:~-])/a/b/(?=[\w.])",)),
    "clew.text.excerpts": (1, (r"a\w{0,40}b", r"\s\S{1,40}x")),
    "clew.tokens.bundled": (2, ("(<start_of_turn>|<eos>)", *_WORDS.values())),
    "clew.tokens.names": (1, ()),  # they stand in its table
    "clew.wire.overflow.wordings": (1, ()),  # they stand in its table, and in two others
}


@cache
def found() -> tuple[list[Found], list[str]]:
    return patterns.patterns()


def tried(pattern: re.Pattern[Any]) -> Iterator[tuple[str, Shape]]:
    """Texts for a pattern: of all kinds, and made from what it says itself."""
    yield from ((name, shape) for name, shape in SHAPES.items() if MANY > 1 or name in FEW)
    said, flags = pattern.pattern, pattern.flags
    if isinstance(said, bytes):
        said, flags = said.decode("latin-1"), flags | re.ASCII
    made = list(attacks(said, flags))
    yield from made if MANY > 1 else islice(made, 0, None, max(1, len(made) // ATTACKS))


def work(pattern: re.Pattern[Any], use: str) -> Callable[[str], object]:
    """Try a pattern on all of a text, as it is used."""
    act = getattr(pattern, use)

    def do(text: str) -> None:
        given = text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text
        if use == FROM_ANYWHERE:
            for _ in act(given):
                pass
        else:
            act(given)

    return do


def slow(pattern: re.Pattern[Any], use: str) -> str:
    """The first text for which a pattern takes more time than is due to its length; nothing if there is none."""
    for name, shape in tried(pattern):
        if said := grows(work(pattern, use), shape):
            return f"{use} of {name}: {said}"
    return ""


def test_all_patterns_are_found() -> None:
    known, unknown = found()
    assert Counter(unknown) == {module: many for module, (many, _) in MADE.items()}
    places = {pattern.place.partition(".")[0] + "." + pattern.place.split(".")[1] for pattern in known}
    assert {"clew.secrets", "clew.steps", "clew.wire", "clew.text", "clew.facts", "clew.recognition"} <= places
    assert sum(pattern.place.startswith("clew.secrets.kinds.") for pattern in known) > 100  # from its file of rules


@pytest.mark.parametrize(
    ("pattern", "use"),
    [
        (r"\s+$", FROM_ANYWHERE),
        (r"\b[A-Za-z_]\w*(?:\.\w+)*(?=\()", FROM_ANYWHERE),
        (r"(?:\w+__)*(?:read|view)", "match"),
        (r"<summary>(.*?)</summary>", FROM_ANYWHERE),
        (r"\*\*\* Move to: (.+?)\s*$", "match"),
        (r"(?:a+)+b", "fullmatch"),
    ],
)
def test_a_pattern_that_is_slow_is_noticed(pattern: str, use: str) -> None:
    assert slow(re.compile(pattern), use)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_pattern_is_slow(part: int) -> None:
    made = [re.compile(text) for _, some in MADE.values() for text in some]
    every = [*found()[0], *(Found(pattern, "made", frozenset({FROM_ANYWHERE})) for pattern in made)]
    faults = [
        f"{place} {pattern.pattern!r}: {said}"
        for pattern, place, uses in every[part::PARTS]
        for use in sorted(uses)
        if (said := slow(pattern, use))
    ]
    assert not faults, "\n".join(faults)
