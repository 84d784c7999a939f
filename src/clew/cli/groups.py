"""The commands as `clew --help` groups them, each in a few words; what a command does in full is its docstring."""

GROUPS: dict[str, dict[str, str]] = {
    "Start": {
        "demo": "Watch a real session shrink, and ask it questions",
        "install": "Give Claude Code, Codex and others search and recall",
        "serve": "A gateway for any client with one base URL",
        "chat": "Chat with an agent in this terminal",
        "run": "Run an agent on one task",
        "mcp": "Serve this project's history as MCP tools",
        "uninstall": "Put a client's configuration back, byte for byte",
    },
    "Look": {
        "sessions": "List conversations, newest first",
        "show": "What fills the window, and what the model saw last",
        "search": "Search all that was said",
        "recall": "Print an original: what a summary stands for",
        "chapters": "Who wrote each summary, and what that cost",
        "diff": "What a compaction removed, replaced and saved",
        "open": "The page: conversations in a browser",
        "stats": "Tokens and dollars, with clew and without",
        "calls": "Tokens and cost of each call",
        "coverage": "Which facts are in view, recallable or flagged",
        "audit": "What other agents lost when they compacted",
        "lab": "Your sessions sent again in several ways: cost and misses",
    },
    "Change": {
        "preview": "What a compaction would do now",
        "undo": "Take back the newest compactions",
        "fork": "Go on from any call under another name",
        "pin": "Keep items verbatim in every view",
        "method": "Who decides when to compact: clew or the agent",
        "tag": "Add tags to a conversation",
        "archive": "Leave a conversation out of lists",
    },
    "Move": {
        "import": "Take in session files of other agents",
        "export": "Write conversations out, also as another agent's",
        "resume": "Write a request as it was, or would be, sent",
        "batch": "Compress or search many files at once",
        "crush": "A new session in Crush that goes on from another",
    },
    "Keep": {
        "config": "See and change settings",
        "model": "List and test models; limits that were learned",
        "doctor": "Check the log and what clients are told to run",
        "backup": "Copy the log, and verify the copy",
        "restore": "Put a backup in place of the log",
        "purge": "Delete conversations for good",
    },
}
# Commands that there were, and what does the same.
GONE = {
    "compress": "clew batch compress FILE --target N --out DIR, or clew.compress in Python",
    "count": "clew.tokens.counter_for(model).text(text) in Python",
}
PLACES = {name: (group, words) for group, commands in GROUPS.items() for name, words in commands.items()}
