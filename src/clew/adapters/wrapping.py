"""`clew.wrap`: clients of openai and anthropic whose requests fit the window.

It stands where a client's HTTP transport does, through the SDK's own `http_client`: there every method, streamed or
not, is one request, its bytes can be changed and sent again, and the SDK keeps its types, time-outs and retries.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from dataclasses import replace as with_
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from clew import rawjson, wire
from clew.adapters.asides import Aside, Asides, Hearing, Muted
from clew.adapters.lines import Chunks, Line, answered, relayed, with_body
from clew.adapters.thread import Thread, engine_at
from clew.agent.results import Result, messages
from clew.agentic import Helm
from clew.bridge import cross
from clew.engine import Engine
from clew.errors import BadRequest, ClewError, OverBudget, SecretFound
from clew.items import Item, Node, Scope
from clew.speaking import Call, Spoken
from clew.store.records import Method, Origin
from clew.view import View

Client = TypeVar("Client")

MENDS = 3  # times that a request is made shorter because its provider refused it
ROUNDS = 20  # calls of clew's own tools before an answer
PATHS = {"/chat/completions": "openai_chat", "/responses": "openai_responses", "/v1/messages": "anthropic"}
ELSEWHERE = ("previous_response_id", "conversation")  # the history is kept by the provider, and cannot be seen
RAISED = (OverBudget, SecretFound)  # to send it all the same would not do
ROOTS = {"openai": "OpenAIError", "anthropic": "AnthropicError"}

log = logging.getLogger("clew")


def wrap(
    client: Client,
    engine: Engine | str | Path | None = None,
    *,
    session: str | None = None,
    scope: Scope = "default",
    method: Method | None = None,
    when: str = "",
    how: str = "",
    tools: bool = False,
) -> Client:
    """A client like this one, of `openai` or `anthropic`, whose requests fit the window; nothing is lost.

    `engine` is one, or where its store is. Without a `session` a conversation is known by its past. With `tools`, or
    the method `llm`, the model may recall what is out of view, and the caller does not see it do so.
    """
    made = engine_at(engine)
    offers = tools or (method or made.method) == "llm"
    helm = Helm(made, when=when, how=how, offer=offers)
    helm.method = method or made.method
    wrapped: Client = Keeper(client, helm, offers, session, scope).client()
    return wrapped


class Keeper:
    """What stands behind a wrapped client, as its attribute `clew`."""

    def __init__(
        self,
        plain: Any,
        helm: Helm,
        offers: bool,
        session: str | None,
        scope: Scope,
        origin: Origin | None = None,
    ) -> None:
        self.helm = helm
        self.offers = offers  # tools, which it runs itself
        self.session = session
        self.scope = scope
        self.last: View | None = None  # what was last sent, in whichever conversation
        self.asides = Asides()
        self.origin = origin
        self._plain = plain
        self._root = _root_of(plain)

    def client(self) -> Any:
        """The client that is kept: a copy, all of whose own settings hold."""
        client = self._plain.copy(http_client=relayed(self._plain._client, self._ask))
        client.clew = self
        return client

    @property
    def engine(self) -> Engine:
        return self.helm.engine

    async def recall(self, id: str) -> Sequence[Node]:
        """The originals that an id stands for; from blocking code, `clew.run(client.clew.recall(id))`."""
        return await cross(self.engine.recall(self.scope, id))

    def child(self, name: str) -> Any:
        """A client for a sub-agent, whose lineage hangs under what was last sent."""
        if self.last is None:
            raise ClewError("nothing was said yet that a sub-agent could come of")
        session = f"{self.session or 'agent'}-{name}-{uuid4().hex[:4]}"
        origin = Origin("subagent", self.last.branch)
        return Keeper(self._plain, self.helm, self.offers, session, self.scope, origin).client()

    async def _ask(self, line: Line, request: Any) -> Any:
        """What comes of a request; one that has no history goes out as it is."""
        format = _format_of(request)
        body = _read(request, format) if format else None
        if format is None or body is None:
            return await line.send(request)
        return await Exchange(self, line, request, format, body).run()

    def raised(self, error: ClewError) -> ClewError:
        """An error as the SDK lets it pass: any but its own it takes for a broken connection, and tries again."""
        kind = type(type(error).__name__, (type(error), self._root), {"__module__": type(error).__module__})
        made: ClewError = kind.__new__(kind, *error.args)
        made.__dict__.update(vars(error))
        return made


@dataclass(frozen=True, slots=True)
class Reply:
    """A response, as much of it as was read, and what was heard in that."""

    response: Any
    heard: Hearing
    read: bytes
    rest: Chunks | None = None  # what is still to come, where it is passed on as it comes
    refusal: str = ""  # what was said instead of an answer


class Exchange:
    """One request of a caller, and as many to the provider as it takes."""

    def __init__(self, keeper: Keeper, line: Line, request: Any, format: str, body: Mapping[str, Any]) -> None:
        self._keeper = keeper
        self._line = line
        self._request = request
        self._format = format
        self._body = body
        self._thread = Thread(keeper.helm, keeper.session, scope=keeper.scope, origin=keeper.origin)
        self._said: list[Item] = []  # what the caller sent
        self._aside: list[Item] = []  # and what he will not see

    async def run(self) -> Any:
        """The response for the caller."""
        for left in range(ROUNDS, -1, -1):
            reply = await self._ask()
            if reply.rest is not None:
                stream = self._line.streaming(self._passed(reply), reply.response)
                return answered(self._line.library, reply.response, stream=stream)
            spoken = reply.heard.spoken()
            await self._observe(spoken)
            calls = spoken.calls if spoken else []
            ours = [call for call in calls if self._thread.last and self._keeper.helm.is_ours(call.name)]
            if not ours or not left or len(ours) < len(calls):
                content = await self._told(reply.read, spoken, ours)
                return answered(self._line.library, reply.response, content=content)
            self._aside += [*self._items(spoken.messages if spoken else ()), *await self._results(ours)]
        raise AssertionError("unreachable")

    # --- asking the provider ------------------------------------------------------------------------------------------

    async def _ask(self) -> Reply:
        """What the provider says; where it was too much for it, to less."""
        for left in range(MENDS, -1, -1):
            reply = await self._hear(await self._line.send(await self._fitted()))
            if not reply.refusal or not left or not await self._mended(reply.refusal):
                return reply
            await self._line.drop(reply.response)
        raise AssertionError("unreachable")

    async def _fitted(self) -> Any:
        """The request to send; the caller's own where nothing is to be changed, or clew fails."""
        try:
            body = self._whole() if self._keeper.offers else self._body
            sent = await self._line.work(self._thread.fit(body, self._format))
        except RAISED as error:
            raise self._keeper.raised(error) from None
        except Exception as error:
            self._thread.last = None
            _warn("a request goes out as it was", error)
            return self._request
        self._keeper.last = sent.view
        if sent.body == self._body:
            return self._request
        return with_body(self._line.library, self._request, rawjson.dumps(sent.body))

    def _whole(self) -> Mapping[str, Any]:
        """The request with all that the caller does not know of."""
        frame, self._said = wire.decode(self._body, self._format)
        woven = [*self._keeper.asides.weave(self._said), *self._aside]
        return wire.encode(frame, woven) if len(woven) > len(self._said) else self._body

    async def _hear(self, response: Any) -> Reply:
        heard = Hearing(self._format)
        if response.status_code >= 400:
            content = await self._line.read(response)
            return Reply(response, heard, content, refusal=content.decode("utf-8", "replace"))
        if self._keeper.offers or "event-stream" not in response.headers.get("content-type", ""):
            content = await self._line.read(response)
            heard.add(content)
            heard.add(b"")
            return Reply(response, heard, content, refusal=heard.refusal)
        chunks, read = self._line.chunks(response), b""
        # A refusal may stand in the stream: until something is said, nothing is passed on.
        while not heard.begun and (chunk := await anext(chunks, b"")):
            heard.add(chunk)
            read += chunk
        return Reply(response, heard, read, chunks, heard.refusal)

    async def _passed(self, reply: Reply) -> Chunks:
        """A stream as it comes, which is listened to."""
        if reply.read:
            yield reply.read
        async with aclosing(reply.rest or self._line.chunks(reply.response)) as chunks:
            async for chunk in chunks:
                reply.heard.add(chunk)
                yield chunk
        reply.heard.add(b"")
        await self._observe(reply.heard.spoken())

    async def _mended(self, refusal: str) -> bool:
        try:
            return await self._line.work(self._thread.refused(refusal))
        except Exception as error:
            _warn("what a provider refused could not be made shorter", error)
            return False

    async def _observe(self, spoken: Spoken | None) -> None:
        try:
            await self._line.work(self._thread.heard(spoken.usage if spoken else None))
        except Exception as error:
            _warn("what a provider reported was not written down", error)

    # --- what the model asks clew -------------------------------------------------------------------------------------

    async def _told(self, content: bytes, spoken: Spoken | None, ours: Sequence[Call]) -> bytes:
        """What the caller gets of an answer; the rest is remembered, for the model is to hear it again."""
        if spoken is None or not (ours or self._aside):
            return content
        ids = {call.id for call in ours}
        answer = self._items(spoken.messages)
        theirs = [item for item in answer if item.call_id not in ids]
        calls = [with_(item, opens=None) for item in answer if item.call_id in ids]
        results = await self._results(ours)
        if self._format == "anthropic":  # one message has all results
            results = [with_(result, opens=None) for result in results]
        self._keeper.asides.keep(self._said, theirs, Aside(tuple(self._aside), calls, results))
        return Muted(ids, len(ours) < len(spoken.calls)).written(content) if ours else content

    async def _results(self, calls: Sequence[Call]) -> list[Item]:
        results = []
        for call in calls:
            text = await self._line.work(self._thread.answer(call.name, call.arguments or {}))
            results.append(Result(call.id, call.name, text, text.startswith("Error: ")))
        return self._items(messages(results, self._format))

    def _items(self, said: Sequence[Mapping[str, Any]]) -> list[Item]:
        return wire.decode({wire.named(self._format).LIST: list(said)}, self._format)[1]


def _warn(what: str, error: Exception) -> None:
    # What others' errors say may hold what was said, or a key.
    log.warning("%s: %s", what, error if isinstance(error, ClewError) else type(error).__name__)


def _format_of(request: Any) -> str | None:
    if request.method != "POST":
        return None
    return next((format for path, format in PATHS.items() if request.url.path.endswith(path)), None)


def _read(request: Any, format: str) -> Mapping[str, Any] | None:
    """The body of a request whose history is in it."""
    try:
        body = rawjson.loads(request.content)
    except BadRequest:
        return None
    if not isinstance(body, dict) or not body.get(wire.named(format).LIST) or any(map(body.get, ELSEWHERE)):
        return None
    return body


def _root_of(client: Any) -> type[Exception]:
    """The root of the errors of a client's SDK."""
    for kind in type(client).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in ROOTS:
            root: type[Exception] = getattr(import_module(name), ROOTS[name])
            return root
    raise BadRequest(f"wrap: expected a client of openai or anthropic, got {type(client).__name__}")
