"""What is counted of a conversation, by kind.

Counted is what somebody named: the user by typing it, the assistant by saying it or by passing it to a tool. What only
flowed past in the result of a tool is not: nobody expects a summary to hold every line of a listing.

paths      files: in words, whatever clew's finder takes for a path or a file and ends like one; in calls, the argument
           that names the file, and files in a command. Folders are none.
commands   command lines that were run and do something, without where (`cd …`) and how much is shown (`| tail`); as in
           clew's own facts, of 9 to 160 characters and more than one word, and no scripts that stand in their command.
           Those that only show something (`ls`, `git status`) nobody wants in a summary: they are look-ups.
numbers    measured ones in words: with a unit, an amount of money, or of four to six signs, years apart. Smaller ones
           stand in any text by chance, longer ones are ids.
decisions  sentences of the user or the assistant in which somebody chooses: see `clew.audit.sentences`.
rules      sentences that the user typed, which demand or forbid: those that clew's work log takes for strict rules.
names      symbols, constants, ids and hashes in words. Plain words with a hyphen or a dot are none.
links      URLs.
errors     names of errors and exceptions.

Each is known by one key, so that nothing counts twice: a file by the longest way it was written.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from clew.audit.particulars import names_in
from clew.audit.sentences import decisions, rules
from clew.clients.voices import typed
from clew.core.items import Item
from clew.facts import find
from clew.facts.sheets import QUOTED_COMMAND
from clew.steps.dedupe import COMMAND_KEYS, PATH_KEYS
from clew.steps.shorten import parsed
from clew.steps.worklog.acts import SCRIPT
from clew.steps.worklog.commands import looks, shortened_command
from clew.steps.worklog.wording import sentences

FactKind = Literal["paths", "commands", "numbers", "decisions", "rules", "names", "links", "errors"]
FACT_KINDS: tuple[FactKind, ...] = ("paths", "commands", "numbers", "decisions", "rules", "names", "links", "errors")

SHORTEST_COMMAND = 9  # characters: a shorter one is typed anew without a thought
NAMES = frozenset({"symbol", "const", "id", "sha"})
HOLDERS = frozenset({"path", "pair", "url"})  # a name inside one of these is a part of it
LONGEST_PATH = 400  # characters, as in clew's own facts
ENDS_LIKE_A_FILE = re.compile(r"[\w)\]-]\.[A-Za-z][A-Za-z0-9]{0,7}$")
FENCE_LINE = re.compile(r"^[ \t]{0,8}(?:```|~~~)[^\n]*$", re.MULTILINE)
PATCHED_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (\S[^\n]*)$", re.MULTILINE)
LINKS = ("url", "uri")

_TIMES = "milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|hours?|hrs?|h|days?"
_SIZES = "bytes?|[kmgt]i?b"
_OTHERS = "%|percent|tokens?|px|fps|qps|rps|req/s|x|×|°c"
MEASURED = re.compile(
    rf"(?<![\w.,/:#-])([$€£]?)(\d{{1,3}}(?:,\d{{3}}){{1,5}}|\d{{1,18}})(\.\d{{1,12}})?"
    rf"(?:[ \u00a0-]?({_TIMES}|{_SIZES}|{_OTHERS})(?!\w))?(?![\w/]|[.,:-]\d)",
    re.IGNORECASE,
)
UNITS = {
    **dict.fromkeys(("millisecond", "msec"), "ms"),
    **dict.fromkeys(("second", "sec"), "s"),
    **dict.fromkeys(("minute", "mins"), "min"),
    **dict.fromkeys(("hour", "hr"), "h"),
    "percent": "%",
    "×": "x",
}
BARE, BARE_MOST = 4, 6  # signs of a number without a unit
YEAR = re.compile(r"(?:19|20)\d\d")
NO_NAME = re.compile(r"~.*|\d{1,2}:\d\d.*|[\d-]+(?:-[a-z]+)?")  # ids to clew: a time, 1-2, 12-char


class NamedFact(NamedTuple):
    """Something that somebody named."""

    kind: FactKind
    text: str
    beside: frozenset[str] = frozenset()  # of a number: what its sentence names


def facts_in(item: Item) -> Iterator[NamedFact]:
    """What an item names, as often as it does."""
    if item.kind == "call":
        yield from _called(item)
    elif item.kind == "text" and item.role == "user":
        if text := typed(item):
            yield from words(text)
            yield from (NamedFact("decisions", said) for said in decisions(text))
            yield from (NamedFact("rules", said) for said in rules(text))
    elif item.kind == "text" and item.role == "assistant":
        yield from words(item.text)
        yield from (NamedFact("decisions", said) for said in decisions(item.text))


def words(text: str) -> Iterator[NamedFact]:
    """The facts in something that was said, but for sentences; of code that is quoted, only files, links and errors."""
    inside = 0
    prose, spans = without_code(text)
    for kind, said, start, stop in find(text):
        if start < inside:
            continue
        if kind in HOLDERS:
            inside = stop
        if kind in ("path", "file", "pair"):
            if file := as_file(said):
                yield NamedFact("paths", file)
        elif kind == "url":
            yield NamedFact("links", said.rstrip("/"))
        elif kind == "error":
            yield NamedFact("errors", said)
        elif kind in NAMES and not NO_NAME.fullmatch(said) and not any(a <= start < b for a, b in spans):
            yield NamedFact("names", said)
    for said in sentences(prose):
        yield from (NamedFact("numbers", number, names_in(said)) for number in numbers(said))


def without_code(text: str) -> tuple[str, list[tuple[int, int]]]:
    """A text without the code that is quoted in it between fences, and where that stands."""
    if "```" not in text and "~~~" not in text:
        return text, []
    fences = list(FENCE_LINE.finditer(text))
    spans = [(a.start(), b.end()) for a, b in zip(fences[::2], fences[1::2], strict=False)]
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return "\n".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)), spans


def numbers(text: str) -> Iterator[str]:
    """The measured numbers in a text, in one way of writing."""
    for match in MEASURED.finditer(text):
        money, whole, part, unit = match.groups()
        value = f"{whole.replace(',', '')}{part or ''}"
        if money or unit:
            yield f"{money}{value}{unit_of(unit)}"
        elif len(value) >= BARE and (part or "," in whole or (len(value) <= BARE_MOST and not YEAR.fullmatch(value))):
            yield value


def values(text: str) -> Iterator[str]:
    """All numbers in a text, without their units."""
    for match in MEASURED.finditer(text):
        yield f"{match[2].replace(',', '')}{match[3] or ''}"


def unit_of(written: str | None) -> str:
    """A unit in one way of writing."""
    name = (written or "").lower()
    if len(name) > 2 and name.endswith("s"):
        name = name.removesuffix("s")
    return UNITS.get(name, name)


def as_file(said: str) -> str:
    """A path in one way of writing; nothing if it is no file's."""
    if len(said) > LONGEST_PATH:
        return ""
    path = said.replace("\\", "/")
    while path.startswith(("./", "~/", "../")):
        path = path[path.index("/") + 1 :]
    host, below, _ = path.partition("/")
    if below and "." in host[1:]:
        return ""  # github.com/go-git/go-git/config.Config
    return path if ENDS_LIKE_A_FILE.search(path) else ""


# --- calls ----------------------------------------------------------------------------------------------------------


def given_to(call: Item) -> Mapping[str, Any]:
    """The arguments of a call; a text that is no object is its input."""
    value = parsed(call.text)
    return value if isinstance(value, Mapping) else {"input": call.text}


def _called(call: Item) -> Iterator[NamedFact]:
    given = given_to(call)
    if file := file_of(given):
        yield NamedFact("paths", file)
    for patch in (given.get(key) for key in ("input", "patch", *COMMAND_KEYS)):
        if isinstance(patch, str) and patch.lstrip().startswith("*** Begin Patch"):
            yield from (NamedFact("paths", file) for name in PATCHED_FILE.findall(patch) if (file := as_file(name)))
            return
    if line := command_of(given):
        yield from (fact for fact in words(line.partition("<<")[0]) if fact.kind in ("paths", "links"))
        if command := command_fact(line):
            yield NamedFact("commands", command)
    for link in (given.get(key) for key in LINKS):
        if isinstance(link, str) and link.startswith("http"):
            yield NamedFact("links", link.rstrip("/"))


def file_of(given: Mapping[str, Any]) -> str:
    """The file that a call is about; nothing for a search, whose path is a folder, or for a folder."""
    path = next((v for k in PATH_KEYS if isinstance(v := given.get(k), str) and v), "")
    return "" if "pattern" in given else as_file(path.strip())


def command_of(given: Mapping[str, Any]) -> str:
    """The command line that a call runs."""
    line = next((given[k] for k in COMMAND_KEYS if given.get(k)), "")
    if isinstance(line, list) and line and all(isinstance(v, str) for v in line):
        line = line[-1] if len(line) > 2 and line[1] in ("-c", "-lc") else " ".join(line)
    return line[:SCRIPT] if isinstance(line, str) else ""


def command_fact(line: str) -> str:
    """A command line as it is counted; nothing for one that is not."""
    if "<<" in line or looks(line):
        return ""
    short = shortened_command(line)
    return short if SHORTEST_COMMAND <= len(short) <= QUOTED_COMMAND and " " in short else ""
