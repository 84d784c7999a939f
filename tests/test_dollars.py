"""What sessions cost: the provider's cache, who keeps a session small and how, and the command over a tiny corpus."""

import gzip
import json
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import dollars
from benchmark.bills import bill_picture, bill_table, prefix_line
from benchmark.dollars import EARLY, FIXED, SONNET, Payment, Provider, Session, Setting, replay
from benchmark.growing import CLEARED, Clearing, Dropping, Fixed, Keeper, Summarizing
from benchmark.judging import Need, Words, shown
from benchmark.methods import view_of
from benchmark.planting import plant
from clew import Budget, counter_for
from clew.catalog.usage import Spent
from clew.core.view import View
from clew.tokens.meter import Meter
from clew.tokens.target import Target
from clew.wire import encode
from test_benchmark import SCORER, quiet

METER = Meter(counter_for("gpt-4o"))
TIGHT = Target.of(Budget(16_000), METER)
EARLIER = Target.of(Budget(16_000, start=8_000), METER)
KEEPERS: dict[str, Callable[[Session], Keeper]] = {
    "dropping": lambda session: Dropping(TIGHT),
    "summarizing": lambda session: Summarizing(TIGHT, session.whole.nodes),
    "clearing": lambda session: Clearing(TIGHT, least=500),
    "fixed": lambda session: Fixed(TIGHT),
    "start": lambda session: Fixed(EARLIER),
}


@cache
def session() -> Session:
    """A made-up session of 60,000 tokens, and its facts, needed before its last tenth."""
    planted = plant(7, 60_000)
    at = len(planted.messages) * 9 // 10
    words = frozenset({"the", "port", "with"})
    needs = [Need(f.value, f.question, words) for f in planted.facts if f.places[0] < at]
    return Session("planted", planted.messages, {at: needs})


class Watching:
    """A keeper that remembers what another one sent."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.sent: list[View] = []

    def fit(self, view: View, size: int, idle: float) -> tuple[View, Spent]:
        fitted, helped = self.keeper.fit(view, size, idle)
        self.sent.append(fitted)
        return fitted, helped


def tokens(messages: list[dict[str, Any]]) -> int:
    view = view_of(messages)
    return METER.frame(view.frame).plus(METER.nodes(view.nodes)).tokens


# --- the cache --------------------------------------------------------------------------------------------------------


def test_a_provider_reads_the_messages_that_are_the_same_as_last_time() -> None:
    said = [
        {"role": role, "content": text} for role, text in (("user", "one"), ("assistant", "two"), ("user", "three"))
    ]
    more = [*said, {"role": "assistant", "content": "four"}]
    other = [said[0], {"role": "assistant", "content": "deux"}, *more[2:]]
    provider = Provider(METER)
    read = [provider.read(view_of(messages)) for messages in (said, more, more, other, said[:1])]
    assert read == [0, tokens(said), tokens(more), tokens(said[:1]), tokens(said[:1])]


def test_while_nothing_is_compacted_each_call_reads_the_last_one_and_writes_what_is_new() -> None:
    endless = Target.of(Budget(1_000_000), METER)
    found = replay(session(), Fixed(endless), METER)
    assert [call.cache_read for call in found.calls] == [0, *(call.input for call in found.calls[:-1])]
    assert all(call.cache_read + call.cache_write == call.input for call in found.calls)
    assert sum(call.output for call in found.calls) == sum(
        METER.node(n).tokens for n in session().whole.nodes if n.item.role == "assistant"
    )
    assert found.predicted == len(found.calls) == sum(m["role"] == "assistant" for m in session().messages)


@pytest.mark.parametrize("name", ["fixed", "start"])
def test_the_cached_prefix_is_what_the_edits_say_and_what_the_bytes_say(name: str) -> None:
    watching = Watching(KEEPERS[name](session()))
    apart = Session("no probes", session().messages, {})
    found = replay(apart, watching, METER)
    assert found.compactions > 2
    assert found.predicted == len(found.calls)
    bodies = [encode(view.frame, (n.item for n in view.nodes))["messages"] for view in watching.sent]
    for (old, new), (before, call) in zip(pairwise(bodies), pairwise(found.calls), strict=True):
        same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        assert (same == len(old)) == (call.cache_read == before.input)
        assert call.cache_read == pytest.approx(tokens(new[:same]), abs=10)  # a summary counts as a message and more


def test_after_a_pause_nothing_is_read() -> None:
    messages = session().messages
    found = replay(session(), Fixed(TIGHT), METER, pauses=True)
    turns = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    cold = [call.cache_read == 0 for call in found.calls]
    assert cold == [messages[n - 1]["role"] == "user" for n in turns]


# --- the keepers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KEEPERS)
def test_every_call_fits(name: str) -> None:
    found = replay(session(), KEEPERS[name](session()), METER)
    assert found.compactions
    assert max(call.input for call in found.calls) <= TIGHT.limit.tokens


def test_a_model_that_summarizes_reads_all_of_it_and_is_paid() -> None:
    found = replay(session(), KEEPERS["summarizing"](session()), METER)
    assert len(found.helpers) == found.compactions
    for helped in found.helpers:
        assert helped.input == helped.cache_read > 0.75 * TIGHT.limit.tokens
        assert 300 < helped.output < 5_000


def test_the_newest_results_are_not_cleared_and_every_call_stays() -> None:
    view = session().whole
    size = METER.nodes(view.nodes).tokens
    found, _ = Clearing(Target.of(Budget(size * 2, 0), METER), trigger=1_000, keep=3).fit(view, size, 0)
    results = [node.item.text for node in found.nodes if node.item.kind == "result"]
    assert results[-3:] == [node.item.text for node in view.nodes if node.item.kind == "result"][-3:]
    assert set(results[:-3]) == {CLEARED}
    assert [n for n in found.nodes if n.item.kind == "call"] == [n for n in view.nodes if n.item.kind == "call"]
    assert Clearing(TIGHT, trigger=1_000, least=10**9).fit(view, 2_000, 0)[0] is view


# --- the bills --------------------------------------------------------------------------------------------------------


def test_a_setting_has_a_bill_a_method() -> None:
    setting = Setting(16_000)
    bills = list(Payment([session()], Words()).bills(setting, quiet))
    found = {bill.method: bill for bill in bills}
    assert list(found) == [EARLY, FIXED, "summary at 75 %", "clear results", "drop the oldest"]
    assert found[EARLY].dollars < found["drop the oldest"].dollars / 2
    assert found[EARLY].one_call > 0.9 > 2 * found["drop the oldest"].one_call
    assert found["summary at 75 %"].helpers > 0
    calls = found[EARLY].calls + found[FIXED].calls
    assert prefix_line(bills) == f"cached prefix as predicted in {calls} of {calls} calls of clew's"
    assert bill_table(bills).row_count == 5
    said = [e.text for e in ElementTree.fromstring(bill_picture(bills)).iter("{http://www.w3.org/2000/svg}text")]
    assert said.count("clew, start, 8k") == said.count("drop the oldest") == 1


SAID = [{"role": "user", "content": "The port is 28711."}, {"role": "assistant", "content": "Noted."}]


def corpus_in(folder: Path) -> Path:
    """A corpus of two sessions, of which the longer one is needed."""
    need = {"text": "28711", "anchors": ["port"], "cue": "the port is ____", "distance_tokens": 5_000}
    talks = [{"id": str(n), "kind": "coding", "tokens_est": n, "messages": SAID * n} for n in (1, 2)]
    probes = [{"conv_id": "2", "cut_kind": "fraction:0.6", "cut_index": 2, "tokens_before": 20, "needed": [need]}]
    (folder / "dev").mkdir()
    (folder / "score.py").write_text(SCORER)
    for name, rows in (("talks", talks), ("probes", probes)):
        with gzip.open(folder / "dev" / f"{name}.jsonl.gz", "wt") as file:
            file.write("\n".join(map(json.dumps, rows)))
    return folder


def test_the_command_bills_the_longest_sessions_of_a_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures, drawn = tmp_path / "bills.json", tmp_path / "bills.svg"
    options = ["--corpus", str(corpus_in(tmp_path)), "--sample", "1", "--json", str(figures), "--plot", str(drawn)]
    dollars.main(options)
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    assert "cached prefix as predicted in 36 of 36 calls" in told
    bills = json.loads(figures.read_text())
    assert {(bill["calls"], bill["kept"], bill["bound"], bill["compactions"]) for bill in bills} == {(2, 1.0, 1.0, 0)}
    first, second = tokens(SAID[:1]), tokens([*SAID, SAID[0]])
    answer = tokens(SAID) - first
    setting = {"window": 64_000, "prices": SONNET, "pauses": False}
    sonnet = first * 3.75 + first * 0.3 + (second - first) * 3.75 + 2 * answer * 15
    assert {round(bill["dollars"] * 1e6, 6) for bill in bills if bill["setting"] == setting} == {round(sonnet, 6)}
    ElementTree.parse(drawn)


def test_what_is_shown_of_a_session_is_all_of_it_while_it_fits() -> None:
    found = replay(session(), Fixed(Target.of(Budget(1_000_000), METER)), METER)
    for at, view in found.shown.items():
        assert shown(encode(view.frame, (n.item for n in view.nodes))["messages"]) == shown(session().messages[:at])
