"""How much a model reads, from the best source there is: the user's word, an error that named the limit, the local
server that runs it, the catalog, a guess from its family."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_

from clew import catalog
from clew.catalog.probe import Probed, probe
from clew.core.caches import Recent
from clew.core.items import Scope
from clew.store.protocol import Store
from clew.store.records import NamedValue

KIND = "limit"  # under which the store keeps what errors taught
OLLAMA = 4_096  # tokens it gives a model on a small machine, unless told otherwise
_TIGHTER = 0.9  # of what was refused, where the error names no limit
SCOPES = 1_000  # and models, of which it is remembered what the store, or a server, said of them
_LEAST = 2_048  # tokens: a model that takes less than this has another trouble


class ModelWindows:
    """ModelWindows of models: what is `given` overrides all else, `servers` are local ones that may be asked.

    With None for `servers` nobody is asked.
    """

    def __init__(
        self, store: Store, given: Mapping[str, catalog.Model] | None = None, servers: Sequence[str] | None = ()
    ) -> None:
        self.given = dict(given or {})
        self.servers = None if servers is None else tuple(servers)
        self._homes: dict[str, str] = {}  # where models are run that somebody talks to
        self._store = store
        self._learned = Recent[Scope, dict[str, dict[str, int]]](SCOPES)
        self._probed = Recent[str, Probed | None](SCOPES)
        # Not kept: only an error without a number is behind it.
        self._guessed = Recent[tuple[Scope, str], int](SCOPES)

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

    async def model(self, scope: Scope, name: str) -> catalog.Model:
        """What is known of a model; `source` says from where its window is."""
        known = self.given.get(name) or catalog.lookup(name)
        if known.source == "given":
            return known
        if window := (await self._taught(scope)).get(name, {}).get("tokens"):
            return with_(known, window=window, max_input=None, source="learned", exact=True)
        if found := await self._asked(name):
            # A model that Ollama has not loaded yet: its maximum is known, what it will be given is not.
            most = min(found.window, OLLAMA) if found.server == "ollama" and not found.sure else found.window
            known = with_(known, window=most, max_input=None, source="probed", exact=found.sure)
        if (guess := self._guessed.get((scope, name))) and guess < (known.max_input or known.window):
            known = with_(known, window=guess, max_input=None, source="learned", exact=False)
        return known

    async def others(self, scope: Scope, name: str) -> Mapping[str, int]:
        """ModelWindows on bytes, images and messages that errors named."""
        return {what: most for what, most in (await self._taught(scope)).get(name, {}).items() if what != "tokens"}

    async def refused(self, scope: Scope, name: str) -> int | None:
        """The window that refusals taught, named or guessed: stronger than a budget that ignores them."""
        taught = (await self._taught(scope)).get(name, {}).get("tokens")
        guess = self._guessed.get((scope, name))
        return min(filter(None, (taught, guess)), default=None)

    async def learn(self, scope: Scope, name: str, what: str, most: int) -> None:
        """Remember a limit that a provider named, unless no model can mean it."""
        if what == "tokens" and most < _LEAST:
            return
        taught = await self._taught(scope)
        taught[name] = {**taught.get(name, {}), what: most}
        self._guessed.pop((scope, name), None)
        await self._store.learn(scope, KIND, name, taught[name])

    async def took(self, scope: Scope, name: str, tokens: int) -> list[NamedValue]:
        """A call of so many tokens went well: a limit below that was wrong, and an unsure server may be sure now.

        What is to be written down.
        """
        taught = (await self._taught(scope)).get(name, {})
        wrong = taught.get("tokens", tokens) < tokens
        if wrong:
            del taught["tokens"]
        if self._guessed.get((scope, name), tokens) < tokens:
            del self._guessed[scope, name]
        if (found := self._probed.get(name)) and not found.sure:
            del self._probed[name]
        return [(KIND, name, dict(taught))] if wrong else []

    def guess(self, scope: Scope, name: str, refused: int) -> int:
        """A request of so many tokens was too long, nobody said by how much: try with less while this engine lives."""
        self._probed.pop(name, None)
        tighter = max(_LEAST, int(_TIGHTER * refused))
        self._guessed[scope, name] = min(tighter, self._guessed.get((scope, name), tighter))
        return self._guessed[scope, name]

    async def _taught(self, scope: Scope) -> dict[str, dict[str, int]]:
        if scope not in self._learned:
            found = await self._store.learned(scope, KIND)
            self._learned[scope] = {
                name: {k: v for k, v in value.items() if isinstance(v, int) and v > 0} for name, value in found.items()
            }
        return self._learned[scope]

    async def _asked(self, name: str) -> Probed | None:
        if self.servers is None or not name:
            return None
        servers = dict.fromkeys(filter(None, (self._homes.get(name), *self.servers)))
        if servers and name not in self._probed:
            # As the request spells it, and without the prefix by which a router tells where to send it.
            spelled = dict.fromkeys((name, name.partition("/")[2] or name))
            asked = [asyncio.to_thread(probe, url, model) for url in servers for model in spelled]
            answers = [found for found in await asyncio.gather(*asked) if found is not None]
            self._probed[name] = min(answers, key=lambda found: found.window, default=None)
        return self._probed.get(name)
