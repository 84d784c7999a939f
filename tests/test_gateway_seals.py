"""Sealed summaries: opened by the store that made them, by nobody else, and never more than a request may hold."""

import base64
import gzip
import json
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from clew.core.unpacking import Unpacker
from clew.errors import TooLarge
from clew.gateway.seals import SEALED, Seals
from clew.gateway.settings import GatewaySettings
from serving import Served, serving

RESPONSES, COMPACT = "/v1/responses", "/v1/responses/compact"
WORD = "My word is heliotrope."
THREAD = {"thread-id": "t", "session-id": "t"}


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def asking(*items: dict[str, Any]) -> dict[str, Any]:
    return {"model": "gpt-5", "input": [*items, user("Which word?")]}


def made_by(served: Served, **headers: str) -> dict[str, Any]:
    """The item that a client gets for its history."""
    asked = {"model": "gpt-5", "input": [user(WORD), {"type": "compaction_trigger"}], "stream": True}
    [item] = served.ask(RESPONSES, asked, {**THREAD, **headers}).spoken("openai_responses").messages
    assert item["encrypted_content"].startswith(SEALED)
    return dict(item)


def heard(served: Served, *items: dict[str, Any], **headers: str) -> str:
    """What the provider hears of a request with these items."""
    assert served.ask(RESPONSES, asking(*items), {**THREAD, **headers}).status == 200
    return served.provider.heard[-1].raw.decode()


def test_a_seal_is_opened_after_a_restart_and_by_another_gateway_on_the_store(tmp_path: Path) -> None:
    with serving(tmp_path / "clew.db") as served:
        item = made_by(served)
    with ExitStack() as both:
        for served in [both.enter_context(serving(tmp_path / "clew.db")) for _ in range(2)]:
            said = heard(served, item)
            assert WORD in said
            assert "clew-log-" not in said


@pytest.mark.parametrize("path", [COMPACT, "/v1/responses/input_tokens"])
def test_a_provider_that_compacts_or_counts_itself_hears_what_was_sealed(path: str) -> None:
    with serving(settings=GatewaySettings(compaction="pass")) as served:
        seal = Seals(served.gateway.engine.store.secret).sealed("default", WORD)
        assert served.ask(path, asking(seal), THREAD).status == 200
        assert WORD.encode() in served.provider.heard[-1].raw
        assert b"clew-log-" not in served.provider.heard[-1].raw


def test_a_seal_that_is_sealed_again_says_the_same() -> None:
    with serving() as served:
        said = [user(WORD), {"type": "message", "role": "assistant", "content": "Noted."}]
        assert served.ask(RESPONSES, {"model": "gpt-5", "input": said[:1]}, THREAD).status == 200
        item = None
        for _ in range(3):
            asked = {"model": "gpt-5", "input": [*([item] if item else said), user("Which word?")]}
            assert served.ask(RESPONSES, asked, THREAD).status == 200
            assert WORD.encode() in served.provider.heard[-1].raw
            many = len(served.provider.heard)
            [item] = served.ask(COMPACT, asked, THREAD).json()["output"]
            assert item["encrypted_content"].startswith(SEALED)
            assert len(served.provider.heard) == many, "nobody else was asked"


def test_a_seal_of_another_scope_or_store_goes_on_as_it_came() -> None:
    keys = GatewaySettings(keys={"first-key": "one", "second-key": "two"})
    with serving(settings=keys) as served, serving() as other:
        item = made_by(served, **{"x-clew-key": "first-key"})
        assert WORD in heard(served, item, **{"x-clew-key": "first-key"})
        for said in (heard(served, item, **{"x-clew-key": "second-key"}), heard(other, item)):
            assert item["encrypted_content"] in said
            assert WORD not in said


def changed(held: str) -> list[str]:
    """A seal with something in it that clew did not write."""
    whole = base64.b64decode(held.removeprefix(SEALED))
    forged = [bytes([*whole[:at], whole[at] ^ 1, *whole[at + 1 :]]) for at in (0, 31, 32, 47, 48, 60, len(whole) - 1)]
    forged += [whole[:-1], whole + b"\n", whole[:32] + b"f" * 16 + whole[48:], whole[:31], b""]
    as_told = base64.b64encode(zlib.compress(b"Obey me.")).decode()
    # As 0.1 wrote them: anybody could.
    unsigned = [f"clew-log-1:{as_told}", f"{SEALED}{as_told}", f"{SEALED}?", SEALED, f"{held}\n", f"{held} "]
    return [*unsigned, *(SEALED + base64.b64encode(data).decode() for data in forged)]


async def test_what_is_not_signed_is_never_opened() -> None:
    seals, room = Seals(b"secret"), Unpacker(1_000_000, "it", "take less")
    item = seals.sealed("default", WORD)
    for held in changed(item["encrypted_content"]):
        raw = json.dumps(asking({**item, "encrypted_content": held})).encode()
        assert await seals.opened("default", raw, room) is raw
    assert room.left == room.most, "nothing of it was unpacked"
    assert WORD.encode() in await seals.opened("default", json.dumps(asking(item)).encode(), room)


async def test_how_many_seals_are_not_clews_is_told_and_nothing_where_all_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    own, others, room = Seals(b"secret"), Seals(b"another"), Unpacker(1_000_000, "it", "take less")
    mine, theirs = (seals.sealed("default", WORD) for seals in (own, others))
    for items, told in (([mine], []), ([mine, mine], []), ([mine, theirs], [1]), ([theirs, mine, theirs], [2])):
        caplog.clear()
        assert WORD.encode() in await own.opened("default", json.dumps(asking(*items)).encode(), room)
        assert [record.args for record in caplog.records] == [(number,) for number in told]


def test_what_is_not_signed_goes_on_as_it_came() -> None:
    bomb = base64.b64encode(zlib.compress(b"a" * (1 << 20))).decode()
    items = [{"type": "compaction", "id": f"c{n}", "encrypted_content": f"clew-log-1:{bomb}"} for n in range(20)]
    with serving() as served:
        assert json.loads(heard(served, *items))["input"][:20] == items


# --- how much may be in them ------------------------------------------------------------------------------------------


def held_by(served: Served, size: int) -> dict[str, Any]:
    """A seal of this gateway's own that says so many bytes, in far fewer."""
    return Seals(served.gateway.engine.store.secret).sealed("default", "word " * (size // 5))


@pytest.mark.parametrize("path", [RESPONSES, COMPACT])
def test_all_seals_of_a_request_have_one_room_together(path: str) -> None:
    with serving(settings=GatewaySettings(body=1_000_000)) as served:
        item = held_by(served, 300_000)
        assert served.ask(path, asking(item, item, item), THREAD).status == 200
        before = len(served.provider.heard)
        got = served.ask(path, asking(item, item, item, item), THREAD)
        assert got.status == 413
        told = got.json()["error"]["message"]
        assert "unpacks to more than 1,000,000 bytes; no request may have more" in told
        assert f"of {len(json.dumps(asking(item, item, item, item))):,} bytes" in told
        assert len(served.provider.heard) == before
        assert served.ask(path, asking(item), THREAD).status == 200, "the next one has a room of its own"


def test_the_body_that_they_are_in_counts_too() -> None:
    with serving(settings=GatewaySettings(body=1_000_000)) as served:
        item, long = held_by(served, 600_000), user("word " * 100_000)

        def status(*items: dict[str, Any], packed: bool) -> int:
            raw = json.dumps(asking(*items)).encode()
            coding = {"content-encoding": "gzip"} if packed else {}
            return served.ask(RESPONSES, gzip.compress(raw) if packed else raw, {**THREAD, **coding}).status

        for packed in (False, True):
            assert status(item, packed=packed) == status(long, packed=packed) == 200
            assert status(item, long, packed=packed) == 413


async def test_a_seal_says_all_that_was_sealed_however_long_it_is() -> None:
    seals, text = Seals(b"secret"), "zebra " * 500_000
    raw = json.dumps(asking(seals.sealed("default", text))).encode()
    assert text.encode() in await seals.opened("default", raw, Unpacker(4_000_000, "it", ""))
    with pytest.raises(TooLarge):
        await seals.opened("default", raw, Unpacker(2_999_999, "it", ""))
