"""One verb changes history, and refuses what would break it."""

from dataclasses import replace
from typing import Any

import pytest

from clew.core.cuts import continues, pairs
from clew.core.items import ASKING, BESIDE, Digests, Item, Node
from clew.core.view import Swap, View, fold, originals, shared_start
from clew.errors import BrokenHistory, Pinned
from clew.testing import view_of

TALK: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "looking",
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "read", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "b", "content": "B"},
        {"role": "tool", "tool_call_id": "a", "content": "A"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "bye"},
    ]
}
KINDS = ["text", "reasoning", "text", "call", "call", "result", "result", "text", "text"]


def line(text: str = "…") -> Item:
    return Item("summary", "user", text)


def texts(view: View) -> list[str]:
    return [n.item.text for n in view.nodes]


def test_a_history_is_cut_only_where_every_rule_allows() -> None:
    view = view_of(TALK)
    assert [n.item.kind for n in view.nodes] == KINDS
    assert view.cuts() == [0, 1, 7, 8, 9]


def test_anthropic_results_and_the_text_beside_them_can_be_parted() -> None:
    use = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "A"}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, use]},
        {"role": "user", "content": [result, {"type": "text", "text": "and?"}]},
    ]
    assert view_of({"messages": messages}, "anthropic").cuts() == [0, 1, 4, 5]


def test_server_tools_stay_with_their_results() -> None:
    blocks = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ]
    messages = [{"role": "user", "content": "hi"}] + [{"role": "assistant", "content": [b]} for b in blocks]
    assert view_of({"messages": messages}, "anthropic").cuts() == [0, 1, 3]


def test_a_span_gets_a_stand_in_and_the_edit_remembers_it() -> None:
    before = view_of(TALK)
    view = before.replace(1, 7, line("[looked]"), by="me", spent=5)
    assert texts(view) == ["hi", "[looked]", "done", "bye"]
    [edit] = view.edits
    assert (edit.by, edit.old, edit.spent) == ("'me'", tuple(n.id for n in before.nodes[1:7]), 5)
    assert fold(before.nodes, view.edits) == view.nodes
    assert texts(before)[0] == "hi"
    assert len(before.nodes) == 9


def test_stand_ins_can_be_replaced_again_and_nothing_is_lost() -> None:
    before = view_of(TALK)
    view = before.replace(1, 7, line(), by=1).replace(0, 2, line(), by=2).replace(0, 2, line(), by=3)
    by_id = {n.id: e for e in view.edits for n in e.stand_ins}
    assert originals([n.id for n in view.nodes], by_id) == [n.id for n in before.nodes]
    assert fold(before.nodes, view.edits) == view.nodes


def test_many_replacements_at_once_are_those_one_by_one() -> None:
    view = view_of(TALK)
    stubs = [Item("result", "tool", "[…]", call_id=id) for id in ("b", "a")]
    at_once = view.replace_all([Swap(6, 7, [stubs[1]]), Swap(5, 6, [stubs[0]])], by=0)
    one_by_one = view.replace(5, 6, stubs[0], by=0).replace(6, 7, stubs[1], by=0)
    assert at_once == one_by_one


@pytest.mark.parametrize(
    ("start", "stop", "items", "says"),
    [
        (3, 4, [line()], "separate a call from its result"),
        (6, 7, [line()], "separate a call from its result"),
        (1, 5, [line()], "separate a call from its result"),
        (1, 2, [line()], "separate reasoning"),
        (0, 0, [line()], "at least one node"),
        (0, 1, [], "at least one item"),
        (0, 1, [Item("call", "assistant", "{}", "read", "x")], "must not add calls or results"),
    ],
    ids=str,
)
def test_what_would_break_a_history_is_refused(start: int, stop: int, items: list[Item], says: str) -> None:
    with pytest.raises(BrokenHistory, match=says):
        view_of(TALK).replace(start, stop, *items, by="me")


def test_pins_and_overlapping_spans_are_refused() -> None:
    view = view_of(TALK)
    pinned = View(view.frame, view.nodes, view.digests, pinned=frozenset({view.nodes[7].id}))
    with pytest.raises(Pinned, match=f"pinned: {view.nodes[7].id[:10]}; unpin first"):
        pinned.replace(7, 8, line(), by="me")
    with pytest.raises(BrokenHistory, match="must not overlap"):
        view.replace_all([Swap(7, 9, [line()]), Swap(8, 9, [line()])], by="me")


def test_a_node_that_only_moves_stays_the_same_node() -> None:
    view = view_of(TALK)
    moved = view.replace_all([Swap(7, 9, [view.nodes[8], view.nodes[7]])], by="me")
    assert [n.id for n in moved.nodes[7:]] == [view.nodes[8].id, view.nodes[7].id]
    assert moved.stand_ins() == set()
    assert fold(view.nodes, moved.edits) == moved.nodes


def test_an_edit_whose_nodes_do_not_all_stand_does_not_apply() -> None:
    view = view_of(TALK)
    edit = view.replace(7, 9, line(), by="me").edits
    assert fold(view.nodes[:8], edit) == view.nodes[:8]
    renamed = view_of({"messages": [*TALK["messages"][:-1], {"role": "user", "content": "bye now"}]}).nodes
    assert fold(renamed, edit) == renamed
    assert len(fold(renamed, edit, {renamed[8].id: view.nodes[8].id})) == 8


def test_a_result_answers_the_nearest_open_call_of_its_id() -> None:
    call, result = Item("call", "assistant", "{}", "read", "a"), Item("result", "user", "A", "", "a")
    nodes = Digests().chain([call, call, result, result])
    assert list(pairs(nodes)) == [(1, 3), (0, 4)]


def test_a_stand_in_is_a_message_of_its_own() -> None:
    nodes = Digests().chain([line(), Item("text", "user", "more"), Item("text", "user", "and more")])
    assert [continues(nodes, at) for at in range(3)] == [False, False, True]


def test_nodes_that_were_sent_again_with_another_cache_mark_are_the_same_start() -> None:
    nodes = tuple(Digests().chain([Item("text", "user", str(n)) for n in range(600)]))
    marked = (*nodes[:300], Node(nodes[300].id, nodes[300].content, replace(nodes[300].item, mark={})), *nodes[301:])
    assert shared_start(nodes, marked) == 600
    assert shared_start(nodes, (*nodes[:599], *nodes[:1])) == 599
    assert shared_start(nodes, ()) == 0


def test_which_edit_made_a_node_is_known_of_every_version() -> None:
    versions = [view_of(TALK)]
    for n in range(3):
        versions.append(versions[-1].replace(0, 1, line(f"{n}"), by="test"))
    node = versions[-1].nodes[-1]
    versions.append(versions[-1].replace_all([Swap(8, 9, [line("beside"), node])], by="test"))
    for view in versions:
        assert view.edits.made == {n.id: e for e in view.edits for n in e.stand_ins}
        assert view.stand_ins() == view.edits.made.keys()
    assert versions[-1].edits.moved == {node.id: (versions[-1].edits[-1],)}
    assert not versions[-2].edits.moved


def test_an_edit_that_quotes_a_stand_in_holds_while_that_one_does() -> None:
    """A long message that was cut is quoted as it stands in view."""
    view = view_of(TALK)
    cut = view.replace(0, 1, line("h…"), by="test")
    told = cut.replace_all([Swap(1, 7, [line()], {BESIDE: [cut.nodes[0].id]})], by="test")
    assert fold(view.nodes, told.edits) == told.nodes
    assert fold(view.nodes[1:], told.edits) == view.nodes[1:]
    assert fold(view.nodes, told.edits[1:]) == view.nodes


def test_an_edit_that_quotes_nobody_by_name_holds_only_while_the_client_changes_nothing() -> None:
    """As those of earlier versions: what it quotes may be what the client changed."""
    view = view_of(TALK)
    asked, beside = {ASKING: "h…"}, {BESIDE: [view.nodes[0].id]}
    vague = view.replace_all([Swap(1, 7, [line()], asked)], by="test")
    named = view.replace_all([Swap(1, 7, [line()], asked | beside)], by="test")
    assert fold(view.nodes, vague.edits) == vague.nodes
    assert fold(view.nodes, vague.edits, changed=True) == view.nodes
    assert fold(view.nodes, named.edits, changed=True) == named.nodes


def test_an_edit_holds_where_a_provider_s_reasoning_went_and_where_another_one_s_came() -> None:
    view = view_of({"messages": [{"role": "user", "content": word} for word in "abcd"]})
    a, b, c, d = view.nodes
    edits = view.replace_all([Swap(0, 3, [line("a, b and c")])], by="Test").edits
    [edit] = edits
    said = [*edit.stand_ins, d]
    assert [*fold([a, c, d], [edit], gone={b.id})] == said
    assert [*fold([a, d], [edit], gone={b.id})] == [a, d]  # it is not known where c went
    new = replace(d, id="new")
    assert [*fold([a, b, new, c, d], [edit], loose={new.id})] == said
    assert [*fold([a, b, new, c, d], [edit])] == [a, b, new, c, d]
