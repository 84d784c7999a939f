"""Values that all else is made of: items, views, limits, JSON; and threads for long work, a bridge to blocking code."""
