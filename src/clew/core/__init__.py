"""Values: items, views, the protocol of a step. Pure."""
