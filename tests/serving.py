"""A gateway on loopback before a strict provider, and requests to it over a real connection."""

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from clew.core.limits import Budget
from clew.engine.engine import Engine
from clew.engine.settings import Settings
from clew.exchange.answers import AnswerReader
from clew.gateway.app import Gateway
from clew.gateway.metrics import Metrics
from clew.gateway.server import GatewayThread
from clew.gateway.settings import GatewaySettings
from clew.gateway.upstreams import Upstream, Upstreams
from clew.llm.streaming import Spoken
from clew.store.places import open_store
from clew.testing import StrictProvider


@dataclass
class Got:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    raw: bytes = field(repr=False)

    def spoken(self, format: str) -> Spoken:
        """The answer, as a client of this format reads it."""
        heard = AnswerReader(format)
        heard.add(self.raw)
        heard.add(b"")
        spoken = heard.spoken()
        assert spoken is not None, self.raw[:2_000]
        return spoken

    def json(self) -> Any:
        return json.loads(self.raw)


@dataclass
class Served:
    """A gateway that is running."""

    url: str
    gateway: Gateway
    provider: StrictProvider

    def ask(self, path: str, body: Any = None, headers: Mapping[str, str] = {}, method: str = "POST") -> Got:
        return post(self.url, path, body, headers, method)


def post(url: str, path: str, body: Any = None, headers: Mapping[str, str] = {}, method: str = "POST") -> Got:
    """One request, on a connection of its own."""
    parts = urlsplit(url)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    try:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        line.request(method, path, raw, {"content-type": "application/json", **headers})
        came = line.getresponse()
        return Got(came.status, {k.lower(): v for k, v in came.getheaders()}, came.read())
    finally:
        line.close()


@contextmanager
def serving(
    store: str | Path = ":memory:",
    provider: StrictProvider | None = None,
    window: int | None = 200_000,
    settings: GatewaySettings | None = None,
    **given: Any,
) -> Iterator[Served]:
    """A gateway over a store, before a provider; no window: the model's own."""
    metrics = Metrics()
    opened = open_store(store)
    with provider or StrictProvider(window=window or 1_000_000) as behind:
        engine = Engine(opened, Budget(window=window) if window else None, Settings(listeners=(metrics,), **given))
        known = [Upstream(kind, kind, behind.url, "key") for kind in ("anthropic", "openai", "gemini")]
        gateway = Gateway(engine, Upstreams(known), settings, metrics)
        with GatewayThread(gateway) as url:
            yield Served(url, gateway, behind)
