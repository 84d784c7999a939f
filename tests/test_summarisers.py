"""Code with the notes of a model, on a part of the session that ships."""

import gzip
import json

from benchmark.judging import Cut
from clew import Prompt
from clew.steps.notes.writer import Writer
from clew.testing import ScriptedModel
from conftest import SAMPLE
from summarisers import Row, cited, invented, told

ITEMS = 12  # of the session: one chunk for a model that reads slowly


def shipped() -> Cut:
    """The first messages of the shipped session, to be told in a third of their size."""
    with gzip.open(SAMPLE, "rt", encoding="utf-8") as lines:
        messages = [m for m in json.loads(next(lines))["messages"] if m["role"] != "system"][:ITEMS]
    size = len(json.dumps(messages))
    return Cut("shipped", messages, size // 3, size, ())


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
