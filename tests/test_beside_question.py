"""In every client's own shape: what a question is about stands beside it, and all else goes out as it would have."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import clew
from clew import Budget, Engine, Request, SQLite
from clew.engine.settings import Settings
from clew.wire import check
from clew.wire.formats import named
from made_clients import Client
from recalling.sessions import SHAPES, Pair, asked, notes, prepared, request

FACT = Pair("result", "The lighthouse keeper Quillon wants lamps of brass.", "of brass", "Which lamps for Quillon?")
EVERY = pytest.mark.parametrize("client", SHAPES.values(), ids=list(SHAPES))
WINDOW = 64_000
METALS = "tin zinc iron steel lead gold bronze".split()
ENDINGS = [a + b for a in "ba do fi gu he ka".split() for b in "n r s l m nd rt".split()]


async def session(client: str, path: Path) -> Client:
    return await prepared(
        client, [FACT, *(FACT._replace(fact=f"Part {n} is blue.") for n in range(8))], str(path), WINDOW
    )


def blocks(body: dict[str, Any], format: str) -> list[tuple[str, str]]:
    """All that a body says, block by block, cache marks included."""
    found = []
    for message in body[named(format).LIST]:
        said = message.get("content", message.get("parts", [message]))
        parts = [{"type": "text", "text": said}] if isinstance(said, str) else said or [message]
        found += [(message.get("role", ""), json.dumps(part, sort_keys=True)) for part in parts]
    return found


@pytest.mark.few(1)
@EVERY
async def test_the_question_is_found_wherever_it_stands_and_nothing_else_changes(client: str, tmp_path: Path) -> None:
    made = await session(client, tmp_path / "a.db")
    (tmp_path / "b.db").write_bytes((tmp_path / "a.db").read_bytes())
    view, sent = await asked(deepcopy(made), FACT, str(tmp_path / "a.db"), WINDOW)
    _, plain = await asked(made, FACT, str(tmp_path / "b.db"), WINDOW, expand=False)
    [note] = notes(view)
    assert FACT.key in note
    was = {broken.rule for broken in check(plain, made.format)}
    assert {broken.rule for broken in check(sent, made.format)} <= was
    with_it, without = blocks(sent, made.format), blocks(plain, made.format)
    at = next(i for i, (_, block) in enumerate(with_it) if "[data: from earlier" in block)
    assert with_it[:at] == without[:at], "the prefix is what it would have been"
    assert [*with_it[:at], *with_it[at + 1 :]] == without, "and so is all the rest"
    assert FACT.question in with_it[at + 1][1], "right before the question"


def _unmarked(said: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without cache marks, which move on."""
    return [(role, block.replace('"cache_control": {"type": "ephemeral"}, ', "")) for role, block in said]


@pytest.mark.few(1)
@EVERY
async def test_it_stays_while_the_agent_works_on_it(client: str, tmp_path: Path) -> None:
    made = await session(client, tmp_path / "a.db")
    store = SQLite(str(tmp_path / "a.db"))
    engine = Engine(store, Budget(window=WINDOW), Settings())
    made.ask(FACT.question)
    first = clew.body(await engine.prepare(request(made)))
    made.answer("Brass.")
    made.ask("Thank you.")
    view = await engine.prepare(request(made))
    [note] = notes(view)
    assert FACT.key in note
    before, after = (_unmarked(blocks(body, made.format)) for body in (first, clew.body(view)))
    if client != "qwen-code":  # which takes the date away that it put before the question
        assert after[: len(before)] == before
    await store.close()


@pytest.mark.few(1)
@pytest.mark.parametrize(("words", "put"), [("Go on, please.", 0), (FACT.question, 1)], ids=["nothing", "a question"])
@pytest.mark.parametrize("where", ["before", "behind", "a system message behind"])
async def test_what_a_client_says_beside_a_question_asks_nothing(
    where: str, words: str, put: int, tmp_path: Path
) -> None:
    made = await session("claude-2.1.325", tmp_path / "a.db")
    reminder = {"type": "text", "text": "<system-reminder>47 lamps of Quillon, the lighthouse keeper</system-reminder>"}
    typed = {"type": "text", "text": "Go on, please."}
    said = {"before": [reminder, typed], "behind": [typed, reminder]}.get(where, [typed])
    body = made.body()
    body["messages"].append({"role": "user", "content": said})
    if where == "a system message behind":
        body["messages"].append({"role": "system", "content": reminder["text"]})
    store = SQLite(str(tmp_path / "a.db"))
    engine = Engine(store, Budget(window=WINDOW), Settings())
    typed["text"] = words
    assert len(notes(await engine.prepare(Request(body, session=made.id)))) == put
    await store.close()


async def test_what_a_client_left_out_of_a_result_to_save_room_is_found_for_a_question(tmp_path: Path) -> None:
    """As Gemini CLI does it once a session is opened again."""
    engine = Engine(SQLite(tmp_path / "log.db"), Budget(window=16_000, reserve=2_000))
    names = [first + last for first in map(str.title, "kel mar tor ves lun bri dag os".split()) for last in ENDINGS]
    # All alike, so that no log of them tells of this one.
    lines = [f"The lighthouse keeper {name} wants lamps of {METALS[n % 7]}." for n, name in enumerate(names)]

    def ran(n: int, output: str) -> list[dict[str, Any]]:
        id = f"call_kMpTbvXqWzRdAsEeGhJuYt{n:02}"
        call = {
            "id": id,
            "type": "function",
            "function": {"name": "shell", "arguments": json.dumps({"command": f"cat {n}"})},
        }
        return [
            {"role": "assistant", "content": f"Step {n}.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id, "content": output},
        ]

    whole = "\n".join([*lines[:150], FACT.fact, *lines[150:]])
    short = f"{whole[:300]}\n[… {len(whole) - 600} characters truncated …]\n{whole[-300:]}"
    rest = [
        m for n in range(1, 8) for m in ran(n, "\n".join(f"entry {k} of part {n} is as it was" for k in range(150)))
    ]
    begin = {"role": "user", "content": "Look at the registers."}
    ends = [*ran(8, whole), *ran(9, "Nothing is left.")]
    body: dict[str, Any] = {"model": "gpt-4o"}
    for stop in range(3, len(rest) + len(ends) + 2, 2):
        body["messages"] = [begin, *rest, *ends][:stop]
        await engine.prepare(Request(json.dumps(body).encode()))
    question = [{"role": "assistant", "content": "All is read."}, {"role": "user", "content": FACT.question}]
    body["messages"] = [begin, *rest, *ran(8, short), *ends[2:], *question]
    view = await engine.prepare(Request(json.dumps(body).encode()))
    assert short in [node.item.text for node in view.nodes], "what is left of it is in view"
    assert [FACT.fact in node.item.text for node in view.nodes].count(True) == 1
    assert any(FACT.fact in note for note in notes(view))
