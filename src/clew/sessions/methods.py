"""Who decides when a conversation is compacted, as the log keeps it under the conversation's name."""

from clew.core.items import Scope
from clew.store.protocol import Store
from clew.store.records import Method

METHOD = "method"  # the kind under which the store keeps it
METHOD_SECONDS = 0.2  # for which a method that another process switched may be the old one


async def kept_method(store: Store, scope: Scope, name: str) -> Method | None:
    """Who decides in the conversation of a name; None: nobody said."""
    known = (await store.learned(scope, METHOD)).get(name, {}).get("method")
    return known if known in ("auto", "llm") else None


async def keep_method(store: Store, scope: Scope, name: str, method: Method) -> None:
    """Have it decided by somebody else from the next request on."""
    await store.learn(scope, METHOD, name, {"method": method})
