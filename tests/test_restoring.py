"""What comes back to a host is its own object wherever nothing was changed."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clew.adapters.restoring import WireMessage, restored

MESSAGES = st.builds(lambda text: {"role": "user", "content": text}, st.sampled_from("abc"))
HELD = st.lists(st.lists(MESSAGES, max_size=3), max_size=12)


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@given(HELD)
def test_what_is_unchanged_is_the_same_object(parts: list[list[WireMessage]]) -> None:
    held = [(object(), part) for part in parts]
    sent = [message for part in parts for message in part]
    assert restored(sent, held, lambda _: None) == [one for one, part in held if part]


@given(HELD, st.integers(0, 12))
def test_what_stands_for_a_part_is_new_and_the_rest_is_theirs(parts: list[list[WireMessage]], cut: int) -> None:
    held = [(f"held {n}", part) for n, part in enumerate(parts)]
    sent = [said("summary"), *(message for part in parts[cut:] for message in part)]
    back = restored(sent, held, lambda message: f"made {message['content']}")
    assert back[0] == "made summary"
    assert len([one for one in back[1:] if one.startswith("made")]) == 0
    assert len(back) == 1 + len([part for part in parts[cut:] if part])


def test_a_message_of_which_a_part_is_gone_is_made_anew() -> None:
    held = [("both", [said("a"), said("b")]), ("last", [said("c")])]
    assert restored([said("a"), said("c")], held, lambda m: m["content"]) == ["a", "last"]


def test_the_order_of_keys_does_not_matter() -> None:
    held = [("theirs", [{"content": "a", "role": "user"}])]
    assert restored([said("a")], held, lambda m: "made") == ["theirs"]
