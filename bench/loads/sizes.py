"""What a body costs beside merely reading it, in the shapes that real clients send."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import orjson

from clew import Request
from clew import body as body_of
from clew.core.view import View
from loads.figures import Figure, Spent, middle
from loads.talking import Talker, engine_of
from made_clients import session

HOT = 9  # turns in a row
SIZES = {"350 kB": (350_000, 200), "4 MB": (4_000_000, 1_000)}  # bytes, and turns of the session that has them


def compact(body: Any) -> bytes:
    return orjson.dumps(body)


def spaced(body: Any) -> bytes:
    """As the standard library writes it."""
    return json.dumps(body).encode()


WAYS: dict[str, Callable[[Any], Any]] = {"bytes": compact, "bytes with spaces": spaced, "dicts": lambda body: body}


def bodies(client: str, size: int, turns: int) -> list[dict[str, Any]]:
    """The requests of a session from where they have this size."""
    found: list[dict[str, Any]] = []
    for sent in session(client, "amber", turns):
        if sent.kind != "main":
            continue
        if not found and len(orjson.dumps(sent.body)) < size:
            continue
        found.append(dict(sent.body))
        if len(found) == HOT + 1:
            return found
    raise SystemExit(f"{client}: no body of {size:,} bytes in {turns} turns")


async def turn(place: str, client: str, size: str, way: str) -> list[Figure]:
    """A body seen for the first time, its next turns, and the next turn after a restart."""
    *some, last = bodies(client, *SIZES[size])
    given = WAYS[way]
    raw = spaced(last) if way == "bytes with spaces" else compact(last)
    engine = engine_of(place, window=3_000_000)
    await Talker(1).turn(engine)
    times: list[Spent] = []

    async def one(body: Any) -> View:
        sent = given(body)
        with Spent() as spent:
            view = await engine.prepare(Request(sent))
        times.append(spent)
        await engine.observe(view, {"input_tokens": len(raw) // 4, "output_tokens": 50})
        return view

    for body in some:
        view = await one(body)
    await engine.store.close()
    engine = engine_of(place, window=3_000_000)
    await Talker(2).turn(engine)
    again = await one(last)
    assert again.branch == view.branch
    first, *hot, cold = times
    with Spent() as read:
        orjson.loads(raw)
        hashlib.sha256(raw).digest()
    with Spent() as written:
        orjson.dumps(body_of(again))
    await engine.store.close()
    return [
        Figure("orjson.loads + sha256", "ms CPU", 1e3 * read.cpu, 1e3 * read.wall),
        Figure("hot turn", "ms CPU", 1e3 * middle([s.cpu for s in hot]), 1e3 * middle([s.wall for s in hot])),
        Figure("hot turn, of it on the loop", "ms CPU", 1e3 * middle([s.loop for s in hot])),
        Figure("first turn", "ms CPU", 1e3 * first.cpu, 1e3 * first.wall),
        Figure("turn after a restart", "ms CPU", 1e3 * cold.cpu, 1e3 * cold.wall),
        Figure("body written", "ms CPU", 1e3 * written.cpu, 1e3 * written.wall),
        Figure("hot turn / reading", "times", middle([s.cpu for s in hot]) / read.cpu),
    ]
