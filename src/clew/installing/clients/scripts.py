"""The plugins that are files of TypeScript, each in one piece."""

import json
from importlib.resources import files

from clew.control import offered
from clew.installing.plugs import ClewCommand, gone

STARTED_AS = '["clew"]'  # in the script, for how clew is started


def mod(clew: ClewCommand) -> str:
    """Claude Code's mod."""
    text = files("clew").joinpath("data", "plugins", "claude.js").read_text(encoding="utf-8")
    return text.replace(STARTED_AS, json.dumps(clew), 1)


def script(name: str, clew: ClewCommand) -> str:
    """A client's plugin."""
    text = _script(name, "bridge", clew)
    for tool in offered("auto", False, "", ""):
        text = text.replace(json.dumps(f"@{tool.name}"), json.dumps(tool.description), 1)
    return text


def starting_script(name: str, clew: ClewCommand, url: str) -> str:
    """A client's plugin that starts the gateway, and does nothing else."""
    text = _script(f"gateway-{name}", "starting", clew).replace('"@url"', json.dumps(url), 1)
    return text.replace('"@gone"', json.dumps(gone(clew, name)), 1)


def _script(own: str, shared: str, clew: ClewCommand) -> str:
    """A client's part, and after it the one that all clients share."""
    folder = files("clew").joinpath("data", "plugins")
    parts = [folder.joinpath(f"{part}.ts").read_text(encoding="utf-8") for part in (own, shared)]
    return "\n".join(parts).replace(STARTED_AS, json.dumps(clew), 1)
