"""A conversation has a short name, made of what was typed first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.items import Item
from clew.sessions.about import TITLE_LENGTH, title_of


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Fix the checkout test in tests/test_checkout.py", "Fix the checkout test in tests/test_checkout.py"),
        ("Hi there! I need to cancel my flight to Rome. It is urgent.", "I need to cancel my flight to Rome"),
        ("<pr>\nConsider this description:\nParser fails on tabs\n</pr>", "Parser fails on tabs"),
        ("```python\nimport secrets\n```\nWhy does this import fail?", "Why does this import fail?"),
        (
            "# Task\n\n1. Read the whole design page, then say what you think of its third section",
            "Read the whole design",
        ),
        ("/mode", "/mode"),
        ("修复登录页面的错误。然后运行测试。", "修复登录页面的错误"),
    ],
)
def test_a_title_is_the_first_clause_that_says_something(said: str, title: str) -> None:
    found = title_of([Item("text", "user", said)])
    assert found.startswith(title)
    assert len(found) <= TITLE_LENGTH


def test_a_bare_command_gives_way_to_a_request() -> None:
    assert (
        title_of([Item("text", "user", "/mode"), Item("text", "user", "Now fix the parser.")]) == "Now fix the parser"
    )


@given(st.text(max_size=400))
def test_any_text_gives_a_line_that_fits(said: str) -> None:
    found = title_of([Item("text", "user", said)])
    assert len(found) <= TITLE_LENGTH
    assert "\n" not in found
