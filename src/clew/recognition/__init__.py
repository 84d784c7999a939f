"""Whose history is this: what a request has in common with what was said."""
