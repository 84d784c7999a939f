"""The conversations of one client, and what its plugin may ask about them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from clew import wire
from clew.adapters.restoring import restored
from clew.catalog import Model
from clew.clients.known import name_in
from clew.config import Config, engine
from clew.config.places import here
from clew.control import ContextController
from clew.control.controller import TOOL_CHARACTERS, framed
from clew.core.bridge import Lock, cross
from clew.core.caches import Recent
from clew.core.items import Node, Scope
from clew.core.limits import Budget
from clew.core.own_tools import RECALL
from clew.core.view import View
from clew.engine.engine import Engine, Request
from clew.engine.engine import body as body_of
from clew.errors import BadRequest, ClewError, NotFound, ToolError
from clew.exchange.thread import Thread
from clew.gateway.compacting import Brief, Compactions
from clew.hooks.pending import BY_CLEW, note
from clew.hooks.pressure import Pressure
from clew.hooks.previews import preview_of
from clew.plugins import claude, opencode, pi
from clew.plugins.forms import HostForm, HostUnit, OwnMessage
from clew.sessions.about import hold, results_of
from clew.sessions.session_files import PLUGGED_KIND
from clew.sessions.transcripts.shape import TranscriptMessage
from clew.sessions.transcripts.source import objects
from clew.steps.summarize import briefed
from clew.store.records import Origin
from clew.store.sql import SQLStore

FORMS: Mapping[str, HostForm] = MappingProxyType({"claude": claude, "opencode": opencode, "pi": pi})
FULL_LOGS = ("opencode", "pi")  # clients whose plugins write down all that is said
COMPACTED_SHARE = 0.25  # of a history that is to be compacted now, at most, beside what goes down to `low`
LEAST_COMPACTED = 2_000  # tokens
PLUGIN_THREADS = 64  # conversations that are remembered between two calls

PluginQuestion = Mapping[str, Any]
PluginAnswer = dict[str, Any]


class PluginConversations:
    """Answers what a plugin asks, each question a JSON object that names its session."""

    def __init__(
        self,
        client: str,
        engine: Engine,
        windows: dict[str, int],
        scope: Scope = "default",
        is_own: bool = False,
        is_served: bool = False,
    ) -> None:
        self._client, self._form = client, FORMS[client]
        self._is_own = is_own  # its user wants its own model to write what stands in for old messages
        self._is_served = is_served  # what it sends goes through the gateway, which answers its compactions
        self._engine = engine
        self._windows = windows  # that the client told, by model: the engine's budgets are of these
        self._scope = scope
        self._threads = Recent[str, Thread](PLUGIN_THREADS)
        self._marked = Recent[str, bool](PLUGIN_THREADS)
        self._reported = Recent[str, str](PLUGIN_THREADS)
        self._turns = Recent[str, Lock](PLUGIN_THREADS)
        self._compactions = Compactions(engine, name_in(client))

    async def close(self) -> None:
        """End what goes on in the background; the store stays open."""
        await self._engine.close()

    async def answer(self, asked: PluginQuestion) -> PluginAnswer:
        """What a question comes to. Raises `ClewError`."""
        return await cross(self._answer(asked))

    async def _answer(self, asked: PluginQuestion) -> PluginAnswer:
        acts = {"view": self.view, "result": self.result, "summary": self.summary, "tool": self.tool}
        acts |= {"compact": self.compact, "beside": self.beside, "undo": self.undo}
        act = acts.get(str(asked.get("act")))
        if act is None or not isinstance(asked.get("session"), str):
            raise BadRequest(f"expected `act`, one of {', '.join(acts)}, and `session`, a text")
        if type(window := asked.get("window")) is int and window > 0:  # to Python, true is 1
            self._windows[str(asked.get("model") or "")] = window
        own = asked["session"]
        if (turn := self._turns.get(own)) is None:
            turn = self._turns[own] = Lock()
        async with turn:  # a client need not wait before it asks again
            if own not in self._marked:  # who reads session files leaves this one alone, and so its name
                self._marked[own] = True
                if self._client in FULL_LOGS:
                    await self._engine.store.learn(self._scope, PLUGGED_KIND, own, {"client": self._client})
                if own and (folder := asked.get("folder")):
                    await hold(self._engine.store, self._scope, self._name(own), str(folder))
            named = {"session": self._name(own), "parent": self._name(asked.get("parent")), "own_name": own}
            return await act({**asked, **named})

    def _name(self, session: Any) -> str:
        """The name of a conversation in the log: session files have the client's own."""
        return f"{self._client}-{session}" if session else ""

    async def view(self, asked: PluginQuestion) -> PluginAnswer:
        """Which messages to send: places of the client's own, and new ones; None: all, as they are."""
        thread, (own, units, body) = await self._thread(asked), self._asked(asked)
        await self._hear(thread, own)
        sent = await thread.fit(body, "anthropic")
        if sent.is_unchanged:
            return {"messages": None}
        return {"messages": self._in_own_form(restored(sent.body["messages"], units, _as_it_is), own)}

    async def result(self, asked: PluginQuestion) -> PluginAnswer:
        """A preview of a result for which there is no room, and whose text is in the log from now on; else None."""
        text, window = str(asked.get("text") or ""), self._windows.get(str(asked.get("model") or ""), 0)
        last = (await self._thread(asked)).last
        now = Pressure(window, await self._engine.expected(last.view) if last else 0)
        if not window or not now.is_too_much(text):
            return {"text": None}
        event = {"session_id": asked["session"], "cwd": asked.get("folder"), "tool_name": asked.get("tool")}
        event |= {"tool_use_id": asked.get("call"), "tool_input": asked.get("given")}
        return {"text": await preview_of(self._engine, self._scope, event, text, name_in(self._client))}

    async def summary(self, asked: PluginQuestion) -> PluginAnswer:
        """What the client may put in the place of what was said; None: nobody knows.

        `own`: its own model is to sum it up, and its `words` are to be told, which become a chapter.
        """
        thread, own = await self._thread(asked), objects(asked.get("messages"))
        said = [part for _, parts in self._form.units(own) for part in parts]
        if said and await self._is_news(asked["session"], _body(asked, said)):
            await thread.keep(_body(asked, said), "anthropic")
        words = str(asked.get("words") or "")
        if self._is_own and not words:
            return {"own": True}
        frame, _ = wire.decode(_body(asked, []), "anthropic")
        focus, kept = str(asked.get("focus") or ""), await self._kept(asked["session"], _body(asked, said))
        return {"text": await self._compactions.of(self._scope, asked["session"], frame, focus, kept, words)}

    async def _kept(self, session: str, body: Mapping[str, Any]) -> set[str]:
        """What a client goes on with as it is: all that was said behind what it wants to have summed up."""
        said, contents = await self._logged(session, body)
        if not contents:
            return set()
        after = next((n for n in range(len(said), 0, -1) if said[n - 1].content == contents[-1]), len(said))
        return {node.id for node in said[after:]}

    async def _is_news(self, session: str, body: Mapping[str, Any]) -> bool:
        """Whether this is all that the log has of a session, and more: the newest answer no view has had yet."""
        said, contents = await self._logged(session, body)
        return len(contents) > len(said) and contents[: len(said)] == [node.content for node in said]

    async def _logged(self, session: str, body: Mapping[str, Any]) -> tuple[Sequence[Node], list[str]]:
        """All that the log has of a session, and what a request says, by its content."""
        own = await self._engine.named(self._scope, session)
        said = () if own is None else await self._engine.history(self._scope, own)
        digests, (_, items) = self._engine.digests(self._scope), wire.decode(body, "anthropic")
        return said, [digests.content(item) for item in items]

    async def compact(self, asked: PluginQuestion) -> PluginAnswer:
        """The messages to go on with in place of all of these, with how many tokens both have; None: as they are.

        `own`: its own model is to sum them up. `skip`: why nothing is done ahead of time.
        """
        if self._is_served:
            return {"messages": None}
        if self._is_own:
            return {"own": True}
        if asked.get("ahead"):
            return {"skip": "clew takes a moment when the time comes, and asks no model"}
        thread, (own, units, body) = await self._thread(asked), self._asked(asked)
        view = await self._engine.keep(Request(body, "anthropic", self._scope, thread.session, thread.origin))
        target = await self._engine.target(view)
        before = target.meter.nodes(view.nodes).tokens
        size = max(LEAST_COMPACTED, min(int(COMPACTED_SHARE * before), target.goal.tokens - target.frame))
        if before <= size:
            return {"messages": None}
        step = briefed(self._engine.settings.step, str(asked.get("focus") or ""))
        await self._engine.compact(view, step=Brief(step, size), method="client")
        note({"session_id": asked["own_name"]}, BY_CLEW)
        sent = await thread.fit(body, "anthropic")
        if sent.is_unchanged:
            return {"messages": None}
        return await self._reply(sent.body, sent.view, own, units, before)

    async def undo(self, asked: PluginQuestion) -> PluginAnswer:
        """The messages of before the newest compaction that is left, with those said since. Raises `ClewError`."""
        thread, (own, units, body) = await self._thread(asked), self._asked(asked)
        view = await self._engine.keep(Request(body, "anthropic", self._scope, thread.session, thread.origin))
        before = (await self._engine.target(view)).meter.nodes(view.nodes).tokens
        undone = await self._engine.undo(self._scope, view.branch)
        return await self._reply(body_of(undone.view), undone.view, own, units, before)

    async def _reply(
        self,
        body: Mapping[str, Any],
        view: View,
        own: Sequence[OwnMessage],
        units: Sequence[HostUnit],
        before: int,
    ) -> PluginAnswer:
        after = (await self._engine.target(view)).meter.nodes(view.nodes).tokens
        shown = self._in_own_form(restored(body["messages"], units, _as_it_is), own)
        return {"messages": shown, "before": before, "after": after}

    async def beside(self, asked: PluginQuestion) -> PluginAnswer:
        """What code tells beside a summary that the client's model wrote, which becomes a chapter; None: nothing.

        `kept`: the places of messages that the client goes on with as they are.
        """
        thread, (_, units, body) = await self._thread(asked), self._asked(asked)
        await thread.keep(body, "anthropic")
        frame, _ = wire.decode({**body, "messages": []}, "anthropic")
        places = frozenset(asked.get("kept") or ())
        stays = [part for own, parts in units if places.intersection(own) for part in parts]
        kept = await self._newest(asked["session"], _body(asked, stays))
        words = claude.own_words(str(asked.get("words") or ""))
        text = await self._compactions.of(self._scope, asked["session"], frame, kept=kept, words=words, beside=True)
        note({"session_id": asked["own_name"]}, BY_CLEW)
        return {"text": text}

    async def _newest(self, session: str, body: Mapping[str, Any]) -> set[str]:
        """The newest of what was said that a request says, too."""
        said, contents = await self._logged(session, body)
        left, found = Counter(contents), set[str]()
        for node in reversed(said):
            if left[node.content]:
                left[node.content] -= 1
                found.add(node.id)
        return found

    def _asked(self, asked: PluginQuestion) -> tuple[Sequence[OwnMessage], list[HostUnit], dict[str, Any]]:
        """The client's own messages, what it sends of each, and the request that they are."""
        own = objects(asked.get("messages"))
        units = self._form.units(own)
        return own, units, _body(asked, [part for _, parts in units for part in parts])

    async def tool(self, asked: PluginQuestion) -> PluginAnswer:
        """What a call of recall or search_history gives back."""
        name, given = str(asked.get("name") or ""), asked.get("given")
        if name not in ("recall", "search_history") or not isinstance(given, Mapping):
            raise ToolError(f"{name[:60]}: expected recall or search_history, and its arguments, an object")
        failed = "nothing was said in this conversation yet"
        for session in (asked["session"], results_of(asked["session"])):
            if branch := await self._engine.named(self._scope, session):
                try:
                    return {"text": framed(await self._found(branch, name, given))}
                except ClewError as error:
                    failed = str(error)
        return {"text": f"Error: {failed}"}

    async def _found(self, branch: str, name: str, given: Mapping[str, Any]) -> str:
        engine = self._engine
        if name == "recall":
            id, lines, pattern = (str(given.get(key) or "") for key in ("id", "lines", "pattern"))
            return await engine.excerpt(self._scope, id, branch, lines, pattern, TOOL_CHARACTERS)
        if found := await engine.answer(self._scope, str(given.get("query") or ""), branch, TOOL_CHARACTERS):
            return found
        raise NotFound("nothing was said about that")

    def _controller(self) -> ContextController:
        # Who keeps what stands in for messages sends it back: it must be as it is in the log.
        recall = name_in(self._client) if self._client in FULL_LOGS else RECALL
        return ContextController(self._engine, offer=False, tell=False, recall=recall)

    async def _thread(self, asked: PluginQuestion) -> Thread:
        session = asked["session"]
        if (known := self._threads.get(session)) is None:
            parent = str(asked.get("parent") or "")
            branch = await self._engine.named(self._scope, parent) if parent else None
            origin = Origin("subagent", branch) if branch else None
            known = Thread(self._controller(), session, scope=self._scope, origin=origin)
            self._threads[session] = known
        return known

    async def _hear(self, thread: Thread, own: Sequence[OwnMessage]) -> None:
        """Take in what the provider reported for what was last sent, once."""
        report, session = self._form.report(own), thread.session or ""
        if report is not None and self._reported.get(session) != report.answer:
            if session in self._reported:
                await thread.heard(report.usage)
            self._reported[session] = report.answer

    def _in_own_form(
        self, messages: Sequence[tuple[int, ...] | TranscriptMessage], own: Sequence[OwnMessage]
    ) -> list[int | OwnMessage]:
        out: list[int | OwnMessage] = []
        new: list[TranscriptMessage] = []
        for message in (*messages, ()):
            if isinstance(message, tuple):
                out += [*(self._form.made(new, own) if new else ()), *message]
                new = []
            else:
                new.append(message)
        return out


def conversations(client: str, config: Config, store: SQLStore, scope: Scope) -> PluginConversations:
    """Those of a client, as they are configured, in windows that it tells."""
    windows = dict[str, int]()

    def budget(model: Model) -> Budget:
        known, own = windows.get(model.name), config.budget.window
        return config.budget_for(model, min(known, own) if known and own else known)

    # By default code writes: where a client's own model does, that is paid, and takes its time.
    is_own = config.summary.model == "own" and config.sources.get("summary.model", "default") != "default"
    gateways = [f"http://{host}:{config.gateway.port}" for host in ("127.0.0.1", "localhost", "[::1]")]
    is_served = here().env.get("ANTHROPIC_BASE_URL", "").rstrip("/") in gateways
    made = engine(config, store, budget, method="auto")
    return PluginConversations(client, made, windows, scope, is_own, is_served)


def _as_it_is(message: TranscriptMessage) -> TranscriptMessage:
    return message


def _body(asked: PluginQuestion, messages: Sequence[TranscriptMessage]) -> dict[str, Any]:
    """The request that a client is about to send, in Anthropic's form."""
    body: dict[str, Any] = {"model": str(asked.get("model") or ""), "messages": [*messages]}
    if system := asked.get("system"):
        body["system"] = str(system)
    if tools := objects(asked.get("tools")):
        body["tools"] = [
            {"name": t.get("name"), "description": t.get("description") or "", "input_schema": t.get("schema") or {}}
            for t in tools
        ]
    return body
