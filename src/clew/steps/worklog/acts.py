"""What the assistant did: each call with its result, known by the shape of its arguments, whatever the tool's name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any, Literal

from clew.core.bounds import TEXT_READ, ends, unread
from clew.core.items import Item
from clew.steps.dedupe import COMMAND_KEYS, PATH_KEYS, WHOLE_TEXTS
from clew.steps.outcome import exit_code, failed
from clew.steps.shorten import parsed
from clew.steps.worklog.changes import FileChange, change, patched, written
from clew.steps.worklog.commands import commit_of, looks, shortened_command, written_by
from clew.steps.worklog.refusals import is_refusal, refusal
from clew.steps.worklog.results import RESULT_LINE, broke, outcome
from clew.steps.worklog.wording import MORE, on_one_line, opening, words
from clew.text.quoting import ASSISTANT, code, enclosed, quoted
from clew.text.words import width

ActKind = Literal["edit", "run", "look", "plan", "proposal", "question", "report", "refused", "did"]

SCRIPT = 8_000  # characters of a command that are looked at
NO_RESULT = "no result was seen"
LIST_ENTRIES = 20  # of a list
ARGUMENT = 80  # characters of an argument

OLD_KEYS = ("old_string", "old_str", "oldText", "old_text", "search", "old")
NEW_KEYS = ("new_string", "new_str", "newText", "new_text", "replace", "replacement", "new")
PATCHES = ("patch", "diff", "input", "patchText", "patch_text")
SOUGHT = ("pattern", "query", "regex", "q", "search_term", "url", "uri", "glob", "path", "symbol", "name")
_PATCH = "*** Begin Patch"
_LOOKS = re.compile(
    r"(?i:read|view|grep|glob|ls|list|search|find|get|fetch|open|look|lookup|show|query|cat|browse|describe|check"
    r"|count|web_?search|web_?fetch|resolve|think|calculate)(?![a-z])"
)
_ACTIONS = ("action", "operation", "op", "method", "verb")  # arguments that say what a tool of many uses does
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_DONE = re.compile(r"\b(?:completed?|done|finished|closed|resolved)\b")
_DROPPED = re.compile(r"\b(?:cancell?ed|deleted|skipped|dropped|abandoned)\b")
_TOLD = ("run", "did", "ask", "report")  # kinds of which it is told what a result says


@dataclass(frozen=True, slots=True)
class Act:
    """One call, in words."""

    kind: ActKind
    what: str  # the file, the command, what was looked for
    outcome: str  # what came of it
    ok: bool = True
    changes: tuple[FileChange, ...] = ()
    commit: bool = False
    background: str = ""  # how a process that was started and left running is called
    tasks: tuple[tuple[str, str, str], ...] = ()  # (number, state, what) of a list of tasks
    whole: bool = False  # the list is all of it, not one entry
    texts: tuple[str, ...] = ()  # long arguments: what was written, sent, noted down


def act_of(call: Item, result: Item | None, most: int = TEXT_READ) -> Act:
    """What a call did, as its arguments and its result tell; of a long result its two ends."""
    said = _ANSI.sub("", ends(result.text, most)) if result else ""
    act = _act_of(call, result, said)
    left = unread(len(result.text), most) if result and act.kind in _TOLD else ""
    return with_(act, outcome=f"{act.outcome} ({left})".strip()) if left else act


def _act_of(call: Item, result: Item | None, said: str) -> Act:
    given: Any = parsed(call.text)
    if result and (refused := refusal(result, said)):
        return Act("refused", _asked_for(call, given), refused.why, ok=False)
    ok = result is not None and not failed(result) and not is_refusal(said)
    if not isinstance(given, Mapping):
        given = {"input": call.text} if call.text.strip() else {}
    for known in (_plan, _edit, _command, _question, _report, _look):
        if (act := known(call, given, result, said, ok)) is not None:
            return act
    short, long = _by_length(given)
    what = f"{_title(call.name)} {arguments(short)}".strip()
    return Act("did", what, outcome(said, ok, result, call.text), ok, texts=tuple(long))


# --- the kinds, each by its arguments -------------------------------------------------------------------------------


def _plan(call: Item, given: Mapping[str, Any], result: Item | None, said: str, ok: bool) -> Act | None:
    for key in ("todos", "plan", "tasks", "items"):
        entries = given.get(key)
        stated = isinstance(entries, list) and any(
            isinstance(e, Mapping) and {"status", "state"} & e.keys() for e in entries
        )
        if isinstance(entries, list) and stated and (tasks := tuple(_entries(entries))):
            return Act("plan", "", "", ok, tasks=tasks, whole=True)
    if isinstance(plan := given.get("plan"), str) and plan.strip():
        got = "" if ok else outcome(said, ok, result)
        return Act("proposal", f"proposed a plan{f' and got {got}' if got else ''}", plan.strip(), ok)
    number = given.get("taskId") or given.get("task_id")
    if isinstance(number, str | int) and ("status" in given or "subject" in given):
        state = _state(given["status"]) if given.get("status") else ""
        task = str(number), state, _task(_first(given, ("subject", "title")))
        return Act("plan", "", "", ok, tasks=(task,))
    if isinstance(given.get("subject"), str) and ("description" in given or "activeForm" in given):
        found = re.search(r"#?\b(\d+)\b", said)
        return Act("plan", "", "", ok, tasks=((found[1] if found else "", "open", _task(given["subject"])),))
    return None


def _entries(entries: Sequence[Any]) -> Iterator[tuple[str, str, str]]:
    for n, entry in enumerate(entries, 1):
        if isinstance(entry, Mapping):
            what = _first(entry, ("content", "step", "title", "task", "subject", "text", "description"))
            if what:
                yield str(n), _state(entry.get("status") or entry.get("state")), _task(what)


def _task(what: str) -> str:
    """A task in the words of the assistant, whose list it is."""
    return quoted(on_one_line(what), ASSISTANT)


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


def _changes(call: Item, given: Mapping[str, Any]) -> Iterator[FileChange]:
    path = _first(given, PATH_KEYS) or _first(given, ("notebook_path",))
    texts = [given[k] for k in (*PATCHES, *COMMAND_KEYS) if isinstance(given.get(k), str)]
    if patch := next((t for t in texts if _PATCH in t or t.startswith(("diff --git", "--- "))), ""):
        yield from patched(patch)
        return
    if not path:
        return
    edits = given.get("edits")
    for edit in edits if isinstance(edits, list) else [given]:
        if not isinstance(edit, Mapping):
            continue
        old, new = _text(edit, OLD_KEYS), _text(edit, NEW_KEYS)
        if new is not None and (old is not None or edit is not given):
            told = change(old or "", new)
            every = " (everywhere)" if edit.get("replace_all") is True else ""
            yield FileChange(path, "edited", f"{told}{every}")
        elif (insert := _text(edit, ("insert_text", "insert", "new_source"))) is not None:
            yield FileChange(path, "edited", f"added {written(insert)}")
        elif (whole := _text(edit, WHOLE_TEXTS)) is not None:
            yield FileChange(path, "wrote", written(whole))
    if not edits and re.search(r"(?i)\b(?:delete|remove)_?(?:file)?", call.name) and len(given) == 1:
        yield FileChange(path, "deleted", "")


def _command(call: Item, given: Mapping[str, Any], result: Item | None, said: str, ok: bool) -> Act | None:
    command = _first(given, (*COMMAND_KEYS, "script", "code"))
    if not command or ("path" in given and len(command.split()) == 1):
        return None
    return command_act(command, result, said, ok, given.get("run_in_background") is True)


def command_act(command: str, result: Item | None, said: str, ok: bool, background: bool = False) -> Act:
    """What a command did."""
    command = command[:SCRIPT]
    files = tuple(written_by(command))
    short = shortened_command(command)
    if result is None:
        return Act("run", short, NO_RESULT, ok=False, changes=files)
    if exit_code(said) is None:
        ok = ok and (looks(command) or not broke(said))
    if background or re.search(r"[^&]&\s*$", command):
        name = re.search(r"(?i)\b(?:id|pid)\W{1,3}([\w-]+)", said)
        return Act("run", short, outcome(said, ok, result), ok, files, background=name[1] if name else short)
    if ok and (told := commit_of(command, said)):
        return Act("run", "committed", told, ok, commit=True)
    if looks(command) and not files:
        return Act("look", short, "" if ok or not said.strip() else outcome(said, ok, result), ok)
    return Act("run", short, outcome(said, ok, result), ok, files)


def _question(call: Item, given: Mapping[str, Any], result: Item | None, said: str, ok: bool) -> Act | None:
    several = given.get("questions")
    if isinstance(several, list):
        texts = [_asked(q) for q in several if isinstance(q, Mapping)]
        asked = " / ".join(filter(None, texts))
        return Act("question", f"{_title(call.name)}: {asked}", on_one_line(said), ok) if asked else None
    if isinstance(question := given.get("question"), str) and question.strip():
        return Act("question", f"{_title(call.name)}: {_asked(given)}", on_one_line(said), ok)
    return None


def _asked(question: Mapping[str, Any]) -> str:
    text = on_one_line(str(question.get("question") or ""))
    options = question.get("options")
    labels = [o.get("label") if isinstance(o, Mapping) else o for o in options] if isinstance(options, list) else []
    told = ", ".join(enclosed(on_one_line(str(label))) for label in labels if label)
    return f"{text} (options: {told})" if told else text


def _report(call: Item, given: Mapping[str, Any], result: Item | None, said: str, ok: bool) -> Act | None:
    prompt = given.get("prompt") or given.get("task") or given.get("message")
    if not isinstance(prompt, str) or not (
        "subagent_type" in given or "agent" in call.name.lower() or "task" in call.name.lower()
    ):
        return None
    title = _first(given, ("description", "title", "name")) or opening(prompt, RESULT_LINE)
    return Act("report", on_one_line(title), said.strip(), ok)


def _look(call: Item, given: Mapping[str, Any], result: Item | None, said: str, ok: bool) -> Act | None:
    path = _first(given, PATH_KEYS)
    if not path and not _only_looks(call, given):
        return None
    sought = [
        on_one_line(str(given[k])[:TEXT_READ]) for k in SOUGHT if isinstance(given.get(k), str | int) and given[k]
    ]
    what = path or ", ".join(dict.fromkeys(words(s, ARGUMENT) for s in sought)) or arguments(given)
    known = {"read", "view", "grep", "glob", "ls", "cat", "open", "read_file", "view_file"}
    title = "" if call.name.lower() in known else f"{_title(call.name)} "
    return Act("look", f"{title}{what}".strip(), "" if ok else outcome(said, ok, result), ok)


def _only_looks(call: Item, given: Mapping[str, Any]) -> bool:
    """Whether a call shows something and changes nothing, by its verb: the one that is given, else its name's."""
    return _LOOKS.match(_first(given, _ACTIONS) or _title(call.name)) is not None


# --- arguments in words ---------------------------------------------------------------------------------------------


def arguments(given: Mapping[str, Any], depth: int = 4) -> str:
    """Arguments as words: short ones whole, of long ones the first words."""
    told = []
    for key, value in given.items() if depth else ():
        if isinstance(value, bool) or value in (None, "", [], {}):
            continue
        if isinstance(value, Mapping):
            value = arguments(value, depth - 1)
        elif isinstance(value, list):
            value = "; ".join(
                arguments(v, depth - 1) if isinstance(v, Mapping) else _flat(v) for v in value[:LIST_ENTRIES]
            )
        short = words(str(value)[:TEXT_READ], ARGUMENT)
        told.append(f"{key.replace('_', ' ')} {short}" if key != "input" else short)
    return words(", ".join(told), 2 * RESULT_LINE)


def _by_length(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Arguments apart from those that are texts."""
    long = {key: value for key, value in given.items() if isinstance(value, str) and width(value) > ARGUMENT}
    return {key: value for key, value in given.items() if key not in long}, [v[:TEXT_READ] for v in long.values()]


def _flat(value: Any) -> str:
    return MORE if isinstance(value, list) else str(value)[: 2 * RESULT_LINE]


def _title(name: str) -> str:
    return name.rpartition("__")[2] or name


def _asked_for(call: Item, given: Any) -> str:
    if not isinstance(given, Mapping):
        return _title(call.name)
    if command := _first(given, COMMAND_KEYS):
        return code(shortened_command(command[:SCRIPT]))
    if isinstance(given.get("plan"), str):
        return f"a plan: {opening(given['plan'], RESULT_LINE)}"
    if path := _first(given, PATH_KEYS):
        return f"{_title(call.name)} {path}"
    return f"{_title(call.name)} {arguments(given)}".strip()


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


def found_nothing(act: Act) -> bool:
    """Whether it was only a search at the end of a command that found nothing."""
    last = act.what.rpartition("|")[2].strip()
    return last.startswith(("grep", "egrep", "rg", "diff", "test ")) and act.outcome in ("", "exit code 1")
