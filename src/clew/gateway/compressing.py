"""Rows made shorter for other gateways, one by one, and the originals for whoever asks: the calls of "headroom"."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from clew import wire
from clew.core import rawjson
from clew.core.items import Item, Scope
from clew.core.threads import LARGE, in_thread, in_thread_if
from clew.engine.engine import Engine, Request
from clew.errors import BadRequest, Conflict, NotFound
from clew.gateway.http import GatewayReply, GatewayRequest, Refused, json_reply
from clew.steps.lines import preview
from clew.steps.matches import matches
from clew.text.excerpts import SIZE
from clew.text.search import Index, SearchText
from clew.tokens import Counter, counter_for
from clew.tokens.meter import Meter

COMPRESS, RETRIEVE = "/v1/compress", "/v1/retrieve/"
BYPASS = "x-headroom-bypass"
LONG_ROW = 400  # tokens: a shorter result stays as it is
ENDS = 600, 300  # characters that a longer one keeps of its beginning and its end
FRESH_TOKENS = 4_000  # of results at the end that stay as they are
# Rows become shorter by so many tokens at once, so that a provider's cache is broken seldom. Where that happens depends
# on the rows alone: who sends them again, and more, gets the same for the same.
PORTION = 4_000
ID = 24  # hexadecimal digits of an id: who calls takes 12 to 24
PASSAGES = 40  # that a question gets of a long original
_ID = re.compile(r"[0-9a-f]{12,32}")
_RETRIEVING = "headroom_retrieve"  # the tool that those who call offer: what it brought back stays

TextChange = Callable[[str, str], str]  # of the text of a result, and the id of its call


class ResultRow(NamedTuple):
    """The text of a result."""

    call: str
    text: str
    tokens: int
    free: bool  # whether it may become shorter: a model has read it, and did not have it brought back


class ShortRow(NamedTuple):
    """What goes instead of a text."""

    text: str
    id: str
    saved: int  # tokens


class Compressions:
    """Shortens rows that belong to conversations of other gateways, and gives back what they were."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def compress(self, asked: GatewayRequest, scope: Scope) -> GatewayReply:
        """As many rows as came, in their order, with shorter texts; the originals are in the log before they go."""
        raw = await asked.body()
        body = await in_thread_if(len(raw) > LARGE, lambda: rawjson.loads(raw))
        messages = body.get("messages") if isinstance(body, dict) else None
        if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
            raise BadRequest("messages: expected a list of messages")
        model = body["model"] if isinstance(body.get("model"), str) else ""
        large = len(raw) > LARGE
        before = await in_thread_if(large, lambda: _tokens(messages, model))
        made = dict[int, ShortRow]()
        if asked.headers.get(BYPASS, "").lower() != "true":
            counter = counter_for(model, "openai_chat")
            rows = await in_thread_if(large, lambda: _rows(messages, counter))
            if long := _old(rows):
                ids = await self._kept(scope, model, [rows[n] for n in long])
                made = await in_thread(lambda: {n: s for n in long if (s := _stand_in(rows[n], ids, counter))})
        out = _with(messages, made) if made else messages
        return json_reply(rawjson.dumps(_answer(out, before, list(made.values()))))

    async def _kept(self, scope: Scope, model: str, rows: Sequence[ResultRow]) -> Mapping[str, str]:
        """These in the log, as a history that is recognised when it comes again with more: the id of each text."""
        said = [{"role": "tool", "tool_call_id": row.call, "content": row.text} for row in rows]
        view = await self._engine.keep(Request({"model": model, "messages": said}, "openai_chat", scope))
        found = dict[str, str]()
        for node in view.nodes:
            found.setdefault(node.item.text, node.id[:ID])
        return found

    async def retrieve(self, asked: GatewayRequest, scope: Scope) -> GatewayReply:
        """An original, byte for byte; of a long one, and with a question, the lines that are about it."""
        id = asked.path.removeprefix(RETRIEVE).lower()
        try:
            if not _ID.fullmatch(id):
                raise NotFound(id)
            nodes = await self._engine.recall(scope, id)
        except (NotFound, Conflict):
            raise Refused(404, "no original has this id here") from None
        text = "\n".join(node.item.text for node in nodes)
        query = " ".join(parse_qs(asked.query).get("query", ()))
        said = {"hash": id, "original_content": text}
        if query.strip() and len(text) > SIZE:
            about = await in_thread(lambda: _about(text, query))
            said = {**said, "original_content": about or text, "query": query}
        return json_reply(rawjson.dumps(said))


# --- rows -------------------------------------------------------------------------------------------------------------


def _rows(messages: Sequence[Mapping[str, Any]], counter: Counter) -> list[ResultRow]:
    """The results, the oldest first."""
    rows, retrieved = list[ResultRow](), _retrieved(messages)
    # LiteLLM sends no assistant's rows, and nothing that came since: then all that is here was read.
    read = max((i for i, m in enumerate(messages) if m.get("role") == "assistant"), default=len(messages))
    for i, message in enumerate(messages):

        def note(text: str, call: str, free: bool = i < read) -> str:
            rows.append(ResultRow(call, text, counter.text(text), free and call not in retrieved))
            return text

        _row(message, note)
    return rows


def _old(rows: Sequence[ResultRow]) -> list[int]:
    """Where those stand that are long, and of which there is enough to make a portion."""
    whole = sum(row.tokens for row in rows if row.free)
    until = max(0, whole - FRESH_TOKENS) // PORTION * PORTION
    found, at = list[int](), 0
    for n, row in enumerate(rows):
        if row.free and at < until and row.tokens > LONG_ROW:
            found.append(n)
        at += row.tokens if row.free else 0
    return found


def _stand_in(row: ResultRow, ids: Mapping[str, str], counter: Counter) -> ShortRow | None:
    """The two ends of a text and the lines between them that speak of errors, where it can be got back."""
    if row.text not in ids:
        return None
    id, said = ids[row.text], Item("result", "user", row.text)
    text = preview(said, f"hash={id}", *ENDS, matches(row.text, ())).text
    saved = row.tokens - counter.text(text)
    return ShortRow(text, id, saved) if saved > 0 else None


def _with(messages: Sequence[Mapping[str, Any]], made: Mapping[int, ShortRow]) -> list[Mapping[str, Any]]:
    """The same rows with these in the place of some texts; nothing else of them is touched."""
    numbers = count()

    def change(text: str, call: str) -> str:
        stands = made.get(next(numbers))
        return stands.text if stands else text

    return [_row(message, change) for message in messages]


def _row(message: Mapping[str, Any], change: TextChange) -> Mapping[str, Any]:
    content = message.get("content")
    if message.get("role") in ("tool", "function"):
        call = str(message.get("tool_call_id") or "")
        return {**message, "content": _content(content, lambda text: change(text, call))}
    if message.get("role") == "user" and isinstance(content, list):
        return {**message, "content": [_block(block, change) for block in content]}
    return message


def _block(block: Any, change: TextChange) -> Any:
    if not isinstance(block, dict) or block.get("type") != "tool_result" or "content" not in block:
        return block
    call = str(block.get("tool_use_id") or "")
    return {**block, "content": _content(block["content"], lambda text: change(text, call))}


def _content(content: Any, change: Callable[[str], str]) -> Any:
    if isinstance(content, str):
        return change(content)
    if not isinstance(content, list):
        return content
    return [
        {**part, "text": change(part["text"])}
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
        else part
        for part in content
    ]


def _retrieved(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    """The ids of calls that brought an original back: who shortens that again sends its agent in circles."""
    return {
        str(id)
        for message in messages
        if message.get("role") == "assistant"
        for id, name in _calls(message)
        if isinstance(name, str) and name.endswith(_RETRIEVING)
    }


def _calls(message: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    for calls in (message.get("tool_calls"), message.get("content")):
        for call in calls if isinstance(calls, list) else ():
            match call:
                case {"id": id, "function": {"name": name}} | {"id": id, "type": "tool_use", "name": name}:
                    yield id, name


# --- what is told -----------------------------------------------------------------------------------------------------


def _tokens(messages: Sequence[Mapping[str, Any]], model: str) -> int:
    format = wire.detect_list(messages)
    frame, items = wire.decode({wire.named(format).LIST: list(messages)}, format)
    meter = Meter(counter_for(model, format))
    return meter.frame(frame).plus(meter.items(items)).tokens


def _answer(messages: Sequence[Mapping[str, Any]], before: int, made: Sequence[ShortRow]) -> dict[str, Any]:
    saved = sum(stands.saved for stands in made)
    after = before - saved
    return {
        "messages": messages,
        "tokens_before": before,
        "tokens_after": after,
        "tokens_saved": saved,
        "compression_ratio": round(after / before, 4) if before else 1.0,  # of what is left: 1 is all of it
        "transforms_applied": [f"clew:preview:{len(made)}"] if made else [],
        "ccr_hashes": list(dict.fromkeys(stands.id for stands in made)),
    }


def _about(text: str, query: str) -> str:
    """The lines of a text that a question is about, with their numbers; empty if there are none."""
    found = Index([SearchText("", "", text)]).find(query, 1, PASSAGES)
    told, size, before = list[str](), SIZE, 0
    for line in found[0].lines if found else ():
        gap = "" if line.number == before + 1 else "…\n"
        shown = f"{gap}{line.number}: {line.text}"
        size -= len(shown) + 1
        if size < 0 and told:
            break
        told.append(shown)
        before = line.number
    if not told:
        return ""
    lines = text.count("\n") + 1
    return "\n".join([*told, f"[some of {lines:,} lines; without a query, all of them]"])
