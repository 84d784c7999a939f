"""The tests nearest to what was changed, for so many seconds.

python scripts/quick.py [--since COMMIT] [--seconds N] [--list]

Near is a test file that imports what was changed, or imports what imports it; nearest first, and among these the one
that imports least. Changed is what differs from the last commit, or, where nothing does, what that commit changed.
"""

import argparse
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tests", "bench")
MOST = 30  # files: reading a test file takes a while, too
# Not by ast, which takes seconds for all of them.
IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) import (\([^)]*\)|[^(\n]*)|import ([\w.]+))", re.MULTILINE)


class Clock:
    """Stops pytest after a time, between two tests."""

    def __init__(self, seconds: float) -> None:
        self.until, self.stopped, self.failed = time.monotonic() + seconds, False, 0
        self.stopping: Any = None

    def pytest_sessionstart(self, session: Any) -> None:
        self.stopping = session.config.pluginmanager.getplugin("dsession")  # of xdist: it does not ask pytest's session

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed += report.failed
        if report.when == "teardown" and time.monotonic() > self.until:
            self.stopping.shouldstop, self.stopped = "the time is up", True


def changed(since: str | None) -> list[str]:
    """Files that differ from a commit, and new ones."""

    def git(*args: str) -> list[str]:
        return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()

    new = git("ls-files", "--others", "--exclude-standard")
    if since is None and not new and not git("diff", "--name-only", "HEAD"):
        since = "HEAD~1"
    return [*git("diff", "--name-only", since or "HEAD"), *new]


def modules() -> dict[str, Path]:
    """Each module of the project by its name."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(text: str) -> Iterator[tuple[str, str]]:
    """Modules that are imported, with each name that is taken from them."""
    for module, names, whole in IMPORT.findall(text):
        yield from ((module, name) for name in re.findall(r"\w+", re.sub(r"#.*| as \w+", "", names)))
        if whole:
            yield whole, ""


def graph(texts: dict[str, str], known: dict[str, Path]) -> dict[str, set[str]]:
    """Who imports a module, by its own name or by one that a package lends it."""
    packages = [name for name, path in known.items() if path.name == "__init__.py"]
    lent = {f"{package}.{name}": module for package in packages for module, name in imported(texts[package])}
    users: dict[str, set[str]] = defaultdict(set)
    for user, text in texts.items():
        for module, name in imported(text):
            full = f"{module}.{name}"
            users[full if full in texts else lent.get(full, module)].add(user)
            if module in texts and "__getattr__" not in texts[module]:  # with it, it loads what it is asked for
                users[module].add(user)
    return users


def near(files: list[str]) -> list[Path]:
    """Test files, nearest first."""
    known = modules()
    texts = {name: path.read_text("utf-8") for name, path in known.items()}
    by_path = {str(path.relative_to(ROOT)): name for name, path in known.items()}
    distance = {by_path[file]: 0 for file in files if file in by_path}
    # A file that is no module concerns whoever names it.
    if names := [re.escape(Path(file).name) for file in files if file not in by_path]:
        naming = re.compile(rf"(?<!\w)(?:{'|'.join(names)})\b")
        distance = {name: 1 for name, text in texts.items() if naming.search(text)} | distance
    users, front = graph(texts, known), set(distance)
    while front:
        front = {user for name in front for user in users[name]} - set(distance)
        distance |= dict.fromkeys(front, max(distance.values()) + 1)
    imports = {name: sum(name in who for who in users.values()) for name in distance}
    tests = [name for name in distance if name.startswith("test_") and known[name].parent == ROOT / "tests"]
    return [known[name] for name in sorted(tests, key=lambda name: (distance[name], imports[name], name))]


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--since", metavar="COMMIT")
    asked.add_argument("--seconds", type=float, default=40)
    asked.add_argument("--list", action="store_true", help="only say which")
    args = asked.parse_args()
    clock, files = Clock(args.seconds), changed(args.since)
    tests = [str(path.relative_to(ROOT)) for path in near(files)]
    print(f"{len(files)} files changed; {len(tests)} test files are near them")
    if args.list or not tests:
        print(*tests, sep="\n")
        return 0
    code = pytest.main(["-n", "auto", "--dist", "load", "--maxfail=5", *tests[:MOST]], plugins=[clock])
    if clock.stopped:
        print(f"Stopped after {args.seconds:.0f} seconds: make test has the rest.")
    return int(clock.failed > 0) if clock.stopped else int(code)


if __name__ == "__main__":
    sys.exit(main())
