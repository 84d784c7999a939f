"""How an engine works, one setting at a time: none changes another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from clew import catalog
from clew.core.limits import MEMORY
from clew.events import Listener
from clew.secrets.guard import Policy
from clew.steps import default
from clew.steps.chapters.author import Author
from clew.steps.protocol import Step
from clew.steps.threshold import Threshold
from clew.store.records import Method
from clew.tokens import Counter

Compaction = Literal["on", "shadow", "off"]

CHAPTER_PATIENCE = 15.0  # seconds that a full window waits for a chapter


@dataclass(frozen=True)
class Settings:
    """What an engine is told beside its store and budget.

    >>> settings = clew.Settings(method="llm", expand=False)
    >>> engine = clew.Engine(clew.SQLite(":memory:"), settings=settings)
    >>> engine.settings.method
    'llm'
    """

    step: Step = field(default_factory=default)
    """How a history is made to fit: a step, or a pipeline of them."""

    compaction: Compaction = "on"
    """`on`; `off`: only `compact`, or an overflow told with `refused`, makes a history shorter; `shadow`: all is tried
    and written down, and the original is sent."""

    method: Method = "auto"
    """`auto`: clew decides when to compact; `llm`: the agent does, and clew only just before it is too late."""

    threshold: Threshold | None = None
    """When to compact before the window is full, instead of the budget's `high`."""

    expand: bool = True
    """Whether what was said about the newest message, and is out of view, is put beside it."""

    author: Author | Literal["own"] | None = "own"
    """Who writes the chapters that stand in for a history, in the background: the model that the conversation talks to,
    where a host brings it (`own`), another author, or code (None)."""

    patience: float = CHAPTER_PATIENCE
    """Seconds that a full window waits for such a chapter."""

    secrets: Policy = "keys"
    """What is done with secrets before they are written to the store: nothing (`off`), those that a program made are
    masked (`keys`), passwords that a person chose too (`redact`), or the request is refused (`refuse`)."""

    listeners: Sequence[Listener] = ()
    """Who hears what happens: sizes and costs, no content."""

    counter: Counter | None = None
    """Counts tokens, instead of the counter that fits the model."""

    models: Mapping[str, catalog.Model] | None = None
    """What is known of models, instead of the catalog that ships."""

    servers: Sequence[str] | None = ()
    """Base URLs of servers that are asked for a model's window where the catalog does not know it; None: ask nobody."""

    memory: int = MEMORY
    """Bytes that the branches kept in memory take, about; the one not used for longest goes first."""


# When an engine is made.
FIXED = ("author", "secrets", "listeners", "counter", "models", "servers", "memory", "patience")
