"""A model behind OpenAI's API for PraisonAI's agents: every request of their tool loop fits."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from inspect import isawaitable, unwrap
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from praisonaiagents.llm.openai_client import OpenAIClient
from praisonaiagents.utils.async_bridge import run_coroutine_from_any_context

from clew.adapters.praisonai.compressor import PRAISON_FORMAT, SYSTEM_ROLES, newest, open_child
from clew.adapters.weaving import ChatMessage, is_same, plain, told_in, unquoted, woven
from clew.agent.control import ContextController
from clew.core.bridge import cross
from clew.core.items import Scope
from clew.core.view import View
from clew.engine.engine import Engine
from clew.exchange.thread import Thread, best, engine_at

# What an agent may say of a turn that PraisonAI's tool loop understands, or hands on to the model.
PASSED = (
    *("tools", "tool_choice", "max_iterations", "output_continuation", "cancel_token", "steering_drain"),
    *("temperature", "seed", "max_tokens", "top_p", "reasoning_effort"),
)

UNNAMED = ("", "Agent")  # what PraisonAI calls an agent to which nobody gave a name
JSON = "\nReturn ONLY a valid JSON object. No other text or explanation."  # is added to a prompt, and not kept

_LOGGER = logging.getLogger("clew")


class Conversation:
    """An agent's conversation: what to send of it, and its sessions in PraisonAI's store.

    Whatever goes wrong in here is told, and the agent goes on without.
    """

    def __init__(self, thread: Thread, sessions: Any = None) -> None:
        self.thread = thread
        self.sessions = sessions
        self.told: list[ChatMessage] | None = None  # what it was, calls and results included; None: nobody knows yet
        self._edits = 0  # of the view that was last sent
        self._began = ""  # the session that was last put into the host's store

    async def fit(self, asked: ChatMessage) -> ChatMessage:
        """The body to send instead, or the same one. Raises `SecretFound`: what is refused may not go out."""
        sent = await best(self.thread.fit(asked, PRAISON_FORMAT), None)
        if sent is None:
            return asked
        if self.sessions is not None and len(sent.view.edits) != self._edits:
            await best(self._open_child(sent.view), None)
        return sent.body

    async def heard(self, usage: Any) -> None:
        """What the provider reported."""
        await best(self.thread.heard(usage), None)

    async def refused(self, error: Exception) -> bool:
        """Whether an error says that it was too long, and it will be shorter now."""
        return await best(self.thread.refused(error), False)

    async def whole(self, history: Sequence[ChatMessage]) -> list[ChatMessage]:
        """A history with all that PraisonAI drops from it, in this run and in earlier ones."""
        if self.told is None:
            engine, scope, session = self.thread.controller.engine, self.thread.scope, self.thread.session
            self.told = await best(cross(told_in(engine, scope, session)), [])
        return woven(history, self.told)

    async def _open_child(self, view: View) -> None:
        self._edits = len(view.edits)
        engine = self.thread.controller.engine
        began = await cross(newest(engine, view))
        if began is None or began.number == 1 or began.id == self._began:
            return
        self._began = began.id
        parent = self.thread.session if began.parent == began.branch else began.parent
        await open_child(self.sessions, engine, view, began, parent)


# PraisonAI's tool loop asks for completions without saying for whom.
_RUNNING: ContextVar[Conversation | None] = ContextVar("running", default=None)


class Backend(OpenAIClient):  # type: ignore[misc]
    """`Agent(model=...)`: a model behind OpenAI's API; every request of the tool loop fits, with tools and status."""

    def __init__(
        self,
        model: str,
        engine: Engine | str | Path | None = None,
        *,
        session: str | None = None,
        when: str = "",
        how: str = "",
        sessions: Any = None,
        scope: Scope = "default",
        api_key: str | None = None,
        base_url: str | None = None,
    ) -> None:
        super().__init__(api_key, base_url)
        self.model = model
        thread = Thread(ContextController(engine_at(engine), when=when, how=how), session, scope=scope)
        self.conversation = Conversation(thread, sessions)  # of the agent that speaks first
        self._named: dict[str, Conversation] = {}
        self._nameless: WeakKeyDictionary[Any, Conversation] = WeakKeyDictionary()
        self._is_taken = False
        self._choosing = Lock()  # agents may speak at the same time

    def child(self, name: str) -> "Backend":
        """The backend of a sub-agent, whose lineage hangs under this one's."""
        thread = self.conversation.thread.child(name)
        made = Backend(
            self.model, thread.controller.engine, session=thread.session, api_key=self.api_key, base_url=self.base_url
        )
        made.conversation = Conversation(thread, self.conversation.sessions)
        return made

    def get_response(self, prompt: Any, **given: Any) -> str:
        """What the agent says in the end, its tools run on the way, for code that does not await."""
        answer: str = run_coroutine_from_any_context(self.get_response_async(prompt, **given), timeout=None)
        return answer

    def get_response_stream(self, prompt: Any, **given: Any) -> Iterator[str]:
        """The same, in one piece."""
        yield self.get_response(prompt, **given)

    async def get_response_async(
        self,
        prompt: Any,
        *,
        system_prompt: str | None = None,
        chat_history: Sequence[ChatMessage] | None = None,
        output_json: Any = None,
        output_pydantic: Any = None,
        execute_tool_fn: Callable[..., Any] | None = None,
        **given: Any,
    ) -> str:
        """What the agent says in the end, its tools run on the way."""
        history = list(chat_history or ())
        if history and is_same({"role": "user", "content": prompt}, history[-1]):
            history.pop()  # PraisonAI puts the prompt into its history before it asks
        conversation = self._conversation_of(given.get("agent_name") or "", execute_tool_fn)
        _RUNNING.set(conversation)
        history = await conversation.whole(history)
        messages, _ = self.build_messages(prompt, system_prompt, history, output_json, output_pydantic)
        answer = await self.achat_completion_with_tools(
            messages,
            model=self.model,
            execute_tool_fn=_executing(conversation.thread, execute_tool_fn),
            stream=False,
            verbose=False,
            **{"temperature": None} | {key: given[key] for key in PASSED if given.get(key) is not None},
        )
        return (answer.choices[0].message.content or "") if answer else ""

    async def acreate_completion(
        self, messages: list[ChatMessage], tools: list[ChatMessage] | None = None, **given: Any
    ) -> Any:
        """One request, and the next try should the provider find it too long."""
        said = unquoted(plain(messages))
        conversation = _RUNNING.get() or self.conversation
        conversation.told = [_kept(m) for m in said if m.get("role") not in SYSTEM_ROLES]
        asked: ChatMessage = {"model": self.model, "messages": said, **({"tools": tools} if tools else {})}
        try:
            return await self._sent(conversation, asked, given)
        except Exception as error:
            if not await conversation.refused(error):
                raise
            return await self._sent(conversation, asked, given)

    async def _sent(self, conversation: Conversation, asked: ChatMessage, given: Mapping[str, Any]) -> Any:
        sent = await conversation.fit(asked)
        answer = await super().acreate_completion(sent["messages"], tools=sent.get("tools"), **given)
        await conversation.heard(getattr(answer, "usage", None))
        return answer

    def _conversation_of(self, name: str, execute: Callable[..., Any] | None) -> Conversation:
        """That of the agent who spoke first; others who share its backend are known by their pasts."""
        agent = getattr(unwrap(execute), "__self__", None) if execute else None
        with self._choosing:
            known: MutableMapping[Any, Conversation] = self._named
            key: Any = name
            if agent is not None and name in UNNAMED:  # many may have no name
                known, key = self._nameless, agent
            if key not in known:
                known[key] = self._next_conversation()
            return known[key]

    def _next_conversation(self) -> Conversation:
        thread, sessions = self.conversation.thread, self.conversation.sessions
        if not self._is_taken:
            self._is_taken = True
            return self.conversation
        if thread.session is not None or sessions is not None:
            _LOGGER.warning(
                "the conversation of a backend belongs to the first agent that used it: "
                "give other agents their own backend, and a recreated agent its old name"
            )
        return Conversation(Thread(thread.controller, scope=thread.scope))


def _executing(thread: Thread, execute: Callable[..., Any] | None) -> Callable[..., Any]:
    """Who runs a call: clew its own tools, the agent all others."""

    async def executed(name: str, given: ChatMessage, **more: Any) -> Any:
        if thread.last and thread.controller.is_ours(name):  # else none of ours were offered
            return (await thread.answer(name, given)).text
        if execute is None:
            return f"Error: there is no tool {name}"
        result = await asyncio.to_thread(execute, name, given, **more)
        return await result if isawaitable(result) else result

    return executed


def _kept(message: ChatMessage) -> ChatMessage:
    """A message as PraisonAI will have it in its history."""
    said = message.get("content")
    return {**message, "content": said.removesuffix(JSON)} if isinstance(said, str) else message
