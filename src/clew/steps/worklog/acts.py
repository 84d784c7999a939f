"""What the assistant did: each call with its result, known by the shape of its arguments, whatever the tool's name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from clew.core.items import Item
from clew.steps.dedupe import COMMANDS, PATHS, WHOLE_TEXTS
from clew.steps.outcome import ERROR, cause, exit_code, failed
from clew.steps.shorten import parsed
from clew.steps.worklog.changes import Change, change, patched, written
from clew.steps.worklog.wording import MORE, on_one_line, opening, words

Kind = Literal["edit", "run", "look", "plan", "ask", "report", "refused", "did"]

LONGEST = 500  # characters of a line that are looked at
LINE = 160  # characters of a line of output
COMMAND = 200  # characters of a command
PLACES = 2  # lines that say where something is wrong
SCRIPT = 8_000  # characters of a command that are looked at
NO_RESULT = "no result was seen"
REPORT = 900  # characters of what a sub-agent said
ENTRIES = 20  # of a list
ARGUMENT = 80  # characters of an argument

OLD = ("old_string", "old_str", "oldText", "old_text", "search", "old")
NEW = ("new_string", "new_str", "newText", "new_text", "replace", "replacement", "new")
PATCHES = ("patch", "diff", "input", "patchText", "patch_text")
SOUGHT = ("pattern", "query", "regex", "q", "search_term", "url", "uri", "glob", "path", "symbol", "name")
_PATCH = "*** Begin Patch"
_LOOKS = re.compile(
    r"(?:\w+=\S+\s+)*(?:sudo\s+)?(?:cat|ls|ll|head|tail|grep|egrep|rg|ag|find|fd|wc|pwd|tree|stat|file|which|whereis|"
    r"echo|printf|cd|nl|less|more|sort|uniq|cut|awk|jq|du|df|date|ps|sed\s+-n|"
    r"git\s+(?:-C\s+\S+\s+|--no-pager\s+)?(?:status|log|diff|show|branch|blame|ls-files|remote|rev-parse|grep|reflog|"
    r"worktree\s+list|"
    r"stash\s+list|config\s+--get|ls-tree|cat-file|for-each-ref)|gh\s+\w+\s+(?:view|list|diff|status|checks)|"
    r"go\s+(?:doc|list|env|version)|pip\s+(?:show|list)|npm\s+(?:ls|view)|(?:python3?|node)\s+--version|sleep)\b"
)
_LOOKING = re.compile(
    r"(?i)^(?:\w+__)*(?:read|view|grep|glob|ls|list|search|find|get|fetch|open|lookup|look|show|query|cat|"
    r"browse|"
    r"describe|check|web_?search|web_?fetch|resolve|think|calculate)"
)
_CHANGING = re.compile(r"(?:^|\s)-(?:delete|exec|execdir|ok)\b|\bbranch\s+-[dDmM]|\bremote\s+(?:add|remove|rm|set-url)")
_PARTS = re.compile(r"\s*(?:&&|\|\||;|\||\n)\s*")
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
# How clients say that the user did not let a call be made: at the beginning, or it is something that a tool printed.
_NO = r"(?:rejected|declined|denied|refused|cancell?ed|aborted|interrupted)"
_REFUSED = re.compile(
    r"(?i)\W{0,3}(?:error:\s*)?(?:the )?(?:user|human) (?:has |have )?"
    rf"(?:doesn['’]t want|does not want|did not want|didn['’]t want|{_NO})\b"
    rf"|\W{{0,3}}(?:[\w']+ ){{0,6}}{_NO} by (?:the )?(?:user|human)\b"
    r"|\[Request interrupted by user"
)
_REASON = re.compile(r"(?is)\b(?:the user said|reason(?: given)?|feedback|user feedback|comment)s?:\s*(.+)")
_WRAPPING = re.compile(
    r"(?i)</?[\w-]+>|\W*|chunk id:.*|wall time:.*|original token count:.*|process exited.*|output:|traceback \(.*|"
    r"<?/?\"?(?:exit|return)[ _-]?code.*|ok|done\.?|success\.?|shell cwd was reset.*"
)
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
    r"[\w/.-]+\.\w{1,5}[:(]\d+|^E {3}|\b\w*(?:Error|Exception)\b: ?\S|^--- FAIL|^FAIL(?:ED)?:? \S|\bnot ok\b"
)
_NUMBER = re.compile(r"^\s*\d+(?:→|\t|[.:|]\s)")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_EMPTY = re.compile(
    r"(?i)^\W*(?:\(?no (?:output|content)\b.*|tool ran without output.*|<returncode>0</returncode>\W*)$"
)
_DONE = re.compile(r"\b(?:completed?|done|finished|closed|resolved)\b")
_DROPPED = re.compile(r"\b(?:cancell?ed|deleted|skipped|dropped|abandoned)\b")
_PLANS = re.compile(r"(?i)todo|plan|task")


@dataclass(frozen=True, slots=True)
class Act:
    """One call, in words."""

    kind: Kind
    what: str  # the file, the command, what was looked for
    told: str  # what came of it
    ok: bool = True
    changes: tuple[Change, ...] = ()
    commit: bool = False
    background: str = ""  # how a process that was started and left running is called
    tasks: tuple[tuple[str, str, str], ...] = ()  # (number, state, what) of a list of tasks
    whole: bool = False  # the list is all of it, not one entry


def act_of(call: Item, result: Item | None) -> Act:
    """What a call did, as its arguments and its result tell."""
    given: Any = parsed(call.text)
    said = _ANSI.sub("", result.text) if result else ""
    if result and _REFUSED.match(said):
        return Act("refused", _asked_for(call, given), _reason(said[:REPORT]), ok=False)
    ok = result is not None and not failed(result)
    if not isinstance(given, Mapping):
        given = {"input": call.text} if call.text.strip() else {}
    for known in (_plan, _edit, _command, _question, _report, _look):
        if (act := known(call, given, result, said, ok)) is not None:
            return act
    return Act("did", f"{_title(call.name)} {arguments(given)}".strip(), outcome(said, ok, result), ok)


# --- the kinds, each by its arguments -------------------------------------------------------------------------------


def _plan(call: Item, given: Mapping[str, Any], result: Item | None, said: str, ok: bool) -> Act | None:
    for key in ("todos", "plan", "tasks", "items"):
        entries = given.get(key)
        stated = isinstance(entries, list) and any(
            isinstance(e, Mapping) and {"status", "state"} & e.keys() for e in entries
        )
        if isinstance(entries, list) and (stated or _PLANS.search(call.name)) and (tasks := tuple(_entries(entries))):
            return Act("plan", "", "", ok, tasks=tasks, whole=True)
    if isinstance(plan := given.get("plan"), str) and plan.strip():
        return Act("ask", "proposed a plan", plan.strip(), ok)
    number = given.get("taskId") or given.get("task_id")
    if isinstance(number, str | int) and ("status" in given or "subject" in given):
        state = _state(given["status"]) if given.get("status") else ""
        task = str(number), state, _first(given, ("subject", "title"))
        return Act("plan", "", "", ok, tasks=(task,))
    if isinstance(given.get("subject"), str) and ("description" in given or "activeForm" in given):
        found = re.search(r"#?\b(\d+)\b", said)
        return Act("plan", "", "", ok, tasks=((found[1] if found else "", "open", given["subject"]),))
    return None


def _entries(entries: Sequence[Any]) -> Iterator[tuple[str, str, str]]:
    for n, entry in enumerate(entries, 1):
        if isinstance(entry, Mapping):
            what = _first(entry, ("content", "step", "title", "task", "subject", "text", "description"))
            if what:
                yield str(n), _state(entry.get("status") or entry.get("state")), on_one_line(what)


def _state(value: Any) -> str:
    words_ = str(value or "open").replace("_", " ").lower()
    if _DROPPED.search(words_):
        return "dropped"
    if _DONE.search(words_):
        return "done"
    return "in progress" if "progress" in words_ or "active" in words_ else "open"


def _edit(call: Item, given: Mapping[str, Any], result: Item | None, said: str, ok: bool) -> Act | None:
    changes = tuple(_changes(call, given))
    if not changes:
        return None
    what = ", ".join(dict.fromkeys(c.path for c in changes))
    return Act("edit", what, "" if ok else outcome(said, ok, result), ok, changes)


def _changes(call: Item, given: Mapping[str, Any]) -> Iterator[Change]:
    path = _first(given, PATHS) or _first(given, ("notebook_path",))
    texts = [given[k] for k in (*PATCHES, *COMMANDS) if isinstance(given.get(k), str)]
    if patch := next((t for t in texts if _PATCH in t or t.startswith(("diff --git", "--- "))), ""):
        yield from patched(patch)
        return
    if not path:
        return
    edits = given.get("edits")
    for edit in edits if isinstance(edits, list) else [given]:
        if not isinstance(edit, Mapping):
            continue
        old, new = _text(edit, OLD), _text(edit, NEW)
        if new is not None and (old is not None or edit is not given):
            told = change(old or "", new)
            every = " (everywhere)" if edit.get("replace_all") is True else ""
            yield Change(path, "edited", f"{told}{every}")
        elif (insert := _text(edit, ("insert_text", "insert", "new_source"))) is not None:
            yield Change(path, "edited", f"added {written(insert)}")
        elif (whole := _text(edit, WHOLE_TEXTS)) is not None:
            yield Change(path, "wrote", written(whole))
    if not edits and re.search(r"(?i)\b(?:delete|remove)_?(?:file)?", call.name) and len(given) == 1:
        yield Change(path, "deleted", "")


def _command(call: Item, given: Mapping[str, Any], result: Item | None, said: str, ok: bool) -> Act | None:
    command = _first(given, (*COMMANDS, "script", "code"))
    if not command or ("path" in given and len(command.split()) == 1):
        return None
    return command_act(command, result, said, ok, given.get("run_in_background") is True)


def command_act(command: str, result: Item | None, said: str, ok: bool, background: bool = False) -> Act:
    """What a command did."""
    command = command[:SCRIPT]
    files = tuple(_written_by(command))
    short = shortened_command(command)
    if result is None:
        return Act("run", short, NO_RESULT, ok=False, changes=files)
    if exit_code(said) is None:
        ok = ok and (looks(command) or not _BROKE.search(said[-6_000:]))
    if background or re.search(r"[^&]&\s*$", command):
        name = re.search(r"(?i)\b(?:id|pid)\W{1,3}([\w-]+)", said)
        return Act("run", short, outcome(said, ok, result), ok, files, background=name[1] if name else short)
    if _COMMIT.search(command):
        message, hash = _MESSAGE.search(command), _HASH.search(said)
        subject = next((part for part in message.groups() if part), "") if message else ""
        subject = subject or (said[hash.end() :].strip() if hash else "")
        if ok and hash:
            told = f"“{opening(subject.strip().partition(chr(10))[0], LINE)}”"
            place = f" in {moved[1]}" if (moved := _MOVE.match(command)) else ""
            return Act("run", "committed", f"{hash[2]} on {hash[1]}{place}: {told}", ok, commit=True)
    if looks(command) and not files:
        return Act("look", short, "" if ok or not said.strip() else outcome(said, ok, result), ok)
    return Act("run", short, outcome(said, ok, result), ok, files)


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


def _written_by(command: str) -> Iterator[Change]:
    """Files that a command writes as a whole from text in it, and those that it changes, moves or removes."""
    for body in _HEREDOC.finditer(command):
        line = command[command.rfind("\n", 0, body.start()) + 1 : body.start(2)]
        if into := _INTO.search(line):
            yield Change(into[1] or into[2], "wrote", written(body[2]))
    for part in _PARTS.split(_HEREDOC.sub("", command)):
        if found := _IN_PLACE.match(part):
            yield from (Change(path, "edited", f"by `{words(part, LINE)}`") for path in found[1].split())
        elif found := _MOVES.match(part):
            yield Change(found[1], "moved", f"to {found[2]}")
        elif found := _REMOVES.match(part):
            yield from (Change(path, "deleted", "") for path in found[1].split() if not path.startswith("-"))


def shortened_command(command: str) -> str:
    """A command on one line, without where it runs and how much is shown of it."""
    command = _MOVE.sub("", command.strip())
    command = _HEREDOC.sub(lambda m: f"<<{m[1]} ({len(m[2].splitlines())} lines)", command)
    lines = [line.strip() for line in command.splitlines() if line.strip() and not line.strip().startswith("#")]
    command = on_one_line("; ".join(lines))
    while (shorter := _TAIL.sub("", command)) != command:
        command = shorter
    return words(command, COMMAND)


def _question(call: Item, given: Mapping[str, Any], result: Item | None, said: str, ok: bool) -> Act | None:
    asked = given.get("questions")
    if isinstance(asked, list):
        texts = [_asked(q) for q in asked if isinstance(q, Mapping)]
        return Act("ask", " / ".join(filter(None, texts)), on_one_line(said), ok) if any(texts) else None
    if isinstance(question := given.get("question"), str) and question.strip():
        return Act("ask", _asked(given), on_one_line(said), ok)
    return None


def _asked(question: Mapping[str, Any]) -> str:
    text = on_one_line(str(question.get("question") or ""))
    options = question.get("options")
    labels = [o.get("label") if isinstance(o, Mapping) else o for o in options] if isinstance(options, list) else []
    told = ", ".join(f"“{on_one_line(str(label))}”" for label in labels if label)
    return f"{text} (options: {told})" if told else text


def _report(call: Item, given: Mapping[str, Any], result: Item | None, said: str, ok: bool) -> Act | None:
    prompt = given.get("prompt") or given.get("task") or given.get("message")
    if not isinstance(prompt, str) or not (
        "subagent_type" in given or "agent" in call.name.lower() or "task" in call.name.lower()
    ):
        return None
    title = _first(given, ("description", "title", "name")) or opening(prompt, LINE)
    return Act("report", on_one_line(title), said.strip(), ok)


def _look(call: Item, given: Mapping[str, Any], result: Item | None, said: str, ok: bool) -> Act | None:
    path = _first(given, PATHS)
    if not path and not _LOOKING.match(call.name):
        return None
    sought = [on_one_line(str(given[k])) for k in SOUGHT if isinstance(given.get(k), str | int) and given[k]]
    what = path or ", ".join(dict.fromkeys(words(s, ARGUMENT) for s in sought)) or arguments(given)
    known = {"read", "view", "grep", "glob", "ls", "cat", "open", "read_file", "view_file"}
    title = "" if call.name.lower() in known else f"{_title(call.name)} "
    return Act("look", f"{title}{what}".strip(), "" if ok else outcome(said, ok, result), ok)


# --- words ----------------------------------------------------------------------------------------------------------


def outcome(said: str, ok: bool, result: Item | None) -> str:
    """How it went: of what failed the error and its count, else the count, else the last line."""
    if not said.strip() or _EMPTY.match(said.strip()):
        return ""
    lines = list(telling(said))
    counted = next((s for s in reversed(lines[-12:]) if _COUNTS.search(s)), "")
    if not ok:
        placed = [s for s in lines if _PLACED.search(s)][:PLACES]
        named = (cause(result) if result else "") or next((s for s in lines if ERROR.search(s)), "")
        code = exit_code(said)
        parts = dict.fromkeys(filter(None, (*(placed or [named or (lines[-1] if lines else "")]), counted)))
        told = "; ".join(words(_clean(p), LINE) for p in parts)
        return told or (f"exit code {code}" if code else "")
    if not lines:
        return ""
    if len(lines) <= 2:
        return "; ".join(filter(None, map(_short, lines)))
    wrong = [s for s in lines if ERROR.search(s)]  # in an output that has many such words they say nothing
    return _short(counted or (wrong[0] if 0 < len(wrong) <= PLACES else lines[-1]))


def _short(line: str) -> str:
    """A line of output; one of data that has no room tells nothing."""
    line = _clean(line)
    return "" if len(line) > LINE and line.startswith(("{", "[")) else words(line, LINE)


def telling(text: str) -> Iterator[str]:
    """The lines of a result that say something."""
    for line in text.splitlines():
        line = _NUMBER.sub("", line[:LONGEST], count=1).strip()
        if not _WRAPPING.fullmatch(line):
            yield line


def _clean(line: str) -> str:
    return on_one_line(re.sub(r"</?[a-z_-]+>", " ", line)).strip("= ")


def arguments(given: Mapping[str, Any], depth: int = 4) -> str:
    """Arguments as words: short ones whole, of long ones the first words."""
    told = []
    for key, value in given.items() if depth else ():
        if isinstance(value, bool) or value in (None, "", [], {}):
            continue
        if isinstance(value, Mapping):
            value = arguments(value, depth - 1)
        elif isinstance(value, list):
            value = "; ".join(arguments(v, depth - 1) if isinstance(v, Mapping) else _flat(v) for v in value[:ENTRIES])
        told.append(
            f"{key.replace('_', ' ')} {words(str(value), ARGUMENT)}" if key != "input" else words(str(value), ARGUMENT)
        )
    return words(", ".join(told), 2 * LINE)


def _flat(value: Any) -> str:
    return MORE if isinstance(value, list) else str(value)[: 2 * LINE]


def _title(name: str) -> str:
    return name.rpartition("__")[2] or name


def _asked_for(call: Item, given: Any) -> str:
    if not isinstance(given, Mapping):
        return _title(call.name)
    if command := _first(given, COMMANDS):
        return f"`{shortened_command(command)}`"
    if isinstance(given.get("plan"), str):
        return f"a plan: {opening(given['plan'], LINE)}"
    if path := _first(given, PATHS):
        return f"{_title(call.name)} {path}"
    return f"{_title(call.name)} {arguments(given)}".strip()


def _reason(said: str) -> str:
    found = _REASON.search(said)
    return on_one_line(found[1]) if found else ""


def _text(given: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((given[k] for k in keys if isinstance(given.get(k), str)), None)


def _first(given: Mapping[str, Any], keys: Sequence[str]) -> str:
    for key in keys:
        value = given.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
            return value[-1] if len(value) > 2 and value[1] in ("-c", "-lc") else " ".join(value)
    return ""


__all__ = ["MORE", "Act", "act_of", "command_act", "looks", "outcome"]
