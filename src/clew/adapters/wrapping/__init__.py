"""`clew.wrap`: clients of openai, anthropic and google-genai whose requests fit the window.

It stands where a client's HTTP transport does, through the SDK's own `http_client`: there every method, streamed or
not, is one request, its bytes can be changed and sent again, and the SDK keeps its types, time-outs and retries.
"""

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from clew import wire
from clew.adapters.wrapping.lines import Blocking, RequestHandler, WrappedPathLine, relayed
from clew.catalog.stated import served
from clew.control import ContextController
from clew.core import rawjson
from clew.core.bridge import cross
from clew.core.items import Node, Scope
from clew.core.limits import Budget
from clew.core.view import View
from clew.engine.engine import Engine
from clew.errors import BadRequest, ClewError
from clew.exchange.asides import Asides
from clew.exchange.exchange import RAISED, Caller, Exchange
from clew.exchange.offering import are_offerable, taken
from clew.exchange.own_model import is_login, own_author
from clew.exchange.thread import Thread, engine_at
from clew.exchange.transport import Transport
from clew.steps.chapters.allowance import Allowance
from clew.store.records import Method, Origin
from clew.wire.requests import api_call_below, is_elsewhere

# Where the root of an SDK's errors is.
ROOTS = {
    "openai": ("openai", "OpenAIError"),
    "anthropic": ("anthropic", "AnthropicError"),
    "google.genai": ("google.genai.errors", "APIError"),
}
# What a client of google-genai was made of, by its argument and the attribute of what it sends with.
GENAI_ARGUMENTS = {
    "vertexai": "vertexai",
    "credentials": "_credentials",
    "project": "project",
    "location": "location",
    "api_key": "api_key",
}


__all__ = ["ClientKeeper", "wrap"]

AnyClient = TypeVar("AnyClient")

log = logging.getLogger("clew")


def wrap(
    client: AnyClient,
    engine: Engine | str | Path | None = None,
    *,
    window: int | None = None,
    session: str | None = None,
    scope: Scope = "default",
    method: Method | None = None,
    when: str = "",
    how: str = "",
    tools: bool | None = None,
) -> AnyClient:
    """Return a client of the same type whose requests always fit the window; nothing is lost.

    `client` is one of `openai`, `anthropic` or `google-genai`; `engine` an `Engine`, or the path of a store; `window`
    the models' window, if not the known one. Send the whole list of messages each time. `session` names the
    conversation, for a client that has only one; without it, clew recognises each by its history. `scope` keeps users
    apart. `tools=True` offers the model `recall` in every request, `False` in none; by default in requests that have
    tools. clew answers those calls, and the caller does not see them. `method="llm"` leaves it to the model `when` to
    compact, and `how`.

    Now and then the client's own model is asked for a summary, which its provider charges; CLEW_SUMMARY_MODEL=none has
    code write it.

    >>> from openai import OpenAI
    >>> client = clew.wrap(OpenAI(api_key="yours"), "agent.db", window=8_000)
    >>> client.clew.engine.store.path  # what was said, as long as you keep it
    'agent.db'
    """
    of_copy = getattr(getattr(client, "_client", None), "clew", None)  # a copy has no other mark
    if isinstance(of_copy or getattr(client, "clew", None), ClientKeeper):
        raise BadRequest("wrap: this client is already wrapped")
    errors_of(client)
    if window is not None and isinstance(engine, Engine):
        raise BadRequest("wrap: an engine has a window already: give it a Budget with that window")
    made = engine_at(engine, None if window is None else Budget(window=window))
    decides = (method or made.settings.method) == "llm"
    offers = tools is not False or decides
    controller = ContextController(made, when=when, how=how, offer=offers)
    controller.method = method or made.settings.method
    wrapped: AnyClient = ClientKeeper(
        client, controller, offers, session, scope, always=bool(tools) or decides
    ).client()
    return wrapped


class ClientKeeper:
    """What stands behind a wrapped client, as its attribute `clew`."""

    def __init__(
        self,
        plain: Any,
        controller: ContextController,
        offers: bool,
        session: str | None,
        scope: Scope,
        origin: Origin | None = None,
        always: bool = False,
    ) -> None:
        self.controller = controller
        self._always = always  # tools are offered, in whichever request can have them
        self.session = session
        self.scope = scope
        self.last: View | None = None  # what was last sent, in whichever conversation
        self._several = False  # conversations were there
        self._offers = offers  # tools, which it runs itself
        self._asides = Asides(controller.engine.digests(scope)) if offers else None
        self._silent = ContextController(controller.engine, offer=False)  # for requests in which no tool can be offered
        self._silent.method = "auto"
        self._caller = Caller(self._sent, self._passable)
        self._allowance = Allowance()  # of one client, one address and one key
        self._origin = origin
        self._plain = plain

    def client(self) -> Any:
        """The client that is kept: a copy, all of whose own settings hold."""
        client = relayed_client(self._plain, self._ask, self)
        client.clew = self
        return client

    @property
    def engine(self) -> Engine:
        return self.controller.engine

    async def recall(self, id: str) -> Sequence[Node]:
        """The originals that an id stands for; from blocking code, `clew.run(client.clew.recall(id))`."""
        return await cross(self.engine.recall(self.scope, id))

    def child(self, name: str) -> Any:
        """A client for a sub-agent, whose lineage hangs under what was last sent."""
        if self.last is None:
            raise ClewError("child() needs a parent request: send one first")
        session = f"{self.session or 'agent'}-{name}-{uuid4().hex[:8]}"
        # Without a name, what was sent last may be another conversation's.
        origin = Origin("beside" if self._several and self.session is None else "subagent", self.last.branch)
        return ClientKeeper(
            self._plain, self.controller, self._offers, session, self.scope, origin, self._always
        ).client()

    async def _ask(self, line: Transport, request: Any) -> Any:
        """What comes of a request; one that has no history goes out as it is."""
        call = api_call_below(request.url.path) if request.method == "POST" else None
        body = _read(request) if call and call.act == "answer" else None
        if call is None or body is None:
            return await line.send(request)
        format, model = call.format, call.model
        if not body.get(wire.named(format).LIST) or is_elsewhere(body):
            return await line.send(self._renamed(line, request, body))
        if model:
            line, body = WrappedPathLine(line, model), {"model": model, **body}
        silent = self._asides is not None and not self._may_offer(body, format)
        controller, asides = (self._silent, None) if silent else (self.controller, self._asides)
        by = served("", request.headers.multi_items()) if format == "anthropic" else ""
        asks = self._asks_own and not is_login(request.headers.multi_items())
        own = own_author(line, request, format, body, self._allowance, request.url.host) if asks else None
        if own and own.gives_way and isinstance(line, Blocking):
            own = None  # what blocks cannot give way
        thread = Thread(controller, self.session, scope=self.scope, origin=self._origin, served=by, own=own)
        try:
            return await Exchange(thread, asides, line, request, format, body, self._caller).run()
        except RAISED as error:
            failure = self._passable(error)
        raise failure

    @property
    def _asks_own(self) -> bool:
        return self.engine.settings.author == "own"

    def _renamed(self, line: Transport, request: Any, body: Mapping[str, Any]) -> Any:
        """A request that goes on from a response by the name that its provider knows."""
        told = body.get("previous_response_id")
        if self._asides is None or not isinstance(told, str) or (known := self._asides.named(told)) == told:
            return request
        return line.with_body(request, rawjson.dumps({**body, "previous_response_id": known}))

    def _sent(self, view: View) -> None:
        self._several |= self.last is not None and self.last.branch != view.branch
        self.last = view

    def _may_offer(self, body: Mapping[str, Any], format: str) -> bool:
        """Whether tools of clew's can join those of a body."""
        own = self.controller.is_ours
        if self._always and (names := taken(body, format, own)):
            log.warning("a request has its own tools named %s: rename them, or do not offer clew's", ", ".join(names))
        return are_offerable(body, format, own, self._always)

    def _passable(self, error: ClewError) -> ClewError:
        """The error as one that is of the SDK, too: any other it takes for a broken connection, and tries again."""
        return passable(error, self._plain)


def _read(request: Any) -> Mapping[str, Any] | None:
    """The body of a request, if it can be read."""
    try:
        body = rawjson.loads(request.content)
    except (BadRequest, RuntimeError):  # httpx has the latter for content that comes in pieces
        return None
    return body if isinstance(body, dict) else None


def errors_of(client: Any) -> tuple[str, type[Exception]]:
    """The SDK of a client, and the root of its errors. Raises `BadRequest` for a client of any other."""
    for kind in type(client).__mro__:
        sdk = next((name for name in ROOTS if f"{kind.__module__}.".startswith(f"{name}.")), "")
        if sdk:
            module, name = ROOTS[sdk]
            root: type[Exception] = getattr(import_module(module), name)
            return sdk, root
    raise BadRequest(f"wrap: expected a client of openai, anthropic or google-genai, got {type(client).__name__}")


def passable(error: ClewError, client: Any) -> ClewError:
    """The error as one of a client's SDK, too."""
    sdk, root = errors_of(client)
    kind = type(type(error).__name__, (type(error), root), {"__module__": type(error).__module__})
    made: ClewError = kind.__new__(kind, *error.args)
    if sdk == "google.genai":  # what its users read of an error
        made.__dict__.update(code=400, status=None, message=str(error), response=None, details=None)
    made.__dict__.update(vars(error))
    return made


def relayed_client(plain: Any, ask: RequestHandler, mark: object) -> Any:
    """A client like this one, whose requests are asked about before they go out through its HTTP client."""
    # What it sends with has no public name in any SDK; to give it another one has.
    if errors_of(plain)[0] != "google.genai":
        http = relayed(plain._client, ask)
        http.clew = mark
        return plain.copy(http_client=http)
    api = plain._api_client
    made = {"httpx_client": relayed(api._httpx_client, ask)}
    if api._async_httpx_client is not None:  # else Google's own library signs what is awaited
        made["httpx_async_client"] = relayed(api._async_httpx_client, ask)
    given = {name: value for name, held in GENAI_ARGUMENTS.items() if (value := getattr(api, held, None)) is not None}
    if given.get("vertexai") and given.get("project"):
        given.pop("api_key", None)
    return type(plain)(**given, http_options=api._http_options.model_copy(update=made))
