"""Before a client asks its gateway: it is started where none runs, and where that fails the client is told at once."""

import sys

from clew.config.places import here
from clew.gateway.background import BackgroundGateway


def started(client: str) -> str:
    """What to answer to a client before a prompt; nothing: the gateway answers."""
    name = client.removesuffix("-gateway")
    why = BackgroundGateway(here().env).ensure()
    if not why:
        return ""
    from clew.installing.programs import PROGRAMS

    return PROGRAMS[name].refusal(_with_ways(why, name))


def key(variable: str = "OPENAI_API_KEY") -> int:
    """The key that Codex is to send, on standard output, once the gateway runs that it is sent to; else why not."""
    env = here().env
    why = BackgroundGateway(env).ensure()
    if why or not env.get(variable):
        sys.stderr.write(f"{_with_ways(why, 'codex') if why else f'{variable} is not set'}\n")
        return 1
    sys.stdout.write(env[variable])
    return 0


def _with_ways(why: str, client: str) -> str:
    return f"{why} (`clew serve --status` says more; `clew install {client} --remove` makes it work without clew)"
