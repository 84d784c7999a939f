"""What clew leaves of a conversation where a model writes its chapters: at once, or call by call in a small window."""

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from benchmark.judging import Messages, shown
from benchmark.methods import CLEW, view_of, without_frame
from clew import llm
from clew.compression import bounds
from clew.core.limits import Budget
from clew.core.view import View
from clew.engine.engine import Engine, Request, body
from clew.engine.settings import Settings
from clew.facts.chapters import Chapter, Written
from clew.steps import default, repair
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Model, Prompt, Reply
from clew.steps.chapters.with_chapters import WithChapters
from clew.steps.summarize import briefed
from clew.store import SQLite
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Target
from clew.wire import encode
from reading.cases import Case
from reading.sheets import Stand, stand

FILES = "files:"
WRITER = "claude-sonnet-4-5"  # by whose vocabulary sizes are counted, where it is people who write
PATIENT = 10.0**6  # seconds: nothing is told by code because somebody was slow
LOOK = 0.5  # seconds between two looks for an answer
NEAR, LOWER, TRIES = 0.95, 0.98, 6  # of the size that would be right, and times that it is tried


class ByFiles:
    """Somebody who finds questions in files and puts the answers beside them; what was answered is not asked again."""

    name, window = WRITER, 1_000_000

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    async def __call__(self, prompt: Prompt) -> Reply:
        shows = left(prompt.after) if prompt.after else ""
        text = "\n\n".join(part for part in (prompt.system, shows, prompt.text) if part)
        path = self.folder / f"{sha256(text.encode()).hexdigest()[:12]}.question.md"
        answer = path.with_suffix("").with_suffix(".answer.md")
        if not answer.exists():
            path.write_text(text, encoding="utf-8")
        while not answer.exists():
            await asyncio.sleep(LOOK)
        return Reply(answer.read_text(encoding="utf-8"))


async def at_once(case: Case, model: Model) -> str:
    """As much as may stand in for it, from one compaction."""
    said = repair(view_of(without_frame(case.messages, case.size // 2)))
    meter, written = Meter(counter_for(WRITER)), list[Written]()

    def of(tokens: int) -> Target:
        """Where a view ends that has so many tokens."""
        sizes = bounds(tokens, said.frame, [n.item for n in said.nodes], meter)
        return Target.of(sizes, meter).around(said.frame)

    async def fitted(tokens: int, chapters: Sequence[Chapter] = ()) -> tuple[str, int]:
        """The longest text found in so many characters, and its tokens: a model's has other words than code's."""
        found = list[tuple[str, int]]()
        for _ in range(TRIES):
            text = left(await briefed(default(), chapters=chapters)(said, of(tokens)))
            found.append((text, tokens))
            if NEAR * case.size <= len(text) <= case.size:
                break
            tokens = int(LOWER * tokens * case.size / len(text))
        return max(found, key=lambda one: (len(one[0]) <= case.size, len(one[0])))

    by_code, tokens = await fitted(case.size // 3)  # first: when a model is asked, the size in tokens is known
    await WithChapters(ByModel(model, seconds=PATIENT), default(), told=written.append)(said, of(tokens))
    chapters = [chapter for one in written for chapter in one.chapters]
    return (await fitted(tokens, chapters))[0] if chapters else by_code


def left(view: View) -> str:
    """What a model reads of a view."""
    return shown(encode(view.frame, (n.item for n in view.nodes))["messages"])


async def in_window(case: Case, model: Model, part: int) -> str:
    """What the last request of all has, where the window is one part of so many of the conversation."""
    said, counter = view_of(case.messages), counter_for(WRITER)
    meter = Meter(counter)
    window = (counter.frame(said.frame) + sum(counter.item(n.item) for n in said.nodes)) // part
    messages = without_frame(case.messages, 2 * window)
    author = ByModel(model, seconds=PATIENT)
    engine = Engine(SQLite(":memory:"), Budget(window=window), Settings(author=author, patience=PATIENT))
    found: Messages = ()
    calls = [n for n, message in enumerate(messages) if n and message["role"] == "assistant"]
    for stop in (*calls, len(messages)):
        asked = {"model": WRITER, "messages": [*messages[:stop]]}
        made = await engine.prepare(Request(asked, session=case.name))
        found = body(made)["messages"]
        sent, answer = meter.frame(made.frame).plus(meter.view(made)), counter.text(shown(messages[stop : stop + 1]))
        await engine.observe(made, {"prompt_tokens": sent.tokens, "completion_tokens": answer})
    await engine.close(store=True)
    return shown(found)


async def authored(
    cases: Sequence[Case], author: str, base_url: str | None, part: int | None, folder: Path
) -> list[Stand]:
    """What is left of each case; all are written at the same time, and what was written is not written again."""
    name = f"{CLEW}, a model's chapters" + (f", in a window of 1/{part}" if part else "")
    done = folder / "texts"
    done.mkdir(parents=True, exist_ok=True)

    async def one(case: Case, model: Model) -> Stand:
        path = done / f"{sha256(f'{case.name} {part}'.encode()).hexdigest()[:12]}.txt"
        if not path.exists():
            text = await (in_window(case, model, part) if part else at_once(case, model))
            path.write_text(text, encoding="utf-8")
        return stand(case, name, path.read_text(encoding="utf-8"))

    if author.startswith(FILES):
        files = ByFiles(Path(author.removeprefix(FILES)))
        return await asyncio.gather(*(one(case, files) for case in cases))
    model = llm.named(f"{base_url}#{author}" if base_url else author, timeout=PATIENT)
    try:
        return await asyncio.gather(*(one(case, model) for case in cases))
    finally:
        await model.close()
