"""The benchmark: its sessions hold what they say, its judges judge right, its picture and its command work."""

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import facts
from benchmark.corpus import Corpus
from benchmark.folds import fold_often
from benchmark.judging import Curve, Cut, Method, Need, Row, Tally, Words, judge_all, shown
from benchmark.methods import Characters, cleared, clew, compacted, in_tokens, newest
from benchmark.peers import PEERS, installed
from benchmark.planting import plant
from benchmark.plot import picture
from benchmark.shipped import needed
from benchmark.suite import Plan, goal_of, parts, verdict
from clew import compress
from clew.errors import NotFound
from clew.screens.demo import sample
from clew.testing.conversations import conversation
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.wire import check, decode


def quiet(what: str, done: int, whole: int) -> None:
    """Hears and says nothing."""


# --- planted sessions -------------------------------------------------------------------------------------------------


def test_a_seed_gives_one_session_and_another_gives_another() -> None:
    assert plant(3, 60_000) == plant(3, 60_000)
    assert plant(3, 60_000).facts != plant(4, 60_000).facts


@pytest.mark.parametrize(("seed", "tokens"), [(7, 200_000), (7, 1_000_000), (3, 100_000)])
def test_every_fact_stands_where_it_is_said_to_stand_and_nowhere_else(seed: int, tokens: int) -> None:
    planted = plant(seed, tokens)
    texts = [shown([message]) for message in planted.messages]
    for fact in planted.facts:
        assert tuple(i for i, text in enumerate(texts) if fact.value in text) == fact.places
        assert fact.sentence in texts[fact.places[0]]
        assert fact.value not in fact.question


def test_facts_come_from_all_sides_over_all_but_the_end() -> None:
    planted = plant(7, 200_000)
    origins = [fact.origin for fact in planted.facts]
    assert {origin: origins.count(origin) for origin in origins} == dict.fromkeys(origins, 10)
    assert len({fact.value for fact in planted.facts}) == 40
    said = {"user": "user", "decision": "assistant", "result": "tool", "error": "tool"}
    for fact in planted.facts:
        assert planted.messages[fact.places[0]]["role"] == said[fact.origin]
    lengths = [len(shown([m])) for m in planted.messages]
    where = [sum(lengths[: fact.places[0]]) / sum(lengths) for fact in planted.facts]
    assert where[0] < 0.05
    assert 0.8 < max(sum(lengths[: f.places[-1]]) / sum(lengths) for f in planted.facts) < 0.9
    again = [fact for fact in planted.facts if len(fact.places) > 1]
    assert 5 < len(again) < 30
    assert all(planted.messages[fact.places[1]]["tool_calls"] for fact in again)


@pytest.mark.parametrize("tokens", [60_000, 200_000])
def test_a_session_is_as_long_as_asked_and_valid(tokens: int) -> None:
    planted = plant(7, tokens)
    _, items = decode({"messages": planted.messages}, "openai_chat")
    meter = Meter(counter_for("gpt-4o"))
    assert meter.items(items).tokens == pytest.approx(tokens, rel=0.05)
    assert planted.tokens == pytest.approx(tokens, rel=0.05)
    assert not check({"messages": planted.messages}, "openai_chat")


# --- judging ----------------------------------------------------------------------------------------------------------


def test_a_string_is_kept_if_it_stands_whole() -> None:
    need = Need("src/a.py", "")
    assert Words().kept("see src/a.py.", need)
    assert not Words().kept("see src/a.pyx", need)
    assert not Words().kept("see xsrc/a.py", need)


def test_a_string_is_bound_if_a_word_of_its_context_is_near() -> None:
    need = Need("2871", "", frozenset({"port", "gateway"}))
    assert Words().bound("the gateway has 2871", need)
    assert not Words().bound("2871, 4411, 5120", need)
    assert not Words().bound("gateway" + "-" * 300 + " 2871", need)


def test_what_a_model_reads_of_messages() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"cmd": "ls", "wait": 3}'}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "a.py"},
    ]
    assert shown(messages) == "user: text hi\nassistant: \n[call bash ls\n3]\ntool: a.py"


def test_a_tally_counts_kept_bound_and_recalled_and_nothing_over_the_size() -> None:
    needs = [
        Need("alpha_1", "which alpha", frozenset({"first"})),
        Need("beta_2", "which beta", frozenset({"second"})),
        Need("gamma_3", "which gamma", frozenset({"third"}), distance=100),
    ]
    cut = Cut("here", [], 400, 4_000, needs)
    tally = Tally("some", Words(), len)
    tally.add(cut, lambda messages, size: ("first alpha_1, gamma_3", lambda query: "beta_2" if "beta" in query else ""))
    row = tally.row(0.1)
    assert (row.kept, row.bound, row.one_call) == (2 / 3, 1 / 2, 1.0)
    assert (tally.asked, tally.far, row.over) == (3, 2, 0)
    tally.add(cut, lambda messages, size: "alpha_1 " * 1_000)
    assert tally.row(0.1).over == 1
    assert tally.row(0.1).kept == 2 / 6


def test_what_the_agent_of_a_session_needed_again() -> None:
    messages = [
        {"role": "user", "content": "The gateway reads conf/gate_way.toml at start."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Now other_name_here is wrong."},
        {"role": "assistant", "content": "I change conf/gate_way.toml and other_name_here and never_said_before."},
    ]
    found = list(needed(messages, 2))
    assert [need.text for need in found] == ["conf/gate_way.toml"]
    assert "gateway" in found[0].anchors
    assert "conf/gate_way.toml" not in found[0].cue
    assert "____" in found[0].cue


# --- methods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_characters_count_what_is_shown(seed: int) -> None:
    messages = [m for m in conversation(seed, 6)["messages"] if "reasoning_content" not in m]
    frame, items = decode({"messages": messages}, "openai_chat")
    meter = Meter(Characters())
    counted = meter.frame(frame).plus(meter.items(items)).tokens
    assert counted == pytest.approx(len(shown(messages)), rel=0.005)
    assert counted >= len(shown(messages))


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [2_000, 20_000])
def test_the_benchmark_runs_what_users_run(size: int) -> None:
    messages = plant(5, 60_000).messages
    users = compress(messages, target_tokens=size)
    ours = compacted(messages, size, counter_for(""))
    assert ours.messages == users.messages
    assert ours.answer("canary revision") == users.answer("canary revision") != ""


@pytest.mark.parametrize("method", [clew, newest, cleared])
@pytest.mark.parametrize("size", [3_000, 40_000])
def test_results_keep_to_the_size(method: Method, size: int) -> None:
    found = method(sample(), size)
    result = found[0] if isinstance(found, tuple) else found
    assert size / 3 < len(Words().text_of(result)) <= size


@pytest.mark.parametrize(("until", "size"), [(135, 8_000), (239, 20_000)])
def test_a_size_is_filled(until: int, size: int) -> None:
    assert len(shown(clew(sample()[:until], size)[0])) > 0.85 * size


def test_a_system_prompt_that_leaves_no_room_is_history() -> None:
    messages = [{"role": "system", "content": "rule " * 1_000}, *sample()]
    assert len(shown(clew(messages, 4_000)[0])) <= 4_000
    assert clew(messages, 40_000)[0][0] == messages[0]


def test_a_method_that_counts_characters_keeps_to_tokens() -> None:
    messages = plant(5, 60_000).messages
    found = in_tokens(newest, messages)(messages, 5_000)
    assert isinstance(found, str)
    assert 4_000 < counter_for("gpt-4o").text(found) <= 5_000


def test_every_peer_is_run_or_named_as_missing() -> None:
    found, lines = installed()
    assert [line.partition(":")[0] for line in lines] == [peer.name for peer in PEERS]
    assert all(("skipped" in line) == (peer.name not in found) for peer, line in zip(PEERS, lines, strict=True))


# --- folds, corpus, picture, command ----------------------------------------------------------------------------------


async def test_folds_are_counted_until_there_are_enough() -> None:
    folds = (await fold_often(plant(7, 60_000), 16_000, 3, quiet)).rows
    assert [fold.number for fold in folds] == [1, 2, 3]
    for before, after in pairwise(folds):
        assert before.said < after.said
        assert before.planted <= after.planted
        assert after.in_view >= before.in_view - after.drifted
    assert all(fold.in_view + fold.recallable <= fold.planted for fold in folds)


SCORER = """
import gzip, json
def read(path):
    with gzip.open(path, "rt") as f:
        yield from map(json.loads, f)
def text_of(result):
    return result if isinstance(result, str) else "\\n".join(str(m.get("content")) for m in result)
def kept(text, need):
    return need["text"] in text
def bound(text, need):
    return need["text"] in text and need["anchors"][0] in text
def tail(messages, size):
    return text_of(messages)[-size:]
head_and_tail = masked_tail = tail
"""


def corpus_in(folder: Path) -> Path:
    """A corpus of one session with a cut at a share of it and a real one."""
    messages = [{"role": "user", "content": "The port is 28711. " + "Nothing more. " * 300}]
    talk = {"id": "one", "messages": messages * 2, "real_compactions": [{"index": 1, "summary": "port 28711"}]}
    need = {"text": "28711", "anchors": ["port"], "cue": "the port is ____", "distance_tokens": 5_000}
    cuts = [
        {"conv_id": "one", "cut_kind": kind, "cut_index": 1, "tokens_before": 1_000, "needed": [need]}
        for kind in ("fraction:0.6", "real:auto")
    ]
    (folder / "dev").mkdir()
    (folder / "score.py").write_text(SCORER)
    for name, rows in (("talks", [talk]), ("probes", cuts)):
        with gzip.open(folder / "dev" / f"{name}.jsonl.gz", "wt") as file:
            file.write("\n".join(map(json.dumps, rows)))
    return folder


def test_a_corpus_judges_by_its_own_scorer(tmp_path: Path) -> None:
    corpus = Corpus(corpus_in(tmp_path) / "dev")
    shares = corpus.judge_shares((0.1, 1.2), {"newest": newest, **corpus.baselines}, quiet)
    kept = {(r.method, r.target): r.kept for r in shares.rows}
    assert [kept[method, share] for method in ("newest", "tail") for share in (0.1, 1.2)] == [0, 1, 0, 1]
    real = corpus.judge_real({"tail": corpus.baselines["tail"]}, quiet)
    assert [(r.method, r.kept, r.bound) for r in real.rows] == [("LLM summary", 1.0, 1.0), ("tail", 0.0, 0.0)]


def test_a_folder_without_a_scorer_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"score\.py"):
        Corpus(tmp_path)


def curve_of(*methods: str) -> Curve:
    rows = [
        Row(method, size, size, int(size * 1e5), share, share, share, 0.1)
        for method, share in zip(methods, (0.9, 0.2, 0.2, 0.0), strict=False)
        for size in (0.05, 0.1)
    ]
    return Curve("a <curve>", 40, 40, tuple(rows))


def test_the_picture_is_xml_and_names_every_method_of_every_curve() -> None:
    root = ElementTree.fromstring(picture([curve_of("clew", "a & b", "c", "d"), curve_of("clew", "c")]))
    said = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [said.count(name) for name in ("clew", "a & b", "c", "d")] == [2, 1, 2, 1]
    labels = [e for e in root.iter("{http://www.w3.org/2000/svg}text") if e.get("class") == "name"][:4]
    heights = sorted(float(e.get("y", 0)) for e in labels)
    assert all(b - a >= 13 for a, b in pairwise(heights))


def test_the_verdict_says_what_is_wanted() -> None:
    planted = plant(7, 60_000)
    cut = Cut("all", planted.messages, 60_000, 60_000, [Need(f.value, f.question) for f in planted.facts])
    curve = judge_all(
        "x", {6_000.0: [cut]}, {"clew": lambda messages, size: shown(messages)}, Words(lambda t: 0), quiet
    )
    assert verdict(curve, 6_000) == (True, "wanted at 6,000 tokens: 36 in view, 40 with one call; clew has 40 and 40")


def test_long_sessions_are_to_become_smaller_still() -> None:
    assert (goal_of(200_000), goal_of(1_000_000)) == (20_000, 40_000)


def test_without_a_corpus_there_is_none_to_run(tmp_path: Path) -> None:
    names = [part.name for part in parts(Plan())]
    assert not any("corpus" in name for name in names)
    assert len(list(parts(Plan(corpus=corpus_in(tmp_path))))) == len(names) + 2


@pytest.mark.nightly
def test_the_command_writes_figures_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures, drawn = tmp_path / "bench.json", tmp_path / "bench.svg"
    options = ["--quick", "--tokens", "20000", "--folds", "1", "--json", str(figures), "--plot", str(drawn)]
    facts.main(options)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
    found = json.loads(figures.read_text())["found"]
    methods = {row["method"] for row in found["facts planted in 20,000 tokens"]["rows"]}
    assert methods == {"clew", "newest", "clear results"}
    assert found["CPU beside counting tokens"]["rows"][0]["seconds"] > 0
    ElementTree.parse(drawn)
