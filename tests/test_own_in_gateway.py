"""Whom the gateway asks by itself: with an API key and consent the conversation's own model, with a login nobody."""

import json
import re
from typing import Any

import pytest

from clew.gateway.own_models import is_api_key
from clew.gateway.settings import GatewaySettings
from clew.testing import Answer, StrictProvider
from clew.testing.provider.answers import Stop
from clew.wire.formats import named
from serving import Served, serving
from test_gateway_clients import ASKS, Playing
from test_gateway_compactions import HEADERS, SUMMARISE, ran
from test_gateway_compactions import body as requested

WINDOW = 8_000
CODEX = {"originator": "codex_cli_rs", "chatgpt-account-id": "0b1c", "user-agent": "codex_cli_rs/0.90"}
CLAUDE = {"user-agent": "claude-cli/2.1.325 (external, cli)", "anthropic-version": "2023-06-01"}
LOGINS: dict[str, dict[str, str]] = {
    "Claude Code": {
        **CLAUDE,
        "authorization": "Bearer sk-ant-oat01-abc",
        "anthropic-beta": "claude-code-20250219,oauth-2025-04-20",
    },
    "Claude Code, no beta": {**CLAUDE, "authorization": "Bearer sk-ant-oat01-abc"},
    "Claude Code, as a key": {**CLAUDE, "x-api-key": "sk-ant-oat01-abc"},
    "both": {**CLAUDE, "x-api-key": "sk-ant-api03-abc", "authorization": "Bearer sk-ant-oat01-abc"},
    "Codex": {**CODEX, "authorization": "Bearer eyJhbGciOiJSUzI1NiJ9.e30.x"},
    "Codex, a key that says whose subscription": {**CODEX, "authorization": "Bearer sk-proj-abc"},
    "Copilot": {"authorization": "Bearer ghu_abc", "copilot-integration-id": "vscode-chat"},
    "Gemini": {"authorization": "Bearer ya29.abc"},
    "Gemini, a key beside a project that pays": {"x-goog-api-key": "AIza-abc", "x-goog-user-project": "shop"},
    "nothing": {},
}
KEYS: dict[str, dict[str, str]] = {
    "Claude Code": {**CLAUDE, "x-api-key": "sk-ant-api03-abc"},
    "Codex": {"originator": "codex_cli_rs", "authorization": "Bearer sk-proj-abc"},
    "Gemini": {"x-goog-api-key": "AIza-abc"},
}


@pytest.mark.parametrize("who", LOGINS)
def test_logins(who: str) -> None:
    assert not is_api_key([*LOGINS[who].items()])


@pytest.mark.parametrize("who", KEYS)
def test_keys(who: str) -> None:
    assert is_api_key([*KEYS[who].items()])


def test_a_key_in_the_query() -> None:
    assert is_api_key([], "/v1beta/models/gemini-3-pro:generateContent?key=AIza-abc")


@pytest.fixture(autouse=True)
def as_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what the other tests set for their scripts."""
    monkeypatch.delenv("CLEW_SUMMARY_MODEL", raising=False)


def script(body: dict[str, Any]) -> Answer:
    if is_question(body):
        built = dict.fromkeys(re.findall(r"Build (part \d+)", json.dumps(body)))
        return Answer("<full>" + "\n".join(f"The person had {part} of the house built." for part in built) + "</full>")
    return Answer("Go on.")


def is_question(body: Any) -> bool:
    return "<full>" in json.dumps(body)


def talk(served: Served, headers: dict[str, str], path: str) -> int:
    """Talk far past the window; how often clew asked something by itself."""
    format = {"/v1/messages": "anthropic", "/v1/responses": "openai_responses"}[path]
    said: list[dict[str, Any]] = []
    more = {"max_tokens": 500} if format == "anthropic" else {}
    for n in range(40):
        said.append({"role": "user", "content": f"Build part {n} of the house. {'It has doors and windows. ' * 60}"})
        body = {"model": "claude-sonnet-4-5" if more else "gpt-5", named(format).LIST: said, **more}
        assert served.ask(path, body, headers).status == 200
        said.append({"role": "assistant", "content": f"Part {n} was built."})
    return sum(is_question(heard.body) for heard in served.provider.heard)


def gateway(summary: Any, **given: Any) -> Any:
    settings = GatewaySettings(summary=summary)
    return serving(provider=StrictProvider(script, window=WINDOW), window=WINDOW, settings=settings, **given)


PATHS = {"Claude Code": "/v1/messages", "Codex": "/v1/responses"}


@pytest.mark.few(1)
@pytest.mark.parametrize("who", PATHS)
def test_with_a_login_nothing_is_ever_asked(who: str) -> None:
    with gateway("own") as served:
        assert talk(served, LOGINS[who], PATHS[who]) == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("who", PATHS)
def test_with_a_key_and_consent_its_model_is_asked(who: str) -> None:
    with gateway("own") as served:
        assert talk(served, KEYS[who], PATHS[who]) >= 1
        asked = [h for h in served.provider.heard if is_question(h.body)]
        keys = {h.headers.get("x-api-key") or h.headers.get("authorization") for h in asked}
        assert keys <= {*KEYS[who].values()}
        assert "written by" in json.dumps(served.provider.heard[-1].body)


@pytest.mark.parametrize("settings", [{"summary": "none"}, {"summary": "own", "author": None}])
def test_without_consent_nothing_is_asked(settings: dict[str, Any]) -> None:
    with gateway(**settings) as served:
        assert talk(served, KEYS["Claude Code"], "/v1/messages") == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["claude-2.1.325", "codex"])
@pytest.mark.parametrize("mode", ["prevent", "answer", "pass"])
async def test_what_a_clients_own_model_writes_is_the_chapter(name: str, mode: Any) -> None:
    """With code's part behind it, but where it is passed on; clew asks nothing itself."""
    said = list[str]()

    def write(body: dict[str, Any]) -> Answer:
        if not ASKS.search(asked := json.dumps(body)):
            return Answer("Go on.")
        found = [*dict.fromkeys(re.findall(r"amber[\w-]*", asked))][:9]
        said.append("\n".join(f"The work goes on with {one}, as was said before." for one in found))
        return Answer(f"<summary>\n{said[-1]}\n</summary>")

    settings = GatewaySettings(compaction=mode, summary="own")
    with serving(provider=StrictProvider(write, window=200_000), window=200_000, settings=settings) as served:
        playing = Playing(served, name, turns=16)
        playing.run()
        assert playing.asked >= len(said) >= 1
        assert playing.answered == 0, "its model wrote each of them"
        assert not any(is_question(heard.body) for heard in served.provider.heard)
        last = served.provider.heard[-1].body
        texts = json.dumps(last, ensure_ascii=False).encode().decode("unicode_escape")
        assert said[-1].splitlines()[0] in texts
        assert ("work log" in texts) is (mode != "pass")
        store = served.gateway.engine.store
        branches = {session.branch for session in await store.sessions("default")}
        chapters = [one for branch in branches for one in (await store.load("default", branch)).chapters]
        assert {one.answer.strip() for one in chapters} >= {said[-1].strip()}


async def test_where_its_model_cannot_write_code_answers() -> None:
    def fail(body: dict[str, Any]) -> Answer:
        return Answer(status=500) if ASKS.search(json.dumps(body)) else Answer("Go on.")

    settings = GatewaySettings(summary="own")
    with serving(provider=StrictProvider(fail, window=200_000), window=200_000, settings=settings) as served:
        playing = Playing(served, "claude-2.1.325", turns=16)
        playing.run()
        assert playing.asked
        assert "work log" in playing.summary


@pytest.mark.parametrize(("stop", "kept"), [("end", 1), ("length", 0)])
async def test_what_a_clients_model_wrote_is_a_chapter_only_where_it_wrote_to_the_end(stop: Stop, kept: int) -> None:
    told = "The person had the amber parts built, and make built fact-0.o up to fact-2.o."
    script = [*[Answer("Go on.")] * 3, Answer(f"<summary>{told}</summary>", stop=stop)]
    settings = GatewaySettings(compaction="pass", summary="own")
    with serving(provider=StrictProvider(script, window=200_000), window=200_000, settings=settings) as served:
        history: list[dict[str, Any]] = [
            {"role": "user", "content": [{"type": "text", "text": "Build the amber parts"}]}
        ]
        for n in range(3):
            history += ran(n)
            assert served.ask("/v1/messages", requested(history), HEADERS).status == 200
        history[-1]["content"].append({"type": "text", "text": SUMMARISE})
        assert told in served.ask("/v1/messages", requested(history), HEADERS).spoken("anthropic").text
        store = served.gateway.engine.store
        branches = {session.branch for session in await store.sessions("default")}
        chapters = [one for branch in branches for one in (await store.load("default", branch)).chapters]
        assert [one.answer for one in chapters] == [told] * kept
