"""What is the same, what is another conversation, and what clients ask beside theirs."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

import clew
from clew import Budget, Engine, Request
from clew.core.align import Match, Patch
from clew.core.items import Digests, Edit, Frame, Item, Node
from clew.core.view import View
from clew.recognition.agents import same_agent
from clew.recognition.call_ids import is_same_call
from clew.recognition.client_edits import Change, contradicts, is_edit, is_mostly_kept, keeps_newest
from clew.recognition.proof import Past, log_line, logged, taken
from clew.recognition.reading import Entry, unfold
from clew.recognition.sameness import alike, likeness, without_trailing
from clew.recognition.shortening import is_shortened
from clew.recognition.side_requests import summary_at
from clew.store.records import Origin, Place
from clew.store.sql import SQLStore
from clew.store.trace import Trace

Body = dict[str, Any]


def call(id: str, **given: Any) -> Item:
    return Item("call", "assistant", json.dumps(given), "read", id)


def result(id: str, text: str) -> Item:
    return Item("result", "tool", text, call_id=id)


def text(said: str, role: Any = "user") -> Item:
    return Item("text", role, said)


def test_an_id_alone_proves_nothing() -> None:
    assert not alike(call("call_1", path="a"), call("call_1", path="b"))
    assert not alike(result("call_1", "one"), result("call_1", "two"))
    assert alike(call("call_1", path="a"), call("other", path="a"))
    assert not alike(call("c", n=1), call("c", n=True))
    assert not alike(call("c", n=1), call("c", n=1.0))


def test_an_id_behind_a_name_is_the_same_only_where_it_is_a_moment() -> None:
    assert is_same_call(call("1760000000123_0"), call("read__1760000000123_0"))
    assert not is_same_call(call("call_3"), call("read__call_3"))
    assert not is_same_call(call("1760000000123_0"), call("read__1760000000456_0"))


def test_words_of_another_speaker_are_other_words() -> None:
    assert alike(text("Yes."), text("Yes."))
    assert not alike(text("Yes."), text("Yes.", "assistant"))
    assert not alike(text("Yes."), text("Yes.", "system"))


def test_results_of_the_same_words_differ_by_what_is_beside_them() -> None:
    """A picture, and whether the call failed, as each format says it."""

    def read(**beside: Any) -> Item:
        return replace(result("c", "see"), wire={"content": "see", **beside})

    shown = {"type": "base64", "data": "iVBOR"}
    for beside in ({"is_error": True}, {"status": "error"}, {"content": [{"type": "image", "source": shown}]}):
        assert alike(read(**beside), read(**beside))
        assert not alike(read(), read(**beside)), beside
    assert alike(read(), read(is_error=False, status="success"))


def test_a_note_is_new_each_time_only_where_the_log_ends_with_it() -> None:
    note, said = text("The date has changed.", "system"), text("Read it.")
    now = [said, text("Ok.", "assistant"), text("Go on."), note]
    assert without_trailing([Match(0, 0), Match(1, 3)], now, said=2) == [Match(0, 0)]
    assert without_trailing([Match(0, 0), Match(1, 3)], now, said=4) == [Match(0, 0), Match(1, 3)]


def test_a_result_is_the_same_only_if_its_call_is() -> None:
    old = {0: call("c", path="a"), 1: result("c", "ok")}
    assert likeness(old, {0: call("x", path="a"), 1: result("x", "ok")}, 16) == [Match(0, 0), Match(1, 1)]
    assert likeness(old, {0: call("c", path="b"), 1: result("c", "ok")}, 16) == []
    assert likeness({1: result("c", "ok")}, {1: result("c", "ok")}, 16) == [Match(1, 1)]  # its call is outside


@pytest.mark.parametrize(
    ("was", "now", "same"),
    [
        ("Read it.", "Read it.\n<system-reminder>Be brief.</system-reminder>", True),
        ("Read it.<system-reminder>1</system-reminder>", "Read it.<system-reminder>2</system-reminder>", True),
        ("Deploy it.", "Deploy it. But never on a Friday.", False),
        ("<system-reminder>of Alice</system-reminder>", "<system-reminder>of Bob</system-reminder>", False),
        ("", "", True),
        ("!", "?", False),
    ],
)
def test_words_are_the_same_under_a_decoration_that_passes(was: str, now: str, same: bool) -> None:
    assert alike(text(was), text(now)) is same


HEAD = "line 1 of the file, which says what is in it\nline 2, which says for whom it is\nline 3"


@pytest.mark.parametrize(
    ("now", "shortened"),
    [
        ("[trimmed]", True),
        ("[Old tool result content cleared]", True),
        (f"{HEAD}\n... [2 lines truncated] ...", True),
        (f"{HEAD} [... omitted ...] to the end of the file", True),
        (f"{HEAD}…12 tokens truncated…to the end of the file", True),
        (f"{HEAD} ... to the end of the file", False),  # anybody may write dots
        (f"{HEAD}…", False),
        ("line 1 [... omitted ...] the file", False),  # as much is left of many
        (f"{HEAD[8:]} [truncated]", False),  # it begins otherwise
        ("[redacted]", False),  # the client does not want it to be seen
        ("CORRECTED: the limit is 4711.", False),
        ("[1, 2]", False),
        ("line 1 [truncated] line 9", False),
        (f"{HEAD} [cut off] line 2 [cut off] the file", False),  # it did not stand there
    ],
)
def test_a_client_that_saves_room_is_told_from_one_that_changes_words(now: str, shortened: bool) -> None:
    assert is_shortened(f"{HEAD}\nline 4 and so on, for a long time, to the end of the file", now) is shortened


def test_words_that_somebody_said_are_never_taken_for_shortened_ones() -> None:
    said, left = f"{HEAD} with the TOKEN-4711 and the rest of it", f"{HEAD} with [… omitted …] the rest of it"
    assert not any(alike(text(said, role), text(left, role)) for role in ("user", "assistant"))
    assert alike(result("r1", said), result("r1", left))


LONG = "This is what the assistant found out about all of it, at some length, so that nobody else says the same. " * 3


def changed(old: list[Item], new: list[Item], equal: list[Match], gaps: list[Patch]) -> Change:
    return Change(gaps, dict(enumerate(old)), new, equal, [], len(old))


def test_a_summary_that_stands_behind_what_it_sums_up_is_only_words() -> None:
    digests = Digests(b"key", "default")
    items = [text("Begin."), text("I do.", "assistant"), text("Go on."), text("All of it was said before.")]
    begin, does, go, told = digests.chain(items)
    edit = Edit("Cut()", (begin.id, does.id), (told,))
    trace = Trace("a branch", said=[Place(n.id, n.content) for n in (begin, does, go)], edits=[edit])
    trace.made = {told.content: [(edit, 0)]}

    def read(*nodes: Node) -> list[Entry]:
        return unfold(trace, [n.content for n in nodes], [n.item for n in nodes])

    assert [entry.id for entry in read(told, go)] == [begin.id, does.id, ""]
    assert [entry.item for entry in read(begin, does, told)] == [begin.item, does.item, told.item]


def test_a_greeting_in_common_is_no_evidence() -> None:
    hello, hi = text("hello"), text("Hi! How can I help you today?", "assistant")
    old = [hello, hi, text("My number is 123-45-6789.")]
    new = [hello, hi, text("How is the weather?"), text("Sunny.", "assistant"), text("Thanks.")]
    assert not is_edit(changed(old, new, [Match(0, 0), Match(1, 1)], [Patch(2, 3, 2, 2)]))


@pytest.mark.parametrize(("put", "kept"), [(100, True), (101, False)])
def test_what_stays_after_the_first_change_is_at_least_twice_as_long_as_what_was_put_in(put: int, kept: bool) -> None:
    id = "toolu_01A2b3C4d5E6f7G8h9"
    new = [text("Begin."), call(id), result(id, "y" * put), text("a" * 200, "assistant")]
    same = [Match(0, 0), Match(1, 1), Match(3, 3)]
    assert is_mostly_kept(Change([Patch(2, 3, 2, 3)], {2: result(id, "x")}, new, same, [], 4)) is kept


def test_one_long_file_that_both_have_read_is_one_thing_in_common() -> None:
    id = "toolu_01A2b3C4d5E6f7G8h9"
    new = [text("Begin."), call(id), result(id, "y" * 150), result("file", "a" * 9_000)]
    same = [Match(0, 0), Match(1, 1), Match(3, 3)]
    change = Change([Patch(2, 3, 2, 3)], {2: result(id, "x")}, new, same, [], 4)
    assert not is_mostly_kept(change)


def test_the_newest_message_that_grows_or_shrinks_once_answered_is_no_fork() -> None:
    begun = [text("Hello."), text(LONG, "assistant"), text("Begin."), text(LONG, "assistant")]
    old = [*begun, text("file.py:\n1\n2\n3\n\nPlease rename it to main.py.")]
    new = [*begun, text("Please rename it to main.py."), text("Done.", "assistant"), text("Thanks.")]
    same, gaps = [Match(i, i) for i in range(4)], [Patch(4, 5, 4, 4)]
    assert is_edit(changed(old, new, same, gaps))
    assert not is_edit(changed(old[2:], new[2:], same[:2], [Patch(2, 3, 2, 2)]))  # all may have been told so at first
    for other in ("Please delete all of it.", "main"):  # a word of it is not what was left of it
        new[4] = text(other)
        assert contradicts(changed(old, new, same, gaps))


def test_who_takes_back_the_last_answer_is_another_conversation() -> None:
    old = [text("Begin."), text(LONG, "assistant"), text("Go on."), text(LONG, "assistant"), text("And?")]
    same = [Match(0, 0), Match(1, 1), Match(2, 2), Match(4, 3)]
    assert keeps_newest(changed(old, old, [*same, Match(3, 3)], []))
    assert not keeps_newest(changed(old, [*old[:3], old[4]], same, [Patch(3, 4, 3, 3)]))


def test_a_summary_in_the_middle_of_a_conversation_begins_none() -> None:
    told = text("This session is being continued from a previous conversation that ran out of context. It was about x.")
    assert summary_at([told]) == 0
    assert summary_at([told], before=2, is_answered=True) == 0
    assert summary_at([told], before=40, is_answered=True) is None


def test_a_tool_that_says_something_else_is_another_try() -> None:
    old = [text("Begin."), text(LONG, "assistant"), call("c"), result("c", "ALICE")]
    new = [*old[:3], result("c", "BOB"), text("Done.", "assistant")]
    assert contradicts(changed(old, new, [Match(i, i) for i in range(3)], [Patch(3, 4, 3, 3)]))


def test_another_agent_has_other_tools_and_another_prompt() -> None:
    def frame(system: str, *tools: str) -> Frame:
        return Frame("openai_chat", system=system, tools=tuple({"function": {"name": t}} for t in tools))

    main = frame("You are a coding agent. It is 10:00.", "read", "write", "shell")
    assert same_agent(main, frame("You are a coding agent. It is 10:01.", "read", "write", "shell"))
    assert same_agent(main, frame("You are a coding agent. It is 10:01."))  # sums up without tools
    assert same_agent(main, frame("Speak like a pirate.", "read", "write", "shell", "more"))
    assert not same_agent(main, frame("Name this talk in five words at most."))
    assert not same_agent(main, frame("Explore this folder for somebody else.", "glob", "grep"))
    assert same_agent(frame("a"), frame("b"))  # no tools: a person may change how a chat is to answer


# --- through the engine ---------------------------------------------------------------------------------------------

TOOLS = [{"name": n, "input_schema": {"type": "object"}} for n in ("read", "write", "shell")]


def request(messages: list[Body], system: str = "You are a coding agent in /srv/app.", tools: Any = TOOLS) -> Body:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": system, "tools": tools, "messages": messages}
    return {k: copy.deepcopy(v) for k, v in body.items() if v}


def work(turns: int, first: str = "Please read all the files.") -> list[Body]:
    said: list[Body] = [{"role": "user", "content": first}]
    for n in range(turns):
        use = {"type": "tool_use", "id": f"t{n}", "name": "read", "input": {"path": f"f{n}"}}
        said += [{"role": "assistant", "content": [{"type": "text", "text": f"I read file {n} now."}, use]}]
        found = {"type": "tool_result", "tool_use_id": f"t{n}", "content": f"line of file {n}, and more of it. " * 40}
        said += [{"role": "user", "content": [found]}]
    return said


async def origin(store: SQLStore, branch: str) -> tuple[str, str | None]:
    """Why a branch began, and which one it comes after."""
    [info] = [b for b in await store.branches("default") if b.id == branch]
    before = await store.ancestry("default", branch)
    return info.cause, before[0][0] if before else None


@pytest.fixture(params=[None, "session-7"], ids=["unnamed", "named"])
def session(request: pytest.FixtureRequest) -> str | None:
    name: str | None = request.param
    return name


@pytest.fixture(params=["warm", "cold"])
def talk(request: pytest.FixtureRequest, store: SQLStore, session: str | None) -> Any:
    made = Engine(store, Budget(window=6_000, reserve=500))

    async def send(body: Body) -> View:
        engine = made if request.param == "warm" else Engine(store, Budget(window=6_000, reserve=500))
        view = await engine.prepare(Request(body, session=session))
        assert clew.wire.check(clew.body(view), "anthropic") == []
        return view

    return send


async def test_new_conversations_with_the_same_reminders_are_apart_from_the_first_word_on(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=6_000))
    reminders = [{"type": "text", "text": f"<system-reminder>{n}</system-reminder>"} for n in range(3)]
    branches = set()
    for asked in ("What is this?", "Who wrote that?", "Rename it."):
        first = {"role": "user", "content": [*reminders, {"type": "text", "text": asked}]}
        body = request([first, {"role": "system", "content": "Be brief."}])
        branches.add((await engine.prepare(Request(body))).branch)
    assert len(branches) == 3


async def test_what_another_agent_asks_with_the_same_history_leaves_the_conversation_alone(talk: Any) -> None:
    main = await talk(request(work(3)))
    memory = {"role": "user", "content": "Which facts should be kept?"}
    aside = await talk(request([*work(3), memory], "You extract memories from talks.", [{"name": "memorise"}]))
    again = await talk(request(work(4)))
    assert aside.branch != main.branch
    assert again.branch == main.branch
    assert "memor" not in json.dumps(clew.body(again))


async def test_a_sub_agent_under_the_name_of_a_session_has_a_branch_of_its_own(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=60_000))
    sub_system, sub_tools = "Explore this folder, and report.", [{"name": "glob"}, {"name": "grep"}]
    branches: dict[str, set[str]] = {"main": set(), "sub": set()}
    for turn in range(1, 4):
        for who, body in (
            ("main", request(work(turn))),
            ("sub", request(work(turn, "Where is the door?"), sub_system, sub_tools)),
        ):
            branches[who].add((await engine.prepare(Request(body, session="s"))).branch)
    assert [len(b) for b in branches.values()] == [1, 1]
    assert not branches["main"] & branches["sub"]
    [sub] = branches["sub"]
    [first] = [s for s in await store.sessions("default", sub) if s.number == 1]
    assert (first.cause, first.parent) == ("beside", *branches["main"])
    assert await store.ancestry("default", sub) == [], "by the name alone it sees nothing of the session"


@pytest.mark.parametrize("system", ["You are a title generator", "Find a few words for what is said."])
async def test_a_title_is_asked_for_beside_the_session_even_if_it_is_asked_first(store: SQLStore, system: str) -> None:
    engine = Engine(store, Budget(window=60_000))
    asked = [{"role": "user", "content": "Name this:\nPlease read all the files."}]
    title = await engine.prepare(Request(request(asked, system, None), session="s"))
    main = await engine.prepare(Request(request(work(1)), session="s"))
    again = await engine.prepare(Request(request(work(2)), session="s"))
    assert title.branch != main.branch == again.branch


SUM_UP = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary."


async def test_a_client_that_sums_up_by_itself_sees_its_whole_history_if_it_fits(store: SQLStore) -> None:
    for name in (None, "s"):
        engine = Engine(store, Budget(window=6_000, reserve=500))
        for turn in range(1, 14):
            main = await engine.prepare(Request(request(work(turn, f"Go, {name}.")), session=name))
        assert main.stand_ins()
        roomy = Engine(store, Budget(window=12_000, reserve=500))
        said = work(13, f"Go, {name}.")
        said[-1]["content"].append({"type": "text", "text": SUM_UP})
        asked = await roomy.prepare(Request(request(said), session=name))
        assert clew.body(asked)["messages"] == said
        assert await origin(store, asked.branch) == ("subagent", main.branch)
        again = await engine.prepare(Request(request(work(14, f"Go, {name}.")), session=name))
        assert again.branch == main.branch
        assert SUM_UP not in json.dumps(clew.body(again))


async def test_what_follows_a_clients_own_summary_is_linked_by_proof_alone(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=60_000))
    begins = "This session is being continued from a previous conversation that ran out of context."
    summary = "Files were read, one after the other, and what was in them was told in short: nobody found a fault. " * 4
    on = [{"role": "assistant", "content": "I see."}, *work(5)[-4:]]
    for name in (None, "s"):
        main = await engine.prepare(Request(request(work(5, f"Find the lantern, {name}.")), session=name))
        kept = [{"role": "user", "content": f"{begins}\n\n{summary}{name}"}, *on]
        # Neither the words that both have nor the name prove anything.
        loose = await engine.prepare(Request(request(kept), session=name))
        assert await origin(store, loose.branch) == ("start", None)
        assert await engine.find("default", "lantern", loose.branch) == []
        told = f"<analysis>Hm.</analysis>\n<summary>\n{summary}{name}.</summary>"
        await engine.lineage.answered("default", Past(main.branch, main.seq), taken(told, "summary"))
        on.append({"role": "user", "content": "And now?"})
        kept = [{"role": "user", "content": f"{begins}\n\nSummary:\n{summary}{name}"}, *on]
        linked = await engine.prepare(Request(request(kept), session=name))
        assert await origin(store, linked.branch) == ("compaction", main.branch)
        assert await engine.find("default", "lantern", linked.branch)


async def test_a_summary_that_an_answer_quotes_proves_nothing(store: SQLStore) -> None:
    """What clew gives a client quotes the summary with which its conversation began, in its tag."""
    engine = Engine(store, Budget(window=60_000))
    first = f"<state_snapshot>\n{'Files were read, one after the other; nobody found a fault. ' * 5}</state_snapshot>"
    main = await engine.prepare(Request(request([{"role": "user", "content": first}, *work(3, "Find the lantern.")])))
    told = f"What was said, word for word:\n\nA program: {first}\nUser: Find the lantern."
    await engine.lineage.answered("default", Past(main.branch, main.seq), taken(told, "text"))
    other = await engine.prepare(Request(request([{"role": "user", "content": first}, *work(1, "Something else.")])))
    assert await origin(store, other.branch) == ("start", None)
    assert await engine.find("default", "lantern", other.branch) == []
    on = [
        {"role": "user", "content": f"<state_snapshot>\n{told.replace('</', '< /')}\n</state_snapshot>"},
        *work(1, "On."),
    ]
    assert await origin(store, (await engine.prepare(Request(request(on)))).branch) == ("compaction", main.branch)


def test_of_two_lines_in_a_summary_the_last_one_says_what_it_sums_up() -> None:
    """What it quotes stands above its own."""
    digests = Digests(b"a secret", "default")
    quoted, own = Past("0" * 16, 3), Past("1" * 16, 9)
    said = f"They said:\n{log_line(digests, quoted)}\nAll of it is done.\n{log_line(digests, own)}"
    assert logged(digests, said) == own
    forged = log_line(Digests(b"another", "default"), quoted)
    assert logged(digests, f"{said}\n{forged}") == own
    assert logged(digests, forged) is None


async def test_an_answer_that_two_got_is_no_proof_and_none_that_is_short(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=60_000))
    begins = "This session is being continued from a previous conversation."
    one, two = [await engine.prepare(Request(request(work(3)), session=who)) for who in ("ann", "bob")]
    refusal = "I am sorry, but I cannot sum up a conversation of this kind for you, whoever may ask for it. " * 4
    for view, said in ((one, "Done."), (one, refusal), (two, refusal)):
        await engine.lineage.answered("default", Past(view.branch, view.seq), said)
    for said in ("Done.", refusal):
        view = await engine.prepare(Request(request([{"role": "user", "content": f"{begins} {said}"}])))
        assert await origin(store, view.branch) == ("start", None)


async def test_a_summary_that_quotes_what_stands_beside_it_goes_when_that_is_changed(store: SQLStore) -> None:
    """A rule of the user's is told behind the last block, long after the block that has it."""
    engine = Engine(store, Budget(window=8_000, reserve=500))

    def talk(turns: int, word: str) -> list[Body]:
        reads, rest = work(turns)[1:], {"role": "assistant", "content": "Read."}
        rule, on = ({"role": "user", "content": said} for said in (f"Never touch {word}.", "Go on."))
        return [*work(0), *reads[:2], rest, rule, *reads[2:4], rest, on, *reads[4:]]

    for turn in range(3, 30):
        view = await engine.prepare(Request(request(talk(turn, "OLDWORD"))))
    told = [n.item.text for n in view.nodes if n.id in view.stand_ins()]
    assert "“Never touch OLDWORD.”" in told[-1]
    after = await engine.prepare(Request(request(talk(30, "NEWWORD"))))
    assert "OLDWORD" not in json.dumps(clew.body(after))
    assert "NEWWORD" in json.dumps(clew.body(after))


async def test_sub_agents_of_two_sessions_with_the_same_task_are_apart(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=60_000))
    system, tools = "Explore this folder, and report.", [{"name": "glob"}, {"name": "grep"}]
    task = request([{"role": "user", "content": "Where is the door?"}], system, tools)
    branches = []
    for name in ("ann", "bob"):
        main = await engine.prepare(Request(request(work(2, f"The secret of {name}.")), session=name))
        branches.append((await engine.prepare(Request(task, session=name))).branch)
        # Whose parent the host names is another one, even under a name that another parent's has, too.
        child = Request(task, session="explorer", origin=Origin("subagent", main.branch))
        branches.append((await engine.prepare(child)).branch)
        branches.append((await engine.prepare(child)).branch)
    branches.append((await engine.prepare(Request(task))).branch)
    assert len(set(branches)) == 5
    seen = ("", "ann", "ann", "", "bob", "bob", "")
    for branch, own in zip(branches, seen, strict=True):
        found = await engine.answer("default", "The secret of ann and of bob", branch)
        assert [name for name in ("ann", "bob") if f"The secret of {name}." in found] == [own][: len(own)]
