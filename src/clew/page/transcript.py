"""What was said as it is read: calls with their results, each with how it came out in words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from clew.clients.voices import typed
from clew.core import rawjson
from clew.core.items import Item
from clew.page.markup import changed, code, language, markdown
from clew.screens.lines import label, words
from clew.screens.originals import original
from clew.sessions.composition import Shown
from clew.steps.lines import amount
from clew.steps.shorten import parsed
from clew.steps.worklog.acts import Act, act_of
from clew.tokens import media

CLIPPED = 1_500  # characters that are shown before somebody asks for all of it
GIST = 140  # characters of a call's line


@dataclass
class TranscriptPiece:
    """Something that was said, or stands in for it; a call with its result."""

    shown: Shown
    result: Shown | None = None
    behind: int = 0  # originals that it stands for

    @property
    def item(self) -> Item:
        return self.shown.node.item

    @property
    def tokens(self) -> int:
        return self.shown.tokens + (self.result.tokens if self.result else 0)

    @property
    def voice(self) -> str:
        """Whose words these are: a program's under the user's role are not the user's."""
        said = label(self.item)
        return "program" if said == "user" and not typed(self.item) else said

    @property
    def act(self) -> Act:
        """A call in words."""
        return act_of(self.item, self.result.node.item if self.result else None)

    @property
    def gist(self) -> str:
        """Its line: what was called for, or how much a result on its own holds."""
        return words(self.act.what, GIST) if self.item.kind == "call" else amount(self.item)

    @property
    def outcome(self) -> str:
        """How a call came out."""
        if self.result is None:
            return "result not shown here"
        return words(self.act.outcome, GIST) if self.act.outcome else amount(self.result.node.item)

    @property
    def given(self) -> list[tuple[str, Markup]]:
        """The arguments of a call, each as what it is; what was exchanged as a diff."""
        given = arguments(self.item)
        if given is None:
            return [("", _cut(self.item.text))]
        kind, told = language(given), list[tuple[str, Markup]]()
        for key, value in given.items():
            old, new = value, given.get(f"new{key[3:]}")
            if key.startswith("old") and isinstance(old, str) and isinstance(new, str):
                told.append(("changed", _cut(changed(old, new), "diff")))
            elif not (key.startswith("new") and all(isinstance(given.get(k), str) for k in (key, f"old{key[3:]}"))):
                text = value if isinstance(value, str) else rawjson.dumps(value).decode()
                told.append((key, _cut(text, kind if "\n" in text else "")))
        return told


def arguments(call: Item) -> Mapping[str, Any] | None:
    """The arguments of a call by name; None where they are no object."""
    given = parsed(call.text)
    return given if isinstance(given, Mapping) else None


def _cut(text: str, language: str = "") -> Markup:
    """The beginning of an argument, and how much more there is."""
    more = f"\n… {len(text) - 2 * CLIPPED:,} more characters" if len(text) > 2 * CLIPPED else ""
    return code(text[: 2 * CLIPPED], language) + more


def body(item: Item, call: Item | None = None, most: int = CLIPPED, plain: bool = False) -> Markup:
    """What an item says, or its beginning: Markdown of people, models and chapters, all else as it is."""
    text = original(item)
    is_read = item.kind in ("reasoning", "summary") or (item.kind == "text" and item.role != "user") or typed(item)
    if is_read and item.text and not plain:
        return Markup('<div class="body">{}</div>').format(markdown(text[:most]))
    kind = language(arguments(call) or {}) if call else ""
    return Markup('<pre class="body">{}</pre>').format(code(text[:most], kind))


def pieces(shown: Iterable[Shown], behind: Mapping[str, int] | None = None) -> list[TranscriptPiece]:
    """Each as a piece, results at their calls where both are here."""
    made, waiting = list[TranscriptPiece](), dict[str, TranscriptPiece]()
    for one in shown:
        item = one.node.item
        if item.kind == "result" and not one.by and (call := waiting.pop(item.call_id, None)):
            call.result = one
            continue
        made.append(TranscriptPiece(one, None, (behind or {}).get(one.node.id, 0)))
        if item.kind == "call" and not one.by:
            waiting[item.call_id] = made[-1]
    return made


def pictures(item: Item) -> int:
    """How many pictures an item holds that can be shown."""
    return sum(media.picture(block) is not None for block in media.blocks(item.wire)) if item.wire else 0
