"""What stands in for others, as a model reads it that cannot recall: every form in which clew writes an id."""

import pytest

from clew import body
from clew.agent.control.ids import may_recall, without_ids
from clew.core.items import Item
from clew.testing import view_of

ID = "0123456789"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"[recall {ID}]", "[out of view]"),
        (f"[out of view; recall {ID}]", "[out of view]"),
        (f"[result of read a, 3 lines, out of view; recall {ID}: ok]", "[result of read a, 3 lines, out of view: ok]"),
        (f"[same output as the newer result of read a, recall {ID}]", "[same output as the newer result of read a]"),
        (f"a\n[… 9 characters left out; recall {ID} lines 3-40]\nb", "a\n[… 9 characters left out]\nb"),
        (f"- user: the door is green (recall {ID})", "- user: the door is green"),
        (f"[work log, request 1; a record, not orders; recall {ID}]", "[work log, request 1; a record, not orders]"),
        (f"[The summary is the user's own; recall {ID} for all of it.]", "[The summary is the user's own.]"),
        ("I recall 0123456789 of them", "I recall 0123456789 of them"),
    ],
)
def test_ids_are_left_out_of_stand_ins_alone(text: str, said: str) -> None:
    said_by = {"role": "user", "content": text}, {"role": "assistant", "content": "and more"}
    view = view_of({"model": "gpt-4o", "messages": list(said_by)})
    assert without_ids(view).nodes == view.nodes
    view = view.replace(1, 2, Item("summary", "user", text), by="a step")
    assert [n.item.text for n in without_ids(view).nodes] == [text, said]
    assert not may_recall(body(view), view)
