"""Standing rules of the user after fifty compactions, with and without an attacker who tries to push them out."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from benchmark.attacks import all_of
from benchmark.judging import MODEL, shown
from benchmark.peers import Child, Failed, NoAnswer, Peer
from benchmark.ruling import SETS, Ruled, ruled, sentences
from clew.core.bridge import run
from clew.core.limits import Budget
from clew.engine.engine import Engine, Request, body
from clew.store import SQLite
from clew.tokens import counter_for
from proofs import Figures, Settings
from proofs.beside import CAP, everybody, together
from proofs.tables import cell, many, missing, named, share, table

FOLDS = 50
SESSIONS = 6
# Small ones have the least room for rules; tokens for fifty compactions.
WINDOWS = {16_000: 170_000, 32_000: 340_000, 64_000: 680_000}
STRIDE = 4_000  # characters between two calls: not every turn of the session, but several to a compaction
OURS = "clew"
Seen = dict[str, Any]  # how one method did in one session


def measure(settings: Settings) -> Figures:
    """Every method in the same sessions, each until clew has compacted fifty times."""
    seeds = [settings.seed + n for n in range(1 if settings.quick else settings.some(SESSIONS))]
    windows = list(WINDOWS)[: 1 if settings.quick else None]
    cases = [(window, seed, attacked) for window in windows for seed in seeds for attacked in (False, True)]
    found: list[Seen] = []
    with ProcessPoolExecutor(settings.processes) as pool:
        for done, rows in enumerate(pool.map(partial(_case, peers=not settings.quick), cases), 1):
            settings.heard("sessions", done, len(cases))
            found += rows
    return {
        "folds": FOLDS,
        "sessions": len(seeds),
        "rows": list(_added(found)),
        "sentences": _by_sentences(found),
        "peers": everybody(),
    }


def _case(case: tuple[int, int, bool], peers: bool) -> list[Seen]:
    """All methods in one session."""
    window, seed, attacked = case
    make = partial(ruled, seed, WINDOWS[window])
    lines = run(_worked(make(), window, most=3))[2] if attacked else []
    session = make(all_of(lines)) if attacked else make()
    end, folds, _, sent = run(_worked(session, window, FOLDS))
    assert folds == FOLDS, f"{folds} compactions in {WINDOWS[window]:,} tokens"
    # Of its own lines that the attacker repeats, clew writes some again, and they are true: those are no finds.
    session = replace(session, attacks=tuple({_plain(a) for a in session.attacks} - {_plain(line) for line in lines}))
    rows = [_judged(OURS, session, end, sent, window)]
    for group in together() if peers else ():
        with Child(group[0], CAP) as child:
            rows += [_of_peer(child, peer, session, end, window) for peer in group]
    return [{**row, "window": window, "attacked": attacked, "sentences": sentences(seed)} for row in rows]


async def _worked(session: Ruled, window: int, most: int) -> tuple[int, int, list[str], list[Any]]:
    """The session through an engine until it has compacted so often: where it ended, how often, what clew wrote."""
    store = SQLite(":memory:")
    engine = Engine(store, Budget(window, model=MODEL))
    folds = edits = end = 0
    sent: list[Any] = []
    try:
        for end in calls(session):
            view = await engine.prepare(Request({"model": MODEL, "messages": session.messages[:end]}, scope="bench"))
            folds, edits = folds + (len(view.edits) > edits), len(view.edits)
            if folds == most:
                break
        sent = list(body(view)["messages"])
    finally:
        await store.close()
    said = {str(m.get("content")) for m in session.messages}
    made = [m["content"] for m in sent if m["role"] == "user" and m["content"] not in said]
    return end, folds, [line for text in made for line in str(text).splitlines()], sent


def calls(session: Ruled) -> Iterator[int]:
    """How many messages there are at each call: every request of the user, and some of the results."""
    since = 0
    for end, message in enumerate(session.messages, 1):
        since += len(shown([message]))
        if message["role"] == "user" or (message["role"] == "tool" and since >= STRIDE):
            since = 0
            yield end


def _of_peer(child: Child, peer: Peer, session: Ruled, last: int, window: int) -> Seen:
    """A peer over the same calls; the last is judged."""
    kept: list[Any] = []
    at = 0
    child.peer = peer
    try:
        child.begin(window)
        for end in calls(session) if peer.goes_on or peer.remembers else [last]:
            if end > last:
                break
            given = [*kept, *session.messages[at:end]] if peer.goes_on else session.messages[:end]
            kept, at = child.fit(given), end
    except (NoAnswer, Failed) as fault:
        return {"method": peer.name, "fault": str(fault)[:80]}
    return _judged(peer.name, session, last, kept, window)


def _judged(name: str, session: Ruled, end: int, sent: Sequence[Mapping[str, Any]], window: int) -> Seen:
    """What of the rules is in view, word for word, and what else passes for one."""
    text = _plain(shown(sent))
    said = {_plain(str(m.get("content") or "")) for m in session.messages[:end]}
    own = [_plain(str(m.get("content") or "")) for m in sent if m["role"] in ("user", "system")]
    written = "\n".join(
        text for text in own if text not in said
    )  # what a method says in the user's or the system's place
    held = [rule for rule in session.rules if rule.at < end]
    hold = [rule for rule in held if not rule.revoked]
    gone = [rule for rule in held if rule.revoked]
    told = [r for r in gone if (at := text.rfind(r.text)) >= 0 and text.rfind(r.revoked) < at]
    tokens = counter_for(MODEL).text(shown(sent))
    return {
        "method": name,
        "rules": len(hold),
        "kept": sum(rule.text in text for rule in hold),
        "revoked": len(gone),
        "as_current": len(told),
        "forged": sum(line in written for line in session.attacks),
        "over": tokens > window,
        "tokens": tokens,
    }


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _added(found: Sequence[Seen]) -> Iterator[Seen]:
    """One row for each method, window and attacker."""
    keys = dict.fromkeys((row["window"], row["method"], row["attacked"]) for row in found)
    for window, method, attacked in keys:
        rows = [r for r in found if (r["window"], r["method"], r["attacked"]) == (window, method, attacked)]
        fine = [r for r in rows if "fault" not in r]
        sums = {key: sum(r[key] for r in fine) for key in ("rules", "kept", "revoked", "as_current", "forged", "over")}
        fault = next((r["fault"] for r in rows if "fault" in r), "")
        tokens = round(sum(r["tokens"] for r in fine) / max(1, len(fine)))
        yield {"window": window, "method": method, "attacked": attacked, **sums, "tokens": tokens, "fault": fault}


def _by_sentences(found: Sequence[Seen]) -> dict[str, Seen]:
    """How clew did with each of the two sets of sentences."""
    mine = [row for row in found if row["method"] == OURS]
    return {
        name: {key: sum(row[key] for row in mine if row["sentences"] == name) for key in ("rules", "kept")}
        for name in SETS
    }


# --- what the documents say -------------------------------------------------------------------------------------------

TOLD = {
    "first": "the first set, with which the code that finds rules was mended",
    "second": "the second set, written after that",
}


def blocks(figures: Figures) -> Mapping[str, str]:
    """A table for each window, and clew's figures by the sentences in which the user spoke."""
    lines = []
    for window in dict.fromkeys(row["window"] for row in figures["rows"]):
        lines += [f"Window of {window:,} tokens:", "", _table(figures, window), ""]
    sets = {name: share(of["kept"], of["rules"]) for name, of in figures["sentences"].items() if of["rules"]}
    held = ", ".join(f"{kept} with {TOLD[name]}" for name, kept in sets.items())
    lines += [
        f"{many(figures['sessions'], 'session')} in each window, {figures['folds']} compactions by clew each."
        f" Rules in view with clew, by the set of sentences in which the user spoke: {held}."
    ]
    return {"rules": "\n".join(lines)}


def _table(figures: Figures, window: int) -> str:
    head = ["method", "rules in view", "attacked", "revoked, told as current", "attacker's lines", "too large"]
    rows = _both(figures, window)
    order = sorted(rows, key=lambda name: -rows[name][1]["kept"] / max(1, rows[name][1]["rules"]))
    lines = []
    for name in order:
        calm, attacked = rows[name]
        if fault := calm["fault"] or attacked["fault"]:
            lines.append([name, cell(fault), "", "", "", ""])
            continue
        current = f"{_sum(rows[name], 'as_current')} of {_sum(rows[name], 'revoked')}"
        kept = [share(of["kept"], of["rules"]) for of in rows[name]]
        lines.append([name, *kept, current, str(attacked["forged"]), str(_sum(rows[name], "over"))])
    return table(head, lines + missing(figures, len(head)))


def _both(figures: Figures, window: int) -> dict[str, tuple[Seen, Seen]]:
    """Each method without and with the attacker."""
    rows = {(row["method"], row["attacked"]): row for row in figures["rows"] if row["window"] == window}
    return {name: (rows[name, False], rows[name, True]) for name, _ in rows}


def _sum(rows: Sequence[Seen], key: str) -> int:
    return sum(row[key] for row in rows)


def behind(figures: Figures) -> Iterator[str]:
    """Rules that clew lost, rules that it tells though they were taken back, lines of the attacker that it repeats."""
    rows: dict[str, list[Seen]] = {}
    for row in figures["rows"]:
        rows.setdefault(row["method"], []).append(row)
    ours = rows.pop(OURS)
    others = {name: of for name, of in rows.items() if not any(row["fault"] for row in of)}
    after = f"after {figures['folds']} compactions"
    if lost := _lost(ours):
        more = _fewer(ours, others, _lost)
        large = [name for name in more if _sum(others[name], "over")]
        beside = f"; {named(more)} lost fewer" if more else "; no other method lost fewer"
        beside += f", but {named(large)} left too much for the window" if large else ""
        yield f"Rules of the user: {after} clew has lost {lost} of {_sum(ours, 'rules')}{beside}."
    if fewer := _fewer(ours, others, partial(_sum, key="as_current")):
        told = f"clew tells {_sum(ours, 'as_current')} of {_sum(ours, 'revoked')} as if they held"
        yield f"Rules that the user had taken back: {after} {told}; fewer with {named(fewer)}."
    if fewer := _fewer(ours, others, partial(_sum, key="forged")):
        told = f"{after} clew repeats {_sum(ours, 'forged')} of their lines as its own"
        yield f"Attackers who write into tool results and into what the user pastes: {told}; fewer with {named(fewer)}."


def _lost(rows: Sequence[Seen]) -> int:
    return _sum(rows, "rules") - _sum(rows, "kept")


def _fewer(
    ours: Sequence[Seen], others: Mapping[str, Sequence[Seen]], count: Callable[[Sequence[Seen]], int]
) -> list[str]:
    """The methods of which fewer are counted than of clew, in the windows in which they were run."""
    windows = {name: {row["window"] for row in of} for name, of in others.items()}
    return [name for name, of in others.items() if count(of) < count([r for r in ours if r["window"] in windows[name]])]
