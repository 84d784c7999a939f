"""What every adapter has, whatever its framework: an engine, conversations, tools on offer, and a model that writes."""

import asyncio
import sys
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, TypedDict

from clew import catalog
from clew.control import STEERING, ContextController, offered
from clew.core.bridge import cross, on_loop
from clew.core.items import Scope
from clew.core.limits import Budget
from clew.engine.engine import Engine
from clew.errors import ModelError
from clew.exchange.thread import Thread, engine_at
from clew.steps.chapters.allowance import Allowance
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt, Reply
from clew.store.records import Cause, Method, Origin
from clew.wire.formats.tools import ToolDeclaration
from clew.wire.streams.faults import fault_of

CHAPTER = "clew chapter"  # the name under which callbacks and traces of a framework see a question
ERROR_CHARACTERS = 300  # characters of what an error says


Where = Engine | str | Path | Callable[[], Engine] | None  # an engine, where its store is, or what makes one

# What a model reads beside the messages, and what its answer may take; all else is for a framework and its clients.
READ = (
    *("model", "system", "instructions", "tools", "thinking", "response_format", "text", "tool_choice", "n"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens"),
)


@dataclass(frozen=True, slots=True)
class Hosted:
    """What `ask` answers to a prompt; whatever it raises is a `ModelError`, as of any model."""

    name: str
    ask: Callable[[Prompt], Awaitable[Reply]]
    limit: int | None = None  # its window, where the host knows it

    @property
    def window(self) -> int:
        return self.limit or catalog.window(self.name)

    async def __call__(self, prompt: Prompt) -> Reply:
        try:
            return await self.ask(prompt)
        except ModelError:
            raise
        except Exception as error:
            status = getattr(error, "status_code", None)
            said = " ".join(str(error).split())[:ERROR_CHARACTERS] or type(error).__name__
            raise ModelError(
                f"{self.name}: {said}", fault_of(status if isinstance(status, int) else 0, error)
            ) from None


def asked_here(ask: Callable[[Prompt], Coroutine[Any, Any, Reply]]) -> Callable[[Prompt], Awaitable[Reply]]:
    """The same, asked on the event loop and in the context of whoever calls this: connections and traces are theirs."""
    home, context = asyncio.get_running_loop(), copy_context()

    async def there(prompt: Prompt) -> Reply:
        return await home.create_task(ask(prompt), context=context)

    async def asked(prompt: Prompt) -> Reply:
        return await on_loop(home, there(prompt))

    return asked


class Deciding(TypedDict, total=False):
    """What a user may say in every adapter about who decides when to compact."""

    scope: Scope
    method: Method | None
    when: str
    how: str


class Naming(Deciding, total=False):
    """The same, where a conversation may have a name and a request clew's tools."""

    session: str | None
    offer: bool


class Host:
    """One adapter's part of clew. The engine is made when it is first needed."""

    def __init__(
        self,
        where: Where = None,
        *,
        session: str | None = None,
        scope: Scope = "default",
        method: Method | None = None,
        when: str = "",
        how: str = "",
        offer: bool = True,
        tell: bool = True,
        recall: str = "",
    ) -> None:
        self.where = where
        self.session, self.scope = session, scope
        self.method, self.when, self.how = method, when, how
        self.offer, self.tell, self.recall = offer, tell, recall
        self._allowance = Allowance()
        self._engine: Engine | None = None
        self._opening = Lock()

    @property
    def is_open(self) -> bool:
        return self._engine is not None

    @property
    def engine(self) -> Engine:
        """The engine, whose store is opened now if it was not."""
        with self._opening:
            if self._engine is None:
                self._engine = engine_at(self.where() if callable(self.where) else self.where)
                catalog.lookup("")  # which reads a file; each call looks into it
            return self._engine

    async def close(self) -> None:
        """Let go of a store that was opened here; the next call would open it again."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await cross(engine.close(store=engine is not self.where))

    def engine_in(self, window: int | None, model: str = "") -> Engine:
        """The engine with a window that a framework knows of; one that a user gave has his own."""
        engine = self.engine
        if isinstance(self.where, Engine) or not window:
            return engine
        known = engine.budget
        known = known if isinstance(known, Budget) or known is None else known(catalog.lookup(model))
        return Engine(engine.store, replace(known or Budget(window), window=window, model=model), engine.settings)

    # Conversations.

    def controller(self, engine: Engine | None = None) -> ContextController:
        """Who decides in a conversation, and what is offered there."""
        given = engine or self.engine
        made = ContextController(
            given, when=self.when, how=self.how, offer=self.offer, tell=self.tell, recall=self.recall
        )
        made.method = self.method or made.method
        return made

    def thread(self, session: str | None = None, origin: Origin | None = None, own: ByModel | None = None) -> Thread:
        """A conversation by its name, or one that is known by its past."""
        return Thread(self.controller(), session, scope=self.scope, origin=origin, own=own)

    async def begin(self, session: str | None) -> Thread:
        """The conversation of an agent that begins to work, with the method that it was last used with.

        One that a tool of another agent begins is a part of that one's.
        """
        origin = self.origin()
        # A name that the user gave is of one conversation.
        thread = self.thread(session if origin else self.session or session, origin)
        await self.load(thread)
        return thread

    async def load(self, thread: Thread) -> None:
        """Take the method that a conversation was last used with, unless the adapter was given one."""
        if not self.method and thread.session:
            await cross(thread.controller.load(thread.scope, thread.session))

    async def switch(self, session: str, method: Method) -> None:
        """Who decides in a conversation, from its next run on."""
        controller = ContextController(self.engine, offer=False)
        controller.method = method
        await cross(controller.save(self.scope, session))

    def origin(self, parent: Thread | None = None, cause: Cause = "subagent") -> Origin | None:
        """What a new conversation comes of: of whoever's tool is running, unless a parent is given."""
        parent = parent or caller()
        if parent is None or parent.last is None or not is_same_store(parent.controller.engine, self.engine):
            return None
        return Origin(cause, parent.last.view.branch)

    # Tools.

    def tools(self, method: Method = "llm", child: bool = False) -> list[ToolDeclaration]:
        """Clew's tools with a method: with `llm`, all of them."""
        return offered(method, child, self.when, self.how)

    def tools_of(self, thread: Thread) -> list[ToolDeclaration]:
        """Those that the agent of a conversation is offered."""
        is_child = thread.origin is not None and thread.origin.cause == "subagent"
        return self.tools(thread.controller.method, is_child) if self.offer else []

    def is_ours(self, name: str) -> bool:
        """Whether a tool that a framework declares is one of clew's."""
        return self.offer and name in STEERING

    # Models.

    def author(self, model: Hosted) -> ByModel:
        """The agent's own model, as one that writes chapters; a question has in it all that is to be read."""
        return ByModel(model, allowance=self._allowance, follows=False)

    def tell_window(self, model: str, tokens: int | None) -> None:
        """What a framework says of a model's window, where the catalog knows no better, or more."""
        known = catalog.lookup(model)
        if tokens and (not known.exact or tokens < known.window):
            self.engine.limits.windows.tell(model, tokens)


def renamed(module: str, **now: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module some of whose classes had other names: an old one is importable for a release."""

    def found(name: str) -> Any:
        if name not in now:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        said = f"{module}.{name} is {now[name]} now: the old name goes with 0.3"
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], now[name])

    return found


class Adapter:
    """What a user can do with the adapter of any framework that is awaited."""

    host: Host

    @property
    def engine(self) -> Engine:
        """Opened with the first request."""
        return self.host.engine

    async def switch(self, session: str, method: Method) -> None:
        """Who decides in a conversation, from its next run on; a `method` that the adapter was given counts more."""
        await self.host.switch(session, method)

    async def close(self) -> None:
        """Let go of a store that was opened for a path; the next run would open it again."""
        await self.host.close()


_caller: ContextVar[Thread | None] = ContextVar("clew_caller", default=None)  # whose tool is running


def caller() -> Thread | None:
    """The conversation whose tool is running."""
    return _caller.get()


def call_from(thread: Thread | None) -> None:
    """From now on, in this context, whoever is asked is asked by a tool of this conversation."""
    _caller.set(thread)


@contextmanager
def calling(thread: Thread | None) -> Iterator[None]:
    """While a tool of a conversation runs, whoever it asks is asked by that agent."""
    token = _caller.set(thread)
    try:
        yield
    finally:
        _caller.reset(token)


def is_same_store(one: Engine, other: Engine) -> bool:
    """Whether two engines have one log."""
    place = getattr(one.store, "place", None)
    return one.store is other.store or (
        place not in (None, ":memory:") and place == getattr(other.store, "place", None)
    )
