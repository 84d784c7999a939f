"""Middle: head and tail stay, and one summary stands for what lies between; and whom it may ask."""

import asyncio
import re
from typing import Any

import pytest

from clew.adapters.askable import askable
from clew.adapters.middle import Middle
from clew.core.limits import Budget
from clew.core.view import View, fold
from clew.errors import BadRequest, ModelError
from clew.facts.chapters import Written
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt, Reply
from clew.testing import ScriptedModel, view_of, write_chapter
from clew.tokens.target import Target

WIDE = Target.of(Budget(window=100_000))


def talk(turns: int) -> View:
    messages: list[dict[str, Any]] = []
    for n in range(turns):
        messages += [
            {"role": "user", "content": f"Question {n}: " + f"why is module_{n} slow? " * 10},
            {"role": "assistant", "content": f"Answer {n}: " + f"it reads file_{n}.py twice. " * 10},
        ]
    return view_of({"messages": [*messages, {"role": "user", "content": "Go on."}]}, "openai_chat")


async def test_head_and_tail_stay() -> None:
    view = talk(40)
    after = await Middle(tail=500, size=400, heading="[so far]\n")(view, WIDE)
    (edit,) = after.edits
    assert after.nodes[:2] == view.nodes[:2]
    assert re.match(r"\[so far\]\n\d+ messages\n\[work log, requests ", after.nodes[2].item.text)
    assert WIDE.meter.node(after.nodes[2]).tokens <= 400 + 4
    tail = after.nodes[3:]
    assert tail == view.nodes[-len(tail) :]
    assert WIDE.meter.nodes(after.nodes[2:]).tokens <= 500 + 400 + 4, "room that a summary leaves keeps originals"
    assert fold(view.nodes, after.edits) == after.nodes
    assert after.pinned == view.pinned
    assert edit.evidence["coverage"]


async def test_with_nothing_between_them_nothing_changes() -> None:
    for view in (talk(2), talk(0), view_of({"messages": []}, "openai_chat")):
        assert await Middle(tail=10_000, size=400)(view, WIDE) is view


async def test_the_tail_leaves_room_in_a_small_window() -> None:
    after = await Middle(tail=50_000, size=300)(talk(60), small := Target.of(Budget(window=4_000)))
    assert small.size(after).within(small.limit)
    assert len(after.edits) == 1


async def test_a_model_is_asked_about_all_of_it_and_what_came_of_it_is_told() -> None:
    model, drafts = ScriptedModel(write_chapter), list[Written]()
    await Middle(500, 400, author=ByModel(model), on_written=drafts.append)(talk(40), WIDE)
    assert all(f"module_{n}" in model.prompts[0].text for n in range(1, 36))
    assert drafts[0].faults == ()
    assert drafts[0].chapters


def shout(text: str) -> str:
    return text.upper()


async def whisper(text: str) -> str:
    await asyncio.sleep(0)
    return text.lower()


class Framework:
    model = "gpt-4o"

    def get_response(self, prompt: str, system_prompt: str, **options: Any) -> str:
        return f"{system_prompt}/{prompt}/{options['max_tokens']}"


@pytest.mark.parametrize(
    ("llm", "name", "said"),
    [(shout, "shout", "BE\n\nHI"), (whisper, "whisper", "be\n\nhi"), (Framework(), "gpt-4o", "Be/Hi/9")],
)
async def test_many_things_can_be_asked(llm: Any, name: str, said: str) -> None:
    model = askable(llm, "the name that a client would be asked for")
    assert model.name == name
    assert await model(Prompt("Hi", 9, "Be")) == Reply(said)


async def test_a_model_is_asked_as_it_is() -> None:
    model = ScriptedModel(["x"])
    assert askable(model) is model


async def test_what_fails_is_a_fault_of_the_model() -> None:
    with pytest.raises(ModelError, match="division"):
        await askable(lambda _: 1 / 0)(Prompt("Hi", 9))


async def test_what_gives_no_text_says_nothing() -> None:
    assert await askable(lambda _: 42)(Prompt("Hi", 9)) == Reply("")


async def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(BadRequest, match="int is not a model name"):
        askable(42)


async def test_what_a_model_writes_in_its_own_way_stands_there_word_for_word() -> None:
    told = "\n".join(
        [
            "# What we know",
            "",
            *(f"{n}. **module_{n} reads file_{n}.py twice**" for n in range(1, 9)),
            "",
            "```",
            "x",
            "```",
        ]
    )
    drafts = list[Written]()
    step = Middle(500, 750, author=ByModel(ScriptedModel(lambda _: told), 750), on_written=drafts.append)
    after = await step(talk(40), WIDE)
    assert all(f"  {line}".rstrip() in after.nodes[2].item.text for line in told.splitlines())
    assert drafts[0].left_out == ()


async def test_what_nobody_said_is_named_below_it() -> None:
    told = "\n".join(f"module_{n} is slow because file_{n}.py is read twice by it." for n in range(7, 19))
    lies = f"{told}\nIt all runs on host-99.example now."
    step = Middle(500, 750, author=ByModel(ScriptedModel(lambda _: lies), 750))
    after = await step(talk(40), WIDE)
    assert "\nNot found in the originals: host-99" in after.nodes[2].item.text
