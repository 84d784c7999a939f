"""For people: the chain of sessions, totals, import and export."""
