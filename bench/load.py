"""What load does to the engine, beside another commit: python bench/load.py [--beside COMMIT] [--only NAME] [--full]

Every scenario runs in a fresh process on this checkout and, in turn, on the other commit's `src/`. CPU is that of the
whole process; "on the loop" is that of the event loop's thread: so long everybody else waits. The ratio is theirs by
ours, the other way round where more is better: above 1 this checkout is better. Linux only.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import postgres
from loads.endurance import FLAT, picture
from loads.figures import Figure
from loads.jobs import STALLS, Job, jobs

HERE = Path(__file__).resolve().parent
Found = dict[str, list[Figure | None]]  # by name: what each side came to


@dataclass(frozen=True)
class Side:
    """A commit that is measured."""

    name: str
    paths: tuple[Path, ...]  # where its `clew` is, and its `filling`

    def run(self, what: str, given: Mapping[str, Any]) -> list[Figure]:
        """The figures of a scenario, made in a process of its own."""
        paths = os.pathsep.join(map(str, (*self.paths, HERE)))
        command = [sys.executable, "-m", "loads.run", what, json.dumps(given)]
        env = {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{what} on {self.name} ended with {done.returncode}; why is above")
        return [Figure(**figure) for figure in json.loads(done.stdout.splitlines()[-1])]


class Bench:
    """Runs jobs on both sides, in turn."""

    def __init__(self, sides: list[Side], folder: Path, kept: Path, stack: ExitStack, settings: dict[str, Any]) -> None:
        self.sides, self.folder, self.kept = sides, folder, kept
        self.settings = settings
        self._stack = stack
        self._server: postgres.Server | None = None
        self._made = 0

    def run(self, job: Job, rounds: int) -> Found:
        """By the name of a figure: the best of each side."""
        best: Found = defaultdict(lambda: [None] * len(self.sides))
        for round in range(rounds):
            # Whoever is first now is second the next time: the machine gets busier, or less so.
            for n, side in list(enumerate(self.sides))[:: -1 if round % 2 else 1]:
                print(f"{job.group}: {job.name or job.given} ({side.name}, {round + 1})", file=sys.stderr, flush=True)
                try:
                    figures = side.run(job.what, self._told(job, side))
                except RuntimeError as error:
                    print(error, file=sys.stderr)
                    continue
                for figure in figures:
                    name = ": ".join(part for part in (job.name, figure.name) if part)
                    best[name][n] = _better(best[name][n], figure)
        return best

    def _told(self, job: Job, side: Side) -> dict[str, Any]:
        self._made += 1
        told = {**job.given, **(self.settings if job.what in ("plain.many", "plain.long") else {})}
        match job.place.split():
            case ["sqlite"]:
                return {"place": str(self.folder / f"{self._made}.db"), **told}
            case ["postgres"]:
                server = self.server()
                return {"place": server.url(server.database()), "server": server.process.pid, **told}
            case ["kept", name]:
                folder = self.kept / side.name
                folder.mkdir(parents=True, exist_ok=True)
                return {"path": str(folder / f"{name}.db"), **told}
        return told

    def server(self) -> postgres.Server:
        """One for all, with durable writes."""
        if self._server is None:
            programs = postgres.binaries()
            if programs is None:
                raise SystemExit(postgres.MISSING)
            self._server = postgres.Server(programs)
            self._stack.callback(self._server.remove)
            self._server.start()
        return self._server


def _better(one: Figure | None, other: Figure) -> Figure:
    if one is None:
        return other
    return max(one, other, key=lambda f: f.value if f.more else -f.value)


def archived(commit: str, folder: Path) -> Side:
    """Another commit's package, taken out of the repository."""
    for path in ("src", "bench/filling.py"):
        packed = subprocess.run(["git", "archive", commit, path], cwd=HERE.parent, capture_output=True, check=True)
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
            files.extractall(folder, filter="data")
    return Side(commit, (folder / "src", folder / "bench"))


def tell(found: Found) -> None:
    """Print these rows, as soon as they are known."""
    for name, those in found.items():
        if some := next((f for f in those if f), None):
            cells = [_cell(f.value if f else None) for f in those]
            if len(those) == 2:
                cells.append(f"{ratio(*those):.2f}" if all(those) else "")
            tell_cells(name, some.unit, *cells, *(_cell(f.wall if f else None) for f in those))


def tell_cells(name: str, unit: str, *cells: str) -> None:
    print(name.ljust(66), unit.ljust(13), *(cell.rjust(11) for cell in cells), flush=True)


def ratio(ours: Figure | None, theirs: Figure | None) -> float:
    """How much better ours is."""
    assert ours
    assert theirs
    some, other = (ours.value, theirs.value) if ours.more else (theirs.value, ours.value)
    return some / other if other else float("inf")


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def differences(found: Found) -> Iterator[tuple[str, list[Figure | None]]]:
    """How much later the beat is at worst with a fold beside than without."""
    for kind in ("beat late, worst", "loop held, worst"):
        base = found.get(f"64 talk, {STALLS[0]}: {kind}")
        for what in STALLS[1:]:
            those = found.get(f"64 talk, {what}: {kind}")
            if base and those:
                more = [
                    Figure("", b.unit, a.value - b.value) if a and b else None for a, b in zip(those, base, strict=True)
                ]
                yield f"{what}: {kind}, more than without", more


def endure(bench: Bench, turns: int, plot: Path) -> Found:
    """Many turns on each side, and a picture of their memory."""
    found: Found = defaultdict(lambda: [None] * len(bench.sides))
    runs = {}
    for n, side in enumerate(bench.sides):
        notes = bench.folder / f"endurance-{n}.json"
        told = {"place": str(bench.folder / f"endurance-{n}.db"), "turns": turns, "notes": str(notes), **bench.settings}
        for figure in side.run("endurance.endurance", told):
            found[f"{turns:,} turns: {figure.name}"][n] = figure
        runs[side.name] = json.loads(notes.read_text())
        growths = [f for f in (those[n] for those in found.values()) if f and "last fifth" in f.name]
        print(f"{side.name}: {'flat' if all(f.value <= FLAT for f in growths) else 'NOT flat'}")
    plot.write_text(picture(runs), encoding="utf-8")
    plot.with_suffix(".json").write_text(json.dumps(runs), encoding="utf-8")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", metavar="COMMIT", help="another commit, measured in turn with this checkout")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="scenarios that begin so (turns, stalls ...); again for more"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=1, help="the best of so many")
    parser.add_argument("--turns", type=int, default=2_500, help="of the long conversation")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="real sessions: *.jsonl.gz, as for the other benchmarks"
    )
    parser.add_argument("--folder", type=Path, help="where filled stores are kept for the next time")
    parser.add_argument("--full", action="store_true", help="also a store of a million items, and more clients")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the engine, as JSON"
    )
    parser.add_argument("--endurance", type=int, nargs="?", const=20_000, metavar="TURNS", help="instead of all else")
    parser.add_argument("--plot", type=Path, default=Path("endurance.svg"), help="what --endurance draws")
    given = parser.parse_args()
    settings = {name: json.loads(value) for name, _, value in (one.partition("=") for one in given.set)}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="clew-load-")))
        sides = [Side("ours", (HERE.parent / "src",))]
        if given.beside:
            sides.append(archived(given.beside, folder / "theirs"))
        bench = Bench(sides, folder, given.folder or folder / "kept", stack, settings)
        names = [side.name for side in sides]
        tell_cells("", "", *names, *(["ratio"] if given.beside else []), *(["clock"] * len(names)))
        found: Found = {}
        for part in parts(bench, given):
            tell(part)
            found |= part
            if given.json:
                given.json.write_text(json.dumps(_told(found, names), indent=1), encoding="utf-8")


def parts(bench: Bench, given: argparse.Namespace) -> Iterator[Found]:
    """The figures, a scenario at a time."""
    if given.endurance:
        yield endure(bench, given.endurance, given.plot)
        return
    found: Found = {}
    for job in jobs(given.turns, given.data, given.full):
        if not given.only or any(f"{job.group}: {job.name}".startswith(name) for name in given.only):
            part = bench.run(job, given.rounds)
            found |= part
            yield part
    yield dict(differences(found))


def _told(found: Found, names: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "figure": name,
            "unit": next(f.unit for f in those if f),
            **{side: {"value": f.value, "wall": f.wall} for side, f in zip(names, those, strict=True) if f},
            **({"ratio": ratio(*those)} if len(those) == 2 and all(those) else {}),
        }
        for name, those in found.items()
        if any(those)
    ]


if __name__ == "__main__":
    main()
