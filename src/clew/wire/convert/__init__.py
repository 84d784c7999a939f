"""A body of one format as a body of another, for an agent that changes its model in mid-session.

What only its own provider can read stays behind (reasoning, signatures, sealed content); what can be read goes over.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as with_
from hashlib import blake2b
from itertools import groupby
from typing import Any

from clew import wire
from clew.core import rawjson
from clew.core.items import Frame, Item, Opening
from clew.errors import BadRequest
from clew.wire.convert.frame import convert_frame, declare
from clew.wire.convert.media import Media, has_failed, parts_of, read_media, words, write_media
from clew.wire.convert.tools import plain_name
from clew.wire.formats import named
from clew.wire.formats.plain import Block, string

__all__ = ["convert", "convert_frame", "convert_item", "convert_items"]

SHORTEST_ID_LIMIT = 40  # the shortest limit that a provider has
CONVERSE_DOCUMENTS = 5  # in a request to Converse
CLAUDE_MARKS = 4  # in a request to Claude
START = Item("text", "user", "[the conversation begins here]")
# Google's word for calls that its model did not make: Gemini 3 refuses a call without a signature.
# (ai.google.dev/gemini-api/docs/thought-signatures, under FAQs; the same on Vertex AI)
UNSIGNED = "skip_thought_signature_validator"
OLD_GEMINI = re.compile(r"gemini-[12]\b")  # sees no pictures inside results
SPOKEN_TO = frozenset({"bedrock", "gemini"})  # want the user to speak first
HAVE_SYSTEM = frozenset({"openai_chat", "openai_responses"})  # take system messages anywhere
AS_USER = {"system": "[system] {}", "tool": "[data: what a tool gave]\n{}\n[end of data]"}  # who has no voice there
MARKED = frozenset({"openai_chat", "anthropic", "bedrock"})  # whose cache marks mean the same
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
    if to == "bedrock":
        said = _with_documents(said)
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
    mark = _mark(to) if item.mark is not None and was in MARKED else None
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
    if not items or (items[0].role == "assistant" and frame.format in SPOKEN_TO):
        items = [START, *items]
    if frame.format == "gemini" and OLD_GEMINI.search(frame.model):
        items = [part for item in items for part in _apart(item)]
    if frame.format in ("anthropic", "bedrock"):
        frame = declare(frame, (item.name for item in items if item.kind == "call"))
    return frame, items


def _apart(item: Item) -> Iterator[Item]:
    """A result, and beside it what it shows."""
    match item.wire:
        case {"functionResponse": {"parts": list(parts), **rest}}:
            yield with_(item, wire={"functionResponse": rest})
            yield from (Item("media", "user", wire=part) for part in parts)
        case _:
            yield item


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
    block: Block | None = None
    if to == "gemini":
        called = {"id": call_id, "name": name, "args": rawjson.loads(text)}
        block = {"functionCall": called, "thoughtSignature": UNSIGNED}
    return Item("call", "assistant", text, name, call_id, block)


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
    parts = [_shown(part, to) for part in parts_of(item, was)]
    text = "\n".join(part for part in parts if isinstance(part, str))
    if to == "bedrock" and not text.strip() and all(isinstance(part, str) for part in parts):
        parts = [text := "[empty]"]
    name = plain_name(item.name) if to == "gemini" and item.name else ""
    new = Item("result", "tool", text, name, _plain_id(item.call_id))
    seen = any(not isinstance(part, str) for part in parts)
    failed = has_failed(item, was)
    if to == "anthropic" and (seen or failed):
        content = _blocks(parts, {"type": "text"}) if seen else text
        return with_(new, wire={"content": content} | ({"is_error": True} if failed else {}))
    if to == "openai_responses" and seen:
        output = _blocks(parts, {"type": "input_text"})
        return with_(new, wire={"type": "function_call_output", "call_id": new.call_id, "output": output})
    if to == "bedrock" and (seen or failed):
        given: Block = {"toolUseId": new.call_id, "content": _blocks(parts, {})}
        return with_(new, wire={"toolResult": given | ({"status": "error"} if failed else {})})
    if to == "gemini" and (seen or failed) and name:
        given = {"id": new.call_id, "name": name, "response": {"error" if failed else "result": text}}
        media = [part for part in parts if not isinstance(part, str)]
        return with_(new, wire={"functionResponse": given | ({"parts": media} if media else {})})
    return new


def _shown(part: str | Media, to: str) -> str | Block:
    """A part of a result as the target takes it there."""
    if isinstance(part, str):
        return part
    block = None if to == "openai_chat" else write_media(part, to)
    if to == "gemini" and block is not None and "inlineData" not in block:
        block = None
    return block or part.placeholder


def _blocks(parts: list[str | Block], text: Block) -> list[Block]:
    return [text | {"text": part} if isinstance(part, str) else part for part in parts if part and part != "\n"]


def _media(item: Item, was: str, to: str) -> Item | None:
    media = read_media(item.wire or {}, was)
    block = write_media(media, to) if isinstance(media, Media) and item.role == "user" else None
    if block is not None:
        return Item("media", "user", wire=block)
    return _words(item, media.placeholder if isinstance(media, Media) else media or words(item.wire), to)


def _words(item: Item, text: str, to: str) -> Item | None:
    """Text in the voice of whoever said it, as far as the target has that voice."""
    if not text.strip():
        return None
    if item.role == "tool" or (item.role == "system" and to not in HAVE_SYSTEM):
        return Item("text", "user", AS_USER[item.role].format(text))
    # As the assistant's, this API takes a message of one string, or one with all that it gave itself.
    opens = Opening({"role": "assistant"}, bare=True) if (item.role, to) == ("assistant", "openai_responses") else None
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


def _with_documents(items: list[Item]) -> list[Item]:
    """Few documents, each under a name of its own and next to some text: Converse wants it so."""
    places = [i for i, item in enumerate(items) if item.wire is not None and "document" in item.wire]
    names: set[str] = set()
    for i in places:
        held = (items[i].wire or {})["document"]
        if i in places[:-CONVERSE_DOCUMENTS]:
            items[i] = Item("text", "user", Media("document", name=held["name"]).placeholder)
            continue
        n, name = 1, held["name"]
        while name in names:
            n += 1
            name = f"{held['name']} {n}"
        names.add(name)
        items[i] = with_(items[i], wire={"document": held | {"name": name}})
    said: list[Item] = []
    for _, turn in groupby(items, key=lambda item: item.role == "assistant"):
        said += (group := list(turn))
        shown = any("document" in (item.wire or {}) for item in group)
        if shown and not any(item.kind in ("text", "summary") for item in group):
            said.append(Item("text", "user", "[the document above]"))
    return said


def _mark(to: str) -> Block | None:
    # One that lasts longer may not stand after one that lasts shorter, so all last the same.
    marks: Mapping[str, Block] = {"anthropic": {"type": "ephemeral"}, "bedrock": {"cachePoint": {"type": "default"}}}
    return marks.get(to)
