"""Sheets for readers and for graders, and what they wrote.

All of one test lies in one folder: `sheets/READER-1.md` and `answers/READER-1.json`, `grading/GRADER-1.md` and
`grades/GRADER-1.json`, and so on, and `key.json`, which says what is whose and is for neither of them.
"""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from benchmark.judging import Method, shown
from clew.errors import BadRequest, NotFound
from reading.cases import Case, Question, texts

GRADES = (1, 0.5, 0, -0.5)
SILENT = "not in the text"
_HERE = Path(__file__).parent
_LINE = "=" * 60


@dataclass(frozen=True)
class Stand:
    """A text that stands in for a conversation, and who reads it under which letter."""

    case: str
    conversation: str
    shipped: bool
    method: str
    text: str
    whole: int  # characters of the conversation
    questions: tuple[Question, ...]
    group: str
    reader: int = 0
    letter: str = ""


def stands(cases: Sequence[Case], methods: Mapping[str, Method]) -> list[Stand]:
    """What every method leaves of every case."""
    return [stand(case, name, text) for case in cases for name, text in texts(case, methods)]


def stand(case: Case, method: str, text: str) -> Stand:
    """A text that stands in for a case."""
    whole = len(shown(case.messages))
    return Stand(case.name, case.conversation, case.shipped, method, text, whole, case.questions, case.group)


def dealt(found: Sequence[Stand], seed: int, alone: bool) -> list[Stand]:
    """The texts with their readers: one each, or a mix of methods for everybody, of each conversation at most one."""
    if alone:
        return [replace(stand, reader=n, letter="A") for n, stand in enumerate(found, 1)]
    chance = random.Random(seed)
    methods = sorted({stand.method for stand in found})
    chance.shuffle(methods)
    cases = list({stand.case: stand.conversation for stand in found}.items())
    chance.shuffle(cases)
    often = Counter(conversation for _, conversation in cases)
    groups: list[list[tuple[str, str]]] = [[] for _ in range(max(often.values()))]  # of readers, a method each
    for case, conversation in sorted(cases, key=lambda pair: -often[pair[1]]):
        free = [group for group in groups if conversation not in dict(group).values()]
        min(free, key=len).append((case, conversation))
    place = {case: (g, n) for g, group in enumerate(groups) for n, (case, _) in enumerate(group)}

    def given(stand: Stand) -> Stand:
        group, at = place[stand.case]
        reader = group * len(methods) + (methods.index(stand.method) + at) % len(methods)
        return replace(stand, reader=reader + 1, letter=ascii_uppercase[at])

    return sorted(map(given, found), key=lambda stand: (stand.reader, stand.letter))


def write_sheets(folder: Path, given: Sequence[Stand], seed: int) -> list[Path]:
    """The sheets of the readers, and the key."""
    by_reader: dict[int, list[Stand]] = defaultdict(list)
    for stand in given:
        by_reader[stand.reader].append(stand)
    (folder / "sheets").mkdir(parents=True, exist_ok=True)
    paths = []
    for reader, mine in sorted(by_reader.items()):
        parts = [(_HERE / "reader.txt").read_text(encoding="utf-8")]
        for stand in mine:
            asked = "\n".join(f"{stand.letter}{n}. {q.text}" for n, q in enumerate(stand.questions, 1))
            parts.append(f"\n# Text {stand.letter}\n\n{_LINE}\n{stand.text}\n{_LINE}\n\n{asked}\n")
        paths.append(folder / "sheets" / f"READER-{reader}.md")
        paths[-1].write_text("".join(parts), encoding="utf-8")
    key = {"seed": seed, "stands": [asdict(stand) for stand in given]}
    (folder / "key.json").write_text(json.dumps(key, ensure_ascii=False), encoding="utf-8")
    return paths


@dataclass(frozen=True)
class Answer:
    """What a reader answered, and the name under which a grader sees it."""

    stand: Stand
    question: Question
    text: str
    grader: int = 0
    name: str = ""


def answers(folder: Path, graders: int | None = None) -> list[Answer]:
    """All answers, a grader for each case or so many in all, those to one question together in an order by chance."""
    seed, given = _key(folder)
    graders = graders or len(
        list((folder / "grading").glob("GRADER-*.md"))
    )  # as many as there were, if they have sheets
    said = {reader: written(folder / "answers" / f"READER-{reader}.json") for reader in {s.reader for s in given}}
    chance = random.Random(seed)
    asked: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for stand in given:
        for n, question in enumerate(stand.questions, 1):
            text = " ".join(str(said[stand.reader].get(f"{stand.letter}{n}") or SILENT).split())
            asked[stand.case, question.id].append(Answer(stand, question, text))
    cases = list(dict.fromkeys(case for case, _ in asked))
    many = min(graders or len(cases), len(cases))
    numbers: Counter[int] = Counter()
    found = []
    for (case, _), group in sorted(asked.items(), key=lambda entry: cases.index(entry[0][0])):
        grader = cases.index(case) % many + 1
        numbers[grader] += 1
        chance.shuffle(group)
        found += [
            replace(a, grader=grader, name=f"{numbers[grader]}{letter}")
            for a, letter in zip(group, ascii_lowercase, strict=False)
        ]
    return found


def write_grading(folder: Path, found: Sequence[Answer]) -> list[Path]:
    """The sheets of the graders."""
    (folder / "grading").mkdir(parents=True, exist_ok=True)
    paths = []
    for grader in sorted({answer.grader for answer in found}):
        parts = [(_HERE / "grader.txt").read_text(encoding="utf-8")]
        question: Question | None = None
        for answer in (a for a in found if a.grader == grader):
            if answer.question != question:
                question = answer.question
                parts.append(f"\n# {answer.name[:-1]}. {question.text}\n\nTrue answer: {question.truth}\n\n")
            parts.append(f"- {answer.name}: {answer.text}\n")
        paths.append(folder / "grading" / f"GRADER-{grader}.md")
        paths[-1].write_text("".join(parts), encoding="utf-8")
    return paths


def graded(folder: Path, found: Sequence[Answer]) -> Iterator[tuple[Answer, float]]:
    """Every answer with its grade."""
    said = {grader: written(folder / "grades" / f"GRADER-{grader}.json") for grader in {a.grader for a in found}}
    for answer in found:
        grade = said[answer.grader].get(answer.name)
        if grade not in GRADES or isinstance(grade, bool):
            where = f"grades/GRADER-{answer.grader}.json"
            raise BadRequest(f"{where}: {answer.name} has the grade {grade!r}; grades are 1, 0.5, 0 and -0.5")
        yield answer, float(grade)


def written(path: Path) -> dict[str, Any]:
    """The JSON object that somebody wrote, with or without words or a fence around it."""
    if not path.exists():
        raise NotFound(f"{path} is not there yet")
    return parsed(path.read_text(encoding="utf-8"), str(path))


def parsed(text: str, where: str) -> dict[str, Any]:
    """The JSON object in a text."""
    found = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        value = json.loads(found[0] if found else text)
    except ValueError as error:
        raise BadRequest(f"{where}: no JSON object ({error})") from None
    if not isinstance(value, dict):
        raise BadRequest(f"{where}: no JSON object")
    return value


def _key(folder: Path) -> tuple[int, list[Stand]]:
    path = folder / "key.json"
    if not path.exists():
        raise NotFound(f"{path} is not there: make the sheets first")
    key = json.loads(path.read_text(encoding="utf-8"))
    return key["seed"], [
        Stand(**{**stand, "questions": tuple(Question(**q) for q in stand["questions"])}) for stand in key["stands"]
    ]
