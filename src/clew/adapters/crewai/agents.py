"""Agents of crewAI whose conversations fit their windows: each at a seat of its own, with tools to look after it."""

from copy import copy
from functools import cached_property
from typing import Any, Unpack
from weakref import WeakValueDictionary

import crewai
from crewai.context import get_current_task_id
from crewai.llms.base_llm import BaseLLM
from crewai.tools import BaseTool
from pydantic import PrivateAttr, create_model

from clew.adapters.crewai.llm import fitted, plain
from clew.adapters.host import Deciding, Host, Where
from clew.control import ContextController
from clew.core.bridge import run
from clew.core.own_tools import RECALL
from clew.engine.engine import Engine
from clew.exchange.thread import Thread
from clew.wire.formats.tools import ToolDeclaration

TALKS = 32  # conversations of an agent that its tools may be called in
ARGUMENT_TYPES: dict[str, Any] = {"string": str, "boolean": bool}  # of what clew's tools take


class ClewCrewCompaction:
    """Keeps the conversations of agents within the windows of their models.

    In the method `llm` the agents decide, told how full their windows are; `when` and `how` are the user's words on it.
    """

    def __init__(self, engine: Where = None, **options: Unpack[Deciding]) -> None:
        # The tools are crewAI's to run.
        self.host = Host(engine, offer=False, recall=RECALL, **options)
        self.talks: WeakValueDictionary[str, Thread] = WeakValueDictionary()  # by the task that they are about

    @property
    def engine(self) -> Engine:
        """Opened when it is first needed."""
        return self.host.engine

    @cached_property
    def controller(self) -> ContextController:
        """Who decides: the same for all agents."""
        return self.host.controller()

    def close(self) -> None:
        """Let go of a store that was opened for a path."""
        run(self.host.close())

    def attach(self, *teams: crewai.Crew | crewai.Agent) -> None:
        """Look after these agents, and all those of these crews, from now on."""
        for team in teams:
            self.detach(team)
            if not isinstance(team, crewai.Crew):
                self._attach(team)
                continue
            for agent in _agents(team):
                # A task took the tools of its agent when it was made.
                self._attach(agent, *(task for task in team.tasks if task.agent is agent and task.tools))
            if team.manager_agent is not None:  # may have no tools
                team.manager_agent.llm = self.llm(team.manager_agent.llm, team.manager_agent.role)
            elif team.manager_llm is not None:
                team.manager_llm = self.llm(team.manager_llm, "manager")

    def _attach(self, agent: Any, *tasks: Any) -> None:
        seat = _Seat(self, agent.role)
        agent.llm = fitted(agent.llm, seat.talk)
        tools = [_asking(tool, seat) for tool in self.host.tools(self.controller.method)]
        for one in (agent, *tasks):
            one.tools = [*(one.tools or ()), *tools]

    def detach(self, *teams: crewai.Crew | crewai.Agent) -> None:
        """Leave them as they were."""
        for team in teams:
            agents: list[Any] = [team]
            tasks: list[Any] = []
            if isinstance(team, crewai.Crew):
                agents, tasks = [*_agents(team), *filter(None, [team.manager_agent])], team.tasks
                team.manager_llm = plain(team.manager_llm)
            for agent in agents:
                agent.llm = plain(agent.llm)
            for one in (*agents, *tasks):
                one.tools = [tool for tool in one.tools or () if not isinstance(tool, _Asking)]

    def llm(self, llm: Any, name: str = "agent") -> BaseLLM:
        """The same LLM, with which all that is asked fits its window; without tools to recall what left it."""
        return fitted(llm, _Seat(self, name, has_tools=False).talk)


def _agents(crew: crewai.Crew) -> list[Any]:
    """Those of a crew, and those that only a task of it names; without its manager, who may have none of our tools."""
    named = {id(agent): agent for agent in (*crew.agents, *(task.agent for task in crew.tasks))}
    return [agent for agent in named.values() if agent is not None and agent is not crew.manager_agent]


class _Seat:
    """The place of one agent: the conversations that it is in, one a task."""

    def __init__(self, compaction: ClewCrewCompaction, name: str, has_tools: bool = True) -> None:
        self.compaction = compaction
        self.name = name
        self.has_tools = has_tools
        self._newest = self._new()
        self._threads: dict[str, Thread] = {}

    @property
    def _controller(self) -> ContextController:
        controller = self.compaction.controller
        if self.has_tools:
            return controller
        bare = copy(controller)
        bare.recall = ""  # no text tells it to, unless its requests have a tool for that
        return bare

    def _new(self) -> Thread:
        return Thread(self._controller, scope=self.compaction.host.scope)

    def talk(self, task: Any, agent: Any) -> Thread:
        """The conversation in which a model is asked; without an agent it is not one of its loop."""
        if agent is None:
            return self._new()
        if task is None:
            self._newest = self._new()  # known by its past
        else:
            self._newest = self._threads.get(str(task.id)) or self._begin(str(task.id))
        return self._newest

    def _begin(self, task: str) -> Thread:
        # A task that was delegated is not the one that the crew is at.
        parent = self.compaction.talks.get(get_current_task_id() or "")
        thread = parent.child(self.name) if parent and parent.last else self._new()
        thread.controller = self._controller
        self.compaction.talks[task] = self._threads[task] = thread
        if len(self._threads) > TALKS:
            del self._threads[next(iter(self._threads))]
        return thread

    @property
    def thread(self) -> Thread:
        """The conversation in which a tool is called."""
        return self._threads.get(get_current_task_id() or "") or self._newest


class _Asking(BaseTool):
    """A tool with which an agent looks after its own context."""

    _seat: _Seat = PrivateAttr()

    def _run(self, **given: Any) -> str:
        return run(self._seat.thread.answer(self.name, given)).text

    async def _arun(self, **given: Any) -> str:
        return (await self._seat.thread.answer(self.name, given)).text


def _never(*_: Any) -> bool:
    """Whether what a tool gave may be given again without running it; by name, since crewAI writes it down."""
    return False


def _asking(tool: ToolDeclaration, seat: _Seat) -> _Asking:
    told = tool.schema or {}
    fields: dict[str, Any] = {
        name: (ARGUMENT_TYPES[of["type"]] | None, None) for name, of in told["properties"].items()
    }
    fields |= {name: (ARGUMENT_TYPES[told["properties"][name]["type"]], ...) for name in told["required"]}
    schema = create_model(tool.name, **fields)
    made = _Asking(name=tool.name, description=tool.description, args_schema=schema, cache_function=_never)
    made._seat = seat
    return made
