"""The page beside a gateway on loopback, with a conversation in it; and Debian's chromium to look at it."""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from clew.config import Places
from clew.core.limits import Budget
from clew.engine.engine import Engine
from clew.engine.settings import Settings
from clew.gateway.app import Gateway
from clew.gateway.metrics import Metrics
from clew.gateway.server import GatewayThread
from clew.gateway.settings import GatewaySettings
from clew.gateway.upstreams import Upstream, Upstreams
from clew.page import app
from clew.page.changes import Changes
from clew.page.instructions import KeptInstructions
from clew.page.overall import SummaryWriters
from clew.page.site import Site
from clew.store.places import open_store
from clew.testing import StrictProvider
from conftest import NO_BROWSER
from serving import Got, Served

FLAGS = "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync".split()
CHAT = "/v1/chat/completions"
PATIENCE = 120_000  # milliseconds: machines are slow, and busy

Said = Sequence[dict[str, Any]]


@dataclass
class Looked(Served):
    """A gateway with its page."""

    def get(self, path: str, **headers: str) -> Got:
        """What a browser gets."""
        return self.ask(
            path, None, {"accept": "text/html", **{k.replace("_", "-"): v for k, v in headers.items()}}, "GET"
        )

    def talk(
        self, name: str, turns: int, ask: str = "Fix the checkout test in tests/test_checkout.py", said: Said = ()
    ) -> list[dict[str, Any]]:
        """A conversation of an agent that reads files, through the gateway, after what was said; and all of it."""
        said = list(said or [{"role": "system", "content": "You are opencode.\nWorking directory: /srv/shop"}])
        first = len(said) // 4
        for turn in range(first, first + turns):
            text = ask if turn == first else f"Go on with step {turn} of the checkout."
            said.append({"role": "user", "content": text})
            call = {"name": "read_file", "arguments": f'{{"path": "src/module_{turn}.py"}}'}
            said.append({"role": "assistant", "content": None, "tool_calls": [_call(turn, call)]})
            listing = "\n".join(f"def function_{turn}_{n}(x): return x + {7 * n}" for n in range(60))
            said.append({"role": "tool", "tool_call_id": f"call_{turn}", "content": listing})
            got = self.ask(CHAT, {"model": "gpt-4o", "messages": said}, {"x-clew-session": name})
            assert got.status == 200, got.raw[:500]
            said.append(got.json()["choices"][0]["message"])
        return said

    def branch(self, name: str) -> str:
        """The branch of a conversation, as the list links to it."""
        found = re.search(rf'href="/clew/c/(\w+)">{re.escape(name)}</a>', self.get("/").raw.decode())
        assert found, f"{name} is not listed"
        return found[1]


def _call(turn: int, call: dict[str, str]) -> dict[str, Any]:
    return {"id": f"call_{turn}", "type": "function", "function": call}


@contextmanager
def looking(
    folder: Path, settings: GatewaySettings | None = None, window: int = 12_000, place: str = ""
) -> Iterator[Looked]:
    """A gateway with its page, over a store in a folder, or at another place."""
    metrics, changes, summaries = Metrics(), Changes(), SummaryWriters()
    with StrictProvider(window=200_000) as provider:
        listeners = (metrics, changes, summaries)
        engine = Engine(open_store(place or folder / "clew.db"), Budget(window=window), Settings(listeners=listeners))
        gateway = Gateway(engine, Upstreams([Upstream("up", "openai", provider.url, "key")]), settings, metrics)
        kept = KeptInstructions(Places({"HOME": str(folder)}, folder), gateway.deciding)
        own = gateway.settings
        page = app.Page(engine, own.scope, kept, changes=changes, summaries=summaries, keys=own.keys, hosts=own.hosts)
        with GatewayThread(gateway, Site(page, gateway)) as url:
            yield Looked(url, gateway, provider)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's browser; a test is skipped, and says so, where there is none."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip(NO_BROWSER)
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def tab(browser: Browser, url: str, **given: Any) -> Iterator[Page]:
    """A page in the browser; in the end nothing was amiss on it, and it asked for nothing elsewhere."""
    context = browser.new_context(**{"viewport": {"width": 1360, "height": 900}, **given})
    page, amiss = context.new_page(), list[str]()
    page.set_default_timeout(PATIENCE)
    page.on("console", lambda said: amiss.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: amiss.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(url) else amiss.append(f"asked for {asked.url}"))
    page.goto(url)
    yield page
    context.close()
    assert not amiss, amiss
