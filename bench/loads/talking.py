"""Conversations that scenarios hold, with API that older commits have, too."""

import asyncio
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import orjson

from clew import Budget, Engine, Request, SQLite, open_store
from clew.engine.append import Addition
from clew.engine.settings import Settings

Message = dict[str, Any]

MODEL, SCOPE, WINDOW = "gpt-4o", "default", 200_000
LEAD: Message = {"role": "system", "content": "You are a coding agent. Work in small steps and say what you did."}
SMALL = (60, 400)  # characters of an item


@cache
def library() -> str:
    """What agents read here: the standard library."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    return "\n".join(f.read_text(encoding="utf-8", errors="replace") for f in files)


def turns(number: int, sizes: tuple[int, int] = SMALL) -> Iterator[list[Message]]:
    """What each turn of a conversation adds, without end: two messages, after the first, which opens it."""
    chance, text = Random(number), library()

    def say() -> str:
        size = chance.randrange(*sizes)
        start = chance.randrange(len(text) - size)
        return text[start : start + size]

    yield [{"role": "user", "content": f"Task {number}: {say()}"}]
    for n in count(1):
        if n % 3 == 0:
            yield [{"role": "assistant", "content": say()}, {"role": "user", "content": say()}]
            continue
        given = orjson.dumps({"path": f"src/{number}/{n}.py", "offset": chance.randrange(2_000)}).decode()
        call = {"id": f"call_{number}_{n}", "type": "function", "function": {"name": "read", "arguments": given}}
        yield [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": say()},
        ]


class Talker:
    """A client that holds one conversation: it sends all of it each turn, as bytes, or only what is new."""

    def __init__(self, number: int, named: bool = False, adds: bool = False, sizes: tuple[int, int] = SMALL) -> None:
        self.name = f"talk {number}" if named or adds else None
        self.adds = adds
        self.new: list[Message] = []
        self._coming = turns(number, sizes)
        self._said = bytearray(orjson.dumps({"model": MODEL, "messages": [LEAD]})[:-2])

    @property
    def bytes(self) -> int:
        """What it keeps of its conversation."""
        return len(self._said)

    def say(self, many: int = 1) -> Request | Addition:
        """The next turn, or so many at once."""
        self.new = [message for _ in range(many) for message in next(self._coming)]
        self._said += b"," + b",".join(map(orjson.dumps, self.new))
        if self.adds:
            return Addition({"model": MODEL, "messages": [LEAD, *self.new]}, str(self.name))
        return Request(bytes(self._said) + b"]}", session=self.name)

    async def turn(self, engine: Engine, many: int = 1) -> None:
        """What a host does for one call of a model."""
        view = await engine.prepare(self.say(many))
        await engine.observe(view, {"input_tokens": len(self._said) // 4, "output_tokens": 50})


def engine_of(place: str, window: int = WINDOW, **settings: Any) -> Engine:
    """An engine on a store; settings that it does not have are left out."""
    known = {f.name for f in fields(Settings)}
    given = Settings(**{name: value for name, value in settings.items() if name in known})
    return Engine(open_store(place) if "://" in place else SQLite(place), Budget(window=window), given)


async def talk(engine: Engine, talkers: Sequence[Talker], times: int) -> None:
    """All at once, each so many turns, one after the other."""

    async def one(talker: Talker) -> None:
        for _ in range(times):
            await talker.turn(engine)

    await asyncio.gather(*map(one, talkers))
