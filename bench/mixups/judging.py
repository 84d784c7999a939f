"""Whether a text holds words of another conversation; through which door they came, and what linked the two."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from clew import wire
from clew.core import rawjson
from clew.core.items import Item
from mixups.conversations import Conversation
from mixups.upstream import Heard
from mixups.words import owners_in, words_in
from mixups.world import SAME, Exchange, Mixup, World

OWN_TOOLS = ("search_history", "recall", "new_session", "summarize_context", "truncate_context", "pin")
CUT = 200  # characters of a name that clew has read
AROUND = 120  # characters of an excerpt
LONG = 100  # characters of a result that tells something
NO_NAME = "no name in common"
ALIKE = "the same words before it"
FOLDED = ("sent: stand-in", "sent: elsewhere")
_RECALL = re.compile(r"\brecall ([0-9a-f]{10,32})\b")
_BEGUN = "[The summary is the assistant's own"
_BESIDE = "from earlier in this conversation, perhaps of use"


class Judge:
    """Looks at all that comes out of one world."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def sent(self, whose: Conversation, heard: Heard, exchange: Exchange) -> None:
        """What goes to the upstream."""
        text = heard.raw.decode("utf-8", "replace")
        whose.seen_ids += [id for id in dict.fromkeys(_RECALL.findall(text)) if id not in whose.seen_ids]
        if strange := self.strange(whose, text):
            door = door_of(heard.body, heard.format, strange, exchange)
            if door in FOLDED and any(f"ask_{word[2:8]}_" in text or _looks(text, word) for word in strange):
                door = "sent: hidden answer, folded"
            await self.blame(whose, door, strange, text)

    async def view(self, whose: Conversation, body: Mapping[str, Any]) -> None:
        """What a host that has no gateway would send."""
        text = rawjson.dumps(body).decode()
        whose.seen_ids += [id for id in dict.fromkeys(_RECALL.findall(text)) if id not in whose.seen_ids]
        if strange := self.strange(whose, text):
            await self.blame(whose, door_of(body, whose.client.format, strange, Exchange([])), strange, text)

    async def told(self, whose: Conversation, door: str, text: str) -> bool:
        """What comes out anywhere else; whether it was all its own."""
        if strange := self.strange(whose, text):
            await self.blame(whose, door, strange, text)
        return not strange

    def strange(self, whose: Conversation, text: str) -> set[str]:
        """Words of others, and beginnings of them."""
        found = owners_in(text)
        if not found:
            return set()
        allowed = whose.allowed()
        strange = words_in(text) - allowed
        cut = found - {word[2:8] for word in (*allowed, *strange)}
        return strange | {f"zq{owner}" for owner in cut if owner in self.world.known}

    async def blame(self, whose: Conversation, door: str, strange: set[str], text: str) -> None:
        world, words = self.world, sorted(strange)
        at = text.find(words[0])
        link = await self._link(whose, strange, door)
        excerpt = text[max(0, at - AROUND) : at + AROUND // 2]
        who = f"{whose.owner} ({whose.client.name}{', named' if whose.name else ''})"
        places = world.places_of(whose, *(o for o in world.known.values() if o is not whose and _may_say(o, strange)))
        world.found.append(Mixup(door, link, world.act, who, tuple(words[:3]), excerpt, places))
        world.tally.mixups[door, link] += 1
        world.tally.first.setdefault((door, link), (world.plan.seed, world.found[-1]))
        whose.tainted |= strange

    async def _link(self, whose: Conversation, strange: set[str], door: str) -> str:
        """By what a conversation was taken for another one, or for what comes after it."""
        world = self.world
        strangers = [other for other in world.known.values() if other is not whose and _may_say(other, strange)]
        others = {other.owner for other in strangers}
        if any(other.scope != whose.scope for other in strangers):
            return "ACROSS SCOPES"
        nameless = {other.owner for other in strangers if not other.name}
        begun = range(2 if "hidden" in door else len(whose.said), len(whose.said) + 1)  # with an answer, or all of it
        if not whose.name and any(world.senders.get(history(whose, n), set()) & nameless for n in begun):
            return SAME
        if "hidden" in door:
            return ALIKE
        theirs = {branch for (scope, branch), users in world.users.items() if users & others and scope == whose.scope}
        if door.startswith("answered") and not await self._finds(whose, strange):
            return "quoted" if whose.client.is_quoting else "summed up as another's"
        forked, before = await self._past(whose)
        if theirs & forked:
            return f"one branch, {_name_link(whose, strangers)}"
        if theirs & before:
            return f"linked, {_why_linked(whose, strangers)}"
        return f"{ALIKE}: it is in its log" if await self._logged_asides(whose, others) else "unknown"

    async def _logged_asides(self, whose: Conversation, others: set[str]) -> bool:
        """Whether its log has what another one's model asked clew."""
        store = self.world.stores[0]
        said = (await store.load(whose.scope, whose.branch)).said if whose.branch else ()
        nodes = await store.nodes(whose.scope, [place.id for place in said])
        return any(node.item.call_id.startswith(f"ask_{owner}_") for node in nodes.values() for owner in others)

    async def _finds(self, whose: Conversation, strange: set[str]) -> bool:
        """Whether its own branch leads to these words."""
        if not whose.branch:
            return False
        found = str(await self.world.engines[0].find(whose.scope, " ".join(sorted(strange)), whose.branch, 50))
        return any(word in found for word in strange)

    async def _past(self, whose: Conversation) -> tuple[set[str], set[str]]:
        """Its branch with those from which that was forked, and all that these come after."""
        store = self.world.stores[0]
        parents = {info.id: info.parent or "" for info in await store.branches(whose.scope)}
        forked, before = _line(parents, whose.branch), set[str]()
        waiting = [id for at in forked for id, _ in await store.ancestry(whose.scope, at)]
        while waiting:
            new = _line(parents, waiting.pop()) - before
            before |= new
            waiting += [id for at in new for id, _ in await store.ancestry(whose.scope, at)]
        return forked, before


def _line(parents: Mapping[str, str], branch: str) -> set[str]:
    """A branch, and those from which it was forked."""
    line = set[str]()
    while branch in parents and branch not in line:
        line.add(branch)
        branch = parents[branch]
    return line


def history(whose: Conversation, count: int) -> str:
    """What a request of it says with so many messages, with its scope and format."""
    return repr((whose.scope, whose.client.format, whose.system, whose.said[:count]))


def _may_say(other: Conversation, strange: set[str]) -> bool:
    allowed = other.allowed()
    return not strange.isdisjoint(allowed) or any(word.startswith(cut) for cut in strange for word in allowed)


def _why_linked(whose: Conversation, strangers: Sequence[Conversation]) -> str:
    for own in whose.line():
        if (link := _name_link(own, strangers)) != NO_NAME:
            return link
    results = any(len(text) >= LONG for other in strangers for text in other.results & whose.results)
    return "an equal result" if results else "equal words"


def _name_link(whose: Conversation, strangers: Sequence[Conversation]) -> str:
    names = [other.name for other in strangers if other.name and whose.name]
    after = " after a summary" if whose.summed_up else ""
    if any(name == whose.name for name in names):
        return f"one name{after}"
    if any(name[:CUT] == (whose.name or "")[:CUT] for name in names):
        return f"names cut{after}"
    return NO_NAME


def door_of(body: Mapping[str, Any], format: str, strange: set[str], exchange: Exchange) -> str:
    """Where in a request a word stands."""
    frame, items = wire.decode(dict(body), format)
    calls = {item.call_id: item.name for item in items if item.kind == "call"}
    for n, item in enumerate(items):
        if not any(word in item.text for word in strange):
            continue
        name = calls.get(item.call_id, "") if item.kind in ("call", "result") else ""
        if item.call_id in exchange.asked:
            return f"asked: {exchange.asked[item.call_id]}"
        if name in OWN_TOOLS:
            return "sent: hidden answer" if _answered(items[n:]) else "sent: hidden answer of a failed try"
        if _BEGUN in item.text:
            return "sent: hidden answer, as a new session"
        if _BESIDE in item.text:
            return "sent: recalled beside a message"
        return "sent: stand-in" if _RECALL.search(item.text) else "sent: history"
    return "sent: system prompt or tools" if any(word in f"{frame}" for word in strange) else "sent: elsewhere"


def _looks(text: str, word: str) -> bool:
    """Whether a stand-in tells that somebody asked clew with this word."""
    at = text.find(word)
    return any(name in text[max(0, at - AROUND) : at] for name in OWN_TOOLS)


def _answered(rest: Sequence[Item]) -> bool:
    return any(item.role == "assistant" and item.kind == "text" for item in rest) or any(
        item.role == "user" for item in rest
    )
