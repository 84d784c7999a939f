"""Names of MCP tools that every provider takes: letters, digits, _ and -, at most 64 of them."""

import re
from hashlib import sha256

NAME_SIZE = 60  # some providers add to a name what a proxy needs
NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]")
DIGEST_CHARACTERS = 8


def tool_name(server: str, tool: str) -> str:
    """The name by which a model calls a tool of a server.

    It follows from the two names alone, so it stays the same however many other servers there are. Where something had
    to be changed, or where another pair of names could come to the same, a digest of both is at its end.
    """
    name = f"mcp__{server}__{tool}"
    fitting = NOT_ALLOWED.sub("_", name)
    if fitting == name and len(name) <= NAME_SIZE and "__" not in server and server.strip("_") == server:
        return name
    digest = sha256(f"{server}\0{tool}".encode(errors="replace")).hexdigest()[:DIGEST_CHARACTERS]
    return f"{fitting[: NAME_SIZE - DIGEST_CHARACTERS - 1]}_{digest}"
