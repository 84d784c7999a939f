"""What an installed package brings: a strategy and a format, each by its name in `clew.toml`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import processes
from clew import wire
from clew.config import load
from clew.config.wiring import engine
from clew.core.bridge import run
from clew.errors import BadConfig, BadRequest
from clew.steps import preset
from clew.store.places import open_store
from clew.wire.requests import api_call

CODE = """
from dataclasses import replace
from clew.steps import Pipeline, Trim
from clew.wire.formats.openai_chat import OpenAIChat

class Guarded(OpenAIChat):
    NAME = "guarded"
    paths = {"/v1/guarded": "answer"}

    def split(self, body):
        frame, *rest = super().split(body)
        return replace(frame, format="guarded"), *rest

def short():
    return Pipeline(Trim())

def empty():
    pass

def ends():
    raise SystemExit(1)
"""
AGAIN = """
import sys
from pathlib import Path

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
from clew import Request, run
from clew.config import load
from clew.config.wiring import engine
from clew.store.places import open_store

made = engine(load({"CLEW_CONFIG": str(folder / "config/clew.toml")}, folder), open_store(folder / "again.db"))
asked = Request({"model": "m", "messages": [{"role": "user", "content": "Hello."}]}, "guarded", session="s")
view = run(made.prepare(asked))
assert view.frame.format == "guarded", view.frame.format
run(made.observe(view, {"input_tokens": 5}))
[call] = run(made.store.calls("default", view.branch))[-1:]
assert call.format == "guarded", call
assert [node.item.text for node in run(made.history("default", view.branch))] == ["Hello."]
run(made.close(store=True))
"""
POINTS = "[clew.steps]\nshort = bringing:short\nbroken = bringing:missing\nempty = bringing:empty\n[clew.formats]\n"
POINTS += "guarded = bringing:Guarded\nempty = bringing:empty\nends = bringing:ends\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which a package is installed, with a `clew.toml` beside it."""
    folder = tmp_path_factory.mktemp("installed")
    about = folder / "bringing-1.0.dist-info"
    about.mkdir()
    (folder / "bringing.py").write_text(CODE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bringing\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    wire.FORMATS.pop("guarded", None)


def _configured(folder: Path, text: str) -> None:
    own = folder / "config"
    own.mkdir(exist_ok=True)
    (own / "clew.toml").write_text(text)
    config = load({"CLEW_CONFIG": str(own / "clew.toml")}, folder)
    made = engine(config, open_store(folder / "clew.db"))
    run(made.close())
    run(made.store.close())


def test_a_strategy_and_a_format_are_named_in_the_configuration(installed: Path) -> None:
    assert repr(preset("short")) == repr(preset("sliding"))
    _configured(installed, 'preset = "short"\nformats = ["guarded"]\n')
    call = api_call("/v1/guarded")
    assert call is not None
    assert call.format == "guarded"
    frame, items = wire.decode({"model": "m", "messages": [{"role": "user", "content": "Hello."}]}, "guarded")
    assert [item.text for item in items] == ["Hello."]
    assert wire.encode(frame, items)["messages"] == [{"role": "user", "content": "Hello."}]
    for _ in range(2):  # what one process wrote in it, the next one reads
        processes.run("-c", AGAIN, str(installed), check=True)


def test_what_nobody_brings_is_refused_by_name(installed: Path) -> None:
    with pytest.raises(BadConfig, match=r"preset.*clew\.steps"):
        _configured(installed, 'preset = "shorter"\n')
    with pytest.raises(BadConfig, match=r"formats.*clew\.formats"):
        _configured(installed, 'formats = ["other"]\n')
    for name, why in (("empty", "makes no format of that name"), ("ends", "cannot be loaded: 1")):
        with pytest.raises(BadConfig, match=why):
            _configured(installed, f'formats = ["{name}"]\n')
    with pytest.raises(BadRequest, match="makes no step"):
        preset("empty")
    with pytest.raises(BadRequest, match="unknown 'shorter'"):
        preset("shorter")
    with pytest.raises(BadRequest, match=r"broken.*cannot be loaded"):
        preset("broken")
