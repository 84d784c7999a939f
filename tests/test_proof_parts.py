"""The parts of `make proof`: their material is what it says it is, and their judges judge right."""

import gzip
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from benchmark.generators import KINDS, Planting, compose
from benchmark.judging import Need, Words, shown
from benchmark.memories import BM25, Question, Spoken, holds, locomo, questions
from benchmark.public import Source, Unreachable
from clew import compress
from clew.wire import check
from proofs import compactbench, compint, load, longmemeval, lostfacts, planted, validity
from proofs.beside import cut

# --- planted facts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_composed_session_is_valid_and_says_every_value_once(kind: str) -> None:
    session = compose(kind, 11, 6_000)
    assert not check({"messages": session.messages}, "openai_chat")
    texts = [shown([message]) for message in session.messages]
    assert session.plantings
    for planting in session.plantings:
        places = [[n for n, text in enumerate(texts) if Words().kept(text, Need(v, ""))] for v in planting.values]
        assert all(len(place) == 1 for place in places), planting
        assert places == sorted(places), "the true value is the last one"
        assert planting.about in planting.question


def test_a_seed_composes_one_session_and_another_seed_another() -> None:
    assert compose("support", 1, 5_000) == compose("support", 1, 5_000)
    assert compose("support", 1, 5_000).plantings != compose("support", 2, 5_000).plantings


def test_an_old_value_alone_is_stale_and_beside_the_new_one_it_is_not() -> None:
    planting = Planting("the port", "What is the port?", ("21111", "22222"))
    judge = Words()
    assert planted.judged_fact(planting, "port 21111", None, judge) == (False, False, True)
    assert planted.judged_fact(planting, "port 21111, now 22222", None, judge) == (True, False, False)
    assert planted.judged_fact(planting, "", lambda asked: "22222", judge) == (False, True, False)


def test_a_result_that_is_missing_or_too_large_keeps_nothing() -> None:
    session = compose("sales", 3, 5_000)
    assert planted.judged(session, None, None, 100).unusable == 1
    assert planted.judged(session, shown(session.messages), None, 100).unusable == 1
    everything = planted.judged(session, shown(session.messages), None, 10_000)
    assert (everything.in_view, everything.stale) == (everything.facts, 0)


# --- questions about long chats ---------------------------------------------------------------------------------------

ITEM = {
    "question_id": "q1",
    "question": "What is the name of my cat?",
    "answer": "Luna",
    "answer_session_ids": ["s2"],
    "haystack_session_ids": ["s1", "s2"],
    "haystack_sessions": [
        [{"role": "user", "content": "I have a dog."}],
        [{"role": "user", "content": "My cat Luna sleeps.", "has_answer": True}],
    ],
}
LINE = {
    "id": "q1",
    "question": "What is the name of my cat?",
    "answer": "Luna",
    "evidence": ["s2"],
    "sessions": [
        {"id": "s1", "turns": [{"role": "user", "content": "I have a dog."}]},
        {"id": "s2", "turns": [{"role": "user", "content": "My cat Luna sleeps.", "evidence": True}]},
    ],
}


def test_questions_are_read_from_the_authors_file_and_from_lines(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "longmemeval_s.json").write_text(json.dumps([ITEM, {**ITEM, "question_id": "q2_abs"}]))
    with gzip.open(tmp_path / "b" / "dev.jsonl.gz", "wt") as file:
        file.write(json.dumps(LINE))
    (one,), (other,) = questions(tmp_path / "a"), questions(tmp_path / "b")
    assert one == other
    assert one.literal
    assert one.marked


def test_material_of_others_is_fetched_at_a_fixed_commit_or_read_where_somebody_has_it(tmp_path: Path) -> None:
    folder = tmp_path / "there" / "tasks"
    folder.mkdir(parents=True)
    (folder / "lme_1.json").write_text(json.dumps(ITEM))
    git = ["git", "-C", str(tmp_path / "there"), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "some"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    source = Source("some", (tmp_path / "there").as_uri(), commit, "tasks")
    assert [q.answer for q in questions(source.place(None, tmp_path / "here"))] == ["Luna"]
    (tmp_path / "data" / "some").mkdir(parents=True)
    assert source.place(tmp_path / "data", tmp_path / "here") == tmp_path / "data" / "some"
    with pytest.raises(Unreachable, match="DIR/some"):
        replace(source, commit="0" * 40).place(None, tmp_path / "other")


def test_locomo_is_read_with_its_evidence(tmp_path: Path) -> None:
    turns = [{"speaker": "Ann", "dia_id": "D1:1", "text": "I moved to Bern."}]
    turns.append({"speaker": "Bob", "dia_id": "D1:2", "text": "Nice."})
    asked = [{"question": "Where does Ann live?", "answer": "Bern", "evidence": ["D1:1"]}, {"question": "?"}]
    said = {"speaker_a": "Ann", "speaker_b": "Bob", "session_1": turns, "session_1_date_time": "May"}
    (tmp_path / "locomo10.json").write_text(json.dumps([{"conversation": said, "qa": asked}]))
    ((question,),) = locomo(tmp_path / "locomo10.json")
    assert (question.sessions, question.literal) == (frozenset({"session_1"}), True)


def test_a_hit_counts_by_session_and_by_turn() -> None:
    chat = (Spoken("s1", "user", "a"), Spoken("s2", "user", "b"), Spoken("s2", "user", "c", True))
    found = set(longmemeval.searched("x", Question("?", "c", frozenset({"s2"}), chat), [1, 0, 2]))
    assert found == {"x session 1", "x session 5", "x session 10", "x turn 5", "x turn 10"}


def test_bm25_finds_rare_words_and_answers_are_compared_by_words() -> None:
    assert BM25(["the cat", "the dog and the cat", "the dog"]).ranked("a dog")[0] == 2
    assert holds("Her name is LUNA-bella.", "Luna bella")
    assert not holds("lunatic", "Luna")


def test_a_text_is_cut_to_its_last_tokens() -> None:
    assert cut("word " * 500 + "end", 20).endswith("end")
    assert len(cut("word " * 500, 20)) < 200


# --- public tests -----------------------------------------------------------------------------------------------------

LISTED = 'SSSCS = [{"id": 1, "type": "Output", "sssc": "Answer in rhymes about Zanzibar."}]\nraise SystemExit'


def test_a_constraint_is_said_before_all_else_where_it_should_be() -> None:
    ((kind, sentence),) = compint.constraints(LISTED)
    talk = [{"role": role, "content": f"{n}"} for n in range(5) for role in ("user", "assistant")]
    for position, at in (("top", 0), ("middle", 4), ("bottom", 8)):
        told = compint.said(talk, sentence, position)
        assert [n for n, message in enumerate(told) if message not in talk] == [at]
        assert told[at]["content"] == f"For the rest of this session. answer in rhymes about Zanzibar.\n{at // 2}"
    assert compint.one((("chat", talk), "bottom", (kind, sentence))) == ["chat bottom"]


def test_a_constraint_whose_words_are_not_in_view_is_missed_by_its_kind() -> None:
    talk = [{"role": role, "content": f"Word {n}. " * 90} for n in range(9) for role in ("user", "assistant")]
    too_long = " ".join(f"fog{n}" for n in range(4_000))
    assert compint.one((("chat", talk), "middle", ("Output", too_long))) == ["missed Output"]


def told(session: str, *texts: str, evidence: int = -1) -> tuple[Spoken, ...]:
    return tuple(Spoken(session, "user", text, n == evidence) for n, text in enumerate(texts))


def test_a_fact_is_cut_to_the_messages_around_its_evidence() -> None:
    chat = (*told("s1", "a"), *told("s2", "b", "c", "My cat is Luna, since 2019.", "d", "e", evidence=2))
    fact = lostfacts.fact_of(Question("Which cat?", "The cat Luna (2019)", frozenset({"s2"}), chat, "single"))
    assert [turn.text for turn in fact.turns] == ["c", "My cat is Luna, since 2019.", "d"]
    assert fact.keywords == {"cat", "luna", "2019"}
    assert lostfacts.others([Question("?", "", frozenset({"s2"}), chat)]) == [told("s1", "a")]


def test_facts_stand_evenly_between_chats_and_what_is_compacted_is_counted() -> None:
    facts = [
        lostfacts.Fact(f"Where is the {n}?", frozenset({f"{n}ville"}), told(n, f"The {n} is in {n}ville."))
        for n in ("lantern", "violin", "anvil")
    ]
    chats = [told(f"c{n}", *(f"Talk {n} {k}. " * 200 for k in range(4))) for n in range(90)]
    context = lostfacts.context(facts, chats, Random(1))
    assert {fact for _, fact in context.facts} == set(facts)
    assert all(context.turns[at] == fact.turns[0] for at, fact in context.facts)
    most = lostfacts.compacted((context, "C4", 400))
    least = lostfacts.compacted((context, "C1", 400))
    assert (most["C4 400 of"], least["C1 400 of"]) == (3, 0)
    assert most["C4 400 stand-in"] <= most["C4 400 recall"] == 3


def test_planted_words_are_counted_by_kind_alone_and_in_one_conversation() -> None:
    said = [{"role": "user", "content": "Never paint the shed green."}, {"role": "assistant", "content": "Fine."}]
    case = {"messages": said, "items": [["rule", "paint the shed green"], ["person", "Ottilie"]]}
    found = compactbench.judged([case])
    assert (found["left whole"], found["kinds"], found["alone"]) == (1, {"rule": 1, "person": 1}, {"rule": 1})
    assert [row["kept"] for row in found["joined"]] == [{"rule": 1}] * 4


# --- validity ---------------------------------------------------------------------------------------------------------


def test_sound_histories_are_taken_as_they_are_and_damaged_ones_are_not() -> None:
    for number in range(12):
        messages, damaged = validity.history(4, number)
        assert bool(check({"messages": messages}, "openai_chat")) == damaged


def test_a_provider_says_why_it_refuses() -> None:
    alone = [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "x", "content": "42"}]
    with validity.provider() as ask:
        assert ask([{"role": "user", "content": "hi"}], 4_000) == ""
        assert ask(alone, 4_000) == "call or result alone"
        assert ask([{"role": "user", "content": "hi " * 9_000}], 4_000) == "too large"
        assert ask([{"role": "assistant", "content": None}], 4_000) == "empty or malformed"


# --- load -------------------------------------------------------------------------------------------------------------


def test_a_gateway_that_fails_under_load_is_a_row_that_says_so() -> None:
    direct = {"target": "direct", "size": "4 kB", "clients": 1, "per_second": 900.0, "first_ms": 1.0, "cpu_ms": 0.0}
    ours = {**direct, "target": "clew", "per_second": 300.0, "first_ms": 3.5, "cpu_ms": 1.5}
    theirs = {"target": "LiteLLM", "size": "4 kB", "clients": 1, "failed": "500"}
    log = {"calls answered": 63, "calls in the log": 63, "faults found": 0}
    figures = {"rows": [direct, ours, theirs], "megabytes": {"clew": [90, 120]}, "log": log, "litellm": "1.0"}
    told = load.blocks(figures)["load"]
    assert "| 4 kB | 1 | 900 | 300 | 2.5 | 1.5 | failed: 500 |  |  |" in told
    assert "63 calls were answered" in told


@pytest.mark.parametrize("nothing", [{"content": None}, {}])
def test_a_message_that_says_nothing_gets_a_word_and_one_that_refuses_does_not(nothing: dict[str, None]) -> None:
    def sent(message: dict[str, object]) -> dict[str, object]:
        return compress([{"role": "user", "content": "hi"}, message, {"role": "user", "content": "on"}]).messages[1]

    assert sent({"role": "assistant", **nothing, "name": "ann"}) == {
        "role": "assistant",
        "name": "ann",
        "content": "[empty]",
    }
    refusing: dict[str, object] = {"role": "assistant", "content": None, "refusal": "no"}
    assert sent(refusing) == refusing
