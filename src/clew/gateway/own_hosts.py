"""Under which name this machine is asked, and by which web page: for the gateway, and for the page beside it."""

import re
from collections.abc import Collection, Iterable

from clew.gateway.http import Refused

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

_HOST = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?", re.ASCII)
_SAME_SITE = ("same-origin", "none")  # the latter: a user typed the address

Headers = Iterable[tuple[str, str]]  # as they came, names in lower case: some stand more than once


class OwnHosts:
    """The names of this machine: whoever asks under another one was led here by somebody else's web page."""

    def __init__(self, hosts: Collection[str]) -> None:
        self._named = {host.lower() for host in hosts}

    def check_host(self, headers: Headers, any_name: bool = False) -> None:
        """Refuse a request under a foreign name, or under what is none. Raises `Refused`."""
        named = _all(headers, "host")
        check_one_host(named)
        if any_name and not named:
            return
        found = _HOST.fullmatch(named[0]) if named else None
        host = found[1].strip("[]").lower() if found else ""
        if not host or not (any_name or host in LOOPBACK or host in self._named):
            raise Refused(403, f"host {host or 'unknown'} is not served here; gateway.hosts names those that are")

    def check_page(self, headers: Headers) -> None:
        """Refuse what a web page of another origin has a browser ask, unless that is named. Raises `Refused`."""
        headers = list(headers)
        origins = _all(headers, "origin")
        if not origins or not all(_place(origin) in self._named for origin in origins):
            check_same_origin(headers)


def check_one_host(named: Collection[str]) -> None:
    """Refuse a request with two names: who passed it on may have looked at the other one. Raises `Refused`."""
    if len(named) > 1:
        raise Refused(400, "a request has one Host header")


def check_same_origin(headers: Headers) -> None:
    """Refuse what a web page of another origin has a browser ask, be it another port here. Raises `Refused`."""
    headers = list(headers)
    hosts = [host.lower() for host in _all(headers, "host")]
    for origin in _all(headers, "origin"):
        if [_place(origin)] != hosts:
            told = _place(origin) or origin
            raise Refused(403, f"another web page asked for this; gateway.hosts may name its origin: {told[:100]}")
    if any(site not in _SAME_SITE for site in _all(headers, "sec-fetch-site")):
        raise Refused(403, "another web page asked for this")


def _all(headers: Headers, name: str) -> list[str]:
    return [value for known, value in headers if known == name]


def _place(origin: str) -> str:
    """Host and port of an origin, as a Host header has them."""
    return origin.partition("://")[2].lower()
