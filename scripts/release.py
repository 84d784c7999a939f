"""Build wheel and sdist into dist/, the package for npm into build/npm; look into them, install each far away, try it.

python scripts/release.py --uv PATH --pinned requirements-dev.txt
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from tempfile import TemporaryDirectory

from clew import __version__

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
NPM = ROOT / "build" / "npm"
PACKED = {"README.md", "bin/clew.js", "opencode.ts", "package.json", "pi.ts"}
LARGEST = 2_000_000  # bytes: the sample and the catalog are most of it
TOP = {  # and nothing else: no tests, no benchmarks
    ".whl": {"clew", f"clew-{__version__}.dist-info"},
    ".gz": {
        "src",
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "NOTICE",
        "PKG-INFO",
        "README.md",
        "SECURITY.md",
        "pyproject.toml",
    },
}
EXPECTED = {"Name": "clew", "Version": __version__, "License-Expression": "Apache-2.0", "Requires-Python": ">=3.11"}
TRY = """
import clew
from importlib.metadata import version
from importlib.resources import files
assert clew.__version__ == version("clew") == {version!r}, clew.__version__
assert {root!r} not in clew.__file__, clew.__file__
assert (files("clew") / "py.typed").is_file()
messages = [{{"role": "user", "content": f"page {{n}}: all is well. " * 40}} for n in range(40)]
done = clew.compress(messages, model="gpt-4o", target_tokens=4_000)
assert done.tokens_after <= 4_000 < done.tokens_before
"""


def run(*command: str | Path, cwd: Path = ROOT, home: Path | None = None) -> str:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "XDG_DATA_HOME": str(home)} if home else None
    done = subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def shipped() -> set[str]:
    """Every file of the package that git knows, code and data."""
    return {line.removeprefix("src/") for line in run("git", "ls-files", "src/clew").splitlines()}


def contents(archive: Path) -> dict[str, bytes]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(archive) as sdist:
        return {m.name.split("/", 1)[1]: file.read() for m in sdist.getmembers() if (file := sdist.extractfile(m))}


def check(archive: Path) -> None:
    """What is wrong with what is in it ends the program."""
    is_wheel, found = archive.suffix == ".whl", contents(archive)
    package = {n if is_wheel else n.removeprefix("src/") for n in found if n.startswith(("clew/", "src/clew/"))}
    if package != (wanted := shipped()):
        sys.exit(f"{archive.name}: missing {sorted(wanted - package)}, too much {sorted(package - wanted)}")
    if (top := {name.split("/")[0] for name in found}) != TOP[archive.suffix]:
        sys.exit(f"{archive.name}: has {sorted(top)}, not {sorted(TOP[archive.suffix])}")
    told = message_from_bytes(found[f"clew-{__version__}.dist-info/METADATA" if is_wheel else "PKG-INFO"])
    wrong = {key: told[key] for key, value in EXPECTED.items() if told[key] != value}
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    )
    if wrong or set(told.get_all("Provides-Extra") or ()) != extras or not told.get_payload():
        sys.exit(f"{archive.name}: metadata {wrong}, extras {told.get_all('Provides-Extra')}")
    if archive.stat().st_size > LARGEST:
        sys.exit(f"{archive.name}: {archive.stat().st_size:,} bytes, more than {LARGEST:,}")
    print(f"{archive.name}: {archive.stat().st_size:,} bytes, {len(found)} files, {len(package)} of the package")


def install_and_try(uv: str, archive: Path) -> None:
    """As a user would have it, far from this checkout."""
    with TemporaryDirectory() as folder:
        away, home = Path(folder), Path(folder) / "home"
        home.mkdir()
        run(uv, "venv", "--quiet", away / "env")
        binaries = away / "env" / "bin"
        run(uv, "pip", "install", "--quiet", "--python", binaries / "python", archive)
        run(binaries / "python", "-c", TRY.format(version=__version__, root=str(ROOT)), cwd=away, home=home)
        told = run(binaries / "clew", "--version", cwd=away, home=home).strip()
        if told != f"clew {__version__}":
            sys.exit(f"{archive.name}: clew --version says {told}")
        demo = run(binaries / "clew", "demo", cwd=away, home=home)
        if "0 broken" not in demo:
            sys.exit(f"{archive.name}: clew demo says\n{demo}")
        print(f"{archive.name}: installed; import, compress, clew --version, clew demo work")


def pack_and_try(uv: str, wheel: Path) -> None:
    """The package for npm: what it starts is the clew that is installed beside it."""
    shutil.rmtree(NPM, ignore_errors=True)
    run(sys.executable, "scripts/plugin_tree.py", "--npm", NPM / "package")
    told = json.loads(run("npm", "pack", "--json", NPM / "package", cwd=NPM))[0]
    if (found := {file["path"] for file in told["files"]}) != PACKED:
        sys.exit(f"{told['filename']}: has {sorted(found)}, not {sorted(PACKED)}")
    with TemporaryDirectory() as folder:
        away = Path(folder)
        run("npm", "install", "--no-audit", "--no-fund", "--offline", NPM / told["filename"], cwd=away)
        run(uv, "venv", "--quiet", away / "env")
        binaries = away / "env" / "bin"
        run(uv, "pip", "install", "--quiet", "--python", binaries / "python", wheel)
        path = f"PATH={binaries}{os.pathsep}{os.environ['PATH']}"
        started = run(
            "env", path, f"HOME={away}", away / "node_modules" / ".bin" / "clew", "--version", cwd=away
        ).strip()
        if started != f"clew {__version__}":
            sys.exit(f"{told['filename']}: clew --version says {started}")
    print(f"{told['filename']}: {told['size']:,} bytes, {len(found)} files; installed, clew --version works")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uv", default="uv")
    parser.add_argument("--pinned", default="requirements-dev.txt")
    args = parser.parse_args()
    uv = str(Path(args.uv).resolve()) if "/" in args.uv else args.uv
    if f"## [{__version__}]" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        sys.exit(f"CHANGELOG.md has no section for {__version__}")
    shutil.rmtree(DIST, ignore_errors=True)
    run(uv, "build", "--quiet", "--build-constraints", args.pinned, "--out-dir", DIST)
    archives = [a for a in sorted(DIST.iterdir()) if a.suffix in (".whl", ".gz")]
    if len(archives) != 2:
        sys.exit(f"{DIST}: {[a.name for a in archives]}")
    for archive in archives:
        check(archive)
    for archive in archives:
        install_and_try(uv, archive)
    pack_and_try(uv, next(archive for archive in archives if archive.suffix == ".whl"))


if __name__ == "__main__":
    main()
