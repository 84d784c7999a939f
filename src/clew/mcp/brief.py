"""A conversation in brief, for whoever goes on with it: where it stands, what is pinned, what was said."""

from dataclasses import replace as with_

from clew.core.items import Frame, Node
from clew.core.limits import Budget
from clew.core.view import View
from clew.engine.engine import Engine
from clew.errors import NotFound, OverBudget
from clew.mcp.answers import Answers
from clew.mcp.reach import Reach
from clew.mcp.telling import data, room
from clew.screens.lines import called
from clew.sessions.conversation import Conversation
from clew.store.records import Session
from clew.text.excerpts import full_text, headed

BRIEF_WINDOW = 5_000  # tokens that a conversation is compacted to
HEAD_SHARE = 0.6  # of what does not fit: the rest is its end
PINS_SHARE = 0.3
ITEM_CHARACTERS = 2_000  # characters of one item where many are shown


async def brief(answers: Answers, one: Conversation, size: int) -> str:
    """Where a conversation stands, in `size` characters: as clew would compact it, with its pins word for word."""
    session, head = await one.session(), await answers.standing(one)
    try:
        view = await one.view()
    except NotFound:
        return data(head, f"conversation {called(session)}", size)
    pinned = _cut(full_text([held.node for held in await one.pins()]), int(PINS_SHARE * room(size)))
    parts = [head, *([f"pinned:\n{pinned}"] if pinned else [])]
    left = room(size) - sum(len(part) + 2 for part in parts)
    parts.append(_cut(full_text((await _small(one.engine, view)).nodes), left))
    more = "recall with an id shows all of something; timeline and search find more."
    return data("\n\n".join(parts), f"conversation {called(session)}", size, more)


async def _small(engine: Engine, view: View) -> View:
    """The view in a small window, without system prompt and tools: nothing is written."""
    bare = with_(view, frame=Frame(view.frame.format, view.frame.model))
    small = engine.variant(Budget(window=BRIEF_WINDOW, reserve=0))
    try:
        return await small.preview(bare)
    except OverBudget:
        return view


async def passage(reach: Reach, session: Session, size: int) -> str:
    """The newest of what was said in a conversation, word for word where it fits."""
    told: list[str] = []
    left, more = room(size), "This is all of it."
    async for node in Conversation(reach.engine, reach.scope, session.branch).newest():
        text = _shown(node)
        left -= len(text) + 1
        if left < 0 and told:
            more = "There is more before these: timeline lists it, search finds it, recall shows one whole."
            break
        told.append(text)
    return data("\n".join(reversed(told)), f"the newest of conversation {called(session)}, oldest first", size, more)


def _shown(node: Node) -> str:
    head, _, text = headed(node).partition("\n")
    return f"{head}\n{_cut(text, ITEM_CHARACTERS)}"


def _cut(text: str, size: int) -> str:
    """The beginning and the end of a text."""
    if len(text) <= max(0, size):
        return text
    head = int(HEAD_SHARE * size)
    left = len(text) - size
    return f"{text[:head]}\n(… {left:,} characters left out …)\n{text[len(text) - (size - head) :]}" if size > 0 else ""
