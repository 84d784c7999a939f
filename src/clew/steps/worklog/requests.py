"""A history as requests: what somebody asked, and step by step what was said and done about it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_

from clew.clients.voices import (
    ACCOUNTS,
    ATTACHED,
    OWN_COMMAND,
    RAN_COMMAND,
    instructions_beside,
    kind_of,
    typed,
    undecorated,
)
from clew.core.bounds import PATH_DEPTH, TEXT_READ, ends, reach, unread
from clew.core.caches import per_object
from clew.core.items import Item, Node
from clew.steps.outcome import failed
from clew.steps.shorten import parsed
from clew.steps.worklog.acts import Act, act_of, command_act
from clew.steps.worklog.wording import on_one_line, plain, prose

NOTE = 4_000  # characters of what a program reported that are looked at
_COMMAND = re.compile(r"```(?:bash|sh|shell|mswea_bash_command)\s*\n")
_TASK = re.compile(r"<task-id>\s*([\w-]+)")
_SPOKEN = re.compile(r'^\s*\{\s*"(?:message|response|content|text|answer)"\s*:\s*')


@dataclass(slots=True)
class WorkStep:
    """What the assistant said at once, and what it then did."""

    text: str = ""  # all that was said
    acts: list[Act] = field(default_factory=list)
    ids: list[tuple[str, ...]] = field(default_factory=list)  # of each act: the call, and its result
    results: list[tuple[Act, Node]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what programs reported meanwhile
    unread: str = ""  # what was not looked at of what was said

    @property
    def say(self) -> str:
        """The words of it, without code."""
        return prose(self.text)


@dataclass(slots=True)
class WorkRequest:
    """What was asked and all that was done about it."""

    ask: str = ""  # as it was typed
    ids: list[str] = field(default_factory=list)  # of the nodes that say it
    steps: list[WorkStep] = field(default_factory=list)
    images: int = 0
    unread: str = ""  # what was not looked at of what was typed
    orders: str = ""  # what its client says beside it of how to go about it
    orders_id: str = ""  # of the node that has that
    missing: int = 0  # messages before its steps that nobody put into words
    item: Item | None = None  # that says all of the ask, if one does

    def put(self, asks: Sequence[Item], most: int = TEXT_READ) -> None:
        """Take what was typed, in one message or in several in a row, as the ask; of a long one its two ends."""
        whole = typed(asks[0]) if len(asks) == 1 else "\n".join(map(typed, asks))
        self.ask, self.unread = ends(whole, most), unread(len(whole), most)
        self.item = asks[0] if len(asks) == 1 and not self.unread else None


def requests(nodes: Sequence[Node], most: int | None = None) -> list[WorkRequest]:
    """The requests of a history in their order; the first has no ask where the history begins in the middle of one.

    Of each text so many characters are read, or as many as do not make too much of all of them.
    """
    most = reach(len(n.item.text) for n in nodes) if most is None else most
    results = _results(nodes)
    found, asks = [WorkRequest()], list[Item]()
    asking = False  # whether the last thing said was an ask: two in a row are one
    for at, node in enumerate(nodes):
        item, now = node.item, found[-1]
        if typed(item):
            if not asking:
                now.put(asks, most)
                found.append(WorkRequest())
                asks = []
            asks.append(item)
            found[-1].ids.append(node.id)
            asking = True
            if printed := item.text.partition(OWN_COMMAND)[2]:
                found[-1].steps.append(WorkStep(notes=[f"{OWN_COMMAND}{printed}".strip()]))
            if told := instructions_beside(item):
                found[-1].orders, found[-1].orders_id = ends(told, most), node.id
            continue
        if item.role == "user" and item.kind == "media":
            now.images += 1
            continue
        if (not item.text or item.text.isspace()) and item.kind != "call":
            continue
        asking = asking and item.role == "user"
        if item.kind == "call":
            result = results.get(at)
            now.steps = now.steps or [WorkStep()]
            _add(now.steps[-1], _act(item, result.item if result else None, most), node, result)
        else:
            _take(now, node, nodes[at + 1] if at + 1 < len(nodes) else None, most)
    found[-1].put(asks, most)
    return [r for r in found if r.ask or r.steps]


@per_object
def _acts(call: Item) -> list[tuple[Item | None, int, Act]]:
    """What a call did, with the result that says so and how much was read of it."""
    return []


def _act(call: Item, result: Item | None, most: int) -> Act:
    known = _acts(call)
    if not known or known[0][0] is not result or known[0][1] != most:
        known[:] = [(result, most, act_of(call, result, most))]
    return known[0][2]


def _take(now: WorkRequest, node: Node, following: Node | None, most: int) -> None:
    item = node.item
    match item.kind:
        case "text" if item.role == "assistant":
            text = "" if kind_of(item) == "filler" else ends(item.text, most)
            step = WorkStep(_spoken(text), unread=unread(len(item.text), most))
            now.steps.append(step)
            rest, command = _commanded(text)
            if command is not None and following is not None and kind_of(printed := following.item) == "observed":
                step.text = rest.strip()
                read = ends(printed.text, most)
                _add(step, command_act(command, printed, read, not failed(printed)), node, following)
        case "text" | "summary" if kind_of(item) != "observed":
            if note := _note(item):
                now.steps = now.steps or [WorkStep()]
                now.steps[-1].notes.append(note)
        case _:
            pass


def _commanded(text: str) -> tuple[str, str | None]:
    """A text without the commands that stand in it between fences, and the last of those."""
    kept, command, at = list[str](), None, 0
    for fence in _COMMAND.finditer(text) if "```" in text else ():
        if fence.start() < at:
            continue
        stop = text.find("\n```", fence.end() - 1)
        if stop < 0:
            break
        kept.append(text[at : fence.start()])
        command, at = text[fence.end() : stop], stop + len("\n```")
    return "".join([*kept, text[at:]]), command


def _between(text: str, opening: str, closing: str, closed: bool = True) -> str | None:
    """What stands between two marks, of which the second may be missing if it need not be `closed`; None if nothing."""
    _, begun, rest = text.partition(opening)
    said, ended, _ = rest.partition(closing)
    return said if begun and (ended or not closed) else None


def _add(step: WorkStep, act: Act, call: Node, result: Node | None) -> None:
    step.acts.append(act)
    step.ids.append((call.id, result.id) if result else (call.id,))
    if result is not None:
        step.results.append((act, result))


def _spoken(text: str) -> str:
    """What the assistant said; some wrap their words in an object."""
    if _SPOKEN.match(text) and text.rstrip().endswith("}"):
        value = parsed(text.strip())
        if isinstance(value, dict) and isinstance(said := next(iter(value.values()), None), str):
            text = said
    return text.strip()


def _note(item: Item) -> str:
    """What a program said under the user's role, in short: a notification's own summary, else nothing of it."""
    text = item.text[:NOTE]
    found = _between(text, "<summary>", "</summary>")
    if found is not None:
        id, result = _TASK.search(text), _between(text, "<result>", "</result>", closed=False)
        told = f"{on_one_line(found)}{f' (task {id[1]})' if id else ''}"
        return f"{told}: {result.strip()}" if result is not None else told
    said, kind = undecorated(item.text) if item.role == "user" else item.text, kind_of(item)
    if kind == "attachment":
        return said.partition("\n")[0] if said.startswith(ATTACHED) else ""
    is_told = kind in ACCOUNTS or item.role == "system" or said.startswith(RAN_COMMAND)
    return plain(ends(said)).strip() if is_told else ""


def _results(nodes: Sequence[Node]) -> dict[int, Node]:
    """For the position of each call, its result."""
    waiting: dict[str, list[int]] = {}
    found: dict[int, Node] = {}
    for at, node in enumerate(nodes):
        if node.item.kind == "call":
            waiting.setdefault(node.item.call_id, []).append(at)
        elif node.item.kind == "result" and (calls := waiting.get(node.item.call_id)):
            found[calls.pop()] = node
    return found


def newest_requests(found: Sequence[WorkRequest], most: int) -> list[WorkRequest]:
    """The newest of these, in so many messages; the others are counted in the first of them."""
    kept, missing = list[WorkRequest](), 0
    for request in reversed(found):
        steps, here = request.steps, bool(request.ask) + len(request.steps)
        if most <= 0:
            missing += here
            continue
        if most < here:
            stays = most - bool(request.ask)
            request = with_(request, steps=steps[len(steps) - stays :], missing=len(steps) - stays)
        kept.append(request)
        most -= here
    return [*([WorkRequest(missing=missing)] if missing else []), *reversed(kept)]


def paths(found: Sequence[WorkRequest]) -> Iterator[str]:
    """The absolute paths that acts name."""
    for request in found:
        for step in request.steps:
            for act in step.acts:
                for path in (c.path for c in act.changes) if act.changes else (act.what,):
                    if path.startswith("/") and " " not in path:
                        yield path


def common_root(found: Sequence[WorkRequest]) -> str:
    """The folder that most of them lie in, with its slash; of each at least two names are left."""
    count: dict[str, int] = {}
    total = 0
    for path in paths(found):
        total += 1
        names = path.split("/")
        for k in range(2, min(len(names) - 1, PATH_DEPTH)):
            folder = "/".join(names[:k]) + "/"
            count[folder] = count.get(folder, 0) + 1
    deep = [f for f, n in count.items() if n > 2 and 3 * n >= 2 * total]
    return max(deep, key=len, default="")
