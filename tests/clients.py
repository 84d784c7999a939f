"""Wrapped clients and plain loops, in the words of each SDK."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState

import clew
from asking import request
from clew import Budget, Engine, SQLite
from clew.engine.settings import Settings
from clew.testing import Answer, Call, StrictProvider

Body = dict[str, Any]
WINDOW = 6_000


def plain_of(provider: StrictProvider, format: str, blocking: bool = True, retries: int = 0) -> Any:
    """A client as people make it; reading certificates is what takes time, and none is used."""
    sdk: Any = anthropic if format == "anthropic" else openai
    http = sdk.DefaultHttpxClient(verify=False) if blocking else sdk.DefaultAsyncHttpxClient(verify=False)
    url = provider.url if format == "anthropic" else f"{provider.url}/v1"
    name = ("" if blocking else "Async") + ("Anthropic" if format == "anthropic" else "OpenAI")
    return getattr(sdk, name)(api_key="none", base_url=url, max_retries=retries, http_client=http)


def engine(place: Path | str, window: int = WINDOW, **given: Any) -> Engine:
    return Engine(SQLite(place), Budget(window=window, reserve=500, high=0.7, low=0.5), Settings(**given))


def create(client: Any, format: str) -> Any:
    return {
        "anthropic": lambda: client.messages.create,
        "openai_chat": lambda: client.chat.completions.create,
        "openai_responses": lambda: client.responses.create,
    }[format]()


def said(format: str, answer: Any) -> list[Body]:
    """An answer as a plain loop puts it into its list."""
    match format:
        case "openai_chat":
            return [answer.choices[0].message.model_dump(exclude_none=True)]
        case "openai_responses":
            return [item.model_dump(exclude_none=True) for item in answer.output]
    return [{"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]}]


def text_of(format: str, answer: Any) -> str:
    match format:
        case "openai_chat":
            return str(answer.choices[0].message.content or "")
        case "openai_responses":
            return str(answer.output_text)
    return "".join(block.text for block in answer.content if block.type == "text")


def joined(format: str, stream: Any) -> str:
    """The text of a stream."""
    match format:
        case "openai_chat":
            return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        case "openai_responses":
            return "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    return "".join(
        event.delta.text for event in stream if getattr(getattr(event, "delta", 0), "type", "") == "text_delta"
    )


def called(format: str, answer: Any) -> list[tuple[str, str]]:
    """The ids and names of what an answer calls."""
    match format:
        case "openai_chat":
            return [(c.id, c.function.name) for c in answer.choices[0].message.tool_calls or ()]
        case "openai_responses":
            return [(item.call_id, item.name) for item in answer.output if item.type == "function_call"]
    return [(block.id, block.name) for block in answer.content if block.type == "tool_use"]


def results(format: str, given: dict[str, str]) -> list[Body]:
    match format:
        case "openai_chat":
            return [{"role": "tool", "tool_call_id": id, "content": text} for id, text in given.items()]
        case "openai_responses":
            return [{"type": "function_call_output", "call_id": id, "output": text} for id, text in given.items()]
    blocks = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in given.items()]
    return [{"role": "user", "content": blocks}]


def user(text: str) -> Body:
    return {"role": "user", "content": text}


def page(n: int) -> str:
    return f"Page {n}, marked mark-{n:04d}. " + "All is well here. " * 80


def chat_stream(client: Any, body: Body) -> Any:
    with client.chat.completions.stream(**body) as stream:
        return stream.get_final_completion()


def responses_stream(client: Any, body: Body) -> Any:
    with client.responses.stream(**body) as stream:
        return stream.get_final_response()


def messages_stream(client: Any, body: Body) -> Any:
    with client.messages.stream(**body) as stream:
        return stream.get_final_message()


def accumulated(client: Any, format: str, body: Body) -> Any:
    """The answer that an SDK puts together from a stream."""
    if format == "anthropic":
        return messages_stream(client, body)
    if format == "openai_responses":
        return responses_stream(client, body)
    state: Any = ChatCompletionStreamState()
    for chunk in client.chat.completions.create(**body, stream=True):
        state.handle_chunk(chunk)
    return state.get_final_completion()


def messages_in(body: Body) -> list[Body]:
    found: list[Body] = body.get("messages") or body.get("input") or []
    return [m for m in found if "context_status" not in str(m.get("content", ""))[:40]]


def has_results(body: Body) -> bool:
    last = messages_in(body)[-1]
    kinds = {block.get("type") for block in last["content"]} if isinstance(last.get("content"), list) else set()
    return last.get("role") == "tool" or last.get("type") == "function_call_output" or "tool_result" in kinds


def reader() -> Callable[[Body], Answer]:
    """An agent that reads two pages at once, each time it is asked, and says so."""
    pages = iter(range(0, 1_000, 2))

    def answer(body: Body) -> Answer:
        if has_results(body):
            return Answer("I have read them.")
        n = next(pages)
        return Answer("Let me look.", calls=(Call("read", {"path": f"{n}"}), Call("read", {"path": f"{n + 1}"})))

    return answer


def turn(client: Any, format: str, history: list[Body], text: str, edits: list[int] | None = None) -> Any:
    """A turn of a plain loop: ask, run what is called, ask again; `edits` counts those before each call."""
    history.append(user(text))
    while True:
        answer = create(client, format)(**request(format, *history))
        if edits is not None:
            edits.append(len(client.clew.last.edits))
        history += said(format, answer)
        given = {id: page(len(history) * 2 + n) for n, (id, _) in enumerate(called(format, answer))}
        if not given:
            return answer
        history += results(format, given)


def behind(client: Any) -> str:
    """All that the view which was last sent stands for."""
    nodes = [n for node in client.clew.last.nodes for n in clew.run(client.clew.recall(node.id))]
    return "\n".join(node.item.text for node in nodes)
