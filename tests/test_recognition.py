"""Whose history is it? Clients decorate, trim, rewind and repeat; each keeps its folds, none shares another's."""

import copy
import json
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

import clew
from clew import Budget, Engine, Request, wire
from clew.core.view import View
from clew.errors import NotFound
from clew.store.sql import SQLStore
from clew.wire import check
from clew.wire.convert import convert

FORMATS = ["anthropic", "openai_chat"]  # the talk below is written for these; recognition knows nothing of formats
Body = dict[str, Any]


def talk(turns: int, format: str, tag: str = "") -> Body:
    """A long conversation about files; every turn calls a tool and gets a large answer."""
    messages: list[Body] = []
    for n in range(turns):
        messages.append({"role": "user", "content": f"{tag}please look at file number {n} and tell me what is in it"})
        call, said = f"toolu_{tag.strip()}{n}Kx7q9Zb4", f"{tag}line of file {n}, and more of it " * 60
        if format == "anthropic":
            use = {"type": "tool_use", "id": call, "name": "read", "input": {"path": f"f{n}"}}
            result = {"type": "tool_result", "tool_use_id": call, "content": said}
            messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        else:
            function = {"name": "read", "arguments": json.dumps({"path": f"f{n}"})}
            use = {"id": call, "type": "function", "function": function}
            messages += [{"role": "assistant", "content": None, "tool_calls": [use]}]
            messages += [{"role": "tool", "tool_call_id": call, "content": said}]
        messages.append({"role": "assistant", "content": f"{tag}file {n} holds many lines"})
    messages.append({"role": "user", "content": f"{tag}and now sum up all {turns} files"})
    if format == "anthropic":
        tool = {"name": "read", "input_schema": {"type": "object"}}
        return {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": "Help.", "tools": [tool], "messages": messages}
    return {"model": "gpt-4o", "messages": [{"role": "system", "content": "Help."}, *messages]}


def until(body: Body, count: int) -> Body:
    """The body as it was when its last message but `count` was the newest."""
    return {**body, "messages": body["messages"][: len(body["messages"]) - count]}


def engine(store: SQLStore) -> Engine:
    return Engine(store, Budget(window=6_000, reserve=500, high=0.7, low=0.5))


def as_sent(body: Body, form: str) -> Body | bytes:
    return json.dumps(body).encode() if form == "bytes" else copy.deepcopy(body)


class Client:
    """Sends bodies to an engine, by dict or by bytes, warm or each time to a new engine on the same log."""

    def __init__(self, store: SQLStore, format: str, form: str, warm: bool, session: str | None = None) -> None:
        self.store, self.format, self.form, self.warm, self.session = store, format, form, warm, session
        self.engine = engine(store)

    async def send(self, body: Body) -> View:
        if not self.warm:
            self.engine = engine(self.store)
        given = as_sent(body, self.form)
        view = await self.engine.prepare(Request(given, self.format, session=self.session))
        if isinstance(given, dict):
            assert given == body, "the input was changed"
        out = clew.body(view)
        assert check(out, self.format) == []
        budget = await self.engine.limits.target("default", view.frame)
        assert budget.size(view).within(budget.limit)
        return view


# Every two of format, form and warmth together here; all three at night.
FORMS = [(format, form, warm) for format in FORMATS for form in ("dict", "bytes") for warm in (True, False)]
LATE = [(form == "dict") ^ warm ^ (format == FORMATS[0]) for format, form, warm in FORMS]
CLIENTS = [
    pytest.param(form, marks=pytest.mark.nightly if late else ()) for form, late in zip(FORMS, LATE, strict=True)
]


@pytest.fixture(params=CLIENTS, ids=str)
def client(request: pytest.FixtureRequest, store: SQLStore) -> Client:
    return Client(store, *request.param)


BESIDE = "[data: from earlier in this conversation"  # what clew puts beside a message
_PASSAGE = re.compile(r"^\w+ \(recall \w+\): (.*)$", re.MULTILINE)


def folds(view: View) -> set[str]:
    """The stand-ins a view shows."""
    made = view.stand_ins()
    return {n.id for n in view.nodes if n.id in made}


def grown(body: Body) -> Body:
    """The next turn."""
    more = [
        {"role": "assistant", "content": "All of them hold lines."},
        {"role": "user", "content": "thank you, go on"},
    ]
    return {**body, "messages": [*body["messages"], *more]}


async def test_a_history_sent_again_with_more_is_recognised(client: Client) -> None:
    body = talk(12, client.format)
    first = await client.send(body)
    again = await client.send(grown(body))
    assert folds(first)
    assert (again.branch, again.nodes[: len(first.nodes)]) == (first.branch, first.nodes)
    assert [n.item.text for n in again.nodes[len(first.nodes) :]] == ["All of them hold lines.", "thank you, go on"]


async def test_a_retried_call_sends_the_same_again(client: Client) -> None:
    body = talk(12, client.format)
    first, again = await client.send(body), await client.send(body)
    assert (again.branch, again.nodes) == (first.branch, first.nodes)
    assert again.seq > first.seq


async def test_moving_cache_marks_are_no_edit(client: Client) -> None:
    body = talk(12, client.format)

    def marked(body: Body) -> Body:
        body = copy.deepcopy(body)
        for message in body["messages"][-3:]:
            if isinstance(message["content"], str) and message["role"] != "tool":
                message["content"] = [{"type": "text", "text": message["content"]}]
            if isinstance(message["content"], list):
                message["content"][-1]["cache_control"] = {"type": "ephemeral"}
        return body

    first = await client.send(marked(body))
    again = await client.send(marked(grown(body)))
    assert (again.branch, folds(again)) == (first.branch, folds(first))
    assert [n.id for n in again.nodes[: len(first.nodes)]] == [n.id for n in first.nodes]
    assert [bool(n.item.mark) for n in again.nodes[-4:]] == [False, True, True, True]  # as set this time, not the last


async def test_a_nonce_in_the_system_prompt_is_no_edit(client: Client) -> None:
    body = talk(12, client.format)

    def at(body: Body, clock: str) -> Body:
        body = copy.deepcopy(body)
        if client.format == "anthropic":
            body["system"] = f"Help. It is {clock}."
        else:
            body["messages"][0]["content"] = f"Help. It is {clock}."
        return body

    first = await client.send(at(body, "10:00"))
    again = await client.send(at(grown(body), "10:01"))
    assert (again.branch, again.nodes[: len(first.nodes)]) == (first.branch, first.nodes)
    assert "10:01" in again.frame.system


REMINDER = {"role": "user", "content": "<system-reminder>Your todo list is empty.</system-reminder>"}


async def test_a_reminder_in_the_middle_costs_no_folds(client: Client) -> None:
    body = talk(12, client.format)
    first = await client.send(body)
    after = copy.deepcopy(grown(body))
    after["messages"].insert(-4, REMINDER)
    again = await client.send(after)
    assert (again.branch, folds(again)) == (first.branch, folds(first))
    assert REMINDER["content"] in [n.item.text for n in again.nodes]
    once_more = await client.send(grown(after))
    assert (once_more.branch, folds(once_more)) == (first.branch, folds(first))


async def test_a_reminder_at_the_end_that_vanishes_costs_no_folds(client: Client) -> None:
    body = talk(12, client.format)
    reminded = copy.deepcopy(body)
    reminded["messages"].append(REMINDER)
    first = await client.send(reminded)
    again = await client.send(grown(body))
    assert (again.branch, folds(again)) == (first.branch, folds(first))
    assert REMINDER["content"] not in [n.item.text for n in again.nodes]


async def test_a_decorated_early_message_costs_no_folds(client: Client) -> None:
    body = talk(12, client.format)
    first = await client.send(body)
    after = copy.deepcopy(grown(body))
    place = 0 if client.format == "anthropic" else 1
    after["messages"][place + 16]["content"] += "\n<system-reminder>Be brief.</system-reminder>"
    assert "look at file number 4" in after["messages"][place + 16]["content"]
    again = await client.send(after)
    assert (again.branch, folds(again)) == (first.branch, folds(first))


async def test_a_trimmed_old_result_costs_no_folds(client: Client) -> None:
    body = talk(12, client.format)
    first = await client.send(body)
    after = copy.deepcopy(grown(body))
    for message in after["messages"][:12]:
        if message["role"] == "tool":
            message["content"] = "[trimmed]"
        elif isinstance(message["content"], list) and message["content"][0]["type"] == "tool_result":
            message["content"][0]["content"] = "[trimmed]"
    again = await client.send(after)
    assert (again.branch, folds(again)) == (first.branch, folds(first))


async def test_a_rewind_gives_what_was_sent_then(client: Client) -> None:
    body = talk(16, client.format)
    early = await client.send(until(body, 20))
    late = await client.send(body)
    assert folds(late) - folds(early)
    rewound = await client.send(until(body, 20))
    assert [n.id for n in rewound.nodes] == [n.id for n in early.nodes]
    assert rewound.branch != late.branch
    other = until(body, 20)
    other["messages"] = [
        *other["messages"],
        {"role": "assistant", "content": "no"},
        {"role": "user", "content": "why?"},
    ]
    forked = await client.send(other)
    assert [n.id for n in forked.nodes[: len(early.nodes)]] == [n.id for n in early.nodes]
    back = await client.send(grown(body))
    assert (back.branch, folds(back)) == (late.branch, folds(late))


@pytest.mark.few(1)
async def test_two_sessions_that_open_with_the_same_words_stay_apart(client: Client) -> None:
    one, two = talk(14, client.format), talk(14, client.format, tag="other ")
    two["messages"][: 2 if client.format == "openai_chat" else 1] = one["messages"][
        : 2 if client.format == "openai_chat" else 1
    ]
    start = 1 if client.format == "openai_chat" else 0

    def at(body: Body, turn: int) -> Body:
        return {**body, "messages": body["messages"][: start + 1 + 4 * turn]}

    views: dict[str, View] = {}
    for turn in range(15):
        views["one"] = await client.send(at(one, turn))
        views["two"] = await client.send(at(two, turn))
    assert views["one"].branch != views["two"].branch
    for name, body in (("one", one), ("two", two)):
        view = views[name]
        assert folds(view)
        said = {i.text for i in wire.decode(body, client.format)[1]}
        for node in view.nodes:
            for original in await client.engine.recall("default", node.id):
                text = original.item.text
                told = _PASSAGE.findall(text) if text.startswith(BESIDE) else [text]
                assert told
                assert said.issuperset(told), f"{name} holds what only the other said"


@pytest.mark.few(1)
async def test_the_same_questions_answered_otherwise_are_two_conversations(client: Client) -> None:
    def chat(turn: int, voice: str) -> Body:
        said: list[Body] = []
        for n in range(turn):
            said += [{"role": "user", "content": f"question {n}"}]
            said += [{"role": "assistant", "content": f"{voice} answers {n} at length. " * 60}]
        return {"model": "gpt-4o", "messages": [*said, {"role": "user", "content": f"question {turn}"}]}

    branches: dict[str, set[str]] = {"calm": set(), "loud": set()}
    for turn in range(20):
        for voice, seen in branches.items():
            view = await client.send(chat(turn, voice))
            seen.add(view.branch)
            other = "loud" if voice == "calm" else "calm"
            texts = [o.item.text for n in view.nodes for o in await client.engine.recall("default", n.id)]
            assert not any(other in text for text in texts)
            assert len(texts) == 2 * turn + 1
    assert all(len(seen) <= 2 for seen in branches.values())  # they may share the first call, and no more


async def test_sessions_named_by_the_host_never_share(store: SQLStore) -> None:
    body = talk(12, "openai_chat")
    a = await Client(store, "openai_chat", "dict", True, session="a").send(body)
    b = await Client(store, "openai_chat", "dict", True, session="b").send(body)
    again = await Client(store, "openai_chat", "dict", False, session="a").send(grown(body))
    assert a.branch != b.branch
    assert again.branch == a.branch


@pytest.mark.few(1)
async def test_a_host_that_keeps_our_stand_ins_is_recognised(client: Client) -> None:
    full, mine = talk(20, client.format), copy.deepcopy(talk(20, client.format))
    start = 1 if client.format == "openai_chat" else 0
    kept: list[Body] = full["messages"][:start]
    branches, view = set(), None
    for turn in range(21):
        new = (
            full["messages"][start + 4 * turn - 3 : start + 4 * turn + 1]
            if turn
            else full["messages"][start : start + 1]
        )
        body = {**full, "messages": [*kept, *new]}
        view = await client.send(body)
        branches.add(view.branch)
        kept = clew.body(view)["messages"]  # the host stores what we returned, and goes on from there
    assert view is not None
    assert len(branches) == 1
    assert folds(view)
    originals = [o.item.text for n in view.nodes for o in await client.engine.recall("default", n.id)]
    said = [i.text for i in wire.decode(mine, client.format)[1]]
    assert sorted(text for text in originals if not text.startswith(BESIDE)) == sorted(said)


async def test_another_scope_sees_nothing(store: SQLStore) -> None:
    body = talk(12, "openai_chat")
    e = engine(store)
    view = await e.prepare(Request(body, scope="alice"))
    other = await e.prepare(Request(grown(body), scope="bob"))
    assert other.branch != view.branch
    assert not {n.id for n in view.nodes} & {n.id for n in other.nodes}
    with pytest.raises(NotFound):
        await e.recall("bob", next(iter(folds(view))))
    with pytest.raises(NotFound):
        await store.load("bob", view.branch)


EDITS: dict[str, Callable[[list[Body]], None]] = {
    "drops its oldest messages": lambda m: m.__delitem__(slice(1, 17)),
    "drops two from the middle": lambda m: m.__delitem__(slice(21, 25)),
    "summarises its own past": lambda m: m.__setitem__(
        slice(1, 17), [{"role": "user", "content": "Summary: many files."}]
    ),
}


@pytest.mark.parametrize("edit", EDITS, ids=str)
async def test_a_client_that_edits_its_past_stays_on_its_branch(store: SQLStore, edit: str) -> None:
    # A summary that nobody heard says nothing of whose it is: then only a name does.
    names = ("amber",) if edit == "summarises its own past" else ("amber", None)
    for client in (Client(store, "openai_chat", "dict", warm=True, session=name) for name in names):
        body = talk(12, "openai_chat", f"{client.session} ")
        first = await client.send(body)
        after = copy.deepcopy(grown(body))
        EDITS[edit](after["messages"])
        again = await client.send(after)
        assert again.branch == first.branch
    # Nothing is lost: what the client dropped is still in the log.
    assert await client.engine.search("default", "number 11", first.branch)
    trace = await store.load("default", first.branch, first.seq)
    assert len(trace.said) == len(wire.decode(body)[1])


@pytest.mark.few(1)
async def test_a_decoration_that_changes_every_turn_costs_no_folds(client: Client) -> None:
    """A client that rewrites one old message each time: edits made before and after the rewriting all hold."""
    body = talk(12, client.format)
    place = 16 if client.format == "anthropic" else 17
    first = await client.send(body)
    await client.engine.pin(first, first.nodes[0].id)
    held = folds(first)
    for n in range(14):
        body = grown(body)
        body["messages"] += [{"role": "assistant", "content": f"more and more words {n} " * 60}]
        body["messages"] += [{"role": "user", "content": f"next {n}"}]
        sent = copy.deepcopy(body)
        sent["messages"][place]["content"] += f"\n<system-reminder>It is {n} o'clock.</system-reminder>"
        view = await client.send(sent)
        assert view.branch == first.branch
        shown = {o.id for node in view.nodes for o in await client.engine.recall("default", node.id)}
        assert len(shown) == len(wire.decode(sent, client.format)[1])
    assert held <= {id for edit in view.edits for id in (*edit.old, *(n.id for n in edit.new))}
    assert [n.content for n in view.nodes[:1]] == [n.content for n in first.nodes[:1]]
    trace = await client.store.load("default", first.branch)
    assert len(trace.said) == len(wire.decode(sent, client.format)[1])
    applied = {n.id for n in view.nodes}
    assert any(n.id in applied for edit in trace.edits[len(first.edits) :] for n in edit.new)


def chat(*said: str) -> Body:
    """Messages of the user and the assistant in turn; `read PATH#ID` is a call, with what came of it."""
    messages: list[Body] = []
    for text in said:
        if text.startswith("read "):
            called, came = text.split("\n", 1)
            path, _, id = called[5:].partition("#")
            function = {"name": "read", "arguments": json.dumps({"path": path})}
            messages.append({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]})
            messages.append({"role": "tool", "tool_call_id": id, "content": came})
        else:
            spoke = messages and messages[-1]["role"] == "user"
            messages.append({"role": "assistant" if spoke else "user", "content": text})
    return {"model": "gpt-4o", "messages": messages}


GREETING = "Hello! I can help with accounts, cards, loans and appointments, at any hour of the day. " * 4
LICENCE = "read LICENSE#call\n" + "Permission is granted to everybody who reads this file, as everybody does. " * 8


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Both have read one file; what the first one said between its two readings is not in the other at all.
        (
            ["hi", GREETING, "yes", "read LICENSE#call\n[cleared]", "Amber is the word.", "again", LICENCE],
            ["hi", GREETING, "yes", LICENCE],
        ),
        # The same, and the call is another one.
        (
            ["look", "read notes#call\nThe word is amber.", LICENCE.replace("#call", "#other")],
            ["look", LICENCE],
        ),
        # The same, and with its call the first one said something.
        (
            ["hi", GREETING, "look", "Amber is the word.", LICENCE],
            ["hi", GREETING, "look", LICENCE],
        ),
        # The same but for one result, of a call with an id that others have, too.
        (
            ["look", "read notes#call_1\nThe word is amber.", GREETING, "go on", LICENCE],
            ["look", "read notes#call_1\nThe word is beryl.", GREETING, "go on", LICENCE],
        ),
        # All of what was asked stands in what the first one asked, which said more.
        (
            ["hi, I am Amber", GREETING, "thanks, dear", "Mend it", "go on, please", LICENCE],
            ["hi", GREETING, "thanks", "Mend it", "go on", LICENCE],
        ),
        # The newest words of the first one are said in many, and it has been asked something since.
        (
            ["hi", GREETING, "yes", "Mend it", "and?", "Amber is the word.", "then", "Let me look", "go on"],
            ["hi", GREETING, "yes", "Let me look", "read notes#call_1\nnothing", "thanks"],
        ),
        # The answers are the same, and somebody else has asked.
        (
            ["The word is amber.", GREETING, "Amber, I said.", LICENCE, "Done.", "go on"],
            ["The word is beryl.", GREETING, "Beryl, I said.", LICENCE, "Done.", "go on", "Yes.", "more"],
        ),
        # Both typed the same and were greeted alike; the client of the first one told its model something beside it.
        (
            [f"hi\n<system-reminder>{'The word is amber. ' * 800}</system-reminder>", GREETING, "go on"],
            ["hi\n<system-reminder>Be brief.</system-reminder>", GREETING, "go on", "Yes.", "more"],
        ),
        (["<system-reminder>The word is amber.</system-reminder>", GREETING, "go on"], ["", GREETING, "go on"]),
        # What stood between was taken away, and what is left many have: their greeting, and files under counted ids.
        (
            ["hi", GREETING, "look", LICENCE, "The word is amber. " * 20, "Now the end.", LICENCE, "go on"],
            ["hi", GREETING, "look", LICENCE, LICENCE, "go on"],
        ),
    ],
)
async def test_equal_files_and_answers_are_no_conversation(store: SQLStore, one: list[str], other: list[str]) -> None:
    client = Client(store, "openai_chat", "dict", warm=True)
    for sent in (one[:3], one):
        mine = await client.send(chat(*sent))
    theirs = await client.send(chat(*other))
    assert theirs.branch != mine.branch
    found = await client.engine.search("default", "amber word", theirs.branch)
    assert not [node for node in found if "amber" in node.item.text.lower()]


async def test_who_goes_back_is_where_he_was_and_not_in_one_that_lost_something(store: SQLStore) -> None:
    client = Client(store, "openai_chat", "dict", warm=False)
    same = ["hi", GREETING, "look", LICENCE]
    first = await client.send(
        chat(*same[:3], "Amber is the word.", "go on", "read notes#call_1\nAmber", *same[3:], "and?")
    )
    own = [*same, "Done.", "beryl", "Well.", "more"]
    mine = await client.send(chat(*own))
    back = await client.send(chat(*own[:5]))
    assert mine.branch != first.branch
    assert back.branch != first.branch
    assert not await client.engine.search("default", "amber word", back.branch)


async def test_what_two_may_have_trimmed_is_neithers(store: SQLStore) -> None:
    client = Client(store, "openai_chat", "dict", warm=True)
    said = ["hi", GREETING, "look", "read notes#call\n{}", LICENCE, "Done.", "go on"]
    both = [chat(*(text.format(f"The word is {word}. " * 20) for text in said)) for word in ("amber", "beryl")]
    branches = {(await client.send(body)).branch for body in both}
    assert len(branches) == 2
    trimmed = copy.deepcopy(grown(both[0]))
    trimmed["messages"][4]["content"] = "[output cleared]"
    view = await client.send(trimmed)
    assert view.branch not in branches
    assert not await client.engine.search("default", "amber beryl word", view.branch)


@pytest.mark.parametrize("shared", [str(UUID(int=7)), "ws01A09q90qw90lq917835lq9T"])
async def test_ids_that_count_up_in_one_workspace_do_not_say_whose_a_cleared_result_is(
    store: SQLStore, shared: str
) -> None:
    client = Client(store, "openai_chat", "dict", warm=True)
    said = [
        "hi",
        GREETING,
        "look",
        f"read notes#{shared}-1\n{{}}",
        "Done.",
        f"read more#{shared}-2\n{{}}",
        "Well.",
        "yes",
    ]
    mine = await client.send(chat(*(text.format("The word is amber. " * 20) for text in said)))
    theirs = await client.send(chat(*(text.format("[output cleared]") for text in said), "Well.", "and"))
    assert theirs.branch != mine.branch
    assert not await client.engine.search("default", "amber word", theirs.branch)


JIRA = "searchJiraIssuesUsingJql"


@pytest.mark.parametrize(
    "id",
    ["call_1", "call00000012", "functions.read:0", "read_2_call_11", "tool-1763451234567-3", f"functions.{JIRA}:0"],
)
@pytest.mark.parametrize("there", ["openai_chat", "anthropic"])
async def test_of_a_cleared_result_an_id_that_counts_says_nothing(store: SQLStore, id: str, there: str) -> None:
    client = Client(store, "openai_chat", "dict", warm=True)

    def body(*said: str) -> Body:
        written = json.dumps(chat(*said))
        return dict(json.loads(written.replace('"name": "read"', f'"name": "{JIRA}"') if JIRA in id else written))

    said = ["hi", GREETING, "look", f"read notes#{id}\n{{}}", "Done.", "go on", GREETING, "yes"]
    mine = await client.send(body(*(text.format("The word is amber. " * 20) for text in said)))
    client.format = there
    theirs = await client.send(
        convert(body(*(text.format("[output cleared]") for text in said), "Well.", "and"), there)
    )
    assert theirs.branch != mine.branch
    assert not await client.engine.search("default", "amber word", theirs.branch)


@pytest.mark.parametrize("id", ["toolu_01A09q90qw90lq917835lq9T", "call_kMpTbvXqWzRdAsEeGhJuYtNc", str(UUID(int=7))])
@pytest.mark.parametrize("there", ["openai_chat", "anthropic"])
async def test_of_a_cleared_result_an_id_that_was_made_up_says_whose_it_is(
    store: SQLStore, id: str, there: str
) -> None:
    client = Client(store, "openai_chat", "dict", warm=True)
    said = ["hi", GREETING, "look", f"read notes#{id}\n{{}}", "Done.", "go on", GREETING, "yes"]
    first = await client.send(chat(*(text.format("The word is amber. " * 20) for text in said)))
    client.format = there
    again = await client.send(convert(chat(*(text.format("[output cleared]") for text in said), "Well.", "and"), there))
    assert again.branch == first.branch
    assert "amber" not in json.dumps(clew.body(again))
    assert await client.engine.search("default", "amber word", again.branch)  # the client only wanted room
