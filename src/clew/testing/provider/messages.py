"""Messages as Anthropic answers it."""

from collections.abc import Iterator, Mapping

from clew.testing.provider.answers import Answer, ProviderBody, ProviderTurn, sse
from clew.testing.provider.faults import ProviderFault, Refusals, room_in, wait
from clew.wire.formats.anthropic.compaction import COMPACT_BETA, asks_for_block, signed_blocks
from clew.wire.rules.binding import BETA, binds, compaction_signature, signature
from clew.wire.rules.check import Broken

WHY = {"end": "end_turn", "length": "max_tokens", "window": "model_context_window_exceeded", "filter": "refusal"}
SIGNATURE = "EqQBCkYIBxgCKkBzdHJpY3QgcHJvdmlkZXIgb2YgY2xldywgbm90aGluZyBzZWNyZXQ="

PING = '{"type": "ping"}'  # the one event that comes with a space

_WORDS: Mapping[int, tuple[str, str]] = {
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the Anthropic API."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "model: {model}"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: (
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 40,000 input tokens per minute. For details, "
        "refer to: https://docs.claude.com/en/api/rate-limits.",
    ),
    500: ("api_error", "Internal server error"),
    504: ("timeout_error", "The request timed out while processing."),
    529: ("overloaded_error", "Overloaded"),
}


def in_one_piece(turn: ProviderTurn) -> ProviderBody:
    """An answer in one piece."""
    said = [block for block, _ in _blocks(turn)]
    return {**_head(turn), "content": said, "stop_reason": _why(turn), "usage": _usage(turn, turn.output)}


def stream(turn: ProviderTurn, fault: ProviderFault | None = None) -> Iterator[bytes]:
    """An answer in blocks that open, grow and close; a fault ends it."""
    for data in _events(turn, fault):
        yield sse(PING if data["type"] == "ping" else data, data["type"])


def _events(turn: ProviderTurn, fault: ProviderFault | None) -> Iterator[ProviderBody]:
    yield {"type": "message_start", "message": {**_head(turn), "usage": _usage(turn, 1)}}
    for index, (block, text) in enumerate(_blocks(turn)):
        empty = {} if "signature" in block and block["type"] == "compaction" else _EMPTY[block["type"]]
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        if index == 0:
            yield {"type": "ping"}
        for delta in _deltas(block, list(turn.pieces(text))):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    if fault:
        yield anthropic(fault, turn.id("req_"))
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


def _blocks(turn: ProviderTurn) -> Iterator[tuple[ProviderBody, str]]:
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
        sealed = signature(turn.body) if binds(turn.format, turn.model) else SIGNATURE
        if answer.redacted:
            yield {"type": "redacted_thinking", "data": sealed}, ""
        else:
            yield {"type": "thinking", "thinking": answer.reasoning, "signature": sealed}, answer.reasoning
    if answer.text:
        yield {"type": "text", "text": answer.text}, answer.text
    for n, call in enumerate(answer.calls):
        made = {"type": "tool_use", "id": call.id or turn.id("toolu_01", n), "name": call.name, "input": call.given}
        yield {**made, "caller": {"type": "direct"}}, call.written


def _compacts(turn: ProviderTurn) -> bool:
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


def _why(turn: ProviderTurn) -> str:
    if _compacts(turn):
        return "compaction"
    return "tool_use" if turn.answer.calls and turn.answer.stop == "end" else WHY[turn.answer.stop]


def _head(turn: ProviderTurn) -> ProviderBody:
    made = {"model": turn.model, "id": turn.id("msg_01"), "type": "message", "role": "assistant"}
    return {**made, "content": [], "stop_reason": None, "stop_sequence": None}


def _usage(turn: ProviderTurn, output: int) -> ProviderBody:
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


def anthropic(fault: ProviderFault, request: str) -> ProviderBody:
    """The shape of Anthropic's errors; `request` is the id of what failed."""
    return {"type": "error", "error": {"type": fault.kind, "message": fault.message}, "request_id": request}


class MessagesRefusals(Refusals):
    """What Anthropic says; its errors have neither code nor param."""

    unreadable = "The request body is not valid JSON"

    def words(self, status: int) -> tuple[str, str | None, str]:
        unknown = "invalid_request_error" if status < 500 else "api_error", super().words(status)[2]
        kind, words = _WORDS.get(status, unknown)
        return kind, None, words

    def lacking(self, body: ProviderBody, headers: Mapping[str, str], counts: bool) -> ProviderFault | None:
        betas = headers.get("anthropic-beta", "")
        if "anthropic-version" not in headers:
            return self.fault(400, words="anthropic-version: header is required")
        if _binding(body) and BETA not in betas:
            words = f"thinking.block_binding: That setting requires the `{BETA}` value in the `anthropic-beta` header."
            return self.fault(400, words=words)
        if (asks_for_block(body) or signed_blocks(body)) and COMPACT_BETA not in betas:
            return self.fault(400, words=f"compaction: requires anthropic-beta: {COMPACT_BETA}")
        needs = ("model",) if counts else ("model", "max_tokens")
        lacks = [key for key in needs if body.get(key) is None]
        return self.fault(400, words=f"{lacks[0]}: Field required") if lacks else None

    def broken(self, found: Broken) -> ProviderFault:
        return self.fault(400, words=f"{found.where}: {found.why}")

    def too_long(self, body: ProviderBody, asked: int, window: int) -> ProviderFault | None:
        room = room_in(body)
        if asked + room <= window:
            return None
        both = f"input length and `max_tokens` exceed context limit: {asked} + {room} > {window}, decrease input length"
        alone = f"prompt is too long: {asked} tokens > {window} maximum"
        return self.fault(400, words=alone if asked > window else f"{both} or `max_tokens` and try again")

    def written(self, fault: ProviderFault, request: str, answer: Answer) -> ProviderBody:
        return anthropic(fault, request)

    def headers(self, answer: Answer, request: str) -> dict[str, str]:
        seconds = wait(answer)
        return {"request-id": request} | ({} if seconds is None else {"retry-after": f"{seconds:g}"})

    def listed(self, entries: Mapping[str, ProviderBody]) -> ProviderBody:
        names: list[str | None] = [*entries] or [None]
        return {"data": list(entries.values()), "has_more": False, "first_id": names[0], "last_id": names[-1]}

    def entry(self, name: str, window: int) -> ProviderBody:
        made = {"type": "model", "id": name, "display_name": name, "created_at": "2025-10-09T08:53:20Z"}
        return {**made, "lifecycle": "active", "max_input_tokens": window}


def _binding(body: ProviderBody) -> bool:
    thinking = body.get("thinking")
    return isinstance(thinking, Mapping) and thinking.get("block_binding") is not None


refusals = MessagesRefusals()
