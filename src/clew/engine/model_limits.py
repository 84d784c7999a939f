"""How much may be sent to a model, and how much a request is by its count: limits, meters, what calls taught."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as with_
from typing import TYPE_CHECKING

from clew import catalog
from clew.catalog.usage import Spent, cost
from clew.clients.voices import known_client
from clew.core.caches import Recent
from clew.core.items import Frame, Scope
from clew.core.limits import Budget
from clew.core.threads import in_thread
from clew.core.view import View
from clew.engine.answers import KnownAnswers
from clew.engine.windows import LEAST_WINDOW, ModelWindows, place_of
from clew.store.protocol import Store
from clew.store.records import NamedValue
from clew.store.trace import Trace
from clew.tokens import Counter, counter_for
from clew.tokens.calibration import Calibration
from clew.tokens.meter import Meter
from clew.tokens.provider_size import ProviderSize
from clew.tokens.target import CacheRates, Target
from clew.wire.convert.extras import answer_of

if TYPE_CHECKING:
    from clew.wire.overflow import Overflow

Budgeting = Callable[[catalog.Model], Budget]  # the budget for a model, by what is known of it

KIND = "calibration"  # under which the store keeps what reports taught
CLIENT = "client"  # and where clients compact by themselves
LEAST_ASKED = 0.5  # of where it is thought to: with less, a person asked for it
METERS = 32  # models whose sizes are remembered: names come with requests, and anybody may invent some
RARE = "Größe 日本語 qzxjvk"  # no token of any vocabulary: some read the part for such words when they meet one
TAUGHT = 1_000  # models, in their scopes, of which it is remembered what reports taught; the others are in the store
_OFTEN = 8  # reports from one writing to the next, once the first ones are written


def default_budget(model: catalog.Model) -> Budget:
    """The budget where nobody says otherwise."""
    return Budget(window=model.max_input or model.window, paid=not model.local)


class ModelLimits:
    """What one engine knows of its models."""

    def __init__(
        self,
        store: Store,
        budget: Budget | Budgeting | None = None,
        counter: Counter | None = None,
        models: Mapping[str, catalog.Model] | None = None,
        servers: Sequence[str] | None = (),
    ) -> None:
        self.windows = ModelWindows(store, models, servers)
        self.answers = KnownAnswers(store)
        self._given = budget
        self._counter = counter
        self._store = store
        self._meters = Recent[tuple[str, str], Meter](METERS)
        self._calibrations = Recent[tuple[Scope, str], Calibration](TAUGHT)
        self._reports = Recent[tuple[Scope, str], int](TAUGHT)
        self._clients = Recent[tuple[Scope, str], int](
            TAUGHT
        )  # where they compact by themselves; 0: nobody has seen it
        self._refused = Recent[tuple[Scope, str], int](TAUGHT)  # by branch: the window that a refusal just named

    def know(self, other: "ModelLimits") -> None:
        """Take over what another one has in memory of counts and windows, where its store cannot be asked."""
        self._calibrations.update(other._calibrations)
        self.windows.know(other.windows)

    async def target(self, scope: Scope, frame: Frame, past: bool = False) -> Target:
        """What a request is to fit, with a meter for its model. `past`: whatever refusals taught."""
        given, answer = self._given, answer_of(frame)
        if isinstance(given, Budget):
            budget, name = given, frame.model or given.model
            known = catalog.Model(name, given.window)
            if not past and (refused := await self.windows.refused(scope, frame, known)):
                budget = _narrowed(given, refused)
        else:
            model = await self.windows.model(scope, frame, past)
            budget, name = (given or default_budget)(model), frame.model
            if budget.window == model.max_input:  # what a model writes has a place of its own beside that
                answer -= max(0, model.window - model.max_input)
        if more := await self.windows.others(scope, frame):
            budget = with_(budget, **{what: min(most, getattr(budget, what)) for what, most in more.items()})
        key = name, frame.format
        if key not in self._meters:
            meter = Meter(self._counter or counter_for(*key))
            await in_thread(lambda: meter.counter.text(RARE))  # reads its vocabulary
            self._meters[key] = meter
        meter = self._meters[key]
        room = await self.answers.room(scope, place_of(frame), max(0, answer))
        rates = CacheRates.of(self.windows.prices(frame.model))
        client = await self._client(scope, frame, budget.window)
        return Target(budget, meter, meter.frame(frame).tokens, *room, rates, client)

    async def target_of_turn(self, scope: Scope, frame: Frame, branch: str) -> Target:
        """What the next request of a branch is to fit: less, once, if its provider has just refused it."""
        if (scope, branch) in self._refused:
            target = await self.target_after_refusal(scope, frame, branch)
            self._refused.pop((scope, branch), None)
            return target
        target = await self.target(scope, frame)
        past = await self.target(scope, frame, past=True) if await self.windows.is_bound(scope, frame) else target
        return past if past.window > target.window and self.windows.aims_past(scope, frame) else target

    async def target_after_refusal(self, scope: Scope, frame: Frame, branch: str) -> Target:
        """What a branch is to fit whose provider has just refused a request, or has not."""
        target, window = await self.target(scope, frame), self._refused.get((scope, branch))
        return with_(target, budget=_narrowed(target.budget, window)) if window and window < target.window else target

    async def target_as_called(self, scope: Scope, frame: Frame, trace: Trace) -> Target:
        """What a branch is to fit for whoever looks at it or acts on it: what its last call did.

        What its provider refused since counts more, and so does the budget of one window for all that somebody gave.
        """
        target, window = await self.target_after_refusal(scope, frame, trace.branch), trace.window or trace.limit
        given = isinstance(self._given, Budget) and self._given.window != window
        if given or not window or frame.model != trace.model or (scope, trace.branch) in self._refused:
            return target
        if await self.windows.refused(scope, frame, catalog.Model(frame.model, window)):
            return target
        return target.under(with_(target.budget, window=window, reserve=window - trace.limit))

    async def _client(self, scope: Scope, frame: Frame, window: int) -> int | None:
        """Above how many tokens a request's client compacts by itself: where it did, or as it comes."""
        client = known_client(frame.system)
        if client is None:
            return None
        known, key = catalog.lookup(frame.model), (scope, f"{client.name} with {frame.model}")
        if key not in self._clients:
            self._clients[key] = (await self._store.learned(scope, CLIENT)).get(key[1], {}).get("tokens", 0)
        usual = client.threshold(max(window, known.max_input or known.window), answer_of(frame))
        return min(self._clients[key], usual or window) if self._clients[key] else usual

    async def client_compacted(self, scope: Scope, frame: Frame, tokens: int) -> None:
        """Learn that a client compacts a history of so many tokens; of far fewer than usual, a person asked for it."""
        client, target = known_client(frame.system), await self.target(scope, frame)
        usual = min(target.ceiling or target.window, target.window)
        if client and LEAST_ASKED * usual <= tokens < usual:
            key = scope, f"{client.name} with {frame.model}"
            self._clients[key] = tokens
            await self._store.learn(scope, CLIENT, key[1], {"tokens": tokens})

    async def weigh(self, scope: Scope, size: ProviderSize, target: Target, frame: Frame) -> None:
        """Begin a turn: what a branch's size is counted with."""
        calibration = await self._calibration(scope, frame.model, target.meter.counter.exact)
        size.turn(target.meter, calibration, target.meter.frame(frame).tokens)

    async def _calibration(self, scope: Scope, model: str, exact: bool) -> Calibration:
        """What is known of a model's count."""
        if (scope, model) not in self._calibrations:
            kept = (await self._store.learned(scope, KIND)).get(model)
            self._calibrations[scope, model] = Calibration.from_json(kept, exact)
        return self._calibrations[scope, model]

    def observe(self, scope: Scope, size: ProviderSize, view: View, tokens: int) -> list[NamedValue]:
        """Learn from what the provider counted; what is to be written down: one report more often says little."""
        model, calibration = view.frame.model, size.report(view, tokens)
        self._calibrations[scope, model] = calibration
        count = self._reports[scope, model] = self._reports.get((scope, model), 0) + 1
        often = count <= _OFTEN or count % _OFTEN == 0
        return [(KIND, model, calibration.to_json())] if often else []

    async def took(self, scope: Scope, frame: Frame, report: Spent) -> list[NamedValue]:
        """A call went well; what is to be written down of that."""
        found = await self.windows.took(scope, frame, report.input)
        return found + await self.answers.took(scope, place_of(frame), report.output)

    async def refuse(self, scope: Scope, size: ProviderSize | None, view: View, overflow: "Overflow") -> int | None:
        """Have the branch's next request fit what a refusal names: that window, if it was about tokens.

        What others send to the model has the refusal for evidence.
        """
        frame, sent = view.frame, size.expected(view) if size else await self._predicted(scope, view)
        if overflow.limit is None and (overflow.what != "tokens" or not sent):
            return None
        if overflow.limit is None:
            window = self.windows.guess(scope, frame, sent)
        else:
            window = overflow.limit
            # What is far above what was sent may be an error that repeats somebody's words: others do not learn it.
            if overflow.what != "tokens" or 2 * (sent + answer_of(frame)) >= window:
                await self.windows.learn(scope, frame, overflow.what, window)
        if overflow.what != "tokens":
            return None
        if window >= LEAST_WINDOW:
            self._refused[scope, view.branch] = window
        # What was too long was thought to fit: then the limit is not all that was wrong. Or the room for the answer,
        # which many count in, was too large: that says nothing of what was sent.
        answer = answer_of(frame)
        asked = max(overflow.asked or 0, overflow.limit or 0) - answer
        # What it counted says more than what was expected; some count the answer in, then it is nearer to both.
        has_answer = overflow.asked and abs(overflow.asked - sent) > abs(overflow.asked - sent - answer)
        counted = asked if has_answer else overflow.asked or sent
        if overflow.limit and counted <= overflow.limit < counted + answer:
            await self.answers.refused(scope, place_of(frame))
        if size and overflow.limit and sent < asked:
            for kind, name, value in self.observe(scope, size, view, asked):
                await self._store.learn(scope, kind, name, value)
        return window

    async def _predicted(self, scope: Scope, view: View) -> int:
        calls = await self._store.calls(scope, view.branch)
        return next((c.predicted for c in reversed(calls) if c.seq == view.seq), 0)

    def cost(self, model: str, spent: Spent) -> float | None:
        """US dollars, if the price is known."""
        prices = self.windows.prices(model)
        return cost(prices, spent) if prices else None


def _narrowed(budget: Budget, window: int) -> Budget:
    return with_(budget, window=window, reserve=budget.reserve and min(budget.reserve, window // 4))
