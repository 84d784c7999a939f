"""Commands that serve: a gateway between clients and their providers, and the page on which conversations are seen."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from clew.cli import background as in_background
from clew.cli.app import PerhapsName, ScopeName, StorePath, UsageError, app, configured, looking, opened
from clew.config.places import here
from clew.errors import BadConfig, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import uvicorn

    from clew.config import Config
    from clew.config.gateway import UpstreamTable
    from clew.events import Listener
    from clew.gateway.app import Gateway
    from clew.gateway.upstreams import Upstream
    from clew.store.sql import SQLStore

COLLECTED = (50_000, 50, 1_000)  # objects, and times that younger ones are looked through before older ones are


ANOTHER_PORT = "`clew config set gateway.port N`, then `clew install CLIENT --gateway`"  # for who is not asked


@app.command(epilog="Example: clew serve --demo, or to leave it running: clew serve --background")
def serve(
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "",
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", min=0, max=65535, help="Port to listen on; 0: any free one.")
    ] = None,
    upstream: Annotated[
        str,
        typer.Option("--upstream", metavar="URL", help="Send all requests there: to a model on this machine."),
    ] = "",
    compaction: Annotated[
        Literal["prevent", "answer", "pass"] | None,
        typer.Option("--compaction", help="What becomes of a client's own compaction."),
    ] = None,
    method: Annotated[
        Literal["auto", "llm"] | None, typer.Option("--method", help="Who decides when to compact.")
    ] = None,
    summary: Annotated[
        Literal["none", "own"] | None,
        typer.Option("--summary", help="own: let each conversation's model write chapters, with your API keys."),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve a strict test provider instead of real ones: no key, no cost.")
    ] = False,
    store: StorePath = None,
    background: Annotated[
        bool, typer.Option("--background", help="Start it once, and leave it running, as `clew install --gateway`.")
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Say whether one runs in the background.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="End the one in the background.")] = False,
    resident: Annotated[bool, typer.Option("--resident", hidden=True)] = False,
) -> None:
    """Serve a gateway: any client with one base URL keeps its whole history, and never overflows.

    Requests go on to their provider, fitted to its window. A client's own compaction is answered from the log.
    Upstreams come from gateway.upstreams, or are the providers themselves with the keys in the environment.

    It serves until Ctrl+C. With --background it goes on by itself until --stop; --status shows where its log is.
    """
    if background + status + stop > 1 or (demo and background):
        raise UsageError("--background, --status, --stop and --demo exclude each other")
    if status or stop:
        raise typer.Exit(in_background.say_status() if status else in_background.stop())
    check_extra("clew serve")
    config = configured()
    own = config.gateway
    own = replace(
        own,
        host=host or own.host,
        port=own.port if port is None else port,
        upstreams=everything_to(upstream) if upstream else own.upstreams,
        compaction=compaction or own.compaction,
        summary=summary or own.summary,
    )
    config = replace(config, gateway=own, compaction_method=method or config.compaction_method)
    from clew.gateway.own_hosts import LOOPBACK

    if own.host not in LOOPBACK and not own.clients:
        raise UsageError(
            f"{own.host} can be reached from elsewhere: give each client a key first, "
            "`clew config set gateway.clients.NAME.key VARIABLE`"
        )
    if background:
        given = {"--compaction": compaction, "--method": method, "--summary": summary, "--store": store}
        given |= {"--upstream": upstream}
        options = [word for name, value in given.items() if value for word in (name, value)]
        in_background.say_started(in_background.started(own.host, own.port, options))
        return
    if not resident:
        in_background.check_free(own.host, own.port)
    from clew.gateway.server import loop

    claimed = in_background.background().claim() if resident else None  # held until this process is no more
    if resident and claimed is None:  # whoever started this waits for the other one
        typer.echo("another gateway runs in the background already, or none is wanted")
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the store is closed then, too
    with suppress(KeyboardInterrupt), ExitStack() as stack, asyncio.Runner(loop_factory=loop()) as runner:
        say = _say_shortly if resident else _say
        runner.run(_serve(config, opened(store, create=True), demo, stack, store or config.store, say))


def everything_to(url: str) -> "dict[str, UpstreamTable]":
    """One server for every format, with the clients' own keys."""
    from clew.config.gateway import UpstreamTable
    from clew.wire.formats import PROVIDERS

    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--upstream {url}: expected a base URL, such as http://127.0.0.1:11434")
    return {kind: UpstreamTable(url, kind) for kind in PROVIDERS}


async def _serve(
    config: "Config", store: "SQLStore", demo: bool, stack: ExitStack, where: object, say: "Callable[..., None]"
) -> None:
    from clew.gateway.server import listening, server
    from clew.gateway.settings import GatewaySettings
    from clew.page.app import Page
    from clew.page.changes import Changes
    from clew.page.instructions import KeptInstructions
    from clew.page.overall import SummaryWriters
    from clew.page.site import Site

    try:
        known = [_demo(stack, kind) for kind in ("openai", "anthropic")] if demo else upstreams(config)
        changes, summaries = Changes(), SummaryWriters()
        gateway = made(config, store, known, [changes, summaries])
        page = Page(
            gateway.engine,
            config.scope,
            KeptInstructions(here(), gateway.deciding),
            changes=changes,
            summaries=summaries,
            keys=gateway.settings.keys,
            hosts=gateway.settings.hosts,
        )
        own = config.gateway
        served = server(Site(page, gateway), GatewaySettings.client_silence, own.host, own.port, ending=changes.end)
        listener = listening(own.host, own.port, ANOTHER_PORT if say is _say_shortly else "--port or --host")
        say(config, known, listener.getsockname()[1], demo, where)
        # What is there now stays: a full collection need not look at it, and is rare enough not to be felt.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECTED)
        await _serve_until_interrupted(served, listener)
    finally:
        await store.close()


# --- clew open --------------------------------------------------------------------------------------------------------


@app.command("open", epilog="Example: clew open demo")
def open_(
    name: PerhapsName = None,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port to listen on; 0: any free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Open the page in a browser: read conversations, see what each cost and lost, recall, undo, fork.

    It is served on this machine only, until Ctrl+C. `clew serve` has the same page at its own address.
    """
    check_extra("clew open")
    with suppress(KeyboardInterrupt):  # Ctrl+C before it serves
        asyncio.run(_open(name, port, browser, scope, store))


async def _open(name: str | None, port: int, browser: bool, scope: str, path: str | None) -> None:
    import webbrowser

    from clew.gateway.server import listening, server
    from clew.page.app import Page
    from clew.page.changes import Changes
    from clew.page.instructions import KeptInstructions
    from clew.page.site import Site, nothing

    async with looking(scope, path) as found:
        at = f"clew/c/{(await found.get(name)).branch}" if name else ""
        changes = Changes()
        page = Page(found.engine, scope, KeptInstructions(here()), changes=changes)
        listener = listening("127.0.0.1", port, "--port")
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/{at}"
        typer.echo(f"{address} (Ctrl+C ends it)")
        if browser:
            await asyncio.to_thread(webbrowser.open, address)
        await _serve_until_interrupted(server(Site(page, nothing), 60.0, graceful=1, ending=changes.end), listener)


async def _serve_until_interrupted(served: "uvicorn.Server", listener: socket.socket) -> None:
    """Serve until Ctrl+C, which is how a server ends and no failure."""
    try:
        await served.serve(sockets=[listener])
        await asyncio.sleep(0)  # the signal is passed on when all is over: it must not arrive while a store is closed
    except (KeyboardInterrupt, asyncio.CancelledError):
        pass
    finally:
        listener.close()


def check_extra(command: str) -> None:
    """Raise `MissingExtra` where what serves is not installed."""
    if not all(find_spec(name) for name in ("aiohttp", "jinja2", "starlette", "uvicorn")):
        raise MissingExtra(f"{command} needs a server", "gateway")


def upstreams(config: "Config") -> "list[Upstream]":
    """Those that are configured, then the providers at home."""
    from clew.gateway.upstreams import Upstream, from_environment
    from clew.wire.formats import PROVIDERS

    found = []
    for name, own in config.gateway.upstreams.items():
        key = here().env.get(own.key, "") if own.key else ""
        if own.key and not key:
            raise BadConfig(f"gateway.upstreams.{name}.key: the environment variable {own.key} is not set")
        url, models = own.url or PROVIDERS[own.kind].home, tuple(own.models)
        found.append(Upstream(name, own.kind, url, key, models))
    everything = {upstream.kind for upstream in found if upstream.models == ("*",)}
    return [*found, *(home for home in from_environment(here().env) if home.kind not in everything)]


def made(config: "Config", store: "SQLStore", known: "list[Upstream]", more: "Sequence[Listener]" = ()) -> "Gateway":
    """The gateway as it is configured, over a store; `more` hear what happens."""
    from clew.config import engine
    from clew.config.wiring import listeners
    from clew.gateway.app import Gateway
    from clew.gateway.metrics import Metrics
    from clew.gateway.settings import GatewaySettings
    from clew.gateway.upstreams import Upstreams

    own, metrics = config.gateway, Metrics()
    if own.compaction == "pass":
        config = replace(config, compaction="off")
    if config.summary.model == "own" and own.summary == "none":
        config = replace(config, summary=replace(config.summary, model="none"))
    core = engine(config, store, listeners=[*listeners(config), metrics, *more])
    settings = GatewaySettings(
        compaction=own.compaction,
        summary=own.summary if config.summary.model == "own" else "none",
        tools=own.tools,
        closed=own.closed,
        scope=config.scope,
        keys=_keys(config),
        hosts=tuple(own.hosts),
    )
    return Gateway(core, Upstreams(known), settings, metrics, config.new_session.when, config.new_session.how)


def _keys(config: "Config") -> dict[str, str]:
    found = {}
    for name, client in config.gateway.clients.items():
        key = here().env.get(client.key or "", "")
        if not key:
            raise BadConfig(
                f"gateway.clients.{name}.key: name the environment variable with its key, and set that variable"
            )
        found[key] = name
    return found


def _demo(stack: ExitStack, kind: str) -> "Upstream":
    from clew.gateway.upstreams import Upstream
    from clew.testing import StrictProvider

    provider = stack.enter_context(StrictProvider(window=200_000))
    return Upstream("demo", kind, provider.url, "demo")


def _say_shortly(config: "Config", known: "list[Upstream]", port: int, demo: bool, where: object) -> None:
    """A line for a log that is read long after; what goes wrong later is told there with its time, too."""
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    told = f"port {port}, compaction {config.gateway.compaction}, upstreams {', '.join(u.url for u in known)}"
    logging.getLogger("clew").warning("clew serves: process %d, %s", os.getpid(), told)


def _written_by(config: "Config") -> str:
    """Who writes chapters, and with whose key."""
    from clew.steps.chapters.allowance import CallLimits

    most = CallLimits().hourly_calls
    match config.summary.model:
        case "own" if config.gateway.summary == "own":
            return f"by each conversation's model, with its API key, never a login; at most {most} questions an hour"
        case "own" | "none":
            return "by code; `clew serve --summary own` lets each conversation's model write, with your API keys"
        case name:
            return f"by {name}, at most {most} questions an hour"


def _say(config: "Config", known: "list[Upstream]", port: int, demo: bool, where: object) -> None:
    from clew.installing.programs import pasted

    own = config.gateway
    at = f"[{own.host}]" if ":" in own.host else own.host
    base = f"http://{at}:{port}"
    typer.echo(f"clew serves at {base} (Ctrl+C ends it); open it in a browser to look at conversations")
    typer.echo(f"  log         {where}")
    typer.echo(f"  compaction  {own.compaction}, method {config.compaction_method}")
    typer.echo(f"  chapters    {_written_by(config)}")
    for upstream in known:
        key = "its key is held here" if upstream.key else "the client's key is passed on"
        typer.echo(f"  upstream    {upstream.name}: {upstream.url} ({key})")
    if demo:
        typer.echo("  demo        answers come from a strict test provider on this machine; nothing leaves it")
    typer.echo("\nPaste for your client, or have it written: `clew install CLIENT --gateway`")
    typer.echo(pasted(base, here()))
    sys.stdout.flush()  # or a file or a pipe has it when all is over
