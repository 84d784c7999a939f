"""What a project says to agents that work in it: AGENTS.md, or CLAUDE.md where there is none."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from clew.agent.tools.bounds import bounded

GUIDE_NAMES = ("AGENTS.md", "CLAUDE.md")
GUIDE_CHARACTERS = 20_000  # of one file; of a longer one, its beginning and end


class Guide(NamedTuple):
    """A file with instructions of a project."""

    name: str  # as seen from the folder of work
    text: str


def guides(folder: Path) -> list[Guide]:
    """Those of a folder and of the folders above it in the same repository, the outermost first."""
    above = [folder, *folder.parents]
    root = next((place for place in above if (place / ".git").exists()), folder)
    found = (_read(place, root, folder) for place in reversed(above[: above.index(root) + 1]))
    return [guide for guide in found if guide]


def _read(place: Path, root: Path, folder: Path) -> Guide | None:
    for name in GUIDE_NAMES:
        file = place / name
        try:
            # A link must not bring a file of the user into what is sent.
            if not file.is_file() or not file.resolve().is_relative_to(root.resolve()):
                continue
            text = file.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue
        if text:
            return Guide("../" * (len(folder.parts) - len(place.parts)) + name, bounded(text, GUIDE_CHARACTERS))
    return None


def instructed(system: str, read: Sequence[Guide]) -> str:
    """A system prompt with what the project says."""
    template = files("clew.agent").joinpath("prompts", "guide.md").read_text(encoding="utf-8")
    told = [template.replace("{name}", guide.name).replace("{text}", guide.text).strip() for guide in read]
    return "\n\n".join([system, *told])


def shown_guides(read: Sequence[Guide]) -> str:
    """What the user is told of them."""
    names = ", ".join(f"{guide.name} ({len(guide.text):,} characters)" for guide in read)
    return f"The agent goes by {names}."
