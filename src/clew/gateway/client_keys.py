"""The keys of clients: whose each one is, and which keys in a request are for its provider."""

import hashlib
from collections.abc import Mapping

from clew.core.items import Scope
from clew.gateway.http import GatewayRequest, Refused
from clew.gateway.upstreams import KEY_HEADERS, Upstream, kept_headers
from clew.wire.formats import PROVIDERS

KEY_HEADER = "x-clew-key"


class ClientKeys:
    """Keys, each with its scope; false where there are none, and a gateway has one user."""

    def __init__(self, keys: Mapping[str, Scope]) -> None:
        self._scopes = {_digest(key): scope for key, scope in keys.items()}

    def __bool__(self) -> bool:
        return bool(self._scopes)

    def scope(self, asked: GatewayRequest) -> Scope:
        """The scope of who asks. Raises `Refused`."""
        key = _given(asked)
        found = self._scopes.get(_digest(key)) if key else None  # by digest: no comparison tells how much was right
        if found is None:
            raise Refused(401, f"no valid key: send one of the gateway's in {KEY_HEADER} or as your API key")
        return found

    def with_own(self, asked: GatewayRequest, upstream: Upstream) -> tuple[list[tuple[str, str]], str]:
        """Headers and target of a request that goes on with its client's own key for the provider. Raises `Refused`."""
        told = f"{asked.method} {asked.path[:100]} is more than talking to a model, and is not passed on with the"
        if not upstream.key and upstream.url not in {
            provider.home for provider in PROVIDERS.values()
        }:  # it asks for no key: any that is sent would do
            raise Refused(403, f"{told} gateway's access to {upstream.name}: ask whoever runs the gateway")
        headers = [pair for pair in kept_headers(asked.pairs) if pair[0] not in KEY_HEADERS or self._is_own(pair[1])]
        queried = [*map(self._is_own, asked.query_keys)]
        in_query = bool(queried) and all(queried)
        if not in_query and not any(name in KEY_HEADERS for name, _ in headers):
            remedy = f"send your own key for the provider as your API key, and the gateway's in {KEY_HEADER}"
            raise Refused(403, f"{told} gateway's key: {remedy}")
        return headers, asked.target(own_keys=not in_query)

    def _is_own(self, given: str) -> bool:
        """Whether this is a key, and none of the gateway's."""
        key = _plain(given)
        return bool(key) and _digest(key) not in self._scopes


def _given(asked: GatewayRequest) -> str:
    if own := asked.headers.get(KEY_HEADER):
        return own
    given = next((asked.headers[name] for name in sorted(KEY_HEADERS) if name in asked.headers), "")
    return _plain(given) or next(iter(asked.query_keys), "")


def _plain(given: str) -> str:
    """A key without the word that may stand before it."""
    words = given.split(maxsplit=1)
    if words and words[0].lower() == "bearer":
        del words[0]
    return " ".join(words).strip()


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
