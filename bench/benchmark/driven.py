"""Clients at work in one window: requests in their own shape, through an engine or not, and what a provider bills."""

import asyncio
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, NamedTuple

from clew import catalog
from clew.catalog import Prices
from clew.catalog.usage import Spent, cost
from clew.clients.voices import known_client
from clew.core import rawjson
from clew.core.items import Frame
from clew.core.limits import Budget
from clew.engine.engine import Engine
from clew.engine.engine import body as body_of
from clew.store import SQLite
from clew.testing.provider.cache import Cache, prompt
from clew.wire import decode
from clew.wire.convert.extras import answer_of
from made_clients import CLIENTS, Client, ClientRequest
from made_clients.judging import request_of
from made_clients.shape import UsedTool, Worked
from made_clients.wording import Pen

# What clients say of themselves near the beginning of their system prompt.
NAMES: Mapping[str, str] = {
    "claude-2.1.197": "You are Claude Code.",
    "codex": "You are Codex.",
    "opencode": "You are opencode.",
    "pi": "You are pi.",
    "gemini-cli": "You are Gemini CLI.",
    "qwen-code": "You are Qwen Code.",
    "copilot": "You are GitHub Copilot.",
}
UNTOLD = ("gemini-cli",)  # clients that have no setting for a window
ASKED, STEPS = 10, 6  # requests of the user, and results that each of them takes
RESULT, SMALLER = 6_000, 16  # tokens of a result, or one part in so many of a small window
ANSWER, SUMMARY = 120, 4_000  # tokens of an answer, and of a client's summary of all that was said


class Driven(NamedTuple):
    """What came of a session."""

    calls: int
    folds: int
    filled: float  # of the window, in the middle, by the last request before a fold
    compactions: int  # of the client's own
    dollars: float
    ceiling: int | None = None  # above which the client compacts by itself


def driven(name: str, window: int, prices: Prices, with_clew: bool) -> Driven:
    """One session of a client, which compacts by itself as it does by default in such a window."""
    return asyncio.run(_driven(name, window, prices, with_clew))


async def _driven(name: str, window: int, prices: Prices, with_clew: bool) -> Driven:
    client = _made(name)
    engine, cache, marked = Engine(SQLite(":memory:"), Budget(window)), Cache(), client.format == "anthropic"
    sizes, filled, compactions, dollars, at = list[tuple[int, int]](), list[float](), 0, 0.0, None
    for request in _worked(client, window):
        frame, _ = decode(request.body, request.format)
        known = known_client(frame.system)
        at = known.threshold(_believed(name, window, frame), answer_of(frame)) if known else None
        own = _tokens(request.body)
        came = own - sizes[-1][1] if sizes else own
        if at and sizes and sizes[-1][0] + came > at:
            compactions += 1
            await engine.limits.client_compacted("bench", frame, sizes[-1][0] + came)
            for asked in client.compact("What was said so far. " * (SUMMARY // 5)):
                dollars += cost(prices, _billed(cache, asked.body, marked, SUMMARY))
            request = client.sent("continued", client.body())
            own = _tokens(request.body)
        body, size = request.body, own
        if with_clew:
            view = await engine.prepare(request_of(request, "bench"))
            body = body_of(view)
            size = _tokens(body)
            await engine.observe(view, {"prompt_tokens": size, "completion_tokens": ANSWER})
        if sizes and size < sizes[-1][0]:
            filled.append(sizes[-1][0] / window)
        sizes.append((size, own))
        dollars += cost(prices, _billed(cache, body, marked, ANSWER))
    await engine.close()
    return Driven(len(sizes), len(filled), median(filled) if filled else 0.0, compactions, dollars, at)


def frame_of(name: str) -> str:
    """The system prompt and the tools of a client, as one text."""
    client = _made(name)
    client.ask("Begin.")
    frame, _ = decode(client.body(), client.format)
    return f"{frame.system}\n{rawjson.dumps(list(frame.tools)).decode()}"


def _believed(name: str, window: int, frame: Frame) -> int:
    """The window that a client reckons with: what somebody told it, where it can be told."""
    model = catalog.lookup(frame.model)
    return max(window, model.max_input or model.window) if name in UNTOLD else window


def _made(name: str) -> Any:
    client: Any = CLIENTS[name](Pen(name, "amber", 1), "amber")
    if name == "codex":
        first, *more = client.prompts
        client.prompts = f"{NAMES[name]} {first}", *more
        client.history = client._opening()
    else:
        client.system = f"{NAMES[name]} {client.system}"
    return client


def _worked(client: Client, window: int) -> Iterator[ClientRequest]:
    """The requests of a session: the user asks, and the assistant looks at file after file."""
    for n in range(ASKED):
        client.ask(f"Task {n}: look at all files of s{n}.")
        client.asked = f"Task {n}"
        yield client.sent("main", client.body())
        for k in range(STEPS):
            output = client.pen.output(min(RESULT, window // SMALLER), f"x{n}-{k}")
            call = UsedTool(client.pen.id(), "shell", {"command": f"cat s{n}/{k}.py"}, output)
            client.work(Worked("", f"Part {k} of s{n}.", (call,)))
            yield client.sent("main", client.body())
        client.answer(f"Task {n} is done.")


def _billed(cache: Cache, body: Any, marked: bool, output: int) -> Spent:
    blocks = list(prompt(rawjson.loads(rawjson.dumps(body))))
    spent = cache.read(blocks, marked)
    cache.write(blocks)
    return Spent(spent.input, output, spent.cache_read, spent.cache_write)


def _tokens(body: Any) -> int:
    """As providers count, about: four characters each."""
    return sum(len(text) for text, _ in prompt(body)) // 4
