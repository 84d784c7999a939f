"""Where the work stands: rules, refusals, tasks, files, errors. It grows with what is new, never read from prose."""

import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, Self

from clew.core.bounds import BACKGROUND
from clew.steps.worklog.acts import Act, found_nothing
from clew.steps.worklog.choosing import form
from clew.steps.worklog.commands import command_key, commits, program
from clew.steps.worklog.origins import WORDS_OF_OTHERS, Origins
from clew.steps.worklog.refusals import REFUSED_HEADING, refused_call, settled
from clew.steps.worklog.requests import WorkRequest
from clew.steps.worklog.room import last_of, shared
from clew.steps.worklog.rules import BINDING, UserRule, amended, orders_in, rules_in
from clew.steps.worklog.wording import below, both_ends, indented, listed, on_one_line, plain, sentences, words
from clew.text.quoting import ASSISTANT, TOOL, code, quoted

STANDING_HEADING = "How things stood here:"
RULES_KEPT = 120  # that are kept in mind
ORDERS_KEPT, ORDERS_FIRST = 24, 600  # lines of a client's instructions; characters of them before what follows
RULES_FIRST = 2_000  # characters of the user's rules that come before all else
FILES = 200
CHANGES = 5  # of a file that are kept in mind
CHANGED = 240  # characters of them that are told
FULLY_SHARE, NAMED_SHARE = 0.3, 0.2  # of the room, at most, for what changed in files, and for the names of the others
FILES_TOLD = 12  # files of which it is told what changed: of the others the log does
FILE_NAMES_CHARACTERS = 1_500  # characters of their names
ERRORS = 8
OPEN_COMMANDS = 12  # commands after which a failure that nobody came back to is no longer open
TASKS = 60
OFTEN = 4  # rules of one form
COMMANDS_TOLD = 12
_BEGUN = " -*>•"  # what begins an entry of a list
ASK = 2_000  # characters of the newest request that are kept in mind

_ENDED = re.compile(r"(?i)\b(?:completed|exited|finished|killed|terminated|stopped|failed|done|ended)\b")
_KILLS = re.compile(r"\b(?:kill|pkill|killall)\b|(?i:kill_?shell|kill_?bash|task_?stop)")


@dataclass(slots=True)
class Standing:
    """All of it; lists are in the order in which things were said."""

    rules: dict[str, UserRule] = field(default_factory=dict)  # by their words
    orders: dict[str, str] = field(default_factory=dict)  # what binds of the instructions beside a request: its id
    refusals: dict[str, str] = field(default_factory=dict)  # the calls that were refused: the id
    tasks: dict[str, tuple[str, str]] = field(default_factory=dict)  # by number: state, what
    files: dict[str, tuple[str, int, list[str]]] = field(default_factory=dict)  # by path: verb, times, what changed
    errors: dict[str, tuple[str, int]] = field(default_factory=dict)  # commands that failed when last run: how, when
    commands: dict[str, tuple[int, str]] = field(default_factory=dict)  # how often each ran, how it went last
    running: dict[str, str] = field(default_factory=dict)
    ask: str = ""  # the newest request
    ask_ids: tuple[str, ...] = ()
    count: int = 0  # requests so far
    runs: int = 0  # commands so far
    root: str = ""  # of most paths: the log leaves it out
    origins: Origins = field(default_factory=Origins)

    def take(self, told: Iterable[WorkRequest] = (), staying: Iterable[WorkRequest] = ()) -> None:
        """Take in requests of which the log tells, then some that stay in view as they were said."""
        for request in told:
            self.add(request)
        for request in staying:
            self.count += 1
            self.rules |= dict(amended(self.rules, request, self.count))

    def add(self, request: WorkRequest) -> None:
        """Take in what was asked and done."""
        if request.ask:
            self.count += 1
            self.ask, self.ask_ids = both_ends(request.ask, ASK), tuple(request.ids)
            self.rules |= dict(amended(self.rules, request, self.count))
            for said, strict in rules_in(request):
                self._keep(said, request, strict)
            if request.orders and self.count == 1:  # a client says it once; later it is from somewhere else
                self.orders = dict.fromkeys(orders_in(request.orders)[:ORDERS_KEPT], request.orders_id)
        for step in request.steps:
            for n, act in enumerate(step.acts):
                self._take(act, request.ids, step.ids[n] if n < len(step.ids) else ())
            for name in [n for n in self.running if any(n in act.what for act in step.acts if act.background != n)]:
                del self.running[name]  # somebody looked after it: whether it still runs is not sure
            said = " ".join(step.notes)
            for name in [n for n in self.running if n in said and _ENDED.search(said)]:
                del self.running[name]

    def _keep(self, said: str, request: WorkRequest, strict: int) -> None:
        known = self.rules.pop(said, None)
        strict = max(strict, known.strict) if known else strict
        self.rules[said] = UserRule(strict, next(iter(request.ids), ""), self.count)
        spare = max(0, len(self.rules) - RULES_KEPT)
        for said in sorted(self.rules, key=lambda said: self.rules[said].strict)[:spare]:
            del self.rules[said]

    def _take(self, act: Act, ids: Sequence[str], own: Sequence[str]) -> None:
        if act.kind == "refused":
            self.refusals[call := refused_call(act.what)] = ids[0] if ids else ""
            self.origins.put("refusals", call, own)
        elif act.kind == "plan" and act.ok:
            self._take_tasks(act, own)
        elif act.ok and act.kind in ("edit", "run", "did") and self.refusals:
            for call in settled(self.refusals, {*act.what.split(), *(c.path for c in act.changes)}):
                del self.refusals[call]
        for change in act.changes if act.ok else ():
            before = self.files.pop(change.path, ("", 0, []))
            verb = before[0] if before[0] == "wrote" and change.verb == "edited" else change.verb
            told = [t for t in before[2] if t != change.words] + ([change.words] if change.words else [])
            self.files[change.path] = verb, before[1] + 1, told[-CHANGES:]
            self.origins.put("files", change.path, own)
            self.origins.put("changes", f"{change.path}\n{change.words}", own)
        if len(self.files) > FILES:
            del self.files[next(iter(self.files))]
        if act.kind == "run" and (act.ok or not act.outcome.startswith(TOOL)):  # else they perhaps never let it run
            self._take_command(act, own)
        elif act.kind == "did" and act.ok and _KILLS.search(act.what):
            self._ended(act.what)

    def _take_tasks(self, act: Act, ids: Sequence[str]) -> None:
        if act.whole:
            self.tasks = {n: (state, what) for n, state, what in act.tasks}
            for number in self.tasks:
                self.origins.put("tasks", number, ids)
            return
        for number, state, what in act.tasks:
            number = number or str(len(self.tasks) + 1)
            known = self.tasks.get(number, ("open", ""))
            self.tasks[number] = state or known[0], what or known[1]
            (self.origins.put if what else self.origins.add)("tasks", number, ids)
        while len(self.tasks) > TASKS:
            del self.tasks[next(iter(self.tasks))]

    def _take_command(self, act: Act, ids: Sequence[str]) -> None:
        self.runs += 1
        self.errors = {what: (how, run) for what, (how, run) in self.errors.items() if self.runs - run <= OPEN_COMMANDS}
        if act.commit:
            self.errors = {what: how for what, how in self.errors.items() if not commits(what)}
            return
        key = command_key(act.what)
        if act.background and act.ok:
            self.running = dict([*self.running.items(), (act.background, act.what)][-BACKGROUND:])
            self.origins.put("running", act.background, ids)
        if act.ok and _KILLS.search(act.what):
            self._ended(act.what)
        times, told = self.commands.pop(act.what, (0, ""))[0], "" if act.outcome.startswith(TOOL) else act.outcome
        self.commands[act.what] = times + 1, ("failed: " if not act.ok else "") + told
        self.origins.put("commands", act.what, ids)
        if len(self.commands) > FILES:
            del self.commands[next(iter(self.commands))]
        if act.ok:
            # Another run of the same program may have covered it: what is no longer sure is not said.
            for what in [w for w in self.errors if command_key(w) == key or program(w) == program(act.what)]:
                del self.errors[what]
        elif key and not found_nothing(act):
            self.errors.pop(act.what, None)
            self.errors[act.what] = told, self.runs
            self.origins.put("errors", act.what, ids)

    def _ended(self, command: str) -> None:
        named = [name for name in self.running if name in command]
        for name in named or list(self.running):
            del self.running[name]

    # --- in words ---------------------------------------------------------------------------------------------------

    def told(self, size: int, shown: str = "", newest: bool = True) -> str:
        """All of it in about so many characters; refusals and strict rules come first, what is wanted now stands last.

        What is `shown` in the last blocks word for word is not said again.
        """
        parts = [
            (heading, [on_one_line(line) for line in lines]) for heading, lines in self._sections(size, shown) if lines
        ]
        wanted = ""
        if newest and (asked := self._not_shown(shown)):
            wanted = f"The newest request: {indented(both_ends(asked, max(200, size // 4)))}"
        head = f"{STANDING_HEADING} Paths are relative to {self.root}" if self.root else STANDING_HEADING
        left = size - len(head) - len(wanted) - 2
        kept = shared(parts, size, left, {RULES: RULES_FIRST, ORDERS: ORDERS_FIRST})
        out, said = [], {on_one_line(self._rule(rule)): n for n, rule in enumerate(self.rules)}
        for (heading, lines), some in zip(parts, kept, strict=True):
            if heading.startswith(RULES):  # in the order in which they were said: the last word counts
                some.sort(key=lambda rule: -said.get(rule, 0))
            if some:
                more = len(lines) - len(some)
                out.append(f"{heading}{f' ({more} more not shown)' if more else ''}:")
                out += [f"- {line}" for line in (reversed(some) if heading.startswith(_NEWEST_LAST) else some)]
        return "\n".join([head, *out, *filter(None, [wanted])]) if out or wanted or self.root else ""

    def _not_shown(self, shown: str) -> str:
        """The newest request without the sentences of it that are told word for word."""
        lines = (
            [said for said in sentences(line) if plain(said).strip(_BEGUN) not in shown]
            for line in self.ask.splitlines()
        )
        return "\n".join(" ".join(line) for line in lines if line)

    def binding(self) -> list[str]:
        """The user's rules, strict ones first, and of those the newest."""
        order = {said: -n for n, said in enumerate(self.rules)}
        first = sorted(self.rules, key=lambda said: (-self.rules[said].strict, order[said]))
        return [self._rule(said) for said in first]

    def held(self) -> list[str]:
        """The sentences that are told as rules, the newest first."""
        worked = bool(self.files or self.commands or self.tasks)  # where people only talk, few sentences are rules
        return [said for said in reversed(self.rules) if worked or self.rules[said].strict >= BINDING]

    def _rule(self, said: str) -> str:
        rule = self.rules[said]
        since = f"; later they said: “{rule.later}” (request {rule.later_request})" if rule.later else ""
        return f"“{said}” (request {rule.request}){since}"

    def _sections(self, size: int, shown: str) -> Iterator[tuple[str, list[str]]]:
        """(heading, lines), those first that must not lack; of each the newest first."""
        rel = partial(below, self.root)
        yield REFUSED_HEADING, [quoted(call, ASSISTANT) for call in reversed(self.refusals)]
        held = self.held()
        beside = {rule.later for rule in self.rules.values() if rule.strict > 2}  # they stand there already
        wanted = [said for said in held if said not in beside]
        often = Tally(
            map(form, self.rules)
        )  # what is said of one thing after the other holds for a request, more likely
        wanted.sort(key=lambda said: (-self.rules[said].strict, often[form(said)] >= OFTEN))
        yield f"{RULES}, in their words; where two differ the later one holds", [self._rule(said) for said in wanted]
        yield ORDERS, [f"“{line}”" for line in self.orders]
        tasks = list(self.tasks.values())
        yield "Tasks that are not done", [f"{s}: {what}" for s, what in tasks if s not in ("done", "dropped")]
        done = [what for state, what in tasks if state == "done"]
        yield "Tasks done", ["; ".join(words(what, 120) for what in done)] if done else []
        yield (
            "Failed when last run",
            [rel(f"{code(what)}: {how}") for what, (how, _) in list(self.errors.items())[: -ERRORS - 1 : -1]],
        )
        yield "Started in the background, not seen to end", [rel(code(what)) for what in self.running.values()]
        lately = [rel(self._file(path, shown)) for path in list(reversed(self.files))[:FILES_TOLD]]
        sizes = accumulate(map(len, lately))
        # Of the others the names: all of those are told.
        fully = max(1, sum(taken <= FULLY_SHARE * size for taken in sizes))
        yield "Files changed, the last one last", lately[:fully]
        verbs = ((quoted(path, ASSISTANT), kept[0]) for path, kept in self.files.items())
        others = [rel(path if verb == "edited" else f"{path} ({verb})") for path, verb in verbs]
        names = listed(reversed(others[: len(others) - fully]), min(FILE_NAMES_CHARACTERS, int(NAMED_SHARE * size)))
        yield "Files changed before those", [names] if names else []
        yield (
            "Commands run more than once",
            [
                rel(f"{code(w)} ({times} times){f': {how}' if how and rel(how) not in shown else ''}")
                for w in self._often()
                for times, how in (self.commands[w],)
            ],
        )

    def _often(self) -> list[str]:
        return [w for w in reversed(self.commands) if self.commands[w][0] > 1][:COMMANDS_TOLD]

    def _file(self, path: str, shown: str) -> str:
        verb, times, told = self.files[path]
        often = f" ({times} edits)" if times > 1 else ""
        some = last_of([change for change in told if below(self.root, change) not in shown], CHANGED)
        return f"{quoted(path, ASSISTANT)} {verb}{often}{': ' if some else ''}{'; '.join(some)}"

    # --- as data ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """As an edit keeps it."""
        return {
            "rules": [[said, *rest] for said, rest in self.rules.items()],
            "orders": [list(one) for one in self.orders.items()],
            "refusals": [list(r) for r in self.refusals.items()],
            "tasks": [[n, *rest] for n, rest in self.tasks.items()],
            "files": [[path, *rest] for path, rest in self.files.items()],
            "errors": [[what, *rest] for what, rest in self.errors.items()],
            "commands": [[what, *rest] for what, rest in self.commands.items()],
            "running": [list(r) for r in self.running.items()],
            "ask": self.ask,
            "asked": list(self.ask_ids),
            "count": self.count,
            "runs": self.runs,
            "root": self.root,
            "origins": self.origins.to_json(self._known()),
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """As an edit kept it."""
        stood = cls(
            rules={said: UserRule(*rest) for said, *rest in kept["rules"]},
            orders=dict(kept.get("orders", ())),
            refusals={refused_call(call): id for call, id in kept["refusals"]},
            tasks={n: (state, what) for n, state, what in kept["tasks"]},
            files={path: (verb, times, list(told)) for path, verb, times, told in kept["files"]},
            errors={what: (how, run) for what, how, run in kept["errors"]},
            commands={what: (times, how) for what, times, how in kept["commands"]},
            running=dict(kept["running"]),
            ask=kept["ask"],
            ask_ids=tuple(kept["asked"]),
            count=kept["count"],
            runs=kept["runs"],
            root=kept["root"],
        )
        stood.origins = Origins.from_json(kept.get("origins", {}), stood._known())
        return stood

    def _known(self) -> dict[str, list[str]]:
        """What is told of others' words, by kind."""
        changes = [f"{path}\n{change}" for path, (_, _, told) in self.files.items() for change in told]
        return {"changes": changes, **{kind: list(getattr(self, kind)) for kind in WORDS_OF_OTHERS}}

    def sources(self) -> set[str]:
        """The ids of what is quoted: should a client change one of them, the quotation is old."""
        quoted = {id for rule in self.rules.values() for id in (rule.id, rule.later_id)}
        known = self._known() | {"commands": self._often()}
        return (quoted | {*self.orders.values(), *self.refusals.values(), *self.ask_ids} | self.origins.of(known)) - {
            ""
        }


RULES, ORDERS = "The user's rules", "What its client wrote behind the first request, no words of the user's"
_NEWEST_LAST = ("The user's rules", "Files changed", "Commands run", REFUSED_HEADING)
