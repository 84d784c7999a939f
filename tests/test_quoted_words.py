"""What clew quotes of others goes with what it quotes: when a client takes that out, and when it is purged."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest

import clew
from clew import Budget, Engine, Request
from clew.store.notes import pack_note, unpack_note
from clew.store.places import is_url
from clew.store.sql import SQLStore
from clew.wire import check

Message = dict[str, Any]
SECRET = "zebrafish7431"
LONG = (
    "The gate in the north is painted green. " * 60
    + f"The staging door opens with {SECRET}, the code of Quillon. "
    + "The gate in the south is painted red. " * 60
)
QUESTION = "Which code has Quillon for the staging door?"
SMALL = Budget(window=8_000, reserve=500)


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def read(path: str, id: str, result: str) -> list[Message]:
    call = {"id": id, "type": "function", "function": {"name": "read", "arguments": f'{{"path": "{path}"}}'}}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, tool(id, result)]


def tool(id: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": id, "content": text}


WHO = {
    "user": [user(LONG), said("Noted.")],
    "assistant": [user("Tell me."), said(LONG)],
    "tool": [user("Look."), *read("door.txt", "d", LONG), said("Seen.")],
}


def talk(who: str) -> list[Message]:
    """One that says something long, and goes on until that is out of view."""
    messages = [user("Hello. Begin when you like."), said("I do."), *WHO[who], user("Begin.")]
    for n in range(40):
        messages += [*read(f"page_{n}.txt", f"p{n}", f"line of page {n}, and more of it. " * 40)]
        messages += [said(f"Page {n} is read."), user("Next.")]
    return messages[:-1]


def place_of(messages: Sequence[Message]) -> int:
    return next(at for at, message in enumerate(messages) if message["content"] == LONG)


async def prepare(engine: Engine, messages: Sequence[Message]) -> clew.View:
    return await engine.prepare(Request({"model": "gpt-4o", "messages": messages}, session="s"))


async def turns(engine: Engine, messages: Sequence[Message]) -> clew.View:
    for end in range(1, len(messages) + 1):
        if messages[end - 1]["role"] != "assistant":
            view = await prepare(engine, messages[:end])
    return view


def shows(view: clew.View) -> bool:
    assert not check(clew.body(view), "openai_chat")
    return SECRET in str(clew.body(view))


async def quoting(engine: Engine, who: str, by: str) -> tuple[list[Message], clew.View]:
    """A conversation in which something out of view is quoted: since the user asks for it, or because it is pinned."""
    messages = talk(who)
    view = await turns(engine, messages)
    assert not shows(view)
    messages.append(user(QUESTION if by == "asked" else "Go on."))
    if by == "pinned":
        trace = await engine.store.load("default", view.branch)
        nodes = await engine.store.nodes("default", [p.id for p in trace.said])
        await engine.pin(view, next(id for id, node in nodes.items() if node.item.text == LONG))
    view = await prepare(engine, messages)
    assert shows(view)
    return [*messages, said("I know it."), user("Thank you.")], view


# --- a client takes words out -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["asked", "pinned"])
@pytest.mark.parametrize("who", ["user", "assistant", "tool"])
@pytest.mark.parametrize("act", ["edited", "dropped"])
async def test_words_that_a_client_took_out_are_quoted_nowhere(store: SQLStore, by: str, who: str, act: str) -> None:
    engine = Engine(store, SMALL)
    messages, before = await quoting(engine, who, by)
    assert shows(await prepare(Engine(store, SMALL), messages[:-2])), "nothing was changed so far"
    at = place_of(messages)
    if act == "edited":
        messages[at] = messages[at] | {"content": LONG.replace(f"{SECRET}, the code of Quillon", "nothing at all")}
    else:
        del messages[2 : 2 + len(WHO[who])]
    for fresh in (engine, Engine(store, SMALL)):
        view = await prepare(fresh, messages)
        assert not shows(view)
    assert before.branch == view.branch or (who, act) == ("assistant", "edited"), "answered otherwise: another one"


def as_before(place: str) -> None:
    """Have a store's quotes as they were when clew did not write down whom they quote."""
    ours, mark = ("clew.", "%s") if is_url(place) else ("", "?")
    with closing(psycopg.connect(place) if is_url(place) else sqlite3.connect(place)) as db:
        rows = db.execute(f"select branch, seq, note from {ours}event where kind = 'edit'").fetchall()
        notes = {(branch, seq): unpack_note(note) for branch, seq, note in rows}
        quotes = {key: note for key, note in notes.items() if "asked" in note["evidence"]}
        assert quotes
        for key, note in quotes.items():
            note["evidence"].pop("beside", None)
            update = f"update {ours}event set note = {mark} where branch = {mark} and seq = {mark}"
            db.execute(update, (pack_note("edit", note), *key))
        db.commit()


async def test_a_quote_of_an_earlier_version_does_not_outlive_a_clients_edit(store: SQLStore, place: str) -> None:
    engine = Engine(store, SMALL)
    messages, _ = await quoting(engine, "user", "asked")
    as_before(place)
    assert shows(await prepare(Engine(store, SMALL), messages)), "nothing was changed so far"
    messages[2] = user(LONG.replace(f"{SECRET}, the code of Quillon", "nothing at all"))
    assert not shows(await prepare(Engine(store, SMALL), messages))


async def test_a_quote_that_a_host_sends_back_was_said_by_nobody(store: SQLStore) -> None:
    engine = Engine(store, SMALL)
    _, view = await quoting(engine, "user", "asked")
    before = await store.load("default", view.branch)
    view = await prepare(engine, [*clew.body(view)["messages"], said("I know it."), user("Thank you.")])
    trace = await store.load("default", view.branch)
    assert trace.said[: len(before.said)] == before.said
    assert len(trace.said) == len(before.said) + 2
