"""The model that a conversation talks to writes its chapters: when it is asked, when never, and what comes of it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest

import clew
from clew import Budget, Engine, SQLite, events, run
from clew.engine.settings import Settings
from clew.steps.chapters.by_model import ByModel
from clew.testing import Answer, Call, ScriptedModel, StrictProvider, write_chapter
from clew.wire import decode
from clew.wire.convert.demands import may_be_followed

WINDOW = 8_000
FIGURE = re.compile(r"programme \d+ cut costs by [\d.]+ percent")
TOOLS = [{"type": "function", "function": {"name": "web", "parameters": {"type": "object", "properties": {}}}}]
FILLER = "The report describes methods, participants and limits; readers should consult its annex. "


@pytest.fixture(autouse=True)
def as_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what the other tests set for their scripts."""
    monkeypatch.delenv("CLEW_SUMMARY_MODEL", raising=False)


def said(body: Any) -> str:
    return json.dumps(body["messages"], ensure_ascii=False)


def is_question(body: Any) -> bool:
    return "<full>" in said(body)


class Research:
    """An agent of somebody's own that looks many things up, each with one figure, through a wrapped client."""

    def __init__(self, folder: Path, steps: int = 40, **settings: Any) -> None:
        self.steps, self.n = steps, 0
        self.heard: list[events.Event] = []
        given = Settings(listeners=[self.heard.append], **settings)
        self.engine = Engine(SQLite(folder / "clew.db"), Budget(window=WINDOW), given)
        self.figures: list[str] = []
        self.write: Callable[[list[str]], str] = lambda found: "\n".join(f"- {one}." for one in found)

    def script(self, body: dict[str, Any]) -> Answer:
        if is_question(body):
            found = self.write([*dict.fromkeys(FIGURE.findall(said(body)))])
            return Answer(f"<line>Figures.</line><short>Some figures.</short><full>\n{found}\n</full>", seconds=0.02)
        self.n += 1
        done = self.n > self.steps
        return Answer("Report.") if done else Answer(calls=(Call("web", {"q": str(self.n)}),), seconds=0.02)

    def go(self, provider: StrictProvider, **given: Any) -> dict[str, Any]:
        """All of the work, and the last request of it."""
        plain = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0)
        client = clew.wrap(plain, self.engine)
        messages: list[Any] = [{"role": "user", "content": "Which programmes save money? A figure for each."}]
        asked = {"model": "gpt-4o", "tools": TOOLS, **given}
        while True:
            try:
                made = client.chat.completions.create(messages=messages, **asked)
            except openai.RateLimitError:
                continue
            answer = made.choices[0].message
            calls = answer.tool_calls or []
            messages.append({"role": "assistant", "content": answer.content})
            if not calls:
                break
            messages[-1]["tool_calls"] = [call.model_dump() for call in calls]
            for call in calls:
                self.figures.append(f"programme {self.n} cut costs by {self.n * 13 % 89}.{self.n % 10} percent")
                text = f"{self.figures[-1]}.\n{FILLER * 22}"
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        run(self.engine.close())
        run(self.engine.store.close())
        return [h.body for h in provider.heard if not is_question(h.body)][-1]

    def shown(self, body: dict[str, Any]) -> int:
        """How many figures stand there, also where code tells several results as one: "the same of: 20 cut costs"."""
        return sum(f" {figure.removeprefix('programme ')}" in said(body) for figure in self.figures)


def questions(provider: StrictProvider) -> int:
    return sum(is_question(heard.body) for heard in provider.heard)


def new_text(research: Research) -> int:
    return len(research.figures) * (len(FILLER) * 22 + 60) // 4


def test_all_figures_that_its_model_tells_are_in_the_last_request(tmp_path: Path) -> None:
    research = Research(tmp_path)
    with StrictProvider(research.script, window=WINDOW) as provider:
        last = research.go(provider)
    assert research.shown(last) == 40
    assert 1 <= questions(provider) <= new_text(research) / (0.4 * 0.7 * WINDOW)
    assert not any(isinstance(one, events.Declined) for one in research.heard)
    follows = [(h.prompt, h.before) for h in provider.heard if is_question(h.body)]
    assert all(h.shared > 4_000 for h in provider.heard if is_question(h.body)), f"from its cache: {len(follows)}"


def test_what_it_tells_is_there_and_what_it_leaves_out_can_be_recalled(tmp_path: Path) -> None:
    research = Research(tmp_path)
    research.write = lambda found: "\n".join(f"It came out that {one}." for one in found if "0 cut" not in one)
    with StrictProvider(research.script, window=WINDOW) as provider:
        last = research.go(provider)
    assert research.shown(last) >= 36
    assert "written by gpt-4o" in said(last)
    assert "recall" in said(last)


@pytest.mark.few(1)
@pytest.mark.parametrize("how", ["environment", "settings"])
def test_with_none_nothing_is_asked(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "environment":
        monkeypatch.setenv("CLEW_SUMMARY_MODEL", "none")
    research = Research(tmp_path, 20, **({} if how == "environment" else {"author": None}))
    with StrictProvider(research.script, window=WINDOW) as provider:
        research.go(provider)
    assert questions(provider) == 0
    assert len(provider.heard) == 21


def test_another_model_that_is_named_is_asked_instead(tmp_path: Path) -> None:
    other = ScriptedModel(write_chapter)
    research = Research(tmp_path, 20, author=ByModel(other))
    with StrictProvider(research.script, window=WINDOW) as provider:
        research.go(provider)
    assert questions(provider) == 0
    assert other.prompts


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "more",
    [
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "function": {"name": "web"}}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "costs", "schema": {"type": "object"}}}},
        {"extra_body": {"web_search_options": {}}},
    ],
)
def test_never_after_a_request_that_wants_something_else_than_a_text(tmp_path: Path, more: dict[str, Any]) -> None:
    research = Research(tmp_path, 20)
    with StrictProvider(research.script, window=WINDOW) as provider:
        research.go(provider, **more)
    assert questions(provider) == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("login", [{"Authorization": "Bearer sk-ant-oat01-abc"}, {"chatgpt-account-id": "0b1c"}])
def test_with_a_login_nothing_is_asked(tmp_path: Path, login: dict[str, str]) -> None:
    research = Research(tmp_path, 20)
    with StrictProvider(research.script, window=WINDOW) as provider:
        research.go(provider, extra_headers=login)
    assert questions(provider) == 0
    assert len(provider.heard) == 21


def test_not_within_a_minute_of_a_provider_that_is_busy(tmp_path: Path) -> None:
    research = Research(tmp_path, 20)

    def script(body: dict[str, Any]) -> Answer:
        if research.n == 5 and not research.heard_busy:  # type: ignore[attr-defined]
            research.heard_busy = True  # type: ignore[attr-defined]
            return Answer(status=429)
        return research.script(body)

    research.heard_busy = False  # type: ignore[attr-defined]
    with StrictProvider(script, window=WINDOW) as provider:
        research.go(provider)
    assert questions(provider) == 0


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "answer", ["", "I cannot help with that.\n" * 9, "Costs fell by 17.93 percent in P-4711. " * 40]
)
def test_whatever_it_writes_the_work_goes_on(tmp_path: Path, answer: str) -> None:
    """Nothing, rudeness, lies: code writes, and the view does not say that a model did."""
    research = Research(tmp_path, 25)
    research.write = lambda _: answer
    with StrictProvider(lambda b: Answer(answer) if is_question(b) else research.script(b), window=WINDOW) as provider:
        last = research.go(provider)
    assert research.n == 26
    assert 1 <= questions(provider) <= 2, "then the breaker is open"
    assert "written by" not in said(last)


BASE: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello."}]}


@pytest.mark.parametrize(
    ("format", "more", "may"),
    [
        ("openai_chat", {"tools": TOOLS}, True),
        ("openai_chat", {"n": 3}, False),
        ("openai_chat", {"response_format": {"type": "json_schema"}}, False),
        ("openai_chat", {"response_format": {"type": "text"}}, True),
        ("openai_chat", {"response_format": {"type": "json_object"}}, False),
        ("openai_chat", {"guided_json": {"type": "object"}}, False),
        ("openai_chat", {"modalities": ["text", "audio"]}, False),
        ("openai_chat", {"tools": TOOLS, "tool_choice": "required"}, False),
        ("anthropic", {"output_config": {"format": {"type": "json_schema"}}}, False),
        ("anthropic", {"tools": [{"name": "web", "input_schema": {}}], "tool_choice": {"type": "none"}}, True),
        ("anthropic", {"container": {"id": "c1"}}, False),
        ("openai_responses", {"tools": [{"type": "function", "name": "web"}], "tool_choice": "required"}, False),
        ("gemini", {"generationConfig": {"responseMimeType": "application/json"}}, False),
        ("gemini", {"generationConfig": {"responseModalities": ["IMAGE"]}}, False),
        ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, False),
        ("bedrock", {"toolConfig": {"tools": [{"toolSpec": {"name": "web"}}], "toolChoice": {"any": {}}}}, False),
        ("anthropic", {"tools": [{"name": "web", "input_schema": {}}]}, True),
        ("anthropic", {"tools": [{"type": "bash_20250124", "name": "bash"}]}, True),
        ("anthropic", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, False),
        ("anthropic", {"mcp_servers": [{"type": "url", "url": "https://mcp.example"}]}, False),
        ("anthropic", {"tool_choice": {"type": "any"}, "tools": [{"name": "web", "input_schema": {}}]}, False),
        ("openai_responses", {"tools": [{"type": "function", "name": "web"}]}, True),
        ("openai_responses", {"tools": [{"type": "web_search"}]}, False),
        ("openai_responses", {"tools": [{"type": "mcp", "server_label": "x"}]}, False),
        ("openai_responses", {"previous_response_id": "resp_1"}, False),
        ("openai_responses", {"conversation": "conv_1"}, False),
        ("openai_responses", {"background": True}, False),
        ("openai_responses", {"text": {"format": {"type": "json_schema"}}}, False),
        ("gemini", {"tools": [{"functionDeclarations": [{"name": "web"}]}]}, True),
        ("gemini", {"tools": [{"google_search": {}}]}, False),
        ("gemini", {"cachedContent": "cachedContents/1"}, False),
        ("gemini", {"generationConfig": {"responseSchema": {"type": "OBJECT"}}}, False),
        ("gemini", {"generationConfig": {"candidateCount": 2}}, False),
        ("bedrock", {"toolConfig": {"tools": [{"toolSpec": {"name": "web"}}]}}, True),
        ("bedrock", {"toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}]}}, False),
    ],
)
def test_after_which_requests_a_model_may_be_asked(format: str, more: dict[str, Any], may: bool) -> None:
    key = {"openai_responses": "input", "gemini": "contents"}.get(format, "messages")
    said = {"gemini": {"role": "user", "parts": [{"text": "Hi."}]}, "bedrock": {"role": "user", "content": []}}
    first = said.get(format, {"role": "user", "content": "Hello."})
    assert may_be_followed(decode({"model": "m", key: [first], **more}, format)[0]) is may
