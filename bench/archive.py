"""Make an archive for `clew batch`: conversations over the shapes of five providers, agents' files and data sets.

    python bench/archive.py DIR --conversations 100000 --seed 7

The same seed makes the same bytes. Eight of ten conversations are lines of exports (every other file packed), one is a
file of its own of Claude Code or Codex, one is ShareGPT's form. Three of a hundred agents' sessions were compacted.
"""

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from clew.sessions.transcripts import read, write
from clew.testing import conversation

FORMATS = ("openai_chat", "anthropic", "openai_responses", "gemini")
LINES = 2_000  # conversations of one file


def body(random: Random) -> dict[str, Any]:
    """A conversation of a turn or two; one in five hundred is long."""
    turns = random.choice((1, 1, 2)) if random.random() < 0.998 else random.randrange(15, 40)
    return conversation(random.randrange(1 << 31), turns, random.choice(FORMATS), wordy=random.choice((4, 4, 8)))


def sharegpt(random: Random) -> dict[str, Any]:
    said = conversation(random.randrange(1 << 31), random.randrange(1, 4), "openai_chat", wordy=8)["messages"]
    turns = [m for m in said if isinstance(m["content"], str) and m["role"] in ("system", "user", "assistant")]
    names = {"user": "human", "assistant": "gpt", "system": "system"}
    return {"conversations": [{"from": names[m["role"]], "value": m["content"]} for m in turns]}


def session(random: Random) -> tuple[str, bytes]:
    """A session as an agent keeps it, and the name of the agent."""
    agent, form = random.choice((("claude-code", "anthropic"), ("codex", "openai_responses")))
    made = conversation(random.randrange(1 << 31), random.randrange(1, 3), form, wordy=6)
    key = "messages" if form == "anthropic" else "input"
    if random.random() < 0.03:
        made["real_compactions"] = [{"index": len(made[key]) // 2, "summary": "Work on src/clew/view.py goes on."}]
    return agent, write(read(json.dumps(made).encode()), agent)


def lines(random: Random, count: int, shared: bool) -> Iterator[bytes]:
    for _ in range(count):
        yield json.dumps(sharegpt(random) if shared else body(random), ensure_ascii=False).encode() + b"\n"


def make(folder: Path, count: int, seed: int) -> None:
    random = Random(seed)
    folder.mkdir(parents=True)
    left = count - count // 10
    number = 0
    while left:
        these = min(left, LINES)
        data = b"".join(lines(random, these, shared=number % 9 == 8))
        if number % 2:
            (folder / f"export-{number:04d}.jsonl.gz").write_bytes(gzip.compress(data, 6, mtime=0))
        else:
            (folder / f"export-{number:04d}.jsonl").write_bytes(data)
        left -= these
        number += 1
    for n in range(count // 10):
        agent, data = session(random)
        place = folder / agent / f"{n // 1000:03d}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"session-{n:06d}.jsonl").write_bytes(data)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--conversations", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    make(given.folder, given.conversations, given.seed)
