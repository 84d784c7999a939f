"""One world: some conversations of one scope and a few of another, before gateways and engines over one store."""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import Random

from clew import Budget, Engine
from clew.engine.settings import Settings
from clew.events import Appended, Called, Edited, Event
from clew.gateway.app import Gateway
from clew.gateway.settings import GatewaySettings
from clew.gateway.upstreams import Upstream, Upstreams
from clew.store.sql import SQLStore
from clew.testing import Answer
from mixups.clients import ClientShape, Speaker
from mixups.conversations import MANNERS, Conversation, Ids
from mixups.plans import Plan
from mixups.upstream import Heard, ScriptedUpstream
from mixups.words import kit, owner_name

# An export has the calls of a beginning that two conversations have in common, each with the prompt it was sent with.
APART = ("export: system prompt",)
# Without a name, nothing tells two apart whose clients show the same prompt and history to the letter: what the model
# of one asked clew there is told to both.
SAME = "the same history to the letter"
NAMELESS = ("", "metadata")
_ASKING: ContextVar[Conversation | None] = ContextVar("whose request is being answered", default=None)


@dataclass
class Exchange:
    """What the model will say to one request of a client, and what was heard of that."""

    answers: list[Answer]
    heard: int = 0
    asked: dict[str, str] = field(default_factory=dict)  # names of clew's tools, by the ids of calls


@dataclass(frozen=True)
class Mixup:
    """A word of another conversation: where it came out, and by what the two were taken for one."""

    door: str
    link: str
    act: int
    who: str  # and its client
    words: tuple[str, ...]
    excerpt: str
    places: frozenset[int]  # of the two, and of those they came from


@dataclass
class Tally:
    """What came of worlds."""

    counts: Counter[str] = field(default_factory=Counter)
    mixups: Counter[tuple[str, str]] = field(default_factory=Counter)  # by door and link
    reached: Counter[str] = field(default_factory=Counter)  # own words that were found, by how they left the client
    sought: Counter[str] = field(default_factory=Counter)
    first: dict[tuple[str, str], tuple[int, Mixup]] = field(default_factory=dict)  # of each, with its seed
    cpu: float = 0.0  # seconds

    def add(self, other: "Tally") -> None:
        self.cpu += other.cpu
        self.counts += other.counts
        self.mixups += other.mixups
        self.reached += other.reached
        self.sought += other.sought
        self.first = other.first | self.first

    def report(self) -> str:
        """All of it, as a table."""
        lines = [f"{number:9,}  {what}" for what, number in sorted(self.counts.items())]
        lines += [f"{self.cpu:9,.0f}  seconds of CPU", "", "own words found by search, by how they left the client:"]
        for why, number in sorted(self.sought.items()):
            lines.append(f"{self.reached[why] / number:9.1%}  of {number:6,}  {why}")
        for what, some in (("mix-ups", self.faults()), ("counted apart", self.apart())):
            lines += ["", f"{sum(some.values()):,} {what}"]
            for (door, link), number in some.most_common():
                lines.append(f"{number:9,}  {door} ({link}), first with seed {self.first[door, link][0]}")
        return "\n".join(lines)

    def apart(self) -> Counter[tuple[str, str]]:
        """Those that are told, and are no faults of the law."""
        return Counter({kind: number for kind, number in self.mixups.items() if _is_apart(*kind)})

    def faults(self) -> Counter[tuple[str, str]]:
        """All others."""
        return self.mixups - self.apart()


def _is_apart(door: str, link: str) -> bool:
    return door in APART or (link == SAME and "hidden" in door)


class World:
    """Runs a plan."""

    def __init__(self, plan: Plan, stores: list[SQLStore], upstream: ScriptedUpstream, again: str = "") -> None:
        self.plan, self.upstream = plan, upstream
        self.kit = kit(plan.seed)
        self.stores = stores[1:] if plan.files else stores[:1]
        self.scopes = {f"{name} {plan.seed}{again}": f"key-{name}" for name in ("amber", "beryl")}
        self.known: dict[str, Conversation] = {}  # all there ever were, by owner
        self.places: list[Conversation | None] = [None] * plan.places
        self.sat: dict[str, set[int]] = {}  # in which places each is, or was, and whoever it came from
        self.exchanges: dict[str, Exchange] = {}
        self.users: dict[tuple[str, str], set[str]] = {}  # of branches, in each scope
        self.newest: dict[tuple[str, str], str] = {}  # who used each last
        self.senders: dict[str, set[str]] = {}  # of histories, to the letter
        self.used: dict[str, list[str]] = {}  # branches that a conversation's newest request used
        self.tally, self.found = Tally(), list[Mixup]()
        self.act = 0
        self.turns = 0
        self.engines: list[Engine] = []
        self.gateways: list[Gateway | None] = []

    # --- engines ------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """New engines and gateways over what is stored; those before are gone."""
        await self.stop()
        plan = self.plan
        kinds = ("anthropic", "openai", "gemini")
        known = [Upstream(kind, kind, self.upstream.url, "key") for kind in kinds]
        settings = GatewaySettings(plan.compaction, plan.tools, keys={key: name for name, key in self.scopes.items()})
        for n, way in enumerate(plan.ways):
            store = self.stores[n % len(self.stores)]
            engine = Engine(store, Budget(window=plan.window), Settings(method=plan.method, listeners=(self._hear,)))
            gateway = Gateway(engine, Upstreams(known), settings) if way == "gateway" else None
            if gateway:
                await gateway.start()
            self.engines.append(engine)
            self.gateways.append(gateway)

    async def stop(self) -> None:
        """Let go of them; the stores stay."""
        for engine, gateway in zip(self.engines, self.gateways, strict=True):
            await (gateway.stop() if gateway else engine.close())
        self.engines, self.gateways = [], []

    def next_way(self) -> int:
        """The number of the engine whose turn it is."""
        self.turns += 1
        return self.turns % len(self.engines)

    def _hear(self, event: Event) -> None:
        conversation = _ASKING.get()
        if conversation is None or not isinstance(event, Appended | Called | Edited):
            return
        self.users.setdefault((event.scope, event.branch), set()).add(conversation.owner)
        self.newest[event.scope, event.branch] = conversation.owner
        self.used.setdefault(conversation.owner, []).append(event.branch)
        if isinstance(event, Called):
            conversation.branch = event.branch
            self.tally.counts["folded turns"] += event.compacted

    async def of(self, conversation: Conversation, work: Callable[[], Awaitable[None]]) -> None:
        """Do something for a conversation: what engines tell meanwhile is of it."""
        token = _ASKING.set(conversation)
        self.used[conversation.owner] = []
        try:
            await work()
        finally:
            _ASKING.reset(token)

    def is_there(self, conversation: Conversation) -> bool:
        """Whether its branch is its own still: who has sent the same words may have gone on there since."""
        return self.newest.get((conversation.scope, conversation.branch)) == conversation.owner

    # --- conversations ------------------------------------------------------------------------------------------------

    def begin(self, place: int, number: int) -> Conversation:
        """A new conversation in a place; what was there has ended."""
        random, alike = Random(f"{self.plan.seed} {place} {number}"), self.plan.alike
        client = random.choice(self.plan.clients)
        ids: Ids = random.choice(("counting", "counting", "equal", "random"))
        made = Conversation(
            owner_name(random, self.known),
            client,
            self.kit,
            script=Random(f"{self.plan.seed} script {0 if alike else number % 2}"),
            own=random,
            manner=random.choice(MANNERS[2:4] if alike else MANNERS),
            ids="placed" if client.format == "gemini" and random.random() < 0.7 else "counting" if alike else ids,
            scope=random.choices(list(self.scopes), (6, 1))[0],
            system=random.choice(self.kit.systems[: 1 + number % 2]),
            greets=client.greets,
        )
        self._name(made, random)
        self.put(place, made)
        return made

    def _name(self, made: Conversation, random: Random) -> None:
        client = made.client
        if not client.header:
            return
        made.name = f"{random.getrandbits(64):016x}"
        how = random.random()
        if how < 0.3:
            made.name = f"{self.kit.folder}{made.name}"
        elif how < 0.5 and client.name.startswith("app"):
            made.name, made.shares_name = "main", True

    def put(self, place: int, made: Conversation) -> None:
        self.known[made.owner] = made
        self.places[place] = made
        self.sat.setdefault(made.owner, set()).add(place)

    def at(self, place: int) -> Conversation:
        """The conversation in a place; one begins where there is none."""
        return self.places[place] or self.begin(place, place)

    def places_of(self, *some: Conversation) -> frozenset[int]:
        """Where these are, and those that they came from."""
        return frozenset(place for one in some for own in one.line() for place in self.sat[own.owner])

    # --- what the upstream hears --------------------------------------------------------------------------------------

    async def say(self, heard: Heard, judge: Callable[[Conversation, Heard, Exchange], Awaitable[None]]) -> Answer:
        """What the model says next to a conversation."""
        exchange = self.exchanges[heard.who]
        await judge(self.known[heard.who], heard, exchange)
        exchange.heard += 1
        while exchange.answers:
            answer = exchange.answers.pop(0)
            if any(call.id in exchange.asked for call in answer.calls) and b'"search_history"' not in heard.raw:
                continue  # clew's tools are not on offer
            return answer
        return Answer("Done.")


def speaker(conversation: Conversation) -> Speaker:
    """What its requests are made of."""
    parent = conversation.parent.name if conversation.parent else None
    return Speaker(conversation.client, conversation.system, conversation.ids != "placed", conversation.name, parent)


def of_client(client: ClientShape) -> bool:
    """Whether its sub-agents say whose they are."""
    return client.header not in NAMELESS
