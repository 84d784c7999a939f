"""A small archive of every kind that `clew batch` reads, for tests."""

import gzip
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from clew.batch import BatchSearch, begin
from clew.batch.acts import BatchAct, BatchRecord
from clew.batch.folder import BatchTotals
from clew.batch.work import work
from clew.sessions.transcripts import Transcript, read, write
from clew.testing import conversation

SHARED = {"id": "s1", "conversations": [{"from": "human", "value": "Where?"}, {"from": "gpt", "value": "In src/q.py."}]}
FORMATS = ("openai_chat", "anthropic", "openai_responses", "gemini")


def small(seed: int, turns: int = 1) -> dict[str, Any]:
    return conversation(seed, turns, FORMATS[seed % 4], wordy=6)


def make(folder: Path) -> Path:
    """44 conversations: two exports, one of them packed, a list, two sessions; and two that cannot be read."""
    folder.mkdir()
    lines = [json.dumps(small(seed)) for seed in range(30)]
    lines[7] = lines[7][:-20]
    (folder / "export.jsonl").write_text("\n".join(lines) + "\n\n")
    packed = [json.dumps(small(seed)) for seed in range(30, 40)]
    (folder / "packed.jsonl.gz").write_bytes(gzip.compress("\n".join(packed).encode()))
    (folder / "list.json").write_text(json.dumps([SHARED, small(40)], indent=1))
    talk = conversation(5, 3, "anthropic", wordy=8)
    cut = [{"index": len(talk["messages"]) // 2, "summary": "All is well."}]
    session = read(json.dumps(talk | {"real_compactions": cut}).encode())
    for agent in ("claude-code", "codex"):
        (folder / "agents" / agent).mkdir(parents=True)
        (folder / "agents" / agent / "one.jsonl").write_bytes(write(session, agent))
    (folder / "package.json").write_text('{"name": "no conversation"}')
    return folder


def serially(act: BatchAct, paths: list[Path], out: Path, task_bytes: int) -> BatchTotals:
    """All in this process, one task after the other."""
    run = begin(act, paths, out, task_bytes)
    for task in run.tasks:
        work(run.job, task)
    return run.job.folder.close()


def results(out: Path) -> bytes:
    """All that must be the same, whoever did the work."""
    parts = b"".join(part.read_bytes() for part in sorted((out / "parts").glob("*.jsonl")))
    return parts + (out / "failures.jsonl").read_bytes()


@dataclass(frozen=True)
class Deadly(BatchSearch):
    """Ends its process in the conversations that have a word, so many times."""

    name: ClassVar[str] = "deadly"
    word: str = ""
    marks: str = ""  # a folder
    times: int = 1

    def __call__(self, transcript: Transcript) -> BatchRecord | None:
        if self.word in str(transcript.messages):
            died = len(list(Path(self.marks).iterdir()))
            if died < self.times:
                Path(self.marks, f"{died}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(transcript)
