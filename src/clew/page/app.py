"""The page as an ASGI app: which address shows what, and to whom."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.errors import ClewError, NotFound
from clew.gateway.http import Refused
from clew.page.acting import Instructions
from clew.page.changes import Changes
from clew.page.context import Handler, PageContext, form
from clew.page.conversation import ConversationPages
from clew.page.guard import COOKIE, PageGuard
from clew.page.overall import SummaryWriters
from clew.page.overview import FORGET, OverviewPages
from clew.page.rendering import secured

ONE = "/clew/c/{branch}"


class Page:
    """Conversations to look at, and to act on. Everything that was said in them is text, and is escaped."""

    def __init__(
        self,
        engine: Engine,
        scope: Scope,
        instructions: Instructions,
        *,
        changes: Changes | None = None,
        summaries: SummaryWriters | None = None,
        keys: Mapping[str, Scope] | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        self._guard = PageGuard(engine.store.secret, scope, keys or {}, hosts)
        # Of several clients none changes what is told to the agents of all.
        self._page = PageContext(engine, self._guard, None if keys else instructions)
        many = OverviewPages(self._page, changes or Changes(), summaries or SummaryWriters())
        one = ConversationPages(self._page)
        shown: Mapping[str, Handler] = {
            **dict.fromkeys(("/", "/clew", "/clew/"), many.list),
            "/clew/list": many.list_more,
            "/clew/filters": many.filters,
            "/clew/savings": many.list_savings,
            "/clew/search": many.search,
            "/clew/overall": many.overall,
            "/clew/overall/everything": many.everything,
            "/clew/limits": many.limits,
            "/clew/health": many.health,
            FORGET: many.ask_forget,
            "/clew/live": many.live,
            ONE: one.conversation,
            f"{ONE}/head": one.head,
            f"{ONE}/chart.json": one.chart,
            f"{ONE}/window": one.window,
            f"{ONE}/compare": one.compare,
            f"{ONE}/rules": one.rules,
            f"{ONE}/raw": one.raw,
            f"{ONE}/text/{{id}}": one.text,
            f"{ONE}/picture/{{id}}": one.picture,
            f"{ONE}/behind/{{id}}": one.behind,
            f"{ONE}/chapter/{{id}}": one.chapter,
            f"{ONE}/compaction/{{session}}": one.compaction,
            f"{ONE}/export": one.export,
            f"{ONE}/act/{{act}}": one.ask,
        }
        routes = [Route(path, self._guarded(handler), methods=["GET"]) for path, handler in shown.items()]
        acts = {f"{ONE}/act/{{act}}": one.do, FORGET: many.forget}
        acting = [Route(path, self._guarded(handler), methods=["POST"]) for path, handler in acts.items()]
        key = Route("/clew/key", self._take_key, methods=["POST"])
        static = Mount("/clew/static", StaticFiles(directory=str(files("clew.page") / "static")))
        self._app = Starlette(routes=[*routes, *acting, key, static])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    def _guarded(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """A handler that only those get to who may, and whose errors are told in words."""

        async def answer(request: Request) -> Response:
            scope = ""
            try:
                scope = self._guard.scope(request)
                if request.method != "GET":
                    self._guard.check_act(request, scope)
                return secured(await handler(request, scope))
            except Refused as error:
                if error.status == 401:
                    return secured(await self._page.show("key.html", scope, 401))
                return secured(await self._problem(request, scope, error, error.status))
            except NotFound as error:
                return secured(await self._problem(request, scope, error, 404))
            except ClewError as error:
                return secured(await self._problem(request, scope, error, 400))

        return answer

    async def _problem(self, request: Request, scope: Scope, error: ClewError, status: int) -> Response:
        if "hx-request" in request.headers:  # told in its place, or in the dialog: htmx shows only what went well
            return await self._page.show("problem.html", scope, told=str(error))
        return await self._page.show("error.html", scope, status, told=str(error))

    async def _take_key(self, request: Request) -> Response:
        """Take a user's key, and have the browser keep a proof of it."""
        try:
            cookie = self._guard.cookie(request, (await form(request)).get("key", "").strip())
        except Refused as error:
            return secured(await self._page.show("key.html", "", error.status, told=str(error)))
        reply = RedirectResponse("/", 303)
        secure = request.headers.get("x-forwarded-proto", request.url.scheme) == "https"
        reply.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=secure)
        return secured(reply)
