"""Change one thing at a time in a copy of the code, and see whether a test notices; what survives, nobody tests.

python scripts/mutants.py [--count N] [--seed N] [--patches FILE] [FILE ...]

FILE is a source file or a folder of TESTS (all of them without); N of their mutants are tried, chosen by the seed (else
another one each day); 0 is all of them. PATCHES names changes instead, a list of [file, old, new] in JSON. First those
tests try a mutant that ran its line when nothing was changed, then, if it lives, all that are named for its file. It is
killed if one fails or takes ten times as long as without it. Exits with 1 if one survived.
"""

import argparse
import ast
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "clew"
COPIED = ("src", "tests", "bench", "docs", "pyproject.toml", "README.md")
GATEWAY = "test_gateway test_gateway_methods test_gateway_requirements test_gateway_clients"
# What has to notice a change: of a file, or of all in a folder that are not named by themselves.
TESTS = {
    "core/view.py": "test_view test_steps test_extremes",
    "core/align.py": "test_sameness test_recognition",
    "core/rawjson.py": "test_wire test_opaque",
    "engine": "test_engine test_forks test_sessions test_thresholds",
    "engine/turn.py": "test_engine test_scale test_pricing test_forks",
    "engine/due.py": "test_due test_good_moments test_thresholds test_chapters",
    "engine/compaction.py": "test_fitting test_good_moments test_engine test_chapters test_pinning test_own",
    "engine/pins.py": "test_pinning",
    "engine/recall.py": "test_finding test_recall_offered test_engine",
    "recognition": "test_recognition test_sameness test_forks",
    "recognition/recognise.py": "test_recognition test_mixups test_own_words",
    "recognition/shortening.py": "test_sameness test_gateway_compactions",
    "recognition/side_requests.py": "test_sameness test_gateway_compactions",
    "recognition/reach.py": "test_reach test_recognition",
    "gateway": GATEWAY,
    "gateway/compacting.py": "test_gateway_compactions test_gateway_seals test_own_in_gateway",
    "gateway/seals.py": "test_gateway_seals",
    "gateway/client_keys.py": "test_gateway_doors",
    "gateway/own_hosts.py": "test_gateway_doors",
    "gateway/own_models.py": "test_own_in_gateway",
    "gateway/usage.py": "test_gateway_methods",
    "gateway/line.py": "test_gateway_upstreams",
    "gateway/quotes.py": "test_quotes",
    "gateway/quoted_text.py": "test_quotes",
    "store": "test_store test_checkpoints test_sessions",
    "store/packing.py": "test_packing test_secrecy",
    "store/sqlite": "test_grouping test_locks test_damage test_store",
    "store/upkeep": "test_upkeep test_purging test_drill",
    "secrets": "test_secrets test_secrecy",
    "exchange": "test_weaving test_wrap_tools test_thread",
    "sessions/conversation.py": "test_acts test_preview",
    "sessions/names.py": "test_acts test_branches",
    "sessions/totals.py": "test_dollars test_sessions",
    "config": "test_config",
    "wire/formats": "test_formats test_wire test_convert",
    "wire/formats/gemini": "test_gemini test_formats test_convert",
}
NOT_HERE = ("store/postgres",)  # asks for a server
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    file: str
    lines: range
    old: str
    new: str
    code: bytes


def files() -> dict[str, str]:
    """Each file that can be changed, and the tests named for it or for the nearest folder around it."""
    found = {}
    for name, tests in sorted(TESTS.items(), key=lambda row: len(row[0])):
        place = SOURCE / name
        for path in [place] if place.suffix else sorted(place.rglob("*.py")):
            found[path.relative_to(SOURCE).as_posix()] = tests
    return {file: tests for file, tests in found.items() if not file.startswith(NOT_HERE)}


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


def mutants(file: str) -> list[Mutant]:
    source = (SOURCE / file).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree, found = ast.parse(source), []
    quoted = {inner for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)}
    for node in ast.walk(tree):  # what is inside an f-string has no place of its own before Python 3.12
        for part, new in replacements(node) if node not in quoted else ():
            last = part.end_lineno or part.lineno
            begin, end = starts[part.lineno - 1] + part.col_offset, starts[last - 1] + (part.end_col_offset or 0)
            old = b" ".join(source[begin:end].split()).decode()
            code = source[:begin] + new.encode() + source[end:]
            found.append(Mutant(file, range(part.lineno, last + 1), old, new, code))
    return sorted(found, key=lambda m: (m.lines.start, m.old))


def patched(file: str, old: str, new: str) -> Mutant:
    source = (SOURCE / file).read_text("utf-8")
    if source.count(old) != 1:
        sys.exit(f"{file} has {old!r} {source.count(old)} times, not once")
    first = source[: source.index(old)].count("\n") + 1
    lines = range(first, first + old.rstrip("\n").count("\n") + 1)
    return Mutant(file, lines, " ".join(old.split()), " ".join(new.split()), source.replace(old, new).encode())


def run(folder: Path, tests: Iterable[str], patience: float | None = None, *more: str) -> bool:
    """Whether all tests pass, in time."""
    (folder / "chosen.txt").write_text("\n".join(tests), "utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *more]
    env = {**os.environ, "PYTHONPATH": str(folder / "src")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles all of clew; no two changes share a second
    try:
        done = subprocess.run(
            [*command, "@chosen.txt"], cwd=folder, env=env, capture_output=True, check=False, timeout=patience
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def who_runs(folder: Path, names: set[str], tests: list[str]) -> dict[tuple[str, int], set[str]] | None:
    """The tests that run each line of these files; None where one fails as it is."""
    places = {str(folder / "src" / "clew" / name): name for name in names}
    (folder / "lines.ini").write_text("[run]\ninclude =\n    " + "\n    ".join(places), "utf-8")
    (folder / ".coverage").unlink(missing_ok=True)
    if not run(folder, tests, None, "--cov", "--cov-config=lines.ini", "--cov-context=test", "--cov-report="):
        return None
    found = defaultdict(set)
    with sqlite3.connect(folder / ".coverage") as data:
        rows = data.execute("select path, context, numbits from line_bits join file on file.id = file_id "
                            "join context on context.id = context_id where context like '%|%'")  # fmt: skip
        for path, context, bits in rows:
            for line in (8 * n + bit for n, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1):
                found[places[path], line].add(context.rpartition("|")[0])
    return found


def survivors(folder: Path, tests: str, chosen: list[Mutant]) -> Iterator[Mutant]:
    """Try these mutants of files that have the same tests, and give those that nobody noticed."""
    every = [f"tests/{name}.py" for name in tests.split()]
    start = time.monotonic()
    runs = who_runs(folder, {mutant.file for mutant in chosen}, every)
    if runs is None:
        sys.exit(f"{tests} fail as it is")
    patience = 60 + 10 * (time.monotonic() - start)
    print(f"{len(chosen)} mutants against {tests}", flush=True)
    for mutant in chosen:
        place = folder / "src" / "clew" / mutant.file
        source = place.read_bytes()
        place.write_bytes(mutant.code)
        near = sorted(set().union(*(runs.get((mutant.file, line), ()) for line in mutant.lines)))
        survived = (not near or run(folder, near, patience)) and run(folder, every, patience)
        place.write_bytes(source)
        mark = "SURVIVED" if survived else "killed"
        what = f"{mutant.file}:{mutant.lines.start}  {mutant.old[:70]}  ->  {mutant.new[:70]}"
        print(f"  {mark:8} {what}  ({len(near)} tests run it)", flush=True)
        if survived:
            yield mutant


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=date.today().toordinal())
    parser.add_argument("--patches", type=Path)
    args = parser.parse_args()
    known = files()
    wanted = [name.removeprefix("src/clew/").rstrip("/") for name in args.files] or [""]
    names = [name for name in known if any(name == w or not w or name.startswith(f"{w}/") for w in wanted)]
    if not names:
        sys.exit(f"no tests named for {', '.join(wanted)}; TESTS in {Path(__file__).name} has {', '.join(TESTS)}")
    if args.patches:
        chosen = [patched(*row) for row in json.loads(args.patches.read_text("utf-8"))]
        print(f"{len(chosen)} mutants of {args.patches}", flush=True)
    else:
        every = [mutant for name in names for mutant in mutants(name)]
        chosen = Random(args.seed).sample(every, min(args.count, len(every))) if args.count else every
        print(f"{len(chosen)} of {len(every)} mutants, --seed {args.seed}", flush=True)
    groups: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in sorted(chosen, key=lambda m: (m.file, m.lines.start)):
        groups[known[mutant.file]].append(mutant)
    alive = 0
    with TemporaryDirectory() as folder:
        for part in COPIED:
            place = Path(folder) / part
            place.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, place, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
            else:
                shutil.copy(ROOT / part, place)
        for tests, some in groups.items():
            alive += sum(1 for _ in survivors(Path(folder), tests, some))
    print(f"{alive} of {len(chosen)} survived")
    sys.exit(bool(alive))


if __name__ == "__main__":
    main()
