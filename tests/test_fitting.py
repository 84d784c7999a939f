"""What may be sent where it is close: a provider's own count decides, and what somebody brought back goes last."""

import pytest

from clew import Budget, Engine, Request, Sessions
from clew.errors import OverBudget
from clew.store.sql import SQLStore
from test_sessions import WINDOW, Run, chain

UNKNOWN = "somebodys-new-model"  # nobody knows its tokenizer
RULES = {"role": "system", "content": "Each page has a number. " * 1_500}  # which no step shortens


@pytest.mark.parametrize(
    ("counted", "limit", "fits"),
    [(1.0, 0.9, False), (1.4, 1.2, True), (0.7, 0.85, True), (1.4, 0.9, False), (0.7, 0.6, False), (1.0, 1.1, True)],
)
async def test_what_fits_by_our_count_or_the_providers_is_sent(
    store: SQLStore, counted: float, limit: float, fits: bool
) -> None:
    """Where it is too much by one of them alone, the provider shall say so."""
    wide, said = Engine(store, Budget(window=100_000)), [RULES, {"role": "user", "content": "Which is the last?"}]
    for word in ("ten", "eleven", "twelve", "thirteen"):
        view = await wide.prepare(Request({"model": UNKNOWN, "messages": said}))
        ours = (await wide.limits.target("default", view.frame)).size(view).tokens
        await wide.observe(view, {"prompt_tokens": round(counted * ours), "completion_tokens": 0})
        said = [*said, {"role": "assistant", "content": word}, {"role": "user", "content": "And then?"}]
    narrow = Engine(store, Budget(window=round(limit * ours) + 500, reserve=500))
    if fits:
        assert (await narrow.prepare(Request({"model": UNKNOWN, "messages": said}))).frame == view.frame
        return
    with pytest.raises(OverBudget, match="does not fit"):
        await narrow.prepare(Request({"model": UNKNOWN, "messages": said}))


async def test_what_was_brought_back_is_folded_where_it_does_not_fit_and_not_before(store: SQLStore) -> None:
    run = Run(Engine(store, Budget(window=WINDOW, reserve=500)))
    await run.until(1)
    folded = run.sent[-1]
    undone = await Sessions(run.engine).undo("run")
    back = {n.id for n in undone.view.nodes} - {n.id for n in folded.nodes}
    while len(await chain(run.engine)) < 3:  # compacted, and not this
        view = await run.turn()
        assert back <= {n.id for n in view.nodes}
        assert (view.pinned, bool(back)) == (frozenset(), True)
    run.engine = Engine(store, Budget(window=WINDOW // 4, reserve=300))
    view = await run.turn()
    assert not back <= {n.id for n in view.nodes}
    assert view.pinned == frozenset()
