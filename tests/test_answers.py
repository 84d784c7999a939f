"""An answer on its way to a caller, read without an SDK: bytes in, bytes out, and what was said."""

import pytest

from clew.exchange.answers import AnswerReader
from clew.wire.formats import named
from streams import RECORDED, Recorded

SIZES = (1, 7, 1_000_000)  # bytes in a chunk


def chunks(raw: bytes, size: int) -> list[bytes]:
    return [raw[i : i + size] for i in range(0, len(raw), size)]


each = pytest.mark.parametrize("recorded", RECORDED, ids=[recorded.name for recorded in RECORDED])


@each
def test_what_was_said_is_read_however_its_bytes_come(recorded: Recorded) -> None:
    for size in SIZES:
        reader, events = AnswerReader(recorded.format), AnswerReader(recorded.format)
        for chunk in chunks(recorded.raw, size):
            reader.hear(chunk)
            events.add(chunk)
        reader.hear(b"")
        events.add(b"")
        spoken, meant = reader.spoken(), recorded.spoken
        assert spoken == events.spoken()
        assert spoken
        assert (spoken.text, spoken.usage, spoken.stop) == (meant.text, meant.usage, meant.stop)


@each
def test_the_usage_alone_is_the_same(recorded: Recorded) -> None:
    for size in SIZES:
        reader = AnswerReader(recorded.format, only_usage=True)
        for chunk in chunks(recorded.raw, size):
            reader.hear(chunk)
        reader.hear(b"")
        spoken = reader.spoken()
        assert spoken
        assert spoken.usage == recorded.spoken.usage


@each
def test_a_stream_in_which_nothing_is_ours_says_the_same(recorded: Recorded) -> None:
    reader, joined, again = AnswerReader(recorded.format), named(recorded.format).joined(lambda _: False), b""
    for chunk in [*chunks(recorded.raw, 7), b""]:
        again += joined.add(reader.add(chunk))
    again += joined.end(muted=False)
    told = AnswerReader(recorded.format)
    told.hear(again)
    told.hear(b"")
    assert told.spoken() == reader.spoken()
