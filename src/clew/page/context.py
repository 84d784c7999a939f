"""What every handler of the page works with."""

from typing import Any, Protocol
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.gateway.http import Refused
from clew.page import rendering
from clew.page.acting import Instructions, Subject
from clew.page.guard import PageGuard
from clew.page.saving import Savings
from clew.sessions.about import Abouts
from clew.sessions.timeline import Timelines

LISTED = 50  # conversations that are loaded at once
FORM = 100_000  # bytes of a form


class Handler(Protocol):
    """Answers a request of somebody whose conversations are those of a scope."""

    async def __call__(self, request: Request, scope: Scope, /) -> Response:
        """The answer. Raises a `ClewError` whose words are shown."""


class PageContext:
    """The engine, and what is known of conversations beside the log."""

    def __init__(self, engine: Engine, guard: PageGuard, instructions: Instructions | None) -> None:
        self.engine, self.store = engine, engine.store
        self.guard, self.instructions = guard, instructions
        self.savings, self.abouts, self.timelines = Savings(engine), Abouts(engine.store), Timelines(engine)

    @property
    def is_shared(self) -> bool:
        """Whether several clients look at it, each at its own."""
        return self.guard.has_keys

    async def show(self, template: str, scope: Scope, status: int = 200, **values: Any) -> HTMLResponse:
        """A template as an answer."""
        made = await rendering.render(template, token=self.guard.token(scope), **values)
        return HTMLResponse(made.encode("utf-8", "replace"), status)  # a lone surrogate is no UTF-8

    async def done(self, scope: Scope, told: str) -> Response:
        """That something was done, which all that is shown of it hears."""
        reply = await self.show("done.html", scope, told=told)
        reply.headers["hx-trigger"] = "changed"
        return reply

    def subject(self, request: Request, scope: Scope, branch: str = "") -> Subject:
        """The conversation that a request is about."""
        return Subject(self.engine, scope, branch or request.path_params["branch"], self.instructions)


async def form(request: Request) -> dict[str, str]:
    """What a form says. Raises `Refused` for one that is too long."""
    raw = b""
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > FORM:
            raise Refused(413, f"a form has at most {FORM:,} bytes")
    return dict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True))


def number(text: str | None, default: int = 0) -> int:
    """A number of a query, or another one where it is none."""
    return int(text) if text and text.isdecimal() and len(text) < 10 else default
