"""The words by which each conversation is known, and what all of them say alike."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

WORD = re.compile(r"zq([a-z]{6})\d+z")
PIECE = re.compile(r"zq([a-z]{6})")  # a word that was cut
LETTERS = "abcdefghijk"
SENTENCES = (
    "The handbook describes the three steps of a release, and who may take each of them.",
    "A header with a value that is not valid ends the request, and the log says why.",
    "The service reads its settings once, when it starts, and keeps them until it ends.",
    "Please say what you need, and do not send passwords or card numbers here.",
    "I can help with accounts, cards, loans and appointments, at any hour of the day.",
    "All tests of the parser run in less than a minute on a machine of this size.",
)
ASKED = "password service error file"  # what everybody's sentences are about


def words_in(text: str) -> set[str]:
    """Every whole word that somebody planted."""
    return {found.group() for found in WORD.finditer(text)}


def owners_in(text: str) -> set[str]:
    """Whose words stand in a text, cut ones too."""
    return set(PIECE.findall(text)) if "zq" in text else set()


def owner_name(random: Random, taken: Iterable[str]) -> str:
    """Six letters that nobody has."""
    known = set(taken)
    while (name := "".join(random.choices(LETTERS, k=6))) in known:
        pass
    return name


@dataclass(frozen=True)
class Kit:
    """What all conversations of a world draw from: equal prompts, greetings, files and traces."""

    systems: tuple[str, ...]
    openings: tuple[str, ...]
    greeting: str
    report: str  # what every summary says
    files: Mapping[str, str]
    traces: tuple[str, ...]
    tasks: tuple[str, ...]  # of sub-agents
    folder: str  # with which long names begin


def kit(seed: int) -> Kit:
    """The same for the same seed."""
    random = Random(f"kit {seed}")
    files = {
        f"f{n}.py": f"def f{n}(x):\n    return x + {n}  # a file that everybody reads\n" * random.choice((4, 6, 9))
        for n in range(random.choice((2, 3, 5)))
    }
    traces = tuple(
        f'Traceback (most recent call last): File "app{n}.py", line {random.randrange(99)}, in main; return handler('
        f"request) ValueError: {_prose(random, 60, 200)}"
        for n in range(2)
    )
    return Kit(
        systems=("You are a coding agent.", "You are the assistant of a bank, and help with nothing else."),
        openings=("hi", "Please check all files of the project and fix what is broken.", "hello, let us begin"),
        greeting=f"Hello! {_prose(random, 200, 400)} How can I help?",
        report=_prose(random, 300, 900),
        files=files,
        traces=traces,
        tasks=("Look at the README and report.", "Find out why the build fails, and say so in one line."),
        folder=f"/srv/agents/{'deep/' * random.choice((37, 38, 40, 44))}",
    )


def _prose(random: Random, least: int, most: int) -> str:
    """Whole sentences, of so many characters in all."""
    text = ""
    while len(text) < least:
        text = f"{text} {random.choice(SENTENCES)}".strip()
    return text[:most]
