"""What Strands has, as clew takes it: an agent's call as a request, its models as writers, its pins; and back."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from clew.adapters.hosted import Hosted
from clew.adapters.thread import Thread, engine_at
from clew.agentic import Helm
from clew.bridge import cross
from clew.budget import Budget
from clew.drafting.writing import Writer
from clew.engine import Engine, body
from clew.items import Node, Scope
from clew.step import Prompt, Reply, Step
from clew.usage import spent
from clew.view import View
from clew.wire.extras import with_tail

try:
    from strands import Agent
    from strands.event_loop.streaming import process_stream
    from strands.hooks import AfterModelCallEvent
    from strands.models import Model
    from strands.types.content import Message, Messages
    from strands.types.tools import ToolSpec
except ImportError as error:
    raise ImportError("clew.adapters.strands needs Strands Agents: pip install 'clew[strands]'") from error

FORMAT = "bedrock"  # whose shape the messages of Strands have, whatever the model
TOO_LONG = "prompt is too long"  # which Strands knows of an error, whatever its provider's words

log = logging.getLogger("clew")


def request(model: Model, messages: Messages, system: Any, tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """A call of a model as one request."""
    told: dict[str, Any] = {"system": [{"text": system}] if isinstance(system, str) else system} if system else {}
    if tools:
        told["toolConfig"] = {"tools": [{"toolSpec": spec} for spec in tools]}
    return {"modelId": name_of(model), "messages": messages, **told}


def request_of(agent: Agent) -> dict[str, Any]:
    """The call that an agent would make now."""
    return request(agent.model, agent.messages, agent.system_prompt, agent.tool_registry.get_all_tool_specs())


def name_of(model: Model) -> str:
    """By which the catalog may know a model."""
    return str(dict(model.get_config()).get("model_id") or "")


def open_thread(
    agent: Agent,
    where: Engine | str | Path | None,
    session: str | None,
    scope: Scope,
    **given: Any,
) -> Thread:
    """The conversation of an agent, named as its session manager names it; what is `given` is as for `Engine`."""
    if window := agent.model.context_window_limit:
        given = {"budget": Budget(window=window), **given}
    engine = engine_at(where, **given)
    if not isinstance(engine.step, Protecting):
        engine.step = Protecting(engine.step)
    return Thread(Helm(engine, offer=False), session or session_of(agent), scope=scope)


def session_of(agent: Agent) -> str | None:
    """The name of a conversation that a session manager keeps; any other is known by its past."""
    if agent._session_manager is None:  # its public `session_id` is then made up anew each time
        return None
    return agent.session_id if agent.agent_id == "default" else f"{agent.session_id}/{agent.agent_id}"


def written_by(model: Model, instructions: str = "") -> Writer:
    """A model of Strands as one that writes notes."""
    return Writer(Hosted(name_of(model), partial(_asked, model), model.context_window_limit), instructions=instructions)


async def _asked(model: Model, prompt: Prompt) -> Reply:
    before: Mapping[str, Any] = body(prompt.after) if prompt.after else {}
    sent = with_tail(before, FORMAT, prompt.text)
    tools = [tool["toolSpec"] for tool in before.get("toolConfig", {}).get("tools", ()) if "toolSpec" in tool]
    system = prompt.system or (prompt.after.frame.system if prompt.after else "")
    reply = Reply("")
    async for event in process_stream(model.stream(sent["messages"], tools or None, system or None)):
        if "stop" in event:
            stop, message, usage, _ = event["stop"]
            calls = tuple(block["toolUse"]["name"] for block in message["content"] if "toolUse" in block)
            thought = any("reasoningContent" in block for block in message["content"])
            reply = Reply(text_of(message), spent(usage), calls, thought, stop == "max_tokens")
    return reply


def text_of(message: Message) -> str:
    """What a message says in words."""
    return "\n".join(block["text"] for block in message["content"] if "text" in block)


def written_by_agent(agent: Agent) -> Writer:
    """An agent as one that writes notes, with whatever it does to find them; its own messages stay as they are."""

    async def ask(prompt: Prompt) -> Reply:
        before = list(agent.messages)
        try:
            answer = await agent.invoke_async(f"{prompt.system}\n\n{prompt.text}")
        finally:
            agent.messages[:] = before
        return Reply(text_of(answer.message))

    return Writer(Hosted(agent.name, ask, agent.model.context_window_limit))


@dataclass(frozen=True)
class Protecting:
    """A step that leaves pinned messages as they are, and the `recent` last ones too where it then fits.

    Where it has something to do, at least `share` of the tokens go.
    """

    step: Step
    recent: int = 0
    share: float = 0

    async def __call__(self, view: View, budget: Budget) -> View:
        size = budget.size(view)
        if self.share and not size.within(budget.goal):
            fewer = min(budget.goal.tokens, int((1 - self.share) * size.tokens))
            budget = with_(budget, goal=budget.goal._replace(tokens=fewer))
        pins = _pinned(view.nodes)
        after = await self._held(view, budget, pins | _last(view.nodes, self.recent))
        if self.recent and not budget.size(after).within(budget.limit):
            after = await self._held(after, budget, pins)
        return after

    async def _held(self, view: View, budget: Budget, ids: frozenset[str]) -> View:
        holding = with_(view, pinned=view.pinned | ids)
        after = await self.step(holding, budget)
        return view if after is holding else with_(after, pinned=view.pinned)


def _pinned(nodes: Sequence[Node]) -> frozenset[str]:
    """The nodes of messages that Strands has marked as pinned, and what the calls in them are paired with."""
    ids, calls, marked = set(), set(), False
    for node in nodes:
        if node.item.opens is not None or node.item.kind == "summary":
            keys = node.item.opens.keys if node.item.opens else {}
            marked = ((keys.get("metadata") or {}).get("custom") or {}).get("pinned") is True
        if marked:
            ids.add(node.id)
            calls.add(node.item.call_id)
    return frozenset(ids) | {n.id for n in nodes if n.item.call_id and n.item.call_id in calls}


def _last(nodes: Sequence[Node], count: int) -> frozenset[str]:
    """The nodes of the last messages."""
    opening = [i for i, n in enumerate(nodes) if n.item.opens is not None or n.item.kind == "summary"]
    start = opening[-count] if 0 < count <= len(opening) else 0
    return frozenset(n.id for n in nodes[start:]) if count else frozenset()


async def shortened(thread: Thread, asked: Mapping[str, Any], error: Exception | None, step: Step | None) -> Messages:
    """The messages of a request made shorter now, whatever their size."""

    async def work() -> Messages:
        engine, view = thread.helm.engine, (await thread.fit(asked, FORMAT)).view
        if error is not None and await engine.refused(view, error.__cause__ or error) is None:
            await engine.refused(view, TOO_LONG)
        after = await engine.compact(view, "", step, "reactive" if error else "manual")
        messages: Messages = asked["messages"] if after is view else body(after)["messages"]
        return messages

    return await cross(work())


def merged(before: Messages, after: Messages) -> Messages:
    """The messages `after`, each of them the host's own where it is unchanged."""
    found: Messages = []
    at = 0
    for message in after:
        same = next((i for i in range(at, len(before)) if _is_same(before[i], message)), None)
        if same is None:
            found.append({**message, "tracking_id": message.get("tracking_id") or str(uuid4())})
        else:
            found.append(before[same])
            at = same + 1
    return found


def _is_same(one: Message, other: Message) -> bool:
    return one["role"] == other["role"] and one["content"] == other["content"]


async def hear(thread: Thread, event: AfterModelCallEvent) -> None:
    """Take down what the provider reported."""
    if event.stop_response is None:
        return
    try:
        await thread.heard(event.stop_response.message.get("metadata", {}).get("usage"))
    except Exception:
        log.warning("clew could not take down what a call took", exc_info=True)
