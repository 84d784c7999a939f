"""Before a client asks its gateway: it is started where none runs, and where that fails the client is told at once."""

import json
import os
import sys

from clew.gateway.background import BackgroundGateway

DENIES = {"gemini": "deny"}  # how a client is told that a prompt goes no further; else "block"
WITH_OWN_WORDS = ("opencode", "pi")  # whose plugins say it in their own way


def started(client: str) -> str:
    """What to answer to a client before a prompt; nothing: the gateway answers."""
    name = client.removesuffix("-gateway")
    why = BackgroundGateway(os.environ).ensure()
    if not why:
        return ""
    told = f"{why} (clew serve --status says more; clew uninstall {name} makes it work without clew)"
    if name in WITH_OWN_WORDS:
        return told
    return json.dumps({"decision": DENIES.get(name, "block"), "reason": told})


def key(variable: str = "OPENAI_API_KEY") -> int:
    """The key that Codex is to send, on standard output, once the gateway runs that it is sent to; else why not."""
    if why := BackgroundGateway(os.environ).ensure():
        sys.stderr.write(f"{why} (clew serve --status says more; clew uninstall codex makes it work without clew)\n")
        return 1
    if not os.environ.get(variable):
        sys.stderr.write(f"{variable} is not set\n")
        return 1
    sys.stdout.write(os.environ[variable])
    return 0
