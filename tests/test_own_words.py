"""Eleventh law: no view, stand-in or recall of a conversation holds a word that was not said in its own past."""

import asyncio
import copy
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from itertools import islice, product
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Any

import pytest

import clew
from amounts import combined
from asking import request
from clew import Budget, Engine, Request, SQLite
from clew.control import ContextController
from clew.testing import Answer, Call, StrictProvider
from clients import Body, called, create, engine, plain_of, results, said, user
from owning import IDS, LINE, SHARED, Ids, Speaker, converse, keep_step, strangers
from tagging import FORMATS, tags

TURNS, MOST = 4, 400
GREETING = "Hi! How can I help you today?"


def beginners(random: Random, ids: Ids) -> list[Speaker]:
    """Conversations that begin alike."""
    opening = random.choice(["Check every server and report.", "hello", "…", ""])
    greeting = random.choice(["", "", GREETING])
    silent, shapes = random.random() < 0.6, random.choice([1, 1, 3])
    randoms = [Random(f"{n % shapes} {opening}") for n in range(3)]
    common = random.choice([0, 0, 2])
    made = zip(("ann", "bob", "cat"), randoms, strict=True)
    return [Speaker(name, shape, ids, opening, greeting, silent, common=common) for name, shape in made]


@pytest.mark.few(3)
@pytest.mark.parametrize(("ids", "seed"), combined(list(IDS), range(3)))
@pytest.mark.parametrize("format", FORMATS)
async def test_conversations_side_by_side_hold_own_words_only(format: str, ids: Ids, seed: int) -> None:
    random = Random(f"{format} {ids} {seed}")
    store, budget = SQLite(":memory:"), Budget(window=random.choice([2_500, 3_000, 4_000]))
    engines = [Engine(store, budget) for _ in range(random.choice([1, 2]))]
    speakers, named = beginners(random, ids), random.random() < 0.2
    cold, in_step = random.random() < 0.3, random.random() < 0.6
    for turn in range(30):
        speaker = speakers[turn % 3] if in_step else random.choice(speakers)
        for _ in range(1 if in_step else random.choice([1, 1, 1, 4])):  # meanwhile it may speak elsewhere
            speaker.go_on()
        body = speaker.body(format)
        made = Engine(store, budget) if cold else engines[turn % len(engines)]
        given: Body | bytes = json.dumps(body).encode() if random.random() < 0.5 else copy.deepcopy(body)
        view = await made.prepare(Request(given, format, session=speaker.name if named else None))
        others = " ".join(f"{s.name}{s.texts}v0z" for s in speakers if s is not speaker) if turn % 5 == 4 else ""
        assert await strangers(made, view, speaker.name, others) == [], f"turn {turn} of {speaker.name}"
    await store.close()


@pytest.mark.few(1)
@pytest.mark.parametrize(("format", "ids"), [("openai_chat", "counting"), ("gemini", "placed")])
def test_so_it_is_in_processes_on_one_store(tmp_path: Path, format: str, ids: Ids) -> None:
    place = str(tmp_path / "clew.db")
    clew.run(SQLite(place).close())
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])  # all of them import what the first one did
    with ProcessPoolExecutor(3, processes, keep_step, (processes.Barrier(3),)) as pool:
        found = [pool.submit(converse, place, name, format, ids, 12) for name in ("ann", "bob", "cat")]
        assert [one.result() for one in found] == [[], [], []]


def assistant(body: Body) -> Answer:
    """A model that says the same in every conversation, with call ids that count up; once it looks back."""
    turn = body["max_tokens"] - MOST  # told by the client, as no word may tell one conversation from another
    if turn == 2 and "call_look" not in json.dumps(body):
        return Answer(calls=(Call("search_history", {"query": SHARED}, "call_look"),))
    return Answer(calls=(Call("read", {"path": "next"}, f"call_{turn}"),))


async def loop(client: Any, format: str, name: str) -> None:
    """An agent as people write it."""
    so_far: list[Body] = [user("Check every server and report.")]
    for turn in range(TURNS):
        answer = await create(client, format)(**{**request(format, *so_far), "max_tokens": MOST + turn})
        [(id, _)] = called(format, answer)
        tag = f"{name}{turn}v0z"
        so_far += [*said(format, answer), *results(format, {id: f"error at {tag}: password is {tag}\n{LINE * 40}"})]


@pytest.mark.few(1)
@pytest.mark.parametrize(("format", "crowd"), [("openai_chat", 30), ("anthropic", 20)])
async def test_so_it_is_through_wrapped_clients_in_a_crowd(tmp_path: Path, format: str, crowd: int) -> None:
    names = ["".join(letters) for letters in islice(product(ascii_lowercase, repeat=3), crowd)]
    with StrictProvider(assistant, conversation=lambda _: 0) as provider:
        async with plain_of(provider, format, blocking=False) as plain:
            client = clew.wrap(plain, engine(tmp_path / "clew.db", window=2_500), tools=True)
            await asyncio.gather(*(loop(client, format, name) for name in names))
    owners = [{tag[:3] for tag in tags(heard.raw.decode())} for heard in provider.heard]
    assert [some for some in owners if len(some) > 1] == []
    assert len(owners) == crowd * (TURNS + 1)


async def test_what_a_twin_said_meanwhile_is_found_by_no_tool() -> None:
    store = SQLite(":memory:")
    control = ContextController(Engine(store, Budget(window=100_000)))
    control.method = "llm"
    same, answer = user("Review the newest commit."), {"role": "assistant", "content": "Which?"}
    ann, bob = [await control.prepare(Request({"messages": [same]})) for _ in range(2)]
    ann = await control.prepare(Request({"messages": [same, answer, user("The merger is on Friday.")]}))
    assert ann.view.branch == bob.view.branch
    newest = ann.view.nodes[-1].id
    for tool in ("recall", "pin"):
        for id in "0123456789abcdef":
            came = await control.answer(bob.view, tool, {"id": id})
            assert "merger" not in came.text
            assert newest[:16] not in came.text
        assert (await control.answer(bob.view, tool, {"id": newest})).failed
        assert not (await control.answer(ann.view, tool, {"id": newest})).failed
    await store.close()
