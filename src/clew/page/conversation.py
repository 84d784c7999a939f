"""The pages about one conversation: its turns, its window, its compactions, and what can be done with it."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from clew.core import rawjson
from clew.core.items import Scope
from clew.errors import NotFound
from clew.page.acting import ACTS, PageAct
from clew.page.changes import stamp
from clew.page.context import LISTED, PageContext, form, number
from clew.screens.originals import original
from clew.sessions.chains import conversations
from clew.sessions.export_agent import tell
from clew.sessions.export_log import export
from clew.sessions.timeline import TURNS_AT_ONCE, chart, turns
from clew.sessions.transcripts import WRITERS, write

OWN = "clew"  # the format that keeps everything
PIECES = 60  # of a window that are loaded at once, the newest first
CLIPPED = 700  # characters of a piece that are shown before somebody asks for all of it


class ConversationPages:
    """Answers what is asked about one conversation."""

    def __init__(self, page: PageContext) -> None:
        self._page = page

    async def conversation(self, request: Request, scope: Scope) -> Response:
        return await self._told(request, scope, "conversation.html")

    async def head(self, request: Request, scope: Scope) -> Response:
        return await self._told(request, scope, "conversation_head.html")

    async def _told(self, request: Request, scope: Scope, template: str) -> Response:
        on = self._page.subject(request, scope)
        newest = await on.newest()
        seen = stamp(await self._page.store.state(scope, on.branch))
        every = await self._page.store.sessions(scope)
        tree = next([*root.nested()] for root in conversations(every) if root.has(on.branch))
        own = next(placed.chain for placed in tree if placed.chain.first.branch == on.branch)
        found = await self._page.timelines.of(scope, on.branch)
        abouts = await self._page.abouts.of(scope, [own.first, *(placed.chain.first for placed in tree[:LISTED])])
        counted = "count" in request.query_params  # what takes longer is asked for once the page is there
        known = self._page.savings.of(scope, own.sessions) if counted else None
        sums = await known if known else self._page.savings.known(scope, own.sessions)
        values: dict[str, Any] = {
            "on": on,
            "seen": seen,
            "newest": newest,
            "own": own,
            "tree": tree[:LISTED],
            "abouts": abouts,
            "about": abouts[on.branch],
            "found": found,
            "chunks": (chunks := found.chunks()),
            "rows": turns(self._page.engine, found, *chunks[0]),
            "method": await on.conversation.method(),
            "totals": sums,
            "formats": (OWN, *WRITERS),
        }
        return await self._page.show(template, scope, **values)

    async def turns(self, request: Request, scope: Scope) -> Response:
        on, asked = self._page.subject(request, scope), request.query_params
        found = await self._page.timelines.of(scope, on.branch)
        if "live" in asked:  # the newest, of which there may be more by now; where they are many, in several parts
            chunks = found.chunks(number(asked["live"]), 2 * TURNS_AT_ONCE)
            rows = turns(self._page.engine, found, *chunks[0])
            return await self._page.show("live_turns.html", scope, rows=rows, on=on, chunks=chunks, found=found)
        rows = turns(self._page.engine, found, number(asked.get("start")), number(asked.get("stop")))
        return await self._page.show("turns.html", scope, rows=rows, on=on)

    async def chart(self, request: Request, scope: Scope) -> Response:
        branch = self._page.subject(request, scope).branch
        return JSONResponse(await chart(self._page.engine, scope, branch, await self._page.timelines.of(scope, branch)))

    async def window(self, request: Request, scope: Scope) -> Response:
        on, before = self._page.subject(request, scope), request.query_params.get("before")
        window = await on.conversation.window()
        stop = min(number(before, len(window.view.nodes)), len(window.view.nodes))
        found: dict[str, Any] = {"window": window, "start": max(0, stop - PIECES), "stop": stop, "clipped": CLIPPED}
        found["chapters"] = {one.node: one for one in await on.conversation.chapters() if one.node}
        return await self._page.show("pieces.html" if before else "window.html", scope, **found, on=on)

    async def text(self, request: Request, scope: Scope) -> Response:
        """All of something that is in view."""
        nodes = await self._page.store.nodes(scope, [await self._own_id(request, scope)])
        return await self._page.show("text.html", scope, texts=[original(n.item) for n in nodes.values()])

    async def behind(self, request: Request, scope: Scope) -> Response:
        """What a stand-in stands for."""
        on = self._page.subject(request, scope)
        nodes = await on.conversation.recall(request.path_params["id"])
        return await self._page.show("behind.html", scope, nodes=nodes, on=on)

    async def chapter(self, request: Request, scope: Scope) -> Response:
        """What a model was asked and answered for a chapter."""
        on = self._page.subject(request, scope)
        found = await on.conversation.chapters(request.path_params["id"])
        return await self._page.show("chapter.html", scope, chapter=found[0])

    async def _own_id(self, request: Request, scope: Scope) -> str:
        on = self._page.subject(request, scope)
        return await self._page.engine.resolve(scope, request.path_params["id"], on.branch)

    async def compaction(self, request: Request, scope: Scope) -> Response:
        on = self._page.subject(request, scope)
        own = await on.conversation.sessions()
        diff = await (await on.conversation.at(request.path_params["session"])).diff()
        calls = [one for one in await on.conversation.calls() if one.call.seq > diff.session.seq]
        title = await self._page.abouts.one(scope, own[0])
        newest = max((s.number for s in own if not s.undone), default=0)
        values: dict[str, Any] = {"on": on, "diff": diff, "next": calls[0] if calls else None, "about": title}
        return await self._page.show("compaction.html", scope, **values, is_newest=diff.session.number == newest)

    async def export(self, request: Request, scope: Scope) -> Response:
        on, format = self._page.subject(request, scope), request.query_params.get("format", OWN)
        name = f"{on.branch[:10]}.{format}.jsonl"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        await on.newest()
        if format != OWN:
            made = write(await tell(self._page.engine, scope, on.branch), format)
            return Response(rawjson.visible(made), media_type="application/octet-stream", headers=headers)
        lines = export(self._page.store, scope, [on.branch])
        return StreamingResponse(
            (rawjson.visible(line) async for line in lines), media_type="application/octet-stream", headers=headers
        )

    # --- acts ---------------------------------------------------------------------------------------------------------

    async def ask(self, request: Request, scope: Scope) -> Response:
        on, act = self._page.subject(request, scope), request.path_params["act"]
        await on.newest()
        effect = await _act(act).ask(on, request.query_params)
        return await self._page.show("act.html", scope, effect=effect, address=f"/clew/c/{on.branch}/act/{act}")

    async def do(self, request: Request, scope: Scope) -> Response:
        on = self._page.subject(request, scope)
        await on.newest()
        told = await _act(request.path_params["act"]).do(on, await form(request))
        return await self._page.done(scope, told)


def _act(name: str) -> PageAct:
    if name not in ACTS:
        raise NotFound("there is no such act")
    return ACTS[name]
