"""What answers where a peer asks a model for a summary: no model, so that every run is the same.

It copies. A summary that is already there gets half of the room. Of what is left each message gets a share, a user's
three times that of another, and keeps its beginning, whole lines where they fit. So it keeps less than a careful model
would of what is said late in long messages, and more of the user's short ones: a figure with a stand-in says what a
peer's policy lets through, not what a model would write.
"""

import re
from collections.abc import Sequence

ROOM = 8_000  # characters, about 2,000 tokens: what models write when they are asked for a summary of a session
USERS = 3  # shares of a user's message
ASKED: list[tuple[int, int]] = []  # characters that were read and written for each summary, since somebody cleared it
_OPENS = re.compile(r"^\[?(?P<name>human|user|ai|assistant|tool|system)\]?:\s?", re.IGNORECASE | re.MULTILINE)
_SUMMARY = re.compile(r"\bsummary\b", re.IGNORECASE)


def summary_of(text: str, former: str = "") -> str:
    """A summary of a conversation that is written as text, message by message."""
    places = list(_OPENS.finditer(text))
    stops = [*(place.start() for place in places), len(text)][1:]
    said = [
        (place["name"].lower(), text[place.end() : stop].strip()) for place, stop in zip(places, stops, strict=True)
    ]
    return shortened(said, former=former)


def shortened(said: Sequence[tuple[str, str]], room: int = ROOM, former: str = "") -> str:
    """A summary of messages, each with its role; a summary among the first of them is a former one."""
    found = next((text for _, text in said[:2] if _SUMMARY.search(text[:100])), "")
    rest = [(role, text) for role, text in said if not found or text != found]
    kept = [_beginning(text, room // 2) for text in (former, found) if text]
    left = room - sum(map(len, kept))
    shares = sum(USERS if _user(role) else 1 for role, _ in rest) or 1
    for role, text in rest:
        most = left * (USERS if _user(role) else 1) // shares
        kept.append(f"{role}: {_beginning(text, most)}")
    written = "\n".join(kept)[:room]
    ASKED.append((len(former) + sum(len(text) for _, text in said), len(written)))
    return written


def _user(role: str) -> bool:
    return role in ("user", "human")


def _beginning(text: str, most: int) -> str:
    """The first lines that fit; of a first line that does not fit, the first sentences; else its first characters."""
    if len(text) <= most:
        return text
    for sign in ("\n", ". "):
        if (end := text.rfind(sign, 0, most)) > 0:
            return text[: end + 1].rstrip()
    return text[:most]
