"""Models of Strands that clew asks on an event loop of its own: connections belong to the loop that opened them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from copy import copy
from inspect import iscoroutinefunction
from typing import Any

from strands.models import Model
from strands.models.llamacpp import LlamaCppModel


def shares(one: Model, other: Model) -> bool:
    """Whether models have a client in common that cannot be opened anew, so that they must not run side by side."""
    held = [client for client in _clients(other).values() if not _is_plain(other, client)]
    return any(client is mine for client in held for mine in _clients(one).values())


@asynccontextmanager
async def apart(model: Model) -> AsyncIterator[Model]:
    """The model with clients of its own for one question; most of Strands' models open one for each request anyway."""
    made = {name: _anew(model, client) for name, client in _clients(model).items() if _is_plain(model, client)}
    own = copy(model)
    vars(own).update(made)
    try:
        yield own
    finally:
        for client in made.values():
            await (client.aclose() if isinstance(own, LlamaCppModel) else client.close())


def _clients(model: Model) -> Mapping[str, Any]:
    """What a model holds that keeps connections of an event loop: what is closed by awaiting that."""
    return {name: held for name, held in vars(model).items() if _is_awaited(held) or _is_awaited(_async_part(held))}


def _is_awaited(held: Any) -> bool:
    return any(iscoroutinefunction(getattr(type(held), name, None)) for name in ("aclose", "close"))


def _async_part(held: Any) -> Any:
    return getattr(held, "aio", None)  # as Google's client has it


def _is_plain(model: Model, client: Any) -> bool:
    """Whether it is known what a client was made of: nobody gave it connections that were made by hand."""
    return isinstance(model, LlamaCppModel) or (
        hasattr(client, "copy") and _package(getattr(client, "_client", None)) == _package(client)
    )


def _anew(model: Model, client: Any) -> Any:
    """A client with the same settings and no connections."""
    if isinstance(model, LlamaCppModel):
        return type(client)(base_url=client.base_url, timeout=client.timeout)
    return client.copy(http_client=type(client._client)(timeout=client.timeout))


def _package(of: object) -> str:
    return type(of).__module__.partition(".")[0]
