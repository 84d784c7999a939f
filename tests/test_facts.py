import json

import pytest

from clew.core.items import Item
from clew.facts import find, sheet
from clew.facts.worth import trace, worths


def said(text: str) -> Item:
    return Item("text", "assistant", text)


def call(name: str, id: str, **arguments: object) -> Item:
    return Item("call", "assistant", json.dumps(arguments), name, id)


def result(id: str, text: str) -> Item:
    return Item("result", "tool", text, call_id=id)


@pytest.mark.parametrize(
    ("text", "kind", "fact"),
    [
        ("see src/a/b.py:12", "path", "src/a/b.py"),
        ("in src/a/b.py-82-\tdone", "path", "src/a/b.py"),
        ("at https://example.org/x?y=1.", "url", "https://example.org/x?y=1"),
        ("cost $1,131.50 in all", "amount", "$1,131.50"),
        ("order #W2905754 came", "id", "#W2905754"),
        ("flight HAT028 left", "id", "HAT028"),
        ("commit 378b6b7 broke", "sha", "378b6b7"),
        ("calls get_user_details()", "symbol", "get_user_details"),
        ("a TokenStream again", "symbol", "TokenStream"),
        ("raises KeyError", "error", "KeyError"),
        ("set CLEW_HOME first", "const", "CLEW_HOME"),
        ("pass --dry-run", "flag", "--dry-run"),
        ("mail mia.li3@example.com now", "email", "mia.li3@example.com"),
        ("since v4.40.1-next.1", "version", "v4.40.1-next.1"),
        (r"first\nget_it_now", "symbol", "get_it_now"),
    ],
)
def test_facts_are_found_with_their_place(text: str, kind: str, fact: str) -> None:
    assert (kind, fact) in [(f.kind, f.text) for f in find(text)]
    assert all(text[f.start : f.stop] == f.text for f in find(text))


def test_plain_prose_has_no_facts() -> None:
    assert find("We looked at it again, and it works. Nothing else is left to do!") == []


def test_a_sheet_decodes_arguments_and_drops_line_numbers() -> None:
    page = sheet(call("edit", "1", path="src/a.py", new="first_line()\nsecond_line()"))
    assert [line.text for line in page.lines] == ["edit src/a.py", "first_line()", "second_line()"]
    numbered = result("2", "     1→class TokenStream:\n     2→    def advance_token_cursor(self):")
    assert sheet(numbered).lines[0].text == "class TokenStream:"


def test_json_results_are_read_as_names_and_values() -> None:
    page = sheet(result("1", '{"order_id": "#W12345", "items": [{"item_id": 998877665}]}'))
    assert [line.text for line in page.lines] == ["order id: #W12345", "items item id: 998877665"]


def test_long_lines_are_quoted_in_clauses_that_lose_nothing() -> None:
    text = " ".join(f"word{n} and some_name_{n}, then;" for n in range(200))
    lines = sheet(result("1", text)).lines
    assert " ".join(line.text for line in lines) == text
    assert max(len(line.text) for line in lines) <= 200


def test_what_the_assistant_used_lately_is_worth_more_than_one_of_a_listing() -> None:
    talk = [
        result("1", "\n".join(f"src/generated/part_{n:03}.py" for n in range(400))),
        said("The tokenizer state lives in src/core/token_stream.py."),
        call("read", "2", file_path="src/core/token_stream.py"),
    ]
    traces, now = trace([sheet(item) for item in talk])
    worth = worths(traces, now)
    assert worth["core/token_stream.py"] > 2 * worth["generated/part_007.py"] > 0
    assert all(0 <= w <= 1 for w in worth.values())
