"""Whether clew may ask a model behind the gateway by itself: with an API key and consent; never with a login."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from urllib.parse import parse_qs, urlsplit

import aiohttp

from clew.core import rawjson
from clew.core.caches import Recent
from clew.core.items import Scope
from clew.exchange.own_model import LOGIN_KEYS, is_login, own_author
from clew.gateway.http import GatewayRequest
from clew.gateway.line import Outgoing, PathModelLine, UpstreamLine
from clew.gateway.upstreams import KEY_HEADERS
from clew.steps.chapters.allowance import Allowance
from clew.steps.chapters.by_model import ByModel

CREDENTIALS = 1_000  # of which it is remembered how often a model was asked with them


class _Alone(GatewayRequest):
    """A request for which no client waits."""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        yield


class OwnModels:
    """Makes authors of the models of conversations, each with an allowance for its scope, upstream and credential."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._allowances: Recent[tuple[Scope, str, bytes], Allowance] = Recent(CREDENTIALS)

    def author(
        self, scope: Scope, format: str, model: str, raw: bytes, outgoing: Outgoing, http: aiohttp.ClientSession
    ) -> ByModel | None:
        """The model that a request is for; None where its credential is no API key."""
        if not is_api_key(outgoing.headers, outgoing.target, outgoing.upstream.key):
            return None
        held = sorted(_held(outgoing.headers, outgoing.target))
        key = scope, outgoing.upstream.name, blake2b(repr(held).encode(), digest_size=16).digest()
        if key not in self._allowances:
            self._allowances[key] = Allowance()
        alone = _Alone(outgoing.method, "", "", [], _never, self._most)
        line = PathModelLine(http, alone, model) if model else UpstreamLine(http, alone)
        host = urlsplit(outgoing.upstream.url).hostname or ""
        return own_author(line, outgoing, format, rawjson.loads(raw), self._allowances[key], host)


async def _never() -> dict[str, object]:
    raise AssertionError("all of it is known")


def is_api_key(headers: Sequence[tuple[str, str]], target: str = "", configured: str = "") -> bool:
    """Whether all that a request identifies itself with are API keys: providers forbid questions of others by login.

    What is `configured` as an upstream's key may have any form but that of a login.
    """
    if is_login(headers) or any(name.lower() == "x-goog-user-project" for name, _ in headers):
        return False
    held = _held(headers, target)
    return bool(held) and all(_is_key(name, value, configured) for name, value in held)


def _held(headers: Sequence[tuple[str, str]], target: str) -> list[tuple[str, str]]:
    given = [(name.lower(), value.strip()) for name, value in headers]
    held = [(name, value.removeprefix("Bearer ").strip()) for name, value in given if name in KEY_HEADERS]
    return held + [("x-goog-api-key", value) for value in parse_qs(urlsplit(target).query).get("key", ())]


def _is_key(name: str, value: str, configured: str) -> bool:
    """Tokens of a login have other forms, and one more may come every day: a bearer is a key if it looks like one."""
    if not value or value.startswith(LOGIN_KEYS):
        return False
    return name != "authorization" or value.startswith("sk-") or value == configured
