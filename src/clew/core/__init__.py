"""Values that all else is made of: items, views, limits, JSON; and what runs work in threads and bridges blocking code."""
