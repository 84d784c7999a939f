"""Session files of other agents, taken into the log while a server runs: at its start, and whenever they grow."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.errors import ClewError
from clew.mcp.reach import FILE_KIND, Mine
from clew.sessions.import_agent import follow
from clew.sessions.session_files import PLUGGED_KIND, SessionFile, folder_of, session_files, sessions_in
from clew.sessions.sessions import Sessions
from clew.sessions.transcripts import Transcript

LOOK_SECONDS = 2.0  # between two looks at what files there are
FAULTS_TOLD = 3


@dataclass
class Indexer:
    """Reads what is new in session files, in a thread of its own: whoever asks meanwhile gets an answer."""

    engine: Callable[[], Engine]  # over a store of its own, which is made if need be
    scope: Scope
    mine: Mine | None  # which folders; None: all
    env: Mapping[str, str]
    faults: dict[str, str] = field(default_factory=dict)  # by file, why it was not read

    def __post_init__(self) -> None:
        self._folders: dict[str, str] = {}
        self._seen: dict[str, tuple[int, int]] = {}  # files of others, and those that are done, as they were then
        self._left = 0
        self._looked = False
        self._stopped = threading.Event()
        self._engine: Engine | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="clew-index", daemon=True)

    def start(self) -> None:
        """Begin, once; this returns at once."""
        if not self._thread.is_alive() and not self._stopped.is_set():
            self._thread.start()

    def stop(self) -> None:
        """End after what is being written now; nothing that was written is lost."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(LOOK_SECONDS)

    def unread(self) -> str:
        """What is still to be read, or could not be; nothing if all is well."""
        if not self._looked:
            return "Session files are still being looked for: ask again in a moment."
        if self._left:
            return f"{self._left:,} session files are still being read: ask again in a moment."
        if self.faults:
            few = "; ".join([*self.faults.values()][:FAULTS_TOLD])
            return f"{len(self.faults):,} session files could not be read: {few[:200]}"
        return ""

    async def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                await self.look()
                self._stopped.wait(LOOK_SECONDS)
        finally:
            if self._engine is not None:
                await self._engine.close(store=True)

    async def look(self) -> None:
        """Read what is new, the newest files first."""
        try:
            fresh = [file for file in session_files(self.env) if self._is_new(file)]
            self._left = len(fresh)
            self._looked = True
            for file in fresh:
                if self._stopped.is_set():
                    return
                await self._take(file)
                self._left -= 1
        except (ClewError, OSError) as error:  # the log cannot be written now: later, perhaps
            self.faults["the log"] = str(error)
        else:
            self.faults.pop("the log", None)

    def _is_new(self, file: SessionFile) -> bool:
        if self._seen.get(file.key) == (file.size, file.time):
            return False
        if self.mine is None:
            return True
        folder = self._folders.get(file.key) or folder_of(file)
        if folder:
            self._folders[file.key] = folder
        if folder and self.mine(folder):
            return True
        self._seen[file.key] = file.size, file.time
        return False

    async def _take(self, file: SessionFile) -> None:
        engine = self._engine = self._engine or self.engine()
        known = (await engine.store.learned(self.scope, FILE_KIND)).get(file.key, {})
        stamp = {"size": file.size, "time": file.time}
        is_gone = known.get("name") and await engine.named(self.scope, known["name"]) is None
        # What somebody purged does not come back by itself.
        if not is_gone and any(known.get(key) != value for key, value in stamp.items()):
            self.faults.pop(file.key, None)
            try:
                names = [await self._adopted(engine, told) for told in sessions_in(file)]
            except ClewError as error:
                self.faults[file.key] = str(error)
            else:
                await engine.store.learn(self.scope, FILE_KIND, file.key, stamp | {"name": names[0] if names else ""})
        self._seen[file.key] = file.size, file.time

    async def _adopted(self, engine: Engine, told: Transcript) -> str:
        """Write a session to the log, as far as it is not there yet; its name there."""
        name = f"{told.parent}-{told.cause}-{told.name}" if told.cause and told.parent else told.name
        if told.name in await engine.store.learned(self.scope, PLUGGED_KIND):
            return name  # its plugin writes all of it down
        own = [s for s in await Sessions(engine, self.scope).all() if s.name == name]
        if own and min(own, key=lambda s: (s.at, s.number)).cause not in ("import", "subagent", "fork"):
            return name  # it goes through clew, which has all of it
        await follow(engine, self.scope, told, name)
        return name
