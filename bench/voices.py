"""Who said what? python bench/voices.py FILE... [--all] [--wide N]

Every part of what stands under the user's and the system's role, with its kind: to look through after a release of a
client, for words of its own that count as typed. Each FILE is a session file, a recorded body or a JSON line each, in
which a body may stand under `body`; what was shown before is not shown again, unless with `--all`.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clew.clients.voices import client_of, parts_of
from clew.errors import BadRequest
from clew.sessions.transcripts import Transcript, opencode_store, read_all
from clew.sessions.transcripts.source import data_of
from clew.wire import decode

WIDE = 160  # characters of a part that are shown


def bodies(path: Path) -> Iterator[Mapping[str, Any]]:
    """The requests of a file, and those of the sub-agents in it."""
    if path.name == opencode_store.DATABASE:
        for export in opencode_store.exports(path):
            yield from _requests(read_all(export, path.name))
        return
    data = data_of(path)
    try:
        recorded = [json.loads(line) for line in data.splitlines() if b'"body"' in line]
    except ValueError:
        recorded = []
    held = [body for record in recorded if isinstance(body := record.get("body"), dict)]
    if held:
        yield from (body for body in held if any(body.get(key) for key in ("messages", "input", "contents")))
    else:
        yield from _requests(read_all(data, path.name))


def _requests(sessions: list[Transcript]) -> Iterator[Mapping[str, Any]]:
    for session in sessions:
        yield session.body()
        yield from _requests([*session.children])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--wide", type=int, default=WIDE)
    given = parser.parse_args()
    shown, kinds = set[str](), Counter[str]()
    for path in given.files:
        print(f"# {path}")
        try:
            for body in bodies(path):
                frame, items = decode(body)
                client = client_of(frame.system) or "unknown"
                for item in items:
                    if item.role not in ("user", "system") or item.kind != "text" or item.text in shown:
                        continue
                    if not given.all:
                        shown.add(item.text)
                    for part in parts_of(item):
                        if not (text := " ".join(item.text[part.start : part.stop].split())):
                            continue
                        kinds[part.kind] += 1
                        told = text if len(text) <= given.wide else f"{text[: given.wide]}… ({len(text):,})"
                        print(f"{client:12} {item.role:6} {part.speaker:9} {part.kind:16} {told}")
        except BadRequest as error:
            print(f"{path}: {error}", file=sys.stderr)
    print("#", ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common()))


if __name__ == "__main__":
    main()
