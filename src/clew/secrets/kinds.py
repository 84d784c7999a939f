"""The rules of `rules.toml`: what secrets look like, and what only looks like one."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

Proof = Literal["any", "mixed", "random", "loud", "base64"]  # what a value must look like: see values.py

RULES: dict[str, Any] = tomllib.loads(files("clew.secrets").joinpath("rules.toml").read_text(encoding="utf-8"))


class SecretKind(NamedTuple):
    """A kind of secret, and how it is found."""

    name: str
    words: tuple[str, ...]
    written: str
    proof: Proof | None  # None: the pattern says enough
    begins: bool  # the pattern begins with one of the words, so it is tried only where they stand

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when one of its words is first seen: for all of them that takes a tenth of a second."""
        return _compiled(self.written)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


class Name(NamedTuple):
    """What a field is called (small letters, words parted by _ or a space), and what its value must look like."""

    kind: str
    pattern: re.Pattern[str]
    proof: Proof


def _kind(rule: dict[str, Any]) -> SecretKind:
    pattern = rule["pattern"]
    for short, long in RULES["parts"].items():
        pattern = pattern.replace(f"<{short}>", long)
    proof, begins = rule.get("proof"), not rule.get("inside", False)
    return SecretKind(rule["name"], tuple(rule["words"]), pattern, proof, begins)


def _name(rule: dict[str, Any]) -> Name:
    pattern = rule["pattern"].replace("<keys>", "|".join(RULES["words"]["keys"]))
    return Name(rule["kind"], re.compile(rf"(?:{pattern})(?=[_ ]|\d|$)"), rule["proof"])


SHAPES = tuple(map(_kind, RULES["shape"]))  # secrets that say themselves what they are
PLACES = tuple(map(_kind, RULES["place"]))  # those that only their place gives away
NAMES = tuple(map(_name, RULES["name"]))
VALUES = {rule["name"]: re.compile(rule["pattern"]) for rule in RULES["value"]}  # what is no secret
ANCHORS: tuple[str, ...] = tuple(RULES["words"]["anchors"])
BEFORE, BEHIND = (frozenset[str](RULES["words"][key]) for key in ("before", "behind"))
