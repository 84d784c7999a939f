"""Who writes what stands in for a stretch of history, and what code vouches for in it."""
