"""Shell commands: what one only shows, writes or commits, how it is told on one line, when two of them are the same."""

import re
from collections.abc import Iterator

from clew.steps.worklog.changes import FileChange, written
from clew.steps.worklog.results import RESULT_LINE
from clew.steps.worklog.wording import on_one_line, opening, words
from clew.text.voices import enclosed

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
_PARTS = re.compile(r"\s*(?:&&|\|\||;|\||\n)\s*")
_LAST = re.compile(r"&&|;|\|\|")
_SETTING = re.compile(r"\w+=|-")
_MOVE = re.compile(r"^\s*cd\s+(\"[^\"]*\"|'[^']*'|\S+)\s*(?:&&|;)\s*")
_HEREDOC = re.compile(r"<<-?[ \t]*['\"]?(\w{1,40})['\"]?[^\n<]{0,400}\n(.*?)\n[ \t]*\1(?=\n|$)", re.DOTALL)
_INTO = re.compile(r"(?:^|[\s;&|])(?:cat|tee)\b[^\n|;&]*?>{0,2}\s*([\w./~$@{}-]+)[^\n]*<<|<<[^\n]*>\s*([\w./~$@{}-]+)")
# Of several paths each begins after a space: a pattern that could begin one anywhere would try them all.
_PATHS = r"([\w./~-]+(?:\s+[\w./~-]+)*)\s*$"
_IN_PLACE = re.compile(r"sed\s+(?:-\w+\s+)*-i\S*\s+(?:-\w+\s+)*(?:'[^']*'|\"[^\"]*\"|\S+)\s+" + _PATHS, re.DOTALL)
_MOVES = re.compile(r"(?:git\s+)?mv\s+(?:-\w+\s+)*([\w./~-]+)\s+([\w./~-]+)\s*$")
_REMOVES = re.compile(r"(?:git\s+)?rm\s+" + _PATHS)
_TAIL = re.compile(r"\s*(?:2>&1|2>\s*/dev/null|\|\s*(?:head|tail|cat)\b[^|;&]*)\s*$")
_COMMIT = re.compile(r"\bgit\b(?: -[cC] \S+| --no-pager)? commit\b")
_MESSAGE = re.compile(r"-m\s+(?:\"\$\(cat <<'?EOF'?\n(.*?)\nEOF|\"((?:[^\"\\]|\\.)*)\"|'([^']*)')", re.DOTALL)
_HASH = re.compile(r"^\[([^\]\s]+)(?: \([^)]*\))? ([0-9a-f]{6,40})\]", re.MULTILINE)


def looks(command: str) -> bool:
    """Whether a command only shows something."""
    if _CHANGING.search(command):
        return False
    parts = [part for part in _PARTS.split(_HEREDOC.sub("", command)) if part and not part.startswith("#")]
    return (
        bool(parts)
        and all(_LOOKS.match(part) for part in parts)
        and ">" not in re.sub(r"2>(?:&1|\s*/dev/null)|=>|->", "", command)
    )


def written_by(command: str) -> Iterator[FileChange]:
    """Files that a command writes as a whole from text in it, and those that it changes, moves or removes."""
    for body in _HEREDOC.finditer(command):
        line = command[command.rfind("\n", 0, body.start()) + 1 : body.start(2)]
        if into := _INTO.search(line):
            yield FileChange(into[1] or into[2], "wrote", written(body[2]))
    for part in _PARTS.split(_HEREDOC.sub("", command)):
        if found := _IN_PLACE.match(part):
            yield from (FileChange(path, "edited", f"by `{words(part, RESULT_LINE)}`") for path in found[1].split())
        elif found := _MOVES.match(part):
            yield FileChange(found[1], "moved", f"to {found[2]}")
        elif found := _REMOVES.match(part):
            yield from (FileChange(path, "deleted", "") for path in found[1].split() if not path.startswith("-"))


def shortened_command(command: str) -> str:
    """A command on one line, without where it runs and how much is shown of it."""
    command = _MOVE.sub("", command.strip())
    command = _HEREDOC.sub(lambda m: f"<<{m[1]} ({len(m[2].splitlines())} lines)", command)
    lines = [line.strip() for line in command.splitlines() if line.strip() and not line.strip().startswith("#")]
    command = on_one_line("; ".join(lines))
    while (shorter := _TAIL.sub("", command)) != command:
        command = shorter
    return words(command, COMMAND_LENGTH)


def commit_told(command: str, said: str) -> str:
    """The commit that a command made, as its output names it: hash, branch and subject; nothing if there is none."""
    hash = _HASH.search(said) if _COMMIT.search(command) else None
    if not hash:
        return ""
    message = _MESSAGE.search(command)
    subject = next((part for part in message.groups() if part), "") if message else ""
    subject = subject or said[hash.end() :].strip()
    told = enclosed(opening(subject.strip().partition(chr(10))[0], RESULT_LINE))
    place = f" in {moved[1]}" if (moved := _MOVE.match(command)) else ""
    return f"{hash[2]} on {hash[1]}{place}: {told}"


def command_key(command: str) -> str:
    """What makes two runs the same; nothing for a script that stands in its command, of which only the size is told."""
    return "" if "<<" in command else command.strip()


def program(command: str) -> str:
    """The program that a command runs last, and which of its acts."""
    bare = [w for w in _LAST.split(command)[-1].partition("|")[0].split() if not _SETTING.match(w)]
    return " ".join(bare[:2])
