"""Whether what a client changed in a history leaves it the same conversation, or is another one. Pure functions."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from clew.clients.voices import lasting
from clew.core.align import Match, Patch
from clew.core.items import Item
from clew.recognition.call_ids import are_moments, is_made_up, is_same_call, moment, shared
from clew.recognition.sameness import SOFT, alike, is_aside, is_moved, trails
from clew.recognition.shortening import is_cleared

ENOUGH = 200  # characters of answers and results in common: a greeting and its answer are said in many conversations
COUNTED = 200  # characters of one item that count: one long file that both have read is one thing in common
KIN = 16  # characters that one text must share with another to be that text, shortened or lengthened


@dataclass(frozen=True)
class Change:
    """What a client did to a history that the log has, as far as it can be seen."""

    gaps: Sequence[Patch]  # in places of the log, and of what was sent
    old: Mapping[int, Item]  # of the log, in the gaps
    new: Sequence[Item | None]  # what was sent; none: it came as a stand-in of ours
    found: Sequence[Match]  # what is equal
    pairs: Sequence[Match]  # what says the same
    known: int  # items in the log
    named: bool = False  # its host says that it is this conversation

    @cached_property
    def called(self) -> Mapping[str, set[str]]:
        """What is called under each id."""
        found = defaultdict[str, set[str]](set)
        for item in self.new:
            if item is not None and item.kind == "call":
                found[item.call_id].add(item.name)
        return found

    @cached_property
    def shared(self) -> frozenset[str]:
        """What the ids of several calls have in common: it says nothing of whose they are."""
        return shared(self.called)

    @cached_property
    def kept_calls(self) -> Sequence[Item | None]:
        """What is there as it was, and under the id that it had; none: it came as a stand-in of ours."""
        same = [m for m in self.pairs if (now := self.new[m.new]) is None or is_same_call(self.old[m.old], now)]
        kept = [self.new[m.new] for m in (*self.found, *same)]
        return [i for i in kept if i is None or i.kind == "call"]

    @cached_property
    def is_proven(self) -> bool:
        """Whether it is this conversation whatever else it says: by its name, a stand-in of ours, a call's own id."""
        return self.named or any(i is None or is_made_up(i.call_id, i.name, self.shared) for i in self.kept_calls)

    @cached_property
    def is_timed(self) -> bool:
        """Whether the ids of its calls say when it was held, and no other one was held then."""
        return are_moments(i.call_id for i in self.kept_calls if i)


def is_edit(change: Change) -> bool:
    """Whether a client took some of this conversation away: what is left says enough, and is the newest of it.

    A call with another id is another call: clients that take results away leave their calls as they are.
    """
    pairs = [(change.old[m.old], item) for m in change.pairs if (item := change.new[m.new])]
    return (
        has_enough(change)
        and is_mostly_kept(change)
        and keeps_newest(change)
        and not _parts_answer(change)
        and _keeps_its_own(change)
        and all(is_same_call(was, now) and _is_recognisable(change, was, now) for was, now in pairs)
    )


def _is_recognisable(change: Change, was: Item, now: Item) -> bool:
    """Whether something says whose words these are: all of them, or an id that nobody counts up to.

    What is left of a result that was cleared or shortened, many results begin with; and what a program put beside
    a message is not in the other one, which somebody else may have typed.
    """
    if has_same_words(was, now):
        return True
    if now.kind != "result":
        return change.is_proven
    # Of one whose first and last words are left, the moment of its call is enough.
    timed = change.is_timed and now.call_id in change.called and bool(moment(now.call_id))
    return (timed and not is_cleared(now.text)) or _has_own_id(change, now)


def _has_own_id(change: Change, result: Item) -> bool:
    """Whether a result has an id that nobody counts up to: what its call calls may stand in it, as often as it does."""
    called = change.called.get(result.call_id, set())
    return bool(called) and all(is_made_up(result.call_id, name, change.shared) for name in called)


def has_same_words(was: Item, now: Item | None) -> bool:
    """Whether nothing stands in the one that does not stand in the other, however a call is spelled."""
    return now is not None and (was.kind == "call" or was.text.strip() == now.text.strip())


def _keeps_its_own(change: Change) -> bool:
    """Whether what is left is not what many have: not only files that everybody reads, nor how each one is greeted."""
    # One answer may have several calls of one moment, and so may the first answers of two that were begun together.
    if change.is_proven or change.is_timed:
        return True
    kept = [i for m in change.found if (i := change.new[m.new]) is not None and _spoke([i]) and i.kind == "text"]
    return sum(map(_counted, kept[1:])) >= ENOUGH


def has_enough(change: Change) -> bool:
    """Whether as much is equal, or the same, as not many conversations have in common."""
    return evidence(change.new[m.new] for m in (*change.found, *change.pairs)) >= ENOUGH


def contradicts(change: Change) -> bool:
    """Whether somebody says something else here than in the log: then it is another conversation, or another try.

    Clients do not put words into the assistant's mouth, nor do they take its last words back and go on.
    """
    was, now = {m.old for m in change.pairs}, {m.new for m in change.pairs}
    for gap in change.gaps:
        lost = [change.old[i] for i in range(gap.start, gap.stop) if i in change.old and i not in was]
        last, unseen = gap.stop == change.known, any(i not in change.old for i in range(gap.start, gap.stop))
        put = [
            item
            for j in range(gap.begin, len(change.new) if last else gap.end)
            if j not in now and (item := change.new[j]) is not None
        ]
        if (unseen or _spoke(lost)) and (last or _spoke(put)):
            return True
        if last and (_newest_is_other(lost, put) or _spoke(_put_before(change, gap, now))):
            return True
    return False


def _put_before(change: Change, gap: Patch, same: Set[int]) -> list[Item]:
    """What stands at the log's end before something that says the same as the log: it was not there."""
    until = max((j for j in same if j >= gap.begin and not trails(change.new[j])), default=gap.begin)
    return [item for j in range(gap.begin, until) if j not in same and (item := change.new[j]) is not None]


def _spoke(items: Iterable[Item]) -> bool:
    return any(i.role == "assistant" and i.kind not in SOFT and not is_moved(i) for i in items)


def _newest_is_other(lost: Sequence[Item], put: Sequence[Item]) -> bool:
    """Whether the newest thing that was said is another one now; one that grew or shrank once answered is the same."""
    lost = [i for i in lost if not is_aside(i)]
    before = [i for i in put if not is_aside(i)]
    heard = next((n for n, item in enumerate(before) if item.role == "assistant"), None)
    if any(i.kind == "result" for i in lost) and any(i.kind == "result" for i in before):
        return True  # its call is still there: another result is of another try
    if not lost:
        return False  # only something beside the conversation went
    if heard == 0:  # nothing came in its place: the assistant does not go on where the user had spoken
        return any(i.kind == "text" and i.role == "user" for i in lost)
    if heard is None or any(i.kind == "result" for i in lost):
        return True  # nobody has answered it yet: asked anew, or a tool that said something else
    return not all(any(_kin(was.text, now.text) for now in before[:heard]) for was in lost)


def _kin(was: str, now: str) -> bool:
    short, long = sorted((lasting(was), lasting(now)), key=len)
    return short == long or (len(short) >= KIN and short in long)


def evidence(items: Iterable[Item | None]) -> int:
    """How much of the assistant's and the tools' words these are; a stand-in of ours proves enough by itself."""
    return sum(ENOUGH if i is None else _counted(i) for i in items if i is None or i.role in ("assistant", "tool"))


def _counted(item: Item) -> int:
    return min(len(item.text), COUNTED) if item.kind in ("text", "call", "result", "summary") else 0


def is_mostly_kept(change: Change) -> bool:
    """Whether what stands after the first change and is equal says at least twice as much as what was put in.

    What was never said there is another conversation's, but for other words as the result of a call that is known.
    """
    now = {m.new for m in change.pairs}
    twice = _repeats(change)
    lost = {lasting(item.text) for item in change.old.values()}  # some of it stands elsewhere now
    put = 0
    for gap in change.gaps:
        if gap.stop == change.known:
            continue
        for j in range(gap.begin, gap.end):
            item = change.new[j]
            if j in now or j in twice or item is None or is_aside(item):
                continue
            was_there = lasting(item.text) in lost
            if not _has_own_id(change, item) if item.kind == "result" else not was_there:
                return False
            put += 0 if was_there else _counted(item)
    first = change.gaps[0].begin
    kept = [change.new[m.new] for m in (*change.found, *change.pairs) if m.new >= first]
    return 2 * put <= sum(COUNTED if i is None else _counted(i) for i in kept)


def _parts_answer(change: Change) -> bool:
    """Whether a call is there without the words that it came with: no client takes those alone."""
    kept = {m.old: change.new[m.new] for m in change.found}
    for gap in change.gaps:
        lost, then = change.old.get(gap.stop - 1), kept.get(gap.stop)
        if lost and lost.kind == "text" and lost.role == "assistant" and then and then.kind == "call":
            return True
    return False


def keeps_newest(change: Change) -> bool:
    """Whether the assistant's last words in the log are still there: what clients take away is old."""
    kept = {m.old: change.new[m.new] for m in change.found}
    same = {m.old for m in change.pairs}
    changed = {place for gap in change.gaps for place in range(gap.start, gap.stop)}
    for place in range(change.known - 1, -1, -1):
        if place not in changed:
            item = kept.get(place)
            if item is None or _spoke([item]):
                return True
        elif place not in change.old or _spoke([change.old[place]]):
            return place in same
    return True


def is_all_there(change: Change) -> bool:
    """Whether both say the same but for passing notes: then no word of the log is somebody else's."""
    shared = [change.new[m.new] for m in (*change.found, *change.pairs)]
    if all(i is not None and is_aside(i) for i in shared):
        return False
    if not all(_is_written_otherwise(change.old[m.old], change.new[m.new]) for m in change.pairs):
        return False
    was, now = {m.old for m in change.pairs}, {m.new for m in change.pairs} | _repeats(change)
    again = {item.text for item in change.new if item is not None and trails(item)}
    for gap in change.gaps:
        known = (j + 1 for j in now if j >= gap.begin and not trails(change.new[j]))
        end = gap.end if gap.stop < change.known else max(known, default=gap.end)
        lost = (change.old.get(i) for i in range(gap.start, gap.stop) if i not in was)
        put = (change.new[j] for j in range(gap.begin, end) if j not in now)
        if not all(_may_go(change, item, again) for item in lost) or not all(i is None or is_aside(i) for i in put):
            return False
    return True


def _may_go(change: Change, item: Item | None, again: Set[str]) -> bool:
    """Whether something that is not there any more makes it no other conversation.

    Clients drop thoughts, have instructions said last each time, and some show their files anew before each question.
    What else a program told in passing is of the one to whom it told that: his rules, his folder.
    """
    if item is None or item.kind in SOFT or (trails(item) and item.text in again):
        return item is not None
    return is_moved(item) or (is_aside(item) and change.is_proven)


def _is_written_otherwise(was: Item, now: Item | None) -> bool:
    """Whether two items say the same to the letter, under the same id: only what a provider marked it with differs."""
    return now is not None and (was.text, was.name) == (now.text, now.name) and is_same_call(was, now)


def _repeats(change: Change) -> set[int]:
    """Results that stand there once more: Gemini CLI, when it resumes a session, says each of them twice."""
    known = {m.new for m in (*change.found, *change.pairs)}
    said = {i.call_id: i for j in known if (i := change.new[j]) is not None and i.kind == "result"}
    return {
        j
        for j, item in enumerate(change.new)
        if item is not None and j not in known and item.call_id in said and _is_again(said[item.call_id], item)
    }


def _is_again(said: Item, item: Item) -> bool:
    return item.kind == "result" and (item.text == said.text or alike(said, item) or alike(item, said))
