"""What happens, as one typed stream. Logs, traces and meters are listeners; none of them sees what was said."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened on a branch; sent once it is in the log."""

    scope: str
    branch: str
    seq: int


@dataclass(frozen=True, slots=True)
class Appended(Event):
    """The history grew."""

    items: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Edited(Event):
    """A span got a stand-in."""

    by: str
    items: int  # that were replaced
    tokens_before: int
    tokens_after: int
    spent: int  # tokens the step itself used


@dataclass(frozen=True, slots=True)
class Called(Event):
    """A view was handed out to be sent."""

    model: str
    format: str
    tokens: int
    limit: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Observed(Event):
    """The provider reported what a call took."""

    input: int  # the whole prompt, cached parts included
    output: int
    cache_read: int
    cache_write: int


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """A turn ended in an error; nothing acknowledged was lost."""

    error: str  # its kind, and no content


@dataclass(frozen=True, slots=True)
class Recalled(Event):
    """Originals were brought back."""

    id: str
    items: int


Listener = Callable[[Event], None]


def tell(listeners: Iterable[Listener], events: Iterable[Event]) -> None:
    """Pass events on. A listener that fails is reported and does not stop the turn."""
    for event in events:
        for listener in listeners:
            try:
                listener(event)
            except Exception:
                logging.getLogger("clew").exception("a listener failed on %s", type(event).__name__)


def log(event: Event) -> None:
    """A listener that writes one line an event to the `clew` logger, as key=value."""
    fields = {name: getattr(event, name) for name in event.__dataclass_fields__}
    line = " ".join(f"{name}={value}" for name, value in fields.items())
    logging.getLogger("clew").info("%s %s", type(event).__name__.lower(), line)
