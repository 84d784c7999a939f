"""Wrapped clients where processes fork and end: nobody waits for threads that are gone."""

import os
import subprocess
from pathlib import Path

import pytest

import processes
from clew.testing import Answer, StrictProvider

OPENING = """
import os, signal, sys
import clew, openai
signal.alarm(60)  # rather than hang
url, place = sys.argv[1:]

def client(store):
    http = openai.DefaultHttpxClient(verify=False)
    return clew.wrap(openai.OpenAI(api_key="none", base_url=url, max_retries=0, http_client=http), store)

def ask(client, **more):
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], **more)

made = client(place)
"""

FORKING = """
ask(made)
if (child := os.fork()) == 0:
    other = client(place)
    print(ask(other).choices[0].message.content, other.clew.last is not None, flush=True)
    print(ask(made).choices[0].message.content, flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""

LEAVING = """
stream = ask(made, stream=True)
next(iter(stream))
"""


def done(provider: StrictProvider, place: Path, script: str) -> "subprocess.CompletedProcess[str]":
    return processes.run("-c", OPENING + script, f"{provider.url}/v1", str(place), imports=("openai",))


def test_a_fork_has_a_loop_of_its_own_and_opens_its_own_store(tmp_path: Path) -> None:
    with StrictProvider([Answer("Yes.")]) as provider:
        forked = done(provider, tmp_path / "clew.db", FORKING)
    assert forked.stdout == "Yes. True\nYes.\n0\n", forked.stderr
    assert "the original request is sent unchanged" in forked.stderr
    assert "open it again in this process" in forked.stderr


@pytest.mark.few(1)
@pytest.mark.parametrize("packet", [150, 5_000], ids=["in the middle of an event", "between two"])
def test_a_process_may_end_in_the_middle_of_a_stream(tmp_path: Path, packet: int) -> None:
    with StrictProvider([Answer("A long answer. " * 500, packet=packet)]) as provider:
        left = done(provider, tmp_path / "clew.db", LEAVING)
    assert (left.returncode, left.stderr) == (0, "")


SETTINGS = """
import logging
import clew, openai
from clew.errors import BadConfig

client = clew.wrap(openai.OpenAI(api_key="none"))
print(client.clew.engine.settings.secrets, logging.getLogger("clew").handlers)
print(clew.wrap(openai.OpenAI(api_key="none"), clew.configured()).clew.engine.settings.secrets)
print(len(logging.getLogger("clew").handlers))
open("clew.toml", "w").write("[budget\\n")
clew.wrap(openai.OpenAI(api_key="none"))
try:
    clew.configured()
except BadConfig as error:
    print(error.problems[0].split(":")[2])
"""


def test_settings_are_read_by_who_asks_for_them_and_by_nobody_else(tmp_path: Path) -> None:
    (tmp_path / "clew.toml").write_text('secrets = "redact"\n')
    own = {"HOME": str(tmp_path / "home"), "XDG_DATA_HOME": str(tmp_path / "data"), "CLEW_LOG": "json"}
    asked = processes.run("-c", SETTINGS, cwd=tmp_path, env=os.environ | own, imports=("openai",))
    assert asked.stdout == "keys []\nredact\n1\n not TOML\n", asked.stderr
    assert (tmp_path / "data" / "clew" / "clew.db").exists()
