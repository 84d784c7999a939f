"""A turn of a conversation, through a gateway or by the library, with all that the model says and asks in it."""

from dataclasses import replace as with_
from random import Random

import clew
from clew import Request
from clew.errors import ClewError
from clew.store.records import Origin
from clew.testing import Answer, Call
from mixups.calling import Reply, ask
from mixups.clients import Sent, request
from mixups.conversations import Conversation
from mixups.judging import OWN_TOOLS, Judge, history
from mixups.plans import Act
from mixups.upstream import WHO
from mixups.words import ASKED
from mixups.world import Exchange, World, speaker
from tagging import Calls

FAILURES = (529, 500, 429)


class Turns:
    """Takes the turns of a world, and has all of it judged."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.judge = Judge(world)

    async def turn(self, whose: Conversation, act: Act, asks: int = 0, fails: bool = False) -> None:
        """The next one; the model asks clew so many things first, and then answers, or does not."""
        whose.listen()
        answer = whose.answer()
        calls = (
            tuple(Call("read", dict(given), id) for id, given in answer.asked()) if isinstance(answer, Calls) else ()
        )
        if whose.ids == "placed":
            calls = tuple(with_(call, id="") for call in calls)
        said = [Answer(status=FAILURES[act.a % 3])] if fails else [Answer(answer.text, calls, piece=10_000)]
        way = self.world.next_way()
        sent = request(speaker(whose), whose.said, streamed=act.a % 3 == 0)
        whose.logged |= whose.visible()
        for count in range(1, len(whose.said) + 1):
            self.world.senders.setdefault(history(whose, count), set()).add(whose.owner)
        if self.world.gateways[way] is None:
            done = await self._by_library(whose, way, sent) and not fails
        else:
            exchange = Exchange([*self._asks(whose, act, asks), *said])
            done = (await self.send(whose, way, sent, exchange)).status == 200
        if done:
            whose.said.append(answer)
        self.world.tally.counts["turns"] += 1

    def _asks(self, whose: Conversation, act: Act, count: int) -> list[Answer]:
        """What the model asks clew: about everything, about what is its own, for what it was offered."""
        random, made, shown = Random(f"{act} {whose.owner}"), list[Answer](), sorted(whose.shown())
        for n in range(count):
            own = " ".join(random.sample(shown, min(2, len(shown))))
            call = Call("search_history", {"query": f"{ASKED} {own}"}, f"ask_{whose.owner}_{self.world.turns}_{n}")
            if whose.seen_ids and random.random() < 0.3:
                call = with_(call, name="recall", arguments={"id": random.choice(whose.seen_ids)})
            elif self.world.plan.method == "llm" and random.random() < 0.3:
                call = with_(call, name="new_session", arguments={"summary": f"Much was done. {own}"})
            made.append(Answer(random.choice(("", "", "Let me see.")), (call,), piece=10_000))
        return made

    async def _by_library(self, whose: Conversation, way: int, sent: Sent) -> bool:
        engine = self.world.engines[way]
        parent = whose.parent.branch if whose.parent else ""
        origin = Origin("subagent", parent) if parent else None
        body = {"model": "gemini-2.5-pro", **sent.body} if whose.client.format == "gemini" else sent.body
        asked = Request(body, whose.client.format, whose.scope, whose.name, origin)
        try:
            view = await engine.prepare(asked)
        except ClewError as error:
            self.world.tally.counts[f"refused: {type(error).__name__}"] += 1
            return False
        await self.judge.view(whose, clew.body(view))
        return True

    async def send(self, whose: Conversation, way: int, sent: Sent, exchange: Exchange) -> Reply:
        """A request through a gateway."""
        gateway = self.world.gateways[way]
        assert gateway is not None, "a way by a gateway"
        exchange.asked = {c.id: c.name for answer in exchange.answers for c in answer.calls if c.name in OWN_TOOLS}
        self.world.exchanges[whose.owner] = exchange
        headers = {**sent.headers, "x-clew-key": self.world.scopes[whose.scope], WHO: whose.owner}
        reply = await ask(gateway, sent.path, headers, sent.body)
        answered = reply.status == 200 and not exchange.heard
        await self.judge.told(whose, "answered compaction" if answered else "answer", reply.words())
        counts = self.world.tally.counts
        counts[f"status {reply.status}"] += 1
        counts["failed open"] += "x-clew" in reply.headers
        asked = [
            name
            for id, name in exchange.asked.items()
            if not any(id == c.id for a in exchange.answers for c in a.calls)
        ]
        counts["asked by the model"] += len(asked) if exchange.heard > 1 else 0
        return reply
