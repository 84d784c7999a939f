"""Conversations that were cut, what is asked of whoever goes on, and what each method leaves of them."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from benchmark.judging import SLACK, Messages, Method, shown
from benchmark.methods import CLEW, clew
from benchmark.peers import installed
from clew.errors import BadRequest, NotFound

SHIPPED, FOLDER = "The session that ships with clew", "Sessions of a folder (`--data`)"
SUMMARY = "LLM summary"  # of the product in which the conversation was held
# What the product says around its summary.
_AROUND = re.compile(
    r"\AThis session is being continued.*?\n\n|"
    r"\n+(?:If you need specific details from before|(?:Please )?continue the conversation).*\Z",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True)
class Question:
    """What the one who goes on must be able to say."""

    id: str
    kind: str  # intent, constraint, state, artifact, error, detail or decision
    text: str
    truth: str  # from the whole conversation


@dataclass(frozen=True)
class Case:
    """A conversation up to a cut, and the characters that may stand in for it."""

    conversation: str
    cut: int
    messages: Messages
    size: int
    questions: tuple[Question, ...]
    summary: str = ""  # what a product's model wrote at this cut
    shipped: bool = False
    group: str = FOLDER  # in whose table it stands

    @property
    def name(self) -> str:
        return f"{self.conversation} at {self.cut}"


def shipped() -> list[Case]:
    """The cases that come with clew: the sample session, cut at two places."""
    with files("clew.data").joinpath("sample.jsonl.gz").open("rb") as packed, gzip.open(packed, "rt") as lines:
        talks = {talk["id"]: talk for talk in map(json.loads, lines)}
    return [_case(line, talks, True) for line in _lines(Path(__file__).parent / "cases.jsonl")]


def in_folder(folder: Path) -> list[Case]:
    """Cases of one's own: `cases.jsonl`, as the one beside this file, and sessions in `*.jsonl.gz`, wherever below."""
    found = sorted(folder.rglob("cases.jsonl"))
    if not found:
        raise NotFound(f"{folder}: no cases.jsonl there")
    lines = list(_lines(found[0]))
    wanted = {line["conv_id"] for line in lines}
    talks: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as packed:
            talks |= {t["id"]: t for t in map(json.loads, packed) if t.get("id") in wanted and "messages" in t}
    if missing := wanted - talks.keys():
        raise NotFound(f"{folder}: no session {', '.join(sorted(missing))} in its *.jsonl.gz")
    return [_case(line, talks, False) for line in lines]


def methods(wanted: Sequence[str] | None = None) -> dict[str, Method]:
    """clew, the beginning with the end, and the peers that are installed; or those of them that are wanted."""
    found: dict[str, Method] = {CLEW: clew, "head + tail": head_and_tail, **installed()[0]}
    if unknown := set(wanted or ()) - found.keys() - {SUMMARY}:
        raise BadRequest(f"no such method: {', '.join(sorted(unknown))}; there are {', '.join(found)}")
    return {name: method for name, method in found.items() if wanted is None or name in wanted}


def head_and_tail(messages: Messages, size: int) -> str:
    """The first and the last characters."""
    text = shown(messages)
    mark = "\n[…]\n"
    half = (size - len(mark)) // 2
    return text if len(text) <= size else text[:half] + mark + text[-half:]


def texts(case: Case, methods: Mapping[str, Method]) -> Iterator[tuple[str, str]]:
    """What each method leaves of a case, by the method's name, and a product's summary where there is one."""
    for name, method in methods.items():
        found = method(case.messages, case.size)
        left = found[0] if isinstance(found, tuple) else found
        text = left if isinstance(left, str) else shown(left)
        if len(text) > case.size * SLACK[0] + SLACK[1]:
            raise BadRequest(f"{name} left {len(text)} characters of {case.name}, where {case.size} are allowed")
        yield name, text
    if case.summary:
        yield SUMMARY, case.summary


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def _case(line: Mapping[str, Any], talks: Mapping[str, Any], is_shipped: bool) -> Case:
    talk, cut = talks[line["conv_id"]], line["cut_index"]
    made = (c for c in talk.get("real_compactions") or () if c["index"] == cut and c.get("summary"))
    summary = next((_AROUND.sub("", c["summary"]).strip() for c in made), "")
    size = line.get("size") or len(summary)
    if not size:
        raise BadRequest(f"{line['conv_id']} at {cut}: neither a size nor a summary that has one")
    asked = tuple(Question(q["id"], q["kind"], q["q"], q["gold"]) for q in line["questions"])
    group = SHIPPED if is_shipped else line.get("group") or FOLDER
    return Case(line["conv_id"], cut, talk["messages"][:cut], size, asked, summary, is_shipped, group)
