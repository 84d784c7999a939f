"""A model in the place of people: it gets a sheet, and what it answers is kept beside."""

import asyncio
from pathlib import Path

from benchmark.progress import bar
from clew.errors import BadRequest
from clew.llm import named
from clew.steps.chapters.model import Model, Prompt
from reading.sheets import parsed

ROOM = 16_000  # tokens of an answer, a model's thinking with it
AT_ONCE = 4
TRIES = 2  # for a model that answers with something else than JSON
PATIENCE = 600.0  # seconds


async def ask(name: str, base_url: str | None, sheets: Path, out: Path) -> None:
    """Every sheet that has no answer yet."""
    model = named(f"{base_url}#{name}" if base_url else name, timeout=PATIENCE)
    try:
        await ask_model(model, sheets, out)
    finally:
        await model.close()


async def ask_model(model: Model, sheets: Path, out: Path) -> None:
    """The same, of a model that is at hand."""
    out.mkdir(parents=True, exist_ok=True)
    left = [sheet for sheet in sorted(sheets.glob("*.md")) if not (out / f"{sheet.stem}.json").exists()]
    gate = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def one(sheet: Path) -> None:
        nonlocal done
        async with gate:
            text = await _answer(model, sheet)
        (out / f"{sheet.stem}.json").write_text(text, encoding="utf-8")
        done += 1
        heard(sheet.stem, done, len(left))

    with bar(sheets.name) as heard:
        await asyncio.gather(*map(one, left))


async def _answer(model: Model, sheet: Path) -> str:
    """What a model answers to a sheet: JSON, or it is asked again."""
    prompt = Prompt(sheet.read_text(encoding="utf-8"), ROOM)
    for _ in range(TRIES - 1):
        text = (await model(prompt)).text
        try:
            parsed(text, sheet.name)
            return text
        except BadRequest:
            pass
    text = (await model(prompt)).text
    parsed(text, sheet.name)
    return text
