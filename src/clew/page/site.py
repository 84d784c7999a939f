"""The page beside a gateway, on one port: what a browser asks for is the page's, all else the gateway's."""

from typing import Any

from clew.gateway.server import Asgi
from clew.page.app import Page

PREFIX = "/clew"  # no provider has a path that begins so


class Site:
    """An app that shows the page, and leaves everything else to another one."""

    def __init__(self, page: Page, other: Asgi) -> None:
        self._page, self._other = page, other

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        is_page = scope["type"] == "http" and (f"{scope['path']}/".startswith(f"{PREFIX}/") or _is_front(scope))
        await (self._page if is_page else self._other)(scope, receive, send)


def _is_front(scope: Any) -> bool:
    """Whether a browser asks for the front page: programs look there to see whether somebody answers."""
    if scope["path"] != "/" or scope["method"] != "GET":
        return False
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    """An app with nothing to serve: the page is all there is."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"Only the page is served here; clew serve is the gateway.\n"})
