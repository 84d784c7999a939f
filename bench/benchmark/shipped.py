"""The conversation that ships with clew, cut at several places: what did its agent need again?"""

import re
from collections.abc import Iterator, Mapping, Sequence

from benchmark.judging import NEAR, Curve, Cut, Heard, Messages, Method, Need, Words, judge_all, shown

CUTS = 0.4, 0.5, 0.6, 0.7, 0.8
# Paths, dotted and hyphenated names, snake_case and camelCase: what an agent has to spell exactly.
_NAME = re.compile(r"[\w.-]*(?:/[\w.-]+)+|\w+(?:[_.-]\w+)+|[a-z]+(?:[A-Z][a-z0-9]+)+")
_SHORTEST = 8


def judge_shipped(messages: Messages, shares: Sequence[float], methods: Mapping[str, Method], heard: Heard) -> Curve:
    """How many of the strings used again each method keeps, at these shares of the history."""
    places = [int(len(messages) * cut) for cut in CUTS]
    needs = {at: list(needed(messages, at)) for at in places}
    sizes = {at: len(shown(messages[:at])) for at in places}
    material = {
        share: [Cut(f"message {at}", messages[:at], int(sizes[at] * share), sizes[at], needs[at]) for at in places]
        for share in shares
    }
    return judge_all(f"the shipped session, {len(places)} cuts", material, methods, Words(), heard)


def needed(messages: Messages, at: int) -> Iterator[Need]:
    """Strings said before the cut that the assistant was the first to say after it."""
    words = Words()
    before, since = shown(messages[:at]), ""
    asked: set[str] = set()
    for message in messages[at:]:
        text = shown([message])
        names = _NAME.findall(text) if message["role"] == "assistant" else ()
        for name in names:
            need = Need(name, "")
            fresh = len(name) >= _SHORTEST and name not in asked
            if fresh and words.kept(before, need) and not words.kept(since, need):
                asked.add(name)
                distance = (len(before) - before.rindex(name) + len(since)) // 4
                yield Need(name, _cue(text, name), _anchors(before, name), distance)
        since += text


def _cue(text: str, name: str) -> str:
    """The words around a reuse, without the string."""
    at = text.index(name)
    return f"{text[max(0, at - 60) : at]}____{text[at + len(name) : at + len(name) + 60]}"


def _anchors(text: str, name: str) -> frozenset[str]:
    """The words around every mention."""
    near = [text[max(0, m.start() - NEAR) : m.end() + NEAR] for m in re.finditer(re.escape(name), text)]
    return frozenset(re.findall(r"[a-z]{4,}", " ".join(near).replace(name, " ").lower()))
