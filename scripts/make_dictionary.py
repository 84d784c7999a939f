"""Makes the dictionary with which the store compresses: python scripts/make_dictionary.py

Of our own text only: what is in `scripts/dictionary/`, written for this, our source, docs and made-up conversations.
A store names the number of its dictionary in everything it compresses: one that was released is never changed, a better
one gets a number and a file of its own.
"""

from collections.abc import Iterator
from pathlib import Path

import pyzstd

from clew.core import rawjson
from clew.core.items import Item
from clew.store.compressing import LEVEL
from clew.store.packing import fields_of
from clew.testing import conversation
from clew.wire import FORMATS, decode

ROOT = Path(__file__).resolve().parent.parent
NUMBER = 1
SIZE = 72 * 1024
PIECE = 1_500  # characters of a text that was not said
TALKS = 30
OWN = ("src/clew/**/*.py", "docs/*.md", "tests/*.py", "README.md")
WRITTEN = ("words.txt", "code.txt", "english.txt", "shell.txt", "calls.txt")  # nearest to what is said comes last


def packed(item: Item) -> bytes:
    return rawjson.dumps(fields_of(item))


def samples() -> Iterator[bytes]:
    """Our text as items would say it, and conversations that nobody had."""
    for pattern in OWN:
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            for start in range(0, len(text), PIECE):
                yield packed(Item("text", "user", text[start : start + PIECE]))
    for number in range(TALKS):
        for format in FORMATS:
            yield from map(packed, decode(conversation(number, 6, format), format)[1])


def written() -> bytes:
    """What was written for this, as it looks inside JSON."""
    parts = []
    for name in WRITTEN:
        text = (Path(__file__).parent / "dictionary" / name).read_text(encoding="utf-8")
        parts.append(text.encode() if name == "calls.txt" else packed(Item("text", "user", text))[9:-2])
    return b"".join(parts)


def made() -> bytes:
    """The dictionary."""
    ours, best = list(samples()), written()
    common = pyzstd.train_dict(ours, SIZE - len(best)).dict_content
    whole = pyzstd.finalize_dict(pyzstd.ZstdDict(common + best, is_raw=True), ours, SIZE, LEVEL).dict_content
    return whole[:4] + NUMBER.to_bytes(4, "little") + whole[8:]  # a small number takes one byte in each frame


def main() -> None:
    """Write it where the store looks for it."""
    target = ROOT / "src" / "clew" / "store" / f"dictionary-{NUMBER}.zstd"
    target.write_bytes(made())
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
