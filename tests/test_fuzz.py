"""Sessions of clients that do all that clients do, at random; many more of them in `make laws`."""

from collections.abc import Callable
from random import Random

import pytest

from acting import Client
from amounts import cases
from clew import Budget, Engine, Request, SQLite, open_store
from fuzzing import fuzz, plan
from judging import problems
from owning import Speaker
from postgres import Server
from tagging import Calls, Results, Text

SESSIONS, PORTIONS = cases(20), 3


@pytest.mark.few(1)
@pytest.mark.parametrize("portion", range(PORTIONS))
async def test_whatever_clients_do_the_model_sees_what_they_said(portion: int) -> None:
    found = await fuzz(range(portion * SESSIONS, (portion + 1) * SESSIONS), lambda: SQLite(":memory:"))
    assert found.told == []
    assert found.folded > SESSIONS


ONCE_WRONG = (
    *(702_035, 706_276),  # two began alike, and one's log had a word of the other's that nobody was shown
    1_205_548,  # what stood for one's past came back, and was taken for words of another that began alike
    1_205_377,  # a summary of a few words took the room of what just came
)


async def test_what_once_went_wrong_goes_well() -> None:
    assert (await fuzz(ONCE_WRONG, lambda: SQLite(":memory:"))).told == []


@pytest.mark.nightly
async def test_so_it_is_on_a_server(server: Server) -> None:
    url = server.url(server.database("template"))
    assert (await fuzz(range(1_000, 1_020), lambda: open_store(url))).told == []


def take_for_bob(client: Client) -> str:
    client.speaker.name = "bob"
    return "foreign"


def change(client: Client) -> str:
    client.said[0] = Text("user", "ann1v1z, please")
    client.changed.add("ann1v0z")
    return "stale"


def remove(client: Client) -> str:
    client.said.pop(0)
    client.removed.add("ann1v0z")
    return "stale"


def change_a_value(client: Client) -> str:
    client.said[1] = Calls((("call_1", "ann2v0z"),), value=True)
    return "stale"


def add(client: Client) -> str:
    client.said.append(Text("user", "ann4v0z"))
    return "lost"


@pytest.mark.parametrize("act", [take_for_bob, change, remove, change_a_value, add])
@pytest.mark.parametrize("format", ["openai_chat", "anthropic", "gemini"])
async def test_the_judge_sees_it(format: str, act: Callable[[Client], str]) -> None:
    """A client that remembers otherwise than it spoke stands for an engine that does."""
    client = Client(Speaker("ann", Random(1)), format)
    client.said = [Text("user", "ann1v0z, please"), Calls((("call_1", "ann2v0z"),), value=1)]
    client.said.append(Results((("call_1", "ann3v0z"),)))
    engine = Engine(SQLite(":memory:"), Budget(window=4_000))
    view = await engine.prepare(Request(client.body(), format))
    assert [kind async for kind, _ in problems(engine, client, view, "default", last=True)] == []
    kind = act(client)
    assert kind in [kind async for kind, _ in problems(engine, client, view, "default", last=True)]


def test_a_seed_is_a_session() -> None:
    assert plan(7) == plan(7) != plan(8)
