"""Write what every client and registry reads of the plugin from one description, or look whether it is as it should be.

Written by hand are plugin/README.md, plugin/skills and plugin/npm/bin. What only npm reads is written by make release.

python scripts/plugin_tree.py [--check] [--into FOLDER] [--npm FOLDER]
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clew import __version__
from clew.installing.clients.claude import ABOUT
from clew.installing.clients.scripts import mod, script

ROOT = Path(__file__).resolve().parents[1]
HOME = Path("plugin")  # the folder of the plugin; marketplaces and registries look at the root
RUN = ("uvx", "clew")  # fetched once, then from a cache
OWNER = "OWNER"  # whoever publishes it: written by hand where a registry asks for it


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OWN = {"name": PROJECT["name"], "version": __version__, "description": ABOUT, "author": {"name": PROJECT["name"]}}
OWN |= {"license": PROJECT["license"], "keywords": PROJECT["keywords"]}
MCP_NAME = f"io.github.{OWNER}/clew"


def tree() -> dict[Path, str]:
    """Every file, by its place below the root."""
    project, own = PROJECT, OWN
    server = {"command": RUN[0], "args": [*RUN[1:], "mcp"]}
    listed = {"name": project["name"], "description": ABOUT}
    entry = {"name": MCP_NAME, "title": "clew", "description": project["description"]}
    package = {"registryType": "pypi", "identifier": project["name"], "version": __version__}
    package |= {"runtimeHint": RUN[0], "transport": {"type": "stdio"}}
    package["packageArguments"] = [{"type": "positional", "value": "mcp"}]
    codex = {"source": {"source": "local", "path": f"./{HOME}"}, "category": "Productivity"}
    codex["policy"] = {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
    written: Mapping[Path, Any] = {
        Path(".claude-plugin/marketplace.json"): {
            "name": "clew",
            "owner": {"name": project["name"]},
            "description": project["description"],
            "plugins": [{**listed, "source": f"./{HOME}"}],
        },
        Path(".agents/plugins/marketplace.json"): {"name": "clew", "plugins": [{"name": project["name"], **codex}]},
        Path("gemini-extension.json"): {**listed, "version": __version__, "mcpServers": {"clew": server}},
        Path("server.json"): {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            **entry,
            "version": __version__,
            "packages": [package],
        },
        HOME / ".claude-plugin/plugin.json": own,
        HOME / ".codex-plugin/plugin.json": {**own, "skills": "./skills/", "mcpServers": "./.mcp.json"},
        HOME / "hooks/hooks.json": {"modules": ["./register.js"]},
        HOME / "hooks/register.js": mod(RUN),
        HOME / ".mcp.json": {"mcpServers": {"clew": server}},
        HOME / "plugin.json": {"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", **own},
        HOME / "mcp.json": {
            "$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
            "mcpServers": {"clew": {"type": "stdio", **server}},
        },
    }
    return _texts(written)


def npm() -> dict[Path, str]:
    """Every file of the package for npm, by its place in it: the plugins of opencode and pi, and what npx starts."""
    entry = {"bin": {"clew": "bin/clew.js"}, "main": "opencode.ts", "pi": {"extensions": ["./pi.ts"]}}
    written: Mapping[Path, Any] = {
        Path("package.json"): {**OWN, **entry, "mcpName": MCP_NAME},
        Path("README.md"): (ROOT / HOME / "README.md").read_text(encoding="utf-8"),
        Path("bin/clew.js"): (ROOT / HOME / "npm/bin/clew.js").read_text(encoding="utf-8"),
        Path("opencode.ts"): script("opencode", RUN),
        Path("pi.ts"): script("pi", RUN),
    }
    return _texts(written)


def _texts(written: Mapping[Path, Any]) -> dict[Path, str]:
    return {
        path: what if isinstance(what, str) else json.dumps(what, indent=2) + "\n" for path, what in written.items()
    }


def main() -> None:
    """Write it, or say what is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--into", type=Path, default=ROOT)
    parser.add_argument("--npm", type=Path)
    options = parser.parse_args()
    wrong = []
    for path, text in (npm() if options.npm else tree()).items():
        file = (options.npm or options.into) / path
        if options.check:
            wrong += [str(path)] if not file.is_file() or file.read_text(encoding="utf-8") != text else []
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    if wrong:
        sys.exit(f"{', '.join(wrong)}: not as scripts/plugin_tree.py writes it; run make plugin")


if __name__ == "__main__":
    main()
