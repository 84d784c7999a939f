"""Who may look, and who may act: no other web page may, under whatever name it found this machine."""

import hashlib
import hmac
import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from starlette.requests import Request

from clew.core.items import Scope
from clew.errors import ClewError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
TOKEN_HEADER = "x-clew-token"  # noqa: S105 - the name of a header
COOKIE = "clew_page"

_HOST = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?")


class Forbidden(ClewError):
    """A request that gets no answer, with the status that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class PageGuard:
    """Checks requests; with `keys` (each with its scope), nobody sees anything who has not given one."""

    def __init__(self, secret: bytes, scope: Scope, keys: Mapping[str, Scope], hosts: Collection[str]) -> None:
        self._secret = hashlib.sha256(b"page" + secret).digest()
        self._scope, self._hosts = scope, {*LOOPBACK, *hosts}
        self._scopes = {_digest(key): own for key, own in keys.items()}

    def scope(self, request: Request) -> Scope:
        """Whose conversations are shown. Raises `Forbidden`."""
        self._check_host(request)
        if not self._scopes:
            return self._scope
        given = request.cookies.get(COOKIE, "").encode()
        for digest, scope in self._scopes.items():
            if hmac.compare_digest(given, self._cookie(digest).encode()):
                return scope
        raise Forbidden(401, "give your key to look at your conversations")

    def check_act(self, request: Request, scope: Scope) -> None:
        """Refuse what was not asked for on a page of ours. Raises `Forbidden`."""
        _check_origin(request)
        if not hmac.compare_digest(request.headers.get(TOKEN_HEADER, "").encode(), self.token(scope).encode()):
            raise Forbidden(403, "this page is of an earlier time: load it again")

    def token(self, scope: Scope) -> str:
        """What a page of ours sends with whatever it asks to be done."""
        return self._signed("token", scope)

    def cookie(self, request: Request, key: str) -> str:
        """What a browser keeps once its user gave a key. Raises `Forbidden`."""
        self._check_host(request)
        _check_origin(request)
        digest = _digest(key)
        if digest not in self._scopes:
            raise Forbidden(401, "this is no key of this gateway")
        return self._cookie(digest)

    def _check_host(self, request: Request) -> None:
        named = request.headers.getlist("host")
        found = _HOST.fullmatch(named[0]) if len(named) == 1 else None
        host = found[1].strip("[]").lower() if found else ""
        if host not in self._hosts:
            raise Forbidden(403, f"host {host or 'unknown'} is not served here; gateway.hosts names those that are")

    def _cookie(self, digest: bytes) -> str:
        """A proof of a key, which ends with it."""
        return self._signed("cookie", digest.hex())

    def _signed(self, what: str, name: str) -> str:
        return hmac.new(self._secret, f"{what} {name}".encode(), hashlib.sha256).hexdigest()


def _check_origin(request: Request) -> None:
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        raise Forbidden(403, "another web page asked for this")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden(403, "another web page asked for this")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
