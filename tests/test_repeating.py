"""One recording gives the same folds wherever it is replayed: ids are random, and nothing may hang on them."""

import asyncio
import os
import subprocess
import sys
from hashlib import sha256
from random import Random

import pytest

import clew
from amounts import cases
from clew import Budget, Engine, Request, SQLite
from clew.core import rawjson
from clew.core.items import Item
from clew.testing import conversation
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from made_clients.judging import ID, judged

RECORDINGS = (("codex", 40_000), ("crush", 40_000), ("opencode-messages", 64_000))
TURNS = 16
STORES = 1 + cases(1)  # each is like the first; at night there are six of them


async def bodies(format: str) -> list[str]:
    """What is sent, without ids, of a made-up conversation that is folded again and again."""
    whole = conversation(7, 16, format, wordy=60)
    key = {"openai_responses": "input", "gemini": "contents"}.get(format, "messages")
    engine = Engine(SQLite(":memory:"), Budget(window=6_000, reserve=500))
    sent = []
    for stop in range(4, len(whole[key]) + 1, 4):
        view = await engine.prepare(Request({**whole, key: whole[key][:stop]}, format))
        sent.append(ID.sub("0" * 10, rawjson.dumps(clew.body(view)).decode()))
    await engine.close()
    return sent


def test_an_id_is_as_long_as_any_other() -> None:
    random = Random(3)
    for model in ("gpt-4o", "claude-sonnet-4-5", "qwen3-coder", "gemini-3-pro"):
        meter = Meter(counter_for(model))
        ids = ["".join(random.choices("0123456789abcdef", k=10)) for _ in range(200)]
        sizes = {meter.item(Item("summary", "user", f"[out of view; recall {id}] {id} bash:")) for id in ids}
        assert len(sizes) == 1
        longest = max(
            meter.counter.item(Item("summary", "user", f"[out of view; recall {id}] {id} bash:")) for id in ids
        )
        assert sizes.pop().tokens >= longest


@pytest.mark.few(1)
@pytest.mark.parametrize(("client", "window"), RECORDINGS)
async def test_other_stores_fold_alike(client: str, window: int) -> None:
    one, *others = [(await judged(client, window, TURNS)).bodies for _ in range(STORES)]
    assert others == [one] * cases(1)


@pytest.mark.few(1)
@pytest.mark.parametrize("format", ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"])
async def test_other_stores_fold_alike_in_every_format(format: str) -> None:
    one, *others = [await bodies(format) for _ in range(STORES)]
    assert others == [one] * cases(1)


@pytest.mark.parametrize("what", ["openai_chat", pytest.param("gemini-cli", marks=pytest.mark.nightly)])
async def test_other_processes_fold_alike(what: str) -> None:
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, __file__, what], env=env, capture_output=True, check=True)
    assert ran.stdout.decode() == await told(what)


async def told(what: str) -> str:
    found = (await judged(what, 28_000, TURNS)).bodies if what == "gemini-cli" else await bodies(what)
    assert found
    return sha256("\n".join(found).encode()).hexdigest()


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(told(sys.argv[1])))
