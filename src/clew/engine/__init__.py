"""The engine: a turn, an append, an undo, a compaction, a recall."""
