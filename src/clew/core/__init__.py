"""Values that all else is made of: items, views, limits, JSON; and threads for long work, the bridge to blocking code."""
