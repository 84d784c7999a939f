"""What a long session costs beside merely reading it. python bench/session.py [--turns N] [--corpus DIR]

One agent session, re-sent whole each turn, as chat clients do: 1,000 turns of about 1,000 tokens. For every body, the
CPU of `prepare` and of the body to send, beside that of `orjson.loads` and `sha256` over the same bytes. A corpus is a
folder of `*.jsonl.gz`, a conversation a line, with `messages` in OpenAI's format; without one, an agent reads and greps
the standard library.
"""

import argparse
import asyncio
import hashlib
import json
import multiprocessing
import resource
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from gzip import open as unzipped
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from clew import Budget, Engine, Request, SQLite, body
from clew.core.view import View
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.wire import check, decode

Message = dict[str, Any]
Turn = list[Message]

PACE = 1_000  # tokens a turn
WINDOW = 200_000
BANDS = ((0.1, 0.2), (0.2, 0.4), (0.4, 0.7), (0.7, 1.0))  # of the session
SYSTEM = "You are a coding agent. Work in small steps, run the tests, and say what you did."
TOOL = {"name": "read", "description": "Read lines of a file.", "input_schema": {"type": "object"}}
OPENAI, ANTHROPIC = "gpt-4o", "claude-sonnet-4-5"


# --- the session --------------------------------------------------------------------------------------------------


def session(turns: int, corpus: Path | None = None) -> list[Turn]:
    """What each turn adds: the last answer, what its tools returned, what the user said."""
    found: list[Turn] = []
    turn: Turn = []
    paid = 0
    source = _recorded(corpus) if corpus else _written()
    for n, conversation in enumerate(source):
        for message in conversation:
            # A request ends where the model is to speak. Long answers are paid for by the turns after them.
            if message["role"] == "assistant" and turn and paid >= PACE * (len(found) + 1):
                found.append(turn)
                turn = []
                if len(found) == turns:
                    return found
            turn.append(_renamed(message, n))
            paid += len(orjson.dumps(message)) // 4
    raise SystemExit(f"the corpus ends after {len(found)} turns; ask for fewer with --turns")


def _recorded(folder: Path) -> Iterator[list[Message]]:
    """The conversations of a corpus that a provider would take."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        with unzipped(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                messages = [m for m in json.loads(line).get("messages", ()) if m["role"] != "system"]
                while messages and (messages[-1]["role"] != "assistant" or messages[-1].get("tool_calls")):
                    messages.pop()
                if messages and not check({"messages": messages}, "openai_chat"):
                    yield messages


def _renamed(message: Message, conversation: int) -> Message:
    """The message with ids of calls that no other conversation has."""
    message = dict(message)
    if "tool_call_id" in message:
        message["tool_call_id"] = f"c{conversation}_{message['tool_call_id']}"[:64]
    if message.get("tool_calls"):
        message["tool_calls"] = [{**c, "id": f"c{conversation}_{c['id']}"[:64]} for c in message["tool_calls"]]
    return message


def _written() -> Iterator[list[Message]]:
    """An agent that reads and greps the standard library, one conversation a file."""
    chance = Random(1)
    library = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    texts = {path.name: path.read_text(encoding="utf-8", errors="replace").splitlines() for path in library}
    while True:
        name, lines = chance.choice(list(texts.items()))
        messages: list[Message] = [{"role": "user", "content": f"Explain what {name} does and where it may fail."}]
        for step in range(chance.randrange(2, 12)):
            start, size = chance.randrange(max(1, len(lines))), chance.choice((5, 20, 60, 200))
            shown = "\n".join(f"{i:6}  {line}" for i, line in enumerate(lines[start : start + size], start + 1))
            messages += _called(f"call_{step}", {"path": name, "offset": start, "limit": size}, shown)
        said = " ".join(line.strip() for line in lines if line.strip().startswith("#"))[:2_000]
        yield [*messages, {"role": "assistant", "content": f"Here is what {name} does. {said}"}]


def _called(id: str, arguments: Mapping[str, Any], result: str) -> list[Message]:
    call = {"id": id, "type": "function", "function": {"name": "read", "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": result or "(empty)"},
    ]


# --- clients ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sent:
    """One request: what the library is given, and the same as bytes."""

    given: bytes | Mapping[str, Any]
    raw: bytes


def as_bytes(turns: Sequence[Turn]) -> Iterator[Sent]:
    """A gateway: bytes as they came off the wire."""
    said = bytearray(_opening(SYSTEM))
    for turn in turns:
        said += _more(turn)
        raw = bytes(said) + b"]}"
        yield Sent(raw, raw)


def as_dicts(turns: Sequence[Turn]) -> Iterator[Sent]:
    """A framework in the same process: dicts, the same objects each turn."""
    messages: list[Message] = [{"role": "system", "content": SYSTEM}]
    for turn, sent in zip(turns, as_bytes(turns), strict=True):
        messages += turn
        yield Sent({"model": OPENAI, "messages": list(messages)}, sent.raw)


def with_nonce(turns: Sequence[Turn]) -> Iterator[Sent]:
    """A client whose system prompt is another one each turn."""
    said = bytearray()
    for n, turn in enumerate(turns):
        said += _more(turn)
        raw = b"".join((_opening(f"{SYSTEM} Request {n:08x}."), said, b"]}"))
        yield Sent(raw, raw)


def with_marks(turns: Sequence[Turn]) -> Iterator[Sent]:
    """An Anthropic client that moves its cache marks: the last message of this turn and of the one before."""
    mark = {"cache_control": {"type": "ephemeral"}}
    system = [{"type": "text", "text": SYSTEM, **mark}]
    given = {"model": ANTHROPIC, "max_tokens": 1_024, "system": system, "tools": [TOOL], "messages": []}
    head = orjson.dumps(given)[:-2]
    said, plain, marked = b"", b"", b""  # all before the last turn; the last turn without its mark, and with it
    for turn in turns:
        messages = anthropic(turn)
        *blocks, end = messages[-1]["content"]
        ended = [*messages[:-1], {**messages[-1], "content": [*blocks, {**end, **mark}]}]
        raw = head + (said + marked + _more(ended))[1:] + b"]}"
        said += plain
        plain, marked = _more(messages), _more(ended)
        yield Sent(raw, raw)


def anthropic(turn: Turn) -> list[Message]:
    """A turn in Anthropic's format."""
    out: list[Message] = []
    for message in turn:
        role = "assistant" if message["role"] == "assistant" else "user"
        if not out or out[-1]["role"] != role:
            out.append({"role": role, "content": []})
        out[-1]["content"] += _blocks(message)
    return out


def _blocks(message: Message) -> list[Message]:
    text = message.get("content") or ""
    if not isinstance(text, str):
        text = "\n".join(part.get("text", "") for part in text)
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": text}]
    calls = [
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["function"]["name"],
            "input": _arguments(call["function"]["arguments"]),
        }
        for call in message.get("tool_calls") or ()
    ]
    return [*([{"type": "text", "text": text}] if text.strip() or not calls else []), *calls]


def _arguments(text: str) -> Any:
    try:
        given = json.loads(text)
    except ValueError:
        given = text
    return given if isinstance(given, dict) else {"input": given}


def _opening(system: str) -> bytes:
    return orjson.dumps({"model": OPENAI, "messages": [{"role": "system", "content": system}]})[:-2]


def _more(turn: Turn) -> bytes:
    return b"," + b",".join(map(orjson.dumps, turn))


CLIENTS: dict[str, Callable[[Sequence[Turn]], Iterator[Sent]]] = {
    "bytes": as_bytes,
    "dicts": as_dicts,
    "cache marks move": with_marks,
    "nonce in system": with_nonce,
}


# --- the run ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """One turn, in seconds of CPU."""

    reading: float  # orjson.loads and sha256
    prepare: float
    encode: float
    wall: float  # of both
    tokens: int  # new in this turn

    @property
    def clew(self) -> float:
        return self.prepare + self.encode


@dataclass(frozen=True)
class Run:
    """One client's session."""

    costs: list[Cost]
    cold: float
    read: int  # bytes of all bodies
    sent: int  # tokens of the last request
    edits: int
    branches: int
    database: int
    peak: int

    def total(self, of: Callable[[Cost], float]) -> float:
        return sum(map(of, self.costs))

    def band(self, start: float, stop: float, of: Callable[[Cost], float]) -> float:
        """Microseconds of CPU per new token in that part of the session."""
        costs = self.costs[int(start * len(self.costs)) : int(stop * len(self.costs))]
        return sum(map(of, costs)) / max(1, sum(c.tokens for c in costs)) * 1e6

    def growth(self, of: Callable[[Cost], float]) -> str:
        """How much dearer a new token is in the last part of the session than in the first."""
        return f"{self.band(*BANDS[-1], of) / self.band(*BANDS[0], of):.2f}"


def run(client: str, turns: int, corpus: Path | None) -> Run:
    """One client, in a process of its own."""
    with TemporaryDirectory() as folder:
        return asyncio.run(_run(client, session(turns, corpus), Path(folder, "clew.db")))


async def _run(client: str, turns: Sequence[Turn], path: Path) -> Run:
    engine = Engine(SQLite(path), Budget(window=WINDOW))
    costs: list[Cost] = []
    read = 0
    meter, sent, view = Meter(counter_for(OPENAI)), Sent(b"", b""), None
    for n, (turn, sent) in enumerate(zip(turns, CLIENTS[client](turns), strict=True), 1):
        tokens = meter.items(decode({"messages": turn}, "openai_chat")[1]).tokens
        view, cost = await _turn(engine, sent, tokens)
        costs.append(cost)
        read += len(sent.raw)
        if n % 20 == 0:
            print(f"\r{client}: turn {n:,} of {len(turns):,}, {len(sent.raw):,} bytes ", end="", file=sys.stderr)
    print(file=sys.stderr)
    assert view is not None
    calls = await engine.store.calls(view.scope, view.branch)
    branches = len(await engine.store.branches(view.scope))
    await engine.store.close()
    size = path.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
    cold = await _cold(path, sent)
    return Run(costs, cold, read, calls[-1].predicted, len(view.edits), branches, size, peak)


async def _turn(engine: Engine, sent: Sent, tokens: int) -> tuple[View, Cost]:
    begin = time.process_time()
    orjson.loads(sent.raw)
    hashlib.sha256(sent.raw).digest()
    begun, clock = time.process_time(), time.perf_counter()
    view = await engine.prepare(Request(sent.given))
    prepared = time.process_time()
    orjson.dumps(body(view))
    done = time.process_time()
    return view, Cost(begun - begin, prepared - begun, done - prepared, time.perf_counter() - clock, tokens)


async def _cold(path: Path, sent: Sent) -> float:
    """Seconds until a new process would answer the last turn."""
    clock = time.perf_counter()
    engine = Engine(SQLite(path), Budget(window=WINDOW))
    orjson.dumps(body(await engine.prepare(Request(sent.given))))
    took = time.perf_counter() - clock
    await engine.store.close()
    return took


def table(runs: Mapping[str, Run]) -> list[tuple[str, ...]]:
    """A row per number, a column per client."""
    some = next(iter(runs.values()))
    shown: dict[str, Callable[[Run], str]] = {
        "bodies, GB": lambda r: f"{r.read / 1e9:.2f}",
        "orjson.loads + sha256, CPU s": lambda r: f"{r.total(lambda c: c.reading):.2f}",
        "clew, CPU s": lambda r: f"{r.total(lambda c: c.clew):.2f}",
        "  of it prepare": lambda r: f"{r.total(lambda c: c.prepare):.2f}",
        "  of it body and dumps": lambda r: f"{r.total(lambda c: c.encode):.2f}",
        "clew / reading": lambda r: f"{r.total(lambda c: c.clew) / r.total(lambda c: c.reading):.2f}",
        "CPU us per new token: prepare + write the body": lambda _: "",
        **{f"  turns {int(a * len(some.costs))}-{int(b * len(some.costs))}": _band(a, b) for a, b in BANDS},
        "  last / first, prepare": lambda r: r.growth(lambda c: c.prepare),
        "  last / first, both": lambda r: r.growth(lambda c: c.clew),
        "  last / first, orjson.loads + sha256": lambda r: r.growth(lambda c: c.reading),
        "hot turn at the end, ms (median of 20)": lambda r: f"{median(c.wall for c in r.costs[-20:]) * 1e3:.1f}",
        "cold turn at the end, ms": lambda r: f"{r.cold * 1e3:.0f}",
        "tokens said": lambda r: f"{r.total(lambda c: c.tokens):,.0f}",
        "tokens sent at the end": lambda r: f"{r.sent:,}",
        "edits": lambda r: f"{r.edits:,}",
        "branches": lambda r: f"{r.branches:,}",
        "database, MB": lambda r: f"{r.database / 1e6:.1f}",
        "memory peak, MB": lambda r: f"{r.peak / 1e6:.0f}",
    }
    return [("", *runs), *((name, *map(show, runs.values())) for name, show in shown.items())]


def _band(start: float, stop: float) -> Callable[[Run], str]:
    return lambda r: f"{r.band(start, stop, lambda c: c.prepare):.1f} + {r.band(start, stop, lambda c: c.encode):.1f}"


def alone(work: Callable[..., Any], *given: Any) -> Any:
    """The result of a call made in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, given)


def show(rows: Sequence[Sequence[str]]) -> None:
    """Print rows with their columns aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        print("  ".join((first.ljust(widths[0]), *cells)).rstrip())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--corpus", type=Path, help="a folder of *.jsonl.gz")
    parser.add_argument("--client", choices=CLIENTS, action="append", help="only this one; may be given again")
    given = parser.parse_args()
    show(table({name: alone(run, name, given.turns, given.corpus) for name in given.client or CLIENTS}))


if __name__ == "__main__":
    main()
