"""A transcript in another wire format, with its compactions at the same places."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace as with_
from uuid import uuid4

from clew.core.items import Item, Opening
from clew.sessions.transcripts.shape import Script, Transcript, TranscriptMessage
from clew.wire.convert import convert_frame, convert_items
from clew.wire.formats import named


def convert(transcript: Transcript, to: str) -> Transcript:
    """The same session in another format; what only its own provider can read stays behind."""
    if transcript.format == to:
        return transcript
    frame, _ = named(transcript.format).split(with_(transcript, stretches=()).body())
    tools = convert_frame(frame, to).tools
    cuts = transcript.compactions
    places = {p for place, why in cuts for p in (place, place - why.kept)}
    messages, now = _converted(transcript.messages, places, transcript.format, to)
    script = Script()
    for place, why in cuts:
        script.say(*messages[len(script.messages) : now[place]])
        script.compact(with_(why, kept=now[place] - now[place - why.kept], also=()))
    script.say(*messages[len(script.messages) :])
    return with_(transcript, format=to, stretches=script.stretches, tools=tools, children=())


def _converted(
    messages: Sequence[TranscriptMessage], places: AbstractSet[int], was: str, to: str
) -> tuple[list[TranscriptMessage], dict[int, int]]:
    """The messages in another format, and for each of these places where it is now."""
    codec = named(was)
    mark = f"\x00{uuid4()} "  # said by nobody: goes through the conversion as a message, and comes out as a place
    items: list[Item] = []
    for n, message in enumerate(messages):
        if n in places:
            items.append(_marked(mark, n))
        items += codec.read(message, f"{codec.LIST}[{n}]")
    items.append(_marked(mark, len(messages)))
    said: list[TranscriptMessage] = []
    now: dict[int, int] = {}
    group: list[Item] = []
    for item in convert_items(items, was, to):
        if item.text.startswith(mark):
            said += named(to).write(group)
            now[int(item.text.removeprefix(mark))] = len(said)
            group = []
        else:
            group.append(item)
    return said + named(to).write(group), now


def _marked(mark: str, n: int) -> Item:
    return Item("text", "user", f"{mark}{n}", opens=Opening({"role": "user"}, bare=True))
