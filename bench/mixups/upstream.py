"""A provider on this loop that says what each conversation's script has it say, and shows what it hears to a judge."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from clew.catalog.usage import Spent
from clew.core import rawjson
from clew.testing import Answer
from clew.testing.provider.answers import ProviderTurn
from clew.wire import named

WHO = "x-who"  # a header of ours, which goes on to an upstream as all do
_FORMATS = {"/v1/chat/completions": "openai_chat", "/v1/responses": "openai_responses", "/v1/messages": "anthropic"}
_MODEL = re.compile(r"/models/([^/:]+):")


@dataclass(frozen=True)
class Heard:
    """A request that came."""

    who: str
    format: str
    raw: bytes
    body: dict[str, Any]


Script = Callable[[Heard], Awaitable[Answer]]


class ScriptedUpstream:
    """A server on loopback, from `start` to `stop`."""

    def __init__(self) -> None:
        self.script: Script | None = None
        self.url = ""
        self._count = 0

    async def start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._handle))
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        raw = await request.read()
        format = _FORMATS.get(request.path, "gemini" if ":" in request.path else "")
        if not format or self.script is None:
            return web.Response(status=404, body=b'{"error":{"message":"not here"}}', content_type="application/json")
        body = rawjson.loads(raw)
        if found := _MODEL.search(request.path):
            body = {**body, "model": found[1]}
        answer = await self.script(Heard(request.headers.get(WHO, ""), format, raw, body))
        if answer.status != 200:
            said = rawjson.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
            return web.Response(status=answer.status, body=said, content_type="application/json")
        self._count += 1
        turn = ProviderTurn(format, body, answer, Spent(len(raw) // 4), self._count)
        if body.get("stream") or "streamGenerateContent" in request.path:
            return web.Response(body=b"".join(named(format).stream(turn)), content_type="text/event-stream")
        return web.Response(body=rawjson.dumps(named(format).in_one_piece(turn)), content_type="application/json")
