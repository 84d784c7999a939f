"""What a result says of how a call went, in a line."""

import re
from collections.abc import Iterator

from clew.clients.voices import is_passing, lasting, printed
from clew.core.items import Item
from clew.steps.outcome import ERROR, cause, exit_code
from clew.steps.shorten import parsed
from clew.steps.worklog.refusals import is_refusal, unmade
from clew.steps.worklog.tables import tabled
from clew.steps.worklog.wording import on_one_line, words
from clew.text.quoting import TOOL, quoted
from clew.text.words import width

LINE_READ = 500  # characters of a line that are looked at
LONG = 80  # letters of a value that is a text by itself
RESULT_LINE = 160  # characters of a line of output
PLACES_TOLD = 2  # lines that say where something is wrong
END_READ = 6_000  # characters at the end of an output in which it says that something is wrong
DEPTH = 4  # of data in data
COUNTS_READ = 12  # lines at its end in which it counts what passed and failed

WRAPPING = re.compile(r"(?i)</?[\w-]+>|\W*|traceback \(.*|<?/?\"?(?:exit|return)[ _-]?code.*|ok|done\.?|success\.?")
_COUNTS = re.compile(
    r"(?i)\b\d+ (?:passed|failed|errors?|warnings?|tests?|issues?|problems?)\b|no tests ran|^(?:ok|FAIL|PASS)\b"
    r"|tests? result"
)
# How a run says that something is wrong where its exit code is not to be seen.
_BROKE = re.compile(
    r"(?m)^(?:FAIL(?:ED|URE)?\b|BUILD FAILED|npm ERR!|error(?:\[\w+\])?:|fatal:|E {3}\w)|^Traceback \(most recent"
    r"|^\S+\.\w+:\d+(?::\d+)?: (?!warning|note).{0,80}\b(?:error|undefined|undeclared|cannot|not used|unused|expected"
    r"|missing|invalid)\b"
    r"|(?i:(?<![\d.])[1-9]\d* (?:failed|failures?|errors?|issues?|problems?)\b(?! (?:fixed|resolved|in total)))"
)
_PLACED = re.compile(
    r"(?<![\w/.-])[\w/.-]+\.\w{1,5}[:(]\d+"
    r"|^E {3}|\b\w*(?:Error|Exception)\b: ?\S|^--- FAIL|^FAIL(?:ED)?:? \S|\bnot ok\b"
)
_NUMBER = re.compile(r"^\s*\d+(?:→|\t|[.:|]\s)")
_EMPTY = re.compile(
    r"(?i)^\W*(?:\(?no (?:output|content)\b.*|tool ran without output.*|<returncode>0</returncode>\W*)$"
)


def outcome(said: str, ok: bool, result: Item | None, given: str = "") -> str:
    """How it went, in the words of the tool, without what was `given` to it; quoted where they tell of the user."""
    return quoted(unmade(said) if not ok and is_refusal(said) else _outcome(said, ok, result, given), TOOL)


def _outcome(said: str, ok: bool, result: Item | None, given: str) -> str:
    """Of data its values, of what failed the error and its count, else the count, else the last line."""
    code = exit_code(said)
    said = "" if is_passing(said) else printed(lasting(said))  # clients put reminders beside what a tool says
    if said[:1] in "{[" and isinstance(value := parsed(said), dict | list):
        return tabled(said) or values(value, given)
    if not said.strip() or _EMPTY.match(said.strip()):
        return ""
    lines = list(telling(said))
    counted = next((s for s in reversed(lines[-COUNTS_READ:]) if _COUNTS.search(s)), "")
    if not ok:
        placed = [s for s in lines if _PLACED.search(s)][:PLACES_TOLD]
        named = (cause(result) if result else "") or next((s for s in lines if ERROR.search(s)), "")
        parts = dict.fromkeys(filter(None, (*(placed or [named or (lines[-1] if lines else "")]), counted)))
        told = "; ".join(words(_clean(p), RESULT_LINE) for p in parts)
        return told or (f"exit code {code}" if code else "")
    if not lines:
        return ""
    if table := tabled(said):
        return table
    if len(lines) <= 2:
        return "; ".join(filter(None, map(_short, lines)))
    wrong = [s for s in lines if ERROR.search(s)]  # in an output that has many such words they say nothing
    return _short(counted or (wrong[0] if 0 < len(wrong) <= PLACES_TOLD else lines[-1]))


def values(value: object, given: str = "", most: int = RESULT_LINE) -> str:
    """What data says, by the names of its values, as much as has room."""
    told = dict[str, None]()
    for name, one in _leaves(value, "", DEPTH):
        entry = f"{name} {one}".strip()
        if one == str(True) and WRAPPING.fullmatch(name):
            continue  # that it went well is told by not saying otherwise
        if width(one) <= LONG and one not in given and sum(map(len, told)) + len(entry) + 2 * len(told) <= most:
            told[entry] = None
    return ", ".join(told)


def texts_in(text: str) -> list[str]:
    """The values of data that are texts by themselves."""
    value = parsed(text) if text[:1] in "{[" else None
    return [one for _, one in _leaves(value, "", DEPTH) if width(one) > LONG]


def _leaves(value: object, name: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict | list) and depth:
        for key, part in value.items() if isinstance(value, dict) else ((name, part) for part in value):
            yield from _leaves(part, str(key).replace("_", " "), depth - 1)
    elif not isinstance(value, dict | list) and value not in (None, ""):
        yield name, on_one_line(str(value))


def broke(said: str) -> bool:
    """Whether an output says at its end that something is wrong."""
    return bool(_BROKE.search(said[-END_READ:]))


def _short(line: str) -> str:
    """A line of output; one of data that has no room tells nothing."""
    line = _clean(line)
    return "" if len(line) > RESULT_LINE and line.startswith(("{", "[")) else words(line, RESULT_LINE)


def telling(text: str) -> Iterator[str]:
    """The lines of a result that say something."""
    for line in text.splitlines():
        line = _NUMBER.sub("", line[:LINE_READ], count=1).strip()
        if not WRAPPING.fullmatch(line):
            yield line


def _clean(line: str) -> str:
    return on_one_line(re.sub(r"</?[a-z_-]+>", " ", line)).strip("= ")
