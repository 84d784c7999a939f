"""The gateway as an ASGI app: which path means what, who may ask, and how often."""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp

from clew.control import ContextController
from clew.core import bridge
from clew.engine.engine import Engine
from clew.exchange.thread import warn
from clew.gateway import faults
from clew.gateway.calls import ModelCalls
from clew.gateway.client_keys import ClientKeys
from clew.gateway.counting import counted
from clew.gateway.http import GatewayReply, GatewayRequest, Gone, Receive, Refused, Send, json_reply
from clew.gateway.line import Outgoing, UpstreamLine, client
from clew.gateway.metrics import Metrics
from clew.gateway.own_hosts import OwnHosts, check_one_host
from clew.gateway.paths import check_path, only_talks
from clew.gateway.settings import GatewaySettings
from clew.gateway.upstreams import Upstreams
from clew.secrets import masking  # noqa: F401 - compiled before the first request, not in it
from clew.wire.formats.base import ApiCall
from clew.wire.requests import api_call, format_of_client

_BARE = ("/messages", "/chat/completions", "/responses", "/models", "/embeddings", "/files", "/conversations")


class Gateway:
    """Between any client and its provider."""

    def __init__(
        self,
        engine: Engine,
        upstreams: Upstreams,
        settings: GatewaySettings | None = None,
        metrics: Metrics | None = None,
        when: str = "",
        how: str = "",
    ) -> None:
        self.engine, self.upstreams = engine, upstreams
        self.settings = settings or GatewaySettings()
        self.metrics = metrics or Metrics()
        self._calls = ModelCalls(engine, upstreams, self.settings, self.metrics, when, how)
        self._keys, self._hosts = ClientKeys(self.settings.keys), OwnHosts(self.settings.hosts)
        self._http: aiohttp.ClientSession | None = None

    @property
    def deciding(self) -> ContextController:
        """What tells agents that decide themselves when and how to: its words may be changed."""
        return self._calls.deciding

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            path = scope.get("raw_path") or scope["path"].encode()
            asked = GatewayRequest(
                scope["method"],
                _normal(path.decode("latin-1")),
                scope["query_string"].decode("latin-1"),
                scope["headers"],
                receive,
                self.settings.body,
                self.settings.client_silence,
            )
            await self._serve(asked, send)

    async def start(self) -> None:
        """Be ready, on the loop that runs now."""
        bridge.stay()
        self._http = client(self.settings.upstream_silence)

    async def stop(self) -> None:
        """End what goes on; the store is its owner's."""
        if self._http:
            await self._http.close()
        await self.engine.close()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            match (await receive())["type"]:
                case "lifespan.startup":
                    await self.start()
                    await send({"type": "lifespan.startup.complete"})
                case _:
                    await self.stop()
                    await send({"type": "lifespan.shutdown.complete"})
                    return

    # --- one request --------------------------------------------------------------------------------------------------

    async def _serve(self, asked: GatewayRequest, send: Send) -> None:
        """Answer a request; what the client does not wait for any more ends."""
        began = time.monotonic()
        self.metrics.running += 1
        status = 499
        try:
            reply = await self._reply(asked)
            status = reply.status_code
            self.metrics.took(time.monotonic() - began)
            await reply.send(send)
        except Gone:
            pass
        except Exception as error:  # an upstream broke off in the middle: the client must see that, too
            warn("an answer broke off", error)
            raise
        finally:
            asked.close()
            self.metrics.running -= 1
            self.metrics.add("clew_requests_total", status=str(status))

    async def _reply(self, asked: GatewayRequest) -> GatewayReply:
        format = _spoken(asked)
        try:
            check_path(asked.path)
            check_one_host([value for name, value in asked.pairs if name == "host"])
            if own := self._own(asked):
                return own
            self._check_origin(asked)
            scope = self._admitted(asked)
            if self.metrics.running > self.settings.requests:
                raise Refused(429, "too many requests at the same time", retry_after="1")
            return await self._handler(asked)(asked, scope)
        except Gone:
            raise
        except Exception as error:
            return faults.refusal(error, format)

    def _own(self, asked: GatewayRequest) -> GatewayReply | None:
        """What is asked of the gateway itself."""
        match asked.method, asked.path:
            case "HEAD" | "GET", "/" | "/livez":
                return json_reply(b'{"status":"ok"}', server="clew")
            case "GET", "/readyz":
                if self._calls.spare.is_needed:
                    told = b'{"status":"degraded","why":"the store fails; requests are fitted from memory"}'
                    return json_reply(told, 503)
                ready = self._http is not None
                return json_reply(b'{"status":"ok"}' if ready else b'{"status":"starting"}', 200 if ready else 503)
            case "GET", "/metrics":
                self._check_origin(asked)
                self._admitted(asked)
                text = "text/plain; version=0.0.4; charset=utf-8"
                return GatewayReply(200, [("content-type", text)], self.metrics.text().encode())
            case "GET", "/v1/responses":  # a web socket: whoever hears this asks in the usual way at once
                raise Refused(426, "web sockets are not served here: use POST", upgrade="HTTP/1.1")
        return None

    def _handler(self, asked: GatewayRequest) -> Callable[[GatewayRequest, str], Awaitable[GatewayReply]]:
        if asked.method != "POST":
            return self._pass
        call = api_call(asked.path)
        if call is None or (call.act != "count" and self._keys and not only_talks(asked.method, asked.path)):
            return self._pass
        return {"answer": self._call(call), "count": self._count, "compact": self._compact}[call.act]

    def _call(self, call: ApiCall) -> Callable[[GatewayRequest, str], Awaitable[GatewayReply]]:
        async def answer(asked: GatewayRequest, scope: str) -> GatewayReply:
            assert self._http is not None, "started"
            return await self._calls.answer(asked, call, scope, self._http)

        return answer

    async def _compact(self, asked: GatewayRequest, scope: str) -> GatewayReply:
        assert self._http is not None, "started"
        return await self._calls.compact(asked, scope) or await self._pass(asked, scope)

    async def _count(self, asked: GatewayRequest, scope: str) -> GatewayReply:
        """What a provider counts, or where it does not, what clew does."""
        if (call := api_call(asked.path)) and call.format == "openai_responses":
            await self._calls.seals.open(scope, asked)
        reply = await self._pass(asked, scope)
        if reply.status_code not in (404, 405, 501):
            return reply
        if not isinstance(reply.body, bytes):
            await reply.body.aclose()
        return counted(await asked.body(), asked.path)

    async def _pass(self, asked: GatewayRequest, scope: str) -> GatewayReply:
        """What an upstream says to a request that is none of clew's business."""
        assert self._http is not None, "started"
        upstream = self.upstreams.of_client(asked.headers, asked.path)
        own_keys = bool(self._keys)
        if own_keys and not only_talks(asked.method, asked.path):
            headers, target = self._keys.with_own(asked, upstream)
        else:
            headers, target = upstream.headers(asked.pairs, own_keys), asked.target(own_keys)
        line, content = UpstreamLine(self._http, asked), await asked.body()
        answered = await line.send(Outgoing(upstream, asked.method, target, headers, content))
        if asked.method == "HEAD":
            return line.answered(answered, await line.read(answered))
        return line.answered(answered, line.chunks(answered))

    # --- who may ask --------------------------------------------------------------------------------------------------

    def _check_origin(self, asked: GatewayRequest) -> None:
        """Refuse what a web page has a browser ask, under whatever name it found this machine."""
        # Who has a key may know this machine by any name; what a browser brings must come by one that is known.
        self._hosts.check_host(asked.pairs, any_name=bool(self._keys) and "origin" not in asked.headers)
        self._hosts.check_page(asked.pairs)

    def _admitted(self, asked: GatewayRequest) -> str:
        """The scope of who asks. Raises `Refused`."""
        return self._keys.scope(asked) if self._keys else self.settings.scope


def _normal(path: str) -> str:
    """A path as the providers have it: some clients add /v1 to a base URL that has it, some do not."""
    while path.startswith(("/v1/v1/", "/v1/v1beta/")):
        path = path[3:]
    return f"/v1{path}" if path.startswith(_BARE) else path


def _spoken(asked: GatewayRequest) -> str:
    """The format in which a client expects errors."""
    call = api_call(asked.path)
    if call and call.act == "answer" and call.streamed is None:  # a path with a model may be another server's, too
        return call.format
    return format_of_client(asked.path, asked.headers)
