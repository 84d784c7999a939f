"""An agent of Hermes that reads one file after another."""

import os
from pathlib import Path
from typing import Any

from frameworks.hermes.talking import PLAIN, WINDOW, settings
from frameworks.reading import Worked, contents
from hermes_cli.plugins import get_plugin_manager
from run_agent import AIAgent
from tools.registry import registry

from clew import Engine
from clew.adapters.hermes import ClewEngine
from clew.testing import StrictProvider

__all__ = ["WINDOW", "work"]

SCHEMA = {
    "name": "read",
    "description": "Read a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
registry.register(
    name="read",
    toolset="reading",
    schema=SCHEMA,
    handler=lambda args, **_: contents(args["path"], 330),
    check_fn=lambda: True,
)


def work(provider: StrictProvider, engine: Engine) -> Worked:
    home = Path(os.environ["HERMES_HOME"])
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(settings("clew", WINDOW), encoding="utf-8")
    plugins: Any = get_plugin_manager()
    plugins.discover_and_load(force=True)
    assert isinstance(plugins._context_engine, ClewEngine)
    plugins._context_engine._host.where = engine  # else that of the user's settings
    agent = AIAgent(**{**PLAIN, "base_url": f"{provider.url}/v1", "enabled_toolsets": ["reading", "context_engine"]})
    done = agent.run_conversation("Read all parts, and tell me their keys.")
    return Worked(done["final_response"])
