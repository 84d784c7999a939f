"""Markdown in answers of `clew chat`: its marks become styles, and its words stay."""

from pathlib import Path

import pytest

from chatting import chatting
from clew.chat.entries import ScreenEntry
from clew.chat.wrapping import Wrapped
from clew.store.protocol import Store
from clew.testing.provider import Answer, StrictProvider

LINES = {
    "## Head **b**": ("Head b", [(5, 6, "bold")]),
    "so **bold `x`** it": ("so bold x it", [(3, 8, "bold"), (8, 9, "bold"), (8, 9, "code")]),
    "an *it* here": ("an it here", [(3, 5, "italic")]),
    "***both***": ("both", [(0, 4, "bold"), (0, 4, "italic")]),
    "__init__ snake_case 2*3*4 a * b * c": ("__init__ snake_case 2*3*4 a * b * c", []),
    "[here](https://example.org/)": ("here (https://example.org/)", [(0, 4, "underline")]),
    r"\*no\*": ("*no*", []),
    "- one": ("• one", []),
    "  2. two **b**": ("  2. two b", [(9, 10, "bold")]),
    "- [x] done": ("☑ done", []),
    "> said": ("▏ said", []),
    "---": ("─" * 40, []),
    "**not closed": ("**not closed", []),
    "**" * 400: ("**" * 400, None),
}


@pytest.mark.parametrize("written", LINES)
def test_marks_become_styles(written: str) -> None:
    text, spans = LINES[written]
    lines = Wrapped(ScreenEntry("agent", written), 1_000).lines
    assert "".join(line.text for line in lines) == text or spans is None
    assert spans is None or [(s.start, s.end, s.style) for s in lines[0].spans] == spans


def test_code_is_shown_as_it_is_and_lists_hang() -> None:
    text = "- words that go on and on\n```python\nx = '**no**'\n- y\n```\nend"
    lines = [(line.text, line.look) for line in Wrapped(ScreenEntry("agent", text), 14).lines]
    assert lines[:2] == [("• words that", "agent"), ("  go on and on", "agent")]
    assert lines[2:6] == [("─── python", "code"), ("x = '**no**'", "code"), ("- y", "code"), ("───", "code")]


def test_a_table_has_columns_where_there_is_room() -> None:
    text = "| name | what |\n|---|:--|\n| `a` | 漢字 \\| b |\n| long name | **c** |\nend"
    lines = [line.text for line in Wrapped(ScreenEntry("agent", text), 40).lines]
    assert lines[:4] == ["name       what", "─────────  ────────", "a          漢字 | b", "long name  c"]
    narrow = [line.text for line in Wrapped(ScreenEntry("agent", text), 15).lines]
    assert narrow[0] == "| name | what |"
    assert [line.text for line in Wrapped(ScreenEntry("agent", "| no table |"), 40).lines] == ["| no table |", ""]


def test_what_a_tool_gave_has_no_markdown() -> None:
    assert [line.text for line in Wrapped(ScreenEntry("result", "# **a**"), 40).lines] == ["# **a**", ""]


async def test_an_answer_is_drawn_with_its_styles_and_stays_whole_in_the_log(store: Store, tmp_path: Path) -> None:
    with StrictProvider([Answer("Now **bold** and `code`.")]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.say("Hello.")
            line = next(n for n, text in enumerate(hand.screen) if "Now bold and code." in text)
            strip = hand.chat.screen._compositor.render_strips()[line]
            assert [s.text for s in strip if s.style and s.style.bold] == ["bold"]
            assert (await hand.chat.backend.agent.view()).nodes[-1].item.text == "Now **bold** and `code`."
