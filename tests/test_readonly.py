"""Stores that can only be read: a file, a folder, for somebody else; all that only looks works, and nothing is left."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

import processes
from clew import Budget, Engine, Request, SQLite, open_store
from clew.core.items import Frame
from clew.engine.settings import Settings
from clew.page.acting import ACTS
from clew.steps.chapters.by_model import ByModel
from clew.store.places import is_url
from clew.store.sqlite.opening import migrations
from clew.testing import ScriptedModel, conversation, write_chapter

pytestmark = pytest.mark.skipif(
    os.name == "nt" or (os.geteuid() == 0 and sys.platform != "linux"), reason="root may write everywhere"
)

# Root writes where it likes, unless it gives that up: CAP_DAC_OVERRIDE is the second of its rights.
ORDINARY = """
import ctypes, os
if os.geteuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    head, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(head, data) == 0
    for n in (0, 1):
        data[n] &= ~0b10
    assert libc.capset(head, data) == 0, ctypes.get_errno()
"""
COMMAND = ORDINARY + "from clew.cli.app import main; main()"
# Commands one after the other, each followed by its exit code: starting a process takes longer than most of them.
COMMANDS = (
    ORDINARY
    + """
import json, sys
from clew.cli.app import main
for args in json.loads(sys.argv[1]):
    sys.argv = ["clew", *args]
    try:
        main()
    except SystemExit as ended:
        print(chr(0), ended.code or 0, sep="", end=chr(0), flush=True)
"""
)
SAYING = (
    ORDINARY
    + """
import asyncio, sys, clew
async def main(path):
    store = clew.SQLite(path)
    try:
        await clew.Engine(store).prepare(clew.Request({"messages": [{"role": "user", "content": "hi"}]}))
    finally:
        await store.close()
asyncio.run(main(sys.argv[1]))
"""
)


@pytest.fixture
async def folder() -> AsyncIterator[Path]:
    """A folder that others may look into, with a store that they may read."""
    made = Path(tempfile.mkdtemp(prefix="clew-ro-"))
    store = SQLite(made / "clew.db")
    body = conversation(1, 20)
    body["messages"].append({"role": "user", "content": "And what about zanzibar?"})
    await Engine(store, Budget(window=3_000)).prepare(Request(body, session="s"))
    await store.close()
    made.chmod(0o755)
    (made / "clew.db").chmod(0o644)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


def run(script: str, *args: str) -> "subprocess.CompletedProcess[str]":
    """As somebody who may write only where the rights of a file say so."""
    return processes.run("-c", script, *args, cwd="/")


def command(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    return run(COMMAND, *args, "--store", str(folder / "clew.db"))


def protect(folder: Path) -> None:
    (folder / "clew.db").chmod(0o444)
    folder.chmod(0o555)


LOOKS = (
    ("show", "s"),
    ("sessions",),
    ("search", "zanzibar"),
    ("export", "s"),
    ("doctor", "--deep"),
    ("show", "s", "--diff"),
    ("sessions", "--totals"),
    ("show", "s", "--calls"),
    ("show", "s", "--facts"),
    ("show", "s", "--preview"),
    ("resume", "s"),
    ("pin", "s", "--json"),
    ("set", "s", "--json"),
)


def test_all_that_only_looks_works_and_leaves_nothing(folder: Path) -> None:
    protect(folder)
    done = run(COMMANDS, json.dumps([(*args, "--store", str(folder / "clew.db")) for args in LOOKS]))
    *said, rest = done.stdout.split("\0")
    assert rest == "", done.stderr
    for args, out, code in zip(LOOKS, said[::2], said[1::2], strict=True):
        assert code == "0", (args, done.stderr, out)
        assert out
    assert done.returncode == 0
    assert [p.name for p in folder.iterdir()] == ["clew.db"]


def test_something_is_recalled(folder: Path) -> None:
    protect(folder)
    lines = command(folder, "export", "s").stdout.splitlines()
    id = next(line.split('"node":"')[1][:12] for line in lines if '"node":"' in line)
    done = command(folder, "recall", id)
    assert done.returncode == 0, done.stderr
    assert done.stdout


# --- the page ---------------------------------------------------------------------------------------------------------

# The page over a store: what is shown of its conversation, what each act says it would do, and what comes of it.
PAGE = (
    ORDINARY
    + """
import asyncio, html, json, re, sys
from pathlib import Path
from typing import LiteralString
from clew import Engine, open_store
from clew.config import Places
from clew.page.acting import ACTS
from clew.page.app import Page
from clew.page.instructions import KeptInstructions

GIVEN = {"fork": "name=x", "tag": "tags=new", "method": "method=llm", "instruct": "when=40%25&how=Briefly"}
LAST = ("compact", "undo")  # they change what the others would be done to

async def main():
    store = open_store(sys.argv[1])
    branch = (await store.sessions("default"))[0].branch
    page = Page(Engine(store), "default", KeptInstructions(Places({"HOME": sys.argv[2]}, Path(sys.argv[2]))))

    async def ask(path, form=None):
        said, token = [], page._guard.token("default")
        path, _, query = path.partition("?")
        asked = {
            "type": "http", "method": "GET" if form is None else "POST", "path": path, "query_string": query.encode(),
            "headers": [(b"host", b"127.0.0.1:1"), (b"x-clew-token", token.encode()), (b"hx-request", b"true")],
            "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2), "scheme": "http", "root_path": "",
        }
        async def receive():
            return {"type": "http.request", "body": (form or "").encode()}
        async def send(told):
            said.append(told)
        await page(asked, receive, send)
        return said[0]["status"], b"".join(told.get("body", b"") for told in said).decode()

    one = f"/clew/c/{branch}"
    looks = ["/", "/clew/filters", "/clew/overall", "/clew/overall/everything", "/clew/search?q=page", one]
    looks += [one + path for path in "/window /window?call=1 /raw?call=1 /compare?from=1 /rules".split()]
    shown = {path: await ask(path) for path in looks}
    links = "".join(text for _, text in shown.values())
    found = {name: html.unescape(given) for name, given in reversed(re.findall(r'/act/([a-z]+)[?]([^"]+)"', links))}
    forms = {f"{one}/act/{name}": {**found, **GIVEN}.get(name, "") for name in sorted(ACTS, key=LAST.__contains__)}
    [(address, given)] = re.findall(r'hx-get="(/clew/limits/forget)[?]([^"]+)"', links)
    forms[address] = html.unescape(given)
    looks = {f"{path}?{form}": await ask(f"{path}?{form}") for path, form in forms.items()}
    acts = {path.rpartition("/")[2]: await ask(path, form) for path, form in forms.items()}
    await store.close()
    print(json.dumps([{**shown, **looks}, acts]))

asyncio.run(main())
"""
)
RULE = "Never touch src/legacy.py, and always run the tests before you commit."


async def fill(place: str) -> None:
    """A conversation with all that can be acted on: a rule, a chapter by a model, a limit that a provider named."""
    store = open_store(place)
    author = ByModel(ScriptedModel(write_chapter, name="gpt-4o"), size=400)
    engine = Engine(store, Budget(window=6_000, reserve=500), Settings(author=author, patience=5))
    said = [{"role": "user", "content": "Read all pages."}, {"role": "assistant", "content": "Yes."}]
    for n in range(24):
        text = RULE if n == 3 else f"Page {n} says that part {n} has port {8000 + n}. " + "It is a long page. " * 60
        said.append({"role": "user", "content": text})
        view = await engine.prepare(Request({"model": "gpt-4o", "messages": said}, session="s"))
        said.append({"role": "assistant", "content": f"Page {n} is read."})
    await engine.compact(view)
    await engine.limits.windows.learn("default", Frame("openai_chat", "my-local", served="near"), "tokens", 16_000)
    await engine.close(store=True)


@contextmanager
def only_to_read(place: str) -> Iterator[str]:
    """A store as somebody has it who may only read it."""
    if is_url(place):
        with psycopg.connect(place, autocommit=True) as db:
            reader = f"reads_{db.info.dbname}"
            rights: LiteralString = "create role {0} login; grant usage on schema clew to {0}; "
            rights += "grant select on all tables in schema clew to {0}"
            db.execute(SQL(rights).format(Identifier(reader)))
            yield place.replace("clew:sesame@", f"{reader}@")
            db.execute(SQL("drop owned by {0}; drop role {0}").format(Identifier(reader)))
        return
    protect(Path(place).parent)
    yield place
    Path(place).parent.chmod(0o755)


def files_of(place: str) -> set[str]:
    return set() if is_url(place) else {p.name for p in Path(place).parent.iterdir()}


@pytest.mark.parametrize("readonly", [False, True], ids=["written", "read-only"])
def test_each_act_of_the_page_is_done_or_it_says_why_not(
    place: str, readonly: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    asyncio.run(fill(place))
    home = tmp_path_factory.mktemp("home")
    before = files_of(place)
    with only_to_read(place) if readonly else nullcontext(place) as its_place:
        done = run(PAGE, its_place, str(home))
    assert done.returncode == 0, done.stderr
    shown, acts = json.loads(done.stdout)
    assert {path: status for path, (status, _) in shown.items() if status != 200} == {}
    assert {path: text for path, (_, text) in shown.items() if 'role="alert"' in text} == {}
    assert "a question changes nothing" in acts.pop("recall")[1]
    assert acts.keys() == {*ACTS, "forget"} - {"recall"}
    refused = {name for name, (_, text) in acts.items() if 'role="alert"' in text}
    assert refused == ({*acts} - {"instruct"} if readonly else set()), acts  # those are not kept in the store
    why = "your role lacks that right" if is_url(place) else "cannot be written: the file or its folder is read-only"
    assert [name for name in refused if why not in acts[name][1]] == [], acts
    assert not readonly or files_of(place) == before, "nothing is left"


@pytest.mark.few(1)
@pytest.mark.parametrize("what", ["file", "folder"])
def test_writing_says_so(folder: Path, what: str) -> None:
    (folder / "clew.db").chmod(0o444 if what == "file" else 0o666)
    folder.chmod(0o777 if what == "file" else 0o555)
    for done in (run(SAYING, str(folder / "clew.db")), command(folder, "set", "s", "--tag", "new")):
        assert done.returncode != 0
        assert "cannot be written: the file or its folder is read-only" in done.stderr
    assert [p.name for p in folder.iterdir()] == ["clew.db"]


async def test_what_a_killed_process_left_in_its_log_is_read(folder: Path) -> None:
    store = SQLite(folder / "clew.db")
    await Engine(store).prepare(Request(conversation(2, 3), session="later"))  # in the log alone
    for file in folder.iterdir():
        file.chmod(0o644)
    folder.chmod(0o555)
    done = command(folder, "sessions", "--json")
    assert "later" in done.stdout, done.stderr
    folder.chmod(0o755)
    await store.close()


def test_an_older_store_says_where_it_can_be_read(folder: Path) -> None:
    data = bytearray((folder / "clew.db").read_bytes())
    data[60:64] = (len(migrations()) - 1).to_bytes(4)
    (folder / "clew.db").write_bytes(data)
    protect(folder)
    done = command(folder, "sessions")
    assert done.returncode == 1
    assert "written by an older clew and read-only" in done.stderr
