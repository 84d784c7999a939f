"""An answer of Messages, as Anthropic writes it."""

from collections.abc import Iterator

from clew.wire.formats.anthropic.compaction import asks_for_block
from clew.wire.rules.binding import binds, compaction_signature, signature
from clew.wire.streams.writing import ProviderBody, WrittenTurn, sse

WHY = {"end": "end_turn", "length": "max_tokens", "window": "model_context_window_exceeded", "filter": "refusal"}
PING = '{"type": "ping"}'  # the one event that comes with a space


def in_one_piece(turn: WrittenTurn) -> ProviderBody:
    """An answer in one piece."""
    said = [block for block, _ in _blocks(turn)]
    return {**_head(turn), "content": said, "stop_reason": _why(turn), "usage": _usage(turn, turn.output)}


def stream(turn: WrittenTurn, error: ProviderBody | None = None) -> Iterator[bytes]:
    """An answer in blocks that open, grow and close; an error ends it."""
    for data in _events(turn, error):
        yield sse(PING if data["type"] == "ping" else data, data["type"])


def _events(turn: WrittenTurn, error: ProviderBody | None) -> Iterator[ProviderBody]:
    yield {"type": "message_start", "message": {**_head(turn), "usage": _usage(turn, 1)}}
    for index, (block, text) in enumerate(_blocks(turn)):
        empty = {} if "signature" in block and block["type"] == "compaction" else _EMPTY[block["type"]]
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        if index == 0:
            yield {"type": "ping"}
        for delta in _deltas(block, list(turn.pieces(text))):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    if error:
        yield error
        return
    usage = {k: v for k, v in _usage(turn, turn.output).items() if k.endswith("_tokens")}
    yield {"type": "message_delta", "delta": {"stop_reason": _why(turn), "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


_EMPTY: dict[str, ProviderBody] = {
    "thinking": {"thinking": "", "signature": ""},
    "redacted_thinking": {},  # comes whole
    "text": {"text": ""},
    "tool_use": {"input": {}},
    "compaction": {"content": None},
}


def _deltas(block: ProviderBody, pieces: list[str]) -> Iterator[ProviderBody]:
    match block["type"]:
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces)
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in pieces)
        case "tool_use":
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces))
        case "compaction" if "signature" not in block:  # one that was asked for came whole
            yield {"type": "compaction_delta", "content": "".join(pieces)}  # comes as one


def _blocks(turn: WrittenTurn) -> Iterator[tuple[ProviderBody, str]]:
    """Each block, and the text that it grows by in a stream."""
    answer = turn.answer
    if asks_for_block(turn.body):
        signed = compaction_signature(turn.body, answer.text)
        yield {"type": "compaction", "content": answer.text, "signature": signed}, answer.text
        return
    if _compacts(turn):
        yield {"type": "compaction", "content": answer.text}, answer.text
        return
    if answer.reasoning:
        sealed = signature(turn.body) if binds(turn.format, turn.model) else turn.seal
        if answer.redacted:
            yield {"type": "redacted_thinking", "data": sealed}, ""
        else:
            yield {"type": "thinking", "thinking": answer.reasoning, "signature": sealed}, answer.reasoning
    if answer.text:
        yield {"type": "text", "text": answer.text}, answer.text
    for n, call in enumerate(answer.calls):
        made = {"type": "tool_use", "id": call.id or turn.id("toolu_01", n), "name": call.name, "input": call.given}
        yield {**made, "caller": {"type": "direct"}}, call.written


def _compacts(turn: WrittenTurn) -> bool:
    if asks_for_block(turn.body):
        return True
    edits = (turn.body.get("context_management") or {}).get("edits")
    for edit in edits if isinstance(edits, list) else ():
        match edit:
            case {"type": "compact_20260112", "trigger": {"value": int(least)}}:
                return turn.spent.input >= least
            case {"type": "compact_20260112"}:
                return turn.spent.input >= 150_000
    return False


def _why(turn: WrittenTurn) -> str:
    if _compacts(turn):
        return "compaction"
    return "tool_use" if turn.answer.calls and turn.answer.stop == "end" else WHY[turn.answer.stop]


def _head(turn: WrittenTurn) -> ProviderBody:
    made = {"model": turn.model, "id": turn.id("msg_01"), "type": "message", "role": "assistant"}
    return {**made, "content": [], "stop_reason": None, "stop_sequence": None}


def _usage(turn: WrittenTurn, output: int) -> ProviderBody:
    spent = turn.spent
    if asks_for_block(turn.body):  # no reply was generated
        made = {"type": "compaction", "input_tokens": spent.input, "output_tokens": output}
        return {"input_tokens": 0, "output_tokens": 0, "iterations": [made]}
    return {
        "input_tokens": spent.input - spent.cache_read - spent.cache_write,
        "cache_creation_input_tokens": spent.cache_write,
        "cache_read_input_tokens": spent.cache_read,
        "cache_creation": {"ephemeral_5m_input_tokens": spent.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    }
