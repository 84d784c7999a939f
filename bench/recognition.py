"""What it costs to be recognised, or not. python bench/recognition.py --corpus DIR [--conversations N] [--turns N]

Recorded conversations, re-sent whole each turn by clients that change their own history on the way: for each kind of
client the tokens sent in all, those of them that did not stand at the beginning of the request before, the folds and
the branches, in one store. A history that is not recognised is a new branch and its folds are made again: so the table
of one commit beside that of another says what stricter rules cost.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from gzip import open as unzipped
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from clew import Budget, Engine, Request, SQLite, body, events
from clew.core import rawjson
from clew.core.items import canonical
from clew.engine.settings import Settings
from clew.wire import check

Message = dict[str, Any]
SYSTEM = {"role": "system", "content": "You are an agent. Work in small steps, and say what you did."}
MODEL = "gpt-4o"
SHORT = 200  # characters that a trimmed result keeps
RECENT = 12  # messages that are not trimmed
KEPT = 60  # messages that a client with a sliding window keeps, about


class Replay(NamedTuple):
    """What one kind of client came to."""

    requests: int
    tokens: int
    anew: int  # of them: the rest stood at the beginning of the request before, and may be in the provider's cache
    folds: int
    branches: int


def recorded(folder: Path, most: int, turns: int) -> Iterator[list[Message]]:
    """The longest conversations of a corpus that a provider would take, cut to so many turns."""
    found = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with unzipped(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                messages = [m for m in json.loads(line).get("messages", ()) if m["role"] != "system"]
                stops = [i for i, m in enumerate(messages) if m["role"] == "assistant"][:turns]
                if len(stops) >= 8 and not check({"messages": messages[: stops[-1]]}, "openai_chat"):
                    found.append(messages[: stops[-1]])
    yield from sorted(found, key=lambda messages: -len(rawjson.dumps(messages)))[:most]


# --- clients ------------------------------------------------------------------------------------------------------
# Each is given the history of a turn and its number, and gives what it sends.


def plain(messages: list[Message], turn: int) -> list[Message]:
    return messages


def marks(messages: list[Message], turn: int) -> list[Message]:
    """Cache marks on the last two messages: lists there, strings elsewhere."""
    return [*messages[:-2], *(_listed(m, cache_control={"type": "ephemeral"}) for m in messages[-2:])]


def switches(messages: list[Message], turn: int) -> list[Message]:
    """What the user said is a list in every other turn."""
    return [_listed(m) if turn % 2 and m["role"] == "user" else m for m in messages]


def reminders(messages: list[Message], turn: int) -> list[Message]:
    """A reminder after the newest words of the user, gone when they are no longer the newest."""
    last = max((i for i, m in enumerate(messages) if _is_typed(m)), default=-1)
    told = f"\n<system-reminder>{turn} files changed.</system-reminder>"
    return [{**m, "content": m["content"] + told} if i == last else m for i, m in enumerate(messages)]


def inserted(messages: list[Message], turn: int) -> list[Message]:
    """A reminder of its own before the newest words of the user, in every third turn."""
    last = max((i for i, m in enumerate(messages) if _is_typed(m)), default=0)
    note = {"role": "user", "content": f"<system-reminder>{turn} files changed.</system-reminder>"}
    return [*messages[:last], note, *messages[last:]] if turn % 3 == 0 else messages


def clocks(messages: list[Message], turn: int) -> list[Message]:
    """The time in all that the user said, another one each turn."""
    told = f"<current_datetime>2026-11-15T10:{turn % 60:02d}:00Z</current_datetime>\n\n"
    return [{**m, "content": told + m["content"]} if _is_typed(m) else m for m in messages]


def trims(messages: list[Message], turn: int) -> list[Message]:
    """Old results are cut short by the client itself."""
    old = len(messages) - RECENT
    return [
        {**m, "content": f"{m['content'][:SHORT]} …"}
        if i < old and m["role"] == "tool" and isinstance(m["content"], str) and len(m["content"]) > SHORT
        else m
        for i, m in enumerate(messages)
    ]


def slides(messages: list[Message], turn: int) -> list[Message]:
    """What is old is dropped, from one message of the user to another."""
    starts = [i for i, m in enumerate(messages) if _is_typed(m) and i >= len(messages) - KEPT]
    return messages if len(messages) <= KEPT or not starts else messages[starts[0] :]


def rewinds(messages: list[Message], turn: int) -> list[Message]:
    """In every seventh turn the user goes back to an earlier message and asks something else."""
    typed = [i for i, m in enumerate(messages) if _is_typed(m)]
    if turn % 7 != 6 or len(typed) < 2:
        return messages
    return [*messages[: typed[-1]], {"role": "user", "content": f"No: do it another way, number {turn}."}]


def ids(messages: list[Message], turn: int) -> list[Message]:
    """Every call has another id each turn."""
    return [_renamed(m, turn) for m in messages]


CLIENTS: tuple[Callable[[list[Message], int], list[Message]], ...] = (
    plain,
    marks,
    switches,
    reminders,
    inserted,
    clocks,
    trims,
    slides,
    rewinds,
    ids,
)


def _is_typed(message: Mapping[str, Any]) -> bool:
    return message["role"] == "user" and isinstance(message["content"], str)


def _listed(message: Message, **more: Any) -> Message:
    if message["role"] not in ("user", "tool") or not isinstance(message["content"], str):
        return message
    return {**message, "content": [{"type": "text", "text": message["content"], **more}]}


def _renamed(message: Message, turn: int) -> Message:
    message = dict(message)
    if "tool_call_id" in message:
        message["tool_call_id"] = f"t{turn}_{message['tool_call_id']}"[:40]
    if message.get("tool_calls"):
        message["tool_calls"] = [{**c, "id": f"t{turn}_{c['id']}"[:40]} for c in message["tool_calls"]]
    return message


# --- replays ------------------------------------------------------------------------------------------------------


async def replay(
    client: Callable[[list[Message], int], list[Message]], corpus: list[list[Message]], window: int
) -> Replay:
    """All conversations, one after the other, by one kind of client."""
    heard: list[events.Event] = []
    engine = Engine(SQLite(":memory:"), Budget(window=window), Settings(listeners=[heard.append]))
    requests = tokens = anew = 0
    branches = set()
    for messages in corpus:
        before: list[str] = []
        stops = [i for i, m in enumerate(messages) if m["role"] == "assistant" and i]
        for turn, stop in enumerate([*stops, len(messages)]):
            sent = [SYSTEM, *client(messages[:stop], turn)]
            view = await engine.prepare(Request(rawjson.dumps({"model": MODEL, "messages": sent}), "openai_chat"))
            budget = await engine.limits.target("default", view.frame)
            size, out = budget.size(view).tokens, [_rendered(m) for m in body(view)["messages"]]
            requests, tokens, anew = requests + 1, tokens + size, anew + round(size * _fresh(before, out))
            before = out
            branches.add(view.branch)
    await engine.close()
    return Replay(requests, tokens, anew, sum(isinstance(e, events.Began) for e in heard), len(branches))


def _rendered(message: Message) -> str:
    """A message as a model reads it: with no marks, and a text alone is that text."""
    match message.get("content"):
        case [{"type": "text", "text": text}]:
            message = {**message, "content": text}
    return canonical(message)


def _fresh(before: list[str], now: list[str]) -> float:
    """The share of a request that the one before it did not begin with."""
    same = sum(len(a) for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(now, before, strict=False)))
    return 1 - same / sum(map(len, now))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--conversations", type=int, default=12)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--window", type=int, default=32_000)
    given = parser.parse_args()
    corpus = list(recorded(given.corpus, given.conversations, given.turns))
    print("client".ljust(10), *(head.rjust(12) for head in (*Replay._fields, "of plain")))
    first: Replay | None = None
    for client in CLIENTS:
        print(client.__name__, file=sys.stderr)
        found = asyncio.run(replay(client, corpus, given.window))
        first = first or found
        share = f"{found.tokens / first.tokens:.3f}"
        print(client.__name__.ljust(10), *(f"{n:,}".rjust(12) for n in found), share.rjust(12), flush=True)


if __name__ == "__main__":
    main()
