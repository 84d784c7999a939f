"""A session in a client's own shape: facts and distractors, long work around them, then one question."""

import http.client
import inspect
import queue
import tarfile
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import clew
from clew import Budget, Engine, Request, SQLite
from clew.core.view import View
from clew.engine.settings import Settings
from made_clients import CLIENTS, Client
from made_clients.judging import request_of
from made_clients.shape import UsedTool, Worked
from made_clients.wording import Pen

HERE = Path(__file__).parent
# Of the newest releases: what was recorded of them is what these shapes were made after.
SHAPES = {
    "Claude Code": "claude-2.1.325",
    "Qwen Code": "qwen-code",
    "Gemini CLI": "gemini-cli",
    "Codex": "codex",
    "opencode": "opencode",
    "pi": "pi",
}
WINDOWS = {"claude-2.1.325": 100_000}  # whose answers may have 32,000 tokens; of the others:
WINDOW = 64_000
WORK = 6_000  # characters of what a tool prints: source of the running Python, with words of every kind
PROSE = 300  # tokens of other words before and after a fact, all in one paragraph
AFTER = 26  # turns of work after the last fact
NOTE = "[data: from earlier"


class Pair(NamedTuple):
    """A fact, who said it, and a question about it; or, without a question, something else that was said."""

    by: str
    fact: str
    key: str = ""
    question: str = ""
    common: str = ""
    asked: str = ""


@dataclass(frozen=True)
class Asking:
    """What the request has that a question was asked in."""

    pair: Pair
    beside: bool  # the fact is beside the question
    elsewhere: bool  # it is in view anyway
    notes: int  # characters that were put beside the question


def pairs(name: str = "pairs") -> tuple[list[Pair], list[Pair]]:
    """Facts with their questions, and what was said beside them."""
    given = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))
    others = [Pair(d["by"], d["text"], asked=d.get("asked", "")) for d in given.get("distractor", ())]
    return [Pair(**row) for row in given["pair"]], others


def played(client: str, said: Sequence[Pair], after: int = AFTER) -> Iterator[Client]:
    """The client before each of its requests; all of a session, in which these things are said."""
    pen, random = Pen(client, "recalling"), Random(len(said))
    source = "".join(map(inspect.getsource, (tarfile, http.client, queue)))
    pages = textwrap.wrap(source, WORK, break_long_words=False, replace_whitespace=False)
    made, page = CLIENTS[client](pen, "recalling"), random.randrange(len(pages))
    told: list[Pair | None] = [*random.sample(said, len(said)), *[None] * after]
    for n, pair in enumerate(told):
        by = pair.by if pair else ""
        asks = f"Part {n}: go on." if pair is None or by not in ("user", "answer") else ""
        typed = pair.asked if pair and by == "answer" else f"{around(pen, pair)}\n\nPart {n}: go on."
        made.ask(asks or typed)
        yield made
        if by != "answer":
            page = (page + 1) % len(pages)
            printed = f"{pages[page][: WORK // 2]}\n{pair.fact}\n" if pair and by == "result" else ""
            output = f"{printed}{pages[page][WORK // 2 if printed else 0 :]}"
            made.work(Worked("Go on.", f"Step {n}.", (UsedTool(pen.id(), "shell", {"command": f"cat {n}"}, output),)))
            yield made
        made.answer(around(pen, pair) if by in ("assistant", "answer") else f"Part {n} is done.")


def around(pen: Pen, pair: Pair | None) -> str:
    """A fact amid other words: a log that tells of a text in short does not tell of it. An answer begins with it."""
    before = "" if pair and pair.by == "answer" else pen.prose(PROSE)
    return " ".join([before, pair.fact, pen.prose(PROSE)]).replace("\n\n", " ").strip() if pair else ""


def request(client: Client) -> Request:
    """What it sends now."""
    return request_of(client.sent("main", client.body()), "default")


def notes(view: View) -> list[str]:
    """What was put beside messages."""
    return [n.item.text for n in view.nodes if n.item.kind == "summary" and n.item.text.startswith(NOTE)]


async def prepared(client: str, said: Sequence[Pair], path: str, window: int = 0) -> Client:
    """The client at the end of such a session, which went through an engine with this store."""
    store = SQLite(path)
    engine = Engine(store, Budget(window=window or WINDOWS.get(client, WINDOW)), Settings(expand=False))
    for made in played(client, said):
        await engine.prepare(request(made))
    await store.close()
    return made


async def asked(made: Client, pair: Pair, path: str, window: int = 0, expand: bool = True) -> tuple[View, Any]:
    """The view and the body of the request in which a question is asked."""
    made.ask(pair.question)
    store = SQLite(path)
    try:
        view = await Engine(
            store, Budget(window=window or WINDOWS.get(made.name, WINDOW)), Settings(expand=expand)
        ).prepare(request(made))
        return view, clew.body(view)
    finally:
        await store.close()


def judged(pair: Pair, view: View) -> Asking:
    """Whether the fact is there."""
    put = notes(view)
    rest = "\n".join(n.item.text for n in view.nodes if n.item.text not in put)
    return Asking(pair, any(pair.key in note for note in put), pair.key in rest, sum(map(len, put)))
