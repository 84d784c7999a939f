"""Shell commands: what one only shows, writes or commits, how it is told on one line, when two of them are the same."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from clew.steps.worklog.changes import FileChange, written
from clew.steps.worklog.heredocs import heredocs, without_heredocs
from clew.steps.worklog.results import RESULT_LINE
from clew.steps.worklog.wording import on_one_line, opening, words
from clew.text.quoting import code, enclosed

COMMAND_LENGTH = 200  # characters of a command

_LOOKS = re.compile(
    r"(?:\w+=\S+\s+)*(?:sudo\s+)?(?:cat|ls|ll|head|tail|grep|egrep|rg|ag|find|fd|wc|pwd|tree|stat|file|which|whereis|"
    r"echo|printf|cd|nl|less|more|sort|uniq|cut|awk|jq|du|df|date|ps|sed\s+-n|"
    r"git\s+(?:-C\s+\S+\s+|--no-pager\s+)?(?:status|log|diff|show|branch|blame|ls-files|remote|rev-parse|grep|reflog|"
    r"worktree\s+list|"
    r"stash\s+list|config\s+--get|ls-tree|cat-file|for-each-ref)|gh\s+\w+\s+(?:view|list|diff|status|checks)|"
    r"go\s+(?:doc|list|env|version)|pip\s+(?:show|list)|npm\s+(?:ls|view)|(?:python3?|node)\s+--version|sleep)\b"
)
_CHANGING = re.compile(r"(?:^|\s)-(?:delete|exec|execdir|ok)\b|\bbranch\s+-[dDmM]|\bremote\s+(?:add|remove|rm|set-url)")
_APART = re.compile(r"&&|\|\||;|\||\n")
_LAST = re.compile(r"&&|;|\|\|")
_SETTING = re.compile(r"\w+=|-")
_MOVE = re.compile(r"^\s*cd\s+(\"[^\"]*\"|'[^']*'|\S+)\s*(?:&&|;)\s*")
_NAME = r"[\w./~$@{}-]"
_INTO = re.compile(rf"(?:^|[\s;&|])(?:cat|tee)\b[^\n|;&\w./~$@{{}}-]*({_NAME}+)")
_INTO_LAST = re.compile(rf".*>\s*({_NAME}+)")
# Of several paths each begins after a space: a pattern that could begin one anywhere would try them all.
_PATHS = r"([\w./~-]+(?:\s+[\w./~-]+)*)\s*$"
_SED, _TOKEN = re.compile(r"sed\s"), re.compile(r"\S+")
_OPTION, _PATH = re.compile(r"-\w+$|-i"), re.compile(r"[\w./~-]+")
_QUOTED = re.compile(r"'[^']*'(?=\s)|\"[^\"]*\"(?=\s)")
_MOVES = re.compile(r"(?:git\s+)?mv\s+(?:-\w+\s+)*([\w./~-]+)\s+([\w./~-]+)\s*$")
_REMOVES = re.compile(r"(?:git\s+)?rm\s+" + _PATHS)
_SHOWN = re.compile(r"\|\s*(?:head|tail|cat)\b[^;&]*")  # how much is shown of what a command prints
_UNSHOWN = ("2>&1", "2>/dev/null", "2> /dev/null")
_COMMIT = re.compile(r"\bgit\b(?: -[cC] \S+| --no-pager)? commit\b")
_HASH = re.compile(r"^\[([^\]\s]+)(?: \([^)\n]*\))? ([0-9a-f]{6,40})\]", re.MULTILINE)


def _parts(command: str) -> list[str]:
    """The commands that run one after the other, without the texts in them."""
    first, *others = _APART.split(without_heredocs(command))
    return [first.rstrip() if others else first, *(part.strip() for part in others)]


def _into(line: str) -> str:
    """The file that a line puts the text into that begins with it."""
    begun = line.find("<<")
    before = _INTO.search(line, 0, line.rfind("<<"))
    after = _INTO_LAST.match(line, begun + 2)
    if before and (before.start() < begun or not after):
        return before[1]
    return after[1] if after else ""


def _edited(part: str) -> Sequence[str]:
    """The files that `sed -i` changes: after its options and its script there is nothing but paths."""
    tokens = list(_TOKEN.finditer(part)) if _SED.match(part) else []
    options = list(takewhile(lambda token: _OPTION.match(token[0]), tokens[1:]))
    if not any(token[0].startswith("-i") for token in options):
        return []
    rest = part[options[-1].end() :].lstrip()
    script = _QUOTED.match(rest) or _TOKEN.match(rest)
    paths = rest[script.end() :].split() if script else []
    return paths if all(map(_PATH.fullmatch, paths)) else []


def looks(command: str) -> bool:
    """Whether a command only shows something."""
    if _CHANGING.search(command):
        return False
    parts = [part for part in _parts(command) if part and not part.startswith("#")]
    return (
        bool(parts)
        and all(_LOOKS.match(part) for part in parts)
        and ">" not in re.sub(r"2>(?:&1|\s*/dev/null)|=>|->", "", command)
    )


def written_by(command: str) -> Iterator[FileChange]:
    """Files that a command writes as a whole from text in it, and those that it changes, moves or removes."""
    for heredoc in heredocs(command):
        line = command[command.rfind("\n", 0, heredoc.start) + 1 : heredoc.begin]
        if into := _into(line):
            yield FileChange(into, "wrote", written(heredoc.text))
    for part in _parts(command):
        if paths := _edited(part):
            yield from (FileChange(path, "edited", f"by {code(words(part, RESULT_LINE))}") for path in paths)
        elif found := _MOVES.match(part):
            yield FileChange(found[1], "moved", f"to {found[2]}")
        elif found := _REMOVES.match(part):
            yield from (FileChange(path, "deleted", "") for path in found[1].split() if not path.startswith("-"))


def shortened_command(command: str) -> str:
    """A command on one line, without where it runs and how much is shown of it."""
    command = _MOVE.sub("", command.strip())
    command = without_heredocs(command, lambda found: f"<<{found.word} ({len(found.text.splitlines())} lines)")
    lines = [line.strip() for line in command.splitlines() if line.strip() and not line.strip().startswith("#")]
    command = on_one_line("; ".join(lines))
    return words(_untailed(command), COMMAND_LENGTH)


def _untailed(command: str) -> str:
    """A command without what only says how much is shown of what it prints."""
    while True:
        command = command.rstrip()
        if tail := next((tail for tail in _UNSHOWN if command.endswith(tail)), ""):
            command = command[: -len(tail)]
        elif (pipe := command.rfind("|")) >= 0 and _SHOWN.fullmatch(command, pipe):
            command = command[:pipe]
        else:
            return command


def commit_of(command: str, said: str) -> str:
    """The commit that a command made, as its output names it: hash, branch and subject; nothing if there is none."""
    hash = _HASH.search(said) if _COMMIT.search(command) else None
    if not hash:
        return ""
    told = enclosed(opening(said[hash.end() :].strip().partition("\n")[0], RESULT_LINE))
    place = f" in {moved[1]}" if (moved := _MOVE.match(command)) else ""
    return f"{hash[2]} on {hash[1]}{place}: {told}"


def commits(command: str) -> bool:
    """Whether a command makes a commit."""
    return _COMMIT.search(command) is not None


def command_key(command: str) -> str:
    """What makes two runs the same; nothing for a script that stands in its command, of which only the size is told."""
    return "" if "<<" in command else command.strip()


def program(command: str) -> str:
    """The program that a command runs last, and which of its acts."""
    bare = [w for w in _LAST.split(command)[-1].partition("|")[0].split() if not _SETTING.match(w)]
    return " ".join(bare[:2])
