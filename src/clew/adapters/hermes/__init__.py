"""Hermes Agent: a context engine with which every request fits its window, and Hermes' own history stays whole.

Hermes' engines shorten the history itself, once it is long. This one is a plugin with a middleware too: each request is
fitted on its way out, so that Hermes has no reason to shorten anything. It is asked to only by `/compress`, and after a
provider refused a request.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Unpack

from clew.core.own_tools import RECALL
from clew.errors import MissingExtra

try:
    from agent.context_engine import ContextEngine
except ImportError:
    raise MissingExtra("clew.adapters.hermes needs Hermes Agent", "hermes") from None

from agent.agent_runtime_helpers import strip_think_blocks
from agent.auxiliary_client import aux_interrupt_protection, call_llm
from agent.context_compressor import ContextCompressor as HermesCompressor
from hermes_cli.auth import PROVIDER_REGISTRY

from clew import wire
from clew.adapters.host import READ, Deciding, Host, Hosted, Where
from clew.adapters.restoring import restored
from clew.catalog.usage import Spent
from clew.config.wiring import configured
from clew.core import rawjson
from clew.core.bridge import cross, run
from clew.core.caches import Recent
from clew.core.threads import in_thread_of_its_own
from clew.errors import SecretFound
from clew.exchange.own_model import LOGIN_KEYS
from clew.exchange.thread import Thread, answered, best, warn
from clew.steps.chapters.model import Prompt, Reply
from clew.store.records import Origin
from clew.wire.convert import convert
from clew.wire.rules.binding import binds

__all__ = ["ClewEngine", "register"]

HERMES_FORMATS = {
    "chat_completions": "openai_chat",
    "anthropic_messages": "anthropic",
    "codex_responses": "openai_responses",
}
KEYED = ("api_key", "aws_sdk")  # how Hermes knows providers that take keys; at all others somebody is logged in
HERMES_SESSIONS = 512  # conversations that are under way in one process; an older one is opened again
HERMES_SAYS = ("system", "instructions", "tools", "tool_choice", "parallel_tool_calls")
HERMES_SENT = ("role", "content", "tool_calls", "tool_call_id")
HERMES_SYSTEM = ("system", "developer")

HermesMessage = dict[str, Any]


@dataclass
class HermesTalk:
    """A session of Hermes: its conversation, and the request that was last made of it."""

    thread: Thread
    asked: HermesMessage = field(default_factory=dict)
    format: str = "openai_chat"
    fitted: bool = True  # whether the last request was: where it was not, Hermes helps itself


class ClewEngine(ContextEngine):  # type: ignore[misc]
    """For `context.engine: clew`. Hermes makes a copy for each agent; `register` gives one to Hermes' plugins.

    With the method `llm`, the agent is told how full its window is, and may begin a new session; `when` and `how` are
    the user's words on that.
    """

    def __init__(self, engine: Where = None, **options: Unpack[Deciding]) -> None:
        options["method"] = options.get("method") or "auto"
        self._host = Host(engine, offer=False, recall=RECALL, **options)
        self._talks: Recent[str, HermesTalk] = Recent(HERMES_SESSIONS)
        self._session = ""
        self._model: dict[str, Any] = {"model": ""}

    def __deepcopy__(self, memo: object) -> "ClewEngine":
        """One for another agent, over the same store."""
        new = ClewEngine()
        new._host, new._talks = self._host, self._talks
        return new

    @property
    def name(self) -> str:
        return "clew"

    def register(self, ctx: Any) -> None:
        """Give a plugin's context all that is needed: for a plugin of your own with other arguments."""
        ctx.register_context_engine(self)
        ctx.register_middleware("llm_request", self.on_request)
        ctx.register_hook("api_request_error", self.on_error)
        ctx.register_hook("post_llm_call", self.on_answer)
        ctx.register_hook("subagent_start", self.on_subagent)

    # What happens to an agent, as Hermes tells its engine.

    def update_model(self, model: str, context_length: int, *args: Any, **kwargs: Any) -> None:
        """Another model, or the limit of the same one as its provider said it."""
        super().update_model(model, context_length, *args, **kwargs)
        self._model = {"model": model, **kwargs}
        if talk := self._talk:
            self._control(talk)

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """Go on with a session or begin one; after Hermes' own compaction it may have another name."""
        talks, self._session = self._talks, session_id
        if kwargs.get("boundary_reason") == "compression" and (old := talks.get(kwargs.get("old_session_id") or "")):
            talks[session_id] = old
        try:
            talk = talks.get(session_id)
            if talk is None:
                talk = talks[session_id] = HermesTalk(self._host.thread(session_id))
            self._control(talk)
        except Exception as error:
            warn("clew could not open its store; this session goes on without it", error)

    def on_session_reset(self) -> None:
        """Forget the counts of the session before."""
        super().on_session_reset()
        self._session = ""

    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        """Take note of what the provider counted."""
        if not usage:
            return
        self.last_prompt_tokens = int(usage.get("prompt_tokens") or 0)
        self.last_completion_tokens = int(usage.get("completion_tokens") or 0)
        self.last_total_tokens = int(usage.get("total_tokens") or 0)
        if (talk := self._talk) and talk.fitted and self.last_prompt_tokens:
            cached = int(usage.get("cache_read_tokens") or 0)
            run(best(talk.thread.heard(Spent(self.last_prompt_tokens, self.last_completion_tokens, cached)), None))

    # Compaction that Hermes asks for.

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether Hermes shall shorten its history: only while clew cannot fit what is sent of it."""
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return not (self._talk and self._talk.fitted) and tokens >= self.threshold_tokens > 0

    def compress(
        self,
        messages: list[HermesMessage],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[HermesMessage]:
        """The history as it is sent, compacted now; as Hermes itself would do it, where clew fails."""
        if talk := self._talk:
            shorter = run(best(self._compacted(talk, messages, focus_topic or ""), None))
            if shorter is not None:
                self.compression_count += 1
                return shorter
        own = HermesCompressor(config_context_length=self.context_length or None, quiet_mode=True, **self._model)
        theirs: list[HermesMessage] = own.compress(messages, current_tokens, focus_topic, force, memory_context)
        return theirs

    async def _compacted(self, talk: HermesTalk, messages: list[HermesMessage], focus: str) -> list[HermesMessage]:
        asked, format = talk.asked, talk.format
        if not asked:  # nothing was sent in this process yet
            asked, format = {"model": self._model["model"], "messages": messages}, "openai_chat"
        known = len(talk.thread.last.view.edits) if talk.thread.last else 0
        sent = await talk.thread.fit(asked, format)
        if len(sent.view.edits) == known or focus:  # a refusal has compacted it already
            await cross(talk.thread.controller.engine.compact(sent.view, focus))
            sent = await talk.thread.fit(asked, format)
        said = convert(sent.body, "openai_chat", format)["messages"]
        held = [(one, [{key: one[key] for key in HERMES_SENT if key in one}]) for one in messages]
        return _joined(restored([one for one in said if one.get("role") not in HERMES_SYSTEM], held, dict))

    # The tools.

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The tools for an agent, the same for a whole session."""
        tools = self._host.tools(self._host.method or "auto")
        return [{"name": t.name, "description": t.description, "parameters": dict(t.schema or {})} for t in tools]

    def handle_tool_call(self, name: str, args: Mapping[str, Any], **kwargs: Any) -> str:
        """What one of them gives back, as JSON."""
        talk = self._talk
        came = run(answered(talk.thread if talk else None, name, args))
        return rawjson.dumps({"error" if came.failed else "result": came.text}).decode()

    # What every request goes through: these are called on the one that was registered, for whichever session.

    def on_request(self, *, request: HermesMessage, session_id: str, **kwargs: Any) -> dict[str, Any] | None:
        """The request with what fits of its messages; None leaves it as it is."""
        talk, format = self._talks.get(session_id), HERMES_FORMATS.get(kwargs.get("api_mode") or "")
        if talk is None:
            return None
        list_key = wire.named(format).LIST if format else ""
        talk.fitted = False
        if format is None or not isinstance(request.get(list_key), list):
            return None
        given = {key: request[key] for key in READ if request.get(key) is not None}
        talk.asked, talk.format = {**given, list_key: request[list_key]}, format
        try:
            sent = run(best(talk.thread.fit(talk.asked, format), None))
        except SecretFound as error:  # Hermes takes no error for an answer, and would send it all the same
            bare = {key: value for key, value in request.items() if key not in HERMES_SAYS}
            told = files(__name__).joinpath("refused.md").read_text(encoding="utf-8").format(error=error)
            return {"request": {**bare, list_key: [{"role": "user", "content": told.strip()}]}, "source": "clew"}
        talk.fitted = sent is not None
        if sent is None or sent.is_unchanged:
            return None
        fitted = sent.body[list_key]
        if format == "openai_chat" and binds("anthropic", str(request.get("model"))):
            # Claude's thinking is bound to what stood before it, which is no longer what it was.
            fitted = [{key: value for key, value in one.items() if key != "reasoning_details"} for one in fitted]
        return {"request": {**request, list_key: fitted}, "source": "clew"}

    def on_error(self, *, session_id: str, error: Any, **kwargs: Any) -> None:
        """What was too long for its provider is made shorter, before Hermes asks for that."""
        if talk := self._talks.get(session_id):
            run(best(talk.thread.refused(str(error.get("message", ""))), False))

    def on_answer(self, *, session_id: str, assistant_response: Any, **kwargs: Any) -> None:
        """Have the answer in the log, too: perhaps nobody asks this agent again."""
        talk = self._talks.get(session_id)
        if talk and talk.asked and isinstance(assistant_response, str) and assistant_response.strip():
            list_key = wire.named(talk.format).LIST
            answer = {"role": "assistant", "content": assistant_response.strip()}
            talk.asked = {**talk.asked, list_key: [*talk.asked[list_key], answer]}
            run(best(talk.thread.keep(talk.asked, talk.format), None))

    def on_subagent(self, *, parent_session_id: str | None, child_session_id: str | None, **kwargs: Any) -> None:
        """A part of the work, whose lineage hangs under that of whoever asked for it."""
        talks = self._talks
        parent, child = talks.get(parent_session_id or ""), talks.get(child_session_id or "")
        if parent and child and parent.thread.last:
            child.thread.origin = Origin("subagent", parent.thread.last.view.branch)

    @property
    def _talk(self) -> HermesTalk | None:
        return self._talks.get(self._session)

    def _control(self, talk: HermesTalk) -> None:
        """Have a conversation fitted to the window that Hermes knows for the model, which writes its chapters."""
        model = str(self._model["model"])
        talk.thread.controller = self._host.controller(self._host.engine_in(self.context_length, model))
        talk.thread.own = self._host.author(Hosted(model, self._asked)) if model and self._is_keyed() else None

    def _is_keyed(self) -> bool:
        """Whether the model is asked with a key: with a subscription's login, clew asks nothing."""
        known = PROVIDER_REGISTRY.get(str(self._model.get("provider") or ""))
        key = self._model.get("api_key") or ""
        return (known is None or known.auth_type in KEYED) and isinstance(key, str) and not key.startswith(LOGIN_KEYS)

    async def _asked(self, prompt: Prompt) -> Reply:
        """What the agent's model says to a question of clew's, asked as Hermes asks for its own summaries."""
        said = [{"role": "system", "content": prompt.system}] if prompt.system else []
        whom = {key: self._model.get(key) for key in ("provider", "model", "base_url", "api_key", "api_mode")}

        def ask() -> Any:
            with aux_interrupt_protection():
                return call_llm("compression", **whom, messages=[*said, {"role": "user", "content": prompt.text}])

        answer = await in_thread_of_its_own(ask)
        usage, message = getattr(answer, "usage", None), answer.choices[0].message
        took = Spent(int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0)) if usage else Spent(0)
        return Reply(strip_think_blocks(None, message.content or "").strip(), took)


def _joined(messages: list[HermesMessage]) -> list[HermesMessage]:
    """Messages with what a user says in one piece in one of them: Hermes would write it into one text."""
    out: list[HermesMessage] = []
    for one in messages:
        if out and out[-1]["role"] == one["role"] == "user":
            out[-1] = {**out[-1], "content": [*_parts(out[-1]), *_parts(one)]}
        else:
            out.append(one)
    return out


def _parts(message: HermesMessage) -> list[Any]:
    content = message.get("content") or ""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def register(ctx: Any) -> None:
    """Called by Hermes for the plugin `clew`: with what `clew config` says."""
    ClewEngine(configured).register(ctx)
