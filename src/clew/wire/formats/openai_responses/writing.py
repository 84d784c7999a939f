"""A response, as OpenAI writes it."""

from collections.abc import Callable, Iterator, Sequence

from clew.wire.streams.writing import ProviderBody, WrittenTurn, sse

NamedEvent = tuple[str, ProviderBody]  # its name, and what it says beside name and number

WHY = {"length": "max_output_tokens", "window": "max_output_tokens", "filter": "content_filter"}


def in_one_piece(turn: WrittenTurn, output: Sequence[ProviderBody] | None = None) -> ProviderBody:
    """An answer in one piece; with `output`, of these items."""
    return _response(turn, list(_items(turn) if output is None else output))


def stream(
    turn: WrittenTurn, error: ProviderBody | None = None, output: Sequence[ProviderBody] | None = None
) -> Iterator[bytes]:
    """The same in numbered events; an error ends it."""
    whole = in_one_piece(turn, output)
    for number, (name, data) in enumerate(_events(turn, whole, error)):
        yield sse({"type": name, "sequence_number": number, **data}, name)


def compacted(turn: WrittenTurn, output: Sequence[ProviderBody]) -> ProviderBody:
    """What is said to who has a history compacted: items that stand for it."""
    head = {"id": turn.id("resp_"), "object": "response.compaction", "created_at": turn.created}
    return {**head, "output": [*output], "usage": _usage(turn)}


def _events(turn: WrittenTurn, whole: ProviderBody, error: ProviderBody | None) -> Iterator[NamedEvent]:
    started = {**_response(turn, []), "status": "in_progress", "incomplete_details": None, "usage": None}
    yield "response.created", {"response": started}
    yield "response.in_progress", {"response": started}
    for index, item in enumerate(whole["output"]):
        yield from _shown(turn, index, item)
    if error is None:
        yield f"response.{whole['status']}", {"response": whole}
        return
    yield "error", error
    told = error["error"]
    failed = {"code": told["code"] or told["type"], "message": told["message"]}
    yield "response.failed", {"response": {**whole, "status": "failed", "error": failed, "usage": None}}


def _shown(turn: WrittenTurn, index: int, item: ProviderBody) -> Iterator[NamedEvent]:
    """An item: opened empty, filled, and said once more as a whole."""
    empty, filling = _FILLING.get(item["type"], ({}, _nothing))
    opened = {**item, **empty, **({"status": "in_progress"} if "status" in item else {})}
    yield "response.output_item.added", {"output_index": index, "item": opened}
    for name, data in filling(turn, item):
        yield f"response.{name}", {"item_id": item["id"], "output_index": index, **data}
    yield "response.output_item.done", {"output_index": index, "item": item}


def _reasoning(turn: WrittenTurn, item: ProviderBody) -> Iterator[NamedEvent]:
    [part] = item["summary"]
    at = {"summary_index": 0}
    yield "reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
    for piece in turn.pieces(part["text"]):
        yield "reasoning_summary_text.delta", {**at, "delta": piece}
    yield "reasoning_summary_text.done", {**at, "text": part["text"]}
    yield "reasoning_summary_part.done", {**at, "part": part}


def _message(turn: WrittenTurn, item: ProviderBody) -> Iterator[NamedEvent]:
    [part] = item["content"]
    at = {"content_index": 0}
    yield "content_part.added", {**at, "part": {**part, "text": ""}}
    for piece in turn.pieces(part["text"]):
        yield "output_text.delta", {**at, "delta": piece, "logprobs": []}
    yield "output_text.done", {**at, "text": part["text"], "logprobs": []}
    yield "content_part.done", {**at, "part": part}


def _call(turn: WrittenTurn, item: ProviderBody) -> Iterator[NamedEvent]:
    for piece in turn.pieces(item["arguments"]):
        yield "function_call_arguments.delta", {"delta": piece}
    yield "function_call_arguments.done", {"arguments": item["arguments"]}


def _nothing(turn: WrittenTurn, item: ProviderBody) -> Iterator[NamedEvent]:
    """What comes whole."""
    return iter(())


_FILLING: dict[str, tuple[ProviderBody, Callable[[WrittenTurn, ProviderBody], Iterator[NamedEvent]]]] = {
    "reasoning": ({"summary": []}, _reasoning),
    "message": ({"content": []}, _message),
    "function_call": ({"arguments": ""}, _call),
}


def _items(turn: WrittenTurn) -> Iterator[ProviderBody]:
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


def _response(turn: WrittenTurn, output: list[ProviderBody]) -> ProviderBody:
    body, why = turn.body, WHY.get(turn.answer.stop)
    return {
        "id": turn.id("resp_"),
        "object": "response",
        "created_at": turn.created,
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


def _usage(turn: WrittenTurn) -> ProviderBody:
    spent = turn.spent
    return {
        "input_tokens": spent.input,
        "input_tokens_details": {"cached_tokens": spent.cache_read, "cache_write_tokens": spent.cache_write},
        "output_tokens": turn.output,
        "output_tokens_details": {"reasoning_tokens": turn.thought},
        "total_tokens": spent.input + turn.output,
    }
