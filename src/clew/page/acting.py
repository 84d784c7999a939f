"""What can be done on the page. Each act says first what it would do, with its numbers, and then does it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from clew.agent.control.controller import METHOD
from clew.agent.control.offering import cue_of
from clew.core.items import SHORT, Scope
from clew.engine.engine import Engine
from clew.errors import BadRequest, NotFound, OverBudget
from clew.screens.lines import count, dollars, words
from clew.sessions.sessions import Diff, Sessions
from clew.store.records import Session

FormValues = Mapping[str, str]
LONGEST_NAME = 100  # characters of a tag, and of a name that is given here
NONE_LEFT = "There is nothing to undo: no compaction of this conversation is left that was not undone already."
NOT_YOURS = "They hold for all clients of this gateway: only who runs it can change them, with clew config."
NO_NAME = "This conversation has no name, and only those with one can be switched: its client may send x-clew-session."


class Instructions(Protocol):
    """The user's words on when an agent begins a new session, and what its summary shall be like."""

    def read(self) -> tuple[str, str]:
        """When, and how."""

    async def write(self, when: str, how: str) -> str:
        """Have these hold from now on; says where they are kept. Raises `BadConfig`."""


class FormField(NamedTuple):
    """Something that the user may say."""

    name: str
    label: str
    value: str = ""
    choices: tuple[str, ...] = ()
    lines: int = 1
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class ActEffect:
    """What an act would do."""

    title: str
    told: tuple[str, ...]
    button: str  # nothing: it cannot be done
    fields: tuple[FormField, ...] = ()
    diff: Diff | None = None
    again: str = ""  # the button that asks anew, with what the fields say then


@dataclass(frozen=True, slots=True)
class Subject:
    """The conversation that something is done with."""

    engine: Engine
    scope: Scope
    branch: str
    instructions: Instructions | None  # None: they are not this user's to change

    @property
    def sessions(self) -> Sessions:
        return Sessions(self.engine, self.scope)

    async def newest(self) -> Session:
        """Its newest session. Raises `NotFound`."""
        found = await self.engine.store.sessions(self.scope, self.branch)
        if not found:
            raise NotFound("this conversation is not in the log any more")
        return max(found, key=lambda s: s.number)


class PageAct(Protocol):
    """Something that can be done with a conversation."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        """What it would do; nothing changes."""

    async def do(self, on: Subject, given: FormValues) -> str:
        """Do it; what was done, in words."""


class CompactNow:
    """Make the window shorter now."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        focus = given.get("focus", "").strip()
        field = FormField("focus", "What matters most (optional)", focus)
        try:
            diff = await on.sessions.preview((await on.newest()).id, focus)
        except NotFound as error:
            return ActEffect(
                "Compact now", (f"{error}".partition(": ")[2] or f"{error}",), "", (field,), again="Preview"
            )
        less = 1 - diff.after / diff.before if diff.before else 0
        told = [f"{diff.before:,} → {diff.after:,} tokens of {diff.limit:,}, {less:.0%} less. {_gone(diff)}"]
        if diff.price_before and diff.price_after:
            was, now = diff.price_before, diff.price_after
            told.append(
                f"A call costs {dollars(was.fresh) or '$0'} → {dollars(now.fresh) or '$0'} read anew, "
                f"{dollars(was.cached) or '$0'} → {dollars(now.cached) or '$0'} from the cache."
            )
        told.append("No model is asked for this preview. Everything stays in the log, and can be recalled or undone.")
        return ActEffect("Compact now", tuple(told), "Compact", (field,), diff, "Preview")

    async def do(self, on: Subject, given: FormValues) -> str:
        view = await on.engine.reopen(on.scope, on.branch)
        after = await on.engine.compact(view, given.get("focus", "").strip())
        return "Nothing could leave the window." if after is view else "Compacted."


def _gone(diff: Diff) -> str:
    gone, come = len(diff.removed), len(diff.stand_ins)
    return f"{count(gone, 'item leaves', 'items leave')} the window for {count(come, 'stand-in')}."


class UndoCompaction:
    """Take back the newest compaction."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        try:
            would = await on.engine.undo(on.scope, on.branch, dry_run=True)
        except (NotFound, OverBudget) as error:
            why = NONE_LEFT if isinstance(error, NotFound) else f"It cannot be undone: {error}."
            return ActEffect("Undo the newest compaction", (why,), "")
        told = (
            f"The window grows from {would.before:,} to {would.after:,} tokens, of {would.limit:,}.",
            "What was said since stays. What comes back is not compacted again while there is room for it.",
        )
        return ActEffect("Undo the newest compaction", told, "Undo")

    async def do(self, on: Subject, given: FormValues) -> str:
        try:
            done = await on.engine.undo(on.scope, on.branch)
        except NotFound:
            raise NotFound(NONE_LEFT) from None
        return f"Undone: {done.before:,} → {done.after:,} tokens of {done.limit:,}."


class PinItem:
    """Keep an item as it is in every later view, or no longer."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        id, pinned = await self._found(on, given)
        hidden = (FormField("id", "", id, hidden=True),)
        node = (await on.engine.store.nodes(on.scope, [id]))[id]
        said = f"“{words(node.item.text, 160)}”"
        if pinned:
            told = "From now on it may be compacted like everything else."
            return ActEffect("Remove this pin", (said, told), "Unpin", hidden)
        size = (await on.engine.limits.target(on.scope, (await on.engine.view(on.scope, on.branch)).frame)).meter.node(
            node
        )
        told = f"It stays word for word in every later view, and takes {size.tokens:,} tokens of each call."
        return ActEffect("Pin this", (said, told), "Pin", hidden)

    async def do(self, on: Subject, given: FormValues) -> str:
        id, pinned = await self._found(on, given)
        back = await on.engine.pin(await on.engine.view(on.scope, on.branch), id, off=pinned)
        if pinned:
            return "It is no longer pinned."
        return "It is quoted in the window from the next request on." if back.ids else "It stays as it is from now on."

    async def _found(self, on: Subject, given: FormValues) -> tuple[str, bool]:
        trace = await on.engine.store.load(on.scope, on.branch)
        whole = await on.engine.resolve(on.scope, given.get("id", ""), on.branch)
        if whole not in {p.id for p in trace.said} | {n.id for edit in trace.edits for n in edit.stand_ins}:
            raise NotFound(f"{whole[:SHORT]} is not a single item of this conversation")
        return whole, whole in trace.pins()


class SwitchMethod:
    """Have somebody else decide when to compact."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        name = (await on.newest()).name
        if not name:
            return ActEffect("Who decides", (NO_NAME,), "")
        now = await method(on, name)
        told = (
            f"Now it is {now}.",
            "auto: clew compacts when the window is nearly full. llm: with each request the agent is told how full its "
            "window is, and begins a new session when it sees fit; clew steps in before it is too late.",
            "It holds from the next request on.",
        )
        return ActEffect(
            "Who decides when to compact", told, "Switch", (FormField("method", "Method", now, ("auto", "llm")),)
        )

    async def do(self, on: Subject, given: FormValues) -> str:
        name, wanted = (await on.newest()).name, given.get("method", "")
        if not name or wanted not in ("auto", "llm"):
            raise BadRequest(NO_NAME if not name else f"expected auto or llm, got {words(wanted, 40)}")
        await on.engine.store.learn(on.scope, METHOD, name, {"method": wanted})
        return f"From the next request on it is {wanted}."


async def method(on: Subject, name: str | None) -> str:
    """Who decides in a conversation of that name."""
    known = (await on.engine.store.learned(on.scope, METHOD)).get(name or "", {})
    return str(known.get("method") or on.engine.settings.method)


class ForkHere:
    """A conversation of its own that goes on from here."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        call = given.get("call", "")
        hidden = FormField("call", "", call, hidden=True)
        where = f"turn {given.get('turn', call)}" if call else "now"
        told = (
            f"A new conversation begins with all that was said until {where}; this one stays as it is.",
            "An agent goes on with it by that name: as its session, or in the header x-clew-session.",
        )
        return ActEffect("Fork here", told, "Fork", (FormField("name", "Name of the new conversation"), hidden))

    async def do(self, on: Subject, given: FormValues) -> str:
        name, call = given.get("name", "").strip(), given.get("call", "")
        if not name or not name.isprintable() or len(name) > LONGEST_NAME:
            raise BadRequest(
                f"give the new conversation a name that can be printed, of at most {LONGEST_NAME} characters"
            )
        if call and not call.isdecimal():
            raise BadRequest(f"expected the number of a call, got {words(call, 40)}")
        made = await on.sessions.fork((await on.newest()).id, name, int(call) if call else None)
        return f"{words(made.name or '', 60)} goes on from here."


class TagConversation:
    """Give a conversation other tags."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        tags = " ".join((await on.newest()).tags)
        told = ("Words by which the list can be narrowed, with spaces between them.",)
        return ActEffect("Tags", told, "Save", (FormField("tags", "Tags", tags),))

    async def do(self, on: Subject, given: FormValues) -> str:
        tags = sorted(set(given.get("tags", "").split()))
        if any(not tag.isprintable() or len(tag) > LONGEST_NAME for tag in tags):
            raise BadRequest(f"give tags that can be printed, of at most {LONGEST_NAME} characters each")
        await on.engine.store.label(on.scope, on.branch, tags=tags)
        return f"Tagged {', '.join(tags)}." if tags else "It has no tags any more."


class ArchiveConversation:
    """Put a conversation out of the way, or back."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        if (await on.newest()).archived:
            return ActEffect("Bring it back", ("It is listed among the others again.",), "Bring back")
        told = ("It is listed only among archived conversations. Nothing is deleted, and its agent can go on with it.",)
        return ActEffect("Archive this conversation", told, "Archive")

    async def do(self, on: Subject, given: FormValues) -> str:
        archived = not (await on.newest()).archived
        await on.engine.store.label(on.scope, on.branch, archived=archived)
        return "Archived." if archived else "It is back in the list."


class EditInstructions:
    """Say when an agent shall begin a new session, and what its summary shall be like."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        if on.instructions is None:
            return ActEffect("Instructions for compaction", (NOT_YOURS,), "")
        when, how = on.instructions.read()
        told = (
            "These are for agents that decide themselves (method llm), in all conversations, from the next request on.",
            "A share such as “at 60 %” also makes clew remind the agent at that point.",
        )
        fields = (
            FormField("when", "When to begin a new session", when, lines=3),
            FormField("how", "How to sum up", how, lines=6),
        )
        return ActEffect("Instructions for compaction", told, "Save", fields)

    async def do(self, on: Subject, given: FormValues) -> str:
        when, how = given.get("when", "").strip(), given.get("how", "").strip()
        if on.instructions is None:
            raise BadRequest(NOT_YOURS)
        cue_of(when)  # what would be too late is refused before anything is written
        return f"They hold from the next request on, {await on.instructions.write(when, how)}."


ACTS: Mapping[str, PageAct] = {
    "compact": CompactNow(),
    "undo": UndoCompaction(),
    "pin": PinItem(),
    "method": SwitchMethod(),
    "fork": ForkHere(),
    "tag": TagConversation(),
    "archive": ArchiveConversation(),
    "instruct": EditInstructions(),
}
