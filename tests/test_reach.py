"""Which past a conversation may search, recall, or be answered from: by proof, and never by what is alike."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clew import SQLite
from clew.core.items import Digests, Frame, Item
from clew.gateway.quotes import is_quoted, quoted
from clew.gateway.settings import GatewaySettings
from clew.gateway.speakers import speaker
from clew.recognition.agents import same_instructions
from clew.recognition.continuation import Recognition
from clew.recognition.reach import Before, ProvenPast
from clew.store.records import Place
from clew.store.trace import Trace
from clew.testing import Answer, StrictProvider
from clew.testing.provider import Call
from serving import Served, serving

PATH = "/v1/chat/completions"
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
SYSTEM = {"role": "system", "content": "You are an agent."}
GREETING = "Hello! I am the assistant of Example Bank, and help with accounts, cards, loans and appointments. " * 3
TRACE = (
    "Traceback (most recent call last): File app.py, line 10, in main; ValueError: the value is not valid here. " * 2
)
ALICE = "I am Alice, and my salary is ALICESALARY 90000."
CONTINUED = "This session is being continued from a previous conversation."
SUM_UP = "Your task is to create a detailed summary of the conversation so far"

Message = dict[str, Any]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


def body(*said: Message, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-5.4", "messages": [SYSTEM, *said], "tools": [TOOL], **more}


class Model:
    """A model that looks into its past where it is told to, and is out of order where it is told to be."""

    def __init__(self) -> None:
        self.fails = False
        self.looks = True

    def __call__(self, sent: dict[str, Any]) -> Answer:
        last = sent["messages"][-1]
        names = {tool["function"]["name"] for tool in sent.get("tools", ())}
        if last["role"] == "user" and self.looks and "look back" in last["content"] and "search_history" in names:
            return Answer("", calls=(Call("search_history", {"query": "salary"}),))
        if last["role"] == "user" and SUM_UP in last["content"]:
            return Answer(f"Much was done. {GREETING}")
        return Answer("Busy.", status=529) if self.fails and last["role"] == "tool" else Answer("Done.")


@contextmanager
def gateway(**settings: Any) -> Iterator[tuple[Served, Model]]:
    model = Model()
    with serving(provider=StrictProvider(model), settings=GatewaySettings(**settings)) as served:
        yield served, model


def told(served: Served, said: Sequence[Message], headers: Mapping[str, str] = {}) -> str:
    """All that comes of a request: what the provider hears, and what the client gets."""
    before = len(served.provider.heard)
    got = served.ask(PATH, body(*said), headers)
    return json.dumps([heard.body for heard in served.provider.heard[before:]]) + got.raw.decode()


@pytest.mark.parametrize("fails", [False, True], ids=["answered", "after an error"])
@pytest.mark.parametrize("names", [("sub-of-alice", "sub-of-bob"), ("sub", "sub")], ids=["two names", "one name"])
def test_what_an_agent_asked_aside_is_not_told_to_another_with_the_same_task(
    names: tuple[str, str], fails: bool
) -> None:
    task = [user("Please look back and report.")]
    with gateway(tools=True) as (served, model):
        for who, says in (("alice", ALICE), ("bob", "I am Bob.")):
            told(served, [user(says)], {"x-clew-session": who})
        of = [{"x-clew-session": name, "x-clew-parent": who} for name, who in zip(names, ("alice", "bob"), strict=True)]
        model.fails = fails
        first = told(served, task, of[0])
        assert "ALICESALARY" in first, "her own sub-agent may look there"
        model.fails = False
        assert "ALICESALARY" not in told(served, task, of[1])
        assert "ALICESALARY" not in told(served, [*task, assistant("Done."), user("And now the tests.")], of[1])
        again = told(served, [*task, assistant("Done."), user("And now?")], of[0])
        assert fails or "ALICESALARY" in again, "and it does not forget what it heard"


def test_nor_is_it_read_in_the_log_under_another_system_prompt(tmp_path: Path) -> None:
    said = [user("Please look back."), assistant("Done."), user("And now?"), assistant("Done."), user("And then?")]
    secret = {**SYSTEM, "content": f"You are an agent. {ALICE}"}
    heard = list[list[str]]()
    for system, lengths in ((secret, (1, 3)), (SYSTEM, (5,)), (secret, (5,))):
        provider = StrictProvider(Model())
        with serving(tmp_path / "log.db", provider, settings=GatewaySettings(tools=True)) as served:
            for length in lengths:
                assert served.ask(PATH, {**body(), "messages": [system, *said[:length]]}).status == 200
            heard.append([message["role"] for message in provider.heard[-1].body["messages"]])
    assert "tool" in heard[0]
    assert "tool" not in heard[1]
    assert "tool" in heard[2], "its own is not forgotten"


@pytest.mark.parametrize("result", [True, False], ids=["an equal result", "a greeting"])
@pytest.mark.parametrize("name", ["app", ""], ids=["one name", "no name"])
def test_a_summary_and_some_equal_words_give_no_reach(name: str, result: bool) -> None:
    headers = {"x-session-id": name} if name else {}
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    both: list[Message] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "line of the file\n" * 40},
    ]
    both = both if result else [assistant(GREETING)]
    with gateway(tools=True) as (served, _):
        told(served, [user("hi"), *both, user(ALICE)], headers)
        bob = [user(f"{CONTINUED} Bob asked about cards."), *both, user("Please look back.")]
        assert "ALICESALARY" not in told(served, bob, headers)
        bob += [assistant("Done."), user("Please look back again.")]
        assert "ALICESALARY" not in told(served, bob, headers)
        assert "ALICESALARY" not in told(served, [*bob, assistant("Done."), user(SUM_UP)], headers)


@pytest.mark.parametrize("name", ["/srv/" + "deep/" * 60, "app"], ids=["long", "one for all"])
def test_a_name_gives_no_reach_into_another_history(name: str) -> None:
    alice, bob = (f"{name}alice", f"{name}bob") if len(name) > 200 else (name, name)
    with gateway(tools=True) as (served, _):
        told(served, [user(ALICE), assistant("Noted."), user("thanks")], {"x-clew-session": alice})
        hello = [user("I am Bob, hello there. Please look back.")]
        assert "ALICESALARY" not in told(served, hello, {"x-clew-session": bob})
        said = [*hello, assistant("Done."), user(SUM_UP)]
        assert "ALICESALARY" not in told(served, said, {"x-clew-session": bob})
        # Nor does the agent of somebody who works for a conversation of that name.
        sub = {"x-clew-session": "sub", "x-clew-parent": bob}
        assert "ALICESALARY" not in told(served, [user("Please look back for me.")], sub)


@pytest.mark.parametrize("compaction", ["answer", "pass"])
def test_a_conversation_whose_model_looked_back_is_known_when_it_is_summed_up(compaction: str) -> None:
    name = {"x-clew-session": "alice"}
    with gateway(tools=True, compaction=compaction) as (served, _):
        said = [user(ALICE), assistant("Done."), user("Please look back.")]
        told(served, said, name)
        got = served.ask(PATH, body(*said, assistant("Done."), user(SUM_UP)), name).spoken("openai_chat")
        assert ("ALICESALARY" in got.text) == (compaction == "answer")
        after = [user(f"{CONTINUED}\n{got.text}"), assistant("Done."), user("Please look back.")]
        assert "ALICESALARY" in told(served, after, name)


def test_a_summary_that_a_stranger_got_as_well_proves_nothing() -> None:
    with gateway(tools=True, compaction="pass") as (served, _):
        told(served, [user(ALICE), assistant("Done."), user("thanks")])
        told(served, [user(ALICE), assistant("Done."), user("thanks"), assistant("Done."), user(SUM_UP)])
        said = [user("I am Bob, whom nobody knows."), assistant("Done."), user("hm")]
        text = served.ask(PATH, body(*said, assistant("Done."), user(SUM_UP))).spoken("openai_chat").text
        assert "ALICESALARY" not in told(served, [user(f"{CONTINUED}\n{text}"), user("Please look back.")])


@pytest.mark.parametrize("parent", ["main", "nobody-knows", ""], ids=["shared", "unknown", "none"])
def test_a_sub_agent_of_the_same_name_and_task_sees_nothing_of_anothers_parent(parent: str) -> None:
    task = [user("Please look back and report.")]
    with gateway(tools=True) as (served, model):
        told(served, [user(ALICE)], {"x-clew-session": "main"})
        model.looks = False
        told(served, task, {"x-clew-session": "reviewer", "x-clew-parent": "main"})
        model.looks = True
        told(served, [user("I am Bob.")], {"x-clew-session": "main"})
        of_bob = {"x-clew-session": "reviewer"} | ({"x-clew-parent": parent} if parent else {})
        assert "ALICESALARY" not in told(served, task, of_bob)


def test_a_name_is_shared_also_where_two_began_with_the_same_words() -> None:
    with gateway(tools=True) as (served, _):
        both = user("Review the current diff.")
        told(served, [both], {"x-clew-session": "ci"})
        told(served, [both, assistant("Fine."), user("thanks")], {"x-clew-session": "ci"})
        told(served, [both, assistant("Which one?"), user(ALICE)], {"x-clew-session": "ci"})
        sub = {"x-clew-session": "sub-of-bob", "x-clew-parent": "ci"}
        assert "ALICESALARY" not in told(served, [user("Please look back for me.")], sub)


def test_two_customers_whose_numbers_differ_have_two_prompts() -> None:
    def of(prompt: str) -> Frame:
        return Frame("openai_chat", system=prompt)

    day = "It is Tuesday, November 17, 2026, 20:53. Account {}, balance 90001."
    later = "It is Wednesday, November 18, 2026, 7:05. Account {}, balance 90001."
    assert same_instructions(of(day.format(4711)), of(later.format(4711)))
    assert not same_instructions(of(day.format(4711)), of(day.format(4712)))
    assert same_instructions(of("Today's date: 2026-11-17"), of("Today's date: 2026-11-18"))
    assert not same_instructions(of("Version 1.2.3"), of("Version 1.2.4"))


def aider(said: Sequence[Message]) -> dict[str, Any]:
    system = {"role": "system", "content": "*Briefly* summarize this partial conversation about programming.\n"}
    text = "".join(f"# {m['role'].upper()}\n{m['content']}\n" for m in said)
    return {"model": "gpt-5.4", "messages": [system, user(text)]}


def talk(who: str) -> list[Message]:
    said = [user(f"hi, {who} here"), assistant("Hello!"), user(TRACE), assistant(f"Fix {who}.py"), user("ok")]
    return said if who != "nobody" else [user("hi"), assistant("Hello!"), user(TRACE), assistant("Fix it"), user("ok")]


@pytest.mark.parametrize("logged", [True, False])
@pytest.mark.parametrize("first", ["ALICE", "BOB"])
def test_a_quoted_conversation_is_summed_up_from_itself_or_from_the_one_it_is(first: str, logged: bool) -> None:
    with gateway(compaction="answer") as (served, _):
        for who in (first, "BOB" if first == "ALICE" else "ALICE"):
            if who == "ALICE" or logged:
                told(served, talk(who))
        heard = len(served.provider.heard)
        summary = served.ask(PATH, aider(talk("BOB")[:4])).raw.decode()
        assert "ALICE" not in summary
        assert ("BOB" in summary) == logged, "the log has his"
        assert len(served.provider.heard) == heard + (not logged), "else the model has what is quoted"


def item(said: Message) -> Item:
    return Item("text", said["role"], said["content"])


@pytest.mark.parametrize(
    ("change", "is_one"),
    [
        (lambda said: said, True),
        (lambda said: said[:4], True),  # a part of it, from its beginning
        (lambda said: [*said, assistant("What the log does not know yet.")], True),
        (lambda said: [*said, assistant("What the log does not know yet."), user("Nor this.")], True),
        (lambda said: [*said, assistant("New."), user("New."), assistant("It had been sent.")], False),
        (lambda said: said[1:], False),
        (lambda said: [*said[:2], *said[3:]], False),
        (lambda said: [*said[:3], assistant("Fix something else"), said[4]], False),
        (lambda said: [said[0], said[2], said[1], *said[3:]], False),
        (lambda said: said[:2], False),  # so much is said in many
    ],
)
def test_a_branch_is_quoted_whole_and_in_order_or_not(change: Any, is_one: bool) -> None:
    items = [item(m) for m in talk("ALICE")]
    for write in ("[{}]: {}", "[{}] {}", "# {}\n{}"):
        upper = write.startswith("#")
        said = [(m["role"].upper() if upper else m["role"].title(), m["content"]) for m in change(talk("ALICE"))]
        text = "\n\n".join(write.format(*one) for one in said)
        assert bool(is_quoted(text, items)[0]) is is_one
        wrapped = f"Sum it up: <conversation>\n{text}\n</conversation>\n\nNow."
        assert bool(is_quoted(quoted(wrapped), items)[0]) is is_one


def test_what_is_quoted_beyond_the_log_and_since_the_last_summary_is_in_the_next() -> None:
    def asked(n: int) -> list[Message]:
        return [user(f"write fact-{n}.txt"), assistant(f"I wrote fact-{n}.txt. {GREETING}")]

    with gateway(compaction="answer") as (served, _):
        past: list[Message] = []
        for first in (0, 10):
            for n in range(first, first + 6):
                told(served, [*past, asked(n)[0]])
                past += asked(n)
            heard = len(served.provider.heard)
            summary = served.ask(PATH, aider(past)).spoken("openai_chat").text
            assert len(served.provider.heard) == heard
            assert [n for n in range(first, first + 6) if f"I wrote fact-{n}.txt" not in summary] == []
            past = [user(f"I spoke to you previously about a number of things.\n{summary}"), assistant("Ok.")]


def test_results_that_are_quoted_are_the_branchs_own() -> None:
    results = [f"built {n}\n" + "line of it\n" * 300 for n in range(3)]
    items = [Item("text", "user", "Build the parts")]
    for n, result in enumerate(results):
        items += [Item("call", "assistant", "{}", "bash", f"c{n}"), Item("result", "tool", result, "", f"c{n}")]

    def text(quoted: Sequence[str]) -> str:
        calls = (f"[Assistant tool call]: bash({{}})\n[Tool result]: {one[:2_000]}\n[truncated]" for one in quoted)
        return "\n\n".join(["[User]: Build the parts", *calls])

    assert is_quoted(text(results), items)[0] == len(items)
    assert is_quoted(text(results[:2]), items)[0] == len(items) - 2
    assert is_quoted(text([results[0], "built something else\n" * 90, results[2]]), items)[0] == 0
    assert is_quoted(text([*results, "built one more\n" * 90]), items)[0] == len(items)


class _Asked:
    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def test_names_that_differ_at_their_end_stay_two_and_short_ones_stay_as_they_are() -> None:
    long = "x" * 300
    names = {speaker(_Asked(x_clew_session=f"{long}{end}"), b"").name for end in "ab"}  # type: ignore[arg-type]
    assert len(names) == 2
    assert all(name is not None and len(name) <= 200 for name in names)
    assert speaker(_Asked(x_clew_session="y" * 200), b"").name == "y" * 200  # type: ignore[arg-type]


async def test_an_answer_that_another_one_got_since_proves_nothing_to_who_spoke_last_either() -> None:
    store = SQLite(":memory:")
    trace = Trace("mine", said=[Place("the summary", "")])
    for signed in (True, False):
        before = Before(frozenset({"before"}), "the summary", signed)
        reach = ProvenPast(store, "default", Digests(store.secret, "default"), {("default", "mine"): before})
        assert await reach.may_continue(trace, Recognition(trace), named=False, known=True) is signed
    await store.close()
