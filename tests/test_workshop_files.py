"""What files and folders look like to a model: lines with numbers, names that fit, nothing without a bound."""

import asyncio
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agent.tools.bounds import Ends
from clew.agent.tools.root import Root
from clew.agent.tools.searching import search
from clew.agent.tools.walking import Glob
from test_workshop import refused, root, told

__all__ = ["root"]


# --- reading --------------------------------------------------------------------------------------------------------


async def test_lines_come_with_numbers_and_what_is_left_out_is_said(root: Path) -> None:
    (root / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    assert await told(root, "read_file", path="long.txt", lines="999-") == "999\tline 999\n1000\tline 1000"
    assert await told(root, "read_file", path="long.txt", lines="7") == (
        "7\tline 7\n[the file goes on: 8,844 of its 8,893 bytes come after this; lines 8- reads on]"
    )
    assert await told(root, "read_file", path="long.txt", lines="2000-") == "[long.txt has only 1,000 lines]"
    assert "lines 46- reads on" in await told(root, "read_file", path="long.txt", size=400, lines="10-100")
    for lines in ("x", "0", "9-3"):
        assert f"lines {lines}" in await refused(root, "read_file", path="long.txt", lines=lines)


async def test_bytes_that_are_no_text_are_said(root: Path) -> None:
    (root / "latin.txt").write_bytes("Grüße aus Köln, schön".encode("latin-1"))
    (root / "replaced.txt").write_text("a � that is really there")
    (root / "empty.txt").touch()
    assert await told(root, "read_file", path="latin.txt") == (
        "1\tGr��e aus K�ln, sch�n\n[bytes that are not UTF-8 are shown as �]"
    )
    assert await told(root, "read_file", path="replaced.txt") == "1\ta � that is really there"
    assert await told(root, "read_file", path="empty.txt") == "[empty.txt is empty]"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "text".encode("utf-16"), bytes(range(128, 256))])
async def test_binary_files_are_refused(root: Path, data: bytes) -> None:
    (root / "data").write_bytes(data)
    assert "binary" in await refused(root, "read_file", path="data")
    assert "binary" in await refused(root, "edit_file", path="data", old="a", new="b")
    assert "binary" in await refused(root, "write_file", path="data", content="b")
    assert (root / "data").read_bytes() == data


async def test_a_huge_line_is_never_held_whole(root: Path) -> None:
    with (root / "huge.txt").open("wb") as out:
        for _ in range(100):
            out.write("é".encode() * 500_000)
        out.write(b"\nlast")
    tracemalloc.start()
    try:
        text = await told(root, "read_file", path="huge.txt")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert text == f"1\t{'é' * 2000} [… 99,996,001 more bytes in this line]\n2\tlast"


@given(st.lists(st.text()), st.integers(0, 30))
def test_ends_are_the_ends(pieces: list[str], size: int) -> None:
    whole, ends = "".join(pieces), Ends(size)
    for piece in pieces:
        ends.add(piece)
    if len(whole) <= size:
        assert ends.text() == whole
    else:
        head, tail = whole[: size - size // 2], whole[len(whole) - size // 2 :]
        note = f"[… {len(whole) - size:,} of {len(whole):,} characters left out …]"
        assert ends.text() == "\n".join(part for part in (head, note, tail) if part)


# --- listing --------------------------------------------------------------------------------------------------------


async def test_a_folder_is_listed_and_patterns_reach_below(root: Path) -> None:
    for path in (
        "src/x.py",
        "src/deep/y.py",
        "src/deep/y.ts",
        "node_modules/z.py",
        "out/z.py",
        "src/z.log",
        ".git/z.py",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    (root / ".gitignore").write_text("# built\n/out/\n*.log\n!keep.log\n")
    (root / "src/keep.log").touch()
    assert await told(root, "list_files") == ".git/\n.gitignore\na.txt\nnode_modules/\nout/\nsrc/"
    assert await told(root, "list_files", pattern="*.py") == "src/deep/y.py\nsrc/x.py"
    assert await told(root, "list_files", path="src", pattern="deep/*.{py,ts}") == "src/deep/y.py\nsrc/deep/y.ts"
    assert await told(root, "list_files", pattern="*.log") == "src/keep.log"
    assert await told(root, "list_files", pattern="*.rs") == "[no file below . fits *.rs]"
    assert "[… more than these 1:" in await told(root, "list_files", pattern="*", size=15)
    assert "is not a folder" in await refused(root, "list_files", path="a.txt")


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        *(("*.py", "a/b.py", True), ("/*.py", "a/b.py", False), ("a/**/d", "a/d", True), ("a/**/d", "a/b/c/d", True)),
        *(("**/b/*", "b/c", True), ("a/**", "a/b/c", True), ("!*.md", "a/b.md", False), ("!*.md", "a/b", True)),
        *(("{a,b}/{c,d}.py", "b/c.py", True), ("{a", "{a", True), ("[ab].c", "b.c", True), ("a/*", "a/b/c", False)),
        *(("*a" * 200, "a" * 250 + "b", False), ("**/" * 200 + "x", "a/" * 100 + "y", False)),
    ],
)
def test_patterns(pattern: str, path: str, fits: bool) -> None:
    assert Glob(pattern).fits(path) == fits


async def test_a_gitignore_that_is_no_file_keeps_nobody(root: Path) -> None:
    os.mkfifo(root / ".gitignore")
    (root / "deep").mkdir()
    (root / "deep/.gitignore").symlink_to("/dev/zero")
    async with asyncio.timeout(300):
        assert await told(root, "list_files", pattern="*") == ".gitignore\na.txt\ndeep/.gitignore"
        assert await search(Root(root), 30_000).run({"pattern": "two"}) == "a.txt:2:two"


async def test_braces_do_not_explode(root: Path) -> None:
    assert "more than 100 patterns" in await refused(root, "list_files", pattern="{a,b}" * 40)
