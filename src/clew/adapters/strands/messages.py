"""What Strands has, as clew takes it: an agent's call as a request, its models as writers, its pins; and back."""

import logging
from collections.abc import AsyncIterator, Collection, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace as with_
from functools import partial
from inspect import iscoroutinefunction
from operator import is_
from typing import Any
from uuid import uuid4

from strands import Agent
from strands.event_loop.streaming import process_stream
from strands.hooks import AfterModelCallEvent
from strands.models import Model
from strands.models.llamacpp import LlamaCppModel
from strands.types.content import Message, Messages
from strands.types.tools import ToolSpec

from clew.adapters.host import Host, Hosted
from clew.adapters.strands.protecting import JOINED, Protecting, pinned
from clew.catalog.usage import spent
from clew.core.bridge import cross, run
from clew.core.limits import Budget
from clew.core.view import View
from clew.engine.engine import Engine, body
from clew.exchange.thread import Thread, engine_at, warn
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt, Reply
from clew.steps.protocol import Step
from clew.wire.convert.extras import with_tail
from clew.wire.formats.plain import fresh

STRANDS_FORMAT = "bedrock"  # whose shape the messages of Strands have, whatever the model
TOO_LONG = "prompt is too long"  # which Strands knows of an error, whatever its provider's words
_LOGGER = logging.getLogger("clew")


def request(model: Model, messages: Messages, system: Any, tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """A call of a model as one request."""
    told: dict[str, Any] = {"system": [{"text": system}] if isinstance(system, str) else system} if system else {}
    if tools:
        told["toolConfig"] = {"tools": [{"toolSpec": spec} for spec in tools]}
    return {"modelId": name_of(model), "messages": messages, **told}


def request_of(agent: Agent) -> dict[str, Any]:
    """The call that an agent would make now."""
    messages = fresh(agent.messages)  # Strands changes messages in place, and clew must see that it did
    return request(agent.model, messages, agent.system_prompt, agent.tool_registry.get_all_tool_specs())


def name_of(model: Model) -> str:
    """By which the catalog may know a model."""
    return str(dict(model.get_config()).get("model_id") or "")


def open_thread(agent: Agent, host: Host, **given: Any) -> Thread:
    """The conversation of an agent, named as its session manager names it; what is `given` is as for `Engine`."""
    where = host.where() if callable(host.where) else host.where
    if (window := agent.model.context_window_limit) and not isinstance(where, Engine):
        given = {"budget": Budget(window=window), **given}
    # What is set here must not hold for whoever else uses an engine that was given.
    engine = where.variant(**given) if isinstance(where, Engine) else engine_at(where, **given)
    if not isinstance(step := engine.settings.step, Protecting):
        engine.settings = with_(engine.settings, step=Protecting(step))
    return Thread(host.controller(engine), host.session or session_of(agent), scope=host.scope)


def let_go(threads: MutableMapping[Any, Thread], host: Host) -> None:
    """End what goes on for these conversations; an engine that was given keeps its store."""
    for _, thread in [*threads.items()]:
        run(thread.controller.engine.close(store=not isinstance(host.where, Engine)))
    threads.clear()


def session_of(agent: Agent) -> str | None:
    """The name of a conversation that a session manager keeps; any other is known by its past."""
    if agent._session_manager is None:  # its public `session_id` is then made up anew each time
        return None
    return agent.session_id if agent.agent_id == "default" else f"{agent.session_id}/{agent.agent_id}"


def hosted(model: Model) -> Hosted:
    """A model of Strands as one that writes summaries and notes for clew."""
    return Hosted(name_of(model), partial(_asked, model), model.context_window_limit)


def written_by(agent: Agent, prompt: str = "") -> ByModel | None:
    """The auxiliary model of an agent as one that writes chapters, if it can be asked while the agent works."""
    if not _is_free(agent.aux_model, agent):
        return None
    return ByModel(hosted(agent.aux_model), prompt=prompt)


def _is_free(model: Model, agent: Agent) -> bool:
    if shares(model, agent.model):
        _LOGGER.info(
            "no model writes chapters: the client that %s was given belongs to the event loop of its agent; "
            "give the agent an aux_model with a client of its own",
            type(agent.model).__name__,
        )
        return False
    return True


async def _asked(model: Model, prompt: Prompt) -> Reply:
    before: Mapping[str, Any] = body(prompt.after) if prompt.after else {}
    sent = with_tail(before, STRANDS_FORMAT, prompt.text)
    tools = [tool["toolSpec"] for tool in before.get("toolConfig", {}).get("tools", ()) if "toolSpec" in tool]
    system = prompt.system or (prompt.after.frame.system if prompt.after else "")
    reply = Reply("")
    async with apart(model) as own:
        async for event in process_stream(own.stream(sent["messages"], tools or None, system or None)):
            if "stop" in event:
                stop, message, usage, _ = event["stop"]
                calls = tuple(block["toolUse"]["name"] for block in message["content"] if "toolUse" in block)
                thought = any("reasoningContent" in block for block in message["content"])
                reply = Reply(text_of(message), spent(usage), calls, thought, stop == "max_tokens")
    return reply


def text_of(message: Message) -> str:
    """What a message says in words."""
    return "\n".join(block["text"] for block in message["content"] if "text" in block)


def written_by_agent(writer: Agent, agent: Agent) -> ByModel | None:
    """Another agent as an author, by its own prompt; its own messages stay as they are."""
    if not _is_free(writer.model, agent):
        return None

    async def ask(prompt: Prompt) -> Reply:
        messages, model = list(writer.messages), writer.model
        try:
            async with apart(model) as writer.model:
                answer = await writer.invoke_async(prompt.text)
        finally:
            writer.messages[:], writer.model = messages, model
        return Reply(text_of(answer.message))

    return ByModel(Hosted(writer.name, ask, writer.model.context_window_limit))


async def taken(thread: Thread, agent: Agent, view: View) -> bool:
    """Have an agent hold a view; whether that is a change. The log has its pins then, for messages may be joined."""
    engine, before, pins = thread.controller.engine, list(agent.messages), view.pinned | pinned(view.nodes)
    if freed := _freed(before, view):
        await cross(engine.pin(view, *freed, off=True))
    after = _merged(before, body(view)["messages"], {n.item.text for n in view.nodes if n.id in pins - freed})
    if len(after) == len(before) and all(map(is_, after, before)):
        return False
    if ids := pins - view.pinned:
        await cross(engine.pin(view, *ids))
    agent.messages[:] = after
    return True


def _freed(messages: Messages, view: View) -> frozenset[str]:
    """The pinned nodes in messages that others went into, and that somebody unpinned since."""
    custom = ((message, message.get("metadata", {}).get("custom", {})) for message in messages)
    loose = [message for message, marks in custom if JOINED in marks and not marks.get("pinned")]
    texts = {block["text"] for message in loose for block in message["content"] if "text" in block}
    return frozenset(n.id for n in view.nodes if n.id in view.pinned and n.item.text in texts)


async def kept(thread: Thread, agent: Agent) -> View:
    """Have all that an agent holds in the log, and nothing made of it."""
    engine = thread.controller.engine
    was = engine.settings
    engine.settings = with_(was, compaction="off")
    try:
        return (await thread.fit(request_of(agent), STRANDS_FORMAT)).view
    finally:
        engine.settings = was


async def shortened(thread: Thread, agent: Agent, error: Exception | None, step: Step | None) -> bool:
    """Have an agent hold less now, whatever it holds; whether it does."""
    engine, view = thread.controller.engine, await kept(thread, agent)

    async def work() -> View:
        if error is not None and await engine.refused(view, error.__cause__ or error) is None:
            await engine.refused(view, TOO_LONG)
        return await engine.compact(view, "", step, "reactive" if error else "manual")

    after = await cross(work())
    if all(edit.by.startswith("Repair") for edit in after.edits):
        return False  # what is only mended is no shorter
    return await taken(thread, agent, after)


def _merged(before: Messages, after: Messages, pins: Collection[str]) -> Messages:
    """The messages `after`, each of them the host's own where it is unchanged."""
    found: Messages = []
    left = len(before)
    for message in reversed(after):  # from the end, where most is as it was
        same = next((i for i in range(left - 1, -1, -1) if _is_same(before[i], message)), None)
        found.append(_ours(message, pins) if same is None else before[same])
        left = left if same is None else same
    return found[::-1]


def _is_same(held: Message, sent: Message) -> bool:
    """Whether it is the same message, and not only one that says the same."""
    known = "tracking_id" not in sent or held.get("tracking_id") == sent["tracking_id"]
    return known and held["role"] == sent["role"] and held["content"] == sent["content"]


def _ours(message: Message, pins: Collection[str]) -> Message:
    """A message that stands for others; where roles must alternate, those beside it are in it, pinned ones perhaps."""
    ours: Message = {"role": message["role"], "content": message["content"], "tracking_id": str(uuid4())}
    if any(block.get("text") in pins for block in message["content"]):
        ours["metadata"] = {"custom": {"pinned": True, JOINED: True}}
    return ours


async def hear(thread: Thread, event: AfterModelCallEvent) -> None:
    """Take down what the provider reported."""
    if event.stop_response is None:
        return
    try:
        await thread.heard(event.stop_response.message.get("metadata", {}).get("usage"))
    except Exception as error:
        warn("clew could not record the usage of a call", error)


def with_system(messages: list[Any]) -> list[Any]:
    """Messages whose last block is a system message: no user said it."""
    *said, status = messages[-1]["content"]
    last = [{**messages[-1], "content": said}] if said else []
    return [*messages[:-1], *last, {"role": "system", "content": [status]}]


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
