"""Secrets are found, masked without a trace, and nothing else is touched."""

import json
import random
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amounts import MANY
from clew.core.items import Frame, Item, Opening
from clew.errors import BadRequest
from clew.secrets.kinds import NAMES, PLACES, RULES, SHAPES, VALUES
from clew.secrets.masking import find, kinds_in, masked, masked_frame, masked_item
from clew.secrets.matching import found_by
from clew.secrets.names import named, small
from clew.secrets.values import is_bare_secret, is_base64
from secrets_rows import HARMLESS, HEX, LOW, MIX, ROWS, SHAPED, UP, Row, cut, pem

KEY = b"a store's secret"
CASES = [
    (row.secret, around.replace("{}", row.secret).replace("{{", "{").replace("}}", "}"))
    for row in ROWS
    for around in row.around
]


def pieces(secret: str) -> set[str]:
    """Every eight characters of a secret."""
    return {secret[i : i + 8] for i in range(max(1, len(secret) - 7))}


def kept(secret: str, text: str) -> list[str]:
    """What is left of a secret in a text, markers apart."""
    plain = re.sub(r"\[secret: [^]]+\]", "", text)
    return sorted(piece for piece in pieces(secret) if piece in plain)


def shape(value: Any) -> Any:
    """A JSON value with its strings left out."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    return [shape(v) for v in value] if isinstance(value, list) else type(value)


def skeleton(value: Any) -> Any:
    """A JSON value with all its strings left out, keys too."""
    if isinstance(value, dict):
        return [skeleton(v) for v in value.values()]
    return [skeleton(v) for v in value] if isinstance(value, list) else type(value)


# A test each would take longer to begin than to run: there are hundreds.
def test_no_piece_of_a_secret_stays() -> None:
    for secret, text in CASES:
        safe = masked(text, KEY)
        assert kept(secret, safe) == [], text
        said = {"content": [{"type": "text", "text": text}]}
        result = masked_item(Item("result", "tool", text, call_id="c1", wire=said), KEY)
        assert (result.text, result.wire) == (safe, {"content": [{"type": "text", "text": safe}]}), text


def test_escaped_text_is_masked_too() -> None:
    for secret, text in CASES:
        once = json.dumps(text)
        for escaped in (once[1:-1], f"log: {once}", json.dumps(once)[1:-1]):
            assert kept(secret, masked(escaped, KEY)) == [], escaped


def test_json_stays_json_of_the_same_structure() -> None:
    for secret, text in CASES if MANY > 1 else CASES[::2]:
        inner = {"n": 1, "é": [None, {"command": f"x\té\n{text}", "deep": json.dumps({"body": text})}]}
        said = json.dumps(inner)
        call = Item("call", "assistant", said, "bash", "c1", wire={"function": {"arguments": said}})
        safe = masked_item(call, KEY)
        assert shape(json.loads(safe.text)) == shape(inner), text
        assert kept(secret, safe.text) == [], text
        assert safe.wire == {"function": {"arguments": safe.text}}, text
        assert kinds_in(call), text
        assert kinds_in(safe) == [], text


@pytest.mark.parametrize("text", HARMLESS)
def test_look_alikes_are_left_alone(text: str) -> None:
    assert find(text) == []
    assert masked(text) is text
    assert masked(json.dumps({"text": text})) == json.dumps({"text": text})


@pytest.mark.parametrize("row", SHAPED, ids=lambda row: f"{row.kind} {row.secret[:6]}")
def test_a_shape_is_known_by_its_kind(row: Row) -> None:
    assert [s.kind for s in find(row.around[0].replace("{}", row.secret))] == [row.kind]


STREAMS = {"mix": MIX, "hex": HEX, "low": LOW, "up": UP, "dig": "4917203856", "b32": "Q5LP7M3NHFIQRXYA"}


def filled(example: str) -> str:
    """The example of a rule, with its made-up letters and digits."""
    return re.sub(r"<(\w+) (\d+)>", lambda m: cut(STREAMS[m[1]], int(m[2])), example)


def examples(*tables: str) -> list[Any]:
    rules = [(table, n, rule) for table in tables for n, rule in enumerate(RULES[table])]
    return [pytest.param(n, rule, id=f"{rule.get('name') or rule['kind']} {n}") for _, n, rule in rules]


@pytest.mark.parametrize(("n", "rule"), examples("shape", "place"))
def test_each_rule_finds_its_example(n: int, rule: dict[str, Any]) -> None:
    kind = (SHAPES if rule in RULES["shape"] else PLACES)[n]
    text = filled(rule["example"])
    words = [word for word in kind.words if word in small(text)]
    assert [secret for word in words for secret in found_by(kind, word, text, small(text))]
    assert find(text)
    assert rule["source"] == "unrecorded" or rule["source"].startswith("gitleaks ")


@pytest.mark.parametrize(("n", "rule"), examples("name"))
def test_each_name_is_known_in_its_example(n: int, rule: dict[str, Any]) -> None:
    text = filled(rule["example"])
    assert [kind for kind, _, _ in named(text, small(text))] == [rule["kind"]]
    assert NAMES[n].pattern.search(re.split("[ =:]", small(text))[0].replace("-", "_"))


@pytest.mark.parametrize(("n", "rule"), examples("value"))
def test_each_value_that_is_no_secret_is_known_in_its_example(n: int, rule: dict[str, Any]) -> None:
    assert VALUES[rule["name"]].search(rule["example"])
    assert find(f'password = "{rule["example"]}"') == [] or rule["name"] == "made up"
    assert find(f'api_key = "{rule["example"]}"') == []


def test_sixty_kinds_and_more() -> None:
    assert len({kind.name for kind in (*SHAPES, *PLACES)}) >= 60


def test_markers_tell_secrets_apart_and_keys_change_them() -> None:
    one, two = "ghp_" + cut("a1B2", 36), "ghp_" + cut("c3D4", 36)
    first, second, third = masked(f"{one} {two} {one}", KEY).split("] [")
    assert first.removeprefix("[") == third.removesuffix("]") != second
    assert masked(one, KEY) != masked(one, b"another") != masked(one)
    assert masked(one, KEY).startswith("[secret: github token ")


def test_a_key_is_the_same_key_with_its_lines_escaped() -> None:
    assert (
        masked(pem("PRIVATE KEY"), KEY)
        == masked(pem("PRIVATE KEY", "\\n"), KEY)
        == masked(pem("PRIVATE KEY", "\\\\n"), KEY)
    )


def test_a_key_that_was_cut_off_is_masked() -> None:
    lines = pem("RSA PRIVATE KEY").splitlines()
    assert kept(lines[1], masked("\n".join(lines[:3]) + "\n$ ")) == []
    assert kept(lines[2], masked("\n".join(lines[1:]))) == []


def test_a_quoted_value_ends_where_its_own_quote_does() -> None:
    for secret in ('pa"ss w0rd,x', "back\\slash9", "end\\", "it's 4 us"):
        text = json.dumps({"password": secret, "next": "stays"})
        for nested in (text, json.dumps(text), f"> {text}", f"> {json.dumps(text)}"):
            assert "stays" in masked(nested)
            assert json.dumps(secret)[1:-1] not in masked(nested)


def test_a_value_alone_on_its_line_is_masked_whole() -> None:
    secret = "aB3,longer;tail99)x"
    for name in ("password: ", "DB_PASSWORD=", "db.password="):
        assert kept(secret, masked(f"user: me\n{name}{secret}\nport: 1")) == []


@pytest.mark.parametrize("text", ["pwd=Xy7kQ2p9", "pw: Xy7#kQ2p", "password=Xy7#kQ"])
def test_a_text_that_is_nothing_but_a_short_password_is_masked(text: str) -> None:
    assert [text[one.start : one.stop] for one in find(text)] == [re.split("[=:] ?", text)[1]]


@pytest.mark.parametrize("before", ["DB_PASSWORD=", "mysql --password "])
def test_where_no_code_can_stand_only_the_name_of_a_variable_is_no_password(before: str) -> None:
    for value, is_one in (("SESAME", True), ("open_sesame", True), ("opensesame", True), ("OTHER_NAME", False)):
        found = [(before + value)[secret.start : secret.stop] for secret in find(before + value)]
        assert found == ([value] if is_one else []), value


def test_what_stands_behind_a_list_of_passwords_is_none_of_them() -> None:
    text = '[{"password": "Xy7kQ2p9"}, "Moon4711Base"]'
    assert [text[one.start : one.stop] for one in find(text)] == ["Xy7kQ2p9"]


def test_a_word_in_small_letters_is_not_base64() -> None:
    assert not is_base64("bzp0fns0")
    assert is_base64("aHVudGVyMg==")


def test_an_item_without_secrets_is_the_same_object() -> None:
    picture = b64encode(random.Random(1).randbytes(9000)).decode()
    wire = {
        "type": "image",
        "source": {"type": "base64", "data": picture},
        "raw": b"\x00",
        "url": f"data:image/png;base64,{picture}",
    }
    item = Item("media", "user", wire=wire, opens=Opening({"role": "user", "n": (1, 2)}), mark={"type": "ephemeral"})
    assert masked_item(item, KEY) is item
    signed = Item("reasoning", "assistant", "hm", wire={"type": "thinking", "signature": picture, "thinking": "hm"})
    assert masked_item(signed, KEY) is signed
    frame = Frame("anthropic", "m", ({"role": "system"},), {"max_tokens": 9}, "Be kind.", ({"name": "password_reset"},))
    assert masked_frame(frame, KEY) is frame


def test_every_string_of_an_item_is_masked() -> None:
    secret = "glpat-" + cut("a1B2c3", 20)
    url = f"https://h/x?X-Amz-Signature={cut('0a1b2c3d', 64)}"
    wire = {
        "a": [{"password": "hunter2x"}, (secret,)],
        "source": {"url": url},
        secret: 1,
        "env": {"name": "DB_PASS", "value": "hunter2y"},
    }
    item = Item(
        "result", "tool", f"see {secret}", secret, "c1", wire, Opening({"role": "tool", "x": secret}), {"y": secret}
    )
    said = repr(masked_item(item, KEY))
    assert kept(secret, said) == []
    assert "hunter2" not in said
    assert "0a1b2c3d" not in said
    assert kinds_in(item) == ["gitlab token", "password", "signature"]


def test_an_option_names_the_value_behind_it_and_no_more() -> None:
    wire = {"args": ["serve", "--password", "petclinic9", "documents7"]}
    assert masked_item(Item("call", "assistant", "{}", "run", "c1", wire), KEY).wire == {
        "args": ["serve", "--password", masked("--password=petclinic9", KEY).partition("=")[2], "documents7"]
    }


def test_a_key_within_a_password_leaves_nothing_of_the_password() -> None:
    key = "ghp_" + cut("a1B2", 36)
    assert masked(f'password = "zX9/{key}/tail1234";').count("[secret: ") == 1
    assert "tail" not in masked(f'password = "zX9/{key}/tail1234";')


def test_headers_are_known_by_their_names() -> None:
    value = cut("a1B2c3", 30)
    headers = {"Cookie": f"theme=dark; sid={value}", "Authorization": f"Bearer {value}", "X-Api-Key": value}
    assert value not in repr(masked_item(Item("call", "assistant", json.dumps(headers), wire={"input": headers}), KEY))


def test_what_is_nested_without_end_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadRequest, match="nested too deeply"):
        masked_item(Item("opaque", "user", wire={"a": deep}), KEY)


def test_every_string_of_a_frame_is_masked() -> None:
    secret = "npm_" + cut("a1B2c3", 36)
    frame = Frame(
        "openai",
        "m",
        ({"content": secret},),
        {"metadata": {"token": secret}},
        f"Use {secret}.",
        ({"description": secret},),
    )
    safe = masked_frame(frame, KEY)
    assert kept(secret, repr(safe)) == []
    assert (safe.format, safe.model, len(safe.lead), len(safe.tools)) == ("openai", "m", 1, 1)


FILLER = st.text(alphabet=st.sampled_from("ab1 \n\t\"\\{}[]:=,.;&'`<>$-_/@éİ\ud83d"), max_size=40)
SAID = [text for _, text in CASES] + list(HARMLESS)


def said(n: int) -> str:
    """One of the texts of the rows; by number, since hypothesis prints what it chooses from."""
    return SAID[n]


TEXTS = st.lists(FILLER | st.integers(0, len(SAID) - 1).map(said), max_size=6).map("".join)


def test_what_a_mask_uncovers_is_masked_too() -> None:
    first, second = "AKIA" + "Q3ERT7YU" * 2, "ghp_" + "a1B2" * 9
    for key in (first, second):
        assert key not in masked(f"{first}{second}")  # the first is a key once the second ends it


@given(TEXTS)
def test_masking_twice_is_masking_once(text: str) -> None:
    once = masked(text, KEY)
    assert masked(once, KEY) is once
    assert find(once) == []


@given(TEXTS)
def test_secrets_are_in_order_and_apart(text: str) -> None:
    secrets = find(text)
    assert all(a.stop <= b.start for a, b in pairwise(secrets))
    assert all(0 <= s.start < s.stop <= len(text) for s in secrets)
    assert (masked(text) is text) == (secrets == [])


@given(
    st.recursive(
        TEXTS | st.none() | st.integers(),
        lambda v: st.lists(v, max_size=3) | st.dictionaries(TEXTS, v, max_size=3),
        max_leaves=6,
    )
)
def test_any_json_stays_json(value: Any) -> None:
    assert skeleton(json.loads(masked(json.dumps(value)))) == skeleton(value)


@pytest.mark.parametrize("line", ["a", "-----BEGIN ", "password=", cut("aK3v9Xm2Q7w8", 3000) + "+/ "])
def test_a_line_of_megabytes_comes_to_an_end(line: str) -> None:
    assert masked(line * (1_000_000 // len(line)))


def test_a_word_said_all_the_time_comes_to_an_end() -> None:
    for word in sorted({word for kind in (*SHAPES, *PLACES) for word in kind.words}):
        assert masked(f"{word} " * 500), word
        assert masked(word * 500), word


# --- in disguise ------------------------------------------------------------------------------------------------------

DISGUISES: dict[str, Callable[[str], str]] = {
    "coloured": lambda s: f"{s[:6]}\x1b[1;31m{s[6:12]}\x1b[0m{s[12:]}",
    "coloured by one byte": lambda s: f"{s[:6]}\x9b31m{s[6:9]}\x9b0m{s[9:]}",
    "coloured, and escaped": lambda s: f"{s[:6]}\\u001b[31m{s[6:12]}\\x1b[0m{s[12:]}",
    "zero-width": lambda s: "\u200b".join(s),
    "joined": lambda s: f"{s[:9]}\u2060\ufeff\u00ad{s[9:]}",
    "turned round": lambda s: f"{s[:9]}\u202e\u202c{s[9:]}",
    "wide": lambda s: "".join(chr(ord(c) + 0xFEE0) for c in s),
    "partly wide": lambda s: s[:8] + "".join(chr(ord(c) + 0xFEE0) for c in s[8:14]) + s[14:],
}
PACKED: dict[str, Callable[[str], str]] = {
    "base64": lambda s: b64encode(s.encode()).decode(),
    "base64 without its end": lambda s: b64encode(s.encode()).decode().rstrip("="),
    "base64 for addresses": lambda s: urlsafe_b64encode(f"user:{s}???>>>".encode()).decode(),
    "hex": lambda s: s.encode().hex(),
    "HEX": lambda s: "0x" + s.encode().hex().upper(),
}
KEYS = [
    row for row in SHAPED if row.kind in ("github token", "anthropic key", "aws access key id", "stripe key", "jwt")
]


@pytest.mark.parametrize("row", KEYS, ids=lambda row: row.kind)
@pytest.mark.parametrize("how", DISGUISES)
def test_a_secret_in_disguise_is_masked_and_gets_the_marker_of_the_plain_one(row: Row, how: str) -> None:
    hidden = DISGUISES[how](row.secret)
    for around in ("{}", "the key is {}, use it", "$ echo {}\n{}\n"):
        safe = masked(around.replace("{}", hidden), KEY)
        assert safe == masked(around.replace("{}", row.secret), KEY), repr(safe)
    assert find(json.dumps({"out": hidden}))
    assert kept(row.secret, masked(f"\x1b[31m{row.secret}\x1b[0m")) == []


@pytest.mark.parametrize("row", KEYS, ids=lambda row: row.kind)
@pytest.mark.parametrize("how", PACKED)
def test_a_packed_secret_is_masked(row: Row, how: str) -> None:
    value = PACKED[how](row.secret)
    for around in ("{}", "data: {} # config", '{"value": "{}"}'):
        safe = masked(around.replace("{}", value), KEY)
        assert value[:20] not in safe
        assert f"[secret: {row.kind} " in safe


def test_a_packed_private_key_is_masked_whole() -> None:
    value = b64encode(pem("RSA PRIVATE KEY").encode()).decode()
    assert kept(value, masked(value)) == []
    assert kept(value, masked(json.dumps({"tls.key": value}))) == []


def test_what_is_packed_is_unpacked_up_to_a_length_beyond_which_it_is_a_picture() -> None:
    key = KEYS[0].secret
    longest, longer = (b64encode((key + " " * (size - len(key))).encode()).decode() for size in (3_072, 3_075))
    assert (len(longest), len(longer)) == (4_096, 4_100)
    assert longest not in masked(longest, KEY)
    assert masked(longer, KEY) == longer


def test_base64_is_that_of_a_text_or_long_and_random() -> None:
    def packed(data: bytes) -> str:
        return b64encode(data).decode()

    noise = bytes(range(128, 188, 2))
    for data in (b"secret", b"user:pass", b"first line\nsecond line", noise):
        assert is_base64(packed(data)), data
    assert not is_base64(packed(b"Hi!"))  # too short
    assert not is_base64(packed(b"a secret")[:-1])  # cut
    assert not is_base64("pass word")
    assert not is_base64("password")  # a word is none, though it could be
    assert not is_base64(packed(b"\x01\x02\x03\x04\x05\x06"))  # decoded, nothing that can be read
    assert not is_base64(packed(noise[:27]))  # neither a text, nor long


def test_bare_digits_are_a_secret_only_where_any_value_is() -> None:
    assert is_bare_secret("1234", "any", plain=False)
    assert not is_bare_secret("123", "any", plain=False)
    assert not is_bare_secret("123456789", "mixed", plain=False)


def test_a_bare_value_is_long_enough_for_what_it_is_made_of() -> None:
    """What is random is one even where it reads like code; words of letters alone have to be longest."""

    def is_one(value: str) -> bool:
        return is_bare_secret(value, "any", plain=False)

    assert is_one("ab1.cd2ef3gh4")
    assert [is_one(value) for value in ("p@s", "p@ss", "@@@@")] == [False, True, False]
    assert [is_one(value) for value in ("tea12", "teas12", "user12x")] == [False, True, False]
    assert [is_one(value) for value in ("correcthors", "correcthorse", "CorrectHorse")] == [False, True, False]


@pytest.mark.parametrize("text", HARMLESS)
def test_look_alikes_in_disguise_are_left_alone(text: str) -> None:
    for hidden in (
        f"\x1b[32m{text}\x1b[0m",
        f"\u200b{text}\ufeff",
        b64encode(text.encode("utf-8", "replace")).decode(),
    ):
        assert find(hidden) == []


def test_what_is_hidden_is_read_in_a_time_that_grows_with_it() -> None:
    for text in (
        "\x1b[" * 200_000,
        "A" * 500_000,
        "aB3-" * 100_000,
        "0" * 500_001,
        "\u200b" * 300_000,
        "\x1b[1;" * 90_000,
    ):
        assert find(text) == []


def test_a_call_id_that_is_a_secret_is_the_same_marker_everywhere() -> None:
    id = "ghp_" + cut("a1B2", 36)
    call = Item("call", "assistant", "{}", "bash", id, wire={"id": id, "function": {"name": "bash", "arguments": "{}"}})
    result = Item("result", "tool", "ok", call_id=id, wire={"tool_call_id": id, "content": "ok"})
    safe, answer = masked_item(call, KEY), masked_item(result, KEY)
    assert safe.wire
    assert answer.wire
    assert {safe.call_id, safe.wire["id"], answer.call_id, answer.wire["tool_call_id"]} == {safe.call_id}
    assert re.fullmatch(r"secret_github_token_[0-9a-f]{6}", safe.call_id)
    assert kinds_in(call) == kinds_in(result) == ["github token"]
    assert masked_item(safe, KEY) is safe


def test_what_held_nothing_holds_nothing_the_next_time() -> None:
    said, held = "nothing to see in this line of a log", "export GITHUB_TOKEN=ghp_" + "a1B2c3D4e5F6" * 3
    assert [find(said), find(held) == [], find(said), find(held) == []] == [[], False, [], False]


def test_what_is_no_secret_for_one_policy_may_be_one_for_another() -> None:
    said = "password: petclinic-for-dogs-2"
    assert [bool(find(said, chosen=chosen)) for chosen in (False, True, False)] == [False, True, False]


def test_a_value_is_searched_again_under_the_name_of_a_header() -> None:
    value = "id=Zm9vYmFyYmF6cXV4; path=/"
    plain, header = Item("text", "user", value, wire={"note": value}), Item("text", "user", "x", wire={"cookie": value})
    assert masked_item(plain, b"") is plain
    assert value not in str(masked_item(header, b"").wire)


def test_what_stands_behind_tests_that_pass_is_no_password() -> None:
    assert find("All of the tests pass Xy7kQ2p9vB") == []
    assert [found.kind for found in find("--pass Xy7kQ2p9vB")] == ["password"]
