"""The commands as `clew --help` lists them: group, module of `clew.cli`, a few words; in full each has a docstring."""

from typing import NamedTuple


class ListedCommand(NamedTuple):
    """A command in the list."""

    module: str
    words: str


GROUPS: dict[str, dict[str, ListedCommand]] = {
    "Start here": {
        "demo": ListedCommand("demo", "Watch a real session shrink, and ask it questions"),
        "install": ListedCommand("install", "Give Claude Code, Codex and others search and recall"),
        "serve": ListedCommand("serve", "A gateway for any client with one base URL"),
        "sessions": ListedCommand("show", "List conversations; --totals: tokens and dollars"),
        "show": ListedCommand("show", "What fills the window; --diff: what a compaction removed"),
        "search": ListedCommand("search", "Search all that was said"),
        "recall": ListedCommand("search", "Print an original: what a summary stands for"),
        "undo": ListedCommand("change", "Take back the newest compactions"),
    },
    "Look closer": {
        "open": ListedCommand("serve", "The page: conversations in a browser"),
        "audit": ListedCommand("audit", "What other agents lost when they compacted"),
        "lab": ListedCommand("lab", "Your sessions sent again in several ways: cost and misses"),
    },
    "Go on": {
        "chat": ListedCommand("chat", "Chat with an agent in this terminal"),
        "run": ListedCommand("run", "Run an agent on one task"),
        "fork": ListedCommand("resume", "Go on from any call under another name"),
        "resume": ListedCommand("resume", "Write a request as it was, or would be, sent"),
    },
    "Change": {
        "pin": ListedCommand("change", "Keep items verbatim in every view"),
        "set": ListedCommand("change", "Tags, archive, and who decides when to compact"),
        "config": ListedCommand("config", "See and change settings"),
        "model": ListedCommand("models", "List and test models; limits that were learned"),
    },
    "Keep": {
        "import": ListedCommand("move", "Take in session files of other agents"),
        "export": ListedCommand("move", "Write conversations out, also as another agent's"),
        "batch": ListedCommand("batch", "Compress or search many files at once"),
        "backup": ListedCommand("upkeep", "Copy the log, and verify the copy; --restore"),
        "doctor": ListedCommand("upkeep", "Check the log and what clients are told to run"),
        "purge": ListedCommand("upkeep", "Delete conversations for good"),
    },
}
# What clients start, as their configuration names it; no list has them.
HIDDEN = {"hook": "clients", "mcp": "clients", "plugin": "clients"}
# Commands that there were, and what does the same.
MOVED = {
    "archive": "clew set NAME --archive",
    "calls": "clew show NAME --calls",
    "chapters": "clew show NAME --chapters",
    "compress": "clew batch compress FILE --target N --out DIR",
    "count": "clew.tokens.counter_for(model).text(text) in Python",
    "coverage": "clew show NAME --facts",
    "crush": "clew resume --in crush",
    "diff": "clew show NAME --diff",
    "method": "clew set NAME --method auto|llm",
    "preview": "clew show NAME --preview",
    "restore": "clew backup --restore FILE",
    "stats": "clew sessions --totals",
    "tag": "clew set NAME --tag WORD",
    "uninstall": "clew install CLIENT --remove",
}
MODULES = HIDDEN | {name: one.module for commands in GROUPS.values() for name, one in commands.items()}


def listed(*groups: str) -> str:
    """The commands of these groups, a line each."""
    rows = (f"  {name:<9} {one.words}" for group in groups for name, one in GROUPS[group].items())
    return "\n".join(rows)
