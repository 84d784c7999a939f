"""Many turns in one process: whether memory and open files stay where they are, and a picture of it."""

from pathlib import Path
from random import Random
from typing import Any

from loads.figures import Figure, Spent, open_files, rss
from loads.talking import Talker, engine_of, talk

AT_ONCE = 64
EVERY = 500  # turns
MEMORY = 32 << 20  # bytes of conversations: less than they will be, so that the bound is what is seen
FLAT = 1.05  # the mean of the last fifth by that of the middle one: until then, what is bounded fills up


async def endurance(
    place: str, turns: int = 20_000, conversations: int = 1_000, notes: str = "", **settings: Any
) -> list[Figure]:
    """So many turns over so many conversations, in an order that nobody knows before."""
    import json

    engine = engine_of(place, **{"memory": MEMORY, **settings})
    those = [Talker(n, named=bool(n % 2)) for n in range(conversations)]
    chance, points, done = Random(1), list[dict[str, float]](), 0
    with Spent() as spent:
        while done < turns:
            some = chance.sample(those, AT_ONCE)[: turns - done]
            await talk(engine, some, 1)
            done += len(some)
            if done // EVERY > len(points) or done >= turns:
                own = sum(talker.bytes for talker in those)  # what the clients hold is not the engine's
                points.append({"turns": done, "rss": rss() - own, "files": open_files()})
    await engine.close()
    await engine.store.close()
    if notes:
        Path(notes).write_text(json.dumps(points))
    return [
        Figure("a turn", "ms CPU", 1e3 * spent.cpu / done, 1e3 * spent.wall / done),
        *(Figure(f"{what}, last fifth / middle one", "times", grown(points, what)) for what in ("rss", "files")),
        Figure("rss at the end", "MB", points[-1]["rss"] / 1e6),
        Figure("open files at the end", "", points[-1]["files"]),
    ]


def grown(points: list[dict[str, float]], what: str) -> float:
    """How much more there is in the last fifth than in the middle one."""
    fifth = max(1, len(points) // 5)
    return _mean(points[-fifth:], what) / _mean(points[2 * fifth : 3 * fifth] or points[:1], what)


def _mean(points: list[dict[str, float]], what: str) -> float:
    return sum(point[what] for point in points) / len(points)


# --- the picture ------------------------------------------------------------------------------------------------------

WIDE, TALL, EDGE = 640, 160, 60
SHOWN = {"rss": ("memory, MB", 1e6), "files": ("open files", 1.0)}


def picture(runs: dict[str, list[dict[str, float]]]) -> str:
    """Memory and open files by turns, a line for each run, as SVG."""
    colours = ("#1f6feb", "#d1242f")
    parts = [
        _panel(runs, what, name, unit, colours, n * (TALL + EDGE))
        for n, (what, (name, unit)) in enumerate(SHOWN.items())
    ]
    names = "".join(
        f'<text x="{EDGE + 160 * n}" y="14" fill="{colour}">{name}</text>'
        for n, (name, colour) in enumerate(zip(runs, colours, strict=False))
    )
    size = f"{WIDE + 2 * EDGE} {len(SHOWN) * (TALL + EDGE) + 40}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="sans-serif" font-size="12">'
    return f'{head}<rect width="100%" height="100%" fill="white"/>{names}{"".join(parts)}</svg>\n'


def _panel(
    runs: dict[str, list[dict[str, float]]], what: str, name: str, unit: float, colours: tuple[str, ...], top: float
) -> str:
    most = max(point[what] for points in runs.values() for point in points) * 1.1
    last = max(points[-1]["turns"] for points in runs.values())
    base = top + EDGE / 2 + TALL
    drawn = "".join(
        f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="'
        + " ".join(f"{EDGE + p['turns'] / last * WIDE:.1f},{base - p[what] / most * TALL:.1f}" for p in points)
        + '"/>'
        for points, colour in zip(runs.values(), colours, strict=False)
    )
    axes = f'<path d="M{EDGE} {base - TALL}V{base}H{EDGE + WIDE}" fill="none" stroke="#888"/>'
    words = (
        f'<text x="{EDGE}" y="{base - TALL - 6}">{name}</text><text x="4" y="{base}">0</text>'
        f'<text x="4" y="{base - TALL + 10}">{most / unit:,.0f}</text>'
        f'<text x="{EDGE + WIDE}" y="{base + 16}" text-anchor="end">{last:,.0f} turns</text>'
    )
    return axes + drawn + words
