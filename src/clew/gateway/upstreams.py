"""Whom a request goes on to, and with whose key."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from clew.core import rawjson
from clew.errors import BadRequest
from clew.gateway.http import HOP_HEADERS, Refused
from clew.wire.formats import PROVIDERS, named
from clew.wire.formats.base import Provider
from clew.wire.requests import format_of_client

# The headers that carry a key, and how each kind of provider wants it.
KEY_HEADERS = frozenset(provider.header for provider in PROVIDERS.values())
OWN_HEADERS = ("x-clew-",)  # for the gateway alone
# By which a request asks some servers for another method or path than it has: with a key that is not its client's, no.
OVERRIDING = frozenset(
    {"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"}
)


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider, or another gateway before one."""

    name: str
    kind: str  # whose API it speaks: one of `PROVIDERS`
    url: str  # without a path of that API, such as /v1
    key: str = ""  # that is sent; without one, the client's own goes on
    models: tuple[str, ...] = ("*",)  # patterns of the models that it serves

    def __post_init__(self) -> None:
        plain = self.url.rstrip("/")
        for version in ("/v1beta", "/v1"):
            plain = plain.removesuffix(version)
        object.__setattr__(self, "url", plain)

    def __repr__(self) -> str:  # a key is nobody's business
        return f"Upstream({self.name!r}, {self.kind!r}, {self.url!r})"

    def serves(self, format: str, model: str) -> bool:
        """Whether a request in this format for this model goes there."""
        return _kind(format) == self.kind and any(fnmatchcase(model, pattern) for pattern in self.models)

    def headers(self, given: Iterable[tuple[str, str]], own_keys: bool) -> list[tuple[str, str]]:
        """A client's headers as they go on; `own_keys`: those that carry a key are for the gateway."""
        kept = kept_headers(given)
        brings = any(name in KEY_HEADERS for name, _ in kept) and not own_keys
        if own_keys or (self.key and not brings):
            kept = [(name, value) for name, value in kept if name not in KEY_HEADERS]
            kept += [self._key()] if self.key else []
        # Some servers read _ in a name as -.
        return [pair for pair in kept if pair[0].replace("_", "-") not in OVERRIDING] if own_keys else kept

    def _key(self) -> tuple[str, str]:
        header = PROVIDERS[self.kind].header
        return header, f"Bearer {self.key}" if header == "authorization" else self.key


def kept_headers(given: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """A client's headers that are for whoever answers, keys among them."""
    kept = [
        (name, value)
        for name, value in given
        if name not in HOP_HEADERS
        and not name.startswith(OWN_HEADERS)
        and name not in ("accept-encoding", "content-encoding")
    ]
    # What is listened to must be readable, and nothing is won by compressing a stream of small events.
    return [*kept, ("accept-encoding", "identity")]


class Upstreams:
    """Those that are configured, the first that serves a model first."""

    def __init__(self, known: Iterable[Upstream]) -> None:
        self.known = tuple(known)
        self._by_model = any(upstream.models != ("*",) for upstream in self.known)

    def needs_model(self, format: str) -> bool:
        """Whether the path of a request does not tell to whom it goes."""
        return self._by_model and sum(_kind(format) == u.kind for u in self.known) > 1

    def find(self, format: str, model: str) -> Upstream:
        """Where a request in this format goes. Raises `Refused`."""
        for upstream in self.known:
            if upstream.serves(format, model):
                return upstream
        told = f"model {model} in the format {format}" if model else f"the format {format}"
        raise Refused(404, f"no upstream serves {told}: `clew config set gateway.upstreams.NAME.url URL`")

    def of_client(self, headers: Mapping[str, str], path: str) -> Upstream:
        """Where a request goes whose path the gateway does not know. Raises `Refused`."""
        return self.find(format_of_client(path, headers), "")


def from_environment(environment: Mapping[str, str]) -> list[Upstream]:
    """The three providers at home, with the keys that there are."""

    def key(provider: Provider) -> str:
        return next((environment[name] for name in provider.variables if environment.get(name)), "")

    return [Upstream(kind, kind, provider.home, key(provider)) for kind, provider in PROVIDERS.items()]


def _kind(format: str) -> str:
    provider = named(format).provider
    return provider.kind if provider else ""


def model_of(raw: bytes) -> str:
    """The model that a body names; none where it names none."""
    try:
        model = rawjson.loads(raw).get("model")
    except (BadRequest, AttributeError):
        return ""
    return model if isinstance(model, str) else ""
