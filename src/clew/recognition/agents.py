"""Whether one agent may have sent two requests: by its tools and its system prompt."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from clew.core.items import Frame

PHRASE = 3  # words
_DAYS = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_CLOCK = re.compile(rf"[\d:./+TZ-]+|{_DAYS}|{_MONTHS}|[ap]m|utc|gmt", re.IGNORECASE)


def same_agent(was: Frame, now: Frame) -> bool:
    """Whether one agent may have sent both; one with other tools and another system prompt is another agent."""
    return _kin_tools(was, now) or _kin_words(was.system, now.system)


def same_instructions(was: Frame, now: Frame) -> bool:
    """Whether two requests have the same system prompt, but for what a clock writes there."""
    return was.system == now.system or instructions(was) == instructions(now)


def instructions(frame: Frame) -> str:
    """The system prompt without what a clock writes there."""
    return " ".join(word for word in frame.system.split() if not _CLOCK.fullmatch(word.strip(".,;()")))


def _kin_tools(was: Frame, now: Frame) -> bool:
    a, b = _names(was.tools), _names(now.tools)
    return a == b or 2 * len(a & b) >= max(1, len(a), len(b))


def _names(tools: Iterable[Mapping[str, Any]]) -> set[str]:
    """What tools are called, wherever a format has it."""
    named: set[str] = set()
    for tool in tools:
        for holder in (tool, tool.get("function"), tool.get("toolSpec")):
            if isinstance(holder, Mapping) and isinstance(name := holder.get("name"), str):
                named.add(name)
    return named


def _kin_words(was: str, now: str) -> bool:
    a, b = _phrases(was), _phrases(now)
    return a == b or 2 * len(a & b) >= max(1, len(a), len(b))


def _phrases(text: str) -> set[tuple[str, ...]]:
    """Words with their neighbours: by single words, all prompts are alike."""
    words = text.split()
    size = PHRASE if len(words) > 4 * PHRASE else 1
    return set(zip(*(words[n:] for n in range(size)), strict=False))
