"""What a conversation is about, in a few words: its first request, the agent that leads it, the folder it works in."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from clew.clients.voices import client_of, surroundings, typed
from clew.core.bounds import clip
from clew.core.caches import Recent
from clew.core.items import Item, Scope
from clew.sessions.chains import is_named_by_person
from clew.sessions.names import called
from clew.store.protocol import Store
from clew.store.records import Session

TITLE_LENGTH = 60  # characters: a line of a list on a telephone holds about as many
FEW = 3  # words: of fewer a greeting is made, or a bare command
FENCED = re.compile(r"(?ms)^[ \t]{0,3}(```|~~~).*?(?:^[ \t]{0,3}\1|\Z)")
_TAGS = re.compile(r"</?[A-Za-z][^<>\n]{0,80}>")
_LEAD = re.compile(r"^(?:[#>*\-•\s]+|\[[^\]\n]{1,40}\]\s+|\d{1,3}[.)]\s+)+")
_ENDS = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_CLAUSE = re.compile(r"[,;:—–](?=\s)|\s[-–—(]\s?|[、，；：]")
READ = 4_000  # characters of what was typed


OPENING_ITEMS = 20  # items among which the first words of a user are
FIRST_CALL = 3  # events after which the first call has been written
REMEMBERED_TITLES = 20_000
FOLDER_KIND = "folder"  # under which the store keeps where the session files of other agents were written

_FOLDER = re.compile(
    r"(?:<cwd>|(?:[Ww]orking|[Cc]urrent|[Pp]roject|[Ww]orkspace) (?:directory|folder|root)[^\n/~:]{0,30}[:`'\" ]\s*"
    r"[`'\"]?)"
    r"((?:/|~/|[A-Z]:\\)[^\s`'\"<>]{1,300})"
)


class About(NamedTuple):
    """A conversation in a few words; nothing where that is not known."""

    title: str = ""
    agent: str = ""
    folder: str = ""

    @property
    def project(self) -> str:
        """The last part of the folder."""
        return re.split(r"[/\\]", self.folder.rstrip("/\\"))[-1]


def titled(first: Session, about: About) -> str:
    """What a conversation is called in a list: the name that a person gave it, else its title, else its id."""
    return first.name or "" if is_named_by_person(first) else about.title or called(first)


def results_of(name: str) -> str:
    """The name of the conversation that has the results of which the one of this name has previews."""
    return f"{name}-results"


async def held_in(store: Store, scope: Scope, name: str) -> str:
    """The folder in which a conversation is held, as its host said; nothing where nobody did."""
    return str((await store.learned(scope, FOLDER_KIND)).get(name, {}).get(FOLDER_KIND) or "")


async def hold(store: Store, scope: Scope, name: str, folder: str) -> None:
    """Have it known where a conversation is held. The first word counts: what was said elsewhere does not move."""
    if not await held_in(store, scope, name):
        await store.learn(scope, FOLDER_KIND, name, {FOLDER_KIND: folder})


class Abouts:
    """What conversations are about, each read once: how one began does not change, unless something is purged."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: Recent[tuple[Scope, str, int], About] = Recent(REMEMBERED_TITLES)

    async def of(self, scope: Scope, firsts: Sequence[Session]) -> dict[str, About]:
        """What the conversations are about that begin with these sessions, by branch."""
        purges = (await self._store.state(scope, firsts[0].branch)).purges if firsts else 0
        found: dict[str, About] = {}
        kept: Mapping[str, Mapping[str, Any]] | None = None
        for first in firsts:
            key = scope, first.branch, purges
            about = self._known.get(key)
            if about is None:
                if kept is None:
                    kept = await self._store.learned(scope, FOLDER_KIND)
                about, is_whole = await self._read(scope, first, kept.get(first.name or "", {}))
                if is_whole:
                    self._known[key] = about
            found[first.branch] = about
        return found

    async def one(self, scope: Scope, first: Session) -> About:
        """What one of them is about."""
        return (await self.of(scope, [first]))[first.branch]

    async def _read(self, scope: Scope, first: Session, kept: Mapping[str, Any]) -> tuple[About, bool]:
        """What it is about, and whether that stays so: at first somebody may have said nothing yet."""
        trace = await self._store.load(scope, first.branch, first.seq + FIRST_CALL)
        places = trace.said[-OPENING_ITEMS:] if first.cause == "fork" else trace.said[:OPENING_ITEMS]
        nodes = await self._store.nodes(scope, [place.id for place in places])
        asked = [n.item for n in nodes.values() if n.item.kind == "text" and n.item.role == "user"]
        frame = await self._store.frame(scope, trace.frame) if trace.frame else None
        title = title_of(asked)
        agent = client_of(frame.system if frame else "") or (
            first.method.replace("_", " ") if first.cause == "import" else ""
        )
        # What somebody typed, or a tool printed, may be about any folder.
        made = [told for item in asked if not typed(item) for told in surroundings(item)]
        made.append(frame.system if frame else "")
        about = About(title, agent, kept.get(FOLDER_KIND) or _folder(made))
        return about, bool(title) or trace.seq >= first.seq + FIRST_CALL


def _folder(texts: list[str]) -> str:
    return next((found[1].rstrip(".,;)") for text in texts if (found := _FOLDER.search(text))), "")


def title_of(asked: Iterable[Item]) -> str:
    """The first clause of the first request that says something; nothing where nobody has typed anything."""
    first = ""
    for item in asked:
        for said in _sentences(typed(item)[:READ]):
            if len(said.split()) >= FEW or len(said) > TITLE_LENGTH or not said.isascii():
                return _clause(said)
            first = first or said
    return clip(first, TITLE_LENGTH)


def _sentences(text: str) -> Iterator[str]:
    """What stands there as a sentence; blocks, and what only leads to the next line, left out."""
    lines = [_LEAD.sub("", one).strip() for one in _ENDS.split(_TAGS.sub("\n", FENCED.sub("\n", text)))]
    found = [" ".join(line.split()) for line in lines if line]
    for n, one in enumerate(found):
        if not (one.endswith(":") and n + 1 < len(found)):
            yield one


def _clause(said: str) -> str:
    """As many of its clauses as there is room for, at least the first."""
    if len(said) > TITLE_LENGTH:
        ends = [found.start() for found in _CLAUSE.finditer(said) if TITLE_LENGTH // 3 <= found.start() < TITLE_LENGTH]
        said = said[: ends[-1]] if ends else clip(said, TITLE_LENGTH)
    return said.rstrip(" .。:,;")
