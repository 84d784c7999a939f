"""Finding secrets in what was said, and masking them.

A secret is believed for its own shape, for its place (a header, a URL, a command line) or for the name of the field
that holds it. A program made most of them, and they look like nothing else; a person chose the others, such as
`password: petclinic`, which is left alone unless `chosen` ones are asked for. JSON is read string by string, one JSON
inside another too, so that a mask never breaks it.
"""

import json
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as with_
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from clew.core.items import Frame, Item
from clew.errors import BadRequest
from clew.secrets.disguises import packed, plain
from clew.secrets.kinds import PLACES, SHAPES, SecretKind
from clew.secrets.names import kind_of, named, small
from clew.secrets.values import is_base64, is_empty, is_random, proves

MOST_DIGESTS = 20_000  # then it begins anew

_KEY = os.urandom(32)  # of this process: a digest tells nobody what was said
_digests: set[bytes] = set()


TELLING = frozenset(kind.name for kind in SHAPES) | {"private key"}  # kinds that say themselves what they are
_LONG = re.compile(r"[a-z0-9_.+/=~:$%|@{}-]{16,}")
_SHAPES, _PLACES = (
    {w: [k for k in table if w in k.words] for kind in table for w in kind.words} for table in (SHAPES, PLACES)
)


ROUNDS = 4  # what a mask uncovers is masked too; more than two have not been seen
BLOB = 1000  # characters of base64 that are a picture or a document; secrets are shorter
SHORTEST_RUN = 16  # characters of a secret that is known by its shape
DEPTH = 4  # of JSON inside JSON that is read exactly; below it the patterns see the escapes


class Secret(NamedTuple):
    """Where a secret stands in a text, and of which kind it is."""

    kind: str
    start: int
    stop: int


def matched(text: str, lower: str) -> list[Secret]:
    """The secrets that the patterns of kinds find; they may overlap."""
    # A secret that is known by its shape has no spaces, and most text is short words.
    long = " ".join(_LONG.findall(lower))
    there = [(word, kind) for word in _SHAPES if word in long for kind in _SHAPES[word]] if long else []
    there += [(word, kind) for word in _PLACES if word in lower for kind in _PLACES[word]]
    return [secret for word, kind in there for secret in found_by(kind, word, text, lower)]


def found_by(kind: SecretKind, word: str, text: str, lower: str) -> Iterator[Secret]:
    """The secrets that one pattern finds where one of its words is in the text."""
    for match in _tried(kind, word, text, lower):
        start, stop = match.span(match.lastindex or 0)
        value = text[start:stop]
        if not is_empty(value, kind.proof) and (kind.proof is None or proves(kind.proof, value)):
            yield Secret(kind.name, start, stop)


def _tried(kind: SecretKind, word: str, text: str, lower: str) -> Iterator[re.Match[str]]:
    """Where the pattern of a kind fits; one that begins with its word is tried only there."""
    pattern = kind.pattern
    if not kind.begins:
        yield from pattern.finditer(text)
        return
    at = lower.find(word)
    while at >= 0:
        match = pattern.match(text, at)
        if match:
            yield match
        at = lower.find(word, max(at + 1, match.end() if match else 0))


def find(text: str, *, chosen: bool = True) -> list[Secret]:
    """The secrets in a text, in order and apart from each other."""
    return _held("", text, 0, chosen)


def masked(text: str, key: bytes = b"") -> str:
    """The text with a marker for each secret; the same object if there is none."""
    return _masked("", text, key, chosen=True)


def masked_item(item: Item, key: bytes, *, chosen: bool = True) -> Item:
    """The item without its secrets; the same object if it has none."""
    return _masked_item(item, partial(_masked, key=key, chosen=chosen))


def masked_frame(frame: Frame, key: bytes, *, chosen: bool = True) -> Frame:
    """The frame without its secrets; the same object if it has none."""
    act = partial(_masked, key=key, chosen=chosen)
    lead, body, tools = _each(frame.lead, act), _each(frame.body, act), _each(frame.tools, act)
    system = act("", frame.system)
    same = lead is frame.lead and body is frame.body and tools is frame.tools and system is frame.system
    return frame if same else with_(frame, lead=lead, body=body, tools=tools, system=system)


def kinds_in(item: Item, *, chosen: bool = True) -> list[str]:
    """The kinds of the secrets in an item, without the secrets."""
    kinds: set[str] = set()

    def note(name: str, text: str) -> str:
        kinds.update(secret.kind for secret in _held(name, text, 0, chosen))
        return text

    _masked_item(item, note)
    return sorted(kinds)


# Masking

Masker = Callable[[str, str], str]  # from what a string is called, and the string, to another


def _masked_item(item: Item, act: Masker) -> Item:
    """The item with something done to each of its strings; the same object if none changed."""
    opens = item.opens
    if opens is not None and (keys := _each(opens.keys, act)) is not opens.keys:
        opens = with_(opens, keys=keys)
    call_id = act("", item.call_id)
    if call_id is not item.call_id:
        # A call and its result must name the same, in letters that every provider takes, wherever it is written.
        bare = _NO_ID.sub("_", call_id).strip("_")
        act = partial(_with_id, act, item.call_id, bare)
        call_id = bare
    text, name, wire, mark = act("", item.text), act("", item.name), _each(item.wire, act), _each(item.mark, act)
    pairs = (text, item.text), (name, item.name), (wire, item.wire), (mark, item.mark), (call_id, item.call_id)
    if opens is item.opens and all(new is old for new, old in pairs):
        return item
    return with_(item, text=text, name=name, call_id=call_id, wire=wire, opens=opens, mark=mark)


_NO_ID = re.compile(r"[^A-Za-z0-9_-]+")


def _with_id(act: Masker, old: str, new: str, name: str, text: str) -> str:
    return new if text == old else act(name, text)


def _each(value: Any, act: Masker) -> Any:
    """A value with something done to each of its strings; whatever did not change is the same object."""
    try:
        return _walked(value, act, "")
    except RecursionError:
        raise BadRequest("a message is nested too deeply to search it for secrets") from None


def _walked(value: Any, act: Masker, name: str) -> Any:
    if isinstance(value, str):
        return act(name, value)
    if isinstance(value, Mapping):
        names = _names(value)
        new = {_walked(k, act, ""): _walked(v, act, names[k]) for k, v in value.items()}
        return value if all(k in new and new[k] is v for k, v in value.items()) else new
    if isinstance(value, list | tuple):
        items = [_walked(v, act, called) for called, v in _options(value, name)]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
    return value


def _names(value: Mapping[Any, Any]) -> dict[Any, str]:
    """What each value of a mapping is called: its key, or the name that is paired with a value."""
    called = value.get("name") or value.get("key")
    return {k: called if k == "value" and isinstance(called, str) else str(k) for k in value}


def _options(value: Sequence[Any], name: str) -> Iterator[tuple[str, Any]]:
    """What each value of a list is called: as the list is, or as the option before it."""
    option = ""
    for v in value:
        yield option or name, v
        option = v if isinstance(v, str) and v.startswith("--") else ""


def _masked(name: str, text: str, key: bytes, chosen: bool) -> str:
    for _ in range(ROUNDS):
        secrets = _held(name, text, 0, chosen)
        if not secrets:
            break
        text = _marked(text, secrets, key)
    return text


def _marked(text: str, secrets: Iterable[Secret], key: bytes) -> str:
    """The text with each of its secrets replaced by what tells it from others."""
    parts, end = [], 0
    for kind, start, stop in secrets:
        # A key is the same key with its line ends escaped, or in colours.
        read = plain(text[start:stop])
        bare = re.sub(r"\\+[nrt]|[\s\\]", "", read.text if read else text[start:stop])
        mark = blake2b(bare.encode("utf-8", "surrogatepass"), key=key[:64], digest_size=3).hexdigest()
        parts += [text[end:start], f"[secret: {kind} {mark}]"]
        end = stop
    return "".join((*parts, text[end:]))


_MARKER = re.compile(r"\[secret: [a-z0-9. -]{1,40} [0-9a-f]{6}\]")


# Finding


def _held(name: str, text: str, depth: int, chosen: bool) -> list[Secret]:
    """The secrets in a string, which may be the value of a field with a name."""
    if (len(text) > BLOB or name in _OPAQUE) and _BLOB.fullmatch(text):
        return [] if name in _OPAQUE else _apart(text, _packed(text))
    if name and (kind := kind_of(name, text)) and (chosen or _is_made(kind, text)):
        return [Secret(kind, 0, len(text))]
    if len(text) < SHORTEST_RUN and text.replace("_", "").isalnum():
        return []  # one word: too short for a key, and there is no sign between a name and a value
    if _HEADER.search(name):
        return _searched(text, depth, chosen, f"{name}: ")
    known_by = digest(text, depth, chosen)
    if is_harmless(known_by):
        return []
    secrets = _searched(text, depth, chosen)
    if not secrets:
        remember(known_by)
    return secrets


def _searched(text: str, depth: int, chosen: bool, before: str = "") -> list[Secret]:
    """The secrets in a string that may stand behind the name of a header."""
    if text[:1] in _JSON and depth < DEPTH and _is_json(text):
        return _apart(text, _in_json(text, depth, chosen))
    found = (Secret(k, a - len(before), b - len(before)) for k, a, b in _seen(before + text) if a >= len(before))
    return _apart(text, (s for s in found if chosen or _is_made(s.kind, text[s.start : s.stop])))


def _is_made(kind: str, value: str) -> bool:
    """Whether a program made a secret: it says itself what it is, or it is long and random."""
    return kind in TELLING or any(len(part) >= SHORTEST_RUN and is_random(part) for part in value.split())


def _seen(text: str) -> Iterator[Secret]:
    """The secrets that patterns find in a text as it is, as it reads, and in what is packed in it."""
    lower = small(text)
    if (read := plain(text)) is None:
        yield from (Secret(*secret) for secret in named(text, lower))
    else:
        # A colour beside a value is no part of it, and between two words it may be all that parts them.
        plainly = small(read.text)
        found = (*named(read.text, plainly), *matched(read.text, plainly))
        yield from (Secret(kind, *read.span(start, stop)) for kind, start, stop in found)
    yield from matched(text, lower)
    yield from _packed(text)


def _packed(text: str) -> Iterator[Secret]:
    """The secrets that are packed in a text: only what says itself what it is, for names are in all that is packed."""
    for start, stop, said in packed(text):
        if shaped := [secret.kind for secret in matched(said, small(said)) if secret.kind in TELLING]:
            yield Secret(shaped[0], start, stop)


_HEADER = re.compile(r"(?i)cookie|authorization")
# Providers want these back as they were.
_OPAQUE = frozenset({"data", "signature", "thoughtSignature", "thought_signature", "encrypted_content"})
_BLOB = re.compile(r"(?:data:[\w/+.;=-]{0,100},)?(?:[\w+/-]{60,}+\s{0,2})+[\w+/-]*+={0,2}\s*")


def _apart(text: str, found: Iterable[Secret]) -> list[Secret]:
    """Secrets in order; what overlaps is one, and what was masked before is none."""
    markers = [match.span() for match in _MARKER.finditer(text)] if "[secret: " in text else []
    ends = [stop for _, stop in markers]
    secrets: list[Secret] = []
    for secret in sorted(found, key=lambda s: (s.start, -s.stop)):
        next_marker = bisect_right(ends, secret.start)
        if next_marker < len(markers) and markers[next_marker][0] < secret.stop:
            continue
        if secrets and secret.start < secrets[-1].stop:
            last = secrets[-1]
            secrets[-1] = last._replace(stop=max(last.stop, secret.stop))
        else:
            secrets.append(secret)
    return secrets


# JSON

_JSON = frozenset('{["')
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?')
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _in_json(text: str, depth: int, chosen: bool) -> Iterator[Secret]:
    """The secrets in each string of a JSON text, at their places in that text."""
    name = beside = ""  # what the next value is called: by its key, or by the value before it
    end = 0
    kubernetes = '"Secret"' in text and '"kind"' in text
    for match in _STRING.finditer(text):
        if re.search(r"[}\]]", text[end : match.start()]):
            name = ""  # the list it named is closed
        end = match.end()
        said = json.loads(f'"{match[1]}"') if "\\" in match[1] else match[1]
        if match[2]:
            secrets = _held("", said, depth + 1, chosen)
            name = beside if said == "value" and beside else said
        else:
            secrets = _held(beside if beside.startswith("--") else name, said, depth + 1, chosen)
            if kubernetes and not secrets and is_base64(said) and (chosen or _is_made("", said)):
                secrets = [Secret("kubernetes secret", 0, len(said))]
            beside = said if name in ("name", "key") or said.startswith("--") else ""
        if secrets:
            place = _places(match[1], match.start(1))
            yield from (Secret(kind, place(start), place(stop)) for kind, start, stop in secrets)


def _places(escaped: str, offset: int) -> Callable[[int], int]:
    """Where a character of a JSON string stands in its escaped form."""
    ends: list[int] = []  # of each escape, once read
    grown = [0]
    for match in _ESCAPE.finditer(escaped):
        grown.append(grown[-1] + len(match[0]) - 1)
        ends.append(match.end() - grown[-1])
    return lambda at: offset + at + grown[bisect_right(ends, at)]


def digest(text: str, depth: int, chosen: bool) -> bytes:
    """What a string is known by, as it was searched."""
    said = text.encode("utf-8", "surrogatepass")
    return blake2b(said, key=_KEY, person=bytes((depth, chosen)), digest_size=16).digest()


def is_harmless(known_by: bytes) -> bool:
    """Whether this string was searched before, and held nothing."""
    return known_by in _digests


def remember(known_by: bytes) -> None:
    """This string held nothing."""
    if len(_digests) >= MOST_DIGESTS:
        _digests.clear()
    _digests.add(known_by)
