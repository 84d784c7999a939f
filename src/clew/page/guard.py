"""Who may look, and who may act: no other web page may, under whatever name it found this machine."""

import hashlib
import hmac
from collections.abc import Collection, Mapping

from starlette.requests import Request

from clew.core.items import Scope
from clew.gateway.http import Refused
from clew.gateway.own_hosts import OwnHosts, check_same_origin

TOKEN_HEADER = "x-clew-token"  # noqa: S105 - the name of a header
COOKIE = "clew_page"


class PageGuard:
    """Checks requests; with `keys` (each with its scope), nobody sees anything who has not given one."""

    def __init__(self, secret: bytes, scope: Scope, keys: Mapping[str, Scope], hosts: Collection[str]) -> None:
        self._secret = hashlib.sha256(b"page" + secret).digest()
        self._scope, self._hosts = scope, OwnHosts(hosts)
        self._scopes = {_digest(key): own for key, own in keys.items()}

    @property
    def has_keys(self) -> bool:
        """Whether nobody sees anything without one."""
        return bool(self._scopes)

    def scope(self, request: Request) -> Scope:
        """Whose conversations are shown. Raises `Refused`."""
        self._hosts.check_host(request.headers.items())
        if not self._scopes:
            return self._scope
        given = request.cookies.get(COOKIE, "").encode()
        for digest, scope in self._scopes.items():
            if hmac.compare_digest(given, self._cookie(digest).encode()):
                return scope
        raise Refused(401, "give your key to look at your conversations")

    def check_act(self, request: Request, scope: Scope) -> None:
        """Refuse what was not asked for on a page of ours. Raises `Refused`."""
        check_same_origin(request.headers.items())
        if not hmac.compare_digest(request.headers.get(TOKEN_HEADER, "").encode(), self.token(scope).encode()):
            raise Refused(403, "this page is of an earlier time: load it again")

    def token(self, scope: Scope) -> str:
        """What a page of ours sends with whatever it asks to be done."""
        return self._signed("token", scope)

    def cookie(self, request: Request, key: str) -> str:
        """What a browser keeps once its user gave a key. Raises `Refused`."""
        self._hosts.check_host(request.headers.items())
        check_same_origin(request.headers.items())
        digest = _digest(key)
        if digest not in self._scopes:
            raise Refused(401, "this is no key of this gateway")
        return self._cookie(digest)

    def _cookie(self, digest: bytes) -> str:
        """A proof of a key, which ends with it."""
        return self._signed("cookie", digest.hex())

    def _signed(self, what: str, name: str) -> str:
        return hmac.new(self._secret, f"{what} {name}".encode(), hashlib.sha256).hexdigest()


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
