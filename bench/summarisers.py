"""What a summariser adds to code: python bench/summarisers.py --corpus DIR [--cuts N] [--model NAME [--asked N]]

Where a product compacted a real session, at the size of the summary its LLM wrote: that summary alone, code alone, code
with a good summariser and code with a model of yours. The good one is the product's summary again, line by line,
each with the labels of items that have its words; a note goes through the same check as those of any model. `invented`
counts names in the result that are nowhere in the session. Your model reads `CALLS` chunks of the shortest cuts.
"""

import argparse
import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmark.corpus import Corpus
from benchmark.judging import FAR, SLACK, Cut, Messages, shown
from benchmark.methods import Characters, view_of, without_frame
from clew.core.limits import Budget
from clew.facts.claims import Draft
from clew.llm import Held, named
from clew.steps import Summarize
from clew.steps.notes.allowance import Allowance, CallLimits
from clew.steps.notes.check import words as words_of
from clew.steps.notes.model import Prompt
from clew.steps.notes.with_notes import WithNotes
from clew.steps.notes.writer import Writer
from clew.steps.protocol import Step
from clew.testing import ScriptedModel
from clew.tokens.meter import Meter
from clew.tokens.target import Target

SAID = {"role": "assistant", "content": "…"}
CALLS = 2  # of a model of yours, for a cut
WINDOW = 2_048  # tokens that it is shown at once: a small one reads some 120 a second
_NAME = re.compile(r"[\w.-]*(?:/[\w.-]+)+|\w+(?:[_.]\w+)+|[a-z]+(?:[A-Z][a-z0-9]+)+")
_SHOWN = re.compile(r"^(n\d+) [^:\n]+: ", re.MULTILINE)


# --- a good summariser ----------------------------------------------------------------------------------------------


def good(summary: str) -> ScriptedModel:
    """A model that says what a product's LLM said, and names the items it is taken from."""
    return ScriptedModel(lambda prompt: cited(summary, prompt), name="good", window=2_000_000)


def cited(summary: str, prompt: Prompt) -> str:
    """The lines of a summary, each with the items that have most of its words."""
    parts = _SHOWN.split(prompt.text)[1:]
    items = [(label, words_of(text)) for label, text in zip(parts[::2], parts[1::2], strict=True)]
    told = []
    for line in dict.fromkeys(raw.strip(" -*\t") for raw in summary.splitlines() if not raw.startswith("#")):
        words = words_of(line)
        best = sorted(items, key=lambda item: -len(item[1] & words))[:3]
        labels = [label for label, found in best if len(found & words) * 3 >= len(words)]
        told.append(f"- {line} [{' '.join(labels)}]")
    return "\n".join(told)


# --- the comparison -------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """What one method came to, over all cuts."""

    name: str
    kept: list[bool] = field(default_factory=list)
    bound: list[bool] = field(default_factory=list)
    far: list[bool] = field(default_factory=list)  # for each of them, whether it was last said long before
    notes: int = 0
    rejected: int = 0
    invented: int = 0
    over: int = 0
    seconds: float = 0.0

    def judge(self, corpus: Corpus, cut: Cut, text: str) -> None:
        """Add a cut."""
        self.invented += len(invented(text, cut.messages))
        if len(text) > cut.size * SLACK[0] + SLACK[1]:
            self.over += 1
            text = ""
        for need in cut.needs:
            self.kept.append(corpus.kept(text, need))
            self.bound.append(corpus.bound(text, need))
            self.far.append(need["distance_tokens"] >= FAR)

    def __str__(self) -> str:
        shares = []
        for found in (self.kept, self.bound):
            old = [x for x, far in zip(found, self.far, strict=True) if far]
            shares += [sum(found) / max(1, len(found)), sum(old) / max(1, len(old))]
        numbers = self.notes, self.rejected, self.invented, self.over
        return f"{self.name:24}" + "".join(f"{x:8.1%}" for x in shares) + "".join(f"{n:9,}" for n in numbers)


def invented(text: str, messages: Messages) -> set[str]:
    """Names in a text that nobody said."""
    source = f"{shown(messages)}\n{json.dumps(messages, ensure_ascii=False)}"
    names = {name.strip(".-") for name in _NAME.findall(text.partition("]")[2])}
    return {name for name in names if len(name) > 5 and name not in source}


async def told(cut: Cut, row: Row, writer: Writer | None) -> str:
    """The summary that clew puts in place of all that was said before a cut, at the size of the product's."""
    # With words before and after them, neither the first message nor the last is one that stays as it is.
    framed = [SAID, *without_frame(cut.messages, 0), SAID, {"role": "user", "content": "Go on."}]
    view = view_of(framed)
    target = Target.of(Budget(cut.size, 0, 1, 1, tail=0), Meter(Characters()))
    drafts: list[Draft] = []
    step: Step = WithNotes(writer, Summarize(), told=drafts.append) if writer else Summarize()
    begin = time.monotonic()
    after = await step(view, target)
    row.seconds += time.monotonic() - begin
    for draft in drafts:
        row.notes += len(draft.claims)
        row.rejected += draft.rejected
    return "\n".join(n.item.text for n in after.nodes if n.item.kind == "summary")


async def compare(corpus: Corpus, cuts: Sequence[Cut], model: Held | None) -> list[Row]:
    """The rows of all methods over the same cuts; with a model, of that and what it is compared with."""
    llm, code, merged, small = (Row(n) for n in ("LLM summary", "code", "code + good summary", "code + your model"))
    for cut in cuts:
        llm.judge(corpus, cut, cut.summary)
        code.judge(corpus, cut, await told(cut, code, None))
        merged.judge(corpus, cut, await told(cut, merged, Writer(good(cut.summary), size=4_000)))
        if model:
            limits = Allowance(CallLimits(calls=CALLS))
            small.judge(corpus, cut, await told(cut, small, Writer(model, size=200, seconds=300, allowance=limits)))
    return [llm, code, merged, *([small] if model else [])]


def show(rows: Sequence[Row], cuts: int) -> None:
    """Print a table."""
    names = ("kept", ">=2k", "bound", ">=2k")
    head = "".join(f"{n:>8}" for n in names) + "".join(f"{n:>9}" for n in ("notes", "rejected", "invented", "over"))
    print(f"{f'{cuts} cuts, {len(rows[0].kept)} needs':24}{head}   seconds")
    for row in rows:
        print(f"{row}{row.seconds:10.1f}", flush=True)


async def main() -> None:
    """Print the tables: all cuts without your model, then its cuts with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--cuts", type=int)
    parser.add_argument("--model", help="a model of yours to ask, such as http://127.0.0.1:11434/v1#llama3")
    parser.add_argument("--asked", type=int, default=20, help="cuts at which it is asked, the shortest")
    given = parser.parse_args()
    corpus = Corpus(given.corpus, given.cuts)
    cuts = corpus.real_cuts()
    show(await compare(corpus, cuts, None), len(cuts))
    if given.model:
        model = named(given.model, window=WINDOW, timeout=300.0)
        few = sorted(cuts, key=lambda cut: cut.whole)[: given.asked]
        show(await compare(corpus, few, model), len(few))
        await model.close()


if __name__ == "__main__":
    asyncio.run(main())
