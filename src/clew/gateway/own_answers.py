"""Answers that no model gave, in the shape in which one would have: whole, or as a stream."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from clew.core import rawjson
from clew.gateway.http import GatewayReply, json_reply, just
from clew.tokens import counter_for
from clew.wire.formats import named, openai_responses
from clew.wire.formats.base import Format
from clew.wire.formats.openai_responses.writing import responded

Block = dict[str, Any]


CHARACTERS = 4  # in a token, more or less, of a request


class TokensRead(NamedTuple):
    """Tokens as a provider would have counted them: Qwen Code takes no summary that did not read what it stands for."""

    read: int
    written: int

    @classmethod
    def of(cls, raw: bytes, text: str, model: str, format: str) -> "TokensRead":
        """By a request and its answer."""
        return cls(max(1, len(raw) // CHARACTERS), counter_for(model, format).text(text))


def answer(text: str, format: str, model: str, streamed: bool, spent: TokensRead, alt: str = "") -> GatewayReply:
    """What a client gets that asked for text."""
    return _reply(named(format).answer_block(text, model, *spent), named(format), streamed, alt)


def responses(
    output: list[Block], model: str, streamed: bool, spent: TokensRead, kind: str = "response"
) -> GatewayReply:
    """A response of OpenAI's with these items."""
    return _reply(responded(output, model, *spent, kind), named(openai_responses.NAME), streamed)


def _reply(whole: Block, format: Format, streamed: bool, alt: str = "") -> GatewayReply:
    if not streamed:
        return json_reply(rawjson.dumps(whole))
    if format.streams_lists and alt != "sse":
        return json_reply(rawjson.dumps([whole]))
    return _sse(format.events(whole), format.end_of_stream)


def _sse(events: Iterator[tuple[str, Mapping[str, Any]]], end: bytes = b"") -> GatewayReply:
    parts = [
        (f"event: {name}\n".encode() if name else b"") + b"data: " + rawjson.dumps(e) + b"\n\n" for name, e in events
    ]
    headers = [("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache")]
    return GatewayReply(200, headers, just(b"".join(parts) + end))


OPENED = "failed open: the request went on as it came"
DEGRADED = "the store fails: the request was fitted from memory, and is not in the log"


def marked(reply: GatewayReply, how: str = OPENED) -> GatewayReply:
    """A reply that says that clew had no part in it, or not all of it."""
    reply.headers = [*reply.headers, ("x-clew", how)]
    return reply
