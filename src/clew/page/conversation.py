"""The pages about one conversation: its transcript, its window at each call, and what can be done with it."""

import json
from collections.abc import Sequence
from functools import partial
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
from clew.page.listing import CAUSES
from clew.page.transcript import pieces
from clew.screens.calls import decided
from clew.sessions.about import titled
from clew.sessions.chains import Chain, conversations
from clew.sessions.chapters import ToldChapter
from clew.sessions.compared import compared
from clew.sessions.composition import Shown
from clew.sessions.conversation import NumberedCall
from clew.sessions.export_agent import tell
from clew.sessions.export_log import export
from clew.sessions.long_window import LongWindow, LongWindows
from clew.sessions.standing_rules import standing_rules
from clew.sessions.timeline import chart, turns
from clew.sessions.transcripts import WRITERS, write
from clew.sessions.window import Window
from clew.store.records import ABSENT
from clew.tokens import media

OWN = "clew"  # the format that keeps everything
PIECES = 60  # of a transcript that are loaded at once, the newest first
READ_WINDOWS = 4  # that are remembered until something happens in them; one that is newest counts twice
SPREAD = 40  # loads that are one in a long transcript until somebody comes near
SIDE = 400  # items that are listed as having left, or come in
RAW = 20_000  # characters of a request that are shown before somebody asks for the file
ReadWindow = tuple[Window | LongWindow, dict[str, ToldChapter]]


class ConversationPages:
    """Answers what is asked about one conversation."""

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._long = LongWindows(page.engine)
        self._windows: Recent[tuple[object, ...], ReadWindow] = until_forgotten(Recent(READ_WINDOWS))

    async def conversation(self, request: Request, scope: Scope) -> Response:
        return await self._rendered(request, scope, "conversation.html")

    async def head(self, request: Request, scope: Scope) -> Response:
        return await self._rendered(request, scope, "conversation_head.html")

    async def _rendered(self, request: Request, scope: Scope, template: str) -> Response:
        on = self._page.subject(request, scope)
        newest = await on.newest()
        seen = stamp(await self._page.store.state(scope, on.branch))
        every = await self._page.store.sessions(scope)
        root = next(root for root in conversations(every) if root.has(on.branch))
        family = root.family()
        own = next(placed.chain for placed in root.nested() if placed.chain.first.branch == on.branch)
        listed = [own, root, *family.others[:LISTED]]
        abouts = await self._page.abouts.of(scope, [chain.first for chain in listed])
        titles = {chain.first.branch: titled(chain.first, abouts[chain.first.branch]) for chain in listed}
        titles |= {chain.first.branch: titles[root.first.branch] for chain in family.branches}
        groups: dict[str, list[Chain]] = {}
        for chain in family.others[:LISTED]:
            groups.setdefault(CAUSES.get(chain.first.cause, chain.first.cause), []).append(chain)
        if earlier := [*{c.first.branch: c for c in family.branches if c is not family.newest}.values()][:LISTED]:
            groups["earlier version"] = earlier
        found = await self._page.timelines.of(scope, on.branch)
        counted = "count" in request.query_params  # what takes longer is asked for once the page is there
        known = self._page.savings.of(scope, own.sessions) if counted else None
        sums = await known if known else self._page.savings.known(scope, own.sessions)
        values: dict[str, Any] = {
            "on": on,
            "seen": seen,
            "newest": newest,
            "own": own,
            "family": family,
            "groups": groups,
            "titles": titles,
            "title": titles[on.branch],
            "about": abouts[on.branch],
            "found": found,
            "show": request.query_params.get("show", ""),
            "method": await on.conversation.method(),
            "totals": sums,
            "formats": (OWN, *WRITERS),
        }
        return await self._page.show(template, scope, **values)

    async def chart(self, request: Request, scope: Scope) -> Response:
        on = self._page.subject(request, scope)
        await on.newest()
        branch = on.branch
        return JSONResponse(await chart(self._page.engine, scope, branch, await self._page.timelines.of(scope, branch)))

    async def window(self, request: Request, scope: Scope) -> Response:
        """The window as it stands, or as it was sent in a call; with `before`, so many of its pieces before one."""
        on, asked = self._page.subject(request, scope), request.query_params
        timeline = await self._page.timelines.of(scope, on.branch)
        call = number(asked.get("call"))
        one = turns(self._page.engine, timeline, call - 1, call)[0] if 0 < call <= len(timeline.calls) else None
        at = one.call.seq if one else number(asked.get("at")) or None
        window, chapters = await self._read(scope, on, one.number if one else None, at)
        if isinstance(window, LongWindow) and "counted" in asked:
            window = await self._counted(scope, on, window, one.number if one else None, at)
        nodes, made = window.view.nodes, window.view.edits.made
        inside, where = await in_thread_if(len(nodes) > PIECES, lambda: _place(window.view, asked.get("show", "")))
        stop = min(number(asked.get("before"), inside), len(nodes))
        if isinstance(window, LongWindow):
            some = await self._long.some(scope, window, max(0, stop - PIECES), stop)
        else:
            some = list(window.nodes[max(0, stop - PIECES) : stop])
        values: dict[str, Any] = {
            "on": on,
            "window": window,
            "pieces": pieces(some, {n.node.id: len(originals([n.node.id], made)) for n in some if n.by}),
            "chapters": chapters,
            "start": max(0, stop - PIECES),
            "turn": one,
            "load": PIECES,
            "where": where,
            "show": asked.get("show", ""),
        }
        if "before" in asked:
            return await self._page.show("pieces.html", scope, **values)
        if "until" in asked:
            values["stops"] = _spread(len(nodes), number(asked.get("until")))
            return await self._page.show("later.html", scope, **values, stop=-1)
        values["stops"] = _stops(len(nodes), stop)
        values |= {"stop": stop, "decided": decided(one.call) if one else "", "calls": len(timeline.calls)}
        values["was"] = timeline.calls[one.number - 2].predicted if one and one.number > 1 else 0
        return await self._page.show("window.html", scope, **values)

    async def _read(self, scope: Scope, on: Subject, call: int | None, at: int | None) -> ReadWindow:
        """A window and the chapters in it; whoever scrolls through a long one has it read once."""
        state = await self._page.store.state(scope, on.branch)
        if (found := self._windows.get((scope, on.branch, call, at, state))) is None:
            timeline = await self._page.timelines.of(scope, on.branch)
            called = timeline.calls[call - 1].predicted if call else None
            window, chapters = await self._long.of(scope, on.branch, at, call, called)
            if isinstance(window, Window):
                await in_thread_if(len(window.view.nodes) > PIECES, partial(getattr, window, "nodes"))  # counts, once
            found = window, {one.node: one for one in chapters if one.node}
            for until in {at, window.view.seq}:
                self._windows[scope, on.branch, call, until, state] = found
        return found

    async def _counted(
        self, scope: Scope, on: Subject, window: LongWindow, call: int | None, at: int | None
    ) -> LongWindow:
        """A very long window with what fills it, which whoever looks at it next finds counted."""
        if not window.parts:
            state = await self._page.store.state(scope, on.branch)
            window = await self._long.counted(scope, window, call is not None)
            key = scope, on.branch, call, at, state
            if key in self._windows:
                self._windows[key] = window, self._windows[key][1]
        return window

    async def compare(self, request: Request, scope: Scope) -> Response:
        """What left the window between two calls, and what came in."""
        on, asked = self._page.subject(request, scope), request.query_params
        own = await on.conversation.sessions()
        timeline = await self._page.timelines.of(scope, on.branch)
        last = len(timeline.calls)
        first, second = number(asked.get("from"), 1), number(asked.get("to")) or None
        second = None if second is None or second > last else second
        if second is not None and second < first:
            first, second = second, first
        before, after = await self._sent(scope, on, first), await self._sent(scope, on, second)
        nodes = [await self._nodes(scope, window) for window in (before, after)]
        found = await in_thread_if(max(map(len, nodes)) > PIECES, lambda: compared(*nodes))
        lists = [await self._with_words(scope, some[:SIDE]) for some in (found.left, found.new)]
        between = [
            s for at, those in sorted(timeline.began.items()) for s in those if first <= at < (second or last + 1)
        ]
        values: dict[str, Any] = {"on": on, "found": found, "first": first, "second": second, "calls": last}
        values |= {"before": before, "after": after, "lists": lists}
        title = titled(own[0], await self._page.abouts.one(scope, own[0]))
        return await self._page.show("compare.html", scope, **values, between=between, title=title)

    async def _sent(self, scope: Scope, on: Subject, call: int | None) -> Window | LongWindow:
        """The window of a call, or as it stands."""
        calls = (await self._page.timelines.of(scope, on.branch)).calls
        if call is not None and not 0 < call <= len(calls):
            raise NotFound(f"there is no call {call}; there are {len(calls)}")
        return (await self._read(scope, on, call, calls[call - 1].seq if call else None))[0]

    async def _nodes(self, scope: Scope, window: Window | LongWindow) -> Sequence[Shown]:
        return await self._long.every(scope, window) if isinstance(window, LongWindow) else window.nodes

    async def _with_words(self, scope: Scope, some: Sequence[Shown]) -> list[Shown]:
        """What stands in a window with the words that were not read for it."""
        missing = [one.node.id for one in some if one.node.item is ABSENT]
        found = await self._page.store.nodes(scope, missing) if missing else {}
        return [one._replace(node=found.get(one.node.id, one.node)) for one in some]

    async def rules(self, request: Request, scope: Scope) -> Response:
        on = self._page.subject(request, scope)
        view, calls = await on.conversation.view(), (await self._page.timelines.of(scope, on.branch)).calls
        rules = await standing_rules(self._page.engine, view, calls)
        return await self._page.show("rules.html", scope, on=on, rules=rules)

    async def raw(self, request: Request, scope: Scope) -> Response:
        """What was sent in a call and what came back, as the log has it."""
        on, call = self._page.subject(request, scope), number(request.query_params.get("call"))
        calls = (await self._page.timelines.of(scope, on.branch)).calls
        if not 0 < call <= len(calls):
            raise NotFound(f"there is no call {call}; there are {len(calls)}")
        view = await self._page.engine.resume(scope, calls[call - 1])
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
        asked = request.query_params
        start, stop = number(asked.get("start")), number(asked.get("stop"))
        made = {n.id: edit for edit in (await self._page.store.load(scope, on.branch)).edits for n in edit.stand_ins}
        ids = originals([id], made) if id in made else [node.id for node in await on.conversation.recall(id)]
        if asked.get("show", "") in ids:
            start = max(0, ids.index(asked["show"]) - PIECES // 3)
        end = min(start + PIECES, stop or len(ids))
        nodes = await self._page.store.nodes(scope, ids[start:end])
        values: dict[str, Any] = {"on": on, "id": id, "start": start, "end": end, "stop": stop or len(ids)}
        some = pieces(Shown(nodes[id], 0) for id in ids[start:end])
        return await self._page.show(
            "behind.html", scope, **values, pieces=some, is_first=not start or "start" in asked
        )

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
        calls = (await self._page.timelines.of(scope, on.branch)).calls
        after = next((n for n, call in enumerate(calls, 1) if call.seq > diff.session.seq), None)
        title = titled(own[0], await self._page.abouts.one(scope, own[0]))
        newest = max((s.number for s in own if not s.undone), default=0)
        values: dict[str, Any] = {
            "on": on,
            "diff": diff,
            "next": after and NumberedCall(after, calls[after - 1]),
            "title": title,
        }
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


def _place(view: View, id: str) -> tuple[int, str]:
    """Up to which piece of a window to load so that an item is seen, and the stand-in that it is behind, if it is."""
    nodes, made = view.nodes, view.edits.made
    for at, one in enumerate(nodes, 1) if id else ():
        if one.id == id or (one.id in made and id in originals([one.id], made)):
            return at + (len(nodes) - at) % PIECES, "" if one.id == id else one.id
    return len(nodes), ""


def _spread(length: int, until: int) -> list[tuple[int, int]]:
    """Where each of those loads begins and ends that are one until somebody comes near."""
    ends = [n for n in range(length % PIECES or PIECES, length + 1, PIECES) if until - SPREAD * PIECES < n <= until]
    return [(max(0, n - PIECES), n) for n in ends]


def _stops(length: int, shown: int) -> list[tuple[int, int]]:
    """The same all over a window of so many pieces, of which those up to `shown` are there: of a long one even where
    to load from would be a long page."""
    found, until = list[tuple[int, int]](), length
    while until > 0:
        loads = _spread(length, until)
        is_near = until == length or loads[0][0] < shown <= until
        found[:0] = loads if is_near else [(loads[0][0], until)]
        until = loads[0][0]
    return found


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
