"""Answers that no model gave, in the shape in which one would have: whole, or as a stream."""

import time
from typing import Any
from uuid import uuid4

from clew.catalog.usage import Spent
from clew.core import rawjson
from clew.gateway.http import GatewayReply, json_reply, just
from clew.tokens import counter_for
from clew.wire.formats import named
from clew.wire.formats.openai_responses.writing import compacted, in_one_piece, stream
from clew.wire.streams.writing import CHARACTERS, SaidAnswer, WrittenTurn

Block = dict[str, Any]


def turn_of(raw: bytes, text: str, model: str, format: str) -> WrittenTurn:
    """A request and a text in answer to it, with tokens as a provider would have counted them.

    Qwen Code takes no summary that did not read what it stands for.
    """
    said = SaidAnswer(text, output=counter_for(model, format).text(text), piece=max(1, len(text)))
    spent = Spent(max(1, len(raw) // CHARACTERS))
    asked = {"model": model, "stream_options": {"include_usage": True}}
    return WrittenTurn(format, asked, said, spent, uuid4().hex, int(time.time()))


def answer(turn: WrittenTurn, streamed: bool, alt: str = "") -> GatewayReply:
    """What a client gets that asked for text."""
    format = named(turn.format)
    if not streamed:
        return json_reply(rawjson.dumps(format.in_one_piece(turn)))
    if format.streams_lists and alt != "sse":
        return json_reply(rawjson.dumps([format.in_one_piece(turn)]))
    return _streamed(*format.stream(turn))


def responded(turn: WrittenTurn, item: Block, streamed: bool) -> GatewayReply:
    """A response of OpenAI's with this item alone."""
    whole = [item]
    return _streamed(*stream(turn, output=whole)) if streamed else json_reply(rawjson.dumps(in_one_piece(turn, whole)))


def folded(turn: WrittenTurn, item: Block) -> GatewayReply:
    """What a client gets that has its history compacted in one item."""
    return json_reply(rawjson.dumps(compacted(turn, [item])))


def _streamed(*parts: bytes) -> GatewayReply:
    headers = [("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache")]
    return GatewayReply(200, headers, just(b"".join(parts)))


OPENED = "failed open: the request went on as it came"
DEGRADED = "the store fails: the request was fitted from memory, and is not in the log"


def marked(reply: GatewayReply, how: str = OPENED) -> GatewayReply:
    """A reply that says that clew had no part in it, or not all of it."""
    reply.headers = [*reply.headers, ("x-clew", how)]
    return reply
