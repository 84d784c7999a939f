"""The pages about one conversation: its transcript, its window at each call, and what can be done with it."""

import json
from itertools import takewhile
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from clew.core import rawjson
from clew.core.caches import Recent, until_forgotten
from clew.core.items import Scope
from clew.core.threads import in_thread, in_thread_if
from clew.core.view import View, originals
from clew.engine.engine import body
from clew.errors import NotFound
from clew.page.acting import ACTS, PageAct, Subject
from clew.page.changes import stamp
from clew.page.context import LISTED, PageContext, form, number
from clew.page.transcript import pieces
from clew.screens.calls import decided
from clew.sessions.chains import conversations
from clew.sessions.chapters import ToldChapter
from clew.sessions.composition import Shown
from clew.sessions.conversation import Conversation
from clew.sessions.export_agent import tell
from clew.sessions.export_log import export
from clew.sessions.timeline import chart, turns
from clew.sessions.transcripts import WRITERS, write
from clew.sessions.window import Window
from clew.tokens import media

OWN = "clew"  # the format that keeps everything
PIECES = 60  # of a transcript that are loaded at once, the newest first
READ_WINDOWS = 4  # that are remembered until something happens in them; one that is newest counts twice
RAW = 20_000  # characters of a request that are shown before somebody asks for the file
ReadWindow = tuple[Window, dict[str, ToldChapter]]


class ConversationPages:
    """Answers what is asked about one conversation."""

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._windows: Recent[tuple[object, ...], ReadWindow] = until_forgotten(Recent(READ_WINDOWS))

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
            "method": await on.conversation.method(),
            "totals": sums,
            "formats": (OWN, *WRITERS),
        }
        return await self._page.show(template, scope, **values)

    async def chart(self, request: Request, scope: Scope) -> Response:
        branch = self._page.subject(request, scope).branch
        return JSONResponse(await chart(self._page.engine, scope, branch, await self._page.timelines.of(scope, branch)))

    async def window(self, request: Request, scope: Scope) -> Response:
        """The window as it stands, or as it was sent in a call; with `before`, so many of its pieces before one."""
        on, asked = self._page.subject(request, scope), request.query_params
        timeline = await self._page.timelines.of(scope, on.branch)
        call = number(asked.get("call"))
        one = turns(self._page.engine, timeline, call - 1, call)[0] if 0 < call <= len(timeline.calls) else None
        at = one.call.seq if one else number(asked.get("at")) or None
        window, chapters = await self._read(scope, on, one.number if one else None, at)
        nodes, made = window.nodes, window.view.edits.made
        stop = min(number(asked.get("before"), len(nodes)), len(nodes))
        some = nodes[max(0, stop - PIECES) : stop]
        values: dict[str, Any] = {
            "on": on,
            "window": window,
            "pieces": pieces(some, {n.node.id: len(originals([n.node.id], made)) for n in some if n.by}),
            "chapters": chapters,
            "start": max(0, stop - PIECES),
        }
        if "before" in asked:
            return await self._page.show("pieces.html", scope, **values)
        values |= {"turn": one, "decided": decided(one.call) if one else "", "calls": len(timeline.calls)}
        values["was"] = timeline.calls[one.number - 2].predicted if one and one.number > 1 else 0
        return await self._page.show("window.html", scope, **values, earlier=range(stop % PIECES, stop, PIECES))

    async def _read(self, scope: Scope, on: Subject, call: int | None, at: int | None) -> ReadWindow:
        """A window and the chapters in it; whoever scrolls through a long one has it read once."""
        engine, state = self._page.engine, await self._page.store.state(scope, on.branch)
        if (found := self._windows.get((scope, on.branch, call, at, state))) is None:
            past = on.conversation if at is None else Conversation.of(engine, await engine.view(scope, on.branch, at))
            window = await (past.window() if call is None else on.conversation.window(call=call))
            await in_thread_if(len(window.view.nodes) > PIECES, lambda: window.nodes)  # counts them, once
            found = window, {one.node: one for one in await past.chapters() if one.node}
            for until in {at, window.view.seq}:
                self._windows[scope, on.branch, call, until, state] = found
        return found

    async def raw(self, request: Request, scope: Scope) -> Response:
        """What was sent in a call and what came back, as the log has it."""
        on, call = self._page.subject(request, scope), number(request.query_params.get("call"))
        calls = [one.call for one in await on.conversation.calls()]
        view = await on.conversation.view(call)
        sent = await in_thread(lambda: _written(view))
        if "file" in request.query_params:
            headers = {"content-disposition": f'attachment; filename="{on.branch[:10]}.{call}.json"'}
            return Response(sent, media_type="application/octet-stream", headers=headers)
        later = calls[call] if call < len(calls) else None
        said = (await self._page.store.load(scope, on.branch, later.seq if later else None)).said
        ids = [place.id for place in said[calls[call - 1].said : later.said if later else None]]
        nodes = await self._page.store.nodes(scope, ids)
        answer = takewhile(lambda node: node.item.role == "assistant", (nodes[id] for id in ids))
        values: dict[str, Any] = {"sent": sent.decode(), "answer": [node.item for node in answer], "most": RAW}
        return await self._page.show("raw.html", scope, on=on, call=call, **values)

    async def text(self, request: Request, scope: Scope) -> Response:
        """All of something that is in view."""
        nodes = await self._page.store.nodes(scope, [await self._own_id(request, scope)])
        return await self._page.show("text.html", scope, items=[node.item for node in nodes.values()])

    async def picture(self, request: Request, scope: Scope) -> Response:
        """A picture that lies in an item; one elsewhere is not asked for."""
        id = await self._own_id(request, scope)
        [node] = (await self._page.store.nodes(scope, [id])).values()
        found = [one for block in media.blocks(node.item.wire) if (one := media.picture(block))]
        at = number(request.query_params.get("n"))
        if at >= len(found):
            raise NotFound("there is no such picture")
        return Response(found[at][1], media_type=found[at][0])

    async def behind(self, request: Request, scope: Scope) -> Response:
        """What a stand-in stands for, some of it at a time."""
        on, id = self._page.subject(request, scope), request.path_params["id"]
        start = number(request.query_params.get("start"))
        made = {n.id: edit for edit in (await self._page.store.load(scope, on.branch)).edits for n in edit.stand_ins}
        ids = originals([id], made) if id in made else [node.id for node in await on.conversation.recall(id)]
        nodes = await self._page.store.nodes(scope, ids[start : start + PIECES])
        some = pieces(Shown(nodes[id], 0) for id in ids[start : start + PIECES])
        return await self._page.show("behind.html", scope, pieces=some, on=on, id=id, stop=start + PIECES, of=len(ids))

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


def _written(view: View) -> bytes:
    """The request that sends a view, to be read; a lone surrogate as its escape, bytes as the log has them."""
    text = json.dumps(body(view), ensure_ascii=False, indent=2, default=rawjson.plain_bytes)
    try:
        return rawjson.visible(text.encode())
    except UnicodeEncodeError:
        return json.dumps(body(view), indent=2, default=rawjson.plain_bytes).encode()
