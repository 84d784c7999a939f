"""What a provider would refuse about a body, said before it is sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clew.wire.formats import detect, named
from clew.wire.rules.turns import Rule


@dataclass(frozen=True, slots=True)
class Broken:
    """One place in a body where a provider's rule does not hold."""

    rule: str
    where: str  # such as messages[3].content[1]
    why: str
    source: str  # the provider's own words for it, or where they are documented


def check(body: Mapping[str, Any], format: str | None = None) -> list[Broken]:
    """Every rule of the format's provider that the body breaks; a body of only `messages` will do."""
    rules = named(format or detect(body)).RULES
    return [Broken(r.__name__, where, why, source(r)) for r in rules for where, why in r(body)]


def source(rule: Rule) -> str:
    """The refusal that a rule stands for, in the provider's words."""
    return " ".join((rule.__doc__ or "").split())
