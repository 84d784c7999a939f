"""Blocks of the log that get older: which of them loses words, and what they keep where they become one."""

from dataclasses import replace as with_

from clew.core.items import LOG
from clew.core.limits import Budget
from clew.core.view import Swap
from clew.steps.worklog.blocks import MOST_KEPT, Block, evenly, shorter, together
from clew.steps.worklog.history import History
from clew.steps.worklog.levels import changed
from clew.testing import view_of
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Target

METER = Meter(counter_for("gpt-4o"))


def block(first: int, stands_for: int, lines: int, author: str = "writer") -> Block:
    """One whose lengths have all of its lines, half of them, and one."""
    every = [f"Shelf {first}-{n} has {n * 7} boxes of tea from Assam." for n in range(lines)]
    texts = tuple("\n".join(every[:most]) for most in (lines, lines // 2, 1))
    return Block(first, first, f"{first:010x}", texts, author=author, findings=("", "", ""), stands_for=stands_for)


def size(*some: Block) -> int:
    return sum(METER.item(one.item()).tokens for one in some)


def test_that_loses_words_which_has_most_for_what_it_stands_for() -> None:
    record, newer = block(1, 40_000, 20), block(2, 1_000, 20)
    log = {(0, 1): record, (1, 2): newer}
    after = shorter(size, log, size(record, newer) - 10)
    assert (after[0, 1].level, after[1, 2].level) == (0, 1)
    after = shorter(size, log, size(record) + size(with_(newer, level=2)))
    assert (after[0, 1].level, after[1, 2].level) == (0, 2)
    assert {one.level for one in shorter(size, log, 0).values()} == {2}, "all of them, if nothing else does"


def test_in_a_narrow_window_each_has_lines_by_what_it_stands_for_and_gets_them_back() -> None:
    """Where that which stands for most was cut to one line for what came last."""
    record, newer = block(1, 20_000, 40), block(2, 1_000, 20)
    log = {(0, 1): record, (1, 2): newer}
    most = size(record) + 20
    less = evenly(size, log, most)
    assert size(*less.values()) <= most
    assert size(less[0, 1]) > 0.8 * size(record), "and not the next shorter length, which is half"
    assert less[1, 2].text == newer.texts[-1]
    for block_ in less.values():
        told = block_.text.splitlines()
        assert told == [line for line in block_.texts[0].splitlines() if line in told], "its own lines, in their order"
    assert evenly(size, less, size(record, newer)) == log


async def test_a_fold_that_takes_codes_lines_from_a_block_changes_it() -> None:
    """Its model's words are the same at both lengths."""
    view = view_of({"model": "gpt-4o", "messages": [{"role": "user", "content": f"Words {n}."} for n in range(8)]})
    by_code = "\n".join(f"- exact id {n}: ID-{n * 7919}" for n in range(40))
    both = block(1, 4_000, 20).beside(by_code)
    swap = Swap(0, 4, [both.item()], {LOG: both.to_json()})
    history = History(view.replace_all([swap], by="test"), Target.of(Budget(window=100_000)))
    less = shorter(size, history.log, size(both) - 10)
    assert [one.below for one in less.values()] == [""]
    [change] = changed(history, less, {(1, 2): swap}, 100, None)
    assert by_code not in str(change.items)


def test_what_its_short_text_tells_stands_longest() -> None:
    one = with_(block(1, 9_000, 30), texts=(block(1, 9_000, 30).texts[0], "Shelf 1-17 is at risk.", "Tea."))
    assert "Shelf 1-17 has" in one.within(size, size(one) // 3).text


def test_of_equal_ones_the_oldest_loses_words_first() -> None:
    log = {(n, n + 1): block(n, 2_000, 20) for n in range(4)}
    one_less = size(*log.values()) - 10
    assert [one.level for _, one in sorted(shorter(size, log, one_less).items())].count(1) == 1
    older = with_(block(9, 2_000, 20), first=0)
    assert shorter(size, {(0, 1): older, (1, 2): older}, size(older, older) - 10)[0, 1].level == 1


def test_blocks_that_become_one_stand_in_few_words_and_keep_all() -> None:
    some = [block(n, 1_000 * n, 10) for n in range(1, 9)]
    one = together(some, "f" * 10)
    assert one.stands_for == sum(each.stands_for for each in some)
    assert one.texts[0].splitlines() == [line for each in some for line in each.texts[0].splitlines()]
    assert one.texts[one.level].splitlines() == [each.texts[-1] for each in some]
    assert [len(text) for text in one.texts] == sorted((len(text) for text in one.texts), reverse=True)


def test_what_is_kept_for_later_is_bounded() -> None:
    """Each merge writes it anew: without a bound a log would grow by the square."""
    one = together([block(n, 9_000, 200) for n in range(8)], "f" * 10)
    for n in range(8, 40):
        one = together([one, block(n, 9_000, 200)], "f" * 10)
    assert all(len(text) <= MOST_KEPT for text in one.texts[: one.level])
    assert one.stands_for == 40 * 9_000
