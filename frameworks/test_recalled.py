"""A model that does what its view says: in each framework, every id that a view names brings an original."""

import json
import re
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from frameworks.reading import KEY, Reader

from clew import Budget, Engine, SQLite
from clew.testing import Answer, Call, StrictProvider
from clew.wire import decode

working = import_module(f"frameworks.{Path(sys.prefix).parent.name}.working")
NAMED = re.compile(r"([A-Za-z_]*recall) ([0-9a-f]{10})")
PARTS = 24
LINE = re.compile(r"KEY_\d+ = \d+(?:\n|\\n)(?:\d+: )?part_\d+\.py line 0 of no interest")
MOST = 12  # ids that are tried


class Obedient(Reader):
    """Reads all, and then recalls one by one what its view names, by the name that stands there."""

    def __init__(self, parts: int) -> None:
        super().__init__(parts)
        self.left: list[tuple[str, str]] | None = None
        self.got: dict[str, str] = {}  # what came back, by id
        self.offered: list[set[str]] = []

    def __call__(self, body: dict[str, Any]) -> Answer:
        said = super().__call__(body)
        self.offered.append(set(re.findall(r'"name": "(\w+)"', json.dumps(body.get("tools", ())))))
        if said.calls:
            return said
        if self.left is None:
            self.left = list(dict.fromkeys(NAMED.findall(json.dumps(body))))[:MOST]
        else:
            self.got[self.asked] = [item.text for item in decode(body)[1] if item.kind == "result"][-1]
        if not self.left:
            return said
        name, self.asked = self.left.pop()
        return Answer(calls=(Call(name, {"id": self.asked}),))


@pytest.mark.parametrize("given", [True, False])
def test_every_id_that_a_view_names_brings_an_original(given: bool, tmp_path: Path) -> None:
    if not given and "offer" not in signature(working.work).parameters:
        pytest.skip("nobody has to give the agent its tools")
    model = Obedient(PARTS)
    with StrictProvider(model, window=working.WINDOW) as provider:
        engine = Engine(SQLite(tmp_path / "clew.db"), Budget(window=working.WINDOW, reserve=500))
        done = working.work(provider, engine) if given else working.work(provider, engine, offer=False)
    assert done.answer == "All are read."
    named = set(NAMED.findall("".join(map(json.dumps, model.live))))
    assert {name for name, _ in named} <= set.intersection(*model.offered), "named is what is offered from the first on"
    if not named:
        assert not any("recall" in name for names in model.offered for name in names)
        return
    assert model.got
    assert {id: text for id, text in model.got.items() if not (LINE.search(text) and KEY.search(text))} == {}
