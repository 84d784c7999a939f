"""Try the newest release of every client that can be installed here, and say what broke that works with the pinned one.

python scripts/newest_clients.py [TEST]...       the names of files in tests/clients; all of them write to build/newest
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
CLIENTS = ROOT / "tests" / "clients"
PLACE = ROOT / "build" / "newest"
TRIED = 6  # releases of a client, from the newest back, of which some may not be whole on a mirror


def npm(*words: str, folder: Path = PLACE) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["npm", *words], cwd=folder, capture_output=True, text=True, check=False)


def releases(package: str) -> list[str]:
    """Its releases, the newest first; what is not for everybody has a hyphen."""
    told = json.loads(npm("view", package, "versions", "--json", folder=CLIENTS).stdout or "[]")
    known = [told] if isinstance(told, str) else told
    return [version for version in reversed(known) if "-" not in version][:TRIED]


def installed(pinned: dict[str, str]) -> dict[str, str]:
    """The newest of each that could be installed; Node itself stays, since all run on it."""
    PLACE.mkdir(parents=True, exist_ok=True)
    (PLACE / "package.json").write_text('{"private": true}')
    found = {}
    for package, known in pinned.items():
        for version in [known] if package == "node" else [*releases(package), known]:
            if not npm("install", "--no-audit", "--no-fund", "--no-package-lock", f"{package}@{version}").returncode:
                found[package] = version
                break
    return found


def failures(tests: list[str]) -> dict[str, list[str]]:
    """What failed, by file."""
    env = {**os.environ, "CLIENT_PROGRAMS": str(PLACE / "node_modules")}
    files = [str(CLIENTS / f"{name}.py") for name in tests]
    report = PLACE / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", f"--junitxml={report}", *files]
    subprocess.run(command, env=env, cwd=ROOT, check=False)
    broken = defaultdict[str, list[str]](list)
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            broken[case.get("classname", "").rpartition(".")[2]].append(case.get("name", ""))
    return broken


def main() -> None:
    pinned = json.loads((CLIENTS / "package.json").read_text(encoding="utf-8"))["dependencies"]
    found = installed(pinned)
    broken = failures(sys.argv[1:] or sorted(path.stem for path in CLIENTS.glob("*.py") if path.stem != "driving"))
    print(f"\n{datetime.now(UTC):%Y-%m-%d}\n\n| client | pinned | newest that installs |\n|---|---|---|")
    for package, version in pinned.items():
        print(f"| {package} | {version} | {found.get(package, 'none')} |")
    for name, cases in broken.items():
        print(f"\n{name}: {len(cases)} broke\n  " + "\n  ".join(cases))
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
