"""The public face is exactly what it says it is."""

import subprocess
import sys

import clew


def test_every_public_name_is_there_and_sorted() -> None:
    assert clew.__all__ == sorted(clew.__all__)
    at_home = {name for names in clew._HOMES.values() for name in names.split()}
    assert at_home == set(clew.__all__) == set(dir(clew))
    for name in clew.__all__:
        assert getattr(clew, name).__name__ == name or name in ("Model", "Step", "Store", "Vocabulary")


def test_importing_clew_loads_no_tokenizer_and_opens_no_socket() -> None:
    code = """
import sys, socket
def refuse(*a, **k): raise OSError("no network")
socket.socket.connect = refuse
import clew
heavy = {"splintr", "tiktoken", "asyncio", "sqlite3", "typer", "rich"} & set(sys.modules)
assert not heavy, heavy
result = clew.compress([{"role": "user", "content": "hi " * 500}] * 20, window=4000, model="gpt-4o")
assert result.tokens_after < result.tokens_before and result.exact
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "fine\n", done.stderr
