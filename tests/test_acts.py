"""Acts on conversations: an id means the same in every command, and each face that offers an act does the same."""

import asyncio
import html
import json
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import OptionList

import clew
from chatting import chatting, places
from clew import Budget, Engine, Request, Sessions, SQLite
from clew.chat.choosing import Choosing
from clew.config import assembled
from clew.config import engine as config_engine
from clew.control import ContextController
from clew.core.view import View
from clew.engine.settings import Settings
from clew.errors import ClewError
from clew.mcp.answers import Answers
from clew.mcp.reach import Reach
from clew.page.acting import ACTS, Subject
from clew.page.app import Page
from clew.page.instructions import KeptInstructions
from clew.sessions.conversation import Conversation
from clew.sessions.import_agent import adopt
from clew.sessions.names import called
from clew.sessions.transcripts import Transcript, TranscriptStretch
from clew.steps.chapters.by_model import ByModel
from clew.store.sql import SQLStore
from clew.testing import ScriptedModel, StrictProvider, write_chapter
from clew.testing.provider import Answer
from shell import Shell

SOURCE = Path(clew.__file__).parent
BUDGET = Budget(window=6_000, reserve=500)
WINDOW = "[budget]\nwindow = 6_000\nreserve = 500\n"
LAST = "And that was the last page"


def engine_over(store: SQLStore) -> Engine:
    return Engine(store, BUDGET)


async def talk(engine: Engine, opening: str, name: str | None, turns: int = 24) -> View:
    """A conversation of several compactions, as a client sends it that keeps its history."""
    said: list[dict[str, str]] = []
    for n in range(turns):
        text = f"{opening}: page {n} says that part {n} has port {8000 + n}. " + "It is a long page. " * 60
        said.append({"role": "user", "content": f"{LAST} of {opening}." if n == turns - 1 else text})
        view = await engine.prepare(Request({"model": "gpt-4o", "messages": said}, session=name))
        said.append({"role": "assistant", "content": f"Page {n} is read."})
    return view


async def filled(path: Path) -> None:
    store = SQLite(path)
    engine = engine_over(store)
    view = await talk(engine, "A named one", "named")
    await talk(engine, "One without a name", None)
    await engine.fork("default", view.branch, view.seq, "forked")
    await talk(engine, "A short one", "short", 2)
    pages = [f"An imported one: page {n} says that part {n} has port {8000 + n}. " + "Long. " * 400 for n in range(20)]
    said = [
        {"role": role, "content": text} for page in pages for role, text in (("user", page), ("assistant", "Read."))
    ]
    brief = [{"role": "user", "content": "This is a summary of what came before."}, *said[-4:]]
    stretches = (TranscriptStretch(tuple(said)), TranscriptStretch(tuple(brief)))
    told = Transcript("openai_chat", stretches, "imported", agent="pi", model="gpt-4o")
    await adopt(Engine(store, BUDGET), "default", told, "imported")
    await store.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("acts") / "clew.db"
    asyncio.run(filled(path))
    return path


# --- what an id means -------------------------------------------------------------------------------------------------

LOOKING = ("show", "show --diff", "show --facts", "show --calls", "sessions --totals", "resume", "show --preview")
KINDS = ("named", "unnamed", "forked", "imported")


async def ways(path: Path, kind: str) -> tuple[str, list[str], str, int]:
    """A conversation as it is called, all that may mean it, what was said last in it, and how many items it has."""
    async with opened(path) as engine:
        own = [s for s in await Sessions(engine).all() if (s.name or "unnamed") == kind]
        newest = max(own, key=lambda s: s.number)
        trace = await engine.store.load("default", newest.branch)
        last = (await engine.store.nodes("default", [trace.said[-1].id])).popitem()[1]
        names = [newest.name] if newest.name else []
        return called(newest), [*names, newest.branch, newest.branch[:10]], last.item.text, len(trace.said)


async def size(path: Path, name: str) -> int:
    async with opened(path) as engine:
        return len((await engine.store.load("default", (await Sessions(engine).get(name)).branch)).said)


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Engine]:
    store = SQLite(path)
    yield engine_over(store)
    await store.close()


def machine(tmp_path: Path, made: Path, of: str = "one") -> Shell:
    home = tmp_path / of
    home.mkdir()
    shell = Shell(home)
    shutil.copy(made, shell.store)
    shell.configure(WINDOW)
    return shell


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_an_id_means_the_same_conversation_in_every_command(tmp_path: Path, made: Path, kind: str) -> None:
    clew = machine(tmp_path, made)
    name, names, last, items = asyncio.run(ways(made, kind))
    told: dict[str, list[object]] = {}
    for one in names:
        for command in LOOKING:
            done = clew(*command.split(), one, *(() if command == "resume" else ("--json",)))
            told.setdefault(command, []).append((done.exit_code, done.stdout, done.stderr))
        own = machine(tmp_path, made, f"fork {len(one)}")
        assert own("fork", one, "again", "--json").exit_code == 0
        assert asyncio.run(size(own.store, "again")) == items
        undone = own("undo", one)
        told.setdefault("undo", []).append((undone.exit_code, undone.stdout, undone.stderr))
    assert {command: len({*map(repr, found)}) for command, found in told.items()} == dict.fromkeys(told, 1)
    shown = json.loads(clew("show", names[-1], "--json").stdout)
    resumed = clew("resume", names[-1])
    assert last in resumed.stdout, "what was said last is in the view"
    assert shown["session"].startswith(f"{name}.")
    assert shown["session"] in resumed.stderr
    diff = clew("show", "--diff", names[-1], "--json")
    if kind in ("named", "unnamed"):
        assert json.loads(diff.stdout)["session"] == shown["session"]
    assert json.loads(clew("show", "--calls", names[-1], "--json").stdout)[-1]["number"] == len(
        json.loads(clew("show", "--calls", names[-1], "--json").stdout)
    )
    first = json.loads(clew("show", f"{names[-1]}.1", "--json").stdout)
    assert first["session"] == f"{name}.1"


NAMING: dict[str, tuple[str, ...]] = dict.fromkeys((*LOOKING, "undo", "set", "show --chapters", "export"), ())
NAMING |= {"fork": ("again",), "set --tag a --archive --method llm": (), "pin": ("0" * 10,)}
NO_NAMES = {
    "nobody": "no conversation or session matches 'nobody': `clew sessions` lists them; or try another scope",
    "named.9": "named has 5 sessions; there is no 9",
    "": "the name is empty: `clew sessions` lists the conversations that there are",  # of a variable that is not set
}


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_means_nothing_is_refused_with_the_same_words_by_every_command(
    tmp_path: Path, made: Path, name: str
) -> None:
    clew = machine(tmp_path, made)
    before = asyncio.run(state(clew.store))
    told = {command: clew(*command.split(), name, *more) for command, more in NAMING.items()}
    assert {command: (done.exit_code, done.stdout) for command, done in told.items()} == dict.fromkeys(NAMING, (1, ""))
    assert {done.stderr for done in told.values()} == {f"clew: {NO_NAMES[name]}\n"}
    assert asyncio.run(state(clew.store)) == before


def test_an_empty_name_purges_nothing(tmp_path: Path) -> None:
    """Not even the only conversation there is, which every beginning fits."""
    clew = Shell(tmp_path)
    clew.talked([{"role": "user", "content": "Hello"}], 1_000)
    assert NO_NAMES[""] in clew("purge", "", "--yes").stderr
    assert clew("show", "talk").exit_code == 0


def test_what_acts_on_the_whole_refuses_a_session_that_has_ended(tmp_path: Path, made: Path) -> None:
    clew = machine(tmp_path, made)
    for command in ("undo", "show --preview"):
        assert "named.1 has ended" in clew(*command.split(), "named.1").stderr
    assert "not of named.1: use named" in clew("sessions", "--totals", "named.1").stderr


def test_one_id_a_stand_in_calls_from_one_on_rows_that_add_up(tmp_path: Path, made: Path) -> None:
    clew = machine(tmp_path, made)
    diff = json.loads(clew("show", "--diff", "named", "--json").stdout)
    for made_of in diff["stand_ins"]:
        assert f"recall {made_of['id']}" in made_of["text"]
    shown = json.loads(clew("show", "named", "--json").stdout)
    assert sum(part["tokens"] for part in shown["parts"]) == shown["sent"]
    assert sum(node["tokens"] for node in shown["nodes"]) == shown["sent"], "it has no system prompt"
    ids = {node["stands_for"]["id"] for node in shown["nodes"] if "stands_for" in node}
    assert ids >= {made_of["id"] for made_of in diff["stand_ins"]}
    calls = json.loads(clew("show", "--calls", "named", "--json").stdout)
    assert [call["number"] for call in calls] == list(range(1, 25))
    assert shown["call"] == 24


async def test_every_face_names_the_window_that_the_last_call_had(tmp_path: Path, made: Path) -> None:
    """Whatever the one who looks would give it: here that of the model, which is far larger."""
    clew = Shell(tmp_path)
    shutil.copy(made, clew.store)
    for kind in ("named", "forked"):
        run = partial(asyncio.to_thread, clew)
        shown = json.loads((await run("show", kind, "--json")).stdout)
        assert (shown["limit"], shown["reserve"]) == (5_500, 500)
        call = json.loads((await run("show", "--calls", kind, "--json")).stdout)[-1]
        assert (call["limit"], call["window"], call["tokens"]) == (5_500, 6_000, shown["sent"])
        before = json.loads((await run("show", "--preview", kind, "--json")).stdout)["tokens"]
        assert (before["before"], before["limit"]) == (shown["sent"], 5_500)
        store = SQLite(clew.store)
        looking = config_engine(assembled(places(tmp_path)), store)
        branch = (await Sessions(looking).get(kind)).branch
        one = Subject(looking, "default", branch, None)
        window = await one.conversation.window()
        assert (window.limit, window.reserve, window.sent) == (5_500, 500, shown["sent"])
        assert "tokens of 5,500, " in (await ACTS["compact"].ask(one, {})).sentences[0]
        assert (await ACTS["undo"].ask(one, {})).sentences[0].endswith("tokens, of 5,500.")
        answers = Answers(Reach(looking, "default", None, kind), str)
        assert "left of 6,000 tokens; model" in await answers.status("", 8_000)
        if kind == "named":
            async with chatting(store, tmp_path / "folder", "http://127.0.0.1:9", kind) as hand:
                assert "window 6,000" in hand.chat.meter.words
                assert "reserve 500" in hand.chat.meter.words
        await store.close()
        undone = await run("undo", kind)
        assert undone.stdout.endswith("tokens of 5,500\n"), undone.stderr


# --- every face -------------------------------------------------------------------------------------------------------

Face = Callable[[Path, Path], Awaitable[str]]  # what it says, of a store and a folder


async def state(path: Path) -> Mapping[str, Any]:
    """What is in a log, but for times, and ids of what was made by an act."""
    async with opened(path) as engine:
        every = await Sessions(engine).all()
        one = await Sessions(engine).conversation("named")
        view = await one.view()
        return {
            "sessions": sorted(
                (s.name or "", s.number, s.cause, s.tags, bool(s.archived), bool(s.undone), s.items) for s in every
            ),
            "view": [node.item.text for node in view.nodes],
            "pins": [node.id for node, _ in await one.pins()],
            "method": await one.method(),
        }


def by_command(*args: str) -> Face:
    async def act(path: Path, folder: Path) -> str:
        clew = Shell(folder)
        clew.store = path
        clew.configure(WINDOW)
        done = await asyncio.to_thread(clew, *args)
        return done.stdout if done.exit_code == 0 else done.stderr.removeprefix("clew: ").strip()

    return act


def by_page(name: str, of: str = "named", /, **given: str) -> Face:
    async def act(path: Path, folder: Path) -> str:
        async with opened(path) as engine:
            branch = (await Sessions(engine).get(of)).branch
            try:
                return await ACTS[name].do(Subject(engine, "default", branch, None), given)
            except ClewError as error:
                return str(error)

    return act


def by_chat(command: str, of: str = "named") -> Face:
    async def act(path: Path, folder: Path) -> str:
        store = SQLite(path)
        (folder / "clew.toml").write_text(WINDOW, encoding="utf-8")
        with StrictProvider([]) as provider:
            async with chatting(store, folder, provider.url, of) as hand:
                before = len(hand.chat.transcript.entries)
                await hand.enter(command)
                await hand.until(lambda: len(hand.chat.transcript.entries) > before)
                told = hand.problem or hand.chat.transcript.entries[-1].text
        await store.close()
        return told

    return act


def by_agent(name: str, /, **given: Any) -> Face:
    async def act(path: Path, folder: Path) -> str:
        async with opened(path) as engine:
            view = await engine.reopen("default", (await Sessions(engine).get("named")).branch)
            came = await ContextController(engine).answer(view, name, given)
            return came.text.removeprefix("Error: ") if came.failed else came.text

    return act


def by_mcp(name: str, *given: Any) -> Face:
    async def act(path: Path, folder: Path) -> str:
        async with opened(path) as engine:
            try:
                told: str = await getattr(Answers(Reach(engine, "default", None, "named"), str), name)(*given)
            except ClewError as error:
                return str(error)
            return told

    return act


GONE = "0000000000"
ALIKE: dict[str, dict[str, Face]] = {
    "undo": {
        "command": by_command("undo", "named"),
        "page": by_page("undo"),
        "chat": by_chat("/undo"),
    },
    "fork": {"command": by_command("fork", "named", "new one"), "page": by_page("fork", name="new one")},
    "fork at a call": {
        "command": by_command("fork", "named", "new one", "--call", "7"),
        "page": by_page("fork", name="new one", call="7"),
    },
    "tag": {
        "command": by_command("set", "named", "--tag", "two words", "--tag", "one"),
        "page": by_page("tag", tags="two words, one"),
    },
    "archive": {"command": by_command("set", "named", "--archive"), "page": by_page("archive")},
    "method": {
        "command": by_command("set", "named", "--method", "llm"),
        "page": by_page("method", method="llm"),
        "chat": by_chat("/method llm"),
    },
    "compact": {
        "chat": by_chat("/compact page 3"),
        "page": by_page("compact", focus="page 3"),
        "agent": by_agent("summarize_context", focus="page 3"),
    },
}


@pytest.mark.parametrize("act", ALIKE)
async def test_each_face_that_offers_an_act_does_the_same(tmp_path: Path, made: Path, act: str) -> None:
    found = {}
    for face, do in ALIKE[act].items():
        folder = tmp_path / face
        folder.mkdir()
        path = Path(shutil.copy(made, folder / "log.db"))
        await do(path, folder)
        found[face] = await state(path)
    before = await state(Path(shutil.copy(made, tmp_path / "plain.db")))
    [first, *others] = found.values()
    assert first != before, "it did something"
    assert all(other == first for other in others), found.keys()


# --- who wrote a chapter ----------------------------------------------------------------------------------------------


async def written(path: Path) -> str:
    """Have a model write of the conversation that is named; the id of its chapter."""
    store = SQLite(path)
    author = ByModel(ScriptedModel(write_chapter, name="gpt-4o"), size=400)
    engine = Engine(store, BUDGET, Settings(author=author, patience=5))
    view = await engine.reopen("default", (await Sessions(engine).get("named")).branch)
    view = await engine.compact(view)
    found = [one for one in await Conversation.of(engine, view).chapters() if one.author != "code"]
    await engine.close(store=True)
    assert found, "a model wrote"
    return found[0].id


@pytest.fixture(scope="module")
def told(made: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    path = Path(shutil.copy(made, tmp_path_factory.mktemp("chapters") / "clew.db"))
    return path, asyncio.run(written(path))


async def test_a_chapter_becomes_code_s_alike_on_each_face_and_an_undo_takes_that_back(
    tmp_path: Path, told: tuple[Path, str]
) -> None:
    path, id = told
    plain = await state(path)
    views, words = [], []
    faces = [by_command("undo", "named", "--chapter", id), by_page("rewrite", id=id), by_chat(f"/rewrite {id}")]
    for n, do in enumerate(faces):
        folder = tmp_path / str(n)
        folder.mkdir()
        own = Path(shutil.copy(path, folder / "log.db"))
        words.append(await do(own, folder))
        views.append(await state(own))
        async with opened(own) as engine:
            one = await Sessions(engine).conversation("named")
            chapters = {each.id: each for each in await one.chapters() if each.node}
            assert chapters[id].author == "code", words
            assert any("written by gpt-4o" in text for text in plain["view"])
            assert len(await one.recall(id)) > 1, "its originals are behind it as before"
            assert any(fate.id for fate in (await engine.covered(await one.view())).fates)
        (again := folder / "undo").mkdir()
        await by_command("undo", "named")(own, again)
        assert (await state(own))["view"] == plain["view"]
    assert all(view == views[0] for view in views), words
    assert views[0]["view"] != plain["view"]
    assert sum(map(len, views[0]["view"])) < 1.2 * sum(map(len, plain["view"]))


def test_every_look_says_who_wrote_a_chapter_and_what_it_cost(tmp_path: Path, told: tuple[Path, str]) -> None:
    path, id = told
    clew = Shell(tmp_path)
    clew.store = path
    clew.configure(WINDOW)
    listed = json.loads(clew("show", "--chapters", "named", "--json").stdout)
    model = next(one for one in listed if one["id"] == id)
    assert (model["author"], model["state"]) == ("gpt-4o", "in view")
    assert {one["author"] for one in listed if one["state"] == "in view"} == {"gpt-4o", "code"}
    [asked] = model["questions"]
    assert "You keep the record of a conversation" in asked["asked"]
    assert "<full>" in asked["answer"]
    assert model["cost"] == asked["cost"] > 0
    whole = " ".join(clew("show", "named", "--chapter", id).stdout.split())
    assert "You keep the record of a conversation" in whole
    assert "<full>" in whole
    shown = clew("show", "named", "--json")
    authors = {
        node["stands_for"]["author"]: node["stands_for"]
        for node in json.loads(shown.stdout)["nodes"]
        if "stands_for" in node
    }
    assert authors["gpt-4o"]["cost"] == pytest.approx(asked["cost"])
    assert "by gpt-4o" in clew("show", "named").stdout
    assert {one["author"] for one in json.loads(clew("show", "--diff", "named", "--json").stdout)["stand_ins"]} >= {
        "gpt-4o"
    }
    assert json.loads(clew("sessions", "--totals", "named", "--json").stdout)["authors"]["gpt-4o"] == 1
    assert "gpt-4o (1)" in clew("sessions", "--totals", "named").stdout
    assert clew("undo", "named", "--chapter", id, "--count", 2).exit_code == 2
    by_code = next(one["id"] for one in listed if one["author"] == "code")
    assert f"code wrote chapter {by_code} already" in clew("undo", "named", "--chapter", by_code).stderr
    assert "no chapter of this conversation has the id" in clew("undo", "named", "--chapter", GONE).stderr
    would = clew("undo", "named", "--chapter", id, "--dry-run")
    assert "code's words instead of gpt-4o's" in would.stdout
    assert json.loads(clew("show", "--chapters", "named", "--json").stdout) == listed, "nothing was written"


async def test_an_agent_is_told_who_wrote_its_chapters(told: tuple[Path, str]) -> None:
    async with opened(told[0]) as engine:
        answers = Answers(Reach(engine, "default", None, "named"), str)
        assert "gpt-4o (1)" in await answers.status("", 8_000)


async def test_a_preview_of_another_process_has_the_chapter_that_waits(tmp_path: Path, told: tuple[Path, str]) -> None:
    """A model's chapter whose fold was undone is what the next fold has there, whoever asks."""
    path = Path(shutil.copy(told[0], tmp_path / "log.db"))
    clew = Shell(tmp_path)
    clew.store = path
    clew.configure("[budget]\nwindow = 60_000\nreserve = 500\n")
    assert (await asyncio.to_thread(clew, "undo", "named")).exit_code == 0
    states = json.loads((await asyncio.to_thread(clew, "show", "--chapters", "named", "--json")).stdout)
    assert [one["state"] for one in states if one["author"] == "gpt-4o"] == ["waiting"]
    would = json.loads((await asyncio.to_thread(clew, "show", "--preview", "named", "--json")).stdout)
    assert "gpt-4o" in {one["author"] for one in would["stand_ins"]}


async def test_a_pin_is_the_same_on_each_face(tmp_path: Path, made: Path) -> None:
    """Of what stands in view, and of what is out of it."""
    async with opened(made) as engine:
        view = await (await Sessions(engine).conversation("named")).view()
        made_by = view.stand_ins()
        id = next(node.id for node in view.nodes if node.id not in made_by)
        said, seen = (await engine.store.load("default", view.branch)).said, {node.id for node in view.nodes}
        away = next(place.id for place in said if place.id not in seen)
    for pinned in (id, away):
        states, words = [], []
        faces = [by_command("pin", "named", pinned), by_page("pin", id=pinned), by_agent("pin", id=pinned)]
        for n, do in enumerate([*faces, by_mcp("pin", pinned, False), by_chat(f"/pin {pinned}")]):
            folder = tmp_path / f"{pinned[:6]}{n}"
            folder.mkdir()
            path = Path(shutil.copy(made, folder / "log.db"))
            words.append(await do(path, folder))
            states.append(await state(path))
        assert all(one == states[0] for one in states), words
        assert states[0]["pins"] == [pinned], words


# --- what looks and changes nothing -----------------------------------------------------------------------------------

ASKED = "Which port has part 3?"


def by_screen(command: str, *keys: str, of: str = "named") -> Face:
    """What the chat shows: a text that is read, ids that one may choose from, or why there is none."""

    async def look(path: Path, folder: Path) -> str:
        store = SQLite(path)
        async with chatting(store, folder, "http://127.0.0.1:9", of) as hand:
            await hand.enter(command)

            def told() -> str:
                return hand.problem or "".join(hand.pages())

            def offered() -> bool:
                return isinstance(hand.chat.screen, Choosing) and hand.chat.screen.is_mounted

            await hand.until(lambda: bool(told()) or offered())
            if keys:
                await hand.press(*keys)
                await hand.until(lambda: bool(told()))
            text = told() or "\n".join(str(option.id) for option in hand.chat.screen.query_one(OptionList).options)
        await store.close()
        return text

    return look


def by_address(address: str, of: str = "named") -> Face:
    """The text of a page at an address, as a browser has it that asks this machine."""

    async def look(path: Path, folder: Path) -> str:
        parts: list[bytes] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request"}

        async def send(message: Mapping[str, Any]) -> None:
            parts.append(message.get("body", b""))

        async with opened(path) as engine:
            newest = await Sessions(engine).get(of)
            where, _, query = address.format(branch=newest.branch, session=newest.id).partition("?")
            asked = {"type": "http", "method": "GET", "path": where, "query_string": query.encode()}
            page = Page(engine, "default", KeptInstructions(places(folder)))
            await page({**asked, "headers": [(b"host", b"127.0.0.1"), (b"hx-request", b"true")]}, receive, send)
        return html.unescape(re.sub("<[^>]*>", "", b"".join(parts).decode()))

    return look


def ids(text: str) -> list[str]:
    """The first ids that are named."""
    return [*dict.fromkeys(found[:10] for found in re.findall(r"\b[0-9a-f]{10,}\b", text))][:3]


def sizes(text: str) -> tuple[str, str]:
    """Tokens before and after a compaction."""
    found = re.search(r"([\d,]+) (?:→|tokens became) ([\d,]+)", text)
    assert found, text
    return found[1], found[2]


def stand_ins(text: str) -> set[str]:
    """The ids of what a compaction put there, after a mark in a terminal, and before its text on a page."""
    return {a or b for a, b in re.findall(r"▸ ([0-9a-f]{10}) |tokens · recall ([0-9a-f]{10})", text)}


LOOKS: dict[str, tuple[Callable[[str], object], dict[str, Face]]] = {
    "search": (
        ids,
        {
            "command": by_command("search", ASKED, "--in", "named"),
            "page": by_address("/clew/search?q=Which+port+has+part+3%3F&in={branch}"),
            "chat": by_screen(f"/search {ASKED}"),
            "mcp": by_mcp("search", ASKED, "named", 8_000),
        },
    ),
    "preview": (
        sizes,
        {
            "command": by_command("show", "--preview", "named"),
            "page": by_address("/clew/c/{branch}/act/compact"),
        },
    ),
    "preview with a focus": (
        sizes,
        {
            "command": by_command("show", "--preview", "named", "--focus", "page 3"),
            "page": by_address("/clew/c/{branch}/act/compact?focus=page+3"),
        },
    ),
    "diff": (
        sizes,
        {
            "command": by_command("show", "--diff", "named"),
            "chat": by_screen("/lost"),
            "mcp": by_mcp("lost", "named", 8_000),
        },
    ),
    "what a diff puts there": (
        stand_ins,
        {
            "command": by_command("show", "--diff", "named"),
            "page": by_address("/clew/c/{branch}/compaction/{session}"),
            "chat": by_screen("/lost"),
        },
    ),
}


FACES = {"command": "cli", "page": "page", "chat": "chat", "agent": "control", "mcp": "mcp"}
# Who has them tried by tests of their own, below and above.
APART = {
    "pin": {*FACES},
    "rewrite": {"command", "page", "chat"},
    "recall": {*FACES},
    "search": {"agent"},
    "preview": {"chat"},
    "diff": {"page"},
}
CALLED = re.compile(
    r"(?:\bone|\bconversation|\(\)\)|_reach|\bfound|\bsessions)"
    r"\.(undo|fork|pin|tag|archive|switch|compact|rewrite|preview|diff|recall|search)\("
)


def test_every_face_is_tried_with_each_act_that_its_code_calls() -> None:
    tried = {(act, face) for act, faces in APART.items() for face in faces}
    tried |= {(act.split()[0], face) for act, faces in ALIKE.items() for face in faces}
    tried |= {(act.split()[0], face) for act, (_, faces) in LOOKS.items() for face in faces}
    for face, folder in FACES.items():
        source = "\n".join(file.read_text("utf-8") for file in (SOURCE / folder).glob("*.py"))
        called = {"method" if act == "switch" else act for act in CALLED.findall(source)}
        assert called, face
        assert not {(act, face) for act in called} - tried


@pytest.mark.parametrize("look", LOOKS)
async def test_each_face_that_offers_a_look_shows_the_same(tmp_path: Path, made: Path, look: str) -> None:
    read, faces = LOOKS[look]
    before, shown = await state(made), {}
    for face, do in faces.items():
        (folder := tmp_path / face).mkdir()
        path = Path(shutil.copy(made, folder / "log.db"))
        shown[face] = read(await do(path, folder))
        assert await state(path) == before, "nothing changed"
    [first, *others] = shown.values()
    assert first
    assert all(other == first for other in others), shown


async def test_a_chat_previews_what_its_next_request_would_be(tmp_path: Path) -> None:
    """With its own tools and instructions, which are those of the conversation only once it has had it."""
    clew = Shell(tmp_path)
    store = SQLite(clew.store)
    with StrictProvider([Answer("It is read.")] * 3, window=200_000) as provider:
        async with chatting(store, tmp_path / "folder", provider.url, "work") as hand:
            for n in range(3):
                await hand.say(f"Page {n} says that part {n} has port {8000 + n}. " + "It is a long page. " * 200)
            await hand.enter("/preview")
            shown = await hand.page("If it were compacted now")
    await store.close()
    assert sizes((await asyncio.to_thread(clew, "show", "--preview", "work")).stdout) == sizes(shown)


async def test_an_original_is_the_same_on_each_face(tmp_path: Path, made: Path) -> None:
    async with opened(made) as engine:
        one = await Sessions(engine).conversation("named")
        best = (await one.search(ASKED))[0].found.id
        [original] = await one.recall(best)
    faces = {
        "command": by_command("recall", best),
        "page": by_address(f"/clew/c/{{branch}}/behind/{best}"),
        "chat": by_screen(f"/search {ASKED}", "enter"),
        "agent": by_agent("recall", id=best),
        "agent's search": by_agent("search_history", query=ASKED),
        "mcp": by_mcp("recall", best, "", "", 8_000),
    }
    for face, do in faces.items():
        (folder := tmp_path / face).mkdir()
        shown = await do(Path(shutil.copy(made, folder / "log.db")), folder)
        assert original.item.text[:200] in " ".join(shown.split()), face


REFUSED: dict[str, dict[str, Face]] = {
    f"no item has the id {GONE}": {
        "command": by_command("recall", GONE),
        "pin": by_command("pin", "named", GONE),
        "page": by_page("pin", id=GONE),
        "agent": by_agent("recall", id=GONE),
        "agent's pin": by_agent("pin", id=GONE),
        "mcp": by_mcp("recall", GONE, "", "", 8_000),
        "mcp's pin": by_mcp("pin", GONE, False),
    },
    "short has no compaction to show": {
        "command": by_command("show", "--diff", "short"),
        "chat": by_screen("/lost", of="short"),
    },
    "there is nothing to undo: no compaction of this conversation is left that was not undone already": {
        "command": by_command("undo", "short"),
        "page": by_page("undo", "short"),
        "chat": by_chat("/undo", "short"),
    },
    "a conversation named forked already exists; choose another name": {
        "command": by_command("fork", "named", "forked"),
        "page": by_page("fork", name="forked"),
    },
    "give a name that can be printed, of 1 to 200 characters": {
        "command": by_command("fork", "named", "x" * 201),
        "page": by_page("fork", name="x" * 201),
    },
    "no call 99 in named; there are 1 to 24": {
        "command": by_command("fork", "named", "far", "--call", "99"),
        "resume": by_command("resume", "named", "--call", "99"),
        "page": by_page("fork", name="far", call="99"),
    },
    "give a tag that can be printed, of 1 to 200 characters": {
        "command": by_command("set", "named", "--tag", "x" * 201),
        "page": by_page("tag", tags="x" * 201),
    },
}


@pytest.mark.parametrize("words", REFUSED)
async def test_an_error_has_the_same_words_on_each_face(tmp_path: Path, made: Path, words: str) -> None:
    for n, (face, do) in enumerate(REFUSED[words].items()):
        folder = tmp_path / str(n)
        folder.mkdir()
        path = Path(shutil.copy(made, folder / "log.db"))
        before = await state(path)
        told = await do(path, folder)
        assert told.startswith(words), face
        assert await state(path) == before


async def test_who_decides_is_refused_alike_where_there_is_no_name(tmp_path: Path, made: Path) -> None:
    async with opened(made) as engine:
        own = next(s for s in await Sessions(engine).all() if s.name is None).branch
    words = f"{own[:10]} has no name, and only conversations with one can be switched"
    for n, do in enumerate([by_command("set", own, "--method", "llm"), by_page("method", own, method="llm")]):
        folder = tmp_path / str(n)
        folder.mkdir()
        assert (await do(Path(shutil.copy(made, folder / "log.db")), folder)).startswith(words)


async def test_a_dry_run_says_what_would_be_and_changes_nothing(tmp_path: Path, made: Path) -> None:
    path = Path(shutil.copy(made, tmp_path / "log.db"))
    before = await state(path)
    async with opened(path) as engine:
        one = await Sessions(engine).conversation("named")
        id = (await one.view()).nodes[-1].id

        async def all_of(dry_run: bool) -> list[Any]:
            acts: list[Callable[[Conversation], Awaitable[Any]]] = [
                lambda one: one.archive(dry_run=dry_run),
                lambda one: one.undo(dry_run=dry_run),
                lambda one: one.fork("new one", dry_run=dry_run),
                lambda one: one.pin([id], dry_run=dry_run),
                lambda one: one.tag(["a"], dry_run=dry_run),
                lambda one: one.switch("llm", dry_run=dry_run),
            ]
            found = [await act(one) for act in acts]
            left = ("view", "session", "source")
            return [{f.name: getattr(one, f.name) for f in fields(one) if f.name not in left} for one in found]

        would = await all_of(True)
        assert await state(path) == before
        assert await all_of(False) == would
    assert await state(path) != before
