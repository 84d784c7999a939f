"""JSON as it is read: every value and type that the standard library gives, at another speed."""

import json
import struct
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from amounts import cases
from clew.core import rawjson
from clew.errors import BadRequest

DIGITS = st.text("0123456789", min_size=1, max_size=45)
NUMBERS = st.one_of(
    st.integers().map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.builds(
        "{}{}{}".format, st.sampled_from(["", "-"]), DIGITS, st.sampled_from(["", ".0", ".5e3", "e400", "E-400"])
    ),
    st.sampled_from(
        ["-0", "-0.0", "0e5", "1e400", "-1e999", "NaN", "Infinity", "-Infinity", "01", "1.", "+1", "9" * 4_300]
    ),
)
STRINGS = st.one_of(
    st.text(st.characters(codec="utf-8")).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.text(st.characters()).map(json.dumps),  # lone surrogates too
    st.sampled_from(
        ['"\\ud800"', '"\\ud83d\\ude00"', '"\\ude00\\ud83d"', '"\\/"', '"\\u0000"', '"\t"', '"\\x"', '""', '"\ud800"']
    ),
)
BLANKS = st.text(" \n\r\t", max_size=3)
LITERALS = st.sampled_from(["true", "false", "null", "True", "nul"])


def lists(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda found, blank: f"[{blank}" + f"{blank},".join(found) + f"{blank}]", st.lists(parts, max_size=5), BLANKS
    )


def objects(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    # Few keys, so that some come twice.
    keys = st.one_of(st.sampled_from(['"a"', '"b"', '""', '"\\u0061"']), STRINGS)
    pairs = st.lists(st.builds("{}{}:{}{}".format, keys, BLANKS, BLANKS, parts), max_size=5)
    return st.builds(lambda found, blank: "{" + blank + f",{blank}".join(found) + "}", pairs, BLANKS)


TEXTS = st.recursive(NUMBERS | STRINGS | LITERALS, lambda parts: lists(parts) | objects(parts), max_leaves=12)
AROUND = st.sampled_from(["", " ", "\n", "\ufeff", "x", "\x00", "]", "\x0c"])


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same, of the same type and in the same order."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return struct.pack("d", one) == struct.pack("d", other) if isinstance(one, float) else bool(one == other)


def standard(data: bytes | str) -> Any:
    text = data.decode("utf-8", "surrogatepass") if isinstance(data, bytes) else data
    return json.loads(text)


def check(data: bytes | str) -> None:
    try:
        wanted = standard(data)
    except (ValueError, RecursionError):
        with pytest.raises(BadRequest):
            rawjson.loads(data)
        return
    assert same(rawjson.loads(data), wanted)
    if isinstance(data, bytes) and (found := rawjson.attempt(data)) is not None:
        assert same(found, wanted)


@settings(max_examples=cases(250))
@given(TEXTS, AROUND, AROUND)
@example('{"a":1,"b":2,"a":18446744073709551616}', "", "")
@example("9" * 4_301, "", "")
def test_what_is_read_is_what_the_standard_library_reads(text: str, before: str, after: str) -> None:
    check(before + text + after)
    check((before + text + after).encode("utf-8", "surrogatepass"))


@settings(max_examples=cases(250))
@given(TEXTS, st.integers(0), st.integers(0, 255))
def test_so_it_is_with_a_byte_that_does_not_belong(text: str, at: int, byte: int) -> None:
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    data[at % len(data)] = byte
    check(bytes(data))


@pytest.mark.parametrize("depth", [100, 5_000, 200_000])
def test_nesting_is_read_or_refused(depth: int) -> None:
    raw = b"[" * depth + b"]" * depth
    if depth == 100:
        assert rawjson.dumps(rawjson.loads(raw)) == raw
    else:
        with pytest.raises(BadRequest, match="nested too deeply"):
            rawjson.loads(raw)


def test_what_is_written_is_what_it_was() -> None:
    """Ids depend on it."""
    value = {"b": 1, "a": [1.0, 1e16, 1e-7, -0.0, 5e-324, True, None, 2**63, "é\u2028\x7f"], "z": {"x": b"\x00\xff"}}
    written = '{"b":1,"a":[1.0,1e+16,1e-7,-0.0,5e-324,true,null,9223372036854775808,"é\u2028\x7f"],'
    assert rawjson.dumps(value) == (written + '"z":{"x":{"$clew:bytes":"AP8="}}}').encode()
    assert rawjson.dumps({"n": 2**70, "é": "\ud800"}) == b'{"n":1180591620717411303424,"\\u00e9":"\\ud800"}'
    odd = b'{"least":-Infinity,"nothing":null,"listed":[[Infinity]]}'
    assert rawjson.dumps(rawjson.loads(odd)) == odd, "orjson alone writes null for what is past the largest number"
