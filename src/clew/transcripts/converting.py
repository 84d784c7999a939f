"""A transcript in another wire format, with its compactions at the same places."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace as with_

from clew.items import Item, Opening
from clew.transcripts.shape import Message, Script, Transcript
from clew.wire.convert import convert_frame, convert_items
from clew.wire.formats import named

MARK = "\x00clew:place:"  # nobody says this


def convert(transcript: Transcript, to: str) -> Transcript:
    """The same session in another format; what only its own provider can read stays behind."""
    if transcript.format == to:
        return transcript
    frame, _ = named(transcript.format).split(transcript.body())
    tools = convert_frame(frame, to).tools
    cuts = transcript.compactions
    places = sorted({p for place, why in cuts for p in (place, place - why.kept)})
    messages, now = _converted(transcript.messages, places, transcript.format, to)
    script = Script()
    for place, why in cuts:
        script.say(*messages[len(script.messages) : now[place]])
        script.compact(with_(why, kept=now[place] - now[place - why.kept]))
    script.say(*messages[len(script.messages) :])
    return with_(transcript, format=to, stretches=script.stretches, tools=tools, children=())


def _converted(
    messages: Sequence[Message], places: Sequence[int], was: str, to: str
) -> tuple[list[Message], dict[int, int]]:
    """The messages in another format, and for each of these places where it is now."""
    codec = named(was)
    items: list[Item] = []
    for n, message in enumerate(messages):
        if _is_in(n, places):
            items.append(_mark(n))
        items += codec.read(message, f"{codec.LIST}[{n}]")
    items += [_mark(len(messages))]
    said: list[Message] = []
    now: dict[int, int] = {}
    group: list[Item] = []
    for item in convert_items(items, was, to):
        if item.text.startswith(MARK) and item.kind == "text":
            said += named(to).write(group)
            now[int(item.text.removeprefix(MARK))] = len(said)
            group = []
        else:
            group.append(item)
    return said + named(to).write(group), now


def _is_in(n: int, places: Sequence[int]) -> bool:
    at = bisect_left(places, n)
    return at < len(places) and places[at] == n


def _mark(n: int) -> Item:
    return Item("text", "user", f"{MARK}{n}", opens=Opening({"role": "user"}, bare=True))
