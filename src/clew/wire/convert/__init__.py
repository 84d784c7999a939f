"""A body of one format as a body of another, for an agent that changes its model in mid-session.

What only its own provider can read stays behind (reasoning, signatures, sealed content); what can be read goes over.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as with_
from hashlib import blake2b
from typing import Any

from clew import wire
from clew.core import rawjson
from clew.core.items import Frame, Item, Opening
from clew.errors import BadRequest
from clew.wire.convert.frame import convert_frame, declare
from clew.wire.convert.media import parts_of, read_media, words
from clew.wire.formats import named, openai_responses
from clew.wire.formats.base import is_seen
from clew.wire.formats.media import Media
from clew.wire.formats.plain import Block, string
from clew.wire.formats.tools import plain_name

__all__ = ["convert", "convert_frame", "convert_item", "convert_items"]

SHORTEST_ID_LIMIT = 40  # the shortest limit that a provider has
CLAUDE_MARKS = 4  # in a request to Claude
START = Item("text", "user", "[the conversation begins here]")
AS_USER = {"system": "[system] {}", "tool": "[data: what a tool gave]\n{}\n[end of data]"}  # who has no voice there
# What speaks to its own provider alone.
PROVIDER_ONLY = frozenset(
    "thinking redacted_thinking reasoning item_reference additional_tools configuration_update compaction_trigger "
    "tool_search_call tool_search_output tool_addition tool_removal toolAddition toolRemoval mcp_tool_listing "
    "mcp_list_tools fallback cachePoint".split()
)


def convert(body: Mapping[str, Any], to: str, format: str | None = None, model: str | None = None) -> dict[str, Any]:
    """The body in another format, for another model if one is named; binary data is base64, as in JSON."""
    named(to)
    frame, items = wire.decode(body, format)
    new, said = convert_frame(frame, to, model), convert_items(items, frame.format, to)
    if frame.format != to:
        new, said = _accepted(new, said)
    return wire.encode(new, said)


def convert_items(items: Iterable[Item], was: str, to: str) -> list[Item]:
    """A history in another format: calls and results in pairs, each pair under an id of its own."""
    items = list(items)
    if was == to:
        return items
    said = [new for item in _arranged(items) if (new := convert_item(item, was, to)) is not None]
    said = named(to).arranged(said)
    marked = [i for i, item in enumerate(said) if item.mark is not None]
    for i in marked[:-CLAUDE_MARKS]:
        said[i] = with_(said[i], mark=None)
    if said and said[-1].role == "assistant" and said[-1].kind != "call":
        said[-1] = with_(said[-1], text=said[-1].text.rstrip())  # Claude goes on from here, and not from a space
    return said


def convert_item(item: Item, was: str, to: str) -> Item | None:
    """One item in another format; None where the target cannot be told."""
    named(was), named(to)
    if was == to:
        return item
    mark = named(to).mark if item.mark is not None and named(was).keeps_marks else None
    match item.kind:
        case "reasoning":
            new = None
        case "call":
            new = _call(item, to)
        case "result":
            new = _result(item, was, to)
        case "media":
            new = _media(item, was, to)
        case "opaque":
            new = _words(item, _opaque(item), to)
        case _:
            new = _words(item, _text(item), to)
    return new and with_(new, mark=mark)


def _accepted(frame: Frame, items: list[Item]) -> tuple[Frame, list[Item]]:
    """What only a whole body can be asked for: somebody speaks first, and tools are declared."""
    format = named(frame.format)
    if not items or (items[0].role == "assistant" and format.user_first):
        items = [START, *items]
    items = format.for_model(frame.model, items)
    if format.declares_calls:
        frame = declare(frame, (item.name for item in items if item.kind == "call"))
    return frame, items


def _arranged(items: Sequence[Item]) -> Iterator[Item]:
    """Results right after the turn that called for them, pairs under ids of their own; half a pair becomes text."""
    answers = _answers(items)
    results = set(answers.values())
    taken: set[str] = set()
    due: dict[int, Item] = {}
    for i, item in enumerate(items):
        if item.role != "assistant" and item.kind != "call":
            yield from (due[place] for place in sorted(due))
            due = {}
        if i in answers:
            call_id = _own_id(item.call_id, taken)
            due[answers[i]] = with_(items[answers[i]], call_id=call_id, name=item.name)
            yield with_(item, call_id=call_id)
        elif item.kind == "call":
            yield Item("text", "assistant", f"[called {item.name} {item.text}: no result]")
        elif item.kind == "result" and i not in results:
            yield Item("text", "user", f"[data: the result of a call that is not here]\n{item.text}\n[end of data]")
        elif i not in results:
            yield item
    yield from (due[place] for place in sorted(due))


def _answers(items: Sequence[Item]) -> dict[int, int]:
    """For the place of each call, that of its result; an id that is used again means the newest call."""
    waiting: dict[str, list[int]] = defaultdict(list)
    found: dict[int, int] = {}
    for i, item in enumerate(items):
        if item.kind == "call":
            waiting[item.call_id].append(i)
        elif item.kind == "result" and waiting[item.call_id]:
            found[waiting[item.call_id].pop()] = i
    return found


def _plain_id(call_id: str) -> str:
    """A call's id in letters, and of a length, that every provider takes."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", call_id) or "call"
    if len(plain) <= SHORTEST_ID_LIMIT:
        return plain
    digest = blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{plain[: SHORTEST_ID_LIMIT - 13]}_{digest}"


def _own_id(call_id: str, taken: set[str]) -> str:
    plain = own = _plain_id(call_id)
    n = 1
    while own in taken:
        n += 1
        own = f"{plain[: SHORTEST_ID_LIMIT - 6]}_{n}"
    taken.add(own)
    return own


def _call(item: Item, to: str) -> Item:
    name, call_id, text = plain_name(item.name), _plain_id(item.call_id), _arguments(item)
    return Item("call", "assistant", text, name, call_id, named(to).written_call(call_id, name, text))


def _arguments(item: Item) -> str:
    """What a tool is called with, as a JSON object; what is none goes under the key `input`."""
    free = item.wire is not None and item.wire.get("type") in ("custom", "custom_tool_call")
    try:
        given = item.text if free else rawjson.loads(item.text or "{}")
    except BadRequest:
        given = item.text
    if isinstance(given, dict):
        return item.text or "{}"
    return rawjson.dumps({"input": given}).decode()


def _result(item: Item, was: str, to: str) -> Item:
    target = named(to)
    parts = [_shown(part, to) for part in parts_of(item, was)]
    text = "\n".join(part for part in parts if isinstance(part, str))
    if target.refuses_empty_results and not text.strip() and not is_seen(parts):
        parts = [text := "[empty]"]
    name = plain_name(item.name) if target.names_results and item.name else ""
    new = Item("result", "tool", text, name, _plain_id(item.call_id))
    return target.with_parts(new, parts, named(was).has_failed(item))


def _shown(part: str | Media, to: str) -> str | Block:
    """A part of a result as the target takes it there."""
    return part if isinstance(part, str) else named(to).shown(part) or part.placeholder


def _media(item: Item, was: str, to: str) -> Item | None:
    media = read_media(item.wire or {}, was)
    block = named(to).write_media(media) if isinstance(media, Media) and item.role == "user" else None
    if block is not None:
        return Item("media", "user", wire=block)
    return _words(item, media.placeholder if isinstance(media, Media) else media or words(item.wire), to)


def _words(item: Item, text: str, to: str) -> Item | None:
    """Text in the voice of whoever said it, as far as the target has that voice."""
    if not text.strip():
        return None
    if item.role == "tool" or (item.role == "system" and not named(to).says_system):
        return Item("text", "user", AS_USER[item.role].format(text))
    # As the assistant's, Responses takes a message of one string, or one with all that it gave itself.
    bare = item.role == "assistant" and to == openai_responses.NAME
    opens = Opening({"role": "assistant"}, bare=True) if bare else None
    return Item("summary" if item.kind == "summary" else "text", item.role, text, opens=opens)


def _text(item: Item) -> str:
    """What a text says, with what OpenAI's chat says beside it: a refusal, a call as they were made before tools."""
    keys = item.opens.keys if item.opens else {}
    if item.role == "tool":
        return f"[{string(keys.get('name'))} gave: {item.text}]" if item.text else ""
    called = keys.get("function_call")
    said = f"[called {called.get('name')} {called.get('arguments')}]" if isinstance(called, Mapping) else ""
    return "\n".join(filter(None, (item.text, string(keys.get("refusal")), said)))


def _opaque(item: Item) -> str:
    """What a provider's own tool was asked or gave, where it can be read."""
    block = item.wire or {}
    inner = next(iter(block.values()), None)
    held = inner if len(block) == 1 and isinstance(inner, Mapping) else block
    kind = string(block.get("type")) or next(iter(block), "")
    label = item.name or kind
    if {label, kind} & PROVIDER_ONLY:
        return ""
    if label == "image_generation_call":
        return Media("image").placeholder
    said = words({k: v for k, v in held.items() if k != "type" and v != label})
    return f"[{label}: {said}]" if said else ""
