"""LangChain: trimming, its two middlewares, Deep Agents and LangMem."""

import tempfile
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from packages.standin import shortened

SUMMARY_TOKENS = 2_000

_core = import_module("langchain_core.messages")
_count = import_module("langchain_core.messages.utils").count_tokens_approximately


def _taken(messages: Sequence[Any]) -> list[Any]:
    found: list[Any] = _core.convert_to_messages([{**m, "content": m.get("content") or ""} for m in messages])
    return found


def _given(messages: Sequence[Any]) -> list[Any]:
    found: list[Any] = _core.convert_to_openai_messages(list(messages))
    return found


def _apart(messages: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The system prompt, which an agent of LangChain keeps beside its messages, and the messages."""
    start = next((i for i, m in enumerate(messages) if m["role"] != "system"), len(messages))
    return list(messages[:start]), _taken(messages[start:])


def _stand_in(window: int) -> Any:
    """A chat model that copies."""
    model: Any = import_module("langchain_core.language_models.fake_chat_models").FakeListChatModel
    return model(responses=[""], profile={"max_input_tokens": window})


def _copied(messages: Sequence[Any]) -> str:
    return shortened([(m.type, m.text if isinstance(m.text, str) else m.text()) for m in messages])


class Trimming:
    """`trim_messages` as its documentation has it for chat histories."""

    def __init__(self, window: int) -> None:
        self._window = window

    def fit(self, messages: Sequence[Any]) -> list[Any]:
        return _given(
            _core.trim_messages(
                _taken(messages),
                max_tokens=self._window,
                token_counter=_count,
                strategy="last",
                include_system=True,
                start_on=("human", "ai"),  # "human" alone leaves nothing of a long loop of calls
                end_on=("human", "tool"),
            )
        )


class ClearingEdit:
    """`ContextEditingMiddleware`, which does what Anthropic's `clear_tool_uses` does: the newest three results stay."""

    def __init__(self, window: int) -> None:
        edit = import_module("langchain.agents.middleware.context_editing").ClearToolUsesEdit
        self._edit = edit(trigger=min(100_000, window // 2))  # its default is half of a window of 200k

    def fit(self, messages: Sequence[Any]) -> list[Any]:
        system, said = _apart(messages)
        self._edit.apply(said, count_tokens=_count)
        return system + _given(said)


class Summarising:
    """`SummarizationMiddleware` as its documentation has it: at 80 % of the window, the newest 20 messages stay."""

    def __init__(self, window: int) -> None:
        made = import_module("langchain.agents.middleware").SummarizationMiddleware
        self._keeper = made(_stand_in(window), trigger=("fraction", 0.8), keep=("messages", 20), summarizer=_copied)

    def fit(self, messages: Sequence[Any]) -> list[Any]:
        system, said = _apart(messages)
        found = self._keeper.before_model({"messages": said}, None)
        return system + _given(said if found is None else found["messages"][1:])


class Deep:
    """The middleware of Deep Agents as `create_summarization_middleware` sets it: at 85 % of the window, 10 % stay."""

    def __init__(self, window: int) -> None:
        made = import_module("deepagents.middleware.summarization").create_summarization_middleware
        backend = import_module("deepagents.backends").FilesystemBackend
        self._folder = tempfile.TemporaryDirectory()
        self._model = _stand_in(window)
        self._keeper = made(self._model, backend(root_dir=self._folder.name, virtual_mode=True), summarizer=_copied)
        self._request = import_module("langchain.agents.middleware.types").ModelRequest
        self._reply = import_module("langchain.agents.middleware.types").ModelResponse
        self._state: dict[str, Any] = {}

    def fit(self, messages: Sequence[Any]) -> list[Any]:
        system, said = _apart(messages)
        for n, message in enumerate(said):
            message.id = str(n)
        sent: list[Any] = []

        def send(request: Any) -> Any:
            sent[:] = request.messages
            return self._reply(result=[_core.AIMessage("")])

        frame = _core.SystemMessage(system[0]["content"]) if system else None
        state = {**self._state, "messages": said}
        found = self._keeper.wrap_model_call(
            self._request(model=self._model, messages=said, system_message=frame, state=state), send
        )
        update = getattr(getattr(found, "command", None), "update", None) or {}
        self._state |= {key: value for key, value in update.items() if key != "messages"}
        return system + _given(sent)


class Running:
    """LangMem's `summarize_messages` with a running summary of at most 2,000 tokens."""

    def __init__(self, window: int) -> None:
        self._summarise = import_module("langmem.short_term").summarize_messages
        self._model = import_module("langchain_core.runnables").RunnableLambda(self._answer)
        self._window, self._summary = window, None

    def fit(self, messages: Sequence[Any]) -> list[Any]:
        system, said = _apart(messages)
        for n, message in enumerate(said):
            message.id = str(n)
        room = min(SUMMARY_TOKENS, self._window // 4)
        found = self._summarise(
            said,
            running_summary=self._summary,
            model=self._model,
            max_tokens=self._window,
            max_tokens_before_summary=int(self._window * 0.8),
            max_summary_tokens=room,
        )
        self._summary = found.running_summary
        return system + _given(found.messages)

    def _answer(self, prompt: Any) -> Any:
        """The last message asks for the summary, and has the former one where there is one."""
        *said, order = prompt.to_messages() if hasattr(prompt, "to_messages") else prompt
        former = order.text.rpartition("\n\n")[0] if "summary of the conversation so far" in order.text else ""
        former = former.removeprefix("This is summary of the conversation so far: ")
        spoken = [(m.type, m.text) for m in said]
        room = min(SUMMARY_TOKENS, self._window // 4) * 4
        return _core.AIMessage(shortened(spoken, room, former))


WAYS = {"trim": Trimming, "clear": ClearingEdit, "summarise": Summarising, "deep": Deep, "langmem": Running}
