"""opencode and pi with clew's plugins and no gateway: the real programs talk to the provider by themselves."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driving import Model, Stage, stage
from installed import clew
from opencode import MODELS, opencode
from pi import WAYS, pi

from clew.testing.provider import Call

WINDOW = 70_000
COUNT = "seq -f 'line %g of the count' 1 900"  # 19 kB
LONG = "seq -f 'line %g of a long count' 1 1900"  # 45 kB; of more than 50 kB the programs keep a part


def talk(client: str, on: Stage, way: str, *said: str, **given: Any) -> str:
    """What a program with clew's plugin says."""
    if client == "opencode":
        return opencode(on, way, *said, window=WINDOW)
    return pi(on, way, "-p", *said, window=WINDOW, **given)


BOTH = [*(("opencode", way) for way in MODELS), *(("pi", way) for way in WAYS)]


@pytest.mark.parametrize(("client", "way"), BOTH)
async def test_far_past_the_window(client: str, way: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {COUNT}" for n in range(25)]
    with stage(tmp_path, Model({"count amber": steps, "and again": ["echo amber-2"]}), window=WINDOW) as on:
        plug(on, client)
        assert "Done: count-amber." in talk(client, on, way, "count amber")
        assert "Done: and-again." in talk(client, on, way, "-c", "and again")
    on.check()
    assert on.model.summaries == 0
    sent = json.dumps(on.provider.heard[-1].body)
    assert "[work log" in sent
    main = (await on.conversations())[0]
    assert all(f"fact-{n}\n" in main.text for n in range(25))


def plug(on: Stage, client: str) -> None:
    """Install a client's plugin into its home on this stage."""
    on.url = on.provider.url
    (on.home / ("agent" if client == "pi" else ".config/opencode")).mkdir(parents=True)
    clew(on, "install", client, "--yes", PI_CODING_AGENT_DIR=str(on.home / "agent"))
