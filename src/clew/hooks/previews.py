"""Large results of tools: the original goes to the log, and the model gets a preview with the id that recalls it."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from clew.config import Config, engine, load
from clew.config.places import here
from clew.core.items import SHORT, Item, Scope, new_id
from clew.core.pointers import pointer
from clew.engine.append import Addition
from clew.engine.engine import Engine
from clew.errors import NotFound
from clew.hooks.pending import RESULT, note
from clew.sessions.about import hold, results_of
from clew.steps.lines import preview
from clew.steps.matches import matches, terms
from clew.store import open_store
from clew.store.records import Origin
from clew.store.sql import SQLStore

PREVIEW_HEAD, PREVIEW_TAIL = 2_400, 1_200  # characters of both ends of a result
LOOKED_AT = 16  # the newest items, among which one that was just written is


# What to show of texts of an event, once their originals are in the log; the tool that shows those has this name.
ResultKeeping = Callable[[Mapping[str, Any], list[str], str], dict[str, str]]


def previewed(event: Mapping[str, Any], response: Any, large: list[str], recall: str, keep: ResultKeeping) -> Any:
    """A response with previews of those texts in it, whose originals a tool of this name shows."""
    short = keep(event, large, recall)
    for text in large:
        note(event, f"{RESULT} {len(text)} {len(short[text])}")
    return _with(response, short)


def _with(value: Any, short: Mapping[str, str]) -> Any:
    match value:
        case str():
            return short.get(value, value)
        case dict():
            return {key: _with(part, short) for key, part in value.items()}
        case list():
            return [_with(part, short) for part in value]
    return value


def kept_alone(event: Mapping[str, Any], texts: list[str], recall: str) -> dict[str, str]:
    """The same with a store of its own, as a process has one that nobody else uses."""
    config = load(here().env, here().folder)

    async def keep() -> dict[str, str]:
        opened = open_store(config.store)
        try:
            return await kept(config, opened, event, texts, recall)
        finally:
            await opened.close()

    return asyncio.run(keep())


async def kept(
    config: Config, opened: SQLStore, event: Mapping[str, Any], texts: list[str], recall: str
) -> dict[str, str]:
    """Previews of texts, whose originals are in this store from now on."""
    quiet = replace(config, summary=replace(config.summary, model="none"))  # nothing is summed up here
    made = engine(quiet, opened, compaction="off")
    try:
        return {text: await preview_of(made, config.scope, event, text, recall) for text in texts}
    finally:
        await made.close()


async def preview_of(made: Engine, scope: Scope, event: Mapping[str, Any], text: str, recall: str) -> str:
    """Write one result to the log, in a conversation beside that of its session; `recall` is the tool that shows it."""
    # Who names neither its session nor its call shares none: what was said in another is not its own.
    name = results_of(str(event.get("session_id") or new_id()))
    if folder := event.get("cwd"):
        await hold(made.store, scope, name, str(folder))
    tool, id = str(event.get("tool_name") or "tool"), str(event.get("tool_use_id") or f"call-{new_id()}")
    given = event.get("tool_input")
    call = {"id": id, "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": text},
    ]
    said = Addition({"messages": messages}, name, "openai_chat", scope, Origin("subagent"))
    await made.append(said)
    branch = await made.store.session(scope, name)
    if branch is None:
        raise NotFound(f"conversation {name} is not there, although it was written")
    newest = [place.id for place in (await made.store.load(scope, branch)).said[-LOOKED_AT:]]
    nodes = await made.store.nodes(scope, newest)
    own = next(n for i in reversed(newest) if (n := nodes[i]).item.call_id == id and n.item.kind == "result")
    found = matches(own.item.text, terms(json.dumps(given), ""))
    short = own.id[:SHORT]
    shown: Item = preview(own.item, short, PREVIEW_HEAD, PREVIEW_TAIL, found)
    told = f"{shown.text}\n[{pointer(short)}: the original, whole or by lines]"
    return told.replace(pointer(short), pointer(short, recall))
