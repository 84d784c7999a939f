"""Make src/clew/catalog/models.json.gz from the model list that the litellm package ships.

python scripts/refresh_catalog.py model_prices_and_context_window_backup.json --source "litellm X" --date YYYY-MM-DD
    [--check FILE_OR_FOLDER ...]   JSON of pi-ai or genai-prices: prints conflicts above 1 % and exits with 1
    [--out FILE]

The list is read as a file; litellm is not imported. A row is [max_input, max_output, window, prices, tiers] without
its empty end: window only where it is not max_input; prices are [input, output, cache_read, cache_write,
cache_write_1h] in dollars for a million tokens; tiers are [above, *prices].
"""

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.catalog import names

OUT = Path(__file__).parent.parent / "src" / "clew" / "catalog" / "models.json.gz"
MODES = ("chat", "responses", "completion")
COSTS = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
    "cache_creation_input_token_cost_above_1hr",
)
Row = list[Any]

# The window is shared by question and answer, and the list gives the whole of it as max_input: (name, max_input said).
# OpenAI documents 400,000 and 1,050,000 as windows of which the answer's part is set aside.
SPLIT = ((r"gpt-[56]", 400_000), (r"gpt-[56]", 1_050_000))
# The list has max_input right, and the window is the sum of both.
SUMMED = ((r"gpt-[56]", 272_000), (r"gpt-[56]", 922_000))
# Plainly wrong: (name, max_input said, max_input). MiniMax documents 204,800 for all of M2.
WRONG = ((r"minimax-m2(?!\d)", 1_000_000, 204_800),)
# Retired, so gone from the list, and still in many a configuration. Limits as they were documented, prices where sure.
RETIRED: dict[str, dict[str, Row]] = {
    "anthropic": {
        "claude-opus-4-1": [200_000, 32_000, 0, [15, 75, 1.5, 18.75, 30]],
        "claude-opus-4": [200_000, 32_000, 0, [15, 75, 1.5, 18.75, 30]],
        "claude-sonnet-4": [200_000, 64_000, 0, [3, 15, 0.3, 3.75, 6]],
        "claude-3-7-sonnet": [200_000, 64_000, 0, [3, 15, 0.3, 3.75, 6]],
        "claude-3-5-sonnet": [200_000, 8_192, 0, [3, 15, 0.3, 3.75, 6]],
        "claude-3-5-haiku": [200_000, 8_192, 0, [0.8, 4, 0.08, 1, 1.6]],
        "claude-3-opus": [200_000, 4_096, 0, [15, 75, 1.5, 18.75, 30]],
        "claude-3-haiku": [200_000, 4_096, 0, [0.25, 1.25, 0.03, 0.3]],
    },
    "openai": {
        "gpt-4-32k": [32_768],
        "gpt-4-0125-preview": [128_000, 4_096],
        "gpt-4-turbo-preview": [128_000, 4_096],
        "gpt-4-vision-preview": [128_000, 4_096],
        "gpt-4.5-preview": [128_000, 16_384],
        "chatgpt-4o-latest": [128_000, 16_384, 0, [5, 15]],
        "o1-mini": [128_000, 65_536],
        "o1-preview": [128_000, 32_768],
    },
    "gemini": {
        "gemini-3-pro-preview": [1_048_576, 65_536],
        "gemini-2.0-flash": [1_048_576, 8_192],
        "gemini-2.0-flash-lite": [1_048_576, 8_192],
        "gemini-1.5-pro": [2_097_152, 8_192],
        "gemini-1.5-flash": [1_048_576, 8_192],
    },
    "xai": {
        "grok-4": [256_000],
        "grok-4-fast": [2_000_000],
        "grok-3": [131_072],
        "grok-3-mini": [131_072],
        "grok-code-fast-1": [256_000],
    },
}
# A refresh that disagrees with others about these is looked at by a person.
WATCHED = (
    "claude-opus-5-5 claude-sonnet-5-5 claude-haiku-5-5 claude-fable-5-1 claude-sonnet-4-5 claude-opus-4-6 gpt-6-sol "
    "gpt-6-luna gpt-5.6 gpt-5.5 gpt-5.4 gpt-5 gpt-4.1 gpt-4o o3 gemini-3.8-flash gemini-2.5-pro gemini-2.5-flash "
    "deepseek-v4-flash deepseek-v4-pro kimi-k3 glm-5.3 grok-4.7 grok-4.3 mistral-large-latest MiniMax-M3 MiniMax-M2.5 "
    "qwen3.8-max"
).split()
PEERS = {"google": "gemini", "x-ai": "xai", "moonshotai": "moonshot"}  # what others call our hosts


def main() -> int:
    """Read the arguments, write the snapshot, say what it holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("listing", type=Path)
    parser.add_argument("--source", default="litellm")
    parser.add_argument("--date", default="")
    parser.add_argument("--check", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    listing = json.loads(given.listing.read_bytes())
    hosts, spelled = distil(listing)
    known = {"hosts": hosts, "spelled": spelled}
    packed = pack({"source": given.source, "date": given.date, **known})
    given.out.write_bytes(packed)
    conflicts = [line for path in given.check for line in compare(hosts, path)]
    said = f"{sum(map(len, hosts.values()))} entries of {len(hosts)} hosts, {len(packed):,} bytes"
    sys.stdout.write("\n".join([said, *conflicts, ""]))
    return 1 if conflicts else 0


def pack(snapshot: dict[str, Any]) -> bytes:
    """The same bytes for the same content, whenever and wherever it is made."""
    text = json.dumps(snapshot, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def distil(listing: dict[str, dict[str, Any]]) -> tuple[dict[str, dict[str, Row]], dict[str, str]]:
    """Host, folded name, row; and how folded names are spelled where that differs.

    A name's plainest spelling stands for all that say the same; the others keep their own.
    """
    hosts: dict[str, dict[str, Row]] = {}
    spelled: dict[str, str] = {}
    forms = {key: names.read(key).forms for key in listing}
    seen = set()
    # Newest first, then the plainest: of two dated versions the newer is what the bare name means.
    newest = sorted((key for key in listing if forms[key]), reverse=True)
    for key in sorted(newest, key=lambda key: (key.count("/"), len(forms[key]), len(key))):
        host, own, bare = host_of(listing[key]), names.fold(forms[key][0]), names.fold(forms[key][-1])
        # A name under a longer path is the same in another region, often at another price.
        if (host, own) in seen or not (row := distilled(key, listing[key])):
            continue
        seen.add((host, own))
        table = hosts.setdefault(host, {})
        spelled.setdefault(bare, forms[key][-1])
        if table.setdefault(bare, row) != row:
            table.setdefault(own, row)
            spelled.setdefault(own, spelled[bare])
    for host, models in RETIRED.items():
        for name, row in models.items():
            hosts.setdefault(host, {}).setdefault(names.fold(name), row)
            spelled.setdefault(names.fold(name), name)
    return hosts, {bare: name for bare, name in spelled.items() if bare != name}


def host_of(said: dict[str, Any]) -> str:
    """The host by the name we use for it: vertex_ai-anthropic_models is vertex_ai."""
    host = str(said.get("litellm_provider", ""))
    return "vertex_ai" if host.startswith("vertex_ai-") else names.HOSTS.get(host, host)


def distilled(key: str, said: dict[str, Any]) -> Row | None:
    """One row, corrected; None for what is no language model or has no limits."""
    max_input = said.get("max_input_tokens") or said.get("max_tokens")
    if said.get("mode") not in MODES or not isinstance(max_input, int | float) or max_input < 1024:
        return None
    max_input, max_output, window = corrected(key.lower(), int(max_input), int(said.get("max_output_tokens") or 0))
    # An answer as long as the window is no limit of its own.
    row: Row = [max_input, max_output if max_output < max_input or window else 0, window, flat(said, "")]
    if row[3]:
        above = {int(found[1]) for cost in said if (found := re.search(r"_above_(\d+)k_tokens$", cost))}
        row.append([[k * 1000, *tier] for k in sorted(above) if (tier := flat(said, f"_above_{k}k_tokens"))])
    return trimmed(row)


def corrected(key: str, max_input: int, max_output: int) -> tuple[int, int, int]:
    """max_input, max_output and window with the errors of the list mended; see the tables above."""
    for pattern, said in SPLIT:
        if max_input == said and max_output and re.search(pattern, key):
            return said - max_output, max_output, said
    for pattern, said in SUMMED:
        if max_input == said and max_output and re.search(pattern, key):
            return said, max_output, said + max_output
    for pattern, said, right in WRONG:
        if max_input == said and re.search(pattern, key):
            return right, max_output, 0
    return max_input, max_output, 0


def flat(said: dict[str, Any], suffix: str) -> Row:
    """The prices for a million tokens; empty where nothing is charged, which is to say not known."""
    costs = [said.get(cost + suffix) for cost in COSTS]
    million = [None if cost is None else float(f"{float(cost) * 1e6:.6g}") for cost in costs]
    return trimmed([int(cost) if cost == int(cost or 0) else cost for cost in million]) if any(costs[:2]) else []


def trimmed(row: Row) -> Row:
    """A row without its empty end."""
    while row and not row[-1]:
        row = row[:-1]
    return row


def compare(hosts: dict[str, dict[str, Row]], path: Path) -> Iterator[str]:
    """Where the watched models differ from another list by more than 1 %."""
    watched = {names.fold(name): name for name in WATCHED}
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        for provider, model in others(json.loads(file.read_bytes()), PEERS.get(file.stem, file.stem)):
            name = watched.get(names.fold(str(model["id"])))
            ours = hosts.get(PEERS.get(provider, provider), {})
            if name and (row := ours.get(names.fold(name.removesuffix("-latest")))):
                yield from (f"{provider}/{name}: {line}" for line in differences(row, model))


def differences(row: Row, model: dict[str, Any]) -> Iterator[str]:
    """What differs between a row and a model of another list."""
    cost = model.get("cost") or model.get("prices") or {}
    window = model.get("contextWindow") or model.get("context_window")
    # Some give as window what is sent before a dearer price begins.
    limits = (row[0], *row[2:3], *(tier[0] for tier in (row[4:5] or [[]])[0]))
    if window and all(abs(window - mine) > 0.01 * window for mine in limits):
        yield f"window {row[0]:,}, others say {window:,}"
    keys = (("input", "input_mtok"), ("output", "output_mtok"), ("cacheRead", "cache_read_mtok"))
    for mine, pair in zip((row[3:4] or [[]])[0], keys, strict=False):
        theirs = next((cost[key] for key in pair if isinstance(cost, dict) and key in cost), None)
        if mine and isinstance(theirs, int | float) and theirs and abs(mine - theirs) > 0.01 * theirs:
            yield f"{pair[0]} ${mine}, others say ${theirs}"


def others(value: Any, provider: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every model in a list of either shape, with its provider."""
    if isinstance(value, dict):
        if "id" in value and ("cost" in value or "prices" in value) and value.get("type") != "classifier":
            yield provider, value
            return
        provider = str(value.get("id", provider)) if "models" in value else provider
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from others(inner, provider)


if __name__ == "__main__":
    sys.exit(main())
