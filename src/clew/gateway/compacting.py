"""A client's own compaction, answered from the log: no model is asked, and nothing is lost."""

import base64
import binascii
import re
import zlib
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any

from clew import wire
from clew.core import rawjson
from clew.core.items import Frame, Item, Node, Scope
from clew.core.view import View
from clew.engine.engine import Engine, Request
from clew.errors import BadRequest, Conflict, NotFound
from clew.recognition.side_requests import FIRST, SideRequest, is_continued, log_line, side_request, summed_up
from clew.steps.protocol import Step
from clew.steps.summarize import briefed
from clew.steps.worklog.log import SILENT
from clew.steps.worklog.requests import typed
from clew.steps.worklog.wording import indented
from clew.text.decorations import OWN_COMMAND, undecorated
from clew.text.framing import neutral
from clew.tokens.target import Target

# How long an answered summary is: its share of a window, and tokens at least and at most. Aider asks again if a summary
# takes more than half of what it allows its history, a 16th of the window.
LENGTHS = {"full": (0.08, 2_000, 12_000), "brief": (0.02, 400, 3_000)}
VERBATIM_SHARE = 0.4  # of those, for the newest of what was said, word for word
EARLIER_SHARE = 0.5  # as much again, at most, for what earlier summaries stood for
CHARACTERS = 3  # in a token, at least, of such texts
LONGEST_LINE = 400  # characters
EARLIER = "What was done before that, from the log:"
PARAGRAPHS, LONG_ENOUGH = 6, 60  # of a quoted conversation, and characters: by which it is looked for
LONGEST_QUOTE = 1_200  # characters: pi cuts off what is longer than 2,000
LIKELY = 4  # branches that are compared with a quoted conversation
SEALED = "clew-log-1:"  # with which an item begins that only clew reads
LARGEST_SEAL = 1 << 20  # bytes of what is in one: anybody can make one
_PARTS = re.compile(r"\n\s*\n|^# (?:USER|ASSISTANT)\n", re.MULTILINE)  # the latter between what aider quotes


Beside = tuple[SideRequest, Frame, list[Item]]


def asked_beside(raw: bytes, format: str) -> Beside | None:
    """What a request asks beside its conversation, and that conversation; None if it is a turn of it."""
    frame, items = wire.decode(rawjson.loads(raw), format)
    found = side_request(frame, items)
    return (found, frame, items) if found else None


def continued(raw: bytes, format: str) -> str | None:
    """The branch that a client goes on from with a summary that it got here, where its history begins with one."""
    if b"[clew log " not in raw:
        return None
    try:
        items = wire.decode(rawjson.loads(raw), format)[1][:FIRST]
    except BadRequest:
        return None
    return next((branch for i in items if is_continued([i]) and (branch := summed_up(i.text))), None)


@dataclass(frozen=True)
class Brief:
    """A step that leaves so many tokens of a history, whatever its size, beside what nobody has answered yet."""

    step: Step
    size: int

    async def __call__(self, view: View, target: Target) -> View:
        aimed = target.under(with_(target.budget, tail=int(VERBATIM_SHARE * self.size)))
        left = await self.step(view, aimed.to(target.frame + self.size))
        last = max((n for n, node in enumerate(left.nodes) if node.item.role == "assistant"), default=-1)
        newest = target.meter.nodes(left.nodes[last + 1 :]).tokens
        if 2 * newest <= self.size:  # else it has the room of all else, and no step shortens it
            return left
        return await self.step(view, aimed.to(target.frame + self.size + min(newest, self.size)))


class Compactions:
    """Answers what clients ask when they compact by themselves."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def summary(
        self,
        scope: Scope,
        session: str | None,
        side: SideRequest,
        frame: Frame,
        items: Sequence[Item],
        focus: str = "",
        least: int = 0,
    ) -> str | None:
        """What was said, with more of what stands near `focus`, as the one who goes on from it needs it.

        None where nobody knows of what conversation, or where it has no more than so many tokens.
        """
        asked = "\n".join(item.text for item in items[side.begins :])
        view = await self._view(scope, session, frame, items[: side.begins], asked)
        if view is None or await self._engine.expected(view) <= least:
            return None
        window = (await self._engine.limits.target(scope, view.frame)).window
        step = briefed(self._engine.settings.step, focus)
        share, shortest, longest = LENGTHS["brief" if side.form == "brief" else "full"]
        brief = Brief(step, min(longest, max(shortest, int(share * window))))
        try:
            view = await self._engine.compact(view, step=brief, method="client")
        except (NotFound, Conflict):  # somebody took a turn meanwhile, as Copilot does: this one is not written down
            view = await self._engine.preview(view, step=brief)
        before = _middle_out(await self._before(scope, view.branch), int(EARLIER_SHARE * brief.size) * CHARACTERS)
        said = told(view, int(VERBATIM_SHARE * brief.size) * CHARACTERS)
        parts = [*([f"{EARLIER}\n{before}"] if before else []), said, log_line(view.branch)]
        return "\n\n".join(parts)

    async def _before(self, scope: Scope, branch: str) -> str:
        """What is left of the conversations that this one goes on from by a summary, the oldest first."""
        store, parts, at = self._engine.store, list[str](), branch
        for id, last in await store.ancestry(scope, branch):
            began = await store.sessions(scope, at)
            if not began or began[-1].cause != "compaction":  # a sub-agent has a past of its own
                break
            parts.append(noted(await self._engine.view(scope, id, last)))
            at = id
        return "\n".join(part for part in reversed(parts) if part)

    async def _view(
        self, scope: Scope, session: str | None, frame: Frame, said: Sequence[Item], asked: str
    ) -> View | None:
        """The conversation as it stands, with all that a request has of it: as messages, or quoted in what it asks."""
        engine = self._engine
        branch = await engine.whose(scope, frame, said, session)
        if branch is None and not said:
            branch = await self._quoted(scope, asked)
        if branch is not None:  # who sums up is another agent: the conversation is that of the one who works
            trace = await engine.store.load(scope, branch)
            frame = await engine.store.frame(scope, trace.frame) if trace.frame else frame
            if not said:
                nodes = await engine.store.nodes(scope, [place.id for place in trace.said])
                said, session = [nodes[place.id].item for place in trace.said], trace.session
        if not said:
            return None
        body = wire.encode(frame, said)
        return await engine.keep(Request(body, frame.format, scope, session))

    async def _quoted(self, scope: Scope, text: str) -> str | None:
        """The branch whose words stand in a text, to the letter, more than those of any other."""
        store = self._engine.store
        paragraphs = [p[:LONGEST_QUOTE] for p in _PARTS.split(text) if len(p) >= LONG_ENOUGH]
        step = max(1, len(paragraphs) // PARAGRAPHS)
        found: set[str] = set()
        for paragraph in paragraphs[::step][:PARAGRAPHS]:
            found |= set(await store.search(scope, paragraph, None, PARAGRAPHS))
        places = await store.places(scope, sorted(found))
        nodes = await store.nodes(scope, [id for id, _ in places])
        quoted: Tally[str] = Tally()
        for id, branch in places:
            quoted[branch] += _quoted_of(nodes[id].item.text, text)
        best = Tally({branch: await self._all_quoted(scope, branch, text) for branch, _ in quoted.most_common(LIKELY)})
        return next((branch for branch, many in best.most_common(1) if many >= 2 * LONG_ENOUGH), None)

    async def _all_quoted(self, scope: Scope, branch: str, text: str) -> int:
        """How many characters of a text are quoted from a branch."""
        trace = await self._engine.store.load(scope, branch)
        nodes = await self._engine.store.nodes(scope, [place.id for place in trace.said])
        return sum(_quoted_of(node.item.text, text) for node in nodes.values())


def _quoted_of(said: str, text: str) -> int:
    """How many characters of what was said stand in a text; of a long one clients quote how it begins."""
    begins = said.strip()[:LONGEST_QUOTE]
    return len(begins) if len(begins) >= LONG_ENOUGH and begins in text else 0


def told(view: View, most: int) -> str:
    """A view as one text: its log, and the newest of what was said in so many characters; what is older, in short."""
    parts, verbatim, lines = list[str](), False, _in_room(view, most)
    for node in view.nodes:
        if node.item.kind == "summary" and node.item.text.endswith(SILENT):
            continue
        if node.item.kind == "summary":
            parts.append(node.item.text)
            verbatim = False
        elif line := lines[node.id]:
            if not verbatim:
                parts.append("What was said next, word for word:" if parts else "What was said, word for word:")
                verbatim = True
            parts.append(line)
    return "\n\n".join(parts)


def _in_room(view: View, most: int) -> dict[str, str]:
    """What was said, the newest as long as there is room; no step shortens what came back last. Wishes stay whole."""
    found = dict[str, str]()
    left = most
    for node in reversed(view.nodes):
        line = _middle_out(_line(node), most)
        if len(line) > left and (node.item.role != "user" or node.item.kind != "text"):
            line = _middle_out(line, LONGEST_LINE)
        left -= len(line)
        found[node.id] = line
    return found


def noted(view: View) -> str:
    """A view in short: its log, what was asked, and what was called, without what came back."""
    lines = list[str]()
    for node in view.nodes:
        item = node.item
        if item.kind == "summary":
            lines += [] if item.text.endswith(SILENT) else [item.text]
        elif item.kind in ("text", "call") and not summed_up(item.text):
            lines.append(_line(node)[:LONGEST_LINE])
    return "\n".join(filter(None, lines))


def _middle_out(text: str, most: int) -> str:
    """As many of the first and of the last lines as there is room for: how it began, and what came last."""
    if len(text) <= most:
        return text
    head, tail = text[: most // 3], text[-most * 2 // 3 :]
    return "\n…\n".join((head.rpartition("\n")[0] or head, tail.partition("\n")[2] or tail))


def _line(node: Node) -> str:
    """An item after who says it; all of its lines but the first are further in, so that none passes for another's."""
    item, printed = node.item, ""
    text = item.text
    match item.kind, item.role:
        case "media", role:
            return f"[{role}: an image or a file]"
        case "text", "assistant":
            says = "Assistant"
        case "text", "user" | "system":
            asked, _, printed = text.partition(OWN_COMMAND)
            says = "System" if item.role == "system" else "User" if typed(item) else "A program"
            text = undecorated(asked)  # the client says its reminders again by itself
        case "call", _:
            says = f"Call of {' '.join(item.name.split())}"
        case ("result", _) | ("text", _):
            says = "Result"
        case _:
            return ""
    told = [f"{says}: {_quote(text)}"] if text.strip() or item.kind != "text" else []
    return "\n".join([*told, *([f"A program: {_quote(OWN_COMMAND + printed)}"] if printed else [])])


def _quote(text: str) -> str:
    return indented(neutral(text.strip()))


# --- summaries in the shapes that clients expect ----------------------------------------------------------------------


def in_form(text: str, side: SideRequest) -> str:
    """A summary as the text that a client expects."""
    if side.form in ("summary", "state_snapshot"):
        # What was said may hold the tag itself; to take it out could leave another one.
        return f"<{side.form}>\n{text.replace(f'</{side.form}', f'< /{side.form}')}\n</{side.form}>"
    return text


def sealed(text: str, id: str) -> dict[str, Any]:
    """A summary as an item that a client keeps and cannot read."""
    packed = base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"))).decode()
    return {"id": id, "type": "compaction", "encrypted_content": f"{SEALED}{packed}"}


def unsealed(raw: bytes) -> bytes:
    """A request with the text of such items in their place; the same bytes where there are none."""
    if SEALED.encode() not in raw:
        return raw
    try:
        body = rawjson.loads(raw)
    except BadRequest:
        return raw
    given = body.get("input") if isinstance(body, dict) else None
    if not isinstance(given, list):
        return raw
    return rawjson.dumps({**body, "input": [_opened(item) for item in given]})


def _opened(item: Any) -> Any:
    held = item.get("encrypted_content") if isinstance(item, Mapping) and item.get("type") == "compaction" else None
    if not isinstance(held, str) or not held.startswith(SEALED):
        return item
    try:
        packed = base64.b64decode(held.removeprefix(SEALED))
        text = zlib.decompressobj().decompress(packed, LARGEST_SEAL).decode("utf-8", "surrogatepass")
    except (binascii.Error, zlib.error, ValueError):
        return item
    said = {"type": "input_text", "text": f"{SUMMED_UP}\n\n{text}"}
    return {"type": "message", "role": "user", "content": [said]}


SUMMED_UP = "This session is being continued from a previous conversation. It was summed up as follows:"
