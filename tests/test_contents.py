"""What results say: of each a few lines, of a table what it has, of data its values."""

import json
from random import Random

from clew.core.items import Digests, Item
from clew.steps.worklog.contents import lines_of
from clew.steps.worklog.results import values
from clew.steps.worklog.tables import lists, tabled


def found(text: str, asked: str = "", used: frozenset[str] = frozenset()) -> list[str]:
    (node,) = Digests().chain([Item("result", "tool", text, "x", "c")])
    return lines_of(node, asked, used)


def test_among_many_lines_of_one_shape_the_odd_one_is_told() -> None:
    lines = [f"10:{n:02} worker-{n % 4} job={n} status=ok" for n in range(60)]
    lines[7] = "10:07 worker-3 job=7 status=ERROR E4007"
    assert found("\n".join(lines), "Find every error code.") == [lines[7]]


def test_of_prose_the_lines_with_values_and_words_of_the_request_are_told() -> None:
    filler = [
        f"The report speaks of methods in general terms, part {name}." for name in ("one", "two", "three", "four")
    ]
    key = "In 2019 the tram depots of Ghent cut costs by 28.3 percent."
    assert key in found("\n".join([*filler, key, *filler]), "What do tram depots save?")


def test_what_a_text_repeats_is_told_once() -> None:
    assert found("Offer 7: 907 EUR. " + "Terms apply as usual. " * 5) == ["Offer 7: 907 EUR. Terms apply as usual."]


def test_a_table_is_told_by_its_columns_count_and_extremes() -> None:
    rows = "\n".join(f"shop{n}|{n * 10}|{n / 4}" for n in range(1, 9))
    told = "8 rows of name, sum, share; sum from 10 (shop1) to 80 (shop8); share from 0.25 (shop1) to 2.0 (shop8)"
    assert tabled(f"name|sum|share\n{rows}") == told
    assert tabled("Words, words\nand, words\nbut, no\nnumber, at\nall, here") == ""


def test_data_is_told_by_its_values_without_what_was_given() -> None:
    assert values({"id": "N-1", "title": "Mug", "of": {"unit_price": 4.5}}, given='{"title": "Mug"}') == (
        "id N-1, unit price 4.5"
    )


def test_what_nothing_else_in_a_result_is_like_is_told_whatever_it_looks_like() -> None:
    dice, words = Random(1), "the routine check of general station equipment was done as usual nothing needs it".split()
    lines = [" ".join(dice.choices(words, k=18)) for _ in range(40)]
    for key in ("the keeper wrote quillum on it", "panel shows ember@fjord.example", "-> Xenon-pearl"):
        assert found("\n".join([*lines[:17], key, *lines[17:]]))[0] == key


def test_data_is_a_table_whatever_stands_beside_it_unless_that_says_more() -> None:
    rows = [[f"2026-10-{n:02}", n * 7] for n in range(1, 9)]
    told = "8 rows of day, net; net from 7 (2026-10-01) to 56 (2026-10-08)"
    assert tabled(json.dumps({"columns": ["day", "net"], "rows": rows, "took": 80, "pages": 1})) == told
    entries = [{"day": day, "net": net} for day, net in rows]
    assert tabled(json.dumps({"ok": True, "found": entries, "next": None, "took": 80})) == told
    order = {"id": 1, "state": "paid", "name": "Ada", "city": "Ghent", "sum": 7, "items": entries[:4]}
    assert tabled(json.dumps(order)) == ""


def test_a_list_is_what_was_looked_for_and_an_object_a_receipt() -> None:
    assert lists('{"found": [{"id": 1}, {"id": 2}], "ok": true}')
    assert not any(map(lists, ('{"id": 1, "state": "booked"}', "[1, 2]", "done", "", '{"a": [null], "b": null}')))
