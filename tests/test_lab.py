"""`clew lab` as a user runs it: sessions sent again in several ways, what each costs and misses, and what to set."""

import json
from dataclasses import replace as with_
from pathlib import Path
from typing import Any

import pytest

from clew import catalog
from clew.catalog.cost import cost
from clew.catalog.usage import Spent
from clew.core.limits import Budget
from clew.engine.settings import Settings
from clew.lab import Lab, LabWay
from clew.lab.caches import Automatic, Beginnings
from clew.lab.replaying import Lived, as_it_was, clients_own, compactions, everything, with_clew
from clew.lab.session import LabSession
from clew.sessions.transcripts import Transcript, TranscriptCompaction
from clew.sessions.transcripts.shape import Script
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from shell import invoke

SONNET = "claude-sonnet-4-5"
METER = Meter(counter_for(SONNET, "openai_chat"))


def messages(calls: int, words: int = 300) -> list[dict[str, Any]]:
    """An agent that reads a file a call; every tenth is the first one again."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "Read all files. Never touch src/billing.py."}]
    for n in range(calls):
        name = f"src/part_{n % 10 and n}.py"
        call = {"name": "read", "arguments": json.dumps({"path": name})}
        said += [
            {
                "role": "assistant",
                "content": f"Next is {n}.",
                "tool_calls": [{"id": f"c{n}", "type": "function", "function": call}],
            },
            {
                "role": "tool",
                "tool_call_id": f"c{n}",
                "content": "\n".join(f"{name} line {k} is {k * 7}" for k in range(words // 8)),
            },
        ]
    return [*said, {"role": "assistant", "content": "Done."}]


def transcript(calls: int, cuts: list[tuple[int, TranscriptCompaction]] | None = None) -> Transcript:
    return Transcript("openai_chat", Script(messages(calls), cuts or []).stretches, agent="claude-code", model=SONNET)


def lived(way: Any, session: LabSession, *more: Any) -> tuple[Lived, float]:
    cache, calls = Automatic(METER), list[Spent]()
    found = way(session, Lived(lambda view, output: calls.append(cache.sent(view, output)), METER), *more)
    prices = catalog.lookup(SONNET).prices
    assert prices
    return found, sum(cost(prices, spent) for spent in (*calls, *found.helpers))


def test_a_session_is_its_calls_each_with_all_that_was_said_before() -> None:
    session = LabSession(transcript(5))
    assert len(session.turns) == 6
    assert session.prompt(session.turns[2])["messages"][1:] == messages(5)[:5], "behind the client's prompt"
    found, _ = lived(everything, session)
    assert found.sizes == sorted(found.sizes)
    assert not found.folds


def test_what_was_compacted_is_sent_as_its_client_sent_it() -> None:
    cut = TranscriptCompaction("Files were read.", "auto", kept=2)
    found, _ = lived(as_it_was, LabSession(transcript(20, [(21, cut)])))
    (fold,) = found.folds
    assert fold[0] == 21
    assert fold[1].nodes[0].item.text == "Files were read."
    ((place, same),) = compactions(LabSession(transcript(20, [(21, cut)])), found)
    assert (place, same.summary, same.kept, same.also) == (21, "Files were read.", 2, ())


def test_a_client_that_compacts_by_itself_goes_by_what_it_is_shown() -> None:
    found, _ = lived(clients_own, LabSession(transcript(60)), 8_000, 12_000)
    assert found.client == len(found.folds) == len(found.helpers) >= 2
    assert max(found.sizes) < 9_000


def test_clew_costs_the_same_here_as_where_it_is_measured() -> None:
    """One engine, one cache, the same calls: the figures of `make proof ONLY=cost` are those of the lab."""
    way = LabWay("clew", {})
    record = Lab((way,), window=40_000)(transcript(150))
    assert record
    session = LabSession(transcript(150))
    settings = Settings(author=None, expand=False)
    found, dollars = lived(with_clew, session, Budget(40_000, model=SONNET), settings, None)
    assert record["ways"]["clew"]["compactions"] == len(found.folds) >= 1
    assert record["ways"]["clew"]["sent"] == sum(found.sizes)
    assert record["ways"]["clew"]["dollars"] == pytest.approx(dollars, rel=0.001)
    assert dollars < record["ways"]["everything sent"]["dollars"]


def test_what_left_the_view_and_was_read_again_is_counted() -> None:
    record = Lab((LabWay("clew", {"high": 0.3, "low": 0.1}),), window=33_000)(transcript(150))
    assert record
    ways = record["ways"]
    assert ways["everything sent"]["again"] == 0
    assert ways["clew"]["again"] >= 3, "the first file, after each compaction"


def test_a_session_that_is_never_compacted_costs_the_same_in_every_way() -> None:
    record = Lab((LabWay("clew", {}), LabWay("early", {"high": 0.5})), window=200_000)(transcript(10))
    assert record
    assert len({json.dumps(row) for row in record["ways"].values()}) == 1


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "archive"
    folder.mkdir()
    (folder / "long.json").write_text(
        json.dumps({"id": "long", "agent": "claude-code", "model": SONNET, "messages": messages(110)})
    )
    (folder / "bad.jsonl").write_text('{"messages": [oops\n')
    return folder


def test_the_command_tells_what_each_way_costs_and_what_to_set(archive: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in archive.iterdir()}
    page = tmp_path / "lab.html"
    given = "lab", archive, "--window", "40000", "--processes", "1", "--try", "0.4,0.1", "--html", page
    done = invoke([*map(str, given)], env={"CLEW_STORE": str(tmp_path / "clew.db")})
    assert done.exit_code == 0, done.output
    for told in ("everything sent", "as it was", "client compacting", "clew, 0.4 to 0.1", "bad.jsonl", "in all"):
        assert told in done.stdout
    assert "would have been best" in done.stdout
    text = page.read_text()
    assert "clew, 0.4 to 0.1" in text
    assert "billing" not in text, "nothing of what was said"
    assert "content=\"default-src 'none'; style-src 'sha256-" in text
    assert not [word for word in ("http:", "https:", "//", "url(", "@import", "<script") if word in text]
    assert before == {path: path.read_bytes() for path in archive.iterdir()}
    assert not (tmp_path / "clew.db").exists()


def test_programs_get_the_same_as_json(archive: Path, tmp_path: Path) -> None:
    given = "lab", archive, "--window", "40000", "--processes", "1", "--try", "0.4,0.1", "--json"
    found = json.loads(invoke([*map(str, given)], env={"CLEW_STORE": str(tmp_path / "clew.db")}).stdout)
    assert found["version"] == 1
    assert (found["sessions"], found["overflowing"], len(found["skipped"])) == (1, 1, 1)
    names = [way["name"] for way in found["ways"]]
    assert names == ["everything sent", "as it was", "client compacting", "clew", "clew, 0.4 to 0.1"]
    worth = {way["name"]: way["worth"] for way in found["ways"]}
    best = min(names[3:], key=lambda name: worth[name])
    assert found["chosen"]["name"] == best
    assert bool(found["commands"]) is (best != "clew")


def test_what_cannot_be_tried_is_refused(tmp_path: Path) -> None:
    for wrong in ("0.2,0.8", "much", "0.5"):
        assert invoke(["lab", str(tmp_path), "--try", wrong]).exit_code == 2
    assert invoke(["lab", "--client", "nobody"]).exit_code == 2


def test_what_is_counted_anew_only_where_it_differs_comes_to_the_same() -> None:
    begins, whole = Beginnings(METER), LabSession(transcript(60)).full_view
    for start, stop in ((0, 4), (0, 9), (3, 12), (3, 12), (0, 7), (5, 5)):
        view = with_(whole, nodes=(*whole.nodes[:2], *whole.nodes[start:stop]))
        anew = Beginnings(METER).of(view)
        assert (begins.of(view).until, begins.digests) == (anew.until, anew.digests)
        assert anew.until[-1] == METER.frame(view.frame).tokens + METER.nodes(view.nodes).tokens
