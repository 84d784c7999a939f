"""Figures of the last runs, and the blocks of the documents that repeat them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmark.peers import ABSENT
from proofs import PARTS, Figures, part
from proofs.tables import cell, table

HERE = Path(__file__).parent.parent.parent
RESULTS = HERE / "bench" / "results"
IMAGES = HERE / "docs" / "images"
# In a document: <!-- proof: NAME -->, the block, <!-- /proof -->
BLOCK = re.compile(r"(<!-- proof: (?P<name>[\w.-]+) -->\n)(?P<text>.*?)(<!-- /proof -->)", re.DOTALL)


def kept(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """What the last run of each part left, by the part's name."""
    return {name: json.loads(path.read_text()) for name in PARTS if (path := folder / f"{name}.json").exists()}


def keep(name: str, made: str, figures: Figures, settings: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write what a run of a part found."""
    path = folder / f"{name}.json"
    text = json.dumps({"made": made, "settings": settings, "figures": figures}, indent=1, ensure_ascii=False)
    folder.mkdir(exist_ok=True)
    path.write_text(text + "\n")
    return path


def blocks() -> dict[str, str]:
    """All blocks and pictures that the kept figures give."""
    found: dict[str, str] = {}
    behind: list[str] = []
    published: list[list[str]] = []
    for name, result in kept().items():
        dated = {**result["figures"], "made": result["made"]}
        found |= part(name).blocks(dated)
        behind += getattr(part(name), "behind", lambda figures: ())(dated)
        published += getattr(part(name), "published", lambda figures: ())(dated)
    told = table(["test", "measured", "published", "clew"], published)
    return {**found, "peers": peers(), "published": told, "behind": "\n".join(f"* {one}" for one in behind)}


def peers() -> str:
    """Every peer of the last run: its version and settings, or why it does not run."""
    results = [result for result in kept().values() if "peers" in result["figures"]]
    last = max(results, key=lambda result: str(result["made"]))["figures"]["peers"] if results else []
    rows = [[p["name"], p["version"] or "", cell(p["missing"] or p["settings"]), "yes" * p["model"]] for p in last]
    rows += [[name, "", f"not run: {why}", ""] for name, why in ABSENT.items()]
    return table(["peer", "version", "how it is set", "asks a model"], rows)


def documents() -> Iterator[tuple[Path, str]]:
    """Every document that repeats figures, and its text with the newest ones."""
    told = {name: text for name, text in blocks().items() if not name.endswith(".svg")}

    def written(found: re.Match[str]) -> str:
        text = told.get(found["name"])
        return found[0] if text is None else f"{found[1]}{text.strip()}\n{found[4]}"

    for path in (HERE / "README.md", *sorted((HERE / "docs").glob("*.md"))):
        if BLOCK.search(text := path.read_text()):
            yield path, BLOCK.sub(written, text)


def pictures() -> Iterator[tuple[Path, str]]:
    """Every picture of figures."""
    for name, text in blocks().items():
        if name.endswith(".svg"):
            yield IMAGES / name, text
