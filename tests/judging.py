"""What is wrong with a view that was made for a client, by what the client said; how it is recognised is no matter."""

import json
from collections.abc import AsyncIterator

import clew
from acting import Client
from clew import Engine, wire
from clew.core.view import View
from clew.errors import NotFound
from clew.store.protocol import Store
from clew.wire import check
from owning import SHARED
from tagging import NAMED, Body, Calls, foreign, tags

# Rules that are kept whatever the client sends; what else its request breaks is its own affair, such as equal ids.
MENDED = frozenset(
    "calls_are_answered content_is_present message_is_not_empty outputs_answer_a_call responses_follow_calls "
    "text_is_not_blank text_is_not_empty tool_answers_a_call tool_follows_calls tool_results_are_expected "
    "tool_results_come_first tool_uses_are_answered".split()
)


async def problems(
    engine: Engine, client: Client, view: View, scope: str, last: bool
) -> AsyncIterator[tuple[str, str]]:
    """Each as its kind and what it is, the worst first; of a session's last view, more is asked."""
    body, made = clew.body(view), view.stand_ins()
    sent = json.dumps(body)
    recalled = await behind(engine, view, sent, scope, last)
    searched = await engine.answer(scope, SHARED, view.branch) if last else ""
    for where, text in {"body": sent, "recall": recalled, "search": searched}.items():
        if strange := foreign(text, client.name):
            yield "foreign", f"{where} has {sorted(strange)}"
    says = client.says()
    if stale := (client.changed - says) & tags(sent):
        yield "stale", f"changed, and still sent: {sorted(stale)}"
    verbatim = "\n".join(n.item.text for n in view.nodes if n.id not in made)
    if stale := (client.removed - says) & tags(verbatim):
        yield "stale", f"removed, and still sent as it was: {sorted(stale)}"
    if wrong := values(client, body):
        yield "stale", f"other values than the client's: {wrong}"
    if lost := says - tags(sent) - tags(recalled):
        yield "lost", f"neither sent nor recalled: {sorted(lost)}"
    if broken := check(body, client.format):
        excused = {b.rule for b in check(client.body(), client.format)} - MENDED
        for one in broken:
            if one.rule not in excused:
                yield "invalid", f"{one.rule}: {one.where}: {one.why}"
    budget = await engine.limits.target(scope, view.frame)
    if not (size := budget.size(view)).within(budget.limit):
        yield "large", f"{size} is over {budget.limit}"


async def neighbours(store: Store, client: Client, scope: str) -> set[str]:
    """Tags of others in what its newest view's branch had by then, whether or not it can see them."""
    if client.last is None:
        return set()
    rows = [happened.row for happened in await store.events(scope, client.last.branch, client.last.seq)]
    nodes = await store.nodes(scope, [id for row in rows if row.kind in ("said", "client") for id in row.new])
    return {tag for node in nodes.values() for tag in foreign(node.item.text, client.name)}


async def behind(engine: Engine, view: View, sent: str, scope: str, last: bool) -> str:
    """What a model gets that recalls all it is offered; in the end only from its own branch, as tools do."""
    texts: list[str] = []
    for id in dict.fromkeys(NAMED.findall(sent)):
        try:
            texts += [o.item.text for o in await engine.recall(scope, id, view.branch if last else None)]
        except NotFound:  # no id, or of a conversation that is another one now: a client kept it
            continue
    made = view.stand_ins()
    for node in view.nodes:
        if node.id in made and not NAMED.search(node.item.text):
            texts += [o.item.text for o in await engine.recall(scope, node.id)]
    return "\n".join(texts)


def values(client: Client, body: Body) -> list[str]:
    """Calls that are sent with another value than the client's."""
    mine = [args for m in client.said if isinstance(m, Calls) for _, args in m.asked()]
    if not any("value" in args for args in mine):
        return []
    known = {json.dumps(args, sort_keys=True) for args in mine}
    asked = {args["of"] for args in mine if tags(args["of"])}
    sent = [json.loads(i.text) for i in wire.decode(body, client.format)[1] if i.kind == "call" and i.text]
    whole = [json.dumps(args, sort_keys=True) for args in sent if isinstance(args, dict) and args.get("of") in asked]
    return sorted(set(whole) - known)
