"""A wrapped client of Google's SDK: while there is room nobody notices, and then it fits.

The SDK is imported where it is used: every process of the tests imports this file, and one of them needs it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

import clew
from clew.errors import BadRequest, OverBudget
from clew.testing import Answer, Call, StrictProvider
from clients import WINDOW, engine

if TYPE_CHECKING:
    from google.genai import types

MODEL = "gemini-2.5-flash"
LONG = "all is well with the parser. " * 60


class Verdict(BaseModel):
    ok: bool


def plain_of(provider: StrictProvider) -> Any:
    from google import genai
    from google.genai import types

    quick = {"verify": False}  # reading certificates is what takes time, and none is used
    options = types.HttpOptions(base_url=provider.url, client_args=quick, async_client_args=quick)
    return genai.Client(api_key="none", http_options=options)


def text(role: str, said: str) -> "types.Content":
    from google.genai import types

    return types.Content(role=role, parts=[types.Part(text=said)])


def whole(client: Any, contents: Any, **config: Any) -> Any:
    return client.models.generate_content(model=MODEL, contents=contents, config=config)


def streamed(client: Any, contents: Any, **config: Any) -> Any:
    return list(client.models.generate_content_stream(model=MODEL, contents=contents, config=config))


def parsed(client: Any, contents: Any, **config: Any) -> Any:
    asked = {"response_mime_type": "application/json", "response_schema": Verdict}
    return whole(client, contents, **config, **asked)


async def awaited(client: Any, contents: Any, **config: Any) -> Any:
    return await client.aio.models.generate_content(model=MODEL, contents=contents, config=config)


async def awaited_stream(client: Any, contents: Any, **config: Any) -> Any:
    stream = await client.aio.models.generate_content_stream(model=MODEL, contents=contents, config=config)
    return [chunk async for chunk in stream]


def told(answer: Any) -> Any:
    """An answer without what differs from one to the next: its id, and the moment at which it came."""
    if isinstance(answer, list):
        return [told(one) for one in answer]
    return answer.model_dump(exclude={"sdk_http_response", "response_id", "create_time"})


def said(answer: Any) -> str:
    return "".join(chunk.text or "" for chunk in (answer if isinstance(answer, list) else [answer]))


@pytest.mark.few(1)
@pytest.mark.parametrize("way", [whole, streamed, parsed])
def test_with_room_the_provider_hears_the_very_bytes(tmp_path: Path, way: Callable[..., Any]) -> None:
    heard, got = [], []
    for wrapped in (False, True):
        with StrictProvider([Answer('{"ok": true}', reasoning="Hm.")]) as provider:
            client = clew.wrap(plain_of(provider), engine(tmp_path / "clew.db")) if wrapped else plain_of(provider)
            got.append(told(way(client, "Is it?", system_instruction="Be brief.", temperature=0.5)))
            heard.append([(h.raw, h.path, h.query) for h in provider.heard])
            sent = provider.heard[0].headers
            assert sent["x-goog-api-key"] == "none"
            assert sent["user-agent"].count("google-genai-sdk") == 1
    assert heard[0] == heard[1]
    assert got[0] == got[1]


@pytest.mark.filterwarnings("ignore:Inheritance class")  # of the SDK itself, where aiohttp is installed
@pytest.mark.parametrize("way", [awaited, awaited_stream])
async def test_so_it_is_where_answers_are_awaited(tmp_path: Path, way: Callable[..., Any]) -> None:
    heard, got = [], []
    for wrapped in (False, True):
        with StrictProvider([Answer("Yes.")]) as provider:
            client = clew.wrap(plain_of(provider), engine(tmp_path / "clew.db")) if wrapped else plain_of(provider)
            got.append(told(await way(client, "Is it?")))
            await client.aio.aclose()
            heard.append([(h.raw, h.path, h.query) for h in provider.heard])
    assert heard[0] == heard[1]
    assert got[0] == got[1]


@pytest.mark.few(1)
@pytest.mark.parametrize("way", [whole, streamed])
def test_a_list_that_grows_past_the_window_fits_and_nothing_is_lost(tmp_path: Path, way: Callable[..., Any]) -> None:
    contents: list[types.Content] = []
    with StrictProvider([Answer("Read it.")], window=WINDOW) as provider:
        client = clew.wrap(plain_of(provider), engine(tmp_path / "clew.db"), session="pages")
        for n in range(30):
            contents.append(text("user", f"Page {n}: the port is {8000 + n}. {LONG}"))
            assert said(way(client, contents)) == "Read it."
            contents.append(text("model", "Read it."))
    assert len(provider.heard) == 30
    assert all("model" not in h.raw.decode()[:10] for h in provider.heard)
    assert client.clew.last is not None
    folded = next(node for node in client.clew.last.nodes if node.item.kind == "summary")
    originals = clew.run(client.clew.recall(folded.id))
    assert any(node.item.text.startswith("Page 1: the port is 8001.") for node in originals)
    assert clew.run(client.clew.engine.store.session("default", "pages")) is not None


async def test_what_is_awaited_fits_too_in_the_sdks_own_chat(tmp_path: Path) -> None:
    with StrictProvider([Answer("Read it.")], window=WINDOW) as provider:
        client = clew.wrap(plain_of(provider), engine(tmp_path / "clew.db"))
        chat = client.aio.chats.create(model=MODEL)
        for n in range(20):
            assert (await chat.send_message(f"Page {n}: {LONG}")).text == "Read it."
    assert len(provider.heard) == 20
    assert len(chat.get_history()) == 40


@pytest.mark.few(1)
@pytest.mark.parametrize("way", [whole, streamed])
def test_a_window_that_is_smaller_than_thought_is_learned_from_the_refusal(
    tmp_path: Path, way: Callable[..., Any]
) -> None:
    contents = [text("user" if n % 2 == 0 else "model", f"Page {n}: {LONG}") for n in range(41)]
    with StrictProvider([Answer("Read it.")], window=WINDOW) as provider:
        client = clew.wrap(plain_of(provider), engine(tmp_path / "clew.db", window=100_000))
        assert said(way(client, contents)) == "Read it."
        assert said(way(client, contents)) == "Read it."
    assert [h.spent.input > WINDOW for h in provider.heard] == [True, False, False]


@pytest.mark.few(1)
@pytest.mark.parametrize("way", [whole, streamed])
def test_the_model_recalls_and_the_caller_does_not_see_it(tmp_path: Path, way: Callable[..., Any]) -> None:
    contents: list[types.Content] = []
    asks = Answer(calls=(Call("search_history", {"query": "port 8002"}),))
    with StrictProvider([*[Answer("Read it.")] * 20, asks, Answer("8002.")], window=WINDOW) as provider:
        client = clew.wrap(plain_of(provider), engine(tmp_path / "clew.db"), tools=True)
        for n in range(20):
            contents.append(text("user", f"Page {n}: the port is {8000 + n}. {LONG}"))
            way(client, contents)
            contents.append(text("model", "Read it."))
        contents.append(text("user", "Which port was on page 2?"))
        assert said(way(client, contents)) == "8002."
    assert "the port is 8002" in str(provider.heard[-1].body["contents"][-1])


def test_a_function_of_the_callers_is_run_by_the_sdk(tmp_path: Path) -> None:
    from google.genai import types

    def read(path: str) -> str:
        """Read a file."""
        return "\n".join(f"{path} line {n}: row {n * 13}" for n in range(2_000))

    script = [Answer(calls=(Call("read", {"path": "a.py"}), Call("read", {"path": "b.py"}))), Answer("Seen.")]
    with StrictProvider(script, window=WINDOW) as provider:
        client = clew.wrap(plain_of(provider), engine(tmp_path / "clew.db"), tools=True)
        answer = client.models.generate_content(
            model=MODEL, contents="Read both.", config=types.GenerateContentConfig(tools=[read])
        )
        assert answer.text == "Seen."
    assert len(provider.heard) == 2
    assert answer.automatic_function_calling_history is not None
    assert "row 25987" in str(answer.automatic_function_calling_history)


def test_what_cannot_fit_is_an_error_of_the_sdk_too(tmp_path: Path) -> None:
    from google.genai import errors

    with StrictProvider() as provider:
        client = clew.wrap(plain_of(provider), engine(tmp_path / "clew.db"))
        with pytest.raises(OverBudget) as caught:
            whole(client, "Hello.", system_instruction=LONG * 60)
    assert isinstance(caught.value, errors.APIError)
    assert caught.value.code == 400
    assert provider.heard == []


def test_a_failure_of_ours_sends_what_was_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = engine(tmp_path / "clew.db")
    clew.run(broken.store.close())
    with StrictProvider([Answer("Yes.")]) as provider:
        assert said(whole(clew.wrap(plain_of(provider), broken), "Is it?")) == "Yes."
    assert "clew failed; the original request is sent unchanged" in caplog.text


def test_a_child_hangs_under_its_parent_and_no_client_is_wrapped_twice(tmp_path: Path) -> None:
    with StrictProvider([Answer("Yes.")]) as provider:
        client = clew.wrap(plain_of(provider), engine(tmp_path / "clew.db"), session="work")
        whole(client, "Is it?")
        child = client.clew.child("tests")
        whole(child, "Run them.")
        with pytest.raises(BadRequest, match="already wrapped"):
            clew.wrap(client)
    every = clew.run(clew.Sessions(client.clew.engine).all())
    assert sorted(str(s.cause) for s in every) == ["start", "subagent"]


def test_what_the_provider_keeps_goes_out_as_it_is(tmp_path: Path) -> None:
    with StrictProvider([Answer("Yes.")]) as provider:
        client = clew.wrap(plain_of(provider), engine(tmp_path / "clew.db"))
        whole(client, "Is it?", cached_content="cachedContents/1")
        assert client.clew.last is None
        assert client.models.count_tokens(model=MODEL, contents="Is it?").total_tokens
