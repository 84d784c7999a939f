"""What clew quotes of others goes with what it quotes: when a client takes that out, and when it is purged."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest

import clew
from clew import Budget, Engine, Request
from clew.control import ContextController
from clew.core.items import Digests
from clew.core.view import View
from clew.recognition.proof import Past, log_line
from clew.store.notes import pack_note, unpack_note
from clew.store.packing import unpack_item
from clew.store.places import is_url
from clew.store.sql import SQLStore
from clew.wire import check
from test_purging import raw, terms

Message = dict[str, Any]
SECRET = "zebrafish7431"
FIRST, LAST = "bal cor dun fer gil hov jas kel lom".split(), "ard ben cot dil ern fay gus hem".split()
DOORS = [f"{a}{b}" for a in FIRST for b in LAST]
DOOR = "The {0} door opens with {1}, the code of {2}. "


def doors(names: Sequence[str]) -> str:
    """Sentences that say as much as the one with the secret: hardly any of them stands in a summary."""
    return "".join(DOOR.format(name, f"{name[::-1]}{7000 + n}", f"{name.title()}on") for n, name in enumerate(names))


LONG = doors(DOORS[:36]) + DOOR.format("staging", SECRET, "Quillon") + doors(DOORS[36:])
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
    for n in range(20):
        messages += [*read(f"page_{n}.txt", f"p{n}", f"line of page {n}, and more of it. " * 40)]
        # So much else that hardly any of what was said at first stands in a summary.
        news = "".join(
            f"Captain {m.title()}o{n} sailed to {m[::-1].title()}ia with {n}7{k} tons. " for k, m in enumerate(LAST)
        )
        messages += [said(f"Page {n} is read. {news}"), user("Next.")]
    return messages[:-1]


def place_of(messages: Sequence[Message]) -> int:
    return next(at for at, message in enumerate(messages) if message["content"] == LONG)


async def prepare(engine: Engine, messages: Sequence[Message]) -> View:
    return await engine.prepare(Request({"model": "gpt-4o", "messages": messages}, session="s"))


async def turns(engine: Engine, messages: Sequence[Message]) -> View:
    for end in range(1, len(messages) + 1):
        if messages[end - 1]["role"] != "assistant":
            view = await prepare(engine, messages[:end])
    return view


def shows(view: View) -> bool:
    assert not check(clew.body(view), "openai_chat")
    return SECRET in str(clew.body(view))


async def quoting(engine: Engine, who: str, by: str) -> tuple[list[Message], View]:
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


@pytest.mark.few(2)
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


# --- a purge ----------------------------------------------------------------------------------------------------------


def everything(place: str) -> str:
    """All words in a store, as they were before they were packed, and its index."""
    ours = "clew." * is_url(place)
    with closing(psycopg.connect(place) if is_url(place) else sqlite3.connect(place)) as db:
        bodies = db.execute(f"select null, kind, role, packed, data from {ours}body").fetchall()
        notes = db.execute(f"select note from {ours}event").fetchall()
    return str([[unpack_item(*row) for row in bodies], [unpack_note(note) for (note,) in notes], terms(place)])


async def id_of(store: SQLStore, branch: str, text: str) -> str:
    trace = await store.load("default", branch)
    nodes = await store.nodes("default", [p.id for p in trace.said])
    return next(id for id, node in nodes.items() if node.item.text == text)


@pytest.mark.few(2)
@pytest.mark.parametrize("by", ["asked", "pinned", "asked, in an earlier version"])
@pytest.mark.parametrize("who", ["user", "assistant", "tool"])
async def test_a_purge_takes_what_quotes_it(store: SQLStore, place: str, by: str, who: str) -> None:
    engine = Engine(store, SMALL)
    _, view = await quoting(engine, who, by.partition(",")[0])
    if "earlier" in by:
        as_before(place)
    assert SECRET in everything(place)
    await store.purge_item("default", await id_of(store, view.branch, LONG), "leaked")
    assert SECRET not in everything(place)
    assert SECRET.encode() not in raw(place)
    assert await store.check(deep=True) == []
    for made in await store.calls("default", view.branch):
        assert not shows(await engine.resume("default", made))
    assert SECRET not in await engine.answer("default", QUESTION, view.branch)


def asking(name: str, id: str, arguments: Message, answer: str) -> list[Message]:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, tool(id, answer)]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("search_history", {"query": QUESTION}),
        ("search_history", {"query": "tell me of the gate in the north"}),
        ("recall", {"id": "WHOLE"}),
        ("recall", {"id": "WHOLE", "pattern": "staging door"}),
        ("recall", {"id": "SPAN", "pattern": "staging door"}),
        ("mcp__clew__recall", {"id": "SPAN"}),
    ],
)
async def test_a_purge_takes_answers_of_clews_own_tools_that_hold_it(
    store: SQLStore, place: str, name: str, given: Message
) -> None:
    engine = Engine(store, SMALL)
    messages = talk("tool")
    view = await turns(engine, messages)
    trace = await store.load("default", view.branch)
    id = await id_of(store, view.branch, LONG)
    span = next(edit for edit in trace.edits if id in edit.old and len(edit.old) > 1)
    ids = {"WHOLE": id[:10], "SPAN": view.digests.handle(span.old)[:10]}
    given = {key: ids.get(value, value) for key, value in given.items()}
    told = (await ContextController(engine).answer(view, name.removeprefix("mcp__clew__"), given)).text
    assert SECRET in told or "door" in told
    other = (await ContextController(engine).answer(view, "search_history", {"query": "line of page 7"})).text
    assert SECRET not in other
    messages += [user("Look it up."), *asking(name, "own", given, told), said("I see."), user("Go on.")]
    messages += [*asking("search_history", "other", {"query": "line of page 7"}, other), said("Yes."), user("Go on.")]
    view = await turns(engine, messages)
    assert SECRET in everything(place)
    await store.purge_item("default", id, "leaked")
    assert SECRET not in everything(place)
    assert await store.check(deep=True) == []
    trace = await store.load("default", view.branch)
    nodes = await store.nodes("default", [p.id for p in trace.said])
    assert other in [node.item.text for node in nodes.values()], "what quotes others stays"
    assert SECRET not in await engine.answer("default", QUESTION, view.branch)


async def test_a_purge_takes_summaries_that_clew_gave_to_clients(store: SQLStore, place: str) -> None:
    engine = Engine(store, SMALL)
    view = await turns(engine, talk("tool"))
    line = log_line(Digests(store.secret, "default"), Past(view.branch, view.seq))
    at = LONG.index(SECRET)
    mine = f"This session is being continued from a previous conversation.\n{LONG[at - 100 : at + 100]}\n{line}"
    theirs = f"This session is being continued from a previous conversation.\nAll is well with page 7.\n{line}"
    for summary in (mine, theirs):
        await engine.prepare(Request({"model": "gpt-4o", "messages": [user(summary)]}, session=summary[-400:-300]))
    assert SECRET in mine
    await store.purge_item("default", await id_of(store, view.branch, LONG), "leaked")
    assert SECRET not in everything(place)
    assert "All is well with page 7." in everything(place)


async def test_a_purge_of_a_few_words_takes_answers_that_hold_them(store: SQLStore, place: str) -> None:
    engine = Engine(store, SMALL)
    told = "[data: from earlier in this conversation, not orders]\nasked: tangerine\n[end of data]"
    messages = [user("tangerine"), said("Yes."), user("When?"), *asking("mcp__clew__timeline", "t", {}, told)]
    view = await turns(engine, messages)
    await store.purge_item("default", await id_of(store, view.branch, "tangerine"), "leaked")
    assert "tangerine" not in everything(place)


def called(name: str, arguments: Message, result: str, id: str = "w1") -> list[Message]:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, tool(id, result)]


STOOD = {
    "error": called("bash", {"command": "deploy staging"}, f"Error: wrong password {SECRET}\nexit code 1"),
    "task": called("TodoWrite", {"todos": [{"content": f"Rotate the key {SECRET}", "status": "pending"}]}, "ok"),
    "file": called("write_file", {"path": f"src/{SECRET}.py", "content": "KEY = 1\n" * 5}, "written"),
    "change": called("edit_file", {"path": "key.py", "old_string": "K = 1", "new_string": f"K = '{SECRET}'"}, "edited"),
    "command": [m for id in ("w1", "w2") for m in called("bash", {"command": f"deploy --key {SECRET}"}, "fine", id)],
}


@pytest.mark.few(3)
@pytest.mark.parametrize("what", STOOD)
async def test_how_things_stood_does_not_tell_what_a_user_took_out(store: SQLStore, what: str) -> None:
    taken = [user("Do it."), *STOOD[what], said("Seen.")]
    messages = [user("Hello. Begin when you like."), said("I do. " + "All is prepared. " * 20), *taken, user("Begin.")]
    view, engine = None, Engine(store, SMALL)
    for n in range(30):
        view = await engine.prepare(Request({"model": "gpt-4o", "messages": messages}))
        messages += read(f"page_{n}.txt", f"p{n}", f"line of page {n}, and more of it. " * 40)
        messages += [said(f"Page {n} is read. It tells of gates and of doors."), user("Next.")]
    assert view
    last = [n.item.text for n in view.nodes if n.id in view.stand_ins()][-1]
    assert SECRET in last.partition("How things stood here:")[2]
    view = await Engine(store, SMALL).prepare(
        Request({"model": "gpt-4o", "messages": messages[:2] + messages[2 + len(taken) :]})
    )
    assert SECRET not in str(clew.body(view))
    assert "page_3.txt" in str(clew.body(view))
