"""A model behind OpenAI's API for PraisonAI's agents: every request of their tool loop fits."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeVar

from praisonaiagents.llm.openai_client import OpenAIClient
from praisonaiagents.utils.async_bridge import run_coroutine_from_any_context

from clew.adapters.praisonai.compressor import FORMAT, SYSTEM, newest, open_child
from clew.adapters.thread import Thread, engine_at
from clew.adapters.weaving import Message, plain, told_in, unquoted, woven
from clew.agentic import Helm
from clew.bridge import cross
from clew.engine import Engine
from clew.items import Scope
from clew.view import View

# What an agent may say of a turn that PraisonAI's tool loop understands.
PASSED = ("tools", "tool_choice", "max_iterations", "output_continuation", "cancel_token", "steering_drain")

log = logging.getLogger("clew")

T = TypeVar("T")


class Conversation:
    """An agent's conversation: what to send of it, and its sessions in PraisonAI's store.

    Whatever goes wrong in here is told, and the agent goes on without.
    """

    def __init__(self, thread: Thread, sessions: Any = None) -> None:
        self.thread = thread
        self.sessions = sessions
        self._edits = 0  # of the view that was last sent
        self._began = ""  # the session that was last put into the host's store

    async def fit(self, asked: Message) -> Message:
        """The body to send instead, or the same one."""
        sent = await spared(self.thread.fit(asked, FORMAT), None)
        if sent is None:
            return asked
        if self.sessions is not None and len(sent.view.edits) != self._edits:
            await spared(self._open_child(sent.view, sent.body["messages"]), None)
        return sent.body

    async def heard(self, usage: Any) -> None:
        """What the provider reported."""
        await spared(self.thread.heard(usage), None)

    async def refused(self, error: Exception) -> bool:
        """Whether an error says that it was too long, and it will be shorter now."""
        return await spared(self.thread.refused(error), False)

    async def told(self) -> list[Message]:
        """What is known of it from earlier runs."""
        thread = self.thread
        return await spared(cross(told_in(thread.helm.engine, thread.scope, thread.session)), [])

    async def _open_child(self, view: View, messages: Sequence[Message]) -> None:
        self._edits = len(view.edits)
        began = await cross(newest(self.thread.helm.engine, view))
        if began is None or began.number == 1 or began.id == self._began:
            return
        self._began = began.id
        parent = self.thread.session if began.parent == began.branch else began.parent
        await asyncio.to_thread(open_child, self.sessions, began, messages, parent)


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
        thread = Thread(Helm(engine_at(engine), when=when, how=how), session, scope=scope)
        self.conversation = Conversation(thread, sessions)
        self._told: list[Message] | None = None  # what the conversation was, calls and results included

    def child(self, name: str) -> "Backend":
        """The backend of a sub-agent, whose lineage hangs under this one's."""
        thread = self.conversation.thread.child(name)
        made = Backend(
            self.model, thread.helm.engine, session=thread.session, api_key=self.api_key, base_url=self.base_url
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
        chat_history: Sequence[Message] | None = None,
        output_json: Any = None,
        output_pydantic: Any = None,
        execute_tool_fn: Callable[..., Any] | None = None,
        **given: Any,
    ) -> str:
        """What the agent says in the end, its tools run on the way."""
        history = list(chat_history or ())
        if history and history[-1].get("role") == "user" and history[-1].get("content") == prompt:
            history.pop()  # PraisonAI puts the prompt into its history before it asks
        if self._told is None:
            self._told = await self.conversation.told()
        history = woven(history, self._told)
        messages, _ = self.build_messages(prompt, system_prompt, history, output_json, output_pydantic)
        answer = await self.achat_completion_with_tools(
            messages,
            model=self.model,
            execute_tool_fn=self._executing(execute_tool_fn),
            temperature=given.get("temperature"),
            stream=False,
            verbose=False,
            **{key: given[key] for key in PASSED if given.get(key) is not None},
        )
        return (answer.choices[0].message.content or "") if answer else ""

    async def acreate_completion(
        self, messages: list[Message], tools: list[Message] | None = None, **given: Any
    ) -> Any:
        """One request, and the next try should the provider find it too long."""
        said = unquoted(plain(messages))
        self._told = [m for m in said if m.get("role") not in SYSTEM]
        asked: Message = {"model": self.model, "messages": said, **({"tools": tools} if tools else {})}
        try:
            return await self._sent(asked, given)
        except Exception as error:
            if not await self.conversation.refused(error):
                raise
            return await self._sent(asked, given)

    async def _sent(self, asked: Message, given: Mapping[str, Any]) -> Any:
        sent = await self.conversation.fit(asked)
        answer = await super().acreate_completion(sent["messages"], tools=sent.get("tools"), **given)
        await self.conversation.heard(getattr(answer, "usage", None))
        return answer

    def _executing(self, execute: Callable[..., Any] | None) -> Callable[..., Any]:
        """Who runs a call: clew its own tools, the agent all others."""
        thread = self.conversation.thread

        async def executed(name: str, given: Message, **more: Any) -> Any:
            if thread.helm.is_ours(name):
                return await thread.answer(name, given)
            if execute is None:
                return f"Error: there is no tool {name}"
            result = await asyncio.to_thread(execute, name, given, **more)
            return await result if isawaitable(result) else result

        return executed


async def spared(work: Awaitable[T], otherwise: T) -> T:
    """What comes of some work, or something else where it fails: no failure of clew's is the agent's."""
    try:
        return await work
    except Exception as error:
        tell(error)
        return otherwise


def tell(error: Exception) -> None:
    """Say what went wrong."""
    log.warning("clew could not help, the agent goes on without: %s: %s", type(error).__name__, error)
