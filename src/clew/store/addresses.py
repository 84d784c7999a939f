"""Addresses of servers, as they may be shown."""

import re


def hidden(url: str) -> str:
    """A URL or connection string as it may be shown."""
    # Up to the last @: a password in which somebody forgot to escape one is no less a password.
    return re.sub(r"(password=)[^&\s]*", r"\1***", re.sub(r"(//[^:/?@]*:).*@", r"\1***@", url))
