"""Commands in `clew chat`: those of the user, those that are allowed for good, and what they write while they run."""

import asyncio
import json
import math
from pathlib import Path

import pytest

from chatting import chatting
from clew.chat.backend import AllowedCommands
from clew.chat.permitting import Permit, Permitting
from clew.store.protocol import Store
from clew.testing.provider import Answer, Call, StrictProvider


async def test_a_command_of_the_user_is_run_shown_and_told_with_the_next_message(store: Store, tmp_path: Path) -> None:
    with StrictProvider([Answer("I see.")]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.say("!printf '\\033[31mred\\033]0;title\\007'; echo done > made.txt")
            assert (tmp_path / "made.txt").read_text() == "done\n"
            assert "exit code 0" in hand.shown
            assert all("\x1b" not in line and "\x07" not in line for line in hand.screen)
            assert not provider.heard
            await hand.say("What was that?")
            told = provider.heard[-1].body["messages"][-1]["content"]
            assert told.startswith("What was that?\n\n[I ran a command myself: printf")
            assert "red" in told
            await hand.say("And?")
            assert provider.heard[-1].body["messages"][-1]["content"] == "And?"
        async with chatting(store, tmp_path, provider.url, "other") as hand:
            await hand.until(lambda: bool(hand.chat.prompt._sent))
            await hand.press("up", "up")
            assert hand.chat.prompt.text == "What was that?"


async def test_what_a_command_writes_is_seen_while_it_runs(store: Store, tmp_path: Path) -> None:
    command = "echo first; while [ ! -e go ]; do sleep 0.05; done; echo last"
    script = [Answer("", (Call("run", {"command": command}),)), Answer("Done.")]
    with StrictProvider(script) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.enter("Run it.")
            await hand.asked()
            await hand.press("y")
            await hand.hears("\nfirst")
            assert hand.chat.busy
            assert "exit code" not in hand.shown
            (tmp_path / "go").touch()
            await hand.hears("Done.")
            assert hand.shown.count("first\nlast\n[exit code 0]") == 1


async def test_a_command_is_allowed_for_good_in_its_folder(store: Store, tmp_path: Path) -> None:
    calls = [Call("run", {"command": command}) for command in ("echo one", "echo one", "echo two")]
    script = [answer for call in calls for answer in (Answer("", (call,)), Answer(f"Ran {call.given}."))]
    file = tmp_path / "home/.local/share/clew/allowed.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({str(tmp_path): [["echo", "prefix"], ["x", "servers"]]}))  # of an earlier version
    with StrictProvider(script) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.enter("Run it.")
            await hand.asked()
            await hand.press("a")
            await hand.hears("Allowed from now on in")
            await hand.until(lambda: not hand.chat.busy)
        async with chatting(store, tmp_path, provider.url) as hand:  # another process
            await hand.say("Again.")
            await hand.enter("Another.")
            await hand.asked()
            await hand.press("n")
            await hand.until(lambda: not hand.chat.busy)
    assert json.loads(file.read_text()) == {str(tmp_path): [["echo one", "command"]]}


@pytest.mark.few(1)
@pytest.mark.parametrize("blank", ["\u00a0", "\x0c", "\r", "\u2003"])
async def test_a_blank_that_no_shell_knows_is_part_of_a_name(store: Store, tmp_path: Path, blank: str) -> None:
    file = tmp_path / "home/.local/share/clew/allowed.json"
    file.parent.mkdir(parents=True)
    AllowedCommands(file, tmp_path).add("ls")
    script = [Answer("", (Call("run", {"command": f"ls{blank}"}),)), Answer("Done.")]
    with StrictProvider(script) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.enter("Run it.")
            await hand.asked()
            await hand.press("n")
            await hand.hears("Done.")


async def test_a_rule_that_cannot_be_kept_ends_no_turn(store: Store, tmp_path: Path) -> None:
    (tmp_path / "home/.local/share").mkdir(parents=True)
    (tmp_path / "home/.local/share/clew").touch()  # a file where the folder would be
    script = [Answer("", (Call("run", {"command": "echo one"}),)), Answer("Done.")]
    with StrictProvider(script) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.enter("Run it.")
            await hand.asked()
            await hand.press("a")
            await hand.hears("Done.")
            assert "Allowed this once, because the rule could not be kept" in hand.shown


def test_rules_hold_for_one_folder_and_a_file_that_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "allowed.json"
    here = AllowedCommands(file, tmp_path / "here")
    here.add("git status")
    here.add("make")
    assert here.all() == ["git status", "make"]
    assert not AllowedCommands(file, tmp_path / "there").all()
    here.remove("make")
    assert here.all() == ["git status"]
    for broken in ("{", "[]", '{"a": 1}', '{"a": ["ls"]}'):
        file.write_text(broken)
        assert not here.all()


async def test_what_is_typed_when_a_question_just_came_allows_nothing(store: Store, tmp_path: Path) -> None:
    async with chatting(store, tmp_path, "http://127.0.0.1:9") as hand:
        question = Permitting("Run `touch made`?", "", command_in="~", typing=True)
        waits = asyncio.create_task(hand.chat.put(question))
        await hand.asked()
        question._since = math.inf  # it came this moment
        await hand.press(*"ayA")
        assert not question.answer.done()
        question._since = 0  # long ago
        await hand.press("y")
        assert await waits == Permit(True)
        await hand.until(lambda: hand.chat.prompt.has_focus and not hand.chat.questions.children)
