"""Traces and meters over OpenTelemetry, with the names of its GenAI conventions where it has one.

Those conventions are in development: the names are of open-telemetry/semantic-conventions-genai in October 2026, beside
them `gen_ai.client.token.usage` of their last release (1.41), which dashboards read today. Ours begin with `clew.`.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any

from clew import events
from clew.errors import MissingExtra

try:
    from opentelemetry import metrics, trace
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode
except ImportError as error:
    raise MissingExtra("traces need OpenTelemetry", "otel") from error

OPEN = 1_024  # branches with a span that has not ended, or with something noted for the next one
SPAN_NOTES = 128  # that wait for one span; by default a span holds no more

# Whose API a format is: who serves it is not known here.
_PROVIDERS = {
    "openai_chat": "openai",
    "openai_responses": "openai",
    "anthropic": "anthropic",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gen_ai",
}
_OPERATIONS = {"gemini": "generate_content"}
_BUCKETS = [4**power for power in range(14)]  # as the conventions advise

_Attributes = dict[str, Any]
_BranchKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that is under way."""

    seq: int
    span: Span
    labels: _Attributes  # few values each: meters keep a series for every combination


class Traces:
    """A listener that makes a span of every model call, notes on it what led there, and counts tokens, dollars, edits.

    A span lasts from the view to its usage report. Scopes may name tenants, and a hash of a guessable name hides
    nothing, so they are left out; `scope` says how to write them, should they be wanted (`Traces(scope=str)`).
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        scope: Callable[[str], str] | None = None,
    ) -> None:
        self._tracer = trace.get_tracer("clew", tracer_provider=tracer_provider)
        self._meters = _Meters(metrics.get_meter("clew", meter_provider=meter_provider))
        self._scope = scope
        self._calls: OrderedDict[_BranchKey, _Call] = OrderedDict()
        self._notes: OrderedDict[_BranchKey, deque[events.Event]] = OrderedDict()
        self._lock = RLock()  # engines of several threads may share a listener

    def __call__(self, event: events.Event) -> None:
        with self._lock:
            match event:
                case events.Called():
                    self._open(event)
                case events.Observed():
                    self._observe(event)
                case events.Failed():
                    self._fail(event)
                case events.Edited() | events.Recalled() | events.Learned() | events.Secret():
                    self._meters.note(event)
                    self._note(event)

    def _open(self, event: events.Called) -> None:
        branch = _branch(event)
        self._close(branch)
        notes = self._notes.pop(branch, ())
        labels = _labels(event)
        attributes = labels | self._origin(event) | _size(event)
        if event.compacted or any(isinstance(note, events.Edited) and _saved(note) > 0 for note in notes):
            attributes["gen_ai.conversation.compacted"] = True  # or not at all, say the conventions
        name = f"{labels['gen_ai.operation.name']} {event.model}".rstrip()
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)
        _write(span, notes)
        self._calls[branch] = _Call(event.seq, span, labels)
        while len(self._calls) > OPEN:
            self._close(next(iter(self._calls)))

    def _observe(self, event: events.Observed) -> None:
        call = self._calls.get(_branch(event))
        if call is None or call.seq != event.seq:  # its span has ended: the tokens count all the same
            self._meters.observe(event, {"gen_ai.operation.name": "chat"})
            return
        usage = {
            "gen_ai.usage.input_tokens": event.input,
            "gen_ai.usage.output_tokens": event.output,
            "gen_ai.usage.cache_read.input_tokens": event.cache_read,
            "gen_ai.usage.cache_write.input_tokens": event.cache_write,
        }
        call.span.set_attributes(usage if event.cost is None else usage | {"clew.cost": event.cost})
        self._meters.observe(event, call.labels)
        self._close(_branch(event))

    def _fail(self, event: events.Failed) -> None:
        """A turn that led to no call gets a span of its own: the call before it did not fail."""
        self._close(_branch(event))
        attributes = {"error.type": event.error} | self._origin(event)
        span = self._tracer.start_span("clew.prepare", attributes=attributes)
        _write(span, self._notes.pop(_branch(event), ()))
        span.set_status(Status(StatusCode.ERROR))
        span.end()
        self._meters.failures.add(1, {"error.type": event.error})

    def _note(self, event: events.Event) -> None:
        """Write an event on the span it belongs to: edits shape the next call, even while one is under way."""
        call = self._calls.get(_branch(event))
        if call and isinstance(event, events.Recalled | events.Learned):
            _write(call.span, (event,))
        elif event.branch:  # a recall need not name one
            self._notes.setdefault(_branch(event), deque(maxlen=SPAN_NOTES)).append(event)
            if len(self._notes) > OPEN:
                self._notes.popitem(last=False)

    def _close(self, branch: _BranchKey) -> None:
        if call := self._calls.pop(branch, None):
            call.span.end()

    def _origin(self, event: events.Event) -> _Attributes:
        """Where in clew's log a span has its source."""
        scope = {} if self._scope is None else {"clew.scope": self._scope(event.scope)}
        return {"clew.branch": event.branch, "clew.seq": event.seq} | scope


class _Meters:
    """The instruments; none has a label that names a conversation."""

    def __init__(self, meter: metrics.Meter) -> None:
        self._tokens = {
            kind: meter.create_counter(f"gen_ai.client.inference.usage.{name}_tokens", "{token}")
            for kind, name in {
                "input": "input",
                "output": "output",
                "cache_read": "cache_read.input",
                "cache_write": "cache_write.input",
            }.items()
        }
        self._usage = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", explicit_bucket_boundaries_advisory=_BUCKETS
        )
        self._cost = meter.create_counter("clew.cost", "{USD}", "What calls and steps cost, where prices are known")
        self._edits = meter.create_counter("clew.edits", "{edit}", "Spans that got a stand-in")
        self._saved = meter.create_counter("clew.edits.saved", "{token}", "Tokens that stand-ins are shorter by")
        self._spent = meter.create_counter("clew.edits.spent", "{token}", "Tokens that steps used themselves")
        self._recalls = meter.create_counter("clew.recalls", "{recall}", "Times originals were brought back")
        self._secrets = meter.create_counter("clew.secrets", "{secret}", "Secrets masked")
        self.failures = meter.create_counter("clew.failures", "{turn}", "Turns that ended in an error")

    def observe(self, event: events.Observed, labels: _Attributes) -> None:
        for kind, counter in self._tokens.items():
            counter.add(getattr(event, kind), labels | {"gen_ai.token.modality": "unknown"})
        for kind in ("input", "output"):
            self._usage.record(getattr(event, kind), labels | {"gen_ai.token.type": kind})
        if event.cost is not None:
            self._cost.add(event.cost, labels)

    def note(self, event: events.Event) -> None:
        match event:
            case events.Edited():
                labels = {"clew.by": event.by}
                self._edits.add(1, labels)
                self._saved.add(max(0, _saved(event)), labels)
                self._spent.add(event.spent, labels)
                if event.cost is not None:
                    self._cost.add(event.cost, labels)
            case events.Recalled():
                self._recalls.add(1)
            case events.Secret():
                self._secrets.add(event.count)


def _branch(event: events.Event) -> _BranchKey:
    return event.scope, event.branch


def _labels(event: events.Called) -> _Attributes:
    labels = {
        "gen_ai.operation.name": _OPERATIONS.get(event.format, "chat"),
        "gen_ai.provider.name": _PROVIDERS.get(event.format, event.format),
    }
    return labels | {"gen_ai.request.model": event.model} if event.model else labels


def _size(event: events.Called) -> _Attributes:
    size: _Attributes = {
        "gen_ai.conversation.id": event.session or event.branch,
        "clew.tokens": event.tokens,
        "clew.limit": event.limit,
        "clew.exact": event.exact,
    }
    return size if event.cost is None else size | {"clew.cost.uncached": event.cost}


def _saved(edit: events.Edited) -> int:
    return edit.tokens_before - edit.tokens_after


def _write(span: Span, notes: "tuple[events.Event, ...] | deque[events.Event]") -> None:
    """Events as events of a span; where they happened, the span says already."""
    for note in notes:
        name, *fields = events.event_data(note).items()
        place = ("scope", "branch", "seq")
        span.add_event(f"clew.{name[1]}", {f"clew.{key}": value for key, value in fields if key not in place})
