"""How much a model reads, from the best source there is: the user's word, what its provider refused of late, what the
request says of it, the local server that runs it, the catalog, a guess from its family.

A refusal is evidence, no law: servers are started anew with a longer context, accounts are upgraded, some errors are
wrong. So it counts for a model at one upstream only, for a day, against a window that is known exactly only from the
second time on, and every third request is aimed past it; rarer, the more often that was refused, too.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as with_
from typing import TYPE_CHECKING, Any, NamedTuple

from clew import catalog
from clew.catalog.stated import stated_window
from clew.core.caches import Recent
from clew.core.items import Frame, Scope
from clew.store.protocol import Store
from clew.store.records import NamedValue

if TYPE_CHECKING:
    from clew.catalog.probe import Probed

KIND = "limit"  # under which the store keeps what errors taught
OLLAMA = 4_096  # tokens it gives a model on a small machine, unless told otherwise
AGE = 24 * 60 * 60  # seconds for which a refusal counts
DOUBTED = 2  # refusals that it takes against a window that is known exactly
PROBED = 3  # every such request is aimed past what refusals taught; from the third refusal on every sixth, and so on
_TIGHTER = 0.9  # of what was refused, where the error names no limit
SCOPES = 1_000  # and models, of which it is remembered what the store, or a server, said of them
_AT = " at "  # a model and by whom it is served
LEAST_WINDOW = 2_048  # tokens: a model that takes less than this has another trouble


class LearnedLimit(NamedTuple):
    """What refusals taught of one model at one upstream."""

    tokens: int = 0  # none: it was about something else
    refusals: int = 0
    at: int = 0  # when the newest was, in seconds
    others: Mapping[str, int] = {}  # limits on bytes, images and messages
    guessed: bool = False  # no number was named: it is a little less than what was refused

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "LearnedLimit":
        """As a store has it; what an older version wrote has no age, and counts no more."""
        counts = {what: n for what, n in kept.items() if isinstance(n, int) and n > 0}
        tokens, refusals, at = (counts.pop(what, 0) for what in ("tokens", "refusals", "at"))
        return cls(tokens, refusals, at, counts)

    def to_json(self) -> dict[str, int]:
        """As a store keeps it; nothing, where no limit is left."""
        if not self.tokens and not self.others:
            return {}
        return {"tokens": self.tokens, "refusals": self.refusals, "at": self.at, **self.others}


def place_of(frame: Frame) -> str:
    """By what a model is known there where it is served: what one upstream refuses says nothing of others."""
    return f"{frame.model}{_AT}{frame.served}" if frame.served else frame.model


def parted(place: str) -> tuple[str, str]:
    """The model and by whom it is served, where somebody said so."""
    model, at, by = place.rpartition(_AT)
    return (model, by) if at else (place, "")


class ModelWindows:
    """Windows of models: what is `given` overrides all else, `servers` are local ones that may be asked.

    With None for `servers` nobody is asked.
    """

    def __init__(
        self,
        store: Store,
        given: Mapping[str, catalog.Model] | None = None,
        servers: Sequence[str] | None = (),
        now: Callable[[], float] = time.time,
    ) -> None:
        self.given = dict(given or {})
        self.servers = None if servers is None else tuple(servers)
        self._homes = Recent[str, str](SCOPES)  # where models are run that somebody talks to
        self._store = store
        self._now = now
        self._learned = Recent[Scope, dict[str, LearnedLimit]](SCOPES)
        self._guessed = Recent[tuple[Scope, str], LearnedLimit](SCOPES)
        self._probed: Recent[str, Probed | None] = Recent(SCOPES)
        self._bound = Recent[tuple[Scope, str], int](
            SCOPES
        )  # requests aimed at a learned limit since one was aimed past it

    def know(self, other: "ModelWindows") -> None:
        """Take over what another one has in memory."""
        self.given.update(other.given)
        self._homes.update(other._homes)
        self._probed.update(other._probed)
        # What it was taught is in its store only: here it is known as what was guessed is.
        taught = {(scope, place): limit for scope, held in other._learned.items() for place, limit in held.items()}
        self._guessed.update(taught | other._guessed)

    def place(self, name: str, address: str) -> None:
        """Have the server that runs a model: it is asked beside the others, about this model only."""
        if self._homes.get(name) != address:
            self._homes[name] = address
            self._probed.pop(name, None)

    def tell(self, name: str, window: int) -> None:
        """Have a window that is known from the model itself; what somebody gave counts more."""
        known = self.given.get(name) or catalog.lookup(name)
        if known.source != "given":
            self.given[name] = with_(known, window=window, max_input=None, source="given", exact=True)

    async def model(self, scope: Scope, frame: Frame, past: bool = False) -> catalog.Model:
        """What is known of a request's model; `source` says from where its window is. `past`: whatever was refused."""
        known = self.given.get(frame.model) or catalog.lookup(frame.model)
        if known.source == "given":
            return known
        if found := await self._asked(frame.model):
            # A model that Ollama has not loaded yet: its maximum is known, what it will be given is not.
            most = min(found.window, OLLAMA) if found.server == "ollama" and not found.sure else found.window
            known = with_(known, window=most, max_input=None, source="probed", exact=found.sure, local=True)
        stated = stated_window(frame.model, frame.served, frame.body)
        if stated >= LEAST_WINDOW:  # a client may be wrong
            known = with_(known, window=stated, max_input=None, source="stated", exact=False)
        window = None if past else await self.refused(scope, frame, known)
        return with_(known, window=window, max_input=None, source="learned", exact=True) if window else known

    async def refused(self, scope: Scope, frame: Frame, known: catalog.Model) -> int | None:
        """The window that refusals taught, where that is less than is `known`, and to be believed."""
        window = await self._believed(scope, place_of(frame), known)
        if window and scope in self._learned:
            del self._learned[scope]  # somebody else may have forgotten it
            window = await self._believed(scope, place_of(frame), known)
        return window

    async def _believed(self, scope: Scope, place: str, known: catalog.Model) -> int | None:
        needed, most = DOUBTED if known.exact else 1, known.max_input or known.window
        found = (await self._taught(scope)).get(place), self._guessed.get((scope, place))
        limits = [limit for limit in found if limit and limit.refusals >= needed and self._now() - limit.at < AGE]
        return min((limit.tokens for limit in limits if 0 < limit.tokens < most), default=None)

    async def is_bound(self, scope: Scope, frame: Frame) -> bool:
        """Whether something was refused that may count."""
        place = place_of(frame)
        return place in await self._taught(scope) or (scope, place) in self._guessed

    def prices(self, model: str) -> catalog.Prices | None:
        """What a model costs, if that is known."""
        return (self.given.get(model) or catalog.lookup(model)).prices

    def aims_past(self, scope: Scope, frame: Frame) -> bool:
        """Whether the next request is aimed past what refusals taught, to see whether they still hold."""
        key = scope, place_of(frame)
        limits = self._learned.get(scope, {}).get(key[1]), self._guessed.get(key)
        # What is refused costs a call: where nothing changes, ever fewer requests are to try it.
        refusals = max(limit.refusals if limit else 0 for limit in limits)
        count = self._bound.get(key, 0) + 1
        aims = count >= PROBED * max(1, -(-refusals // DOUBTED))
        self._bound[key] = 0 if aims else count
        return aims

    async def others(self, scope: Scope, frame: Frame) -> Mapping[str, int]:
        """Limits on bytes, images and messages that errors named."""
        limit = (await self._taught(scope)).get(place_of(frame))
        if limit and limit.others:
            self._learned.pop(scope, None)  # somebody else may have forgotten it
            limit = (await self._taught(scope)).get(place_of(frame))
        return limit.others if limit and self._now() - limit.at < AGE else {}

    async def learn(self, scope: Scope, frame: Frame, what: str, most: int) -> None:
        """Remember a limit that a provider named, unless no model can mean it."""
        if what == "tokens" and most < LEAST_WINDOW:
            return
        place, taught = place_of(frame), await self._taught(scope)
        limit = self._once_more(taught.get(place, LearnedLimit()))
        if what == "tokens":
            limit = limit._replace(tokens=most, refusals=limit.refusals + 1)
        else:
            limit = limit._replace(others={**limit.others, what: most})
        taught[place] = limit
        self._guessed.pop((scope, place), None)
        await self._store.learn(scope, KIND, place, limit.to_json())

    def guess(self, scope: Scope, frame: Frame, refused: int) -> int:
        """A request of so many tokens was too long, nobody said by how much: less may fit, while this engine lives."""
        place = place_of(frame)
        self._probed.pop(frame.model, None)
        limit = self._once_more(self._guessed.get((scope, place), LearnedLimit()))
        tighter = max(LEAST_WINDOW, int(_TIGHTER * refused))
        limit = limit._replace(tokens=min(tighter, limit.tokens or tighter), refusals=limit.refusals + 1, guessed=True)
        self._guessed[scope, place] = limit
        return tighter

    def _once_more(self, limit: LearnedLimit) -> LearnedLimit:
        """What was refused before, if that still counts, as of now."""
        now = int(self._now())
        return limit._replace(at=now) if now - limit.at < AGE else LearnedLimit(at=now)

    async def took(self, scope: Scope, frame: Frame, tokens: int) -> list[NamedValue]:
        """A call of so many tokens went well: a limit below that was wrong, and an unsure server may be sure now.

        What is to be written down.
        """
        place, taught = place_of(frame), await self._taught(scope)
        limit = taught.get(place)
        wrong = limit is not None and 0 < limit.tokens < tokens
        if limit and wrong:
            limit = taught[place] = limit._replace(tokens=0, refusals=0)
        if (guess := self._guessed.get((scope, place))) and guess.tokens < tokens:
            del self._guessed[scope, place]
        if (found := self._probed.get(frame.model)) and not found.sure:
            del self._probed[frame.model]
        return [(KIND, place, limit.to_json())] if limit and wrong else []

    async def all_learned(self, scope: Scope) -> Mapping[str, LearnedLimit]:
        """What refusals taught in a scope and still counts, by model and upstream; also by those of other processes."""
        kept = await self._store.learned(scope, KIND)
        found = {place: LearnedLimit.from_json(limit) for place, limit in kept.items()}
        for (whose, place), guess in self._guessed.items():
            limit = found.get(place, LearnedLimit())
            if whose == scope and (not limit.tokens or guess.tokens < limit.tokens):
                found[place] = guess._replace(others=limit.others)
        return {p: x for p, x in found.items() if (x.tokens or x.others) and self._now() - x.at < AGE}

    async def forget(self, scope: Scope, place: str) -> None:
        """Believe nothing of what refusals taught of a model at an upstream."""
        (await self._taught(scope)).pop(place, None)
        self._guessed.pop((scope, place), None)
        await self._store.learn(scope, KIND, place, {})

    async def _taught(self, scope: Scope) -> dict[str, LearnedLimit]:
        if scope not in self._learned:
            found = await self._store.learned(scope, KIND)
            self._learned[scope] = {place: LearnedLimit.from_json(kept) for place, kept in found.items()}
        return self._learned[scope]

    async def _asked(self, name: str) -> "Probed | None":
        if self.servers is None or not name:
            return None
        servers = dict.fromkeys(filter(None, (self._homes.get(name), *self.servers)))
        if servers and name not in self._probed:
            from clew.catalog.probe import probe  # what speaks HTTP loads slowly, and few have a server of their own

            # As the request spells it, and without the prefix by which a router tells where to send it.
            spelled = dict.fromkeys((name, name.partition("/")[2] or name))
            asked = [asyncio.to_thread(probe, url, model) for url in servers for model in spelled]
            answers = [found for found in await asyncio.gather(*asked) if found is not None]
            self._probed[name] = min(answers, key=lambda found: found.window, default=None)
        return self._probed.get(name)
