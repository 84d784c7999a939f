"""Whether the real programs load what clew writes: each resumes a session, and asks a provider on loopback one thing.

Not part of `make test`, since it installs them: `make test-clients`.
"""

import gzip
import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace as with_
from pathlib import Path
from typing import Any

import pytest

from clew import Budget, Engine, Sessions, SQLite, wire
from clew.engine.settings import Settings
from clew.sessions.export_agent import tell
from clew.sessions.import_agent import adopt
from clew.sessions.transcripts import AGENTS, WRITERS, Transcript, TranscriptStretch, convert, read, write
from clew.testing import Answer, StrictProvider
from conftest import SAMPLE
from test_transcripts import FILES

PROGRAMS = Path(__file__).parent / "node_modules" / ".bin"
ASKED = "And-what-now?"  # one word: opencode puts several in quotes
PROMPT = "You are the agent that had this session before."


def run(program: str, *arguments: str | Path, home: Path, **env: str) -> None:
    """A program that knows nothing of this machine's settings, in a folder of its own; it must do well."""
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    given = {"PATH": path, "HOME": str(home), "TERM": "dumb", "LANG": "C.UTF-8", **env}
    done = subprocess.run(
        [PROGRAMS / program, *arguments],
        cwd=home / "work",
        env=given,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{program}: {done.stdout}\n{done.stderr}"


def claude(data: bytes, url: str, home: Path) -> None:
    id = json.loads(data.splitlines()[-1])["sessionId"]
    place = home / "projects" / re.sub(r"\W|_", "-", str(home / "work"))
    place.mkdir(parents=True)
    (place / f"{id}.jsonl").write_bytes(data)
    env = {"CLAUDE_CONFIG_DIR": str(home), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    run("claude", "-p", "--model", "claude-sonnet-4-5", "--resume", id, ASKED, home=home, **env, **quiet)


def codex(data: bytes, url: str, home: Path) -> None:
    id = json.loads(data.splitlines()[0])["payload"]["id"]
    place = home / "sessions" / "2026" / "01" / "02"
    place.mkdir(parents=True)
    (place / f"rollout-2026-01-02T03-04-05-{id}.jsonl").write_bytes(data)
    provider = f'name = "here"\nbase_url = "{url}/v1"\nenv_key = "KEY"\nwire_api = "responses"\n'
    settings = 'model = "gpt-5.2-codex"\nmodel_provider = "here"\ncheck_for_update_on_startup = false\n'
    settings += "tool_output_token_limit = 100000\n"  # else it cuts long results when it reads them
    settings += f"[analytics]\nenabled = false\n[model_providers.here]\n{provider}"
    (home / "config.toml").write_text(settings)
    run("codex", "exec", "--skip-git-repo-check", "resume", id, ASKED, home=home, CODEX_HOME=str(home), KEY="none")


def opencode(data: bytes, url: str, home: Path) -> None:
    model = {"limit": {"context": 200_000, "output": 8_000}, "tool_call": True}
    options = {"baseURL": f"{url}/v1", "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"some": model}}
    settings = {"autoupdate": False, "share": "disabled", "provider": {"here": provider}}
    (home / "opencode.json").write_text(json.dumps(settings))
    (home / "session.json").write_bytes(data)
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "SHARE")
    env = {"OPENCODE_CONFIG": str(home / "opencode.json")} | {f"OPENCODE_DISABLE_{what}": "1" for what in off}
    run("opencode", "import", home / "session.json", home=home, **env)
    run("opencode", "run", "-m", "here/some", "-s", json.loads(data)["info"]["id"], ASKED, home=home, **env)


def pi(data: bytes, url: str, home: Path) -> None:
    (home / "models.json").write_text(json.dumps({"providers": {"anthropic": {"baseUrl": url}}}))
    place = home / "sessions" / f"--{str(home / 'work').strip('/').replace('/', '-')}--"
    place.mkdir(parents=True)
    id = json.loads(data.splitlines()[0])["id"]
    (place / f"2026-01-02T03-04-05-000Z_{id}.jsonl").write_bytes(data)
    env = {"PI_CODING_AGENT_DIR": str(home), "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "ANTHROPIC_API_KEY": "none"}
    model = ("--provider", "anthropic", "--model", "claude-sonnet-4-5")
    run("pi", "-p", *model, "--session", id, ASKED, home=home, **env)


# How each is driven, and the wire format in which it then speaks to its provider.
CLIENTS: Mapping[str, tuple[Callable[[bytes, str, Path], None], str]] = {
    "claude-code": (claude, "anthropic"),
    "codex": (codex, "openai_responses"),
    "opencode": (opencode, "openai_chat"),
    "pi": (pi, "anthropic"),
}


def said(body: Mapping[str, Any], format: str) -> list[tuple[str, ...]]:
    """What was said, called and returned, in order, whatever is wrapped around it; calls by number."""
    numbers: dict[str, str] = {}
    found: list[tuple[str, ...]] = []
    for item in wire.decode(body, format)[1]:
        number = numbers.setdefault(item.call_id, f"call {len(numbers)}") if item.call_id else ""
        if item.kind == "call":
            free = (item.wire or {}).get("type") == "custom_tool_call"
            found.append((number, item.name, item.text if free else str(json.loads(item.text or "{}"))))
        elif item.kind == "result" or (item.kind == "text" and item.text.strip()):
            found.append((number, item.kind, item.role if item.kind == "text" else "", item.text.strip()))
    return found


def answered(said: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Without calls that nothing came back from: each client has its own way with those."""
    return [one for one in said if not one[0] or one[0] in {back[0] for back in said if back[1] == "result"}]


def results(said: list[tuple[str, ...]]) -> int:
    return sum(one[1] == "result" for one in said)


def in_view(session: Transcript) -> Transcript:
    """The session from its last compaction on, with what that kept."""
    start = max((place - why.kept for place, why in session.compactions), default=0)
    return with_(session, stretches=(TranscriptStretch(tuple(session.messages[start:])),))


def check(session: Transcript, format: str, home: Path) -> None:
    """A client that resumes the session sends what it should still see of it, all of it once and in order."""
    resume, spoken = CLIENTS[format]
    session = with_(session, system=PROMPT)
    (home / "work").mkdir()
    with StrictProvider([Answer("Resumed.")]) as provider:
        resume(write(session, format), provider.url, home)
    (heard,) = provider.heard
    sent = said(heard.body, spoken)
    wanted = convert(session, WRITERS[format][0])
    due = answered(said(in_view(wanted).body(), wanted.format))
    assert [one for one in sent if one in due] == due
    assert ASKED in sent[-1][-1]
    for _, why in session.compactions[-1:]:
        assert why.summary
        assert why.summary in "\n".join(one[-1] for one in sent)
        assert results(sent) < results(said(wanted.body(), wanted.format))
    assert PROMPT not in str(heard.body)  # it goes on with its own


@pytest.mark.parametrize("format", AGENTS)
@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_samples_are_resumed(file: Path, format: str, tmp_path: Path) -> None:
    check(with_(read(file.read_bytes()), cwd=str(tmp_path / "work")), format, tmp_path)


@pytest.mark.parametrize("format", AGENTS)
async def test_what_clew_exports_is_resumed(format: str, tmp_path: Path) -> None:
    store = SQLite(tmp_path / "log.db")
    engine = Engine(store, Budget(window=200_000), Settings(compaction="off"))
    await adopt(engine, "", read(gzip.decompress(SAMPLE.read_bytes())), "talk")
    session = await tell(engine, "", (await Sessions(engine, "").get("talk")).branch)
    await store.close()
    check(session, format, tmp_path)
