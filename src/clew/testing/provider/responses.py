"""Responses as OpenAI answers it."""

from collections.abc import Callable, Iterator

from clew.testing.provider.answers import CREATED, ProviderBody, ProviderTurn, sse
from clew.testing.provider.cache import spoken
from clew.testing.provider.faults import ProviderFault, Refusals, exceeded, openai

NamedEvent = tuple[str, ProviderBody]  # its name, and what it says beside name and number

WHY = {"length": "max_output_tokens", "window": "max_output_tokens", "filter": "content_filter"}


def in_one_piece(turn: ProviderTurn) -> ProviderBody:
    """An answer in one piece."""
    return _response(turn, list(_items(turn)))


def stream(turn: ProviderTurn, fault: ProviderFault | None = None) -> Iterator[bytes]:
    """An answer in numbered events; a fault ends it."""
    for number, (name, data) in enumerate(_events(turn, fault)):
        yield sse({"type": name, "sequence_number": number, **data}, name)


def compacted(turn: ProviderTurn) -> ProviderBody:
    """All that the user said, and one item that only the provider can read."""
    kept = [item for item in spoken(turn.body) if item.get("role") == "user"]
    sealed = {"type": "compaction", "id": turn.id("cmp_"), "encrypted_content": turn.answer.text}
    head = {"id": turn.id("resp_"), "object": "response.compaction", "created_at": CREATED}
    return {**head, "output": [*kept, sealed], "usage": _usage(turn)}


def _events(turn: ProviderTurn, fault: ProviderFault | None) -> Iterator[NamedEvent]:
    started = {**_response(turn, []), "status": "in_progress", "incomplete_details": None, "usage": None}
    yield "response.created", {"response": started}
    yield "response.in_progress", {"response": started}
    items = list(_items(turn))
    for index, item in enumerate(items):
        yield from _shown(turn, index, item)
    whole = _response(turn, items)
    if fault is None:
        yield f"response.{whole['status']}", {"response": whole}
        return
    yield "error", openai(fault)
    error = {"code": fault.code or fault.kind, "message": fault.message}
    yield "response.failed", {"response": {**whole, "status": "failed", "error": error, "usage": None}}


def _shown(turn: ProviderTurn, index: int, item: ProviderBody) -> Iterator[NamedEvent]:
    """An item: opened empty, filled, and said once more as a whole."""
    empty, filling = _FILLING[item["type"]]
    opened = {**item, **empty, **({"status": "in_progress"} if "status" in item else {})}
    yield "response.output_item.added", {"output_index": index, "item": opened}
    for name, data in filling(turn, item):
        yield f"response.{name}", {"item_id": item["id"], "output_index": index, **data}
    yield "response.output_item.done", {"output_index": index, "item": item}


def _reasoning(turn: ProviderTurn, item: ProviderBody) -> Iterator[NamedEvent]:
    [part] = item["summary"]
    at = {"summary_index": 0}
    yield "reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
    for piece in turn.pieces(part["text"]):
        yield "reasoning_summary_text.delta", {**at, "delta": piece}
    yield "reasoning_summary_text.done", {**at, "text": part["text"]}
    yield "reasoning_summary_part.done", {**at, "part": part}


def _message(turn: ProviderTurn, item: ProviderBody) -> Iterator[NamedEvent]:
    [part] = item["content"]
    at = {"content_index": 0}
    yield "content_part.added", {**at, "part": {**part, "text": ""}}
    for piece in turn.pieces(part["text"]):
        yield "output_text.delta", {**at, "delta": piece, "logprobs": []}
    yield "output_text.done", {**at, "text": part["text"], "logprobs": []}
    yield "content_part.done", {**at, "part": part}


def _call(turn: ProviderTurn, item: ProviderBody) -> Iterator[NamedEvent]:
    for piece in turn.pieces(item["arguments"]):
        yield "function_call_arguments.delta", {"delta": piece}
    yield "function_call_arguments.done", {"arguments": item["arguments"]}


_FILLING: dict[str, tuple[ProviderBody, Callable[[ProviderTurn, ProviderBody], Iterator[NamedEvent]]]] = {
    "reasoning": ({"summary": []}, _reasoning),
    "message": ({"content": []}, _message),
    "function_call": ({"arguments": ""}, _call),
}


def _items(turn: ProviderTurn) -> Iterator[ProviderBody]:
    answer = turn.answer
    status = {"status": "completed" if answer.stop == "end" else "incomplete"}
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        wanted = "reasoning.encrypted_content" in (turn.body.get("include") or ())
        sealed = {"encrypted_content": turn.id("gAAAA")} if wanted else {}
        yield {"id": turn.id("rs_"), "type": "reasoning", "summary": summary, **sealed}
    if answer.text:
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": answer.text}
        yield {"id": turn.id("msg_"), "type": "message", **status, "content": [part], "role": "assistant"}
    for n, call in enumerate(answer.calls):
        said = {"arguments": call.written, "call_id": call.id or turn.id("call_", n), **_named(call.name, turn.body)}
        yield {"id": turn.id("fc_", n), "type": "function_call", **status, **said}


def _named(name: str, body: ProviderBody) -> ProviderBody:
    """A tool as a call names it; one of a namespace, which is asked for as `namespace__tool`, by both names."""
    space, found, inner = name.rpartition("__")
    groups = (tool for tool in body.get("tools") or () if tool.get("type") == "namespace" and tool.get("name") == space)
    if found and any(tool.get("name") == inner for group in groups for tool in group.get("tools", ())):
        return {"name": inner, "namespace": space}
    return {"name": name}


def _response(turn: ProviderTurn, output: list[ProviderBody]) -> ProviderBody:
    body, why = turn.body, WHY.get(turn.answer.stop)
    return {
        "id": turn.id("resp_"),
        "object": "response",
        "created_at": CREATED,
        "status": "incomplete" if why else "completed",
        "background": False,
        "error": None,
        "incomplete_details": {"reason": why} if why else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": turn.model,
        "output": output,
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation", "disabled"),
        "usage": _usage(turn),
        "metadata": body.get("metadata") or {},
    }


def _usage(turn: ProviderTurn) -> ProviderBody:
    spent = turn.spent
    return {
        "input_tokens": spent.input,
        "input_tokens_details": {"cached_tokens": spent.cache_read, "cache_write_tokens": spent.cache_write},
        "output_tokens": turn.output,
        "output_tokens_details": {"reasoning_tokens": turn.thought},
        "total_tokens": spent.input + turn.output,
    }


class ResponsesRefusals(Refusals):
    """What OpenAI says of Responses."""

    def too_long(self, body: ProviderBody, asked: int, window: int) -> ProviderFault | None:
        """It names no number."""
        words = "Your input exceeds the context window of this model. Please adjust your input and try again."
        return exceeded(words, "input") if asked > window else None


refusals = ResponsesRefusals()
