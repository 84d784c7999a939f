"""Every regular expression that a request's text meets takes time in proportion to that text, whatever it is."""

import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import clew
from amounts import MANY
from clew.secrets.kinds import SecretKind
from straining import SHAPES, Shape, grows, repeated

# What a turn, a fold, its log, recognition and masking are made of.
FOLDERS = "core text facts tokens secrets wire store steps recognition engine exchange gateway".split()
# Whose texts are short, or have been looked at by something else:
BOUNDED = (
    "clew.wire.overflow.",  # 20,000 characters of what a provider says of a failed call
    "clew.secrets.masking._STRING",  # only of what is JSON
    "clew.secrets.names._BACK",  # 40 characters
)
BY_DAY = 1 if MANY > 1 else 40  # of so many shapes one is tried, another one of patterns of another length
DEEPEST = 4  # tables in tables that are looked into
TRIED = re.compile(r"\b(\w+(?:\[\"[^\"]+\"\])?)\.(match|fullmatch|search|finditer|findall|subn?|split)\b")
ANYWHERE = "finditer"  # does what searching, replacing and splitting do, from one end to the other
LITERAL = re.compile(r"[\w<>/\"'=:,@#*-][\w<>/\"'=:,@#* -]+")


class Found(NamedTuple):
    """A pattern, where it stands and a way in which it is tried."""

    place: str
    way: str
    pattern: re.Pattern[str]


def modules() -> Iterator[ModuleType]:
    """All of them that can be imported here."""
    for folder in FOLDERS:
        for info in pkgutil.walk_packages([str(Path(clew.__file__).parent / folder)], f"clew.{folder}."):
            try:
                yield importlib.import_module(info.name)
            except ImportError:  # of a package that is not here
                continue


@cache
def patterns() -> list[Found]:
    """Those that stand in modules and in their tables, each once for every way in which it is tried by its name."""
    every = list(modules())
    own = [_ways(Path(str(module.__file__)).read_text(encoding="utf-8")) for module in every]
    found: dict[tuple[int, str], Found] = {}
    for module, here in zip(every, own, strict=True):
        for name, value in vars(module).items():
            for place, pattern in _held(name, value):
                ways = here[place] if name.startswith("_") else {way for some in own for way in some[place]}
                for way in ways or {ANYWHERE}:
                    found.setdefault((id(pattern), way), Found(f"{module.__name__}.{place}", way, pattern))
    return [one for one in found.values() if not one.place.startswith(BOUNDED)]


def _ways(source: str) -> defaultdict[str, set[str]]:
    found = defaultdict[str, set[str]](set)
    for name, way in TRIED.findall(source):
        found[name].add(way if way in ("match", "fullmatch") else ANYWHERE)
    return found


def _held(place: str, value: Any, depth: int = 0) -> Iterator[tuple[str, re.Pattern[str]]]:
    parts: Iterable[tuple[str, Any]] = ()
    if isinstance(value, re.Pattern):
        yield from [(place, value)] if isinstance(value.pattern, str) else []
    elif isinstance(value, SecretKind):
        yield place, value.pattern
    elif isinstance(value, Mapping):
        parts = ((f'{place}["{key}"]', part) for key, part in value.items())
    elif isinstance(value, tuple | list | set | frozenset):
        parts = ((place, part) for part in value)
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        parts = ((place, getattr(value, name, None)) for name in value.__dataclass_fields__)
    for where, part in parts if depth < DEEPEST else ():
        yield from _held(where, part, depth + 1)


def tried(pattern: re.Pattern[str], every: int) -> Iterator[tuple[str, Shape]]:
    """Texts of all kinds, of `every` so many one, and words of the pattern itself again and again: by day, some."""
    yield from islice(SHAPES.items(), len(pattern.pattern) % every, None, every)
    for word in sorted({*LITERAL.findall(re.sub(r"\\(\W)", r"\1", pattern.pattern))})[:: min(every, 12)]:
        yield from ((repr(text), repeated(text)) for text in (word, f"{word} "))
        yield f"{word!r} and spaces", partial(_spaced, word)


def _spaced(word: str, size: int) -> str:
    return f"{word}{' ' * size}x"


def slow(pattern: re.Pattern[str], way: str, every: int = 1) -> str:
    """The first text for which a pattern takes more time than is due to its length; nothing if there is none."""
    act = getattr(pattern, way)

    def work(text: str) -> None:
        for _ in act(text) if way == ANYWHERE else [act(text)]:
            pass

    for name, shape in tried(pattern, every):
        if grows(work, shape) and (said := grows(work, shape)):  # twice: a busy machine is no fault
            return f"{way} of {name}: {said}"
    return ""


def test_all_patterns_are_found() -> None:
    places = {".".join(found.place.split(".")[:2]) for found in patterns()}
    assert {"clew.secrets", "clew.steps", "clew.wire", "clew.text", "clew.facts", "clew.recognition"} <= places
    assert sum(found.place.startswith("clew.secrets.kinds.") for found in patterns()) > 100  # from its file of rules


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("pattern", "way"),
    [
        (r"\s+$", ANYWHERE),
        (r"\b[A-Za-z_]\w*(?:\.\w+)*(?=\()", ANYWHERE),
        (r"(?:\w+__)*(?:read|view)", "match"),
        (r"<summary>(.*?)</summary>", ANYWHERE),
        (r"\*\*\* Move to: (.+?)\s*$", "match"),
        (r"(?:a+)+b", "fullmatch"),
    ],
)
def test_a_pattern_that_is_slow_is_noticed(pattern: str, way: str) -> None:
    assert slow(re.compile(pattern), way)


@pytest.mark.parametrize("part", range(4))
def test_no_pattern_is_slow(part: int) -> None:
    faults = [
        f"{f.place} {f.pattern.pattern!r}: {said}"
        for f in patterns()[part::4]
        if (said := slow(f.pattern, f.way, BY_DAY))
    ]
    assert not faults, "\n".join(faults)
