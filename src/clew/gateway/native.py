"""An upstream's own compaction, where a gateway folds: asked with the key and the headers of the request it is for."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import aiohttp

from clew.core import rawjson
from clew.core.view import View
from clew.errors import BadRequest, ModelError
from clew.exchange.thread import warn
from clew.gateway.http import Refused
from clew.gateway.line import Outgoing, UpstreamLine
from clew.llm.compaction import compaction_blocks, compaction_request
from clew.wire.formats.anthropic.compaction import COMPACT_BETA

# Engines know nothing of connections: whose request is being answered is said beside.
_ANSWERED: ContextVar[tuple[UpstreamLine, Outgoing] | None] = ContextVar("the request that is being answered")


@contextmanager
def compacted_by(line: UpstreamLine, outgoing: Outgoing) -> Iterator[None]:
    """While a request is answered: its upstream compacts, if it is one that does.

    Not where the client has it compact by itself: the API takes no request with both.
    """
    asked = outgoing.upstream.compacts and b"compact_20260112" not in outgoing.content
    token = _ANSWERED.set((line, outgoing) if asked else None)
    try:
        yield
    finally:
        _ANSWERED.reset(token)


@dataclass(frozen=True)
class UpstreamCompactor:
    """Has the upstream of the request that is being answered compact; else, code does."""

    async def compact(self, view: View) -> list[dict[str, Any]]:
        """The block that the upstream puts in place of a view's messages, verbatim. Raises `ModelError`."""
        answered = _ANSWERED.get(None)
        if answered is None:
            raise ModelError("no upstream that compacts is being asked", "refused")
        line, outgoing = answered
        content = rawjson.dumps(compaction_request(view, view.frame.model))
        try:
            came = await line.send(line.with_body(outgoing, content))
            said = await line.read(came)
            if came.status_code >= 400:
                raise ModelError(f"the upstream answered with the status {came.status_code}", "refused")
            return compaction_blocks(rawjson.loads(said))
        except (aiohttp.ClientError, OSError, Refused, BadRequest, ModelError) as error:
            warn("the upstream did not compact, so clew does", error)
            raise ModelError("the upstream did not compact", "refused") from error


def with_beta(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Headers that name what such an upstream needs to be told: a block is taken under that name alone."""
    given = [value for name, value in headers if name == "anthropic-beta" and value]
    kept = [pair for pair in headers if pair[0] != "anthropic-beta"]
    return [*kept, ("anthropic-beta", ",".join([*given, *([] if COMPACT_BETA in ",".join(given) else [COMPACT_BETA])]))]
