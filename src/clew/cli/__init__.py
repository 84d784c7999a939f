"""The command line. A module a command or a few; `groups` has their order, and each is imported when it is typed."""

from clew.cli.app import app, main

__all__ = ["app", "main"]
