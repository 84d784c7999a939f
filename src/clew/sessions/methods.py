"""Who decides when a conversation is compacted, as the log keeps it under the conversation's name."""

from collections.abc import Mapping

from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.store.records import Method

METHOD = "method"  # the kind under which the store keeps it
METHOD_SECONDS = 0.2  # for which a method that another process switched may be the old one


async def kept_methods(engine: Engine, scope: Scope) -> Mapping[str, Method]:
    """Who decides in each conversation of which somebody said so, by its name."""
    kept = await engine.store.learned(scope, METHOD)
    return {name: known["method"] for name, known in kept.items() if known.get("method") in ("auto", "llm")}


async def keep_method(engine: Engine, scope: Scope, name: str, method: Method) -> None:
    """Have it decided by somebody else from the next request on."""
    await engine.store.learn(scope, METHOD, name, {"method": method})
