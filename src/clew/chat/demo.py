"""`clew chat --demo`: a scripted model on loopback, a small window, and a folder, settings and a log of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from itertools import chain, cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from clew.config import Places
from clew.testing.provider import Answer, Call, StrictProvider

DEMO_WINDOW = 12_000  # tokens: a log takes more of it than it may
LOGGED = 120  # lines of a log
LOGS = ("server.log", "server.log.1")
READ_NEW, READ_OLD = (Call("read_file", {"path": name}) for name in LOGS)
COUNT_FAULTS = Call("run", {"command": "for log in server.log*; do echo $log; sleep 1; grep -c ' 500 ' $log; done"})
ACTS = (Call("list_files"), None, READ_NEW, None, READ_OLD, None, COUNT_FAULTS, None)  # one for each text
AGAIN_FROM = 2  # the answer with which the script begins anew
PIECE_PAUSE = 0.01  # seconds between two pieces of an answer


@contextmanager
def demonstration() -> Iterator[Places]:
    """A place to chat in with no key; when it is left, all of it is deleted."""
    answers = script()
    turns = chain(answers, cycle(answers[AGAIN_FROM:]))
    with (
        TemporaryDirectory(prefix="clew-chat-", ignore_cleanup_errors=True) as folder,
        StrictProvider(lambda _: next(turns), window=DEMO_WINDOW) as provider,
    ):
        work = Path(folder, "shop")
        work.mkdir()
        for day, name in enumerate(LOGS):
            (work / name).write_text(_log(day), encoding="utf-8")
        settings = {"CLEW_AGENT_MODEL": f"{provider.url}/v1#demo", "CLEW_BUDGET_WINDOW": str(DEMO_WINDOW)}
        settings["CLEW_SUMMARY_MODEL"] = "none"  # a question for a chapter would take an answer out of the script
        yield Places({"HOME": folder, "USERPROFILE": folder, **settings}, work)


def script() -> list[Answer]:
    """What the model says, and calls."""
    said = files("clew.chat").joinpath("demo.md").read_text(encoding="utf-8").split("---\n")
    return [
        Answer(text.strip(), (call,) if call else (), pause=PIECE_PAUSE)
        for text, call in zip(said, ACTS, strict=True)
    ]  # fmt: skip


def _log(day: int) -> str:
    lines = []
    for n in range(LOGGED):
        status = "500 payment did not answer" if n % 8 == 7 else "200"
        lines.append(f"2025-03-0{4 - day} 10:{n // 60:02}:{n % 60:02} POST /orders/{1100 + n} {status} in {n * 7} ms")
    return "\n".join(lines) + "\n"
