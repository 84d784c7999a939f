"""The pages about all conversations: the list, the search, what everything came to."""

from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from clew.core.items import Scope
from clew.errors import NotFound
from clew.page.acting import ActEffect, FormField
from clew.page.changes import Changes, stamp
from clew.page.context import LISTED, PageContext, form, number
from clew.page.listing import ListFilter, Listing
from clew.page.overall import SummaryWriters, by_day, by_model, everything
from clew.screens.limits import LimitInWords, limits_in_words
from clew.screens.lines import volume, words
from clew.sessions.about import titled
from clew.sessions.sessions import Sessions
from clew.store.sql import SQLStore

FORGET = "/clew/limits/forget"
FOUND = 40  # texts that a search shows


class OverviewPages:
    """Answers what is asked about all conversations of a scope."""

    def __init__(self, page: PageContext, changes: Changes, summaries: SummaryWriters) -> None:
        self._page, self._changes, self._summaries = page, changes, summaries
        self._listing = Listing(page.engine, page.abouts, page.savings)

    async def list(self, request: Request, scope: Scope) -> Response:
        return await self._listed(request, scope, "list.html")

    async def list_more(self, request: Request, scope: Scope) -> Response:
        return await self._listed(request, scope, "list_rows.html")

    async def _listed(self, request: Request, scope: Scope, template: str) -> Response:
        asked, wanted = request.query_params, ListFilter.of(request.query_params)
        start, most = number(asked.get("start")), number(asked.get("count"), LISTED)
        seen = stamp(await self._page.store.state(scope))
        found = await self._listing.some(scope, start, min(most, 20 * LISTED), wanted)
        return await self._page.show(template, scope, found=found, wanted=wanted, seen=seen)

    async def filters(self, request: Request, scope: Scope) -> Response:
        """What the list can be narrowed by."""
        wanted = ListFilter.of(request.query_params)
        choices = await self._listing.choices(scope, wanted)
        return await self._page.show("filters.html", scope, choices=choices, wanted=wanted)

    async def list_savings(self, request: Request, scope: Scope) -> Response:
        """What takes counting, for the lines that are on the screen."""
        asked = request.query_params.getlist("branch")[: 20 * LISTED]
        own = {b: sorted(await self._page.store.sessions(scope, b), key=lambda s: s.number) for b in asked}
        rows = [(branch, await self._page.savings.of(scope, those)) for branch, those in own.items() if those]
        return await self._page.show("list_savings.html", scope, rows=rows)

    async def search(self, request: Request, scope: Scope) -> Response:
        text, branch = request.query_params.get("q", "").strip(), request.query_params.get("in", "")
        every = Sessions(self._page.engine, scope)
        one = self._page.subject(request, scope, branch).conversation if branch else None
        hits = await (one or every).search(text, limit=FOUND) if text else []
        firsts = {s.branch: s for s in sorted(await every.all(), key=lambda s: -s.number)}
        there = {hit.branch: firsts[hit.branch] for hit in hits if hit.branch in firsts}
        abouts = await self._page.abouts.of(scope, list(there.values()))
        titles = {branch: titled(there[branch], about) for branch, about in abouts.items()}
        return await self._page.show("search.html", scope, text=text, hits=hits, titles=titles, branch=branch)

    async def overall(self, request: Request, scope: Scope) -> Response:
        sessions = await self._page.store.sessions(scope)
        days, models = by_day(sessions), by_model(sessions)
        values: dict[str, Any] = {
            "is_shared": self._page.is_shared,
            "author": self._page.engine.settings.author is not None,
            "drafted": self._summaries.drafted(scope),
            "declined": self._summaries.declined(scope),
            "limits": await limits_in_words(self._page.engine.limits.windows, scope),
        }
        return await self._page.show("overall.html", scope, days=days, models=models, sessions=sessions, **values)

    async def everything(self, request: Request, scope: Scope) -> Response:
        sums = await everything(self._page.savings, scope, await self._page.store.sessions(scope))
        return await self._page.show("overall_sums.html", scope, sums=sums)

    async def health(self, request: Request, scope: Scope) -> Response:
        """What the log holds and what is wrong with it: for who runs it, since all tenants' is in one."""
        store = self._page.store
        if self._page.is_shared or not isinstance(store, SQLStore):
            raise NotFound("only who runs this gateway can look at its log: `clew doctor`")
        problems, survey = await store.check(), await store.survey()
        sizes = [
            (volume(survey.file), "file"),
            (volume(survey.stored), "said, compressed"),
            (f"{survey.bodies:,}", "bodies"),
        ]
        return await self._page.show("health.html", scope, sizes=sizes, problems=problems)

    async def limits(self, request: Request, scope: Scope) -> Response:
        found = await limits_in_words(self._page.engine.limits.windows, scope)
        return await self._page.show("limits.html", scope, limits=found)

    async def ask_forget(self, request: Request, scope: Scope) -> Response:
        """What it would be to forget a limit; nothing changes."""
        told = await self._limit(scope, request.query_params.get("place", ""))
        effect = ActEffect(
            "Forget this limit",
            (
                f"{words(told.name, 160)}: {told.limits}.",
                "The next request uses the window that is known otherwise. If it is refused again, clew folds the "
                "history, asks once more, and has learned the limit anew.",
            ),
            "Forget",
            (FormField("place", "", told.place, hidden=True),),
        )
        return await self._page.show("act.html", scope, effect=effect, address=FORGET)

    async def forget(self, request: Request, scope: Scope) -> Response:
        told = await self._limit(scope, (await form(request)).get("place", ""))
        await self._page.engine.limits.windows.forget(scope, told.place)
        return await self._page.done(scope, "Forgotten.")

    async def _limit(self, scope: Scope, place: str) -> LimitInWords:
        for told in await limits_in_words(self._page.engine.limits.windows, scope):
            if told.place == place:
                return told
        raise NotFound("this limit is not known any more")

    async def live(self, request: Request, scope: Scope) -> Response:
        branch, seen = request.query_params.get("branch") or None, request.query_params.get("seen", "")

        async def changes() -> AsyncIterator[bytes]:
            yield b"retry: 1000\n\n"
            async for changed in self._changes.of(self._page.store, scope, branch, seen):
                yield b"event: changed\ndata: {}\n\n" if changed else b": still here\n\n"

        return StreamingResponse(changes(), media_type="text/event-stream")
