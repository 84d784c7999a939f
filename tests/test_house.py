"""House rules that no tool of `make check` knows: one meaning a name."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "clew"
TYPE = re.compile(r"_?[A-Z]\w*[a-z]\w*")

EVENT_NAME = "the name is what logs and `clew run` print"
SHARED_TYPES = {
    "Block": "a block of a log, and a block of a message",
    "Agent": "a section of the configuration is named like what it sets",
    "Began": EVENT_NAME,
    "Call": "public twice: in the log, and in what a made-up provider answers",
    "Called": EVENT_NAME,
    "Compaction": "crewAI's is public; the engine's is what a setting may be",
    "Conversation": "what is done with one of the log, on every face; PraisonAI's is its adapter's own",
    "Declined": EVENT_NAME,
    "Event": "what listeners hear is public; the store's is a row of the log",
    "Model": "a model to ask is public; the catalog's is what is known of one",
    "Secret": EVENT_NAME,
}


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")


def definitions(text: str) -> Iterator[tuple[str, str]]:
    """The names that a module defines at its top, each with what it stands for."""
    for statement in ast.parse(text).body:
        match statement:
            case ast.ClassDef(name=name):
                yield name, "a class"
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from _assigned(target, value)


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    match target, value:
        case ast.Name(id=name), _:
            yield name, ast.unparse(value)
        case ast.Tuple(elts=names), ast.Tuple(elts=values):
            for each, one in zip(names, values, strict=True):
                yield from _assigned(each, one)


def shared(pattern: re.Pattern[str], sources: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The names of this form that more than one module defines: where, and as what."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for module, text in sources.items():
        for name, value in definitions(text):
            if pattern.fullmatch(name):
                found[name][module] = value
    return {name: places for name, places in found.items() if len(places) > 1}


def test_no_two_modules_define_a_type_of_one_name() -> None:
    twice = {name: sorted(places) for name, places in shared(TYPE, dict(modules())).items()}
    assert {name: places for name, places in twice.items() if name not in SHARED_TYPES} == {}


def test_a_name_of_two_modules_is_found() -> None:
    sources = {"one": "class Row: ...", "two": "Row = list[int]", "three": "x = 1"}
    assert shared(TYPE, sources) == {"Row": {"one": "a class", "two": "list[int]"}}


def test_a_newcomer_finds_ten_things() -> None:
    """Every question of AGENTS.md is answered by a file or folder that is there."""
    page = (SOURCE.parents[1] / "AGENTS.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| … (.*) \| (.*) \|$", page, re.MULTILINE)
    answers = [path for _, answer in rows for path in re.findall(r"`([\w/.]+)`", answer)]
    assert len(rows) >= 10
    assert all((SOURCE / path).exists() for path in answers), answers


# What programs that are started inherit, and what other libraries' own variables say.
ENVIRONMENT = {
    "agent/tools/processes.py",
    "agent/tools/searching.py",
    "cli/chat.py",
    "gateway/background.py",
}


def test_settings_are_read_in_one_place() -> None:
    reading = {module for module, text in modules() if "os.environ" in text or "getenv" in text}
    assert {module for module in reading if not module.startswith("config/")} == ENVIRONMENT
