"""A disk that is really full: requests are still made to fit, and the log goes on where there is room again."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from clew import run
from clew.core.bridge import cross
from clew.testing import StrictProvider
from serving import Got, Served, serving

WINDOW = 20_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Six megabytes, a file system of its own: only root can have one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "clew-test", str(folder)]
    try:
        made = subprocess.run(mount, capture_output=True).returncode == 0
    except OSError:
        made = False
    if not made:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def history(turns: int) -> list[dict[str, Any]]:
    said = [{"role": "system", "content": "You are an agent."}]
    for n in range(turns):
        said.append({"role": "user", "content": f"question {n} " + f"lorem ipsum dolor sit amet {n} " * 60})
        said.append({"role": "assistant", "content": f"answer {n} " + f"consectetur adipiscing elit {n} " * 40})
    return [*said, {"role": "user", "content": f"next {turns}?"}]


def ask(served: Served, turns: int) -> Got:
    body = {"model": "gpt-4o", "messages": history(turns)}
    got = served.ask("/v1/chat/completions", body, {"x-clew-session": "one"})
    assert got.status == 200, got.raw[:300]
    assert served.provider.heard[-1].spent.input < WINDOW
    return got


def ready(served: Served) -> str:
    return str(served.ask("/readyz", None, {}, "GET").json()["status"])


def fill(file: Path) -> None:
    """Leave not a byte."""
    with file.open("wb", buffering=0) as filler:
        for size in (65_536, 1):
            with suppress(OSError):
                while filler.write(b"x" * size):
                    pass
    assert os.statvfs(file).f_bavail == 0


async def all_said(served: Served) -> str:
    store = served.gateway.engine.store
    branch = await cross(store.session("default", "one"))
    assert branch is not None
    places = (await cross(store.load("default", branch))).said
    nodes = await cross(store.nodes("default", [place.id for place in places]))
    return json.dumps([node.item.text for node in nodes.values()])


def test_on_a_full_disk_requests_are_fitted_and_with_room_again_all_is_in_the_log(small_disk: Path) -> None:
    with serving(small_disk / "clew.db", StrictProvider(window=WINDOW), WINDOW) as served:
        for turns in (4, 20, 40):
            assert "x-clew" not in ask(served, turns).headers
        fill(small_disk / "filler")
        for turns in (44, 60, 80):
            assert "not in the log" in ask(served, turns).headers["x-clew"]
            assert ready(served) == "degraded"
        before = run(all_said(served))
        (small_disk / "filler").unlink()
        assert "x-clew" not in ask(served, 84).headers
        assert ready(served) == "ok"
        after = run(all_said(served))
    assert "question 39 lorem" in before
    assert "question 40 lorem" not in before
    assert all(f"question {n} lorem" in after and f"answer {n} con" in after for n in range(84))
