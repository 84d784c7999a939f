"""The compressor in the form that PraisonAI's users asked for."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from praisonaiagents.context.compressor import CompressResult
from praisonaiagents.context.tokens import get_estimator
from praisonaiagents.session.store import DefaultSessionStore

from clew import Engine, Sessions, SQLite, run
from clew.adapters.praisonai import ContextCompressor
from clew.llm.openai import OpenAIModel
from clew.steps.chapters.model import Prompt
from clew.testing import PICTURE, Answer, ScriptedModel, StrictProvider, write_chapter
from clew.tokens import counter_for
from clew.wire import check

Message = dict[str, Any]
Made = Callable[..., Message]

HEADING = "[Context summary]\n"


def notes(text: str) -> str:
    return write_chapter(Prompt(text, 1_000))


def summaries(messages: list[Message]) -> list[int]:
    return [i for i, m in enumerate(messages) if str(m.get("content")).startswith(HEADING)]


async def test_head_and_tail_stay_and_one_message_tells_of_the_middle(talk: list[Message]) -> None:
    model = ScriptedModel(write_chapter)
    result = await ContextCompressor(llm=model).compress(talk, protect_last_n_tokens=600)
    (at,) = summaries(result.messages)
    assert result.messages[:at] == talk[:4]
    assert result.messages[at].keys() == {"role", "content"}
    assert result.messages[at]["role"] == "user"
    tail = result.messages[at + 1 :]
    assert tail == talk[-len(tail) :]
    assert tail[0]["role"] != "tool"
    assert check({"messages": result.messages, "model": "gpt-4o"}, "openai_chat") == []
    assert (result.head_preserved_count, result.tail_preserved_count) == (4, len(tail))
    assert result.middle_compressed_count == len(talk) - 4 - len(tail)
    assert len(model.prompts) == 1
    assert result.faults == ()


async def test_what_a_model_writes_as_it_likes_is_in_the_messages(talk: list[Message]) -> None:
    """At the size that is the default, and again with another one and after a restart."""
    ported = "\n".join(f"module_{n} listens on port {8000 + n} and is ported." for n in range(3, 11))
    written = f"## Progress\n\n{ported}\n- error E1004 is fixed in module_4\n- by Zorro-77"
    for size in (750, 400):
        model = ScriptedModel(lambda _: written)
        result = await ContextCompressor(llm=model).compress(
            talk, protect_last_n_tokens=600, summary_target_tokens=size
        )
        (at,) = summaries(result.messages)
        told = result.messages[at]["content"]
        assert all(f"\n  {line}\n" in f"{told}\n" for line in written.splitlines() if line), "word for word"
        assert "\nNot found in the originals: Zorro-77" in told
        assert counter_for("gpt-4o").text(told) <= size


async def test_the_numbers_are_those_of_middle_and_summary(talk: list[Message]) -> None:
    def words(text: str) -> int:
        return len(text.split())

    result = await ContextCompressor(tokenizer=words).compress(talk, protect_last_n_tokens=200)
    (at,) = summaries(result.messages)

    async def count(messages: list[Message]) -> int:
        whole = await ContextCompressor(tokenizer=words).compress(messages, protect_last_n_tokens=10**6)
        return int(whole.original_tokens)

    middle = talk[at : at + result.middle_compressed_count]
    assert result.tokens_saved == await count(middle) - await count([result.messages[at]]) > 0
    assert (result.original_tokens, result.final_tokens) == (await count(talk), await count(result.messages))
    assert result.summary_token_count >= words(result.messages[at]["content"])
    assert result.compression_ratio == result.final_tokens / result.original_tokens


def lines(prompt: Prompt) -> str:
    return "\n".join(re.findall(r"module_\d+ is ported; error E\d+ is fixed\.", prompt.text))


WRITERS = {
    "code": None,
    "three lengths": write_chapter,
    "lines": lines,
    "a paragraph": lambda prompt: lines(prompt).replace("\n", " "),
}


@pytest.mark.parametrize("writer", WRITERS)
async def test_a_summary_keeps_to_its_size(talk: list[Message], writer: str) -> None:
    """One message, whoever writes it, and whatever size the writer takes."""
    count = counter_for("gpt-4o").text
    llm = ScriptedModel(WRITERS[writer]) if WRITERS[writer] else None
    for size in (100, 150, 300, 750, 1_500, 3_000):
        result = await ContextCompressor(llm).compress(talk, protect_last_n_tokens=300, summary_target_tokens=size)
        assert result.faults == ()
        (at,) = summaries(result.messages)
        assert sum("[work log, " in str(m["content"]) for m in result.messages) == 1
        told = count(result.messages[at]["content"])
        assert told <= 1.1 * size
        assert told >= size / 2 or size in (100, 3_000), "and uses it where there is so much to tell"


async def test_with_nothing_between_head_and_tail_nothing_changes(talk: list[Message]) -> None:
    model = ScriptedModel(write_chapter)
    compressor = ContextCompressor(llm=model)
    for messages in (talk, talk[:4], talk[:1], []):
        result = await compressor.compress(messages)
        assert result.messages == messages
        assert all(a is b for a, b in zip(result.messages, messages, strict=True))
        assert result.tokens_saved == 0
        assert result.session_id is None
    assert model.prompts == []


async def test_a_history_that_comes_again_is_compressed_again(talk: list[Message]) -> None:
    model = ScriptedModel(write_chapter)
    compressor = ContextCompressor(llm=model)
    first, second = [await compressor.compress(talk, protect_last_n_tokens=3_000) for _ in range(2)]
    assert first == second
    assert first.tokens_saved > 0
    assert len(model.prompts) == 1
    shorter = await compressor.compress(talk, protect_last_n_tokens=100)
    assert len(summaries(shorter.messages)) == 1
    assert shorter.tail_preserved_count < first.tail_preserved_count


async def test_other_sizes_are_obeyed_in_the_next_call_and_after_a_restart(talk: list[Message], tmp_path: Path) -> None:
    def told(result: CompressResult) -> int:
        return sum(len(result.messages[i]["content"]) // 4 for i in summaries(result.messages))

    sizes = [(500, 750), (500, 150), (6_000, 750), (500, 750)]
    alone = [
        await ContextCompressor().compress(talk, protect_last_n_tokens=tail, summary_target_tokens=size)
        for tail, size in sizes
    ]
    assert told(alone[1]) < 200 < 500 < told(alone[0])
    assert alone[2].tail_preserved_count > 2 * alone[0].tail_preserved_count
    same = ContextCompressor()
    for (tail, size), by_itself in zip(sizes, alone, strict=True):
        for compressor in (same, ContextCompressor(engine=tmp_path / "clew.db")):
            again = await compressor.compress(talk, protect_last_n_tokens=tail, summary_target_tokens=size)
            assert len(again.messages) == len(by_itself.messages)
            assert abs(told(again) - told(by_itself)) <= 20


async def test_every_system_message_is_in_the_head(talk: list[Message]) -> None:
    second = {"role": "system", "content": "Answer in English."}
    result = await ContextCompressor().compress([*talk[:100], second, *talk[100:]], protect_last_n_tokens=300)
    assert result.messages[:2] == [talk[0], second]


async def test_the_first_exchange_has_all_results_of_its_calls(call: Made, result: Made, talk: list[Message]) -> None:
    opening = [talk[1], call("a", "b"), result("a", "one"), result("b", "two")]
    made = await ContextCompressor().compress([*opening, *talk[4:]], protect_last_n_tokens=300)
    assert made.messages[:4] == opening


async def test_a_tail_larger_than_the_window_shrinks_but_not_below_the_newest_turn(talk: list[Message]) -> None:
    huge = {"role": "user", "content": "What of this? " + "word " * 6_000}
    result = await ContextCompressor(window=6_000).compress([*talk, huge])
    assert result.messages[-1] == huge
    assert result.middle_compressed_count > 100
    small = await ContextCompressor(window=6_000).compress(talk, protect_last_n_tokens=20_000)
    assert small.final_tokens <= 6_000
    assert small.messages[-1] == talk[-1]


async def test_pictures_stay_where_they_are(talk: list[Message]) -> None:
    picture = {"type": "image_url", "image_url": {"url": PICTURE}}
    first = {"role": "user", "content": [{"type": "text", "text": "Draw this."}, picture]}
    result = await ContextCompressor().compress([first, *talk[2:-1], first], protect_last_n_tokens=1_000)
    assert result.messages[0] == result.messages[-1] == first
    assert len(summaries(result.messages)) == 1


async def test_results_that_nobody_has_read_stay(call: Made, result: Made, talk: list[Message]) -> None:
    new = [call("new"), result("new", "the answer is 42\n" * 200)]
    made = await ContextCompressor().compress([*talk, *new], protect_last_n_tokens=100)
    assert made.messages[-2:] == new
    assert talk[-1] in made.messages


async def test_the_whole_middle_reaches_the_model_with_the_arguments(talk: list[Message]) -> None:
    model = ScriptedModel(write_chapter, window=4_000)
    await ContextCompressor(llm=model).compress(talk, protect_last_n_tokens=100)
    shown = "\n".join(prompt.text for prompt in model.prompts)
    assert len(model.prompts) > 1
    for n in range(45):
        assert f"port {8000 + n}" in shown
        assert f"src/module_{n}.py" in shown
        assert f"function_{n}()" in shown


@pytest.mark.parametrize(
    ("fault", "llm"),
    [
        ("RuntimeError", ScriptedModel([RuntimeError("no")] * 2)),
        ("empty", ScriptedModel([" \n"] * 2)),
        ("too short", ScriptedModel(["I am a teapot."] * 2)),
        ("timeout", ScriptedModel(write_chapter, seconds=60)),
        ("refused", lambda _: 1 / 0),
    ],
)
async def test_a_failing_model_leaves_the_summary_to_code(talk: list[Message], fault: str, llm: Any) -> None:
    alone = await ContextCompressor().compress(talk, protect_last_n_tokens=300)
    result = await ContextCompressor(llm=llm, seconds=0.05).compress(talk, protect_last_n_tokens=300)
    assert result.faults == (fault,)
    told = result.messages[summaries(result.messages)[0]]["content"]
    assert re.match(rf"{re.escape(HEADING)}\d+ messages; tools called: read \(\d+\); files: \S.*\n\[work log, ", told)
    assert re.search(r"error E10\d\d", told)
    assert abs(result.tokens_saved - alone.tokens_saved) < 20  # an id may take a token more


async def test_a_model_that_keeps_failing_is_left_alone(talk: list[Message]) -> None:
    model = ScriptedModel(lambda _: RuntimeError("down"))
    compressor = ContextCompressor(llm=model)
    for n in range(4):
        await compressor.compress([*talk[:100], *talk[100 + n :]], protect_last_n_tokens=300)
    assert len(model.prompts) == 2


class Framework:
    """A model as PraisonAI's `LLM` is one: it builds its requests itself and gives back text."""

    model = "gpt-4o-mini"

    def get_response(self, prompt: str, system_prompt: str = "", **options: Any) -> str:
        assert options["verbose"] is False
        assert options["stream"] is False
        return notes(prompt)


async def awaited(text: str) -> str:
    return notes(text)


@pytest.mark.parametrize(
    "llm", [ScriptedModel(write_chapter), Framework(), notes, awaited], ids=["clew", "framework", "function", "awaited"]
)
async def test_a_model_may_be_many_things(talk: list[Message], llm: Any) -> None:
    result = await ContextCompressor(llm=llm).compress(talk, protect_last_n_tokens=300)
    assert result.faults == ()
    assert result.tokens_saved > 0


def noting(body: dict[str, Any]) -> Answer:
    return Answer(notes(body["messages"][-1]["content"]))


@pytest.mark.parametrize("client", [openai.OpenAI, openai.AsyncOpenAI])
def test_a_client_of_openai_is_asked_for_the_auxiliary_model(talk: list[Message], client: Any) -> None:
    with StrictProvider(noting) as provider:
        llm = client(api_key="none", base_url=f"{provider.url}/v1")
        compressor = ContextCompressor(llm=llm)

        async def twice() -> None:
            first = await compressor.compress(talk, protect_last_n_tokens=300)
            second = await compressor.compress(talk[:150], protect_last_n_tokens=300, auxiliary_model="gpt-5-nano")
            assert first.faults == second.faults == ()
            if client is openai.AsyncOpenAI:
                await llm.close()

        asyncio.run(twice())
        assert [h.body["model"] for h in provider.heard] == ["gpt-4o-mini", "gpt-5-nano"]


@pytest.mark.parametrize("as_auxiliary", [False, True])
async def test_a_name_of_a_model_is_enough(
    talk: list[Message], as_auxiliary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StrictProvider(noting) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        compressor = ContextCompressor(llm=None if as_auxiliary else "gpt-4o-mini")
        result = await compressor.compress(
            talk, protect_last_n_tokens=300, auxiliary_model="gpt-4o-mini" if as_auxiliary else None
        )
        assert result.faults == ()
        assert len(provider.heard) == 1


async def test_an_auxiliary_model_is_asked_instead(talk: list[Message]) -> None:
    main, auxiliary = ScriptedModel(write_chapter), ScriptedModel(write_chapter)
    await ContextCompressor(llm=main).compress(talk, protect_last_n_tokens=300, auxiliary_model=auxiliary)
    assert main.prompts == []
    assert len(auxiliary.prompts) == 1


async def test_a_name_that_only_praisonai_knows_needs_its_own_library(talk: list[Message]) -> None:
    with pytest.raises(ImportError, match="LiteLLM"):
        await ContextCompressor(llm="ollama/llama3").compress(talk)


async def test_tokens_are_counted_as_the_caller_wants(talk: list[Message]) -> None:
    theirs = await ContextCompressor(tokenizer=get_estimator()).compress(talk)
    ours = await ContextCompressor(tokenizer=counter_for("gpt-4o")).compress(talk)
    named = await ContextCompressor(llm=OpenAIModel("gpt-4o")).compress(talk)
    assert ours.original_tokens == named.original_tokens != theirs.original_tokens


async def test_what_was_compressed_before_is_told_from_the_originals(talk: list[Message]) -> None:
    compressor = ContextCompressor()
    once = await compressor.compress(talk[:104], protect_last_n_tokens=300, summary_target_tokens=3_000)
    twice = await compressor.compress(
        [*once.messages, *talk[104:]], protect_last_n_tokens=300, summary_target_tokens=3_000
    )
    assert len(summaries(twice.messages)) == 1
    told = twice.messages[summaries(twice.messages)[0]]["content"]
    assert sum(f"port {8000 + n}" in str(twice.messages) for n in range(45)) >= 36, "by far the most"
    assert HEADING not in told[len(HEADING) :]
    assert twice.parent_session_id == once.session_id
    chained = await compressor.compress(
        [*twice.messages, *talk[8:100]], protect_last_n_tokens=300, parent_session_id=twice.session_id
    )
    assert chained.parent_session_id == twice.session_id
    assert len(summaries(chained.messages)) == 1


def test_the_originals_are_in_the_store_and_the_child_in_praisons(talk: list[Message], tmp_path: Path) -> None:
    async def compressed() -> tuple[str, str]:
        compressor = ContextCompressor(engine=tmp_path / "c.db", sessions=DefaultSessionStore(str(tmp_path / "s")))
        result = await compressor.compress(talk, protect_last_n_tokens=300, parent_session_id="work")
        assert result.session_id
        assert result.parent_session_id == "work"
        return result.session_id, result.messages[summaries(result.messages)[0]]["content"]

    child, told = asyncio.run(compressed())
    found = DefaultSessionStore(str(tmp_path / "s"))  # after a restart
    assert found.get_session(child).metadata == {"parent_session_id": "work", "lineage_id": "work"}
    kept = found.get_chat_history(child)
    assert kept[3]["content"] == told
    assert kept[-1]["content"] == "What is left to do?"
    engine = Engine(SQLite(tmp_path / "c.db"))
    compressor = ContextCompressor(engine=engine)
    again = run(compressor.compress([*kept, *talk[8:100]], protect_last_n_tokens=300, parent_session_id=child))
    assert again.parent_session_id == child
    chain = run(Sessions(engine).lineage("work"))
    assert [s.id for s in chain][1:] == [child, again.session_id]
    assert chain[0].name == "work"
    behind = run(engine.recall("default", told.split("recall ")[1][:10]))
    assert "port 8017" in "\n".join(n.item.text for n in behind)
