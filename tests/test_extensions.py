"""What an installed package brings: a strategy and a format, each by its name in `clew.toml`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew import wire
from clew.config import load
from clew.config.wiring import engine
from clew.core.bridge import run
from clew.errors import BadConfig, BadRequest
from clew.steps import preset
from clew.store.places import open_store
from clew.wire.requests import api_call

CODE = """
from clew.steps import Pipeline, Trim
from clew.wire.formats.openai_chat import OpenAIChat

class Guarded(OpenAIChat):
    NAME = "guarded"
    number = None
    paths = {"/v1/guarded": "answer"}

def short():
    return Pipeline(Trim())
"""
POINTS = "[clew.steps]\nshort = bringing:short\nbroken = bringing:missing\n[clew.formats]\nguarded = bringing:Guarded\n"


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


def test_what_nobody_brings_is_refused_by_name(installed: Path) -> None:
    with pytest.raises(BadConfig, match=r"preset.*clew\.steps"):
        _configured(installed, 'preset = "shorter"\n')
    with pytest.raises(BadConfig, match=r"formats.*clew\.formats"):
        _configured(installed, 'formats = ["other"]\n')
    with pytest.raises(BadRequest, match="unknown 'shorter'"):
        preset("shorter")
    with pytest.raises(BadRequest, match=r"broken.*cannot be loaded"):
        preset("broken")
