"""Which lines of several lists have room."""

from collections.abc import Mapping, Sequence

SHARE_FIRST = 0.4  # of the room that a list may have before the others had theirs


def shared(
    parts: Sequence[tuple[str, Sequence[str]]], size: int, left: int, firsts: Mapping[str, int]
) -> list[list[str]]:
    """The first lines of each list (heading, lines) that have room in what is left of so many characters.

    `firsts` has the characters that a list may have in any case, by how its heading begins.
    """
    kept: list[list[str]] = [[] for _ in parts]
    for share in (SHARE_FIRST, 1.0):  # a part of the room each, then what is left in turn
        for n, (heading, lines) in enumerate(parts):
            first = max((most for begins, most in firsts.items() if heading.startswith(begins)), default=0)
            room = left if share == 1.0 else min(left, max(first, int(share * size)))
            for line in lines[len(kept[n]) :]:
                cost = len(line) + 3 + (0 if kept[n] else len(heading) + 2)
                if cost > room:
                    break
                kept[n].append(line)
                room -= cost
                left -= cost
    return kept


def last_of(texts: Sequence[str], most: int) -> list[str]:
    """The last of these in so many characters, and at least one."""
    some = list[str]()
    for text in reversed(texts):
        if some and sum(map(len, some)) + len(text) > most:
            break
        some.insert(0, text)
    return some
