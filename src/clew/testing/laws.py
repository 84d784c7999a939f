"""The laws of all steps: `check_laws` runs one and holds its result against each of them."""

from collections.abc import Sequence
from dataclasses import replace as with_

from clew.clients.voices import is_program_made
from clew.core import rawjson
from clew.core.items import Node
from clew.core.limits import Size
from clew.core.view import View, fold, originals
from clew.steps.places import LINE_TOKENS, beside, beside_log, newest, tail_start
from clew.steps.protocol import Step
from clew.steps.sealed import instructed, sealed, served
from clew.store.shapes import odd_keys
from clew.tokens.target import Target
from clew.wire import check, encode


async def check_laws(step: Step, view: View, target: Target, *, fits: bool = False) -> View:
    """Run a step and hold the result against every law; `fits` adds that it always ends within the limit."""
    twin = _twin(view)
    after = await step(view, target)
    had, has = target.size(view), target.size(after)
    assert has.tokens <= had.tokens, f"1 monotone: {had} became {has}"
    for name, was, now, most in zip(Size._fields, had, has, target.limit, strict=True):
        assert was <= most or now <= was, f"1 monotone: {name} was over its limit and grew from {was} to {now}"
    _check_valid(view, after)
    _check_lossless(view, after)
    assert fold(view.nodes, after.edits[len(view.edits) :]) == after.nodes, (
        "4 replayable: log + edits give another view"
    )
    assert view == twin, "5 pure: the input changed"
    if after is not view:
        assert await step(twin, target) == after, "5 pure: an equal view gave another result"
    if had.within(target.goal):
        assert after == view, "6 at rest: changed a view that fits"
    assert (await step(after, target)).nodes == after.nodes, f"6 at rest: {step!r} changed its own result"
    if fits:
        _check_fits(view, after, target)
    _check_protected(view, after, target)
    return after


def _twin(view: View) -> View:
    """An equal view that shares nothing which a step could change or know again."""
    nodes = tuple(Node(n.id, n.content, with_(n.item)) for n in view.nodes)
    return with_(view, nodes=nodes, behind=dict(view.behind))


def _check_valid(view: View, after: View) -> None:
    broken = check(encode(after.frame, (n.item for n in after.nodes)), view.frame.format)
    if not broken:
        return
    before = {b.rule for b in check(encode(view.frame, (n.item for n in view.nodes)), view.frame.format)}
    new = [b for b in broken if b.rule not in before]
    assert not new, f"2 valid: {new[0].rule} at {new[0].where}: {new[0].why}"


def _check_lossless(view: View, after: View) -> None:
    by_id = {n.id: e for e in after.edits for n in e.stand_ins}
    found = set(originals([n.id for n in after.nodes], by_id))
    lost = [n.id for n in view.nodes if n.id not in found]
    assert not lost, f"3 lossless: {len(lost)} originals cannot be reached from the view"
    for edit in after.edits:
        assert edit.old, "3 lossless: an edit replaced nothing"
        assert edit.new, "3 lossless: an edit left no trace"
    for edit in after.edits[len(view.edits) :]:
        kept = rawjson.loads(rawjson.dumps(edit.evidence))
        odd = odd_keys(kept, edit.old, [n.id for n in edit.new])
        assert not odd, f"4 replayable: what an edit notes under {', '.join(odd)} is not what a store reads"


def _check_fits(view: View, after: View, target: Target) -> None:
    has = target.size(after)
    if any(has.within(beside_log(one, target).goal) for one in (view, after)):  # a log keeps its share beside much news
        return
    target = beside(after, target)
    fixed = sealed(after)
    new = {i for i, is_new in enumerate(newest(after)) if is_new} | fixed
    if has.within(target.limit):  # then the end of it stays as it is, too
        new |= served(after) | instructed(after) | set(range(tail_start(after, target), len(after.nodes)))
    stand_ins = {n.id for e in after.edits for n in e.new}
    rest = [
        target.meter.nodes(after.nodes[a:b]).tokens
        for a, b in after.groups()
        if not any(i in new or after.nodes[i].id in view.pinned | stand_ins for i in range(a, b))
    ]
    assert max(rest, default=0) <= LINE_TOKENS, (
        f"7 convergent: {has} is over {target.goal} with {max(rest)} tokens left to shorten"
    )
    if not has.within(target.limit):
        # Calls made together cannot be parted: a pin holds its whole group.
        stays = _with_groups(after, [n.id in view.pinned or i in fixed for i, n in enumerate(after.nodes)])
        gaps = len(stays) + 3
        floor = (
            target.meter.frame(view.frame)
            .plus(target.meter.nodes(stays))
            .plus(Size(LINE_TOKENS * gaps, 200 * gaps, 0, gaps))
        )
        assert not floor.within(target.limit), (
            f"7 convergent: {has} is over {target.limit}, frame and pins take {floor}"
        )


def _check_protected(view: View, after: View, target: Target) -> None:
    stands = {(n.id, n.content) for n in after.nodes}
    for why, places in _protected(view, target).items():
        gone = [view.nodes[i].id for i in sorted(places) if (view.nodes[i].id, view.nodes[i].content) not in stands]
        assert not gone, f"10 protected: {why}, and {len(gone)} of {len(places)} were replaced"


def _protected(view: View, target: Target) -> dict[str, set[int]]:
    """What no step may touch, told without the code that steps ask: pins, and the rest where all of it together is
    small beside the goal, so that nobody can say there was no room."""
    nodes = view.nodes
    pins = {i for i, n in enumerate(nodes) if n.id in view.pinned}
    sealed = {i for i, n in enumerate(nodes) if n.item.kind == "opaque" and "encrypted_content" in (n.item.wire or {})}
    first = next((i for i, n in enumerate(nodes) if n.item.role != "user" or n.item.kind == "summary"), len(nodes))
    spoke = max((i for i, n in enumerate(nodes) if n.item.role == "assistant" or n.item.kind == "summary"), default=-1)
    calls = {n.item.call_id for n in nodes[spoke + 1 :] if n.item.kind == "result"}
    new = {i for i, n in enumerate(nodes) if i > spoke or (n.item.kind == "call" and n.item.call_id in calls)}
    asked = [
        n.item.role == "user"
        and n.item.kind not in ("summary", "result")
        and not (n.item.kind == "text" and is_program_made(n.item))  # what a program says is not the user's
        for n in nodes
    ]
    last = max((i for i, n in enumerate(nodes) if asked[i] and n.item.kind == "text"), default=0)
    begin = max((i + 1 for i in range(last) if not asked[i]), default=0)
    end = next((i for i in range(last, len(nodes)) if not asked[i]), len(nodes))
    found = {
        "the user began with it": set(range(first)),
        "nobody has read it yet": new,
        "the user said it last": set(range(begin, end)),
    }
    all = {i for places in (pins, sealed, *found.values()) for i in places}
    size = target.meter.nodes(_with_groups(view, [i in all for i in range(len(nodes))]))
    goal, small = target.goal, max(0, target.goal.tokens - target.frame) // 4
    has_room = size.tokens + LINE_TOKENS * (len(pins) + 4) <= small and 4 * size.bytes <= goal.bytes
    has_room = has_room and 4 * size.images <= goal.images and 4 * (size.messages + len(pins)) <= goal.messages
    if target.meter.nodes(nodes[:first]).tokens > small // 2:  # an eighth of all is for it
        del found["the user began with it"]
    return {"pinned": pins, "only the provider reads it": sealed} | (found if has_room else {})


def _with_groups(view: View, kept: Sequence[bool]) -> list[Node]:
    return [n for a, b in view.groups() if any(kept[a:b]) for n in view.nodes[a:b]]
