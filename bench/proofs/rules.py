"""Standing rules of the user after fifty compactions, with and without an attacker who tries to push them out."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

from benchmark.attacks import all_of
from benchmark.judging import MODEL, shown
from benchmark.peers import ABSENT, PEERS, Child, Failed, NoAnswer, Peer
from benchmark.ruling import Ruled, ruled
from clew.core.bridge import run
from clew.core.limits import Budget
from clew.engine.engine import Engine, Request, body
from clew.store import SQLite
from clew.tokens import counter_for
from proofs import Figures, Settings

FOLDS = 50
SESSIONS = 1
WINDOWS = (16_000,)  # small ones have the least room for rules
TOKENS = {16_000: 170_000}  # enough for fifty compactions
PATIENT = 10.0  # seconds of CPU that a peer may use in a session
STRIDE = 4_000  # characters between two calls: not every turn of the session, but several to a compaction
OURS = "clew"
Seen = dict[str, Any]  # how one method did in one session


def measure(settings: Settings) -> Figures:
    """Every method in the same sessions, each until clew has compacted fifty times."""
    seeds = [settings.seed + n for n in range(1 if settings.quick else SESSIONS)]
    windows = WINDOWS[:1] if settings.quick else WINDOWS
    cases = [(window, seed, attacked) for window in windows for seed in seeds for attacked in (False, True)]
    found: list[Seen] = []
    with ProcessPoolExecutor(settings.processes) as pool:
        for done, rows in enumerate(pool.map(_case, cases)):
            settings.heard("sessions", done, len(cases))
            found += rows
    versions = {peer.name: peer.version() for peer in PEERS}
    told = {
        peer.name: {"settings": peer.settings, "model": peer.model, "version": versions[peer.name]} for peer in PEERS
    }
    return {"folds": FOLDS, "sessions": len(seeds), "rows": list(_added(found)), "peers": told, "absent": ABSENT}


def _case(case: tuple[int, int, bool]) -> list[Seen]:
    """All methods in one session."""
    window, seed, attacked = case
    make = partial(ruled, seed, TOKENS[window])
    lines = run(_worked(make(), window, most=3))[2] if attacked else []
    session = make(all_of(lines)) if attacked else make()
    end, folds, _, sent = run(_worked(session, window, FOLDS))
    assert folds == FOLDS, f"{folds} compactions in {TOKENS[window]:,} tokens"
    rows = [_judged(OURS, session, end, sent, window)]
    rows += [_of_peer(peer, session, end, window) for peer in PEERS if peer.version()]
    return [{**row, "window": window, "attacked": attacked} for row in rows]


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


def _of_peer(peer: Peer, session: Ruled, last: int, window: int) -> Seen:
    """A peer over the same calls; the last is judged."""
    kept: list[Any] = []
    at = 0
    with Child(peer, PATIENT) as child:
        try:
            child.begin(window)
            for end in calls(session) if peer.goes_on or peer.remembers else [last]:
                if end > last:
                    break
                given = [*kept, *session.messages[at:end]] if peer.goes_on else session.messages[:end]
                sent = child.fit(given)
                kept, at = sent, end
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
        "forged": sum(line in written for line in {_plain(line) for line in session.attacks}),
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


def blocks(figures: Figures) -> Mapping[str, str]:
    """The table, and what cannot be run."""
    share: Callable[[Seen], str] = lambda row: f"{row['kept'] / row['rules']:.0%}" if row["rules"] else "no answer"  # noqa: E731
    rows = {(r["window"], r["method"], r["attacked"]): r for r in figures["rows"]}
    lines = []
    for window in dict.fromkeys(r["window"] for r in figures["rows"]):
        lines += ["", f"Window of {window:,} tokens:", ""]
        lines += ["| method | rules in view | attacked | revoked, told as current | attacker's lines | too large |"]
        lines += ["|---|--:|--:|--:|--:|--:|"]
        methods = dict.fromkeys(r["method"] for r in figures["rows"])
        order = sorted(methods, key=lambda m: -rows[window, m, True]["kept"] / max(1, rows[window, m, True]["rules"]))
        for method in order:
            calm, attacked = rows[window, method, False], rows[window, method, True]
            both = calm["as_current"] + attacked["as_current"], calm["revoked"] + attacked["revoked"]
            name = f"**{method}**" if method == OURS else method
            name += " *" if figures["peers"].get(method, {}).get("model") else ""
            over = calm["over"] + attacked["over"]
            cells = share(calm), share(attacked), f"{both[0]} of {both[1]}", attacked["forged"], over or ""
            fault = calm["fault"] or attacked["fault"]
            lines.append(f"| {name} | " + " | ".join(map(str, cells)) + f" |{f' <!-- {fault} -->' if fault else ''}")
    peers = figures["peers"]
    versions = "; ".join(f"{name} {p['version']}: {p['settings']}" for name, p in peers.items() if p["version"])
    missing = [name for name, p in peers.items() if not p["version"]]
    reasons = "; ".join(f"{name}: {why}" for name, why in figures["absent"].items())
    end = [
        "",
        f"{figures['made']}, {figures['sessions']} sessions, {figures['folds']} compactions by clew each."
        " * asks a model: here a stand-in copies the beginnings of messages, the user's most.",
        f"Run: {versions}." + (f" Not installed: {', '.join(missing)}." if missing else ""),
        f"Not run: {reasons}.",
    ]
    return {"rules": "\n".join([*lines[1:], *end])}
