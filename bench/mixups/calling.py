"""Requests to a gateway in this process: no socket, no server."""

import asyncio
import base64
import re
import zlib
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from clew.core import rawjson
from clew.exchange.answers import AnswerReader
from clew.gateway.app import Gateway

_SEALED = re.compile(r"clew-log-[^\s:]*:([\w+/=-]+)")


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    raw: bytes = field(repr=False)

    def words(self) -> str:
        """All of it, with what is in items that only clew opens."""
        text = self.raw.decode("utf-8", "replace")
        return "\n".join([text, *(_opened(packed) for packed in _SEALED.findall(text))])

    def text(self, format: str) -> str:
        """The words of an answer, as a client of this format reads it."""
        heard = AnswerReader(format)
        heard.add(self.raw)
        heard.add(b"")
        spoken = heard.spoken()
        return str(spoken.text) if spoken else ""


def _opened(packed: str) -> str:
    try:
        return zlib.decompress(base64.b64decode(packed)).decode("utf-8", "replace")
    except (ValueError, zlib.error):  # as it is sealed some day: then it is looked at when it goes to the upstream
        return ""


async def ask(gateway: Gateway, path: str, headers: Mapping[str, str], body: Any) -> Reply:
    """One request, and all of what comes of it."""
    path, _, query = path.partition("?")
    named = {"host": "localhost", "content-type": "application/json", **headers}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    waiting = [{"type": "http.request", "body": rawjson.dumps(body), "more_body": False}]
    status, said, parts = 0, list[tuple[bytes, bytes]](), list[bytes]()

    async def receive() -> MutableMapping[str, Any]:
        if waiting:
            return waiting.pop()
        await asyncio.Event().wait()  # a client that stays
        raise AssertionError("unreachable")

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)
        said.extend(message.get("headers", ()))
        parts.append(message.get("body", b""))

    await gateway(scope, receive, send)
    return Reply(status, {name.decode(): value.decode() for name, value in said}, b"".join(parts))
