"""The engine: a turn, an append, a compaction and when it is due, an undo, a recall, pins, settings."""
