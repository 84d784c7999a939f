"""The command line. A module a group of commands; importing it adds them to the app; `groups` has their order."""

from clew.cli import (  # noqa: I001
    talk,
    working,
    chatting,
    serving,
    mcp,
    plugin,
    installing,
    hooking,
    sessions,
    log,
    ways,
    moving,
    auditing,
    batch,
    settings,
    models,
    upkeep,
)
from clew.cli.app import app, main

__all__ = [
    "app",
    "auditing",
    "batch",
    "chatting",
    "hooking",
    "installing",
    "log",
    "main",
    "mcp",
    "models",
    "moving",
    "plugin",
    "serving",
    "sessions",
    "settings",
    "talk",
    "upkeep",
    "ways",
    "working",
]
