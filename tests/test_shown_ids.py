"""What stands in for others, as a model reads it: under the name that the tool has there, or without ids."""

from typing import Any

import pytest

from clew import body
from clew.control import SentBody, offered
from clew.control.pointers import recall_name, with_names
from clew.core.items import Item
from clew.core.view import View
from clew.testing import view_of
from clew.wire.convert.extras import with_tools
from clew.wire.formats.tools import ToolDeclaration

ID = "0123456789"
FORMS = [
    ("[{}]", "[out of view]"),
    ("[out of view; {}]", "[out of view]"),
    ("[result of read a, 3 lines, out of view; {}: ok]", "[result of read a, 3 lines, out of view: ok]"),
    ("[same output as the newer result of read a, {}]", "[same output as the newer result of read a]"),
    ("a\n[… 9 characters left out; {} lines 3-40]\nb", "a\n[… 9 characters left out]\nb"),
    ("- user: the door is green ({})", "- user: the door is green"),
    ("[work log, request 1; a record, not orders; {}]", "[work log, request 1; a record, not orders]"),
    ("[The summary is the user's own; {} for all of it.]", "[The summary is the user's own.]"),
    ("I recall 0123456789 of them", "I recall 0123456789 of them"),
]


def folded(text: str, system: str = "", **frame: Any) -> View:
    """A view in which a text is a user's, and stands in for the answer, too."""
    text_of = {"role": "user", "content": text}, {"role": "assistant", "content": "and more"}
    told = [{"role": "system", "content": system}] if system else []
    view = view_of({"model": "gpt-4o", "messages": [*told, *text_of], **frame})
    last = len(view.nodes) - 1
    return view.replace(last, last + 1, Item("summary", "user", text), by="a step")


@pytest.mark.parametrize(("form", "bare"), FORMS)
def test_stand_ins_alone_name_the_tool_as_the_model_knows_it(form: str, bare: str) -> None:
    text = form.format(f"recall {ID}")
    view = folded(text)
    assert [n.item.text for n in with_names(view, "").nodes] == [text, bare]
    assert [n.item.text for n in with_names(view, "clew_recall").nodes] == [text, form.format(f"clew_recall {ID}")]
    assert with_names(view, "recall") is view
    assert recall_name(body(view), view) == ""


OTHERS = ToolDeclaration("recall", "Recall a product from the market.", {"type": "object", "properties": {"id": {}}})
OURS = offered("auto", False, "", "")


@pytest.mark.parametrize(
    ("tools", "system", "name"),
    [
        ([], "", ""),
        ([OTHERS], "", ""),
        (OURS, "", "recall"),
        ([ToolDeclaration("clew_recall"), OTHERS], "", "clew_recall"),
        ([ToolDeclaration("mcp__clew__recall")], "", "mcp__clew__recall"),
        ([ToolDeclaration("mcp_clew_recall")], "", "mcp_clew_recall"),
        ([OTHERS], "Tools to be searched for:\nmcp__other__x\nmcp__clew__recall\n", "mcp__clew__recall"),
        ([OTHERS], "This program has a tool named mcp__clew__recall.", ""),
    ],
)
def test_the_name_is_that_of_clews_own_tool(tools: list[ToolDeclaration], system: str, name: str) -> None:
    made = with_tools({}, "openai_chat", tools) if tools else {}
    view = folded(f"[out of view; recall {ID}]", system, **made)
    assert recall_name(body(view), view) == name
    told = SentBody(view).body["messages"][-1]["content"]
    assert told == (f"[out of view; {name} {ID}]" if name else "[out of view]")


def test_a_host_says_under_which_name_its_model_recalls() -> None:
    view = folded(f"[recall {ID}]")
    assert SentBody(view, recall="clew_recall").body["messages"][-1]["content"] == f"[clew_recall {ID}]"
