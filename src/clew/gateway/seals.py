"""Summaries that a client keeps and cannot read, as items of OpenAI's Responses: only the clew that made one opens it.

A seal is signed with the secret of its store, for a scope; its last line says of which branch it tells. Each process on
that store opens it, at any time, and nobody else can make one. What is not signed, or not here, goes on as it came.
"""

import base64
import hmac
import logging
import zlib
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from clew.core import rawjson
from clew.core.items import Digests, Scope
from clew.core.threads import LARGE, in_thread_if
from clew.core.unpacking import Unpacker
from clew.errors import BadRequest
from clew.gateway.compacting import SUMMED_UP
from clew.gateway.http import GatewayRequest

MADE_BY_CLEW = "clew-log-"  # with which an item begins that clew made, in whatever version
SEALED = f"{MADE_BY_CLEW}2:"  # with which one begins that is signed; those of 0.1 are not
SIGNED = 32  # bytes at its beginning, which sign the others

_LOGGER = logging.getLogger("clew")


class Seals:
    """Seals summaries, and opens what it has sealed."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sealed(self, scope: Scope, text: str) -> dict[str, Any]:
        """A summary, whose last line names its branch, as an item that a client keeps."""
        held = zlib.compress(text.encode("utf-8", "surrogatepass"))
        whole = base64.b64encode(Digests(self._secret, scope).seal(held) + held).decode()
        return {"id": f"cmp_{uuid4().hex}", "type": "compaction", "encrypted_content": f"{SEALED}{whole}"}

    async def open(self, scope: Scope, asked: GatewayRequest) -> bytes:
        """What a request says, also to a provider that it is passed on to: its seals have their share of its room."""
        asked.change(await self.opened(scope, await asked.body(), asked.unpacker))
        return await asked.body()

    async def opened(self, scope: Scope, raw: bytes, unpacker: Unpacker) -> bytes:
        """A request with the text of such items in their place; the same bytes where there is none to open.

        Raises `TooLarge` where they say more than there is room for.
        """
        if MADE_BY_CLEW.encode() not in raw:
            return raw
        return await in_thread_if(len(raw) > LARGE, lambda: self._opened(scope, raw, unpacker))

    def _opened(self, scope: Scope, raw: bytes, unpacker: Unpacker) -> bytes:
        try:
            body = rawjson.loads(raw)
        except BadRequest:
            return raw
        given = body.get("input") if isinstance(body, dict) else None
        held = {n: text for n, item in enumerate(given) if (text := _held(item))} if isinstance(given, list) else {}
        digests = Digests(self._secret, scope)
        texts = {n: text for n, seal in held.items() if (text := _text(digests, seal, unpacker)) is not None}
        if len(texts) < len(held):
            _LOGGER.warning(
                "summaries that clew did not seal for this store and scope are passed on as they came: %d; where the "
                "provider refuses them, begin a new session",
                len(held) - len(texts),
            )
        items = [_message(texts[n]) if n in texts else item for n, item in enumerate(given or ())]
        return rawjson.dumps({**body, "input": items}) if texts else raw


def _held(item: Any) -> str | None:
    """What is in an item, if clew may have made it."""
    held = item.get("encrypted_content") if isinstance(item, Mapping) and item.get("type") == "compaction" else None
    return held if isinstance(held, str) and held.startswith(MADE_BY_CLEW) else None


def _text(digests: Digests, seal: str, unpacker: Unpacker) -> str | None:
    """What a seal says; None if it is not one of this store and scope."""
    if not seal.startswith(SEALED):
        return None
    try:
        whole = base64.b64decode(seal.removeprefix(SEALED), validate=True)
    except ValueError:
        return None
    signature, held = whole[:SIGNED], whole[SIGNED:]
    if not hmac.compare_digest(signature, digests.seal(held)):  # before anything of it is unpacked
        return None
    return unpacker.unpacked(held, "zlib").decode("utf-8", "surrogatepass")


def _message(text: str) -> dict[str, Any]:
    said = {"type": "input_text", "text": f"{SUMMED_UP}\n\n{text}"}
    return {"type": "message", "role": "user", "content": [said]}
