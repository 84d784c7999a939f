"""What fits the window of one crewAI agent: its LLM, with what clew leaves of the messages.

An LLM and not a hook before its calls: a hook sees neither tools nor usage nor errors, and what it adds for one call
stays in the conversation.
"""

import asyncio
import logging
from collections.abc import Awaitable
from functools import cache
from pathlib import Path
from types import new_class
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import crewai
from crewai.context import get_current_task_id
from crewai.llms.base_llm import BaseLLM
from crewai.tools import BaseTool
from crewai.utilities.llm_utils import create_llm
from pydantic import PrivateAttr, create_model

from clew.adapters.hosted import Hosted
from clew.adapters.thread import Thread, engine_at
from clew.agentic import Helm, offered
from clew.bridge import run
from clew.engine import Engine
from clew.errors import BadRequest
from clew.items import Scope
from clew.models.requests import chat
from clew.step import Prompt, Reply
from clew.store.records import Method
from clew.tokens import counter_for
from clew.usage import Spent
from clew.wire.convert_frame import Tool

_LOGGER = logging.getLogger("clew")

T = TypeVar("T")
TRIES = 3  # for one answer, while a provider finds it too long
KINDS: dict[str, Any] = {"string": str, "boolean": bool}  # of what clew's tools take
HELD = ("files", "raw_tool_call_parts")  # of a message: objects for crewAI, not for a model

if TYPE_CHECKING:
    _LLM = BaseLLM
else:
    _LLM = object


class Compaction:
    """Keeps the conversations of agents within the windows of their models.

    In the method `llm` the agents decide, told how full their windows are; `when` and `how` are the user's words on it.
    """

    def __init__(
        self,
        engine: Engine | str | Path | None = None,
        *,
        method: Method | None = None,
        when: str = "",
        how: str = "",
        scope: Scope = "default",
    ) -> None:
        self.helm = Helm(engine_at(engine), when=when, how=how, offer=False)  # the tools are crewAI's to run
        self.helm.method = method or self.helm.method
        self.scope = scope
        self.talks: WeakValueDictionary[str, Thread] = WeakValueDictionary()  # by the task that they are about

    def attach(self, *teams: crewai.Crew | crewai.Agent) -> None:
        """Look after these agents, or all of a crew's, from now on."""
        for team in teams:
            if isinstance(team, crewai.Crew):
                self._attach_crew(team)
            else:
                self._attach_agent(team)

    def _attach_crew(self, crew: crewai.Crew) -> None:
        for agent in crew.agents:
            tools = self._attach_agent(agent)
            for task in crew.tasks:  # which took the tools of its agent when it was made
                if task.agent is agent and task.tools:
                    task.tools = [*task.tools, *tools]
        if crew.manager_agent is not None:  # may have no tools
            crew.manager_agent.llm = self.llm(crew.manager_agent.llm)
        elif crew.manager_llm is not None:
            crew.manager_llm = self.llm(crew.manager_llm)

    def _attach_agent(self, agent: Any) -> "list[_Asking]":
        seat = _Seat(self, agent.role)
        agent.llm = _seated(agent.llm, seat)
        tools = [_asking(tool, seat) for tool in offered(self.helm.method, False, self.helm.when, self.helm.how)]
        agent.tools = [*(agent.tools or ()), *tools]
        return tools

    def llm(self, llm: Any, name: str = "agent") -> BaseLLM:
        """The same LLM, with which all that is asked fits its window; without tools to recall what left it."""
        return _seated(llm, _Seat(self, name))


class _Seat:
    """The place of one agent: the conversation that it is in."""

    def __init__(self, compaction: Compaction, name: str) -> None:
        self.compaction = compaction
        self.name = name
        self.thread = self._new()
        self._task = ""

    def _new(self) -> Thread:
        return Thread(self.compaction.helm, scope=self.compaction.scope)

    def talk(self, task: Any, agent: Any) -> Thread:
        """The conversation in which a model is asked."""
        if agent is None:  # not by its loop
            return self._new()
        id = str(task.id) if task else ""
        if id != self._task:
            self._task = id
            # A task that another agent delegates is not the one that the crew is at.
            parent = self.compaction.talks.get(get_current_task_id() or "") if task else None
            self.thread = parent.child(self.name) if parent else self._new()
            self.compaction.talks[id] = self.thread
        return self.thread


class _Turn:
    """One question to a model: what is shown to it, and what came of that. Whatever fails here, the crew goes on."""

    def __init__(self, llm: BaseLLM, thread: Thread, messages: list[Any], tools: Any) -> None:
        self._llm, self._thread, self._messages, self._tools = llm, thread, messages, tools
        self._left = TRIES
        self._before = llm.get_token_usage_summary()

    async def shown(self) -> list[Any]:
        """What to send instead of the messages."""
        return await best(self._fit(), self._messages)

    async def _fit(self) -> list[Any]:
        plain = [{key: value for key, value in said.items() if key not in HELD} for said in self._messages]
        given = {"model": self._llm.model, "messages": plain} | ({"tools": self._tools} if self._tools else {})
        sent = await self._thread.fit(given, "openai_chat")
        held = [(was, said) for was, said in zip(plain, self._messages, strict=True) if len(was) < len(said)]
        fitted = [next((said for was, said in held if was == one), one) for one in sent.body["messages"]]
        if self._thread.helm.method == "llm" and self._llm.provider != "openai" and fitted[-1]["role"] == "system":
            fitted[-1] = {**fitted[-1], "role": "user"}  # others take system messages out of their place
        return fitted

    async def is_shorter_after(self, error: Exception) -> bool:
        """Whether an error says that it was too long, and another try is worth it."""
        self._left -= 1
        return self._left > 0 and await best(self._thread.refused(error), False)

    async def heard(self) -> None:
        """Take note of what the provider counted."""
        used = self._llm.get_token_usage_summary().delta_since(self._before)
        if used.successful_requests == 1:
            cached = {"cached_tokens": used.cached_prompt_tokens}
            usage = {"prompt_tokens": used.prompt_tokens, "completion_tokens": used.completion_tokens}
            await best(self._thread.heard({**usage, "prompt_tokens_details": cached}), None)


class _Fitting(_LLM):
    """Goes before the class of an LLM: what it is asked fits, and what a provider refuses is asked again, shorter."""

    _seat: _Seat
    _plain: BaseLLM

    def call(self, messages: Any, tools: Any = None, *args: Any, **given: Any) -> Any:
        """Ask, with what fits of the messages."""
        if isinstance(messages, str):
            return super().call(messages, tools, *args, **given)  # type: ignore[safe-super]
        turn = self._turn(messages, tools, *args, **given)
        while True:
            try:
                answer = super().call(run(turn.shown()), tools, *args, **given)  # type: ignore[safe-super]
            except Exception as error:
                if not run(turn.is_shorter_after(error)):
                    raise
            else:
                run(turn.heard())
                return answer

    async def acall(self, messages: Any, tools: Any = None, *args: Any, **given: Any) -> Any:
        """Ask, with what fits of the messages."""
        if isinstance(messages, str):
            return await super().acall(messages, tools, *args, **given)
        turn = self._turn(messages, tools, *args, **given)
        while True:
            try:
                answer = await super().acall(await turn.shown(), tools, *args, **given)
            except Exception as error:
                if not await turn.is_shorter_after(error):
                    raise
            else:
                await turn.heard()
                return answer

    def _turn(self, messages: list[Any], tools: Any, *args: Any, **given: Any) -> _Turn:
        return _Turn(self, self._seat.talk(given.get("from_task"), given.get("from_agent")), messages, tools)

    def is_context_window_overflowing_threshold(self, *_: Any, **__: Any) -> bool:
        """What is sent fits, so crewAI need not make one message of all; nor ask its provider how long it is."""
        return False

    def is_tool_result_overflowing_threshold(self, *_: Any, **__: Any) -> tuple[bool, int]:
        """A large result stays in the conversation and can be recalled; crewAI's own file would go with the run."""
        return False, 0


def _seated(llm: Any, seat: _Seat) -> BaseLLM:
    """The same LLM at the place of an agent."""
    given = resolved(llm)
    given = given._plain if isinstance(given, _Fitting) else given
    fitting = given.model_copy()
    fitting.__class__ = _fitting(type(given))  # all that its provider knows of it stays as it is
    fitting._seat, fitting._plain = seat, given
    return fitting


@cache
def _fitting(kind: type[BaseLLM]) -> type[BaseLLM]:
    return new_class(
        kind.__name__, (_Fitting, kind), exec_body=lambda names: names.update(_seat=PrivateAttr(), _plain=PrivateAttr())
    )


class _Asking(BaseTool):
    """A tool with which an agent looks after its own context."""

    _seat: _Seat = PrivateAttr()

    def _run(self, **given: Any) -> str:
        return run(self._seat.thread.answer(self.name, given))

    async def _arun(self, **given: Any) -> str:
        return await self._seat.thread.answer(self.name, given)


def _never(*_: Any) -> bool:
    """Whether what a tool gave may be given again without running it; by name, since crewAI writes it down."""
    return False


def _asking(tool: Tool, seat: _Seat) -> _Asking:
    told = tool.schema or {}
    fields: dict[str, Any] = {name: (KINDS[of["type"]] | None, None) for name, of in told["properties"].items()}
    fields |= {name: (KINDS[told["properties"][name]["type"]], ...) for name in told["required"]}
    schema = create_model(tool.name, **fields)
    made = _Asking(name=tool.name, description=tool.description, args_schema=schema, cache_function=_never)
    made._seat = seat
    return made


def resolved(llm: Any) -> BaseLLM:
    """An LLM, or the one of this name, or the one that crewAI takes where none is given."""
    made = create_llm(llm)
    if made is None:
        raise BadRequest("crewAI knows no LLM for this agent: give it one")
    return made


def hosted(llm: BaseLLM | str) -> Hosted:
    """An LLM of crewAI as a model that writes summaries and notes for clew."""
    given = resolved(llm)
    plain = given._plain if isinstance(given, _Fitting) else given  # what is asked for clew is no conversation

    async def ask(prompt: Prompt) -> Reply:
        before = plain.get_token_usage_summary()
        asked = chat(prompt, plain.model)
        # Not `acall`: its connections belong to the loop of the crew.
        answer = await asyncio.to_thread(plain.call, asked["messages"], asked.get("tools"))
        text, calls = (answer, ()) if isinstance(answer, str) else ("", ("a tool",))
        used = plain.get_token_usage_summary().delta_since(before)
        if used.successful_requests == 1:
            return Reply(text, Spent(used.prompt_tokens, used.completion_tokens, used.cached_prompt_tokens), calls)
        count = counter_for(plain.model).text  # others asked at the same time
        return Reply(text, Spent(count(str(asked)), count(text)), calls)

    return Hosted(plain.model, ask, plain.get_context_window_size())


async def best(work: Awaitable[T], otherwise: T) -> T:
    """What comes of some work, or else something: clew is never worth a run of the crew."""
    try:
        return await work
    except Exception:
        _LOGGER.warning("clew could not do its part; crewAI goes on without", exc_info=True)
        return otherwise
