"""Change one thing at a time in a copy of the code, and see whether a test notices; what survives, nobody tests.

python scripts/mutants.py [--count N] [--seed N] [FILE ...]

FILE is a source file of TESTS (all of them without); N of their mutants are tried, chosen by the seed (else another one
each day); 0 is all of them. A mutant is killed if a test fails or takes ten times as long as without it.
Exits with 1 if one survived.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "bench", "docs", "pyproject.toml", "README.md")
# What has to notice a change, fastest first.
TESTS = {
    "core/view.py": "test_view test_steps test_extremes",
    "core/rawjson.py": "test_wire test_opaque",
    "engine/turn.py": "test_engine test_scale test_pricing test_forks",
    "engine/append.py": "test_engine test_forks",
    "engine/undo.py": "test_sessions test_forks",
    "engine/turns.py": "test_engine test_thresholds",
    "engine/due.py": "test_good_moments test_thresholds test_chapters",
    "engine/compaction.py": "test_good_moments test_engine test_chapters",
    "engine/pins.py": "test_pinning",
    "recognition/recognise.py": "test_recognition test_mixups test_decorations",
    "core/align.py": "test_sameness test_recognition",
    "recognition/sameness.py": "test_sameness test_recognition",
    "recognition/client_edits.py": "test_sameness test_recognition",
    "recognition/reach.py": "test_reach test_recognition",
    "gateway/seals.py": "test_gateway_seals",
    "gateway/client_keys.py": "test_gateway_doors",
    "gateway/own_hosts.py": "test_gateway_doors",
    "gateway/line.py": "test_gateway_upstreams",
    "store/packing.py": "test_packing",
    "store/trace.py": "test_checkpoints test_store test_sessions",
    "store/sqlite/grouping.py": "test_grouping test_locks",
    "secrets/values.py": "test_secrets",
    "secrets/names.py": "test_secrets",
    "secrets/masking.py": "test_secrets test_secrecy",
    "exchange/asides.py": "test_weaving test_wrap_tools",
    "exchange/own_calls.py": "test_weaving test_wrap_tools",
    "sessions/totals.py": "test_dollars test_sessions",
    "config/kinds.py": "test_config",
    "config/places.py": "test_config",
    "config/reading.py": "test_config",
    "wire/formats/anthropic.py": "test_wire test_convert",
    "wire/formats/openai_chat.py": "test_wire test_convert",
    "wire/formats/gemini.py": "test_gemini test_convert",
}
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    line: int
    old: str
    new: str
    code: bytes


def replacements(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """What to put where: comparisons, arithmetic, and/or, numbers, conditions, returned values, plain statements."""
    twin: Any = copy(node)
    match node:
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            twin.ops = [SWAPS[type(op)]()]
            yield node, f"({ast.unparse(twin)})"
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in SWAPS:
            twin.op = SWAPS[type(op)]()
            yield node, f"({ast.unparse(twin)})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, str(value + 1)
        case ast.If() | ast.IfExp() | ast.While():
            yield node.test, "False"
        case ast.comprehension(ifs=[first, *_]):
            yield first, "True"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield value, "None"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield node, "pass"


def mutants(source: bytes) -> list[Mutant]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree, found = ast.parse(source), []
    quoted = {inner for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)}
    for node in ast.walk(tree):  # what is inside an f-string has no place of its own before Python 3.12
        for part, new in replacements(node) if node not in quoted else ():
            begin = starts[part.lineno - 1] + part.col_offset
            end = starts[(part.end_lineno or 0) - 1] + (part.end_col_offset or 0)
            old = b" ".join(source[begin:end].split()).decode()
            found.append(Mutant(part.lineno, old, new, source[:begin] + new.encode() + source[end:]))
    return sorted(found, key=lambda m: (m.line, m.old))


def passes(folder: Path, tests: str, patience: float | None = None) -> bool:
    """Whether all tests pass, in time."""
    files = [f"tests/{name}.py" for name in tests.split()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *files]
    env = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False, timeout=patience)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def survivors(name: str, folder: Path, chosen: list[Mutant]) -> Iterator[Mutant]:
    """Try these mutants of a file, and give those that nobody noticed."""
    file, tests = folder / "src" / "clew" / name, TESTS[name]
    source = file.read_bytes()
    start = time.monotonic()
    if not passes(folder, tests):
        sys.exit(f"{name}: {tests} fail as it is")
    patience = 60 + 10 * (time.monotonic() - start)
    print(f"{name}: {len(chosen)} mutants, against {tests}", flush=True)
    for mutant in sorted(chosen, key=lambda m: m.line):
        file.write_bytes(mutant.code)
        survived = passes(folder, tests, patience)
        mark = "SURVIVED" if survived else "killed"
        print(f"  {mark:8} {name}:{mutant.line}  {mutant.old[:70]}  ->  {mutant.new[:70]}", flush=True)
        if survived:
            yield mutant
    file.write_bytes(source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=date.today().toordinal())
    args = parser.parse_args()
    names = [f.removeprefix("src/clew/") for f in args.files] or list(TESTS)
    if unknown := [n for n in names if n not in TESTS]:
        sys.exit(f"no tests named for {', '.join(unknown)}; TESTS in {Path(__file__).name} has {', '.join(TESTS)}")
    every = [(name, m) for name in names for m in mutants((ROOT / "src" / "clew" / name).read_bytes())]
    chosen = Random(args.seed).sample(every, min(args.count, len(every))) if args.count else every
    print(f"{len(chosen)} of {len(every)} mutants, --seed {args.seed}", flush=True)
    alive = 0
    with TemporaryDirectory() as folder:
        for part in COPIED:
            place = Path(folder) / part
            place.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, place, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
            else:
                shutil.copy(ROOT / part, place)
        for name in names:
            if some := [m for of, m in chosen if of == name]:
                alive += sum(1 for _ in survivors(name, Path(folder), some))
    print(f"{alive} survived")
    sys.exit(bool(alive))


if __name__ == "__main__":
    main()
