"""Every regular expression of the project, and how each is used."""

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import clew

SOURCE = Path(clew.__file__).parent
USES = ("match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split")
_USES = frozenset({"match", "fullmatch", "finditer"})
DEEPEST = 6  # tables in tables that are looked into
FROM_ANYWHERE = "finditer"  # does what searching, replacing and splitting do, from one end to the other


class Found(NamedTuple):
    """A pattern, where it is, and the ways in which it is tried."""

    pattern: re.Pattern[Any]
    place: str
    uses: frozenset[str]  # of match, fullmatch and finditer


def modules() -> tuple[dict[str, ModuleType], dict[str, ast.Module]]:
    """What can be imported here, by name; and the text of all that there is, as a tree."""
    trees = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(("clew", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    loaded = {"clew": clew}
    for info in pkgutil.walk_packages(clew.__path__, "clew."):
        if not info.name.endswith("__main__"):
            try:
                loaded[info.name] = importlib.import_module(info.name)
            except ImportError:  # a framework that is not here
                continue
    return loaded, trees


def patterns() -> tuple[list[Found], list[str]]:
    """All of them; and for each that is made of what only a run knows, its module."""
    loaded, trees = modules()
    tried = {name: _tried_in(tree) for name, tree in trees.items()}
    found: dict[tuple[str | bytes, int], Found] = {}
    unknown = list[str]()

    def add(pattern: re.Pattern[Any], place: str, uses: Iterable[str]) -> None:
        known = found.get((pattern.pattern, pattern.flags), Found(pattern, place, frozenset()))
        found[pattern.pattern, pattern.flags] = known._replace(uses=known.uses | {*uses})

    for name, module in loaded.items():
        for place, pattern in _held(module):
            held, _, key = place.partition(".")
            users = [tried[other] for other in (name, *_importing(trees, name, held))]
            uses = {use for by in users for use in by[held] | by[f"{held}.{key}"]}
            add(pattern, f"{name}.{place}", uses & _USES or {FROM_ANYWHERE})
    for name, tree in trees.items():
        for call, use in _calls(tree):
            made = _made(call, vars(loaded[name]) if name in loaded else {"re": re})
            if made is None:
                unknown.append(name)
            elif use != "compile" or (made.pattern, made.flags) not in found:
                add(made, f"{name}:{call.lineno}", {FROM_ANYWHERE if use == "compile" else use})
    return list(found.values()), unknown


@cache
def _imports(tree: ast.Module) -> Mapping[str, str]:
    """The names that a module imports, each with where from."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in nodes for alias in node.names}


def _importing(trees: Mapping[str, ast.Module], module: str, name: str) -> list[str]:
    """The other modules that use a name of a module."""
    if name.startswith("_"):
        return []
    return [other for other, tree in trees.items() if _imports(tree).get(name) == module]


def _held(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """What stands in a module, in its tables and in its classes."""
    seen = set[int]()
    left: list[tuple[str, Any]] = [(name, value) for name, value in vars(module).items() if not name.startswith("__")]
    while left:
        place, value = left.pop()
        if isinstance(value, re.Pattern):
            yield place, value
        elif id(value) not in seen and place.count(".") < DEEPEST:
            seen.add(id(value))
            left += [(f"{place}.{key}", part) for key, part in _parts(value)]


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, tuple | list | set | frozenset):
        return enumerate(value)
    if not (value if isinstance(value, type) else type(value)).__module__.startswith("clew"):
        return ()
    slots = {name: getattr(value, name, None) for name in getattr(type(value), "__slots__", ())}
    return ({**getattr(value, "__dict__", {}), **slots}).items()


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """Calls of the functions of `re` that take a pattern."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=use)) if use in (*USES, "compile"):
                yield node, _tried(use)


def _made(call: ast.Call, names: Mapping[str, Any]) -> re.Pattern[Any] | None:
    """The pattern of a call, if its module alone says what it is."""
    given = [k.value for k in call.keywords if k.arg == "flags"]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "compile":
        given += call.args[1:2]
    try:
        pattern, *flags = (eval(compile(ast.Expression(a), "", "eval"), dict(names)) for a in (call.args[0], *given))
    except (NameError, AttributeError):
        return None
    return re.compile(pattern, flags[0] if flags else 0)


def _tried_in(tree: ast.Module) -> defaultdict[str, set[str]]:
    """For each name how what has it, or stands in it, is tried in a module; what is handed on may be tried anyhow."""
    found, based = defaultdict[str, set[str]](set), set[int]()
    for node in ast.walk(tree):  # what surrounds a node comes before it
        match node:
            case ast.Attribute(value=ast.Name(id=name) as inner, attr=use):
                pass
            case ast.Attribute(
                value=ast.Subscript(value=ast.Name(id=table) as inner, slice=ast.Constant(key)), attr=use
            ):
                name = f"{table}.{key}"
            case ast.Name(id=name, ctx=ast.Load()) if id(node) not in based:
                inner, use = node, FROM_ANYWHERE
            case _:
                continue
        based.add(id(inner))
        found[name].add(_tried(use))
    return found


def _tried(use: str) -> str:
    return use if use in ("match", "fullmatch", "compile") else FROM_ANYWHERE
