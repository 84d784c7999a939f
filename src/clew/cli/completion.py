"""The names of conversations, for a shell that completes them: quick, and silent whatever is wrong."""

import typer

from clew.config.places import here


def names(context: typer.Context, incomplete: str) -> list[str]:
    """Names and ids that begin like this; none where there is no store yet."""
    try:
        return _names(context, incomplete)
    except Exception:  # a shell has no place for an error
        return []


def _names(context: typer.Context, incomplete: str) -> list[str]:
    import asyncio

    from clew.config import load
    from clew.core.items import SHORT
    from clew.store import open_store

    config = load(here().env, here().folder)

    async def listed() -> list[str]:
        store = open_store(context.params.get("store") or config.store, create=False)
        try:
            sessions = await store.sessions(context.params.get("scope") or config.scope)
        finally:
            await store.close()
        return list(dict.fromkeys(s.name or s.branch[:SHORT] for s in sessions))

    return [name for name in asyncio.run(listed()) if name.startswith(incomplete) and name.isprintable()]
