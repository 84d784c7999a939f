"""Which facts of a part of a conversation are still in a text.

Exactly, but for white space: a command as it was run, a number with its unit, a name, a link, an error as they are
written. A file also by a shorter path that can mean no other, a long id also by its first signs, a sentence also in
other words (`clew.audit.sentences`). A number beside another name is another number. More text never holds less.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from clew.audit.kinds import FACT_KINDS, FactKind, NamedFact, as_file, given_to, numbers, values
from clew.audit.particulars import LONG_ID, SHORT_ID, names_in
from clew.audit.sentences import Retelling
from clew.core.items import Item
from clew.facts import find
from clew.steps.worklog.wording import sentences
from clew.text.words import leaves

NameEnds = tuple[str, ...]  # names of a path, the last one first


# The lines of a command are told with semicolons, or under each other; in words it stands between code marks.
SPACES = re.compile(r"[\s;`]+")
PART_OF_COMMAND, PART_OF_NAME = re.compile(r"[\w/:=@-]|\.\w"), re.compile(r"\w")  # `make test` is not in make test:ci
WORD_RUNS = re.compile(r"\w+")


class Part:
    """The facts of a part of a conversation, each once."""

    def __init__(self, found: Iterable[NamedFact]) -> None:
        facts: dict[FactKind, dict[str, None]] = defaultdict(dict)
        self._beside: dict[str, set[frozenset[str]]] = defaultdict(set)  # of each number, what it was said of
        for kind, text, beside in found:
            facts[kind][text] = None
            self._beside[text] |= {beside} if kind == "numbers" else set()
        self.files = Files(facts["paths"])
        facts["paths"] = dict.fromkeys(self.files.all)
        self.facts: Mapping[FactKind, Collection[str]] = {kind: tuple(facts[kind]) for kind in FACT_KINDS}

    def in_view(self, text: "ShownText") -> dict[FactKind, set[str]]:
        """Those that a text holds."""
        found = {kind: {fact for fact in self.facts[kind] if text.holds(kind, fact)} for kind in FACT_KINDS[1:]}
        numbers = {fact for fact in found["numbers"] if text.has_stated(fact, self._beside[fact])}
        return {"paths": self.files.named_in(text.paths), **found, "numbers": numbers}


class ShownText:
    """A text that somebody sees, read once for each kind that is asked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.text = "\n".join(texts)

    def holds(self, kind: FactKind, fact: str) -> bool:
        """Whether it holds a fact."""
        match kind:
            case "commands":
                return _is_in(_flat(fact), self._commands, PART_OF_COMMAND)
            case "numbers":
                return fact in self._numbers
            case "decisions" | "rules":
                return self._sentences.tells(fact)
            case _:
                if fact in self._words or (not fact.isidentifier() and _is_in(fact, self.text, PART_OF_NAME)):
                    return True
                return bool(LONG_ID.fullmatch(fact)) and any(
                    fact[:n] in self._words for n in range(SHORT_ID, len(fact))
                )

    @cached_property
    def paths(self) -> list[str]:
        """The files it names, each once."""
        said = (fact.text for fact in find(self.text) if fact.kind in ("path", "file", "pair"))
        return list(dict.fromkeys(filter(None, map(as_file, said))))

    @cached_property
    def _words(self) -> set[str]:
        return set(WORD_RUNS.findall(self.text))

    def has_stated(self, number: str, beside: Iterable[frozenset[str]]) -> bool:
        """Whether it says a number of what it was said of; beside another name it is another number."""
        here = self._numbers[number]
        return any(not names or not theirs or names & theirs for names in beside for theirs in here)

    @cached_property
    def _numbers(self) -> Mapping[str, set[frozenset[str]]]:
        """The numbers in it, each with what the sentences name that it stands in."""
        found: dict[str, set[frozenset[str]]] = defaultdict(set)
        for said in sentences(self.text):
            for number in {*numbers(said), *values(said)}:
                found[number].add(names_in(said))
        return found

    @cached_property
    def _commands(self) -> str:
        return _flat(self.text)

    @cached_property
    def _sentences(self) -> Retelling:
        return Retelling(self.text)


def _flat(text: str) -> str:
    return SPACES.sub(" ", text).strip()


def _is_in(fact: str, text: str, part: re.Pattern[str]) -> bool:
    """Whether a text holds a fact, and not as a piece of a longer word."""
    at = text.find(fact)
    while at >= 0:
        stop = at + len(fact)
        if not ((at and part.match(text[at - 1])) or part.match(text, stop)):
            return True
        at = text.find(fact, at + 1)
    return False


def shown(item: Item) -> Iterator[str]:
    """What an item shows, to be looked through; of a call its arguments, one a line."""
    if item.kind == "call":
        yield item.name
        yield from leaves(given_to(item), joined=True)
    elif item.kind != "reasoning":
        yield item.text


class Files:
    """The files that a part of a conversation names."""

    def __init__(self, written: Iterable[str]) -> None:
        paths = {_names(path): path for path in written}
        paths.pop((), None)
        ends = {end for names in paths for end in _ends(names) if end != names}
        self.all = tuple(path for names, path in paths.items() if names not in ends)  # each once
        self._by_end: dict[NameEnds, list[str]] = defaultdict(list)
        for path in self.all:
            for end in _ends(_names(path)):
                self._by_end[end].append(path)

    def named_in(self, written: Iterable[str]) -> set[str]:
        """The files that these paths name, each in no doubt."""
        found: set[str] = set()
        for path in written:
            names = _names(path)
            # A longer way to write it than was known names it too.
            longest = next((end for end in reversed([*_ends(names)]) if end in self._by_end), None)
            if longest is None:
                continue
            files = self._by_end[longest]
            whole = [file for file in files if _names(file) == longest]
            if longest == names and len(files) == 1:
                found.add(files[0])
            elif whole:
                found.add(whole[0])
        return found


def _names(path: str) -> NameEnds:
    return tuple(name for name in reversed(path.split("/")) if name not in ("", ".", "~"))


def _ends(names: NameEnds) -> Iterator[NameEnds]:
    yield from (names[:size] for size in range(1, len(names) + 1))
