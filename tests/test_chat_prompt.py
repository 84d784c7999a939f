"""Where one types in `clew chat`: new lines, what was sent before, commands and files that are offered."""

from pathlib import Path

from textual.drivers.linux_driver import LinuxDriver

from chatting import Hand, chatting, report, sent
from clew.chat.choosing import Choosing
from clew.chat.keys import driver
from clew.sessions.composition import adding_up
from clew.store.protocol import Store
from clew.testing.provider import Answer, StrictProvider


def offered(hand: Hand) -> list[str]:
    offers = hand.chat.prompt.offers
    return [str(option.id) for option in offers.options] if offers.display else []


async def test_new_lines_and_keys_beside_the_prompt(store: Store, tmp_path: Path) -> None:
    with StrictProvider([Answer("Two.")]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.press("a", "ctrl+j", "b", "alt+enter", "c")
            assert hand.chat.prompt.text == "a\nb\nc"
            await hand.press("tab")
            assert hand.chat.transcript.has_focus
            await hand.press("d", "!")
            assert hand.chat.prompt.has_focus
            assert hand.chat.prompt.text == "a\nb\ncd!"
            await hand.press("enter")
            await hand.hears("Two.")
            assert provider.heard[-1].body["messages"][-1]["content"] == "a\nb\ncd!"


async def test_what_was_said_comes_back_also_in_the_next_run(store: Store, tmp_path: Path) -> None:
    with StrictProvider([report(1)]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.say("One.")
            await hand.say("Two.")
            await hand.say("Two.")
        async with chatting(store, tmp_path, provider.url, "other") as hand:
            await hand.until(lambda: bool(hand.chat.prompt._sent))
            await hand.press(*"abc", "up")
            assert hand.chat.prompt.text == "Two."
            await hand.press("up")
            assert hand.chat.prompt.text == "One."
            await hand.press("down", "down")
            assert hand.chat.prompt.text == "abc"  # what was being typed


async def test_a_slash_offers_commands(store: Store, tmp_path: Path) -> None:
    with StrictProvider([report(1)]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.say("Report.")
            await hand.press("slash")
            assert {"compact", "undo", "help"} < set(offered(hand))
            await hand.press("w")
            assert offered(hand)[0] == "window"
            await hand.press("escape")
            assert (offered(hand), hand.chat.prompt.text) == ([], "/w")
            await hand.press("i", "enter")
            await hand.page("The window")
            await hand.press("slash", "s", "e", "tab")
            assert hand.chat.prompt.text == "/search "
            assert offered(hand) == []


async def test_an_at_offers_files_of_the_folder(store: Store, tmp_path: Path) -> None:
    for name in ("src/app.py", "src/apple.txt", "README.md", "hidden/x.py", "a b.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    (tmp_path / ".gitignore").write_text("hidden/\n")
    with StrictProvider([Answer("Two.")]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.press(*"see @app")
            await hand.until(lambda: offered(hand) == ["src/app.py", "src/apple.txt"])
            await hand.press("enter")
            assert hand.chat.prompt.text == "see @src/app.py "
            await hand.press(*"and @")
            await hand.until(lambda: "README.md" in offered(hand))
            assert "hidden/x.py" not in offered(hand)
            await hand.press("escape", "enter")
            await hand.hears("Two.")
            assert "names a file of the folder" in sent(provider)
            assert provider.heard[-1].body["messages"][-1]["content"] == "see @src/app.py and @"


async def test_the_last_answer_is_copied_and_conversations_have_titles(store: Store, tmp_path: Path) -> None:
    with StrictProvider([Answer("**Bold** \x1b[31mred.")]) as provider:
        async with chatting(store, tmp_path, provider.url, "first") as hand:
            await hand.enter("/copy")
            await hand.hears("there is no answer to copy yet")
            await hand.say("Why does the parser fail?")
            await hand.enter("/copy")
            await hand.hears("copied, if")
            assert hand.chat.clipboard == "**Bold** �[31mred."
        async with chatting(store, tmp_path, provider.url, "second") as hand:
            await hand.say("Something else.")
            await hand.enter("/sessions")
            await hand.sees(Choosing)
            assert "first  Why does the parser fail?" in "\n".join(hand.screen)
            await hand.press(*"parser", "enter")
            await hand.hears("Why does the parser fail?")
            assert hand.chat.backend.agent.session == "first"


async def test_up_goes_on_through_slash_commands(store: Store, tmp_path: Path) -> None:
    with StrictProvider([]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            for text in ("/nothing", "/theme", "/theme"):
                await hand.enter(text)
            hand.chat.prompt.remember(["the oldest"])
            await hand.press("up", "up", "up", "up")
            assert hand.chat.prompt.text == "the oldest"
            await hand.press("down", "down", "backspace")
            await hand.until(lambda: hand.chat.prompt.offers.display)


async def test_tab_never_loses_what_was_typed(store: Store, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with StrictProvider([Answer("x")]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.press(*"half a thought", "tab", *" goes on", "tab", "tab")
            assert hand.chat.prompt.text == "half a thought goes on"
            await hand.press(*" @nothing-like-it", "tab", "tab")
            assert hand.chat.prompt.text == "half a thought goes on @nothing-like-it"
            hand.chat.prompt.replace_with("read ")
            await hand.press(*"@not")
            await hand.until(lambda: hand.chat.prompt.offers.display)
            await hand.press("tab", "tab", *"now")
            assert hand.chat.prompt.text == "read @notes.txt now"


def test_the_parts_of_a_window_add_up_to_what_is_sent() -> None:
    for tokens in (0, 1, 499, 804, 5_003):
        assert sum(adding_up([601, 3, 200], tokens)) == tokens
    assert adding_up([], 5) == []


def test_a_terminal_without_escape_sequences_is_read_in_the_usual_way() -> None:
    assert driver(LinuxDriver, "win32") is LinuxDriver
    assert issubclass(driver(LinuxDriver, "linux"), LinuxDriver)
    assert driver(LinuxDriver, "linux") is not LinuxDriver
