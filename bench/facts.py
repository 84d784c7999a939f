"""A compactor for the corpus scorer, and what it costs: python bench/facts.py --cost [--corpus DIR]

score.py bench.facts:compactor scores the digest; `tailed` keeps a quarter of the size verbatim. `--cost` prints the CPU
of each part as a multiple of counting the tokens of the same text with clew, which remembers the pieces of words it
has seen; the last column is Summarize as a multiple of a published tokenizer without such a memory (rs_bpe, else a
cached tiktoken; `references.txt` has it). Each row is of other conversations: no cache of ours helps.
"""

import argparse
import asyncio
import gc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from gzip import open as unzipped
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any, TypeVar

from clew.budget import Budget, Meter
from clew.coverage import ledger, words_in
from clew.facts import Sheet, digest, sheet
from clew.finding import Index, texts
from clew.items import Digests, Item
from clew.steps import Summarize
from clew.tokens import counter_for, vocabulary_for
from clew.tokens.cached import encoding
from clew.view import View
from clew.wire import decode

Messages = Sequence[Mapping[str, Any]]
Result = tuple[str, Callable[[str], str]]
T = TypeVar("T")

SIZES = (50_000, 200_000, 766_000, 1_000_000)  # tokens
CHARACTERS = 3.4  # of a token, in such conversations
GOAL = 0.1  # of the history, for Summarize
MODEL = "gpt-4o"

_items: dict[int, tuple[Any, list[Item]]] = {}  # by identity of the message, which is kept alive with them
_sheets: dict[int, list[Sheet]] = {}


def compactor(messages: Messages, target: int) -> Result:
    """The digest in `target` characters, and a recall over what it stands for."""
    items, sheets = read(messages)
    return digest(items, target, sheets=sheets).text, recall(items)


def recall(items: Sequence[Item]) -> Callable[[str], str]:
    """The product's own answer to a question."""
    index = Index(texts(Digests().chain(items)))
    return lambda query: index.answer(query, 8_000)


def tailed(messages: Messages, target: int) -> Result:
    """The same with the newest quarter of the size verbatim, as the product sends it."""
    items, sheets = read(messages)
    tail, cut = "", len(items)
    while cut and len(tail) + len(items[cut - 1].text) + 1 <= target // 4:
        cut -= 1
        tail = f"{items[cut].text}\n{tail}"
    old = digest(items[:cut], target - len(tail) - 1, sheets=sheets[:cut]).text
    return f"{old}\n{tail}", recall(items)


def read(messages: Messages) -> tuple[list[Item], list[Sheet]]:
    """Items and sheets of messages, each read once however often they are scored."""
    items: list[Item] = []
    sheets: list[Sheet] = []
    for message in messages:
        if id(message) not in _items:
            found = [] if message["role"] == "system" else decode({"messages": [message]}, "openai_chat")[1]
            _items[id(message)] = (message, found)
            _sheets[id(message)] = [sheet(item) for item in found]
        items += _items[id(message)][1]
        sheets += _sheets[id(message)]
    return items, sheets


# --- what it costs --------------------------------------------------------------------------------------------------


def histories(folder: Path, sizes: Sequence[int]) -> Iterator[list[Item]]:
    """For each size other conversations, one after the other, cut where that many tokens are reached."""
    talks = _talks(folder)
    for size in sizes:
        items: list[Item] = []
        left = size * CHARACTERS
        while left > 0:
            for item in next(talks):
                items.append(item)
                left -= len(item.text)
                if left <= 0:
                    break
        yield items


def _talks(folder: Path) -> Iterator[list[Item]]:
    for path in sorted(folder.glob("*.jsonl.gz")):
        with unzipped(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                if messages := [m for m in json.loads(line).get("messages", ()) if m["role"] != "system"]:
                    yield decode({"messages": messages}, "openai_chat")[1]


def timed(act: Callable[[], T]) -> tuple[float, T]:
    """The CPU an act takes, and what it gives."""
    gc.collect()
    start = process_time()
    done = act()
    return process_time() - start, done


def costs(items: Sequence[Item]) -> tuple[int, dict[str, float]]:
    """The tokens of a history, how fast they are counted, and what each part of compacting it costs in times that."""
    count = vocabulary_for(MODEL).count
    whole = sum(len(item.text) for item in items)
    unit, tokens = timed(lambda: sum(count(item.text) for item in items))
    found: dict[str, float] = {}
    found["sheets"], sheets = timed(lambda: [sheet(item) for item in items])
    for share in (0.05, 0.1):
        found[f"digest {share:.0%}"], _ = timed(lambda size=int(share * whole): digest(items, size, sheets=sheets))  # type: ignore[misc]
    view, budget = _indexed(items, tokens)
    found["Summarize"], told = timed(lambda: asyncio.run(Summarize()(view, budget)))
    found["ledger"], _ = timed(lambda: ledger(view.nodes, words_in(told.nodes, told.past), told.past))
    table = {"Mtoken/s": tokens / unit / 1e6} | {name: seconds / unit for name, seconds in found.items()}
    if plain := published():
        table["/ plain"] = found["Summarize"] / timed(lambda: sum(plain(item.text) for item in items))[0]
    return tokens, table


def published() -> Callable[[str], int] | None:
    """The count of the same vocabulary by somebody else's tokenizer, if one is installed."""
    if find_spec("rs_bpe"):
        count: Callable[[str], int] = import_module("rs_bpe.bpe").openai.o200k_base().count
        return count
    return encoding("o200k_base")


def _indexed(items: Sequence[Item], tokens: int) -> tuple[View, Budget]:
    """A history whose items were all measured and read when they came, and too small a budget for it."""
    digests = Digests()
    frame, _ = decode({"messages": []}, "openai_chat")
    view = View(frame, tuple(digests.chain(items)), digests)
    budget = Budget(int(GOAL * tokens), reserve=0, high=1, low=1, meter=Meter(counter_for(MODEL)))
    budget.size(view)
    words_in(view.nodes, view.past)
    return view, budget


def main() -> None:
    """Print the table; the first, small history only loads the vocabulary, which takes longer than all the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cost", action="store_true", required=True)
    parser.add_argument("--corpus", type=Path, default=Path(__file__).parents[2] / "shared" / "corpus" / "dev")
    warm, *rest = histories(parser.parse_args().corpus, (20_000, *SIZES))
    names = list(costs(warm)[1])
    print(f"{'tokens':>10} " + " ".join(f"{name:>10}" for name in names))
    if "/ plain" not in names:
        print("no published tokenizer is installed: no column `/ plain`")
    for items in rest:
        tokens, found = costs(items)
        print(f"{tokens:>10,} " + " ".join(f"{found[name]:>10.2f}" for name in names), flush=True)


if __name__ == "__main__":
    main()
