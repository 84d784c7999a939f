"""Reports of usage as if all of a history had been sent: a client that is to decide when to compact goes by them."""

from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any

from clew.core import rawjson
from clew.errors import BadRequest
from clew.exchange.transport import Chunks
from clew.gateway.http import GatewayReply
from clew.wire.formats import named
from clew.wire.streams.events import Events, read

Block = dict[str, Any]

_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")  # which Anthropic counts apart
_REPORTS = ("usage", "usageMetadata")
_HOLDERS = ("message", "response")  # in which a report stands within an event


def scaled_reply(reply: GatewayReply, format: str, times: float) -> GatewayReply:
    """A reply whose report is of a history so many times as large as the one that was sent."""

    def patched(said: Any) -> Any:
        return _patched(said, format, times)

    if isinstance(reply.body, bytes):
        with suppress(BadRequest):  # no JSON: as it is
            reply.body = rawjson.dumps(patched(rawjson.loads(reply.body)))
    else:
        reply.body = _streamed(reply.body, patched)
    return reply


async def _streamed(chunks: Chunks, patched: Callable[[Any], Any]) -> Chunks:
    events = Events()
    async with aclosing(chunks):
        async for chunk in chunks:
            if out := b"".join(_event(raw, patched) for raw in events.add(chunk)):
                yield out
    if rest := b"".join(_event(raw, patched) for raw in events.end()):
        yield rest


def _event(raw: bytes, patched: Callable[[Any], Any]) -> bytes:
    if b'"usage' not in raw:
        return raw
    try:
        said = rawjson.dumps(patched(read(raw)))
    except BadRequest:
        return raw
    head, data, _ = raw.partition(b"data:")
    return head + b"data: " + said + b"\n\n" if data else said


def _patched(said: Any, format: str, times: float) -> Any:
    if isinstance(said, list):
        return [_patched(part, format, times) for part in said]
    if not isinstance(said, dict):
        return said
    changed = {key: _patched(said[key], format, times) for key in _HOLDERS if isinstance(said.get(key), dict)}
    changed |= {key: _report(said[key], format, times) for key in _REPORTS if isinstance(said.get(key), dict)}
    return {**said, **changed}


def _report(usage: Block, format: str, times: float) -> Block:
    keys = named(format).usage_keys
    first = keys[0]
    if not isinstance(usage.get(first), int):
        return usage
    read = usage[first] + sum(usage[key] for key in _CACHED if isinstance(usage.get(key), int))
    more = max(0, int((times - 1) * read))
    return {**usage, **{key: usage[key] + more for key in keys if isinstance(usage.get(key), int)}}
