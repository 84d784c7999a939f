"""What listeners make of events: log lines, JSON, spans and meters; none of them with what was said."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from clew import Budget, Engine, Request, events
from clew.engine.settings import Settings
from clew.errors import OverBudget, install_line
from clew.events import Appended, Called, Edited, Event, Failed, JSONLines, Learned, Observed, Recalled, Secret
from clew.events.telemetry import OPEN, SPAN_NOTES, Traces
from clew.store.sql import SQLStore
from clew.testing.conversations import conversation

EDITED = Edited("acme", "b1", 3, "ClearResults(keep=5)", 1, 900, 40, 0)
CALLED = Called("acme", "b1", 4, "gpt-4o", "openai_chat", 1_000, 8_000, True)
OBSERVED = Observed("acme", "b1", 4, 1_010, 50, 800, 0, 0.0021)


# --- log lines ----------------------------------------------------------------------------------------------------

LINES: list[tuple[Event, str]] = [
    (Appended("acme", "b1", 0, 2, 30), "appended scope=acme branch=b1 seq=0 items=2 tokens=30"),
    (
        EDITED,
        'edited scope=acme branch=b1 seq=3 by="ClearResults(keep=5)" items=1 tokens_before=900 tokens_after=40 spent=0',
    ),
    (
        Called("two words", "b1", 4, "", "openai_chat", 1, 2, False, session='a "b"'),
        'called scope="two words" branch=b1 seq=4 model="" format=openai_chat tokens=1 limit=2 exact=False '
        'session="a \\"b\\"" compacted=False',
    ),
    (
        OBSERVED,
        "observed scope=acme branch=b1 seq=4 input=1010 output=50 cache_read=800 cache_write=0 cost=0.0021",
    ),
    (Failed("acme", "b1", 5, "OverBudget"), "failed scope=acme branch=b1 seq=5 error=OverBudget"),
    (Recalled("acme", "", 0, "3fa9", 7), 'recalled scope=acme branch="" seq=0 id=3fa9 items=7'),
    (Learned("acme", "b1", 5, "m", 4096), "learned scope=acme branch=b1 seq=5 model=m window=4096"),
    (Secret("acme", "b1", 5, ("aws-key", "pem"), 3), "secret scope=acme branch=b1 seq=5 kinds=aws-key,pem count=3"),
]


@pytest.mark.parametrize(("event", "line"), LINES, ids=[type(event).__name__ for event, _ in LINES])
def test_an_event_is_a_line(event: Event, line: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "clew"):
        events.log(event)
    [record] = caplog.records
    assert record.getMessage() == line
    assert record.__dict__["clew"] == events.event_data(event)


def test_a_name_cannot_forge_a_second_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "clew"):
        events.log(Failed("a\nfailed scope=b", "\u2028", 0, "x\x1b[31m\ud800"))
    assert caplog.records[0].getMessage() == (
        'failed scope="a\\nfailed scope=b" branch="\\u2028" seq=0 error="x\\u001b[31m\\ud800"'
    )


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What the `clew` logger writes through `JSONLines`."""
    stream, logger = io.StringIO(), logging.getLogger("clew")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JSONLines())
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_an_event_is_one_json_object_a_line(written: io.StringIO) -> None:
    for event, _ in LINES:
        events.log(event)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    times = [line.pop("time") for line in lines]
    as_json = [json.loads(json.dumps(events.event_data(event))) for event, _ in LINES]
    assert lines == [{"level": "info", "logger": "clew"} | data for data in as_json]
    assert all(time.endswith("+00:00") for time in times)


def test_other_records_keep_their_message_and_their_traceback(written: io.StringIO) -> None:
    def broken(_: Event) -> None:
        raise RuntimeError("no ears")

    events.tell([broken], [CALLED])
    [line] = [json.loads(line) for line in written.getvalue().splitlines()]
    assert (line["level"], line["message"]) == ("error", "a listener failed on Called")
    assert line["exception"].endswith("RuntimeError: no ears")


# --- spans --------------------------------------------------------------------------------------------------------


class Telemetry:
    """OpenTelemetry's own SDK, kept in memory."""

    def __init__(self) -> None:
        self._exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)

    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def metrics(self) -> dict[str, dict[str, Any]]:
        """Name of a meter, its labels on one line, its sum."""
        data = self._reader.get_metrics_data()
        found: dict[str, dict[str, Any]] = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics if data else ():
            for point in metric.data.data_points:
                labels = " ".join(str(value) for _, value in sorted((point.attributes or {}).items()))
                found.setdefault(metric.name, {})[labels] = getattr(point, "value", None) or getattr(point, "sum", 0)
        return found


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture
def traces(telemetry: Telemetry) -> Traces:
    return Traces(telemetry.tracers, telemetry.meters)


def told(listener: Traces, *heard: Event) -> None:
    for event in heard:
        listener(event)


def noted(span: ReadableSpan) -> list[tuple[str, dict[str, Any]]]:
    return [(event.name, dict(event.attributes or {})) for event in span.events]


def test_a_call_is_a_span_from_view_to_usage(traces: Traces, telemetry: Telemetry) -> None:
    told(traces, EDITED, CALLED)
    assert telemetry.spans() == []
    told(traces, OBSERVED)
    [span] = telemetry.spans()
    assert (span.name, span.kind, span.status.status_code) == ("chat gpt-4o", SpanKind.CLIENT, StatusCode.UNSET)
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.conversation.id": "b1",
        "gen_ai.conversation.compacted": True,
        "gen_ai.usage.input_tokens": 1_010,
        "gen_ai.usage.output_tokens": 50,
        "gen_ai.usage.cache_read.input_tokens": 800,
        "gen_ai.usage.cache_write.input_tokens": 0,
        "clew.branch": "b1",
        "clew.seq": 4,
        "clew.tokens": 1_000,
        "clew.limit": 8_000,
        "clew.exact": True,
        "clew.cost": 0.0021,
    }
    edit = {"clew.by": "ClearResults(keep=5)", "clew.items": 1, "clew.tokens_before": 900, "clew.tokens_after": 40}
    assert noted(span) == [("clew.edited", edit | {"clew.spent": 0})]


@pytest.mark.parametrize(
    ("format", "name", "provider"),
    [
        ("openai_responses", "chat m", "openai"),
        ("anthropic", "chat m", "anthropic"),
        ("bedrock", "chat m", "aws.bedrock"),
        ("gemini", "generate_content m", "gcp.gen_ai"),
        ("new", "chat m", "new"),
    ],
)
def test_a_format_tells_the_provider(
    traces: Traces, telemetry: Telemetry, format: str, name: str, provider: str
) -> None:
    told(traces, Called("s", "b", 1, "m", format, 1, 2, True), Observed("s", "b", 1, 1, 1, 0, 0))
    [span] = telemetry.spans()
    assert (span.name, (span.attributes or {})["gen_ai.provider.name"]) == (name, provider)


def test_a_call_without_compaction_says_nothing_of_it(traces: Traces, telemetry: Telemetry) -> None:
    mended = Edited("acme", "b1", 3, "Repair", 1, 10, 12, 0)
    told(traces, mended, CALLED, OBSERVED)
    told(
        traces,
        Called("acme", "b1", 5, "", "openai_chat", 9, 8_000, True, 0.5, "chat-7", True),
        Failed("acme", "b1", 6, "E"),
    )
    plain, later, _ = [dict(span.attributes or {}) for span in telemetry.spans()]
    assert "gen_ai.conversation.compacted" not in plain
    assert later == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.conversation.id": "chat-7",
        "gen_ai.conversation.compacted": True,
        "clew.branch": "b1",
        "clew.seq": 5,
        "clew.tokens": 9,
        "clew.limit": 8_000,
        "clew.exact": True,
        "clew.cost.uncached": 0.5,
    }


def test_the_next_call_ends_one_that_was_never_observed(traces: Traces, telemetry: Telemetry) -> None:
    again = Called("acme", "b1", 7, "gpt-4o", "openai_chat", 1_000, 8_000, True)
    told(traces, CALLED, EDITED, again)
    [first] = telemetry.spans()
    assert (first.attributes or {})["clew.seq"] == 4
    assert noted(first) == []  # the edit shaped the second
    told(traces, OBSERVED)  # of the first, and late
    assert len(telemetry.spans()) == 1
    told(traces, Observed("acme", "b1", 7, 5, 6, 0, 0))
    assert [name for name, _ in noted(telemetry.spans()[1])] == ["clew.edited"]
    assert telemetry.metrics()["gen_ai.client.inference.usage.input_tokens"] == {
        "chat unknown": 1_010,
        "chat openai gpt-4o unknown": 5,
    }


def test_a_failed_turn_is_a_span_of_its_own(traces: Traces, telemetry: Telemetry) -> None:
    told(traces, CALLED, EDITED, Failed("acme", "b1", 5, "OverBudget"))
    call, turn = telemetry.spans()
    assert (call.name, call.status.status_code) == ("chat gpt-4o", StatusCode.UNSET)
    assert (turn.name, turn.status.status_code) == ("clew.prepare", StatusCode.ERROR)
    assert dict(turn.attributes or {}) == {"error.type": "OverBudget", "clew.branch": "b1", "clew.seq": 5}
    assert [name for name, _ in noted(turn)] == ["clew.edited"]
    assert telemetry.metrics()["clew.failures"] == {"OverBudget": 1}


def test_recalls_are_noted_on_the_call_under_way_else_on_the_next(traces: Traces, telemetry: Telemetry) -> None:
    told(traces, Recalled("acme", "b1", 0, "before", 2), Secret("acme", "b1", 3, ("pem",), 2), CALLED)
    told(traces, Recalled("acme", "b1", 0, "during", 1), Learned("acme", "b1", 4, "gpt-4o", 4_096), OBSERVED)
    told(traces, Recalled("acme", "", 0, "of no branch", 1))
    [span] = telemetry.spans()
    assert noted(span) == [
        ("clew.recalled", {"clew.id": "before", "clew.items": 2}),
        ("clew.secret", {"clew.kinds": ("pem",), "clew.count": 2}),
        ("clew.recalled", {"clew.id": "during", "clew.items": 1}),
        ("clew.learned", {"clew.model": "gpt-4o", "clew.window": 4_096}),
    ]
    assert (telemetry.metrics()["clew.recalls"], telemetry.metrics()["clew.secrets"]) == ({"": 3}, {"": 2})


def test_a_scope_is_written_only_as_asked(telemetry: Telemetry) -> None:
    told(Traces(telemetry.tracers, telemetry.meters, scope=str.upper), CALLED, OBSERVED)
    told(Traces(telemetry.tracers, telemetry.meters), EDITED, CALLED, OBSERVED, Failed("acme", "b1", 5, "E"))
    named, *rest = [span.to_json() for span in telemetry.spans()]
    assert '"clew.scope": "ACME"' in named
    assert len(rest) == 2
    assert not any("acme" in text.lower() for text in [*rest, str(telemetry.metrics())])


def test_branches_that_are_never_observed_do_not_pile_up(traces: Traces, telemetry: Telemetry) -> None:
    for number in range(OPEN + 10):
        told(traces, Called("s", f"b{number}", 1, "m", "anthropic", 1, 2, True))
    assert [(span.attributes or {})["clew.branch"] for span in telemetry.spans()] == [f"b{n}" for n in range(10)]


def test_notes_that_no_call_follows_do_not_pile_up(traces: Traces, telemetry: Telemetry) -> None:
    for number in range(OPEN + 1):
        told(traces, Recalled("s", f"b{number}", 0, "x", 1))
    for number in range(SPAN_NOTES + 10):
        told(traces, Recalled("s", "b1", 0, str(number), 1))
    for branch in ("b0", "b1"):
        told(traces, Called("s", branch, 1, "m", "anthropic", 1, 2, True), Observed("s", branch, 1, 1, 1, 0, 0))
    forgotten, kept = telemetry.spans()
    assert noted(forgotten) == []
    assert [fields["clew.id"] for _, fields in noted(kept)] == [str(number) for number in range(10, SPAN_NOTES + 10)]


def test_meters_count_tokens_dollars_and_edits(traces: Traces, telemetry: Telemetry) -> None:
    summed = Edited("acme", "b1", 3, "Summarize", 9, 5_000, 300, 5_200, 0.25)
    mended = Edited("acme", "b1", 3, "Repair", 1, 10, 12, 0)
    told(traces, EDITED, summed, mended, CALLED, OBSERVED)
    call = "chat openai gpt-4o"
    assert telemetry.metrics() == {
        "gen_ai.client.inference.usage.input_tokens": {f"{call} unknown": 1_010},
        "gen_ai.client.inference.usage.output_tokens": {f"{call} unknown": 50},
        "gen_ai.client.inference.usage.cache_read.input_tokens": {f"{call} unknown": 800},
        "gen_ai.client.inference.usage.cache_write.input_tokens": {f"{call} unknown": 0},
        "gen_ai.client.token.usage": {f"{call} input": 1_010, f"{call} output": 50},
        "clew.cost": {"Summarize": 0.25, call: 0.0021},
        "clew.edits": {"ClearResults(keep=5)": 1, "Summarize": 1, "Repair": 1},
        "clew.edits.saved": {"ClearResults(keep=5)": 860, "Summarize": 4_700, "Repair": 0},
        "clew.edits.spent": {"ClearResults(keep=5)": 0, "Summarize": 5_200, "Repair": 0},
    }


async def test_an_engine_is_traced_and_nothing_said_is_in_it(
    store: SQLStore, traces: Traces, telemetry: Telemetry, written: io.StringIO
) -> None:
    engine = Engine(store, Budget(window=2_500), Settings(listeners=[traces, events.log]))
    body = conversation(3, 8)
    with telemetry.tracers.get_tracer("host").start_as_current_span("turn") as turn:
        view = await engine.prepare(Request(body))
        await engine.observe(view, {"prompt_tokens": 1_900, "completion_tokens": 20})
    with pytest.raises(OverBudget):
        await Engine(store, Budget(window=100, reserve=0), Settings(listeners=[traces])).prepare(Request(body))
    call, _, failed = telemetry.spans()
    assert call.parent == turn.get_span_context()
    assert (call.attributes or {})["gen_ai.conversation.compacted"] is True
    assert {name for name, _ in noted(call)} == {"clew.edited"}
    assert failed.name == "clew.prepare"
    texts = {n.item.text for n in view.nodes if len(n.item.text) > 20}
    recorded = written.getvalue() + "".join(span.to_json() for span in telemetry.spans()) + str(telemetry.metrics())
    assert texts
    assert not any(text in recorded for text in texts)


def test_without_opentelemetry_the_remedy_is_told() -> None:
    code = "import sys; sys.modules['opentelemetry'] = None; import clew.events.telemetry"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith(f"clew.errors.MissingExtra: traces need OpenTelemetry: {install_line('otel')}\n")
