"""What compactions of other agents kept, lost, and made them look up again: laws, and each agent's own files."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import cases
from auditing import (
    MODEL,
    Calls,
    Message,
    agent,
    all_of,
    counts,
    histories,
    one,
    session,
    summaries,
    through,
    user,
)
from clew.audit import FACT_KINDS, AuditReport, FileAudit, audited
from clew.audit.kinds import facts_in, numbers, words
from clew.audit.sentences import Retelling, decisions, rules
from clew.audit.survival import Files, Part, ShownText
from clew.catalog import lookup
from clew.sessions.transcripts import AGENTS, WRITERS, write
from clew.wire.formats.anthropic import codec as anthropic

AFTER = [*user("Go on."), *agent("Fine.")]


# --- laws -----------------------------------------------------------------------------------------------------------


@given(histories, st.sampled_from(["claude-code", "pi", "opencode", "codex"]))
def test_a_summary_that_holds_everything_keeps_everything(history: list[Message], format: str) -> None:
    [found] = through(session(history, AFTER, summaries=[all_of(history)]), format)
    assert all(kept == before for kept, before in counts(found).values()), counts(found)


@given(histories)
def test_a_summary_that_holds_nothing_keeps_nothing(history: list[Message]) -> None:
    found = one(session(history, AFTER, summaries=[""]))
    assert all(kept == 0 for kept, _ in counts(found).values())


@settings(max_examples=cases(50, dear=True))
@given(histories, summaries, summaries, st.text(max_size=80))
def test_more_text_never_holds_less(history: list[Message], summary: str, more: str, noise: str) -> None:
    part = Part(fact for m in history for item in anthropic.read(m, "message") for fact in facts_in(item))
    held = part.in_view(ShownText([summary]))
    for longer in (f"{summary}\n{more}\n{noise}", f"{noise}\n{more}\n{summary}"):
        now = part.in_view(ShownText([longer]))
        assert all(held[kind] <= now[kind] for kind in FACT_KINDS)


@given(histories, summaries)
def test_what_is_said_twice_counts_once(history: list[Message], summary: str) -> None:
    once, twice = (one(session(said, AFTER, summaries=[summary])) for said in (history, [*history, *history]))
    assert counts(once) == counts(twice)


@given(histories, histories, summaries)
def test_nothing_is_kept_or_needed_that_was_not_there(
    history: list[Message], later: list[Message], summary: str
) -> None:
    for kind, count in one(session(history, later, summaries=[summary])).kinds.items():
        assert 0 <= count.kept <= count.before, kind
        assert 0 <= count.needed <= count.before - count.kept, kind


@given(histories, summaries)
def test_the_format_of_a_file_makes_no_difference(history: list[Message], summary: str) -> None:
    made = session(history, AFTER, summaries=[summary or "(nothing)"])
    found = [
        [(counts(each), each.tokens_after) for each in through(made, f)] for f in ("claude-code", "pi", "opencode")
    ]
    assert found[0] == found[1] == found[2]


@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4).map("/".join), max_size=8))
def test_a_file_is_one_however_it_is_written_and_is_named_by_its_own_path(paths: list[str]) -> None:
    files = Files(paths)
    assert files.named_in(files.all) == set(files.all)
    assert len(Files([*files.all, *paths]).all) == len(files.all)
    for path in paths:
        assert any(f"/{file}".endswith(f"/{path}") for file in files.all)


# --- what is counted ------------------------------------------------------------------------------------------------


def test_a_short_path_names_a_file_only_if_no_other_ends_so() -> None:
    files = Files(["/repo/src/view.py", "/repo/lib/view.py", "README.md", "src/view.py"])
    assert set(files.all) == {"/repo/src/view.py", "/repo/lib/view.py", "README.md"}
    assert files.named_in(["view.py"]) == set()
    assert files.named_in(["lib/view.py"]) == {"/repo/lib/view.py"}
    assert files.named_in(["/home/me/README.md"]) == {"README.md"}
    assert files.named_in(["/other/lib/view.py"]) == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It took 3.5 seconds and 12 MB, 40 % less", ["3.5s", "12mb", "40%"]),
        ("4,812 requests on port 8080 for $1,200.50", ["4812", "8080", "$1200.50"]),
        ("in 2026 with 3 files, id 2734651385, version 1.2.3, at 12:30, src/4812/x", []),
    ],
)
def test_numbers_are_measured_ones(text: str, found: list[str]) -> None:
    assert list(numbers(text)) == found


def test_words_are_told_by_kind() -> None:
    text = "src/a.py, handleRequest, MAX_SIZE, https://x.org/a/ ValueError; not and/or, 12-char, github.com/x/y.Z."
    assert {(fact.kind, fact.text) for fact in words(text)} == {
        ("paths", "src/a.py"),
        ("names", "handleRequest"),
        ("names", "MAX_SIZE"),
        ("links", "https://x.org/a"),
        ("errors", "ValueError"),
    }


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("We decided to store sessions in one SQLite file.", True),
        ("Use the strong types instead of strings everywhere.", True),
        ("For hooks, we should silently skip broken repositories rather than fail.", True),
        ("The simplest fix is to merge both persistence tests.", True),
        ("I'll put them in paths.go since it already centralises these constants.", True),
        ("The parser returns an empty list instead of raising the error.", False),
        ("Should we use Postgres instead of Redis for the queue?", False),
        ("Now let me run the whole test suite again.", False),
    ],
)
def test_a_decision_chooses_between_ways(text: str, counts: bool) -> None:
    assert bool(list(decisions(text))) is counts


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Never commit directly to the release branch.", True),
        ("You must keep the public interface of the parser stable.", True),
        ("the script only needs one variable, but source executes the entire file", False),
        ("Please look into the failing login test.", False),
    ],
)
def test_a_rule_demands_or_forbids(text: str, counts: bool) -> None:
    assert bool(list(rules(text))) is counts


def test_a_sentence_is_told_in_other_words_but_not_by_words_that_lie_about() -> None:
    said = "We decided to store sessions in one SQLite file instead of many JSON files."
    assert Retelling("Storage: sessions are stored in a single SQLite file, not in JSON files.").tells(said)
    far = "sessions " + "so and so " * 60 + "sqlite " + "so and so " * 60 + "store json files"
    assert not Retelling(far).tells(said)


PORT = "The port of s0 is 4017 and must never change."
ROUNDING = "I decided to use Decimal instead of float for amounts because rounding lost 3 cents in every 10,000 rows."


@pytest.mark.parametrize(
    ("said", "summary", "told"),
    [
        (PORT, "The port of s4 is 4417 and must never change.", False),
        (PORT, "The port of s0 is 4417 and must never change.", False),
        (PORT, "The port of s4 is 4017 and must never change.", False),
        (PORT, "The user fixed the port of s0: it is 4017, no change allowed.", True),
        (PORT, "Ports:\n- s0: port 4017\n- s1: port 4117\nNo port may ever change.", True),
        (ROUNDING, "Amounts use Decimal, not float, because rounding lost 3 cents per 10,000 rows.", True),
        (ROUNDING, "Amounts use Decimal, not float, because rounding lost three cents per 10000 rows.", True),
        (ROUNDING, "Amounts use Fraction, not float, because rounding lost 3 cents per 10,000 rows.", False),
        ("Always keep at most 5 MB of cache on disk for shelf.", "Cache on disk for shelf: at most 50 MB.", False),
        (
            "Do not touch db/schema.sql, the auditors have signed it.",
            "The auditors signed schema.sql: no touching.",
            True,
        ),
        (
            "Do not touch db/schema.sql, the auditors have signed it.",
            "Auditors signed tables.sql: do not touch.",
            False,
        ),
        (
            "The nightly export must finish before 05:30 each day.",
            "The nightly export must finish before 06:30.",
            False,
        ),
    ],
)
def test_a_sentence_is_told_with_its_own_numbers_names_and_files(said: str, summary: str, told: bool) -> None:
    assert Retelling(f"Some words before it.\n{summary}\nSome words after it.").tells(said) is told


def test_a_number_that_stands_far_from_the_words_does_not_tell_them() -> None:
    far = "The port of s4 is 4417 and must never change. " + "Then so and so was done. " * 20 + "s0 printed 4017 lines."
    assert not Retelling(far).tells(PORT)


def test_what_a_client_says_around_a_summary_is_no_fact_of_the_next_one() -> None:
    frame = "<state_snapshot>\n<key_knowledge>\nsrc/pump.py is done.\n</key_knowledge>\n</state_snapshot>"
    tail = "\n\nIf you need specific details from before compaction, read the full transcript at: /home/me/a/b1.jsonl"
    made = session(user("Begin."), user("Go on."), AFTER, summaries=[frame + tail, "Nothing."])
    later = [*audited(made, content=True)][1]
    assert later.lost["paths"] == ["src/pump.py"]
    assert later.lost["names"] == []


def test_what_clew_marks_in_a_summary_is_no_fact_of_the_next_one() -> None:
    told = (
        "[work log, request 1; a record, not orders; recall 9338646ed3]\nThe user: src/pump.py takes 4,812 ms.\n"
        "(… 17,409 of 20,248 characters out of view; recall b353986176 …]\n[… 1,201 of 9,812 characters out of view; "
        "clew_recall b353986177 …]\n[clew log 9ddb334376a85d2a.49.af4f8655661763f1: all of it is kept, and "
        "`recall` with an id from above gives the original]"
    )
    later = [*audited(session(user("Begin."), user("Go on."), AFTER, summaries=[told, "Nothing."]), content=True)][1]
    assert {kind: lost for kind, lost in later.lost.items() if lost} == {
        "paths": ["src/pump.py"],
        "numbers": ["4812ms"],
    }


def test_a_line_of_a_screen_that_was_pasted_is_no_rule() -> None:
    assert [*rules("╭ - 654274e make sure calling with --agent does all required setup steps")] == []


def test_a_long_id_is_named_by_its_first_signs() -> None:
    history = user("Look at session 28c304f6-3c5f-4539-af1d-07ae450e639d and at 9f3c2ab77d01e4.")
    for summary, kept in (("session `28c304f6`, commit 9f3c2ab", 2), ("28c304f7 and 9f3c2", 0)):
        assert counts(one(session(history, AFTER, summaries=[summary])))["names"] == (kept, 2)


def test_a_command_is_found_as_it_was_run_and_not_as_a_piece_of_another() -> None:
    calls = Calls()
    history = [*user("Begin."), *calls.run("cd /repo && make build 2>&1 | tail -3"), *calls.run("git status")]
    for summary, kept in (
        ("Ran `make build`.", 1),
        ("make  build", 1),
        ("make buildings", 0),
        ("cmake build", 0),
        ("make build:ci", 0),
        ("make build.", 1),
    ):
        assert counts(one(session(history, AFTER, summaries=[summary])))["commands"] == (kept, 1)


def test_what_only_a_result_shows_is_not_counted() -> None:
    history = [*user("Begin."), *Calls().run("ls -R", "src/a.py\nsrc/b.py\n4812 ms\nhandleRequest")]
    assert all(before == 0 for _, before in counts(one(session(history, AFTER, summaries=[""]))).values())


def test_turns_that_stay_are_no_part_of_what_was_to_be_told_and_what_they_show_is_kept() -> None:
    history = [*user("Begin with src/a.py and src/b.py."), *agent("Fine."), *user("Now src/a.py and src/c.py, please.")]
    found = one(session(history, AFTER, summaries=["nothing"], kept=1))
    assert counts(found)["paths"] == (1, 2)


def test_the_second_summary_has_to_tell_what_the_first_one_kept() -> None:
    history = [*user("Never push to the main branch without asking me."), *agent("Reading src/a.py and src/b.py.")]
    made = session(
        history, AFTER, AFTER, summaries=["The user: never push to the main branch without asking. a.py", "-"]
    )
    first, second = audited(made)
    assert (counts(first)["paths"], counts(second)["paths"]) == ((1, 2), (0, 1))
    assert (counts(first)["rules"], counts(second)["rules"]) == ((1, 1), (0, 1))


def test_codex_keeps_what_the_user_typed_beside_its_summary() -> None:
    made = session([*user("Look at src/a.py."), *agent("And at src/b.py.")], AFTER, summaries=["nothing"])
    assert counts(through(made, "claude-code")[0])["paths"] == (0, 2)
    assert counts(through(made, "codex")[0])["paths"] == (0, 1)  # the user's stays as it was: nothing to be told


def test_a_sealed_summary_and_one_without_a_past_cannot_be_judged() -> None:
    sealed = one(session(user("Look at src/a.py."), AFTER, summaries=[None]))
    [unseen] = audited(session([], AFTER, summaries=["This session is being continued."]))
    assert (sealed.readable, sealed.kinds, sealed.tokens_after, unseen.readable) == (False, {}, None, False)
    assert AuditReport.of([], [FileAudit("f", 1, 1, [sealed, unseen])]).totals.unreadable == 2


# --- looked up again ------------------------------------------------------------------------------------------------

TEXT = "".join(f"{n:>6}\tline {n} of the file\n" for n in range(1, 41))


def test_a_file_that_is_read_again_after_a_compaction_counts_once_with_its_tokens_and_price() -> None:
    calls = Calls()
    history = [*user("Begin."), *calls.read("/repo/a.py", TEXT)]
    later = [*user("Go on."), *calls.read("/repo/a.py", TEXT), *calls.read("/repo/a.py", TEXT)]
    found = one(session(history, later, summaries=["a.py was read."]))
    prices = lookup(MODEL).prices
    assert prices is not None
    assert (dict(found.again), found.again_tokens > 100) == ({"files": 1}, True)
    assert found.cost == pytest.approx(found.again_tokens * prices.input / 1e6)


def test_what_is_new_is_not_looked_up_again() -> None:
    calls = Calls()
    history = [*user("Begin."), *calls.read("/repo/a.py", TEXT), *calls.run("pytest -q tests", "all passed")]
    changed = TEXT.replace("line", "row")
    part = "".join(f"{n:>6}\tanother line {n}\n" for n in range(300, 340))
    later = [
        *user("Go on."),
        *calls.read("/repo/a.py", changed),  # changed all over
        *calls.read("/repo/a.py", part),  # another part
        *calls.read("/repo/b.py", TEXT),  # another file
        *calls.run("pytest -q tests", "all passed"),  # run for what is new
    ]
    assert not one(session(history, later, summaries=["nothing"])).again


def test_what_stayed_in_view_is_not_looked_up_again() -> None:
    calls = Calls()
    history = [*user("Begin."), *calls.read("/repo/a.py", TEXT)]
    later = [*user("Go on."), *calls.read("/repo/a.py", TEXT)]
    assert not one(session(history, later, summaries=["nothing"], kept=2)).again


def test_each_look_up_is_laid_to_the_compaction_that_hid_the_first() -> None:
    calls = Calls()
    first = [*user("Begin."), *calls.read("/repo/a.py", TEXT), *calls.run("git log --oneline", "abc one\ndef two")]
    second = [*user("Go on."), *calls.run("git log --oneline", "abc one\ndef two")]
    third = [*user("On."), *calls.read("/repo/a.py", TEXT), *calls.run("git log --oneline", "abc one\ndef two")]
    found = list(audited(session(first, second, third, summaries=["one", "two"])))
    assert [dict(each.again) for each in found] == [{"commands": 1, "files": 1}, {"commands": 1}]


def test_searches_and_questions_count_too() -> None:
    calls = Calls()
    search = ("Grep", {"pattern": "def main", "path": "/repo"}, "src/a.py:1:def main")
    question = {"questions": [{"question": "Which port?", "options": []}]}
    history = [*user("Begin."), *calls(*search), *calls("AskUserQuestion", question, "8080")]
    later = [*user("Go on."), *calls(*search), *calls("AskUserQuestion", question, "as before: 8080")]
    assert dict(one(session(history, later, summaries=["-"])).again) == {"searches": 1, "questions": 1}


def test_a_lost_file_and_command_that_calls_use_again_were_needed() -> None:
    calls = Calls()
    history = [*user("Begin."), *calls.read("/repo/a.py", TEXT), *calls.run("make build"), *calls.run("make deploy")]
    later = [*user("Go on."), *calls.read("/repo/a.py", "new"), *calls.run("make build")]
    found = one(session(history, later, summaries=["nothing"]))
    assert (found.kinds["paths"].needed, found.kinds["commands"].needed) == (1, 1)
    kept = one(session(history, later, summaries=["a.py, `make build`"]))
    assert (kept.kinds["paths"].needed, kept.kinds["commands"].needed) == (0, 0)


def test_the_price_of_an_unknown_model_is_not_made_up() -> None:
    calls = Calls()
    history, later = ([*user("Begin."), *calls.read("/repo/a.py", TEXT)] for _ in range(2))
    found = one(session(history, later, summaries=["-"], model="nobody-knows-this-1"))
    assert (found.cost, found.again_tokens > 0) == (None, True)


# --- whole files ----------------------------------------------------------------------------------------------------


def test_a_compaction_in_copies_of_a_session_counts_once() -> None:
    made = one(session(user("Look at src/a.py."), AFTER, summaries=["It was about a.py."]))
    report = AuditReport.of([], [FileAudit("one", 1, 1, [made]), FileAudit("two", 1, 1, [made])])
    assert (len(report.compactions), report.repeated, report.sessions) == (1, 1, 2)


@given(histories, summaries, st.sampled_from(sorted(AGENTS.keys() & WRITERS.keys())))
def test_every_file_with_a_compaction_has_its_mark(history: list[Message], summary: str, format: str) -> None:
    data = write(session(history, AFTER, summaries=[summary or "-"]), format)
    assert any(mark in data for mark in AGENTS[format].MARKS)


def test_a_number_beside_another_name_is_another_number() -> None:
    said = Part(words("The table arch-21 has 51,200 rows. A run took 4,100 ms."))
    assert said.in_view(ShownText(["arch-19: 51,200 rows; runs take 4,100 ms."]))["numbers"] == {"4100ms"}
    for told in ("arch-21: 51,200 rows", "It has 51,200 rows.", "arch-19 and arch-21 have 51,200 rows each"):
        assert "51200" in said.in_view(ShownText([told]))["numbers"], told
