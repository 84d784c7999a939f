"""Files with one line of interest each, and models that read them: what most tests of frameworks are about."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

from clew.testing import Answer, Call

WINDOW = 8_000
TURNS = 9
KEY = re.compile(r"KEY_\d+ = \d+")


class Worked(NamedTuple):
    """What came of an agent's work, and how many calls of its model the framework itself counted, where it counts."""

    answer: str
    calls: int | None = None


def contents(path: str, lines: int = 60) -> str:
    """What is in a file: one line of interest."""
    number = int(path.removeprefix("part_").removesuffix(".py"))
    return "\n".join([f"KEY_{number} = {number * 4711}", *(f"{path} line {n} of no interest" for n in range(lines))])


def read(path: Annotated[str, "Which file"]) -> str:
    """Read a file."""
    return contents(path)


def reading(turns: int = TURNS) -> Iterator[Answer]:
    """A model that reads two files at once in each turn."""
    for n in range(0, 2 * turns, 2):
        yield Answer(calls=(Call("read", {"path": f"part_{n}.py"}), Call("read", {"path": f"part_{n + 1}.py"})))
        yield Answer(f"Read parts {n} and {n + 1}.")


def written(keys: list[str]) -> Answer:
    """A chapter with all keys in it."""
    told = "\n".join(f"The file says {key}." for key in keys)
    return Answer(f"<line>Keys.</line><short>Some keys.</short><full>\n{told}\n</full>", seconds=0.02)


class Reader:
    """A model that reads one file with each call, and writes of them when it is asked to."""

    def __init__(self, parts: int, write: Callable[[list[str]], Answer] = written) -> None:
        self.parts, self.write = parts, write
        self.read = 0
        self.live, self.questions = list[Any](), list[Any]()  # requests of the agent, and of clew

    def __call__(self, body: dict[str, Any]) -> Answer:
        said = json.dumps(body)
        if "<full>" in said:
            self.questions.append(body)
            return self.write([*dict.fromkeys(KEY.findall(said))])
        self.live.append(body)
        self.read += 1
        if self.read > self.parts:
            return Answer("All are read.")
        return Answer(calls=(Call("read", {"path": f"part_{self.read}.py"}),), seconds=0.02)
