"""Crush: before a tool is called, its agent is told how full the window is, once that matters."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from clew import catalog
from clew.control.status import status
from clew.tokens.target import Filled

TOLD_FROM = 50  # per cent of the window
DATABASE = Path(".crush") / "crush.db"
ASK = """select s.prompt_tokens + s.completion_tokens,
                (select m.model from messages m
                 where m.session_id = s.id and m.model is not null and m.model <> ''
                 order by m.created_at desc limit 1)
         from sessions s where s.id = ?"""


def answer_before_tool(event: Mapping[str, Any]) -> str:
    """What Crush is answered before it runs a tool; nothing while there is room enough, or if nothing is known."""
    folder = Path(str(event.get("cwd") or "."))
    file = next((place / DATABASE for place in (folder, *folder.parents) if (place / DATABASE).is_file()), None)
    if file is None:
        return ""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
        row = database.execute(ASK, (str(event.get("session_id")),)).fetchone()
    if row is None or not row[1]:
        return ""
    used, window = int(row[0]), catalog.lookup(str(row[1])).window
    filled = Filled(used, window, max(0, window - used), window)
    return json.dumps({"context": status(filled)}) if filled.percent >= TOLD_FROM else ""
