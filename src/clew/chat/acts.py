"""What commands of the chat do; each is a function of the chat and of what was typed after the command."""

import re
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console

from clew.agent.tools import shown
from clew.chat import welcome
from clew.chat.choosing import ChoiceRow, Choosing
from clew.chat.entries import bounded, brief
from clew.chat.writing import Field, Filling, Writing
from clew.core.items import SHORT
from clew.errors import NotFound
from clew.screens import chapters as screen
from clew.screens import diff as diffs
from clew.screens.lines import called, count, dollars, label, moment, numbered
from clew.sessions import chains
from clew.sessions.chapters import ToldChapter
from clew.sessions.conversation import NOTHING_LEAVES, PinEffect
from clew.store.records import Method

if TYPE_CHECKING:
    from clew.chat.app import Chat

_ID = re.compile("[0-9a-f]{6,32}")
METHODS: dict[Method, str] = {"auto": "Auto-compaction", "llm": "LLM/User-driven compaction"}


async def method(chat: "Chat", typed: str) -> None:
    """Choose who decides when to compact."""
    controller = chat.backend.controller
    controller.check_idle("switch the compaction method")  # before anybody chooses
    rows = [ChoiceRow(name, text, f"/method {name}", name == controller.method) for name, text in METHODS.items()]
    picked = typed if typed in METHODS else await chat.ask(Choosing("Select Compaction Method", rows, typed))
    for name, text in METHODS.items():
        if name == picked:
            chat.say(f"{text}, from the next call on; {await chat.backend.switch(name)}")


async def compact(chat: "Chat", typed: str) -> None:
    """Compact now, with what is cared for above all."""
    if (await (await chat.backend.idle()).compact(typed)).changed:
        await chat.hearing.tell_compaction()
        chat.transcript.follow()
    else:
        chat.say(NOTHING_LEAVES)


async def new_session(chat: "Chat", typed: str) -> None:
    """Begin a new session with a summary that one can edit first."""
    chat.backend.controller.check_idle()
    title = "New session with this summary: edit it as you like"
    text = await chat.ask(Writing(title, typed or await chat.backend.draft()))
    if text is not None and (await (await chat.backend.idle()).begin(text)).changed:
        await chat.hearing.tell_compaction()
        chat.transcript.follow()


async def save_summary(chat: "Chat", typed: str) -> None:
    """Write a summary of the conversation to a file."""
    text = await chat.backend.draft()
    field = Field("Where to", f"{chat.backend.agent.session}.md")
    given = [typed] if typed else await chat.ask(Filling("Save summary to file", [field]))
    if given and given[0].strip():
        there = await chat.backend.write(given[0].strip(), text + "\n")
        chat.say(f"{len(text):,} characters written to {there}")


async def undo(chat: "Chat", typed: str) -> None:
    """Take back the newest compaction."""
    done = await (await chat.backend.idle()).undo()
    sizes = f"{done.before:,} → {done.after:,} tokens of {done.limit:,}"
    chat.say(f"Compaction undone: {sizes}. The model sees again what it replaced.")


async def lineage(chat: "Chat", typed: str) -> None:
    """Show the chain of sessions, and what a compaction of it did."""
    own = await (await chat.backend.conversation()).session()
    root = next(r for r in chains.conversations(await chat.backend.sessions.all()) if r.has(own.branch))
    rows = [_branch(row, own.id) for row in chains.rows(root, whole=True)]
    picked = await chat.ask(Choosing(f"Lineage of {called(own)}: Enter shows what was lost", rows, typed))
    if picked:
        await lost(chat, picked)


def _branch(row: chains.TreeRow, here: str) -> ChoiceRow:
    """A line of the tree; a session that is all of its conversation has the line of that."""
    only = len(row.chain.sessions) == 1
    session = row.session or row.chain.first
    marked = session.id == here and (only or row.session is not None)
    if row.session is None:
        return ChoiceRow(session.branch, f"{'   ' * row.depth}{called(session)}", "", marked)
    undone = ", undone" if session.undone else ""
    aside = f"{moment(session.at)}  {count(session.calls, 'call')}, {session.sent:,} sent"
    text = f"{'   ' * row.depth}└─ {session.number} {session.cause} ({session.method or 'auto'}){undone}"
    return ChoiceRow(f"{session.branch}.{session.number}", text, aside, marked)


async def lost(chat: "Chat", typed: str) -> None:
    """Show what a compaction took out of view, and what became of every fact."""
    found = await chat.backend.lost(typed)
    title = f"What was lost in {numbered(found.session)}"
    _show(chat, title, lambda console: diffs.diff(console, found, full=True))


async def preview(chat: "Chat", typed: str) -> None:
    """Show what a compaction would do now, before it is made."""
    found = await (await chat.backend.conversation()).preview(typed)
    named = chat.backend.config.summary.model
    model = {"none": "", "own": chat.backend.agent.speaker.name}.get(named, named)
    _show(chat, "If it were compacted now", lambda console: diffs.preview(console, found, False, model))


def _show(chat: "Chat", title: str, draw: Callable[[Console], None]) -> None:
    out = StringIO()
    width = chat.transcript.columns
    draw(Console(file=out, width=width, no_color=True, highlight=False, legacy_windows=False))
    chat.show_page(title, out.getvalue())


async def show(chat: "Chat", typed: str) -> None:
    """Open what an entry stands for, where it stands; or close it again."""
    entries = [entry for entry in reversed(chat.transcript.entries) if entry.opens]
    rows = [ChoiceRow(str(n), brief(entry.text, 160), entry.kind, entry.open) for n, entry in enumerate(entries)]
    fitting = [row.id for row in rows if typed and row.fits(typed)]
    title, empty = "Open which of these?", "nothing here stands for anything else yet"
    picked = fitting[0] if len(fitting) == 1 else await chat.ask(Choosing(title, rows, typed, empty))
    if picked is not None:
        await chat.toggle(entries[int(picked)])


async def search(chat: "Chat", typed: str) -> None:
    """Find what was said in this conversation and in those it came from, in view or not."""
    given = [typed] if typed else await chat.ask(Filling("Search", [Field("What was it about?")]))
    if not given or not given[0].strip():
        return
    one = await chat.backend.conversation()
    hits = await one.search(given[0])
    said = [" … ".join(line.text for line in hit.found.lines) or hit.found.title for hit in hits]
    rows = [
        ChoiceRow(hit.found.id, brief(text, 160), hit.found.id[:SHORT]) for hit, text in zip(hits, said, strict=True)
    ]
    title = f"{count(len(hits), 'place')} about {brief(given[0], 40)}: Enter shows all of it"
    if picked := await chat.ask(Choosing(title, rows, empty="nothing was said about that")):
        whole = "\n\n".join(node.item.text for node in await one.recall(picked))
        chat.show_page(f"What {picked[:SHORT]} says", bounded(whole))


async def pin(chat: "Chat", typed: str) -> None:
    """Keep an item as it is in every later window, or no longer."""
    one, view = await chat.backend.conversation(), await chat.backend.agent.view()
    if _ID.fullmatch(typed):
        with suppress(NotFound):
            _tell_pin(chat, await one.pin([typed], off=None))
            return
    rows = [
        ChoiceRow(
            n.id, f"{label(n.item)}: {brief(f'{n.item.name} {n.item.text}', 120)}", n.id[:SHORT], n.id in view.pinned
        )
        for n in reversed(view.nodes)
    ]
    if picked := await chat.ask(Choosing("Pin or unpin", rows, typed)):
        _tell_pin(chat, await one.pin([picked], off=None))


def _tell_pin(chat: "Chat", done: PinEffect) -> None:
    kept = "is quoted in the window from the next request on" if done.quoted else "stays as it is from now on"
    told = "is no longer pinned" if done.off else kept
    what = done.items[0].id[:SHORT] if len(done.items) == 1 else f"Each of {len(done.items)} items"
    chat.say(f"{what} {told}.")


async def chapters(chat: "Chat", typed: str) -> None:
    """Show who wrote each chapter, with what its model was asked and answered."""
    one = await chat.backend.conversation()
    rows = [_chapter(told, f"{told.state:<9}") for told in await one.chapters() if told.id]
    title = "Who wrote the chapters: Enter shows one, with question and answer"
    if picked := await chat.ask(Choosing(title, rows, typed, "there are no chapters yet: nothing was compacted")):
        [told, *_] = await one.chapters(picked)
        _show(chat, f"Chapter {told.id}", lambda console: screen.show_chapter(console, told))


def _chapter(told: ToldChapter, aside: str) -> ChoiceRow:
    cost = dollars(told.cost)
    return ChoiceRow(told.id, f"{told.id}  {told.title:<16} by {brief(told.author, 40)}", f"{aside} {cost}".strip())


async def rewrite(chat: "Chat", typed: str) -> None:
    """Have code write a chapter that a model wrote."""
    chat.backend.controller.check_idle()
    models = [told for told in await (await chat.backend.conversation()).chapters() if told.node and told.asked]
    rows = [_chapter(told, f"{told.tokens:,} tokens") for told in models]
    none = "no chapter in view was written by a model"
    asked = Choosing("Have code write which chapter?", rows, typed, none)
    picked = typed if any(row.id == typed for row in rows) else await chat.ask(asked)
    if picked:
        done = await (await chat.backend.idle()).rewrite(picked)
        chat.say(f"Rewritten by code: {done.before:,} → {done.after:,} tokens.")


async def instructions(chat: "Chat", typed: str) -> None:
    """Say when the agent shall begin a new session, and what its summary shall be like."""
    chat.backend.controller.check_idle()
    controller = chat.backend.controller
    fields = [
        Field("When to begin a new session (75% if nothing is said)", controller.when, "80%, 150000 tokens, or words"),
        Field("What its summary shall be like", controller.how, "such as: a table of decisions"),
    ]
    given = await chat.ask(Filling("Instructions for new sessions", fields))
    if given:
        chat.say(f"The next call has these instructions; {await chat.backend.instruct(*given)}")


async def sessions(chat: "Chat", typed: str) -> None:
    """Go on with another conversation."""
    chat.backend.controller.check_idle()
    titles = await chat.backend.titles()
    rows = [
        ChoiceRow(
            s.name or s.id,
            f"{called(s)}  {brief(titles.get(s.branch, ''), 50)}".rstrip(),
            f"{moment(s.at)}  {count(s.number, 'session')}",
            s.name == chat.backend.agent.session,
        )
        for s in await chat.backend.all()
    ]
    known = {row.id for row in rows}
    picked = typed if typed in known else await chat.ask(Choosing("Sessions: Enter resumes", rows, typed))
    if picked:
        await chat.resume(picked)


async def new(chat: "Chat", typed: str) -> None:
    """Begin a conversation that knows nothing of this one."""
    chat.backend.controller.check_idle()
    await chat.resume("")


async def model(chat: "Chat", typed: str) -> None:
    """Talk to another model."""
    chat.backend.controller.check_idle()
    field = Field(welcome.MODELS, chat.backend.model, "openai/gpt-5")
    given = [typed] if typed else await chat.ask(Filling("Model", [field]))
    if given and given[0].strip():
        session = chat.backend.agent.session
        chat.say(f"{given[0].strip()} answers from now on; {await chat.backend.use(given[0].strip())}")
        if session != chat.backend.agent.session:
            await chat.resume(None)


async def window(chat: "Chat", typed: str) -> None:
    """Show what the window is made of, item by item."""
    filling, view = await chat.backend.filling(), await chat.backend.agent.view()
    assert filling is not None, "there is a view"
    found = filling.window
    kinds = [f"{part.kind:<18}{part.tokens:>9,} tokens {count(part.items, 'item'):>12}" for part in found.parts]
    free = f"{'free':<18}{max(0, found.limit - found.sent):>9,} tokens"
    kept = f"{'reserve':<18}{found.reserve:>9,} tokens, kept for the answer"
    made = view.stand_ins()
    room = chat.transcript.columns - 14
    lines = [f"{'▣' if n.id in made else ' '} {label(n.item):<10}{brief(n.item.text, room)}" for n in view.nodes]
    chat.show_page("The window", "\n".join([chat.meter.words, chat.meter.kinds, "", *kinds, free, kept, "", *lines]))


async def copy(chat: "Chat", typed: str) -> None:
    """Give the last answer to the clipboard, as the model wrote it."""
    text = next((entry.text for entry in reversed(chat.transcript.entries) if entry.kind == "agent"), "")
    if not text:
        raise NotFound("there is no answer to copy yet")
    chat.copy_to_clipboard(shown(text))
    told = "copied, if your terminal allows programs to set the clipboard (OSC 52)"
    chat.say(f"{count(len(text), 'character')} {told}")


async def allowed(chat: "Chat", typed: str) -> None:
    """Show what was allowed for good in this folder, and take one of it back."""
    rules = chat.backend.allowed.all()
    rows = [ChoiceRow(str(n), rule) for n, rule in enumerate(rules)]
    title = f"Allowed in {chat.backend.places.shown(chat.backend.folder)}: Enter takes one back"
    picked = await chat.ask(Choosing(title, rows, typed, "nothing is allowed for good here"))
    if picked is not None:
        rule = rules[int(picked)]
        chat.backend.allowed.remove(rule)
        chat.say(f"No longer a rule here: {rule}")


async def theme(chat: "Chat", typed: str) -> None:
    """Change between dark and light, for good."""
    name = typed if typed in ("dark", "light") else "light" if chat.current_theme.dark else "dark"
    chat.theme = f"textual-{name}"
    chat.say(f"{name}, {await chat.backend.set('agent.theme', name)}")


async def keys(chat: "Chat", typed: str) -> None:
    """Say what the keys do."""
    chat.show_page("Keys", files("clew.chat").joinpath("help.md").read_text(encoding="utf-8"))


async def leave(chat: "Chat", typed: str) -> None:
    """Leave; the conversation stays."""
    await chat.action_quit()
