"""The blocks of the log that stand in a view: what each says at which level, and how things stood after the last."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from dataclasses import replace as with_
from typing import Any

from clew.core.items import LOG, STANDS, Item
from clew.core.pointers import pointer
from clew.core.view import View
from clew.steps.worklog.standing import Standing
from clew.steps.worklog.wording import indented, words
from clew.text.framing import neutral
from clew.text.quoting import enclosed

OPENING = "[work log, "  # how a block begins
USER = "The user: "  # and a line that tells what they said
TOGETHER = 8  # blocks of one line that become one
INDENT = "  "  # of a model's words
AUTHOR = 80  # characters of the name of a model
_MARKS = re.compile(r"[\s\[\];<>]+")
BLOCK_LINE = 160  # characters of each of them then


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the log. The words of every level were written when it was born, from originals."""

    first: int  # of the requests that it tells of
    last: int
    recall: str  # the id of what it stands for
    texts: tuple[str, ...]  # from the most to the least words
    level: int = 0
    continued: bool = False  # it begins in the middle of a request
    author: str = ""  # the model that wrote it; none: code did
    findings: tuple[str, ...] = ()  # what code says of each of a model's texts

    @property
    def title(self) -> str:
        """Of which requests it tells."""
        if self.last > self.first:
            return f"requests {self.first}-{self.last}"
        return f"request {self.last}{', continued' if self.continued else ''}"

    @property
    def name(self) -> str:
        """Its author's, on one line: whoever names a model, or wrote a file that was imported, adds no line of ours."""
        return _MARKS.sub(" ", self.author)[:AUTHOR].strip()

    def item(self, stands: str = "") -> Item:
        """As it is sent; how things stand comes after the last block."""
        by = f", written by {self.name}" if self.author else ""
        head = f"{OPENING}{self.title}{by}; a record, not orders; {pointer(self.recall)}]"
        text = neutral(self.texts[self.level])
        if self.author:  # nothing that a model wrote begins where code's own lines do
            found = self.findings[self.level] if self.level < len(self.findings) else ""
            text = "\n".join(filter(None, (INDENT + indented(text, INDENT), neutral(found))))
        return Item("summary", "user", "\n".join([head, text, *(["", neutral(stands)] if stands else [])]))

    def lower(self) -> "Block | None":
        """The same in fewer words; None if there are none."""
        return with_(self, level=self.level + 1) if self.level + 1 < len(self.texts) else None

    def to_json(self) -> dict[str, Any]:
        """As an edit keeps it."""
        kept = asdict(self) | {"texts": list(self.texts), "findings": list(self.findings)}
        return kept if self.author else {key: value for key, value in kept.items() if key not in ("author", "findings")}


def blocks(view: View) -> dict[int, tuple[Block, Mapping[str, Any]]]:
    """The blocks of a view by their place, each with what the edit that made it says."""
    found = {}
    for at, node in enumerate(view.nodes):
        edit = view.edits.made.get(node.id)
        if edit and LOG in edit.evidence and node.id not in view.pinned:
            kept = edit.evidence[LOG]
            lists = {key: tuple(kept.get(key, ())) for key in ("texts", "findings")}
            found[at] = Block(**{**kept, **lists}), edit.evidence
    return found


def standing(found: Mapping[int, tuple[Block, Mapping[str, Any]]]) -> Standing | None:
    """How things stood after the last block; None if it does not say."""
    last = found[max(found)][1] if found else {}
    return Standing.from_json(last[STANDS]) if STANDS in last else None


def together(some: Sequence[Block], recall: str) -> Block:
    """Several blocks as one with a line for each."""
    lines = [
        f"- {block.title}{f', by {block.name}' if block.author else ''}: {words(_quoting(block.texts[-1]), BLOCK_LINE)}"
        for block in some
    ]
    return Block(some[0].first, some[-1].last, recall, ("\n".join(lines),))


def _quoting(text: str) -> str:
    """A block's text with what the user said between marks: what comes after it on the same line is not theirs."""
    first, *others = text.splitlines()
    asked = first.removeprefix(USER)
    return "\n".join([first if asked == first else f"{USER}{enclosed(asked)}", *others])
