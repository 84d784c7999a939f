"""An LLM of crewAI that is asked what fits its window, and one that writes notes for clew.

An LLM and not a hook before its calls: a hook sees neither tools nor usage nor errors, and what it adds for one call
stays in the conversation.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import new_class
from typing import TYPE_CHECKING, Any, cast

from crewai.events.event_context import get_current_parent_id, pop_event_scope, push_event_scope
from crewai.llms.base_llm import BaseLLM
from crewai.utilities.i18n import I18N_DEFAULT
from crewai.utilities.llm_utils import create_llm
from pydantic import PrivateAttr

from clew.adapters.host import Hosted
from clew.catalog.usage import Spent
from clew.core.bridge import run
from clew.core.threads import in_thread_of_its_own
from clew.errors import BadRequest
from clew.exchange.thread import Thread, best
from clew.llm.requests import chat
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt, Reply
from clew.tokens import counter_for

ADDED = "<system-reminder>\n{}\n</system-reminder>"  # how clew knows what a host added by itself


ThreadOf = Callable[[Any, Any], Thread]  # from a task and an agent to the conversation in which a model is asked

OVERFLOW_TRIES = 3  # for one answer, while a provider finds it too long
HELD = ("files", "raw_tool_call_parts")  # of a message: objects for crewAI, not for a model
STARTED = "llm_call_started"  # crewAI's event before a call

if TYPE_CHECKING:
    _LLM = BaseLLM
else:
    _LLM = object


@contextmanager
def _paired() -> Iterator[None]:
    """While a model is asked: crewAI tells twice of a call that failed, and the second time ends what is around it."""
    spare = get_current_parent_id() or "", STARTED
    push_event_scope(*spare)
    try:
        yield
    finally:
        last = pop_event_scope()
        if last is not None and last != spare:  # it was needed
            push_event_scope(*last)


class _Turn:
    """One question to a model: what is shown to it, and what came of that. Whatever fails here, the crew goes on."""

    def __init__(self, llm: BaseLLM, thread: Thread, messages: list[Any], tools: Any) -> None:
        self._llm, self._thread, self._messages, self._tools = llm, thread, messages, tools
        self._left = OVERFLOW_TRIES
        self._before = llm.get_token_usage_summary()

    async def shown(self) -> list[Any]:
        """What to send instead of the messages. Raises `SecretFound`, where the policy is to refuse them."""
        return await best(self._fit(), self._messages)

    async def _fit(self) -> list[Any]:
        plain = [unworded({key: value for key, value in said.items() if key not in HELD}) for said in self._messages]
        given = {"model": self._llm.model, "messages": plain} | ({"tools": self._tools} if self._tools else {})
        sent = await self._thread.fit(given, "openai_chat")
        held = [(was, said) for was, said in zip(plain, self._messages, strict=True) if was != said]
        fitted = [next((said for was, said in held if was == one), one) for one in sent.body["messages"]]
        if (
            self._thread.controller.method == "llm"
            and self._llm.provider != "openai"
            and fitted[-1]["role"] == "system"
        ):
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

    _talk: ThreadOf
    _plain: Any  # as it was given: an LLM or its name
    _own: ByModel  # the same as one that writes chapters

    def call(self, messages: Any, tools: Any = None, *args: Any, **given: Any) -> Any:
        """Ask, with what fits of the messages."""
        if isinstance(messages, str):
            return super().call(messages, tools, *args, **given)  # type: ignore[safe-super]
        turn = self._turn(messages, tools, given)
        while True:
            shown = run(turn.shown())
            try:
                with _paired():
                    answer = super().call(shown, tools, *args, **given)  # type: ignore[safe-super]
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
        turn = self._turn(messages, tools, given)
        while True:
            shown = await turn.shown()
            try:
                with _paired():
                    answer = await super().acall(shown, tools, *args, **given)
            except Exception as error:
                if not await turn.is_shorter_after(error):
                    raise
            else:
                await turn.heard()
                return answer

    def _turn(self, messages: list[Any], tools: Any, given: dict[str, Any]) -> _Turn:
        thread = self._talk(given.get("from_task"), given.get("from_agent"))
        thread.own = None if given.get("response_model") else self._own  # an object is due there, and no text
        return _Turn(self, thread, messages, tools)

    def is_context_window_overflowing_threshold(self, *_: Any, **__: Any) -> bool:
        """What is sent fits, so crewAI need not make one message of all; nor ask its provider how long it is."""
        return False

    def is_tool_result_overflowing_threshold(self, *_: Any, **__: Any) -> tuple[bool, int]:
        """A large result stays in the conversation and can be recalled; crewAI's own file would go with the run."""
        return False, 0


def fitted(llm: Any, talk: ThreadOf) -> BaseLLM:
    """The same LLM, with which all that is asked fits its window."""
    given = plain(llm)
    made = resolved(given)
    fitting: Any = made.model_copy()
    fitting.__class__ = _kind(type(made))  # all that its provider knows of it stays as it is
    fitting._talk, fitting._plain, fitting._own = talk, given, ByModel(hosted(made))
    return cast(BaseLLM, fitting)


@cache
def _kind(kind: type[BaseLLM]) -> type[BaseLLM]:
    own = {"_talk": PrivateAttr(), "_plain": PrivateAttr(), "_own": PrivateAttr()}
    return new_class(kind.__name__, (_Fitting, kind), exec_body=lambda names: names.update(own))


def plain(llm: Any) -> Any:
    """An LLM as it was before it was fitted."""
    return llm._plain if isinstance(llm, _Fitting) else llm


def resolved(llm: Any) -> BaseLLM:
    """An LLM, or the one of this name, or the one that crewAI takes where none is given."""
    made = create_llm(llm)
    if made is None:
        raise BadRequest("this agent has no LLM: set its llm")
    return made


def _called(llm: BaseLLM, messages: Any, tools: Any) -> Any:
    with _paired():
        return llm.call(messages, tools)


def hosted(llm: BaseLLM | str) -> Hosted:
    """An LLM of crewAI as a model that writes summaries and notes for clew."""
    asked = resolved(plain(llm))  # what clew asks is no conversation

    async def ask(prompt: Prompt) -> Reply:
        before = asked.get_token_usage_summary()
        question = chat(prompt, asked.model)
        # Not `acall`: its connections belong to the loop of the crew.
        answer = await in_thread_of_its_own(partial(_called, asked, question["messages"], question.get("tools")))
        text, calls = (answer, ()) if isinstance(answer, str) else ("", ("a tool",))
        used = asked.get_token_usage_summary().delta_since(before)
        if used.successful_requests == 1:
            return Reply(text, Spent(used.prompt_tokens, used.completion_tokens, used.cached_prompt_tokens), calls)
        count = counter_for(asked.model).text  # others asked at the same time
        return Reply(text, Spent(count(str(question)), count(text)), calls)

    return Hosted(asked.model, ask, asked.get_context_window_size())


def unworded(message: dict[str, Any]) -> dict[str, Any]:
    """A message of crewAI's as its user would have said it; the same one if there is nothing of crewAI's in it."""
    text = message.get("content")
    if message.get("role") != "user" or not isinstance(text, str):
        return message
    return {**message, "content": ADDED.format(text) if text in _nudges() else _task(text)}


@cache
def _nudges() -> tuple[str, ...]:
    """What crewAI says between two steps of an agent."""
    return I18N_DEFAULT.slice("post_tool_reasoning"), I18N_DEFAULT.errors("force_final_answer")


@cache
def _around(part: str, name: str) -> tuple[str, str]:
    """What stands before and after what somebody said."""
    before, _, after = I18N_DEFAULT.slice(part).partition("{" + name + "}")
    return before.lstrip(), after.rstrip()


def _task(text: str) -> str:
    for part in ("task", "task_no_tools", "native_task"):
        before, after = _around(part, "input")
        inner = text.strip()
        if before and inner.startswith(before) and inner.endswith(after):
            inner = inner.removeprefix(before).removesuffix(after)
            break
    else:
        return text
    before, after = _around("expected_output", "expected_output")
    # Not in what earlier tasks put out, which comes after it.
    asked, label, rest = inner.partition(before)
    wanted, _, more = rest.partition(after)
    return f"{asked}Expected: {wanted}{more}".strip() if label else inner.strip()
