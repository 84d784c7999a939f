"""A history as requests: what somebody asked, and step by step what was said and done about it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from clew.core.caches import per_item
from clew.core.items import Item, Node
from clew.facts.sheets import FENCED
from clew.steps.outcome import failed
from clew.steps.shorten import parsed
from clew.steps.worklog.acts import Act, act_of, command_act
from clew.steps.worklog.wording import on_one_line, plain, prose
from clew.text.decorations import (
    ATTACHED,
    FROM_SUMMARY,
    LEFT_BRANCH,
    OBSERVED,
    OWN_COMMAND,
    RAN_COMMAND,
    is_program_made,
    undecorated,
)

NOTE = 4_000  # characters of what a program reported that are looked at
PASTE = 2_000  # characters: a longer message was not all typed
SAID_NOTHING = ("No response requested.", "(no content)")  # what clients write where the assistant said nothing
_COMMAND = re.compile(r"```(?:bash|sh|shell|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_NOTIFIED = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
_TASK = re.compile(r"<task-id>\s*([\w-]+)")
_RESULT = re.compile(r"<result>(.*?)(?:</result>|$)", re.DOTALL)
_SPOKEN = re.compile(r'^\s*\{\s*"(?:message|response|content|text|answer)"\s*:\s*')


@dataclass(slots=True)
class WorkStep:
    """What the assistant said at once, and what it then did."""

    text: str = ""  # all that was said
    acts: list[Act] = field(default_factory=list)
    results: list[tuple[Act, Node]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what programs reported meanwhile

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


def typed(item: Item) -> str:
    """What a person typed in this item: nothing if a program said it."""
    if item.role != "user" or item.kind != "text" or item.text.startswith(FENCED) or is_program_made(item.text):
        return ""
    return undecorated(item.text.partition(OWN_COMMAND)[0])


def requests(nodes: Sequence[Node]) -> list[WorkRequest]:
    """The requests of a history in their order; the first has no ask where the history begins in the middle of one."""
    results = _results(nodes)
    found = [WorkRequest()]
    asking = False  # whether the last thing said was an ask: two in a row are one
    for at, node in enumerate(nodes):
        item, now = node.item, found[-1]
        if ask := typed(item):
            if asking:
                now.ask = f"{now.ask}\n{ask}"
            else:
                found.append(WorkRequest(ask))
            found[-1].ids.append(node.id)
            asking = True
            if printed := item.text.partition(OWN_COMMAND)[2]:
                found[-1].steps.append(WorkStep(notes=[f"{OWN_COMMAND}{printed}".strip()]))
            continue
        if item.role == "user" and item.kind == "media":
            now.images += 1
            continue
        if not item.text.strip() and item.kind != "call":
            continue
        asking = asking and item.role == "user"
        if item.kind == "call":
            result = results.get(at)
            now.steps = now.steps or [WorkStep()]
            _add(now.steps[-1], _act(item, result.item if result else None), result)
        else:
            _take(now, item, nodes[at + 1] if at + 1 < len(nodes) else None)
    return [r for r in found if r.ask or r.steps]


@per_item
def _acts(call: Item) -> list[tuple[Item | None, Act]]:
    """What a call did, with the result that says so."""
    return []


def _act(call: Item, result: Item | None) -> Act:
    known = _acts(call)
    if not known or known[0][0] is not result:
        known[:] = [(result, act_of(call, result))]
    return known[0][1]


def _take(now: WorkRequest, item: Item, following: Node | None) -> None:
    match item.kind:
        case "text" if item.role == "assistant":
            step = WorkStep(_spoken(item.text))
            now.steps.append(step)
            found = _COMMAND.findall(item.text)
            if found and following is not None and (printed := following.item).text.startswith(OBSERVED):
                step.text = _COMMAND.sub("", item.text).strip()
                _add(step, command_act(found[-1], printed, printed.text, not failed(printed)), following)
        case "text" | "summary" if not item.text.startswith(OBSERVED):
            if note := _note(item):
                now.steps = now.steps or [WorkStep()]
                now.steps[-1].notes.append(note)
        case _:
            pass


def _add(step: WorkStep, act: Act, result: Node | None) -> None:
    step.acts.append(act)
    if result is not None:
        step.results.append((act, result))


def _spoken(text: str) -> str:
    """What the assistant said; some wrap their words in an object."""
    if _SPOKEN.match(text) and text.rstrip().endswith("}"):
        value = parsed(text.strip())
        if isinstance(value, dict) and isinstance(said := next(iter(value.values()), None), str):
            text = said
    return "" if (said := text.strip()) in SAID_NOTHING else said


def _note(item: Item) -> str:
    """What a program said under the user's role, in short: a notification's own summary, else nothing of it."""
    if found := _NOTIFIED.search(item.text[:NOTE]):
        id, result = _TASK.search(item.text[:NOTE]), _RESULT.search(item.text[:NOTE])
        told = f"{on_one_line(found[1])}{f' (task {id[1]})' if id else ''}"
        return f"{told}: {result[1].strip()}" if result else told
    if item.role == "user" and item.text.startswith(ATTACHED):
        return item.text.partition("\n")[0]
    said = undecorated(item.text) if item.role == "user" else item.text
    is_told = (
        item.kind == "summary" or item.role == "system" or said.startswith((*FROM_SUMMARY, LEFT_BRANCH, RAN_COMMAND))
    )
    return plain(said).strip() if is_told else ""


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
        for k in range(2, len(names) - 1):
            folder = "/".join(names[:k]) + "/"
            count[folder] = count.get(folder, 0) + 1
    deep = [f for f, n in count.items() if n > 2 and 3 * n >= 2 * total]
    return max(deep, key=len, default="")
