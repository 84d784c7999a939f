"""What can be done on the page. Each act says first what it would do, with its numbers, and then does it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from clew.control.offering import cue_of
from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.errors import BadRequest, NotFound, OverBudget
from clew.screens.lines import count, dollars, words
from clew.sessions.conversation import NOTHING_LEAVES, Conversation
from clew.sessions.diffs import Diff
from clew.store.records import Session

FormValues = Mapping[str, str]
QUOTED = 3  # items that a question quotes
RECALLED = 5  # texts that an answer leads to
NOT_YOURS = "They hold for all clients of this gateway: only who runs it can change them, with `clew config`."


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
    sentences: tuple[str, ...]
    button: str  # nothing: it cannot be done
    fields: tuple[FormField, ...] = ()
    diff: Diff | None = None
    again: str = ""  # the button that asks anew, with what the fields say then
    text: str = ""  # that would stand there, or that is told
    found: tuple[tuple[str, str, str], ...] = ()  # what was said elsewhere: ids, titles, and some words


@dataclass(frozen=True)
class Subject:
    """The conversation that something is done with."""

    engine: Engine
    scope: Scope
    branch: str
    instructions: Instructions | None  # None: they are not this user's to change

    @cached_property
    def conversation(self) -> Conversation:
        return Conversation(self.engine, self.scope, self.branch)

    async def newest(self) -> Session:
        """Its newest session. Raises `NotFound`."""
        return await self.conversation.session()


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
            diff = await on.conversation.preview(focus)
        except NotFound as error:
            return ActEffect("Compact now", (f"{error}",), "", (field,), again="Preview")
        less = 1 - diff.after / diff.before if diff.before else 0
        told = [f"{diff.before:,} → {diff.after:,} tokens of {diff.limit:,}, {less:.0%} less. {_gone(diff)}"]
        if diff.price_before and diff.price_after:
            was, now = diff.price_before, diff.price_after
            told.append(
                f"A call costs {dollars(was.fresh) or '$0'} → {dollars(now.fresh) or '$0'} without the cache, "
                f"{dollars(was.cached) or '$0'} → {dollars(now.cached) or '$0'} from the cache."
            )
        told.append("No model is asked for this preview. Everything stays in the log, and can be recalled or undone.")
        return ActEffect("Compact now", tuple(told), "Compact", (field,), diff, "Preview")

    async def do(self, on: Subject, given: FormValues) -> str:
        done = await on.conversation.compact(given.get("focus", "").strip())
        return f"Compacted: {done.before:,} → {done.after:,} tokens." if done.changed else NOTHING_LEAVES


def _gone(diff: Diff) -> str:
    gone, come = len(diff.removed), len(diff.stand_ins)
    return f"{count(gone, 'item leaves', 'items leave')} the window for {count(come, 'stand-in')}."


class UndoCompaction:
    """Take back the newest compaction."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        try:
            would = await on.conversation.undo(dry_run=True)
        except (NotFound, OverBudget) as error:
            return ActEffect("Undo the newest compaction", (f"{error}",), "")
        told = (
            f"The window grows from {would.before:,} to {would.after:,} tokens, of {would.limit:,}.",
            "What was said since stays. What comes back is not compacted again while there is room for it.",
        )
        return ActEffect("Undo the newest compaction", told, "Undo")

    async def do(self, on: Subject, given: FormValues) -> str:
        done = await on.conversation.undo()
        return f"Undone: {done.before:,} → {done.after:,} tokens of {done.limit:,}."


class RecallSaid:
    """Ask what was said; nothing changes."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        asked, title = given.get("asked", "").strip(), "Recall what was said"
        field = FormField("asked", "A question, or some words of it", asked)
        if not asked:
            told = "The log of this conversation answers, out of view or not. No model is asked, and nothing changes."
            return ActEffect(title, (told,), "", (field,), again="Ask")
        text = await on.conversation.answer(asked)
        hits = [hit.found for hit in await on.conversation.search(asked, limit=RECALLED)]
        found = tuple((one.id, one.title, " ".join(line.text for line in one.lines)) for one in hits)
        return ActEffect(title, (), "", (field,), again="Ask", text=text, found=found)

    async def do(self, on: Subject, given: FormValues) -> str:
        raise BadRequest("a question changes nothing: there is nothing to be done")


class PinItem:
    """Keep an item as it is in every later view, or no longer."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        id = given.get("id", "")
        would = await on.conversation.pin([id], off=None, dry_run=True)
        hidden = (FormField("id", "", id, hidden=True),)
        said = tuple(f"“{words(node.item.text, 160)}”" for node in would.items[:QUOTED])
        if would.off:
            told = "From now on it may be compacted like everything else."
            return ActEffect("Remove this pin", (*said, told), "Unpin", hidden)
        told = f"It stays word for word in every later view, and takes {would.size:,} tokens of each call."
        return ActEffect("Pin this", (*said, told), "Pin", hidden)

    async def do(self, on: Subject, given: FormValues) -> str:
        done = await on.conversation.pin([given.get("id", "")], off=None)
        if done.off:
            return "It is no longer pinned."
        return (
            "It is quoted in the window from the next request on." if done.quoted else "It stays as it is from now on."
        )


class RewriteChapter:
    """Have code tell what a model's chapter tells."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        title, hidden = "Have code write this chapter", FormField("id", "", given.get("id", ""), hidden=True)
        try:
            would = await on.conversation.rewrite(hidden.value, dry_run=True)
        except (BadRequest, NotFound) as error:
            return ActEffect(title, (f"{error}",), "")
        told = (
            f"Instead of {words(would.author, 40)}'s words, {would.before:,} tokens, these {would.after:,} stand there "
            "from the next request on. An undo takes that back.",
        )
        return ActEffect(title, told, "Rewrite", (hidden,), text=would.text)

    async def do(self, on: Subject, given: FormValues) -> str:
        done = await on.conversation.rewrite(given.get("id", ""))
        return f"Rewritten by code: {done.before:,} → {done.after:,} tokens."


class TakeRuleBack:
    """Keep one of the user's rules in mind no longer."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        rule, title = given.get("rule", ""), "Take this rule back"
        try:
            would = await on.conversation.take_back(rule, dry_run=True)
        except (BadRequest, NotFound) as error:
            return ActEffect(title, (f"{error}",), "")
        told = (
            f"“{words(rule, 300)}”",
            "From the next request on it is no longer told to the model as a rule, nor handed on by later compactions: "
            f"{would.before:,} → {would.after:,} tokens. The message that says it stays where it is in view.",
            "An undo takes that back.",
        )
        return ActEffect(title, told, "Take back", (FormField("rule", "", rule, hidden=True),))

    async def do(self, on: Subject, given: FormValues) -> str:
        await on.conversation.take_back(given.get("rule", ""))
        return "It is no longer kept in mind. Undo brings it back."


class SwitchMethod:
    """Have somebody else decide when to compact."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        now = await on.conversation.method()
        try:
            await on.conversation.switch(now, dry_run=True)
        except NotFound as error:
            return ActEffect("Who decides", (f"{error}",), "")
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
        return f"From the next request on it is {(await on.conversation.switch(given.get('method', ''))).method}."


class ForkHere:
    """A conversation of its own that goes on from here."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        call = given.get("call", "")
        hidden = FormField("call", "", call, hidden=True)
        where = f"turn {call}" if call else "now"
        told = (
            f"A new conversation begins with all that was said until {where}; this one stays as it is.",
            "An agent goes on with it by that name: as its session, or in the header x-clew-session.",
        )
        return ActEffect("Fork here", told, "Fork", (FormField("name", "Name of the new conversation"), hidden))

    async def do(self, on: Subject, given: FormValues) -> str:
        call = given.get("call", "")
        if call and not call.isdecimal():
            raise BadRequest(f"expected the number of a call, got {words(call, 40)}")
        made = await on.conversation.fork(given.get("name", ""), int(call) if call else None)
        return f"{words(made.name, 60)} goes on from here, with {count(made.items, 'item')}."


class TagConversation:
    """Give a conversation other tags."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        tags = ", ".join((await on.conversation.tag()).tags)
        told = ("Words by which the list can be narrowed, with commas between them.",)
        return ActEffect("Tags", told, "Save", (FormField("tags", "Tags", tags),))

    async def do(self, on: Subject, given: FormValues) -> str:
        wanted = [tag.strip() for tag in given.get("tags", "").split(",") if tag.strip()]
        before = (await on.conversation.tag()).tags
        tags = (await on.conversation.tag(wanted, [tag for tag in before if tag not in wanted])).tags
        return f"Tagged {', '.join(tags)}." if tags else "It has no tags any more."


class ArchiveConversation:
    """Put a conversation out of the way with what came of it, or bring it back."""

    async def ask(self, on: Subject, given: FormValues) -> ActEffect:
        off = bool((await on.newest()).archived)
        others = len((await on.conversation.archive(off, dry_run=True)).branches) - 1
        along = (f"{count(others, 'conversation')} that began in it: the same.",) if others else ()
        if off:
            return ActEffect("Bring it back", ("It is listed among the others again.", *along), "Bring back")
        told = "It is listed only among archived conversations. Nothing is deleted, and its agent can go on with it."
        return ActEffect("Archive this conversation", (told, *along), "Archive")

    async def do(self, on: Subject, given: FormValues) -> str:
        done = await on.conversation.archive(off=bool((await on.newest()).archived))
        return "It is back in the list." if done.off else "Archived."


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
    "recall": RecallSaid(),
    "pin": PinItem(),
    "rewrite": RewriteChapter(),
    "rule": TakeRuleBack(),
    "method": SwitchMethod(),
    "fork": ForkHere(),
    "tag": TagConversation(),
    "archive": ArchiveConversation(),
    "instruct": EditInstructions(),
}
