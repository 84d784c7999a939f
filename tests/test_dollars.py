"""What sessions cost: the provider's cache, who keeps a session small and how, and the proof over a tiny corpus."""

import gzip
import json
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import proofs.dollars
from benchmark.bills import Point, bill_picture
from benchmark.dollars import Provider, Session, of_corpus, replay
from benchmark.following import follow
from benchmark.growing import CLEARED, Clearing, Dropping, Fixed, Keeper, Summarizing, Whole
from benchmark.judging import Need, shown
from benchmark.methods import view_of
from benchmark.peers import Child, Peer
from benchmark.planting import plant
from clew import Budget
from clew.catalog.usage import Spent
from clew.core.view import View
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Target
from clew.wire import encode
from made_up import made_up_environment
from test_benchmark import SCORER

METER = Meter(counter_for("gpt-4o"))
TIGHT = Target.of(Budget(16_000), METER)
EARLIER = Target.of(Budget(16_000, start=8_000), METER)
KEEPERS: dict[str, Callable[[Session], Keeper]] = {
    "dropping": lambda session: Dropping(TIGHT),
    "summarizing": lambda session: Summarizing(TIGHT, session.whole),
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

    def fit(self, view: View, size: int) -> tuple[View, Spent]:
        fitted, helped = self.keeper.fit(view, size)
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


@pytest.mark.few(1)
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


# --- the keepers ------------------------------------------------------------------------------------------------------


@pytest.mark.few(1)
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
    found, _ = Clearing(Target.of(Budget(size * 2, 0), METER), trigger=1_000, keep=3).fit(view, size)
    results = [node.item.text for node in found.nodes if node.item.kind == "result"]
    assert results[-3:] == [node.item.text for node in view.nodes if node.item.kind == "result"][-3:]
    assert set(results[:-3]) == {CLEARED}
    assert [n for n in found.nodes if n.item.kind == "call"] == [n for n in view.nodes if n.item.kind == "call"]
    assert Clearing(TIGHT, trigger=1_000, least=10**9).fit(view, 2_000)[0] is view


# --- peers ------------------------------------------------------------------------------------------------------------

WAYS = """
from packages.standin import shortened
class Same:
    def __init__(self, window): self.most = window
    def fit(self, messages): return messages
class Short(Same):
    def fit(self, messages):
        if sum(len(str(m)) for m in messages) < 4 * self.most: return messages
        text = shortened([(m["role"], str(m.get("content"))) for m in messages[:-1]])
        return [{"role": "user", "content": text}, messages[-1]]
WAYS = {"same": Same, "short": Short}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An environment with a package of two ways."""
    return made_up_environment(tmp_path, WAYS)


def test_a_peer_that_changes_nothing_costs_what_the_full_history_costs(folder: Path) -> None:
    for goes_on in (True, False):
        with Child(Peer("same", "made-up", "made_up", "same", "", goes_on, folder=folder)) as child:
            found = follow(session(), child, 16_000, METER)
        assert found.calls == replay(session(), Whole(), METER).calls
        assert not found.helpers
        assert not found.compactions


def test_a_peers_summary_is_paid_for_what_its_model_read_and_wrote(folder: Path) -> None:
    with Child(Peer("short", "made-up", "made_up", "short", "", model=True, folder=folder)) as child:
        found = follow(session(), child, 16_000, METER)
    assert len(found.helpers) == found.compactions > 1
    for helped in found.helpers:
        assert 8_000 < helped.input < 20_000
        assert 1_000 < helped.output < 3_000
        assert helped.cache_read == helped.cache_write == 0
    broken = [call for call in found.calls[1:] if call.cache_read < 10]  # no message is the same
    assert len(broken) == found.compactions


# --- the bills --------------------------------------------------------------------------------------------------------


def row(session: str, method: str, dollars: float, kept: int, refused: int = 0) -> dict[str, Any]:
    """What one method came to in one session with ten needs."""
    paid = dict.fromkeys(("pauses", "other", "helpers"), dollars)
    counts = {"calls": 5, "compactions": 1, "needs": 10, "kept": kept, "one_call": kept, "refused": refused}
    return {"session": session, "method": method, "dollars": dollars, **paid, **counts}


def test_regret_is_what_a_session_cost_above_the_cheapest_that_a_provider_takes() -> None:
    rows = [
        *(row("a", "clew", 3, 8), row("b", "clew", 5, 8)),
        *(row("a", "small", 1, 2), row("b", "small", 2, 2)),
        *(row("a", "fuller", 4, 9), row("b", "fuller", 4.5, 9)),
        *(row("a", "free", 0.1, 10, refused=1), row("b", "free", 0.1, 10, refused=1)),
        {"method": "slow", "fault": "no answer"},
    ]
    found = {told["method"]: told for told in proofs.dollars.added(rows)}
    assert found["clew"]["regrets"] == [2, 3]
    assert found["clew"]["regrets_alike"] == [0, 0.5]
    assert found["small"]["regrets"] == [0, 0]
    assert found["slow"] == {"method": "slow", "fault": "no answer"}


def test_every_method_has_its_name_in_the_picture_and_none_stands_on_another() -> None:
    points = [Point("clew", 9, 0.9), *(Point(f"peer {n}", 5 + n / 10, 0.4) for n in range(22))]
    texts = list(ElementTree.fromstring(bill_picture(points, ["clew"])).iter("{http://www.w3.org/2000/svg}text"))
    heights = sorted(float(e.attrib["y"]) for e in texts if e.attrib["class"] == "name")
    assert {e.text for e in texts} >= {point.method for point in points}
    assert min(b - a for a, b in pairwise(heights)) >= 12


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


def test_the_proof_bills_the_longest_sessions_of_a_corpus(tmp_path: Path) -> None:
    corpus = corpus_in(tmp_path)
    rows = [proofs.dollars.with_one((corpus, 1, method)) for method in proofs.dollars.PLAIN]
    first, second = tokens(SAID[:1]), tokens([*SAID, SAID[0]])
    answer = tokens(SAID) - first
    sonnet = first * 3.75 + first * 0.3 + (second - first) * 3.75 + 2 * answer * 15
    late = first * 3.75 + second * 3.75 + 2 * answer * 15
    for (found,) in rows:
        assert (found["calls"], found["needs"], found["compactions"]) == (2, 0, 0), "all of it fits"
        assert found["dollars"] * 1e6 == pytest.approx(sonnet)
        assert found["pauses"] * 1e6 == pytest.approx(late)
    figures = {"made": "today", "real": True, "sessions": 1, "calls": 2, "needs": 1, "window": 64_000}
    added = list(proofs.dollars.added([found for (found,) in rows]))
    told = proofs.dollars.blocks({**figures, "rows": added, "peers": []})
    assert all(method in told["dollars"] for method in proofs.dollars.PLAIN)


def test_facts_are_asked_for_where_not_all_fits_and_if_they_were_said_long_before() -> None:
    (at, needs), *_ = session().probes.items()
    near = Need("x", "", distance=10)
    probed = Session("planted", session().messages, {2: needs, at: [*needs, near]})
    found = proofs.dollars.asked_late(probed, TIGHT)
    assert found.probes == {at: needs}


def test_of_a_long_session_the_first_calls_are_billed(tmp_path: Path) -> None:
    (found,), _ = of_corpus(corpus_in(tmp_path), 1, calls=1)
    assert list(found.messages) == SAID
    assert not found.probes, "what is needed later is not asked for"


def test_what_is_shown_of_a_session_is_all_of_it_while_it_fits() -> None:
    found = replay(session(), Fixed(Target.of(Budget(1_000_000), METER)), METER)
    for at, view in found.shown.items():
        assert shown(encode(view.frame, (n.item for n in view.nodes))["messages"]) == shown(session().messages[:at])
