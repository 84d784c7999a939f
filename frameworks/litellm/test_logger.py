"""Real calls of LiteLLM far past the window of their provider, which refuses what is too long or out of order."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import litellm
import pytest
from frameworks.litellm.talking import TURNS, streamed, talk, whole
from frameworks.reading import WINDOW, contents
from litellm.proxy.types_utils.utils import get_instance_fn
from litellm.types.utils import CallTypes

from clew import Engine, Sessions, SQLite
from clew.adapters.litellm import ClewLogger
from clew.events import Event, Observed
from clew.testing import StrictProvider

SYSTEM = {"role": "system", "content": "You read files."}


def told(events: list[Event]) -> list[int]:
    """What providers reported of prompts."""
    return [event.input for event in events if isinstance(event, Observed)]


@pytest.mark.parametrize("ask", [whole, streamed])
async def test_a_chat_far_past_the_window_fits(
    ask: Callable[..., Any], engine: Engine, provider: StrictProvider, heard: list[Event]
) -> None:
    litellm.callbacks = [ClewLogger(engine)]
    said: list[Any] = [SYSTEM]
    given = {"model": "openai/gpt-4o-mini", "api_base": f"{provider.url}/v1"}
    await talk(said, ask, **given, **({"stream_options": {"include_usage": True}} if ask is streamed else {}))
    assert len(provider.heard) == 2 * TURNS  # none was refused
    assert len(said) == 1 + TURNS * 5  # the caller's list is his own
    assert all(contents(f"part_{n}.py") in str([dict(m) for m in said]).replace("\\n", "\n") for n in (0, 23))
    sent = provider.heard[-1].body["messages"]
    assert sent[0] == SYSTEM
    assert len(sent) < len(said)
    assert told(heard)  # not all of them: LiteLLM tells of a stream some time after its end
    assert set(told(heard)) <= {one.spent.input for one in provider.heard}
    (branch,) = {session.branch for session in await Sessions(engine).all()}
    assert contents("part_0.py") in "".join(node.item.text for node in await everything(engine, branch))


async def everything(engine: Engine, branch: str, scope: str = "default") -> list[Any]:
    places = (await engine.store.load(scope, branch)).said
    nodes = await engine.store.nodes(scope, [place.id for place in places])
    return [nodes[place.id] for place in places]


async def test_a_stream_without_usage_teaches_no_noughts(
    engine: Engine, provider: StrictProvider, heard: list[Event]
) -> None:
    litellm.callbacks = [ClewLogger(engine)]
    await talk([SYSTEM], streamed, turns=1, model="openai/gpt-4o-mini", api_base=f"{provider.url}/v1")
    assert len(provider.heard) == 2
    assert told(heard) == []


async def test_conversations_have_their_callers_names(engine: Engine) -> None:
    litellm.callbacks = [ClewLogger(engine)]
    with StrictProvider() as provider:
        given = {"model": "openai/gpt-4o-mini", "api_base": f"{provider.url}/v1"}
        said = [{"role": "user", "content": "hi"}]
        await whole(messages=said, metadata={"session_id": "one"}, **given)
        await whole(messages=said, litellm_session_id="two", **given)
        await whole(messages=said, **given)
    assert sorted(str(session.name) for session in await Sessions(engine).all()) == ["None", "one", "two"]


async def test_keys_of_the_proxy_have_logs_of_their_own(engine: Engine) -> None:
    hook = ClewLogger(engine)
    for key in ("a1", "b2"):
        known = {"user_api_key_hash": key, "session_id": "same"}
        for place in ("metadata", "litellm_metadata"):  # the proxy's word, whichever list of the caller's is beside it
            call = {"model": "gpt-4o", "litellm_call_id": key + place, place: known, "messages": [SYSTEM | {"n": key}]}
            assert await hook.async_pre_call_deployment_hook(call, CallTypes.acompletion) is None
    for key in ("a1", "b2"):
        (session,) = await Sessions(engine, scope=f"default-{key}").all()
        assert session.name == "same"
    assert await Sessions(engine).all() == []


async def test_messages_of_anthropic_fit(engine: Engine, heard: list[Event]) -> None:
    litellm.callbacks = [ClewLogger(engine)]
    said: list[Any] = []
    with StrictProvider(window=WINDOW) as provider:
        for n in range(20):
            said.append({"role": "user", "content": f"Page {n}. " + "detail " * 700})
            given = {"model": "anthropic/claude-sonnet-4-5", "system": "You read.", "max_tokens": 100}
            answer: Any = await litellm.anthropic_messages(messages=said, api_base=provider.url, **given)
            said.append({"role": "assistant", "content": answer["content"]})
    assert len(provider.heard) == 20
    assert provider.heard[-1].body["system"] == "You read."
    assert len(provider.heard[-1].body["messages"]) < len(said)


@pytest.mark.parametrize("stream", [False, True])
async def test_responses_fit(engine: Engine, stream: bool) -> None:
    litellm.callbacks = [ClewLogger(engine)]
    said: list[Any] = []
    with StrictProvider(window=WINDOW) as provider:
        for n in range(20):
            said.append({"role": "user", "content": f"Page {n}. " + "detail " * 700})
            given = {"model": "openai/gpt-4o-mini", "api_base": f"{provider.url}/v1", "stream": stream}
            answer: Any = await litellm.aresponses(input=said, **given)
            if stream:
                *_, last = [event async for event in answer]
                answer = last.response
            said += answer.output
    assert len(provider.heard) == 20
    assert len(provider.heard[-1].body["input"]) < len(said)


async def test_what_litellm_asks_in_another_format_is_fitted_once(engine: Engine) -> None:
    litellm.callbacks = [ClewLogger(engine)]
    with StrictProvider(window=200_000) as provider:
        given = {"model": "anthropic/claude-sonnet-4-5", "api_base": provider.url}
        await litellm.aresponses(input=[{"role": "user", "content": "hi"}], **given)
    assert [one.path for one in provider.heard] == ["/v1/messages"]
    assert len(await Sessions(engine).all()) == 1


async def test_what_was_too_long_is_shorter_in_the_next_try(tmp_path: Path) -> None:
    litellm.callbacks = [ClewLogger(tmp_path / "clew.db")]  # the window is not known: gpt-4o has 128,000
    said = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"Page {n}. " + "word " * 700} for n in range(31)
    ]
    with StrictProvider(window=WINDOW) as provider:
        given = {"model": "openai/gpt-4o", "api_base": f"{provider.url}/v1"}
        deployments = [{"model_name": name, "litellm_params": given} for name in ("main", "again")]
        router = litellm.Router(deployments, context_window_fallbacks=[{"main": ["again"]}], num_retries=0)
        answer: Any = await router.acompletion(model="main", messages=said)
        assert answer.choices[0].message.content == "Understood."
        assert len(provider.heard) == 2
        litellm.callbacks.clear()
        with pytest.raises(litellm.ContextWindowExceededError):  # alone, LiteLLM asks once
            await whole(messages=said, **given)
        litellm.callbacks = [ClewLogger(tmp_path / "other.db")]
        with pytest.raises(litellm.ContextWindowExceededError):
            await whole(messages=said, **given)
        await whole(messages=said, **given)  # and the next request fits


async def test_thinking_is_not_sent_after_what_it_was_not_bound_to(engine: Engine) -> None:
    hook = ClewLogger(engine)
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    said: list[Any] = []
    for n in range(20):
        said.append({"role": "user", "content": f"Page {n}. " + "detail " * 700})
        call = {"model": "anthropic/claude-opus-5-5", "litellm_call_id": str(n), "messages": said}
        changed = await hook.async_pre_call_deployment_hook(call, CallTypes.acompletion)
        said.append({"role": "assistant", "content": f"Read page {n}.", "thinking_blocks": [thought]})
    assert changed
    assert len(changed["messages"]) < len(said)
    assert "thinking_blocks" not in str(changed["messages"])


async def test_where_clew_fails_the_request_goes_out_as_it_came(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken.db").write_text("no store")
    litellm.callbacks = [ClewLogger(tmp_path / "broken.db")]
    with StrictProvider() as provider:
        message = await whole(
            messages=[{"role": "user", "content": "hi"}], model="openai/gpt-4o", api_base=f"{provider.url}/v1"
        )
    assert message.content == "Understood."
    assert "the original request is sent unchanged" in caplog.text


async def test_the_proxy_finds_the_handler_by_its_name(tmp_path: Path) -> None:
    found = get_instance_fn("clew.adapters.litellm.handler", str(tmp_path / "config.yaml"))
    assert isinstance(found, ClewLogger)
    assert isinstance(found, litellm.integrations.custom_logger.CustomLogger)


async def test_another_process_goes_on(tmp_path: Path, engine: Engine, provider: StrictProvider) -> None:
    litellm.callbacks = [ClewLogger(engine)]
    said: list[Any] = [SYSTEM]
    given = {"model": "openai/gpt-4o-mini", "api_base": f"{provider.url}/v1"}
    await talk(said, whole, turns=TURNS - 1, **given)
    before = provider.heard[-1].body["messages"]
    again = Engine(SQLite(tmp_path / "clew.db"), engine.budget, engine.settings)
    litellm.callbacks = [ClewLogger(again)]
    await talk(said, whole, turns=1, **given)
    after = provider.heard[-2].body["messages"]
    assert after[: len(before)] == before
