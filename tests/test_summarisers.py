"""Code with the small local model beside code alone, on a part of the session that ships."""

import gzip
import json
import os
import sys
from pathlib import Path

import pytest

from benchmark.judging import Cut
from clew import ClewError, Prompt
from clew.core.items import Item
from clew.facts import sheet
from clew.facts.worth import trace, worths
from clew.llm.download import source
from clew.llm.local import LocalModel
from clew.llm.weights import SMOLLM2, fetch
from clew.steps.notes.allowance import Allowance, Limits
from clew.steps.notes.writer import Writer
from clew.testing import ScriptedModel
from clew.wire import decode
from conftest import SAMPLE
from summarisers import Row, cited, invented, told

ROOT = Path(__file__).parents[1]
ITEMS = 12  # of the session: one chunk for a model that reads slowly


@pytest.fixture(scope="session")
def gguf() -> Path:
    """The real weights, fetched once into a folder of the project; where that cannot be, the test is skipped."""
    try:
        return fetch(SMOLLM2, ROOT / ".models", source(os.environ))
    except ClewError as error:
        if "sha256" in str(error):
            raise
        print(f"\nNO LOCAL MODEL, ITS TESTS ARE SKIPPED: {error}", file=sys.__stderr__)
        pytest.skip(f"no local model: {error}")


def shipped() -> Cut:
    """The first messages of the shipped session, to be told in a third of their size."""
    with gzip.open(SAMPLE, "rt", encoding="utf-8") as lines:
        messages = [m for m in json.loads(next(lines))["messages"] if m["role"] != "system"][:ITEMS]
    size = len(json.dumps(messages))
    return Cut("shipped", messages, size // 3, size, ())


def worth(text: str, cut: Cut) -> float:
    """How much of what an agent may need again is in a text."""
    items = decode({"messages": list(cut.messages)}, "openai_chat")[1]
    likely = worths(*trace([sheet(item) for item in items]))
    return sum(likely.get(fact, 0.0) for fact in sheet(Item("text", "user", text)).facts)


async def test_the_local_model_invents_nothing_and_costs_nothing(gguf: Path) -> None:
    cut, row = shipped(), Row("local")
    model = LocalModel(gguf, window=2_048)
    writer = Writer(model, size=100, seconds=300, allowance=Allowance(Limits(calls=1)))
    try:
        merged = await told(cut, row, writer)
    finally:
        await model.close()
    plain = await told(cut, Row("code"), None)
    assert invented(merged, cut.messages) == set()
    assert worth(merged, cut) >= worth(plain, cut)


async def test_a_line_goes_in_with_its_source_and_an_invented_one_does_not() -> None:
    cut = shipped()
    known = max((line for m in cut.messages for line in str(m.get("content")).splitlines()), key=len)[:200]
    summary = f"# Findings\n{known}\nThe bug is in src/nowhere/never_said.py, see never_said.Nobody for more.\n"
    row = Row("good")
    text = await told(cut, row, Writer(ScriptedModel(lambda prompt: cited(summary, prompt), window=400_000)))
    assert row.notes
    assert row.rejected == 1
    assert "never_said" not in text
    assert invented(text, cut.messages) == set()


def test_invented_names_are_seen() -> None:
    assert invented("[head] see src/made/up.py", [{"role": "user", "content": "hi"}]) == {"src/made/up.py"}


def test_a_cited_line_names_the_item_that_has_its_words() -> None:
    prompt = Prompt("n1 user: nothing of the kind\nn2 result: the parser fails at line forty", 100)
    assert "- The parser fails at line forty [n2]" in cited("The parser fails at line forty", prompt)
