"""With the policy `redact` no secret is kept, written or given back, and histories are recognised all the same."""

import json
import logging
import sqlite3
import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import clew
from clew import Budget, Engine, Request, SQLite, events
from clew.engine.append import Addition
from clew.engine.settings import Settings
from clew.errors import BadRequest, ClewError, OverBudget, SecretFound
from clew.events.telemetry import Traces
from clew.secrets.guard import Policy
from clew.steps import PRESETS
from clew.store.compressing import decompress
from clew.store.sql import SQLStore
from clew.tokens.target import Target
from clew.wire import check
from secrets_rows import ROWS

KEY = "ghp_" + "a1B2" * 9
FILLER = "the build went well and the tests passed in 3.2 s\n" * 30


def talk(outputs: list[str]) -> dict[str, Any]:
    """A conversation in which tools print these."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "look around"},
    ]
    for n, output in enumerate(outputs):
        call = {"id": f"call_{n}", "type": "function", "function": {"name": "cat", "arguments": f'{{"path": "f{n}"}}'}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{n}", "content": output})
    messages.append({"role": "user", "content": "and now?"})
    return {"model": "gpt-4o", "messages": messages}


def growing(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    ends = [i for i, m in enumerate(body["messages"]) if m["role"] in ("tool", "user")]
    for end in ends:
        yield {**body, "messages": body["messages"][: end + 1]}


def everything_in(path: Path) -> str:
    """All that can be read out of a store's files, unpacked, and the words of its index."""
    found = [f.read_bytes().decode("latin-1") for f in path.parent.glob(path.name + "*")]
    db = sqlite3.connect(path)
    db.execute("create virtual table temp.words using fts5vocab (main, body_text, row)")
    names = [row[0] for row in db.execute("select name from sqlite_master where type = 'table'")]
    for name in [*names, "temp.words"]:
        for row in db.execute(f"select * from {name}"):
            for value in row:
                if isinstance(value, bytes):
                    for at, read in ((0, zlib.decompress), (0, decompress), (1, decompress)):
                        with suppress(zlib.error, ClewError):
                            found.append(read(value[at:]).decode("latin-1"))
                    value = value.decode("latin-1")
                found.append(str(value))
    db.close()
    return "\n".join(found)


def pieces(secret: str) -> list[str]:
    """What must not be found: it, any twelve characters of it in a row, and those in small letters, as indexed."""
    parts = [part for line in secret.split("\n") for part in (line[i : i + 12] for i in range(0, len(line) - 11, 6))]
    # Words such as PRIVATE KEY are no secret.
    parts = [secret, *(part for part in parts if any(map(str.isdigit, part)))]
    return [p for part in parts for p in (part, part.lower())]


@pytest.mark.few(1)
@pytest.mark.parametrize("cold", [False, True])
async def test_secrets_in_tool_results_are_nowhere(
    tmp_path: Path, cold: bool, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [(kind, secret, text.replace("{}", secret)) for kind, secret, around in ROWS for text in around[:2]]
    assert len({kind for kind, _, _ in rows}) >= 40
    path = tmp_path / "clew.db"
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    heard: list[events.Event] = []
    caplog.set_level(logging.INFO, "clew")

    def engine(store: SQLStore) -> Engine:
        listeners: list[events.Listener] = [heard.append, events.log, Traces(provider)]
        return Engine(store, Budget(window=9_000, reserve=500), Settings(listeners=listeners, secrets="redact"))

    store = SQLite(path)
    made = engine(store)
    given: list[str] = []
    outputs = [
        "\n".join([FILLER, *(context for _, _, context in rows[n : n + 12]), FILLER]) for n in range(0, len(rows), 12)
    ]
    for body in growing(talk(outputs)):
        made = engine(store) if cold else made
        view = await made.prepare(Request(json.dumps(body).encode()))
        assert check(clew.body(view)) == []
    assert len({(await store.branches("default"))[0].id, view.branch}) == 1, "one conversation, all along"
    assert len(await store.branches("default")) == 1
    stand_ins = view.stand_ins()
    given += [n.item.text for n in view.nodes if n.id in stand_ins]
    for node in view.nodes:
        given += [repr(original.item) for original in await made.recall("default", node.id)]
    for call in (await store.calls("default", view.branch))[-3:]:
        given.append(json.dumps(clew.body(await made.resume("default", call))))
    await made.observe(view, {"prompt_tokens": 5_000, "completion_tokens": 10})
    await store.close()
    told = [repr(heard), caplog.text, *(span.to_json() for span in spans.get_finished_spans())]
    assert len(told) > 2
    assert any(isinstance(e, events.Secret) for e in heard)
    whole = "\n".join([everything_in(path), *given, *told])
    left = [kind for kind, secret, _ in rows if any(piece in whole for piece in pieces(secret))]
    assert left == []


async def test_what_is_in_view_goes_to_the_model_as_the_client_sent_it(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=100_000), Settings(secrets="redact"))
    body = talk([f"token: {KEY}"])
    for request in growing(body):
        view = await engine.prepare(Request(request))
        assert clew.body(view) == request
    again = await Engine(store, Budget(window=100_000), Settings(secrets="redact")).prepare(Request(body))
    assert clew.body(again) == body
    assert again.branch == view.branch
    (call,) = [c for c in await store.calls("default", view.branch) if c.seq == view.seq]
    assert KEY not in json.dumps(clew.body(await engine.resume("default", call)))


async def test_a_host_that_keeps_what_recall_gave_is_recognised(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=100_000), Settings(secrets="redact"))
    body = talk([f"token: {KEY}", "fine"])
    view = await engine.prepare(Request(body, session="one"))  # without a name, so few words would prove nothing
    masked = await engine.resume("default", (await store.calls("default", view.branch))[-1])
    later = clew.body(masked)
    assert KEY not in json.dumps(later)
    later["messages"] += [{"role": "assistant", "content": "done"}, {"role": "user", "content": "thanks"}]
    assert (await engine.prepare(Request(later, session="one"))).branch == view.branch


async def test_a_policy_can_be_turned_on_in_mid_session(store: SQLStore) -> None:
    body = talk(["plain", f"token: {KEY}", "fine"])
    *first, last = growing(body)
    for request in first[:2]:
        view = await Engine(store).prepare(Request(request))
    strict = Engine(store, settings=Settings(secrets="redact"))
    for request in [*first[2:], last]:
        assert (await strict.prepare(Request(request))).branch == view.branch
    bodies = await store.search("default", KEY, [], 5)
    assert not bodies


async def test_refusing_says_the_kind_and_writes_nothing(store: SQLStore) -> None:
    engine = Engine(store, settings=Settings(secrets="refuse"))
    with pytest.raises(SecretFound, match="token") as error:
        await engine.prepare(Request(talk([f"token: {KEY}"])))
    assert KEY[:12] not in str(error.value)
    assert await store.branches("default") == []
    body = talk(["fine"])
    body["messages"][0]["content"] = f"Use {KEY}."
    with pytest.raises(SecretFound):
        await engine.prepare(Request(body))
    assert await store.branches("default") == []
    assert (await engine.prepare(Request(talk(["fine"])))).branch


async def test_a_system_prompt_is_kept_without_its_secrets(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "clew.db")
    body = talk(["fine"])
    body["messages"][0]["content"] = f"Use {KEY}."
    view = await Engine(store, settings=Settings(secrets="redact")).prepare(Request(body))
    assert clew.body(view) == body
    await store.close()
    assert KEY[:12] not in everything_in(tmp_path / "clew.db")


async def test_by_default_a_key_is_not_kept_and_a_password_that_somebody_chose_is(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "clew.db")
    heard: list[events.Event] = []
    engine = Engine(store, Budget(window=100_000), Settings(listeners=[heard.append]))
    body = talk([f"token: {KEY}\nPOSTGRES_PASSWORD=petclinic"])
    view = await engine.prepare(Request({**body, "model": KEY}, session=KEY))  # a name is no reason to refuse
    assert json.dumps(clew.body(view)).count(KEY) == 2
    call = next(n for n in view.nodes if n.item.kind == "result")
    (original,) = await engine.recall("default", call.id)
    assert (KEY in original.item.text, "POSTGRES_PASSWORD=petclinic" in original.item.text) == (False, True)
    assert [event.kinds for event in heard if isinstance(event, events.Secret)] == [("token",)]
    await store.close()


def long_keys(number: int) -> list[str]:
    """Results that are hardly more than a key, each another one: some 700 tokens, of which two dozen are kept."""
    made = []
    for n in range(number):
        lines = [b64encode(Random(100 * n + line).randbytes(48)).decode() for line in range(15)]
        made.append("\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----"]))
    return made


async def test_long_secrets_are_folded_by_what_is_sent_of_them(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=9_000, reserve=500), Settings(secrets="redact"))
    for body in growing(talk(long_keys(30))):
        view = await engine.prepare(Request(body))
        assert check(clew.body(view)) == []
        assert Target.of(Budget(window=9_000, model="gpt-4o")).size(view).tokens <= 8_500
    assert view.edits
    assert (await engine.compact(view)).edits[len(view.edits) :]


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(BadRequest, match="off, keys, redact, refuse"):
        Engine(SQLite(":memory:"), settings=Settings(secrets="mask"))  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["redact", "refuse"])
@pytest.mark.parametrize("what", ["model", "scope", "session"])
async def test_a_name_that_is_a_secret_is_refused_and_nothing_is_written(
    tmp_path: Path, policy: Policy, what: str
) -> None:
    store = SQLite(tmp_path / "clew.db")
    engine = Engine(store, settings=Settings(secrets=policy))
    body = talk(["fine"]) | ({"model": KEY} if what == "model" else {})
    names: dict[str, Any] = {what: KEY} if what != "model" else {}
    addition = Addition(body, **{"session": "one", **names})
    for asked in (Request(body, **names), addition):
        with pytest.raises(
            SecretFound, match=f"the name of the {what} contains a secret .github token.*another name"
        ) as error:
            await engine.prepare(asked)
        assert KEY[:12] not in str(error.value)
    if what != "model":  # where nothing is sent, no model is written down
        with pytest.raises(SecretFound):
            await engine.append(addition)
    view = await engine.prepare(Request(talk(["fine"])))
    with pytest.raises(SecretFound, match="session"):
        await engine.fork("default", view.branch, view.seq, KEY)
    await store.close()
    assert KEY[:12] not in everything_in(tmp_path / "clew.db")


async def test_a_call_id_that_is_a_secret_is_not_kept_and_goes_to_the_model_as_it_came(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "clew.db")
    body = json.loads(json.dumps(talk(["fine", "also fine"])).replace("call_0", KEY))
    view = await Engine(store, settings=Settings(secrets="redact")).prepare(Request(body))
    assert clew.body(view) == body
    later = {**body, "messages": [*body["messages"], {"role": "assistant", "content": "Done."}]}
    again = await Engine(store, settings=Settings(secrets="redact")).prepare(Request(later))
    assert (again.branch, clew.body(again)) == (view.branch, later)
    looked = await Engine(store).view("default", view.branch)
    assert check(clew.body(looked)) == []
    await store.close()
    assert KEY[:12] not in everything_in(tmp_path / "clew.db")


async def test_secrets_that_do_not_fit_are_refused_with_their_number(store: SQLStore) -> None:
    """They are sent as they are, which is longer than what is kept of them and stays in view."""
    engine = Engine(store, Budget(window=4_000, reserve=500), Settings(secrets="redact", step=PRESETS["null"]()))
    words = b64encode(Random(1).randbytes(6_000)).decode()
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{words}\n-----END RSA PRIVATE KEY-----"
    with pytest.raises(OverBudget, match=r"does not fit: [\d,]+ tokens of 3,500 \(") as raised:
        await engine.prepare(Request(talk([key])))
    assert raised.value.needed > raised.value.limit
