"""What `crashing_upkeep.py` does to stores, and what is to be there after it, whoever was killed."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew import Budget, Engine, SQLite, body, open_store
from clew.core import rawjson
from clew.engine.settings import Settings
from clew.sessions.import_agent import adopt
from clew.sessions.import_log import take_in
from clew.sessions.transcripts import read_all
from clew.store import restore
from remembering import SCOPE, Host, examined, look

ACTS = ("backup", "restore", "migrate", "import log", "import session", "repair", "wipe", "purge item")
ON_SERVERS = tuple(act for act in ACTS if act not in ("backup", "restore"))  # where the others are the server's own
IDS = re.compile(r"[0-9a-f]{10}")  # each store makes its own
SESSION = Path(__file__).parent / "sessions" / "claude-code.jsonl"


@dataclass
class Place:
    """Where one round happens."""

    where: str  # a path or a URL
    folder: Path  # for what is beside it
    host: Host
    done: bool = False  # whether the act was acknowledged
    lines: list[bytes] = field(default_factory=list)  # of an export
    wanted: dict[str, Any] = field(default_factory=dict)  # what an import comes to that nobody kills

    @property
    def copy(self) -> Path:
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        return elsewhere / "copy.db"


# --- the acts ---------------------------------------------------------------------------------------------------------


async def act(name: str, place: Place) -> None:
    """One act, from its beginning to its end."""
    match name:
        case "restore":
            restore(place.copy, Path(place.where))
            return
        case "migrate":
            await open_store(place.where).close()
            return
    store = open_store(place.where)
    match name:
        case "backup":
            await store.backup(place.copy)
        case "import log":
            await take_in(store, SCOPE, place.lines)
        case "import session":
            engine = Engine(store, Budget(window=200_000), Settings(compaction="off"))
            for transcript in read_all(SESSION.read_bytes(), str(SESSION)):
                await adopt(engine, SCOPE, transcript, "adopted")
        case "repair":
            await store.repair()
        case "wipe":
            await store.wipe()
        case "purge item":
            await store.purge_item(SCOPE, await _victim(place), "test")
    await store.close()


async def _victim(place: Place) -> str:
    """An item that was said."""
    store = open_store(place.where)
    trace = await store.load(SCOPE, min(place.host.names))
    await store.close()
    return trace.said[1].id


async def sum_up(where: str) -> dict[str, Any]:
    """What was said on each branch, what was sent, and how its sessions are listed."""
    store = open_store(where)
    engine, found = Engine(store), dict[str, Any]()
    for branch in await store.branches(SCOPE):
        ids = [place.id for place in (await store.load(SCOPE, branch.id)).said]
        nodes = await store.nodes(SCOPE, ids)
        sent = [
            IDS.sub("0", rawjson.dumps(body(await engine.resume(SCOPE, c))).decode())
            for c in await store.calls(SCOPE, branch.id)
        ]
        listed = [(s.cause, s.tags, bool(s.archived), s.items) for s in await store.sessions(SCOPE, branch.id)]
        found[str(branch.session)] = [[nodes[id].item.text for id in ids], sent, listed]
    await store.close()
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


# --- what is to be there after it -------------------------------------------------------------------------------------


async def inspect(name: str, place: Place) -> tuple[list[str], list[str]]:
    """What is wrong after a kill, and what a repair removed."""
    if name.startswith("import"):
        return await _imported(name, place)
    if name == "restore":
        return await _restored(place)
    store = open_store(place.where)
    purged = False
    if name == "purge item":
        id = await _victim(place)
        purged = (await store.nodes(SCOPE, [id]))[id].item.text.startswith("[purged")
    if purged:
        problems, mended = await examined(store)
    else:
        seen = await look(store, place.host)
        problems, mended = seen.problems, seen.mended
    await store.close()
    if place.done and name == "purge item" and not purged:
        problems.append("an item that was purged is there")
    if name == "backup":
        if place.copy.exists():
            problems += await _whole(place.copy, place.host)
        elif place.done:
            problems.append("a backup that was made is not there")
        problems += _left(place)
    return problems, mended


async def _whole(path: Path, host: Host) -> list[str]:
    store = SQLite(path)
    seen = await look(store, host)
    await store.close()
    return [f"{path.name}: {problem}" for problem in (*seen.problems, *seen.mended)]


def _left(place: Place) -> list[str]:
    return [f"{path.name} is left" for path in place.folder.rglob("*") if "clew-part" in path.name]


async def _restored(place: Place) -> tuple[list[str], list[str]]:
    """The store is the one before or the one from the backup, and the one before is not lost."""
    path = Path(place.where)
    if not path.exists():
        return [f"no store at all: {sorted(p.name for p in place.folder.iterdir())}"], []
    store = SQLite(path)
    problems, mended = await examined(store)
    restored = len(await store.branches(SCOPE)) < len(place.host.names)
    await store.close()
    asides = [p for p in place.folder.glob("store.db.[0-9]*") if not p.name.endswith(("-wal", "-shm", "-mark"))]
    if restored:
        problems += [] if asides else ["the store that was there is lost"]
        for aside in asides:
            problems += await _whole(aside, place.host)
    else:
        problems += await _whole(path, place.host)
        problems += ["a restore that was made is not there"] * place.done
    return problems + _left(place), mended


async def _imported(name: str, place: Place) -> tuple[list[str], list[str]]:
    """Whole once it is asked for again, as if nobody had been killed."""
    store = open_store(place.where)
    problems, mended = await examined(store)
    await store.close()
    if not place.done:
        await act(name, place)
    found = await sum_up(place.where)
    if found != place.wanted:
        others = [branch for branch in place.wanted if found.get(branch) != place.wanted[branch]]
        parts = [i for b in others for i in range(3) if (found.get(b) or [0] * 3)[i] != place.wanted[b][i]]
        problems.append(f"{len(others)} of {len(place.wanted)} branches are not as in the file (parts {parts})")
    return problems, mended
