"""A model behind OpenAI's API for PraisonAI's agents: every request of their tool loop fits."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from functools import partial
from inspect import isawaitable, unwrap
from threading import Lock
from typing import Any, Unpack
from weakref import WeakKeyDictionary

from praisonaiagents.config.feature_configs import DEFAULT_TOOL_OUTPUT_LIMIT
from praisonaiagents.context.manager import ContextManager
from praisonaiagents.llm.openai_client import OpenAIClient
from praisonaiagents.utils.async_bridge import run_coroutine_from_any_context

from clew.adapters.host import Deciding, Host, Where
from clew.adapters.hosted import Hosted
from clew.adapters.praisonai.compressor import SYSTEM_ROLES
from clew.adapters.praisonai.conversation import CALLING, CallUnderWay, Conversation
from clew.adapters.weaving import ChatMessage, is_same, plain, unquoted
from clew.agent.tasks import Strategy, Summaries
from clew.core.threads import in_thread_of_its_own
from clew.exchange.thread import Thread, warn
from clew.llm import replies, requests
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt, Reply

# What an agent may say of a turn that PraisonAI's tool loop understands, or hands on to the model.
PASSED = (
    *("tools", "tool_choice", "max_iterations", "output_continuation", "cancel_token", "steering_drain"),
    *("temperature", "seed", "max_tokens", "top_p", "reasoning_effort"),
)

UNNAMED = ("", "Agent")  # what PraisonAI calls an agent to which nobody gave a name
UNCUT = 10**9  # characters of a tool's result that PraisonAI may pass on: of a large one, clew sends a preview
JSON = "\nReturn ONLY a valid JSON object. No other text or explanation."  # is added to a prompt, and not kept

_LOGGER = logging.getLogger("clew")


# PraisonAI's tool loop asks for completions without saying for whom.
_RUNNING: ContextVar[Conversation | None] = ContextVar("running", default=None)


class ClewBackend(OpenAIClient):  # type: ignore[misc]
    """`Agent(model=...)`: a model behind OpenAI's API; every request of the tool loop fits, with tools and status.

    Nothing else is needed: PraisonAI's own context management is turned off for its agents. With the `reports`
    "summarized", an agent reads summaries of what its sub-agents report.
    """

    def __init__(
        self,
        model: str,
        engine: Where = None,
        *,
        session: str | None = None,
        sessions: Any = None,
        reports: Strategy = "full",
        api_key: str | None = None,
        base_url: str | None = None,
        **options: Unpack[Deciding],
    ) -> None:
        super().__init__(api_key, base_url)
        self.model = model
        self.host = Host(engine, **options)
        self.conversation = Conversation(self.host.thread(session), sessions)  # of the agent that speaks first
        self._named: dict[str, Conversation] = {}
        self._nameless: WeakKeyDictionary[Any, Conversation] = WeakKeyDictionary()
        self._is_taken = False
        hosted = Hosted(model, self._asked)
        self._summaries = Summaries(hosted) if reports == "summarized" else None
        self._own = ByModel(hosted)
        self._choosing = Lock()  # agents may speak at the same time

    def child(self, name: str) -> "ClewBackend":
        """The backend of a sub-agent, whose lineage hangs under this one's."""
        thread = self.conversation.thread.child(name)
        made = ClewBackend(
            self.model,
            thread.controller.engine,
            session=thread.session,
            reports="summarized" if self._summaries else "full",
            api_key=self.api_key,
            base_url=self.base_url,
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
        agent = getattr(unwrap(execute_tool_fn), "__self__", None) if execute_tool_fn else None
        history = _uncut_history(agent, list(chat_history or ()))
        if history and is_same({"role": "user", "content": prompt}, history[-1]):
            history.pop()  # PraisonAI puts the prompt into its history before it asks
        name = given.get("agent_name") or ""
        conversation = self._conversation_of(name, agent, begins=not history)
        before = _RUNNING.set(conversation)
        try:
            history = await conversation.full_history(history)
            messages, _ = self.build_messages(prompt, system_prompt, history, output_json, output_pydantic)
            answer = await self.achat_completion_with_tools(
                messages,
                model=self.model,
                execute_tool_fn=self._executing(conversation.thread, execute_tool_fn),
                stream=False,
                verbose=False,
                **{"temperature": None} | {key: given[key] for key in PASSED if given.get(key) is not None},
            )
        finally:
            _RUNNING.reset(before)
        said: str = (answer.choices[0].message.content or "") if answer else ""
        await conversation.keep(said)
        if call := CALLING.get():
            call.reports[conversation.thread.session or name] = said
        return said

    async def acreate_completion(
        self, messages: list[ChatMessage], tools: list[ChatMessage] | None = None, **given: Any
    ) -> Any:
        """One request, and the next try should the provider find it too long."""
        said = unquoted(plain(messages))
        conversation = _RUNNING.get() or self.conversation
        conversation.history = [_kept(m) for m in said if m.get("role") not in SYSTEM_ROLES]
        asked: ChatMessage = {"model": self.model, "messages": said, **({"tools": tools} if tools else {})}
        conversation.asked = asked
        try:
            return await self._sent(conversation, asked, given)
        except Exception as error:
            if not await conversation.refused(error):
                raise
            return await self._sent(conversation, asked, given)

    async def _sent(self, conversation: Conversation, asked: ChatMessage, given: Mapping[str, Any]) -> Any:
        bound = given.get("response_format") or given.get("tool_choice") not in (None, "auto", "none")
        conversation.thread.own = None if bound else self._own
        sent = await conversation.fit(asked)
        answer = await super().acreate_completion(sent["messages"], tools=sent.get("tools"), **given)
        await conversation.heard(getattr(answer, "usage", None))
        return answer

    def _conversation_of(self, name: str, agent: Any, begins: bool) -> Conversation:
        """That of the agent who spoke first; others who share its backend are known by their pasts.

        One that begins in a tool of another agent is a part of that one's work.
        """
        call = CALLING.get()
        with self._choosing:
            known: MutableMapping[Any, Conversation] = self._named
            key: Any = name
            if agent is not None and name in UNNAMED:  # many may have no name
                known, key = self._nameless, agent
            if key not in known or (call and begins):
                known[key] = self._next_conversation(is_part=call is not None)
                if call:
                    known[key].hang_under(call.caller, name or "agent")
            return known[key]

    def _next_conversation(self, is_part: bool) -> Conversation:
        thread, sessions = self.conversation.thread, self.conversation.sessions
        if not self._is_taken:
            self._is_taken = True
            return self.conversation
        if not is_part and (thread.session is not None or sessions is not None):
            _LOGGER.warning(
                "the conversation of a backend belongs to the first agent that used it: "
                "give other agents their own backend, and a recreated agent its old name"
            )
        return Conversation(Thread(thread.controller, scope=thread.scope))

    def _executing(self, thread: Thread, execute: Callable[..., Any] | None) -> Callable[..., Any]:
        """Who runs a call: clew its own tools, the agent all others."""

        async def executed(name: str, given: ChatMessage, **more: Any) -> Any:
            if thread.last and thread.controller.is_ours(name):  # else none of ours were offered
                return (await thread.answer(name, given)).text
            if execute is None:
                return f"Error: there is no tool {name}"
            call = CallUnderWay(thread)
            before = CALLING.set(call)
            try:
                result = await asyncio.to_thread(execute, name, given, **more)
                result = await result if isawaitable(result) else result
            finally:
                CALLING.reset(before)
            return await call.shortened(result, self._summaries) if self._summaries else result

        return executed

    async def _asked(self, prompt: Prompt) -> Reply:
        """What the model says to a question of clew's; a blocking client belongs to no event loop."""
        create = self.sync_client.chat.completions.create
        answer = await in_thread_of_its_own(partial(create, **requests.chat(prompt, self.model)))
        before: Any = vars(self).get("last_token_metrics")  # of the agent's own call, which it tells of
        self._track_token_usage(answer, self.model)
        self.last_token_metrics = before
        return replies.read(answer.model_dump(), replies.chat)


def _uncut_history(agent: Any, told: list[ChatMessage]) -> list[ChatMessage]:
    """An agent's history as it is, before PraisonAI's own management cuts it; which has nothing to do from now on."""
    if agent is None:
        return told
    try:
        if type(agent.context_manager) is ContextManager:  # who made another one wants it
            agent.context_manager = None
        if agent.tool_output_limit == DEFAULT_TOOL_OUTPUT_LIMIT:
            agent.tool_output_limit = UNCUT
        own = [message for message in agent.chat_history if message.get("role") not in SYSTEM_ROLES]
    except Exception as error:
        warn("clew could not turn off PraisonAI's context management: give the agent context=False", error)
        return told
    return own if len(own) >= len(told) else told


def _kept(message: ChatMessage) -> ChatMessage:
    """A message as PraisonAI will have it in its history."""
    said = message.get("content")
    return {**message, "content": said.removesuffix(JSON)} if isinstance(said, str) else message
