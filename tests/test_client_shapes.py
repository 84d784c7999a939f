"""Sessions in the shapes of real clients: that they are made well, and what becomes of them."""

import asyncio
import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from clew import Engine, SQLite
from clew.wire import check
from made_clients import CLIENTS, session
from made_clients.binding import Bindings
from made_clients.judging import CODE_WORDS, ClientJudge, ClientTally, judged

TURNS = 16
WINDOWS = {name: 64_000 if name.startswith("claude") else 28_000 for name in CLIENTS}
EVERY = pytest.mark.parametrize("client", CLIENTS)
# A session is seconds of work: one of each format here, all at night. The tests of one share it.
HERE = ("claude-2.1.325", "codex", "gemini-cli")
JUDGED = pytest.mark.parametrize(
    "client", [name if name in HERE else pytest.param(name, marks=pytest.mark.nightly) for name in CLIENTS]
)
DOUBLED = "calls_are_answered"  # what Gemini CLI gets wrong by itself once it is resumed


@cache
def tally(client: str) -> ClientTally:
    return asyncio.run(judged(client, WINDOWS[client], TURNS))


# --- the generator ----------------------------------------------------------------------------------------------------


@pytest.mark.few(3)
@EVERY
def test_the_same_seed_gives_the_same_bytes(client: str) -> None:
    one, two, other = ([json.dumps(s.body) for s in session(client, "amber", 8, seed)] for seed in (1, 1, 2))
    assert one == two
    assert one != other


@pytest.mark.few(5)
@EVERY
def test_what_clients_send_is_what_providers_accept(client: str) -> None:
    for sent in session(client, "amber", TURNS):
        assert {broken.rule for broken in check(sent.body, sent.format)} <= {DOUBLED}, sent
        assert client == "gemini-cli" or check(sent.body, sent.format) == []


@EVERY
def test_every_request_says_what_it_is_and_holds_what_it_wants(client: str) -> None:
    sent = list(session(client, "amber", TURNS))
    kinds = Counter(s.kind for s in sent)
    assert kinds["main"] + kinds["continued"] >= TURNS
    assert bool(kinds["compaction"]) == bool(kinds["continued"]) == (client != "aider")
    for one in sent:
        said = json.dumps(one.body, ensure_ascii=False)
        assert all(json.dumps(want, ensure_ascii=False)[1:-1] in said for want in one.wants)
        assert bool(one.wants) == (one.kind == "main" or (one.kind == "continued" and not CLIENTS[client].in_loop))
        assert one.headers["content-type"] == "application/json"


@EVERY
def test_two_sessions_share_a_frame_and_no_words(client: str) -> None:
    one, two = (next(s for s in session(client, word, 4) if s.kind == "main") for word in CODE_WORDS)
    kept = [key for key in one.body if key in ("system", "tools", "systemInstruction")]
    assert [one.body[key] for key in kept] == [two.body[key] for key in kept]
    assert "amber" not in json.dumps(two.body)


def test_thinking_is_bound_to_what_it_was_thought_after() -> None:
    def body(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"system": "s", "messages": [{"role": "user", "content": "Ask."}, *messages], **more}

    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    said = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
    asked = {"role": "user", "content": "More."}
    bindings = Bindings()
    assert bindings.broken(body(), body(), answered=True) == 0
    assert bindings.broken(body(said, asked), body(said, asked), answered=False) == 0
    other = {**body(said, asked), "system": "t"}
    assert bindings.broken(body(said, asked), other, answered=False) == 1
    assert bindings.broken(body(said, asked), {**other, "thinking": {"block_binding": {}}}, answered=False) == 0


def test_a_judge_sees_what_is_wrong() -> None:
    *_, sent = (s for s in session("claude-2.1.325", "amber", 4) if len(s.body["messages"]) > 2)

    def faults(**changes: Any) -> dict[str, int]:
        found = ClientTally()
        judge = ClientJudge(Engine(SQLite(":memory:")), found, "default")
        judge.look(sent, {**sent.body, **changes}, fits=True)
        return found.faults()

    messages = sent.body["messages"]
    assert faults() == {}
    assert faults(messages=messages[:-2]) == {"blind": 1, "cut": 1}
    assert faults(messages=[*messages[:1], *messages[2:]]) == {"changed": 1}
    assert faults(messages=[*messages, {"role": "user", "content": "birch"}])["mixed"] == 1
    assert faults(messages=messages[-2:]) == {"task": 1, "changed": 1}
    assert faults(messages=[*messages[:2], *messages[3:]])["invalid"] == 1


# --- what becomes of them ---------------------------------------------------------------------------------------------


@JUDGED
def test_what_is_sent_is_valid_and_holds_no_words_of_others(client: str) -> None:
    found = tally(client)
    assert (found.invalid, found.mixed, found.refused) == (0, 0, 0)
    assert found.fits > 0


@JUDGED
def test_a_model_sees_what_it_just_asked_for(client: str) -> None:
    found = tally(client)
    assert (found.blind, found.task) == (0, 0)
    assert found.cut <= 1  # in a second turn, what a provider will count is not known well: a large result is a preview


@JUDGED
def test_what_fits_is_not_folded_again_for_little(client: str) -> None:
    assert tally(client).hasty == 0


@JUDGED
def test_what_nobody_may_touch_stays_as_it_is(client: str) -> None:
    assert tally(client).changed == 0


@JUDGED
def test_thinking_stays_only_behind_what_it_was_thought_after(client: str) -> None:
    assert tally(client).bound == 0


@JUDGED
def test_calls_beside_a_conversation_are_apart_from_it(client: str) -> None:
    found = tally(client)
    assert (found.shared, found.joined) == (0, 0)
    assert found.moved == 0 or client == "aider"  # its last message is another one when it is no longer the last


@JUDGED
def test_a_clients_own_compaction_is_let_through(client: str) -> None:
    assert tally(client).folded == 0
