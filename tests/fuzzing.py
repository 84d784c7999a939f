"""Random sessions of clients that do all that clients do, each run warm, on engines that remember, and cold, on a new
engine each turn. What is sent is judged after each request (`judging`); what fails is made as small as it can be."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from dataclasses import replace as with_
from random import Random

import clew
from acting import ACTS, WEIGHTS, Act, Client
from clew import Budget, Engine, Request
from clew.engine.settings import Settings
from clew.steps import PRESETS
from clew.store.sql import SQLStore
from judging import neighbours, problems
from owning import IDS, Ids, Speaker
from tagging import FORMATS, NAMED, NAMES, Body

OPENINGS = ("Check every server and report.", "hello", "…", "")
GREETINGS = ("", "", "Hi! How can I help you today?")
LINES = (10, 50, 90)  # of results: a window is full after a few
FORMS = ("dict", "bytes", "spaced")
RUNS = ("warm", "cold")
BATCH = 50  # sessions on one store


@dataclass(frozen=True)
class Plan:
    """All that a session is made of."""

    seed: int
    format: str
    ids: Ids
    opening: str
    greeting: str
    silent: bool
    alike: bool  # conversations of one shape
    common: int  # calls that all of them begin with
    named: bool
    observed: bool  # what the provider counted is reported
    window: int
    preset: str
    engines: int
    forms: tuple[str, str]  # of requests: warm, cold
    acts: tuple[Act, ...]

    def is_plain(self) -> bool:
        """Whether nobody does anything odd; an edit may make two conversations as like as two forms of one."""
        return all(act.what in ("go_on", "retry") for act in self.acts)

    def clients(self) -> list[Client]:
        made = []
        for n in range(1 + max(act.who for act in self.acts)):
            random = Random(f"{self.seed} {0 if self.alike else n}")
            speaker = Speaker(NAMES[n], random, self.ids, self.opening, self.greeting, self.silent, LINES, self.common)
            made.append(Client(speaker, self.format))
        return made


def plan(seed: int) -> Plan:
    """A session, the same for the same seed."""
    random = Random(seed)
    people, in_step, plain = random.choice((1, 2, 2, 3)), random.random() < 0.5, random.random() < 0.3
    acts = []
    for turn in range(random.randint(5, 9 if people == 1 else 15)):
        what = (
            random.choice(("go_on", "go_on", "go_on", "retry"))
            if plain
            else random.choices(list(ACTS), [*WEIGHTS.values()])[0]
        )
        who = turn % people if in_step else random.randrange(people)
        acts.append(Act(who, what, random.randrange(1_000), random.randrange(1_000), random.random() < 0.85))
    opening, greeting = random.choice(OPENINGS), random.choice(GREETINGS)
    return Plan(
        seed,
        format=random.choice(FORMATS),
        ids=random.choice(IDS),
        opening=opening,
        greeting=greeting,
        silent=random.random() < 0.5,
        alike=random.random() < 0.6,
        common=random.choice((0, 0, 1, 2)) if opening and not greeting else 0,
        named=random.random() < 0.25,
        observed=random.random() < 0.2,
        window=random.choice((2_000, 2_000, 2_500, 3_000)),
        preset=random.choice(("default", "default", "clearing", "summarizing", "sliding")),
        engines=random.choice((1, 1, 2)),
        forms=(random.choice(FORMS), random.choice(FORMS)),
        acts=tuple(acts),
    )


@dataclass(frozen=True)
class Fault:
    """What was wrong with a request, and when."""

    kind: str  # foreign, stale, lost, invalid, large, crash
    run: str
    turn: int
    what: str


@dataclass
class Run:
    """A session as it went: the first fault ends it."""

    fault: Fault | None = None
    turns: int = 0
    folded: int = 0  # turns in which not all was sent as it was said
    sent: list[str] = field(default_factory=list)  # what was sent in each turn, but for ids


async def run(plan: Plan, store: SQLStore, how: str, scope: str) -> Run:
    """One session, warm or cold."""
    budget, form, step = Budget(window=plan.window), plan.forms[RUNS.index(how)], PRESETS[plan.preset]()
    engines = [Engine(store, budget, Settings(step=step)) for _ in range(plan.engines)]
    clients, done = plan.clients(), Run()
    for act in plan.acts:
        client, last = clients[act.who], act is plan.acts[-1]
        client.do(act)
        if not (act.sends or last) or not client.said:
            continue
        engine = Engine(store, budget, Settings(step=step)) if how == "cold" else engines[done.turns % len(engines)]
        if found := await take(plan, engine, client, form, scope, last):
            kind, what = found[0]
            done.fault = Fault(kind, how, done.turns, f"{client.name}, {client.format}: {what}")
            return done
        assert client.last is not None
        done.turns += 1
        done.folded += bool(client.last.edits)
        done.sent.append(NAMED.sub("", json.dumps(clew.body(client.last))))
    for client in clients if plan.is_plain() else ():
        if others := await neighbours(store, client, scope):
            done.fault = Fault(
                "foreign", how, done.turns, f"{client.name}, {client.format}: branch has {sorted(others)}"
            )
    return done


async def take(plan: Plan, engine: Engine, client: Client, form: str, scope: str, last: bool) -> list[tuple[str, str]]:
    """One request, and what is wrong with what came of it."""
    body, session = client.body(), client.name if plan.named else None
    try:
        view = await engine.prepare(Request(as_sent(body, form), client.format, scope, session))
        found = [problem async for problem in problems(engine, client, view, scope, last)]
        if plan.observed:
            counted = (await engine.limits.target(scope, view.frame)).size(view).tokens
            await engine.observe(view, {"input_tokens": counted})
    except Exception as error:  # whatever it is, it is a fault
        return [("crash", f"{type(error).__name__}: {error}")]
    client.last = view
    return found if body == client.body() else [*found, ("crash", "the input was changed")]


def as_sent(body: Body, form: str) -> Body | bytes:
    if form == "dict":
        return body
    return json.dumps(body, separators=(",", ":") if form == "bytes" else None).encode()


async def smallest(plan: Plan, store: SQLStore, fault: Fault) -> Plan:
    """The plan without all acts that a fault of this kind does not need."""
    for at in range(len(plan.acts) - 1, -1, -1):
        less = with_(plan, acts=(*plan.acts[:at], *plan.acts[at + 1 :]))
        scope = f"{plan.seed} {fault.run} without {at}"
        found = (await run(less, store, fault.run, scope)).fault if less.acts else None
        if found is not None and found.kind == fault.kind:
            plan = less
    return plan


def told(plan: Plan, fault: Fault) -> str:
    """How to see a fault again."""
    settings = ", ".join(f"{name}={value!r}" for name, value in vars(plan).items() if name not in ("acts", "seed"))
    acts = [f"    {NAMES[a.who]} {a.what} {a.a} {a.b}{'' if a.sends else ' (no request)'}" for a in plan.acts]
    head = f"seed {plan.seed}, {fault.run}, turn {fault.turn}: {fault.kind}: {fault.what}"
    return "\n".join([head, f"  {settings}", *acts])


@dataclass
class Tally:
    """What came of many sessions."""

    sessions: int = 0
    turns: int = 0
    folded: int = 0
    other: int = 0  # turns in which the cold engine sent something else than the warm one
    faults: Counter[str] = field(default_factory=Counter)  # runs, by kind
    faulty: int = 0  # sessions
    told: list[str] = field(default_factory=list)  # the first few of each kind, as small as they can be

    def add(self, other: "Tally") -> None:
        self.sessions += other.sessions
        self.turns += other.turns
        self.folded += other.folded
        self.other += other.other
        self.faults += other.faults
        self.faulty += other.faulty
        self.told += other.told


async def fuzz(seeds: Iterable[int], opened: Callable[[], SQLStore], shown: int = 1) -> Tally:
    """The sessions of these seeds on one store; as many faults of each kind as may be shown are made small."""
    tally, store = Tally(), opened()
    for seed in seeds:
        made = plan(seed)
        warm, cold = [await run(made, store, how, f"{seed} {how}") for how in RUNS]
        tally.sessions += 1
        tally.faulty += bool(warm.fault or cold.fault)
        tally.other += sum(a != b for a, b in zip(warm.sent, cold.sent, strict=False))
        for one in (warm, cold):
            tally.turns += one.turns
            tally.folded += one.folded
            if one.fault:
                tally.faults[one.fault.kind] += 1
                if tally.faults[one.fault.kind] <= shown:
                    tally.told.append(told(await smallest(made, store, one.fault), one.fault))
    await store.close()
    return tally
