"""Things a hostile reviewer found. Each stays away."""

import asyncio
import json
from typing import Any

from clew import Budget, Engine, Request, body, open_store
from clew.core.view import View
from clew.store.sql import SQLStore

Body = dict[str, Any]


def user(text: Any, **keys: Any) -> Body:
    return {"role": "user", "content": text, **keys}


def said(text: Any, **keys: Any) -> Body:
    return {"role": "assistant", "content": text, **keys}


def call(id: str, arguments: str = "{}") -> Body:
    return {"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}}


def chat(messages: list[Body], **keys: Any) -> Body:
    return {"model": "gpt-4o", "messages": list(messages), **keys}


def claude(messages: list[Body]) -> Body:
    return {"model": "claude-x", "max_tokens": 9, "messages": list(messages)}


def engine(store: SQLStore, window: int = 100_000, most: int = 30_000_000) -> Engine:
    return Engine(store, Budget(window=window, bytes=most))


async def both(warm: Engine, request: Body | bytes) -> View:
    """The view of an engine that knows the branch; one that does not must make the same."""
    view = await warm.prepare(Request(request))
    cold = await Engine(warm.store, warm.budget).prepare(Request(request))
    assert [(n.item.kind, n.content) for n in cold.nodes] == [(n.item.kind, n.content) for n in view.nodes]
    return view


async def test_words_that_look_like_a_stand_in_are_just_words(store: SQLStore) -> None:
    warm, messages = engine(store), [user(""), said("x"), user("q")]
    await both(warm, claude(messages))
    messages += [said("y"), user("[empty]")]
    assert body(await both(warm, claude(messages)))["messages"][-1] == user("[empty]")
    messages += [said("[called bash {}: no result]"), user("[empty]")]
    assert body(await both(warm, claude(messages)))["messages"][-2:] == messages[-2:]


async def test_a_host_that_keeps_two_equal_stand_ins(store: SQLStore) -> None:
    warm = engine(store)
    messages = [user("go"), said(None, tool_calls=[call("c1", '{"a":1}')]), user("x")]
    messages += [said(None, tool_calls=[call("c2", '{"a":1}')]), user("y")]
    first = await warm.prepare(Request(chat(messages)))
    kept = [*body(first)["messages"], said("ok"), user("go on")]
    view = await both(warm, chat(kept))
    assert view.branch == first.branch
    assert body(view)["messages"] == kept
    trace = await store.load("default", view.branch)
    assert len({p.id for p in trace.said}) == len(trace.said) == 7


async def test_a_key_after_the_messages_that_ends_like_them(store: SQLStore) -> None:
    warm, messages = engine(store), [user("hello there")]
    await warm.prepare(Request(json.dumps(chat(messages)).encode()))
    messages += [said("hi"), user("more")]
    extras: list[Body] = [{"stop": ["x"]}, {}, {"tools": []}]
    for extra in extras:
        sent = chat(messages, **extra)
        assert body(await both(warm, json.dumps(sent).encode())) == sent


async def test_a_huge_integer_in_bytes_stays_an_integer(store: SQLStore) -> None:
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {"id": 123456789012345678901234567890}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    sent = claude([user("a"), said([use]), user([result])])
    assert body(await both(engine(store), json.dumps(sent).encode())) == sent


async def test_a_result_that_comes_late_is_a_result(store: SQLStore) -> None:
    warm, messages = engine(store), [user("go"), said(None, tool_calls=[call("c1")])]
    view = await warm.prepare(Request(chat(messages)))
    assert body(view)["messages"][1]["content"] == "[called bash {}: no result]"
    messages += [{"role": "tool", "tool_call_id": "c1", "content": "result!"}]
    late = await both(warm, chat(messages))
    assert (late.branch, body(late)["messages"]) == (view.branch, messages)
    [first, *_] = await store.calls("default", view.branch)
    assert body(await warm.resume("default", first)) == body(view)


async def test_plain_text_may_turn_out_to_be_another_format(store: SQLStore) -> None:
    warm, messages = engine(store), [user("go and do it")]

    def sent() -> bytes:
        return json.dumps({"model": "glm-4.6", "max_tokens": 9, "messages": messages}).encode()

    first = await warm.prepare(Request(sent()))
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    messages += [said([use]), user([{"type": "tool_result", "tool_use_id": "t", "content": "r"}])]
    view = await both(warm, sent())
    assert (view.frame.format, view.branch) == ("anthropic", first.branch)
    assert [n.item.kind for n in view.nodes] == ["text", "call", "result"]


async def test_two_long_conversations_with_the_same_first_words_stay_apart(store: SQLStore) -> None:
    def talk(name: str) -> bytes:
        rest = [(said if i % 2 == 0 else user)(f"{name} {i} " + "z " * 2_000) for i in range(300)]
        return json.dumps(
            chat([user("shared task " * 50), said(f"agent {name}"), user("go"), *rest, user("end")])
        ).encode()

    warm = engine(store, 10**8)
    one = await warm.prepare(Request(talk("one")))
    two = await warm.prepare(Request(talk("two")))
    assert one.branch != two.branch
    assert (await warm.prepare(Request(talk("one")))).branch == one.branch


async def test_unclosed_decorations_are_text(store: SQLStore) -> None:
    junk = "<system-reminder>" * 20_000
    warm, messages = engine(store, 10**7), [user("a"), said("x"), user("u1 " + junk), said("y"), user("z")]
    await warm.prepare(Request(chat(messages)))
    messages[2] = user("u2 " + junk)
    messages += [said("k"), user("l")]
    assert body(await warm.prepare(Request(chat(messages))))["messages"] == messages


async def test_search_finds_its_own_among_many_others(store: SQLStore) -> None:
    warm = engine(store)
    view = await warm.prepare(Request(chat([user("the needle is in a long text " + "word " * 50)])))
    for i in range(60):
        await warm.prepare(Request(chat([user(f"needle {i}")])))
    assert len(await warm.search("default", "needle", view.branch, limit=2)) == 1


async def test_marks_before_an_edit_stay_where_the_client_put_them(store: SQLStore) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    messages = [user([{"type": "text", "text": "first", **mark}]), said("1"), user("2"), said("3"), user("4")]
    warm = engine(store)
    for more in ([], [said("5"), user("6")]):
        messages += more
        await warm.prepare(Request(json.dumps(claude(messages)).encode()))
    messages.insert(4, user("<system-reminder>z</system-reminder>"))
    messages += [said("7"), user("8")]
    assert body(await both(warm, json.dumps(claude(messages)).encode()))["messages"] == messages


async def test_what_is_stored_once_is_what_was_said_twice(store: SQLStore) -> None:
    warm = engine(store)
    sent = chat([user("a"), said("x", reasoning="t", reasoning_content="t"), user("b")])
    view = await warm.prepare(Request(sent))
    [made] = await store.calls("default", view.branch)
    assert body(await warm.resume("default", made)) == sent


async def test_keys_of_a_message_weigh_what_they_weigh(store: SQLStore) -> None:
    messages = [user("hi", metadata={"x": "y " * 200_000}), said("ok"), user("end")]
    view = await engine(store, 2_000_000, most=60_000).prepare(Request(chat(messages)))
    assert len(json.dumps(body(view))) < 60_000


async def test_six_hosts_at_once_all_get_an_answer(place: str) -> None:
    stores = [open_store(place) for _ in range(6)]
    engines = [engine(s) for s in stores]
    messages = [user("a"), said("b"), user("c")]
    await engines[0].prepare(Request(chat(messages), session="s"))
    messages += [said("x"), user("y")]
    views = await asyncio.gather(*(e.prepare(Request(chat(messages), session="s")) for e in engines))
    await asyncio.gather(*(e.observe(v, {"input_tokens": 1}) for e, v in zip(engines, views, strict=True)))
    calls = await stores[0].calls("default", views[0].branch)
    assert len([c for c in calls if c.usage]) == 6
    for s in stores:
        await s.close()
