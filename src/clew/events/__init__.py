"""What happens, as one typed stream. Logs, traces and meters are listeners; none of them sees what was said."""

import json
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

_LOGGER = logging.getLogger("clew")
_PLAIN = re.compile(r"[^\s\"=\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")  # what a log line holds unquoted


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
    cost: float | None = None  # of those, in US dollars; None: the price is not known


@dataclass(frozen=True, slots=True)
class Called(Event):
    """A view was handed out to be sent."""

    model: str
    format: str
    tokens: int
    limit: int
    exact: bool
    cost: float | None = None  # of the prompt if nothing of it is cached, in US dollars; None: the price is not known
    session: str | None = None  # the host's own name for the conversation
    compacted: bool = False  # the view holds stand-ins, of this turn or an earlier one


@dataclass(frozen=True, slots=True)
class Observed(Event):
    """The provider reported what a call took."""

    input: int  # the whole prompt, cached parts included
    output: int
    cache_read: int
    cache_write: int
    cost: float | None = None  # in US dollars; None: the price is not known


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """A turn ended in an error; nothing acknowledged was lost."""

    error: str  # its kind, and no content


@dataclass(frozen=True, slots=True)
class Recalled(Event):
    """Originals were brought back."""

    id: str
    items: int


@dataclass(frozen=True, slots=True)
class Learned(Event):
    """A provider's refusal told how large a model's window is."""

    model: str
    window: int


@dataclass(frozen=True, slots=True)
class Secret(Event):
    """Secrets were masked before anything was stored."""

    kinds: tuple[str, ...]  # such as "aws-key": what they are and never what they say
    count: int


@dataclass(frozen=True, slots=True)
class Drafted(Event):
    """A model wrote chapters, and code checked them."""

    model: str
    read: int  # items it was shown
    chapters: int
    left_out: int  # lines that stand nowhere
    spent: int  # tokens
    cost: float | None = None  # in US dollars; None: the price is not known


@dataclass(frozen=True, slots=True)
class Dropped(Event):
    """A line that a model wrote is left out of its chapter: it claims for the user what they did not say."""

    model: str
    why: str  # such as "permission"
    line: str = field(repr=False)  # for a listener; no log writes it


@dataclass(frozen=True, slots=True)
class Declined(Event):
    """A model's summary was not to be had, or not to be used; code wrote it instead."""

    model: str
    fault: str  # its kind, and no content


@dataclass(frozen=True, slots=True)
class Condensed(Event):
    """The output of a task got a summary for the tasks that come after it."""

    task: str  # its name, where it has one
    model: str
    tokens_before: int
    tokens_after: int
    spent: int  # tokens
    cost: float | None = None  # in US dollars; None: the price is not known


@dataclass(frozen=True, slots=True)
class LeftWhole(Event):
    """The output of a task should have got a summary and did not; the tasks after it read all of it."""

    task: str  # its name, where it has one
    model: str
    fault: str  # its kind, and no content
    tokens: int
    spent: int
    cost: float | None = None  # in US dollars; None: the price is not known


@dataclass(frozen=True, slots=True)
class Judged(Event):
    """The provider's report told whether a compaction helped; after two that did not, it is left alone."""

    worked: bool
    paused: bool


@dataclass(frozen=True, slots=True)
class Began(Event):
    """A session ended, and its child began."""

    session: str  # the child
    cause: str
    method: str


@dataclass(frozen=True, slots=True)
class Unproven(Event):
    """A history goes on from a summary, or under a known name, and nothing proves from what: its past is empty."""


@dataclass(frozen=True, slots=True)
class Reverted(Event):
    """Compactions were taken back."""

    sessions: tuple[str, ...]  # that they had begun
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class Shadowed(Event):
    """A compaction was made and not used."""

    tokens_before: int
    tokens_after: int
    edits: int


Listener = Callable[[Event], None]


def tell(listeners: Iterable[Listener], events: Iterable[Event]) -> None:
    """Pass events on. A listener that fails is reported and does not stop the turn."""
    for event in events:
        for listener in listeners:
            try:
                listener(event)
            except Exception:
                _LOGGER.exception("a listener failed on %s", type(event).__name__)


def event_data(event: Event) -> dict[str, Any]:
    """An event as plain data: its name, then its fields in their order; what is not known, or not for logs, is not."""
    known = ((field.name, getattr(event, field.name)) for field in fields(event) if field.repr)
    return {"event": type(event).__name__.lower()} | {name: value for name, value in known if value is not None}


def log(event: Event) -> None:
    """A listener that writes one line an event to the `clew` logger: its name, then key=value.

    The same as data is the record's `clew`, for formatters such as `JSONLines` or structlog's with `ExtraAdder`.
    """
    if _LOGGER.isEnabledFor(logging.INFO):
        data = event_data(event)
        name, *pairs = data.items()
        line = " ".join([name[1], *(f"{key}={_written(value)}" for key, value in pairs)])
        _LOGGER.info("%s", line, extra={"clew": data})


def _written(value: Any) -> str:
    """A value on a log line, quoted where it could be taken for more than one."""
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


class JSONLines(logging.Formatter):
    """One JSON object a line: time, level, logger, then an event's fields or the message."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        line |= getattr(record, "clew", None) or {"message": record.getMessage()}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
