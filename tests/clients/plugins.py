"""opencode and pi with clew's plugins and no gateway: the real programs talk to the provider by themselves."""

import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from driving import Model, Stage, stage
from installed import clew
from opencode import MODELS, opencode, opencode_compacts
from pi import WAYS, pi, pi_compacts

from clew.testing import Answer
from clew.testing.provider import Call

WINDOW = 70_000
SMALL_WINDOW = 24_000  # in which the result below has no room
COUNT = "seq -f 'line %g of the count' 1 900"  # 19 kB
LONG = "seq -f 'line %g of a long count, and of nothing else' 1 1000"  # 45 kB; of more than 50 kB they keep a part
BOTH = [*(("opencode", way) for way in MODELS), *(("pi", way) for way in WAYS)]
EACH = [("opencode", "messages"), ("pi", "messages")]
# Of a later version: messages that nobody knows, and texts that are none.
ANSWER = '{"id": \'$n\', "messages": [99, {}, "text", null], "text": {"new": 1}}'
RECALL = {"opencode": "clew_recall", "pi": "recall"}  # what each calls the tool
CONFIG = {"opencode": ".config/opencode", "pi": "agent"}


def plug(on: Stage, client: str, *options: str) -> None:
    """Install a client's plugin into its home on this stage, or remove it."""
    on.url = on.provider.url
    (on.home / CONFIG[client]).mkdir(parents=True, exist_ok=True)
    clew(on, "install", client, "--yes", *options, PI_CODING_AGENT_DIR=str(on.home / "agent"))


def talk(client: str, on: Stage, way: str, *said: str, window: int = WINDOW) -> str:
    """What a program says."""
    if client == "opencode":
        return opencode(on, way, *said, window=window)
    return pi(on, way, "-p", *said, window=window)


async def said_in(on: Stage, client: str) -> str:
    """All that the plugin wrote down."""
    return "\n".join(one.text for one in await on.conversations() if (one.session.name or "").startswith(f"{client}-"))


@pytest.mark.parametrize(("client", "way"), BOTH)
async def test_far_past_the_window_without_an_error(client: str, way: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {COUNT}" for n in range(25)]
    with stage(tmp_path, Model({"count amber": steps, "and again": ["echo amber-2"]}), window=WINDOW) as on:
        plug(on, client)
        assert "Done: count-amber." in talk(client, on, way, "count amber")
        assert "Done: and-again." in talk(client, on, way, "-c", "and again")
    on.check()
    assert on.model.summaries == 0
    assert max(heard.spent.input for heard in on.provider.heard) <= WINDOW
    assert "[work log" in json.dumps(on.provider.heard[-1].body)
    logged = await said_in(on, client)
    assert all(f"fact-{n}\n" in logged for n in range(25))


@pytest.mark.parametrize(("client", "way"), BOTH)
async def test_its_compaction_is_answered_from_the_log(client: str, way: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {COUNT}" for n in range(5)]
    model = Model({"count amber": steps, "what was it": ["echo amber-after"], "and more": []})
    with stage(tmp_path, model) as on:
        plug(on, client)
        # The provider says that it was far more than it was: the program compacts by itself.
        talk(client, on, way, "count amber", window=200_000)
        model.first.append(Answer("I see.", output=190_000))
        talk(client, on, way, "-c", "go on", window=200_000)
        assert "Done: what-was-it." in talk(client, on, way, "-c", "what was it", window=200_000)
        plug(on, client, "--remove")
        assert "Done: and-more." in talk(
            client, on, way, "-c", "and more", window=200_000
        )  # its own session without clew
    on.check()
    bodies = [json.dumps(heard.body) for heard in on.provider.heard]
    asked = [body for body in bodies if "Answer with the one word: done" in body]
    assert model.summaries == len(asked) == (1 if client == "opencode" else 0)
    assert not any("fact-1" in body for body in asked)  # opencode always asks: then for next to nothing
    sent = bodies[-1]
    assert "[clew log " in sent
    assert "fact-0" in sent


@pytest.mark.parametrize(("client", "way"), EACH)
async def test_a_large_result_is_a_preview_and_can_be_recalled(client: str, way: str, tmp_path: Path) -> None:
    def recall(body: dict[str, Any]) -> Call:
        found = re.findall(r"characters out of view; (?:clew_)?recall (\w+)", json.dumps(body))
        return Call(RECALL[client], {"id": found[-1], "lines": "500-501"})

    model = Model({"count amber": [LONG, recall]})
    with stage(tmp_path, model, window=WINDOW) as on:
        plug(on, client)
        assert "Done: count-amber." in talk(client, on, way, "count amber", window=SMALL_WINDOW)
    on.check()
    seen = json.dumps(on.provider.heard[-1].body)
    assert "line 499 of a long count" not in json.dumps(on.provider.heard[-2].body)
    assert "line 500 of a long count" in seen, seen[-9000:]


@pytest.mark.parametrize(("client", "way"), EACH)
async def test_it_does_not_wait_for_a_clew_that_still_starts(client: str, way: str, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    slow = ["sh", "-c", f"echo '{{\"plain\": true}}'; cat >> {asked}"]  # it says the first line, and never another
    with stage(tmp_path, Model({"list amber": ["echo amber-1"]})) as on:
        plug(on, client)
        [script] = [*(on.home / CONFIG[client]).rglob("clew.ts")]
        known = re.compile(r"(const COMMAND: string\[\] = )\[.*?\]")
        patient = known.sub(lambda found: found[1] + json.dumps(slow), script.read_text())
        script.write_text(patient.replace("PATIENCE = 20_000", "PATIENCE = 100_000_000"))  # it would wait for ever
        assert "Done: list-amber." in talk(client, on, way, "list amber", window=200_000)
    on.check()
    acts = [json.loads(line)["act"] for line in asked.read_text().splitlines()]
    assert acts.count("view") >= 2
    assert "result" in acts


@pytest.mark.parametrize("how", ["gone", "no clew there", "killed", "another version", "full disk", "locked", "broken"])
@pytest.mark.parametrize(("client", "way"), EACH)
async def test_on_any_doubt_it_does_what_it_always_did(client: str, way: str, how: str, tmp_path: Path) -> None:
    own = f'exec {sys.executable} -P -m clew "$@"'
    command = {
        "gone": ["/nowhere/clew"],
        "no clew there": [sys.executable, "-I", "-S", "-m", "clew"],
        "killed": ["sh", "-c", "read line; kill -9 $$"],
        "another version": ["sh", "-c", f"while read line; do n=$((n+1)); echo '{ANSWER}'; done"],
        "full disk": ["sh", "-c", f"ulimit -f 0; {own}", "sh"],
    }.get(how)
    steps = [f"echo fact-{n}; {COUNT}" for n in range(5)]
    model = Model({"count amber": steps, "what was it": [], "and more": []})
    with stage(tmp_path, model) as on:
        plug(on, client)
        [script] = [*(on.home / CONFIG[client]).rglob("clew.ts")]
        whole = script.read_text()
        if command:
            known = re.compile(r"(const COMMAND: string\[\] = )\[.*?\]")
            script.write_text(known.sub(lambda found: found[1] + json.dumps(command), whole))
        if how == "broken":
            (tmp_path / "log.db").write_text("this is no database")
        with closing(sqlite3.connect(tmp_path / "log.db" if how == "locked" else ":memory:")) as other:
            other.execute("begin exclusive")
            assert "Done: count-amber." in talk(client, on, way, "count amber", window=200_000)
            if client == "opencode":
                opencode_compacts(on, way)
            else:
                pi_compacts(on, way)
            assert "Done: what-was-it." in talk(client, on, way, "-c", "what was it", window=200_000)
        script.write_text(whole)
        plug(on, client, "--remove")
        assert not script.exists()
        assert "Done: and-more." in talk(client, on, way, "-c", "and more", window=200_000)
    on.check()
    assert model.summaries == 1
    assert "A summary that the model made." in json.dumps(on.provider.heard[-1].body)
