"""Claude Code: lines with `uuid` and `parentUuid`, one content block of an answer a line."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace as with_
from typing import Any

from clew.clients.voices import ATTACHED, typed
from clew.core.items import Item
from clew.errors import BadRequest
from clew.sessions.transcripts.shape import Script, Transcript, TranscriptCompaction, TranscriptMessage
from clew.sessions.transcripts.source import SessionFolder, Source, mapping, number, objects, string, time
from clew.sessions.transcripts.tree import TreeBranch, TreeEntry, branches
from clew.wire.formats.plain import text_of

NAME = "claude-code"
WIRE = "anthropic"
FOLDERS = (SessionFolder("CLAUDE_CONFIG_DIR", ".claude", "projects"),)
MARKS = (b"compact_boundary", b"isCompactSummary")  # in every file that holds a compaction
CHAIN = frozenset({"user", "assistant", "system", "attachment", "progress"})
# About the session, and said by nobody.
ASIDE = frozenset(
    "file-history-snapshot queue-operation last-prompt custom-title ai-title tag agent-name agent-color agent-setting "
    "mode worktree-state pr-link attribution-snapshot speculation-accept content-replacement summary result "
    "permission-mode rate_limit_event stream_event".split()
)
TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}  # the best one first
PROMPT = "system_prompt"  # a subtype of our own: Claude Code keeps its prompt in no file


def recognises(value: Mapping[str, Any]) -> bool:
    """Whether a record is a line of Claude Code's; those of Qwen Code have parts."""
    if "systemPayload" in value or "parts" in mapping(value.get("message")):
        return False
    if "uuid" in value and "parentUuid" in value:
        return True
    kind = string(value.get("type"))
    if kind in ("user", "assistant", "system"):
        return "session_id" in value or "sessionId" in value  # as it prints them, and as it stores them
    return kind in ASIDE and any(k in value for k in ("sessionId", "leafUuid", "messageId", "session_id"))


def read(source: Source) -> list[Transcript]:
    """The session of a file: those of its subagents and those left by a rewind are its children."""
    entries = _entries(source)
    own = [e for e in entries if not _is_sidechain(e)]
    inner = [e for e in entries if _is_sidechain(e)]
    if not own:
        own, inner = inner, []  # the file of a subagent
    about = _about(source, own)
    whole, branched = _conversations(own, source)
    agents = [_agent(group, own, about, source) for group in _groups(inner)]
    forks = [_fork(about, whole, script) for script in branched]
    return [with_(about, stretches=whole.stretches, children=(*agents, *forks), notes=source.all_notes())]


def _fork(about: Transcript, whole: Script, left: Script) -> Transcript:
    return with_(about, stretches=left.stretches, cause="fork", parent=about.name, shared=_shared(whole, left))


def _is_sidechain(entry: TreeEntry) -> bool:
    return bool(entry.value.get("isSidechain") or entry.value.get("parent_tool_use_id"))


def _entries(source: Source) -> list[TreeEntry]:
    """The lines that have a place in the conversation, each once."""
    found: list[TreeEntry] = []
    seen: set[str] = set()
    before: str | None = None
    for line, value in source.records:
        kind = string(value.get("type"))
        if kind not in CHAIN:
            if kind not in ASIDE:
                source.skipped[f"line of an unknown type {kind or 'none'}"] += 1
            continue
        id = string(value.get("uuid")) or f"line {line}"
        if id in seen:
            source.skipped["line that is there twice"] += 1
            continue
        seen.add(id)
        parent = value.get("parentUuid", before)
        if kind == "system" and value.get("subtype") == "compact_boundary" and parent is None:
            parent = value.get("logicalParentUuid") or before
        elif value.get("isCompactSummary") and parent is None:
            parent = before  # as it was before there were boundaries
        found.append(TreeEntry(id, parent if isinstance(parent, str) else None, value, line))
        if not _is_sidechain(found[-1]):
            before = id
    return found


def _about(source: Source, entries: Sequence[TreeEntry]) -> Transcript:
    """All that is known of the session but what was said."""
    titles: dict[str, str] = {}
    for _, value in source.records:
        if (key := TITLES.get(string(value.get("type")))) and value.get(key):
            titles[key] = string(value[key])
    model, told = "", Transcript(WIRE)
    times = [t for e in entries if (t := time(e.value.get("timestamp")))]
    for entry in entries:
        name = string(mapping(entry.value.get("message")).get("model"))
        model = name if name and name != "<synthetic>" else model
        if entry.value.get("subtype") == PROMPT:
            tools = tuple(objects(entry.value.get("tools")))
            told = with_(told, system=string(entry.value.get("content")), tools=tools)
    first = entries[0].value if entries else {}
    agent = string(first.get("agentId"))
    session = next((n for e in entries if (n := _session(e.value))), "") or source.name
    return with_(
        told,
        name=agent or session,
        title=next((titles[k] for k in TITLES.values() if k in titles), ""),
        agent=NAME,
        model=model,
        cwd=next((c for e in entries if (c := string(e.value.get("cwd")))), ""),
        began=times[0] if times else "",
        ended=times[-1] if times else "",
        parent=session if agent else string(mapping(first.get("forkedFrom")).get("sessionId")),
        cause="subagent" if agent else "fork" if "forkedFrom" in first else "",
    )


def _session(value: Mapping[str, Any]) -> str:
    return string(value.get("sessionId")) or string(value.get("session_id"))


def _groups(entries: Sequence[TreeEntry]) -> list[list[TreeEntry]]:
    """The lines of each subagent."""
    groups: dict[str, list[TreeEntry]] = defaultdict(list)
    keys: dict[str, str] = {}
    for entry in entries:
        own = string(entry.value.get("agentId")) or string(entry.value.get("parent_tool_use_id"))
        keys[entry.id] = own or keys.get(entry.parent or "", entry.id)
        groups[keys[entry.id]].append(entry)
    return list(groups.values())


def _agent(entries: Sequence[TreeEntry], own: Sequence[TreeEntry], about: Transcript, source: Source) -> Transcript:
    whole, branched = _conversations(entries, source)
    told = _about(Source(source.name, []), entries)
    name = told.name if told.name != about.name else entries[0].id
    child = with_(told, name=name, stretches=whole.stretches, parent=about.name, cause="subagent")
    forks = tuple(_fork(child, whole, script) for script in branched)
    return with_(child, call=_caller(entries[0], whole.messages, own), children=forks)


def _caller(first: TreeEntry, messages: Sequence[TranscriptMessage], own: Sequence[TreeEntry]) -> str:
    """The call that started a subagent: named, or the one with the same prompt."""
    if call := string(first.value.get("parent_tool_use_id")):
        return call
    agent, prompt = string(first.value.get("agentId")), text_of(messages[0].get("content")) if messages else ""
    for entry in own:
        for block in blocks_of(entry):
            if agent and mapping(entry.value.get("toolUseResult")).get("agentId") == agent and "tool_use_id" in block:
                return string(block["tool_use_id"])
            if block.get("type") == "tool_use" and prompt and mapping(block.get("input")).get("prompt") == prompt:
                return string(block.get("id"))
    return ""


def _conversations(entries: Sequence[TreeEntry], source: Source) -> tuple[Script, list[Script]]:
    """What was said on the way to the newest line, and on each way that was left."""
    way, beside = branches(entries)
    turns = ClaudeTurns(entries, way)
    # Calls made together are answered beside each other: what looks like a fork is one turn.
    left, before = beside, None
    while len(left) != before:
        before = len(left)
        left = [branch for branch in left if not turns.include(branch)]
    left = [b for b in left if any(i not in turns.main and _speaks(entries[i]) for i in b.entries)]
    main = sorted(turns.main)
    listener = LineListener(source)
    for i in main:
        listener.hear(entries[i])
    starts, late = listener.starts(), [i for i in main if turns.main[i] != i]
    forks = []
    for branch in left:
        stop = bisect_right(main, branch.at)
        start = starts[stop]  # what was said before it need not be told again for each fork
        other = listener.before(start, Source(source.name, []))
        answers = (i for i in late if i > branch.at >= turns.main[i])
        for i in sorted({*main[start:stop], *answers, *branch.entries}):
            other.hear(entries[i])
        forks.append(other.script)
    return listener.script, forks


class ClaudeTurns:
    """The lines of a conversation, and which calls in it were answered."""

    def __init__(self, entries: Sequence[TreeEntry], way: Sequence[int]) -> None:
        self.entries = entries
        self.main: dict[int, int] = {}  # a line, and the one on the way to the newest that it hangs on
        self.answers: set[str] = set()
        self.calls: set[str] = set()
        self.answered: set[str] = set()
        for place in way:
            self.take([place], place)

    def take(self, places: Iterable[int], at: int) -> None:
        """These lines are part of the conversation."""
        for place in places:
            self.main.setdefault(place, at)
            self.answers.add(answer_of(self.entries[place]))
            calls, results = _pairs(self.entries[place])
            self.calls |= calls
            self.answered |= results

    def include(self, branch: TreeBranch) -> bool:
        """Take a branch that is only more of an answer on the way, or results that it waits for."""
        parts = [self.entries[i] for i in branch.entries if i not in self.main and _speaks(self.entries[i])]
        calls: set[str] = set().union(*(_pairs(entry)[0] for entry in parts))
        for entry in parts:
            results = _pairs(entry)[1]
            awaited = all((r in calls or r in self.calls) and r not in self.answered for r in results)
            answers = awaited and 0 < len(results) == len(blocks_of(entry))
            if not answers and (answer_of(entry) or None) not in self.answers:
                return False
        if not parts:
            return False
        self.take(branch.entries, branch.at)
        return True


def _speaks(entry: TreeEntry) -> bool:
    return entry.value.get("type") in ("user", "assistant")


def _pairs(entry: TreeEntry) -> tuple[set[str], set[str]]:
    """The ids of what a line calls, and of what it has the results of."""
    blocks = blocks_of(entry)
    calls = {string(b.get("id")) for b in blocks if b.get("type") == "tool_use"}
    return calls, {string(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"}


def _shared(whole: Script, fork: Script) -> int:
    pairs = zip(whole.messages, fork.messages, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(whole.messages), len(fork.messages)))


def answer_of(entry: TreeEntry) -> str:
    """The id of the answer that a line is a part of."""
    return string(mapping(entry.value.get("message")).get("id")) if entry.value.get("type") == "assistant" else ""


def blocks_of(entry: TreeEntry) -> list[Mapping[str, Any]]:
    """The content blocks of a line."""
    return objects(mapping(entry.value.get("message")).get("content"))


class LineListener:
    """Puts together what one answer was split into, and summaries with the compactions that they belong to."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.script = Script()
        self.answers: dict[str, int] = {}  # where each answer stands
        self.places: dict[str, int] = {}  # how much had been said before each line
        self.heard: list[tuple[int, int]] = []  # how many messages and compactions there were before each line
        self.born: dict[int, int] = {}  # the line with which each answer began
        self.compacted = 0  # the line of the last boundary
        self.joined: list[tuple[int, int]] = []  # a line, and a later one that says more of the same

    def starts(self) -> list[int]:
        """For each line, the last one up to it at which nothing is half said."""
        opened = Counter(first + 1 for first, _ in self.joined)
        closed = Counter(last + 1 for _, last in self.joined)
        found, inside = [0], 0
        for line in range(1, len(self.heard) + 1):
            inside += opened[line] - closed[line]
            found.append(found[-1] if inside else line)
        return found

    def before(self, line: int, source: Source) -> "LineListener":
        """Who has heard all lines but this one and those after it."""
        other = LineListener(source)
        said, cuts = self.heard[line] if line < len(self.heard) else (len(self.script.messages), len(self.script.cuts))
        other.script = Script(self.script.messages[:said], self.script.cuts[:cuts])
        other.places, other.born = dict(self.places), dict(self.born)
        other.answers = {id: place for id, place in self.answers.items() if place < said}
        return other

    def hear(self, entry: TreeEntry) -> None:
        """Take in the next line."""
        self.heard.append((len(self.script.messages), len(self.script.cuts)))
        self.places[entry.id] = len(self.script.messages)
        hearing: Mapping[str, Callable[[TreeEntry], None]] = {
            "user": self._user,
            "assistant": self._assistant,
            "system": self._system,
            "attachment": self._attachment,
        }
        if hear := hearing.get(string(entry.value.get("type"))):
            hear(entry)

    def _content(self, entry: TreeEntry) -> str | list[Any]:
        message = entry.value.get("message")
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, str) or (isinstance(content, list) and all(isinstance(b, Mapping) for b in content)):
            return content
        expected = "expected `message` with `content`, a string or a list of blocks"
        raise BadRequest(f"{self.source.where(entry.line)}: {expected}, got {type(content).__name__}")

    def _user(self, entry: TreeEntry) -> None:
        content = self._content(entry)
        if entry.value.get("isCompactSummary"):
            self._summary(text_of(content), entry)
        elif entry.value.get("isVisibleInTranscriptOnly"):
            self.source.skipped["line that only the user saw"] += 1
        else:
            text = text_of(content)
            if entry.value.get("isMeta") and not _results(content) and typed(Item("text", "user", text)):
                content = f"{ATTACHED} meta]\n{text}"  # the client's own words: "Continue from where you left off."
            self.script.say({"role": "user", "content": content})

    def _assistant(self, entry: TreeEntry) -> None:
        content = self._content(entry)
        if entry.value.get("isApiErrorMessage"):
            self.source.skipped["error of the API, shown as an answer"] += 1
            return
        id = answer_of(entry)
        place = self.answers.get(id) if id else None
        start = self.script.cuts[-1][0] if self.script.cuts else 0
        if place is None or place < start or isinstance(content, str):
            self.answers[id] = len(self.script.messages)
            self.born[len(self.script.messages)] = len(self.heard) - 1
            self.script.say({"role": "assistant", "content": content})
            return
        self.places[entry.id] = place
        self.joined.append((self.born[place], len(self.heard) - 1))
        said = self.script.messages[place]["content"]
        called = {string(b.get("id")) for b in objects(said)} - {""}
        # A session that was resumed may hold a call twice; no API takes it so.
        more = [b for b in content if string(mapping(b).get("id")) not in called]
        self.script.messages[place] = {"role": "assistant", "content": [*said, *more]}

    def _system(self, entry: TreeEntry) -> None:
        subtype = entry.value.get("subtype")
        if subtype == "microcompact_boundary":
            self.source.skipped["clearing of old results (microcompact), which are all here"] += 1
        if subtype != "compact_boundary":
            return
        about = mapping(entry.value.get("compactMetadata") or entry.value.get("compact_metadata"))
        tokens = about.get("preTokens", about.get("pre_tokens"))
        self.compacted = len(self.heard) - 1
        trigger, at = string(about.get("trigger")), time(entry.value.get("timestamp"))
        self.script.compact(TranscriptCompaction(None, trigger, number(tokens) or None, self._kept(about), at))

    def _kept(self, about: Mapping[str, Any]) -> int:
        """How many of the last messages stayed, by the first of them."""
        segment = mapping(about.get("preservedSegment") or about.get("preserved_segment"))
        listed = mapping(about.get("preservedMessages") or about.get("preserved_messages")).get("uuids")
        uuids = listed if isinstance(listed, list) else []
        first = segment.get("headUuid") or segment.get("head_uuid") or next(iter(uuids), "")
        said = len(self.script.messages)
        return said - self.places.get(string(first), said)

    def _summary(self, text: str, entry: TreeEntry) -> None:
        cuts = self.script.cuts
        if cuts and cuts[-1][0] == len(self.script.messages) and cuts[-1][1].summary is None:
            cuts[-1] = (cuts[-1][0], with_(cuts[-1][1], summary=text))
            self.joined.append((self.compacted, len(self.heard) - 1))
        else:
            self.script.compact(TranscriptCompaction(text, at=time(entry.value.get("timestamp"))))

    def _attachment(self, entry: TreeEntry) -> None:
        held = mapping(entry.value.get("attachment"))
        kind, prompt = string(held.get("type")), held.get("prompt")
        if kind == "queued_command" and prompt and isinstance(prompt, str | list):
            self.script.say({"role": "user", "content": prompt})  # typed while the agent was at work
        elif text := _attached(held):
            name = string(held.get("filename")) or string(held.get("displayPath"))
            label = " ".join(filter(None, (ATTACHED, kind, name)))
            self.script.say({"role": "user", "content": f"{label}]\n{text}"})
        else:
            self.source.skipped[f"attachment without words: {kind}"] += 1


def _results(content: str | list[Any]) -> bool:
    return isinstance(content, list) and any(mapping(block).get("type") != "text" for block in content)


def _attached(held: Mapping[str, Any]) -> str:
    """What an attachment shows, where it is text."""
    for content in (held.get("content"), held.get("snippet")):
        file = mapping(mapping(content).get("file"))
        if text := string(file.get("content")) or text_of(content):
            return text
    return ""
