"""Every format, and all that clew does in one: what is said in it is read again as what was said."""

import json
from typing import Any

import pytest

from clew import wire
from clew.agent.results import frame, partial
from clew.core.items import Item
from clew.errors import BadRequest, ModelError
from clew.wire.convert.extras import with_tail, with_tools
from clew.wire.convert.media import parts_of
from clew.wire.convert.tools import declared, tools_of
from clew.wire.formats.base import CallResult, Format, ModelQuestion
from clew.wire.formats.media import Media
from clew.wire.formats.tools import Choice, ToolDeclaration

TOOL = ToolDeclaration("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
PICTURE = Media("image", "image/png", "iVBORw0KGgo=")
RESULTS = [CallResult("c1", "read", "It is there."), CallResult("c2", "read", "No such file.", failed=True)]
SAYS_FAILED = {"anthropic", "bedrock", "gemini"}  # that a call failed; in OpenAI's formats only the words tell it
SPOKEN = [name for name in wire.FORMATS if name != "bedrock"]  # in which clew reads answers

each = pytest.mark.parametrize("format", wire.FORMATS.values(), ids=lambda one: one.NAME)


def body_of(format: Format, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {format.model_key: "some-model", format.LIST: list(messages), **more}


def items_of(format: Format, *messages: dict[str, Any]) -> list[Item]:
    return wire.decode(body_of(format, *messages), format.NAME)[1]


@each
def test_what_a_user_and_the_assistant_say(format: Format) -> None:
    said = items_of(format, format.asked("Look at this."), *partial("I am loo", format.NAME))
    assert [(item.role, item.kind, item.text) for item in said] == [
        ("user", "text", "Look at this."),
        ("assistant", "text", "I am loo"),
    ]
    seen = format.read_media(format.write_media(PICTURE) or {})
    assert isinstance(seen, Media)
    assert (seen.mime, seen.data) == (PICTURE.mime, PICTURE.data)
    assert partial(" ", format.NAME) == []


@each
def test_what_tools_gave_back(format: Format) -> None:
    said = items_of(format, *format.results(RESULTS))
    assert [(item.kind, item.call_id, item.text) for item in said] == [
        ("result", "c1", "It is there."),
        ("result", "c2", "No such file."),
    ]
    assert [format.has_failed(item) for item in said] == [False, format.NAME in SAYS_FAILED]
    assert (len(format.results(RESULTS)) == 1) is format.joins_results
    assert format.results([]) == []


@each
def test_an_agent_s_request(format: Format) -> None:
    body = frame(format.NAME, "some-model", "Be brief.", [TOOL], 1_000)
    body |= {format.LIST: [*format.lead("Be brief."), format.asked("Hello.")]}
    read, items = wire.decode(body, format.NAME)
    assert read.model == "some-model"
    assert read.system == "Be brief."
    assert items[-1].text == "Hello."
    assert [*tools_of(read)] == ["read"]
    assert format.parameter_holder(body)[format.parameters.limit] == 1_000


@each
@pytest.mark.parametrize("choice", [Choice("any"), Choice(only="read"), Choice("auto")])
def test_tools_and_which_of_them(format: Format, choice: Choice) -> None:
    body = body_of(format, **format.write_tools([TOOL], choice))
    read = wire.decode(body, format.NAME)[0]
    assert tools_of(read)["read"].description == "Read a file."
    assert format.read_choice(read.body) == choice
    more = with_tools(body, format.NAME, [ToolDeclaration("recall")])
    assert declared(more, format.NAME) == {"read", "recall"}
    with pytest.raises(BadRequest, match="its own tools named read"):
        with_tools(body, format.NAME, [TOOL])


@each
def test_a_word_at_the_very_end(format: Format) -> None:
    for messages in ([format.asked("Hello.")], format.results(RESULTS)):
        sent = with_tail(body_of(format, *messages), format.NAME, "Half is full.")
        last = wire.decode(sent, format.NAME)[1][-1]
        assert (last.text, last.role) == ("Half is full.", "system" if format.says_system else "user")


@each
def test_a_result_that_shows_something_or_failed(format: Format) -> None:
    plain = Item("result", "tool", "Here:", "read", "c1")
    shown = [block for block in [format.shown(PICTURE)] if block]
    made = format.with_parts(plain, ["Here:", *shown], failed=True)
    [again] = items_of(format, *format.write([made]))
    assert format.has_failed(again) is (format.NAME in SAYS_FAILED)
    parts = parts_of(again, format.NAME)
    assert parts[0] == "Here:"
    assert [part.data for part in parts[1:] if isinstance(part, Media)] == [PICTURE.data] * len(shown)
    assert format.with_parts(plain, ["Here:"], failed=False) is plain


@each
def test_errors_and_counts(format: Format) -> None:
    for status in (400, 401, 403, 404, 413, 429, 500, 503, 504):
        assert "clew: no" in json.dumps(format.error(status, "clew: no"))
    assert 17 in format.counted(17).values()


@each
def test_requests_are_known_by_their_paths(format: Format) -> None:
    model = "/v1beta/models/some-model:generateContent"
    paths = [*format.paths, *([model] if format.read_request(model) else [])]
    assert bool(paths) is (format.NAME in SPOKEN)
    for path in paths:
        assert [one.NAME for one in wire.FORMATS.values() if one.read_request(path)] == [format.NAME]
        below = [one.NAME for one in wire.FORMATS.values() if one.read_request_below(f"/proxy{path}")]
        assert below == [format.NAME]


@each
def test_answers(format: Format) -> None:
    if format.NAME not in SPOKEN:
        with pytest.raises(BadRequest, match="are not read here"):
            format.answer()
        with pytest.raises(BadRequest, match="are not given here"):
            format.answer_block("Hello.", "some-model", 7, 2)
        return
    whole = format.answer_block("Hello.", "some-model", 7, 2)
    for told in ([whole], [event for _, event in format.events(whole)]):
        answer = format.answer()
        for event in told:
            answer.add(event)
        spoken = answer.spoken()
        assert (spoken.text, spoken.stop) == ("Hello.", "end")
        assert spoken.usage is not None
        assert spoken.usage[format.usage_keys[0]] == 7
    assert format.answer().spoken().stop == "cut"  # nothing came
    assert format.joined(lambda name: name == "recall").end(muted=False) == b""
    assert format.usage_keys


def test_each_format_says_of_itself_all_that_is_asked() -> None:
    for format in wire.FORMATS.values():
        assert format.NAME.isidentifier()
        assert format.RULES
        assert format.parameters.limit


@each
def test_what_a_model_is_asked_by_itself_and_after_a_request(format: Format) -> None:
    if format.NAME not in SPOKEN:
        with pytest.raises(ModelError, match=format.NAME):
            format.question(ModelQuestion("Sum it up.", 100, "some-model"))
        return
    for after in (None, body_of(format, format.asked("Hello."))):
        before = 0 if after is None else 1
        body = format.question(ModelQuestion("Sum it up.", 100, "some-model", "Be brief.", after))
        frame, items = wire.decode({format.model_key: "some-model", **body}, format.NAME)
        asked = [item.text for item in items if item.role == "user"]
        assert asked == ["Hello."] * before + ["Sum it up."]
        said = frame.system + "".join(item.text for item in items if item.role == "system")
        assert said == ("" if before else "Be brief."), "what was sent before stays as it is"
        assert 100 in {**body, **format.parameter_holder(body)}.values()


def test_numbers_on_disk_stay_what_they_were() -> None:
    numbers = {name: one.number for name, one in wire.FORMATS.items()}
    assert numbers == {"openai_chat": 0, "anthropic": 1, "openai_responses": 2, "gemini": 3, "bedrock": 4}
