"""What happens in a world: turns, what the model asks clew, edits, forks, compactions, sub-agents, errors, restarts."""

from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import replace as with_
from random import Random

from clew.core import rawjson
from clew.recognition.proof import LEAST_ANSWER
from clew.testing import Answer
from mixups.calling import Reply
from mixups.clients import SEALED, asking, asking_again, continued, item_of, request
from mixups.conversations import ENDINGS, Conversation
from mixups.plans import Act
from mixups.probing import Prober
from mixups.turns import Turns
from mixups.words import owner_name, words_in
from mixups.world import Exchange, World, of_client, speaker
from tagging import Calls, Results, Text

FAILURES = (529, 500, 429)
SUB_AGENT = "You are a sub-agent: do what you are asked, and report in a line."
MEMORY = "You are a managed memory extraction subagent."
TITLE = "You are a title generator. Find a few words."


class Actor(Turns):
    """Does what a plan says, and has all of it judged."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.prober = Prober(world, self.judge)

    async def do(self, act: Act) -> None:
        """One act, and a look at what the conversation can reach then."""
        whose = self.world.at(act.who)

        async def work() -> None:
            await ACTS[act.what](self, whose, act)
            now = self.world.at(act.who)
            if act.b % 3 == 0:
                await self.prober.probe(now, act.b // 3)

        await self.world.of(whose, work)

    async def look_back(self) -> None:
        """In the end, all that each conversation can reach."""
        for n, whose in enumerate(self.world.places):
            if whose is not None:
                for how in (2 if n % 2 else 0, 3, 8, 9):
                    await self.prober.probe(whose, how)

    # --- turns --------------------------------------------------------------------------------------------------------

    async def go_on(self, whose: Conversation, act: Act) -> None:
        """The next turn; some before it clew never saw."""
        for _ in range((0, 0, 0, 1, 2)[act.a % 5]):
            whose.go_on_unseen()
        await self.turn(whose, act)

    async def ask(self, whose: Conversation, act: Act) -> None:
        """A turn in which the model asks clew first; sometimes that is the end of it."""
        await self.turn(whose, act, asks=1 + act.a % 2, fails=act.a % 4 == 3)

    async def fail(self, whose: Conversation, act: Act) -> None:
        """An error instead of an answer; its client tries again, or will."""
        await self.turn(whose, act, fails=True)
        if act.a % 2:
            await self.turn(whose, act)

    async def retry(self, whose: Conversation, act: Act) -> None:
        """The same request again, as if nobody had answered."""
        if len(whose.said) > 1 and not whose.is_waiting():
            whose.said.pop()
        await self.turn(whose, act)

    # --- what clients do to a history ---------------------------------------------------------------------------------

    async def edit(self, whose: Conversation, act: Act) -> None:
        """Other words, fewer or more in an earlier message, folded or not."""
        places = [i for i, m in enumerate(whose.said) if isinstance(m, Text) and m.role == "user"]
        if places:
            at = places[act.a % len(places)]
            message = whose.said[at]
            assert isinstance(message, Text)
            text = message.text
            if act.b % 3 == 0:
                text = f"{text} But not before noon, says {whose.plant()}."
            elif act.b % 3 == 1:
                text = f"{text[: len(text) // 2]}{ENDINGS[act.b % len(ENDINGS)]}"
            else:
                text = whose.dressed(whose.kit.traces[0], "user")
            whose.said[at] = with_(message, text=text)
        await self.turn(whose, act)

    async def trim(self, whose: Conversation, act: Act) -> None:
        """Old results become short."""
        for i, message in enumerate(whose.said[: -2 - act.a % 4]):
            if isinstance(message, Results):
                given = tuple((id, f"{text[:60]}{('...', ' [truncated]')[act.b % 2]}") for id, text in message.given)
                whose.said[i] = Results(given)
        await self.turn(whose, act)

    async def rewind(self, whose: Conversation, act: Act) -> None:
        """Back to an earlier point, to go on otherwise."""
        whose.said = whose.said[: self._cut(whose, act)]
        await self.turn(whose, act)

    def _cut(self, whose: Conversation, act: Act) -> int:
        """Some place after which a user, or a tool, has just spoken."""
        ends = [i + 1 for i, m in enumerate(whose.said) if isinstance(m, Results) or getattr(m, "role", "") == "user"]
        return ends[-1 - act.a % len(ends)] if ends else len(whose.said)

    async def fork(self, whose: Conversation, act: Act) -> None:
        """A second conversation with the past of this one, up to a point; both go on."""
        cut = self._cut(whose, act)
        random = Random(f"{self.world.plan.seed} fork {act}")
        made = copy(whose)
        made.owner = owner_name(random, self.world.known)
        made.said, later = list(whose.said[:cut]), {w for m in whose.said[cut:] for w in words_in(str(m))}
        later -= made.shown() | whose.summed_up
        made.words, made.tainted = whose.words - later, whose.tainted - later
        made.logged, made.results = whose.logged - later, set(whose.results)
        made.gone = {w: f"{why}, forked".replace(", forked, forked", ", forked") for w, why in whose.gone.items()}
        made.seen_ids, made.branch, made.planted = [], "", 0
        made.own, made.script = random, Random(f"{self.world.plan.seed} fork {act.b}")
        if whose.name and not whose.shares_name:
            made.name = f"{self.world.kit.folder if act.b % 2 else ''}{random.getrandbits(64):016x}"
        self.world.sat[made.owner] = set(self.world.sat[whose.owner])
        self.world.put(act.b % self.world.plan.places, made)
        await self.world.of(made, lambda: self.turn(made, act))

    # --- compactions --------------------------------------------------------------------------------------------------

    async def compact(self, whose: Conversation, act: Act) -> None:
        """Its client asks for a summary, and goes on from what it gets."""
        way = self.world.next_way()
        if len(whose.said) < 3 or self.world.gateways[way] is None:
            await self.turn(whose, act)
            return
        who, exchange = speaker(whose), Exchange([Answer(self._summary(whose, act), piece=10_000)])
        reply = await self.send(whose, way, asking(who, whose.said, streamed=act.a % 3 == 0), exchange)
        if whose.client.name == "gemini" and reply.status == 200:
            again = asking_again(who, whose.said, reply.text(whose.client.format))
            exchange = Exchange([Answer(self._summary(whose, act), piece=10_000)])
            reply = await self.send(whose, way, again, exchange)
        answered = reply.status == 200 and not exchange.heard
        if answered:
            self.world.tally.counts["answered compactions"] += 1
            whose.logged |= set() if whose.client.is_quoting else whose.visible()
        if reply.status == 200:
            heard = "a long summary" if len(self._summary(whose, act)) > LEAST_ANSWER else "a short summary"
            await self._continue(whose, act, reply, "answered" if answered else heard)

    async def sum_up(self, whose: Conversation, act: Act) -> None:
        """Its client has a model of its own write a summary; clew hears nothing of that."""
        if len(whose.said) > 3:
            self._go_on_from(whose, act, self._summary(whose, act, heard=False), "a summary unheard")
        await self.turn(whose, act)

    async def _continue(self, whose: Conversation, act: Act, reply: Reply, how: str) -> None:
        if whose.client.asks in SEALED:
            item = item_of(rawjson.loads(reply.raw))
            if item is None:
                return
            self._go_on_from(whose, act, item, how)
        else:
            self._go_on_from(whose, act, reply.text(whose.client.format), how)
        await self.turn(whose, act)

    def _go_on_from(self, whose: Conversation, act: Act, summary: str | dict[str, object], how: str) -> None:
        had, client = whose.visible(), whose.client
        whose.summed_up = whose.shown()
        whose.said = continued(client, summary, whose.said)
        if client.greets and act.b % 2:
            whose.said.append(Text("assistant", whose.kit.greeting))
        if act.b % 3 == 0:
            whose.called = sum(len(m.calls) for m in whose.said if isinstance(m, Calls))  # ids count from there on
        named = "one name for many" if whose.shares_name else "named" if whose.name else "unnamed"
        named += f", {client.name.split()[0]}" if how == "answered" else ""
        for word in (had & whose.logged) - whose.visible():
            whose.gone[word] = f"{how}, {named}"

    def _summary(self, whose: Conversation, act: Act, heard: bool = True) -> str:
        """What a model of the client's writes: short, or as long as summaries are; the same for all, or its own."""
        own = sorted(whose.visible())
        short = f"Much was done about {own[act.a % len(own)]}." if own and act.a % 2 else "Much was done."
        # One that clew has not heard tells of its own conversation, if it is long: else it would be proof of another's.
        return f"{short} {whose.kit.report}" if act.a % 8 < 5 and (heard or (own and act.a % 2)) else short

    # --- others -------------------------------------------------------------------------------------------------------

    async def spawn(self, whose: Conversation, act: Act) -> None:
        """A sub-agent, with a prompt that others have as well; often it asks clew at once."""
        if not whose.said:
            await self.turn(whose, act)
        world, client = self.world, whose.client
        random = Random(f"{world.plan.seed} spawn {act}")
        said = of_client(client) and whose.name is not None and not whose.shares_name and whose.parent is None
        made = Conversation(
            owner_name(random, world.known),
            client if said else with_(client, header=""),
            world.kit,
            script=Random(f"{world.plan.seed} sub-agent"),
            own=random,
            manner=whose.manner._replace(user=0.0, assistant=0.1, dots=0.1),
            ids="counting",
            scope=whose.scope,
            system=SUB_AGENT,
            name=f"{random.getrandbits(64):016x}" if said else None,
            parent=whose if said else None,
            task=world.kit.tasks[act.a % 5 // 3],
        )
        made.system = SUB_AGENT
        world.sat[made.owner] = {act.who}
        world.put(act.b % world.plan.places, made)
        await world.of(made, lambda: self.turn(made, act, asks=act.a % 2, fails=act.a % 6 == 5))

    async def fresh(self, whose: Conversation, act: Act) -> None:
        """A new conversation in this place; what it said before its first request clew never saw."""
        made = self.world.begin(act.who, act.a)
        for _ in range((0, 0, 2, 5, 10)[act.b % 5]):
            made.go_on_unseen()
        await self.world.of(made, lambda: self.turn(made, act))

    async def beside(self, whose: Conversation, act: Act) -> None:
        """Something beside a conversation: a title, or what should be remembered of it."""
        way = self.world.next_way()
        if self.world.gateways[way] is None or not whose.said:
            return
        whose.listen()
        if act.a % 2:
            sent = request(speaker(whose), [Text("user", "hi")], False, TITLE, tools=False)
        else:
            asked = [*whose.said, Text("assistant", "Done."), Text("user", "Write down what should be remembered.")]
            sent = request(speaker(whose), asked, False, MEMORY, tools=False)
        await self.send(whose, way, sent, Exchange([Answer("Done.")]))

    async def switch(self, whose: Conversation, act: Act) -> None:
        """Its client speaks to another provider from now on."""
        formats = ("openai_chat", "anthropic", "openai_responses", "gemini")
        plain = not any(isinstance(m, dict) for m in whose.said)
        if whose.client.name.startswith("app") and plain and whose.client.header != "metadata":
            whose.client = with_(whose.client, format=formats[act.a % 4])
        await self.turn(whose, act)

    async def restart(self, whose: Conversation, act: Act) -> None:
        """All engines and gateways are gone, and others are there."""
        if self.world.plan.at_once == 1:
            await self.world.start()
        await self.turn(whose, act)


ACTS: Mapping[str, Callable[[Actor, Conversation, Act], Awaitable[None]]] = {
    act.__name__: act
    for act in (
        Actor.go_on,
        Actor.ask,
        Actor.compact,
        Actor.spawn,
        Actor.fresh,
        Actor.sum_up,
        Actor.edit,
        Actor.trim,
        Actor.fork,
        Actor.rewind,
        Actor.retry,
        Actor.fail,
        Actor.beside,
        Actor.switch,
        Actor.restart,
    )
}
