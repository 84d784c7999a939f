"""`clew chat` by its keys, over a server as strict as providers are."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.widgets import Input, OptionList, TextArea

from chatting import chatting, report, sent
from clew.chat.choosing import Choosing
from clew.chat.commands import COMMANDS
from clew.chat.entries import ScreenEntry
from clew.chat.transcript import TranscriptView
from clew.chat.wrapping import Wrapped
from clew.errors import install_line
from clew.store.protocol import Store
from clew.testing.provider import Answer, Call, StrictProvider

HOSTILE = (
    "\x1b[31mred\x1b]0;title\x07 [bold]markup[/bold] [@click=app.quit]x[/] "
    + "x" * 5_000
    + " שלום السلام 👩‍👩‍👧 👍🏽 🇩🇪 ❤️ 🏳️‍🌈 漢字 e\u0301 \u202eevil\r\t|"
)


async def test_a_tool_wants_permission_and_is_granted_or_refused_it(store: Store, tmp_path: Path) -> None:
    write = Call("write_file", {"path": "new.txt", "content": "[bold]hello[/]\n"})
    script = [Answer("I write.", (write,)), Answer("A pity."), Answer("", (write,)), Answer("Done.")]
    with StrictProvider(script) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.enter("Write it.")
            asked = await hand.asked()
            assert asked.sentence == "Write new.txt?"
            assert "+[bold]hello[/]" in asked.preview
            await hand.press("n")
            await hand.hears("A pity.")
            assert "the user said no" in hand.shown
            assert not (tmp_path / "new.txt").exists()
            await hand.enter("Please.")
            await hand.asked()
            await hand.press("a")
            await hand.hears("Done.")
            assert (tmp_path / "new.txt").read_text() == "[bold]hello[/]\n"
            assert hand.chat._always == {("write_file", "write")}


MODELS = {
    "/v1/chat/completions": "{url}/v1#gpt-4o",
    "/v1/responses": "openai/gpt-5",
    "/v1/messages": "anthropic/claude-sonnet-4-5",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("path", MODELS)
async def test_every_format_asks_calls_answers_and_compacts(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    write = Call("write_file", {"path": "new.txt", "content": "hello\n"})
    script = [report(1), report(2), Answer("I write.", (write,)), Answer("Done."), Answer("Still here.")]
    with StrictProvider(script) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.setenv(key, "none")
        async with chatting(store, tmp_path, model=MODELS[path].format(url=provider.url)) as hand:
            await hand.say("Report.")
            await hand.say("Another.")
            await hand.enter("Write it.")
            await hand.asked()
            await hand.press("y")
            await hand.hears("Done.")
            await hand.until(lambda: not hand.chat.busy)
            assert (tmp_path / "new.txt").read_text() == "hello\n"
            await hand.enter("/compact file1_7.py")
            await hand.hears("Compacted: ")
            await hand.say("Are you there?")
            assert "Still here." in hand.shown
            assert {heard.path for heard in provider.heard} == {path}
            assert "file1_7.py" in sent(provider)
            assert "file1_33.py" not in sent(provider)


async def test_esc_cancels_and_gives_back_what_was_waiting(store: Store, tmp_path: Path) -> None:
    script = [Answer("word " * 4_000, pause=0.02), Answer("Hello."), Answer("Again.")]
    with StrictProvider(script) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.enter("Tell me all.")
            await hand.hears("word word")
            await hand.enter("And then?")
            assert len(provider.heard) == 1
            await hand.press("escape")
            await hand.until(lambda: not hand.chat.busy)
            assert "Stopped." in hand.shown
            assert hand.chat.prompt.text == "And then?"
            await hand.press("enter")
            await hand.hears("Hello.")
            assert "word word" in sent(provider)


async def test_what_somebody_reads_stays_where_it_is_while_an_answer_streams(store: Store, tmp_path: Path) -> None:
    script = [report(1), Answer("word " * 4_000, pause=0.02), Answer("Last.")]
    with StrictProvider(script) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.say("Report.")
            await hand.enter("Tell me all.")
            await hand.hears("word word")
            talk = hand.chat.transcript
            await hand.press("pageup")
            at, lines = talk.scroll_y, [line[:78] for line in hand.screen[:10]]  # beside the scroll bar
            said = len(hand.shown)
            await hand.until(lambda: len(hand.shown) > said + 2_000)
            assert (talk.scroll_y, [line[:78] for line in hand.screen[:10]]) == (at, lines)
            await hand.until(lambda: "more below" in "\n".join(hand.screen))
            while not talk.is_vertical_scroll_end:
                await hand.press("pagedown")
            assert talk.follows
            await hand.press("escape")
            await hand.until(lambda: not hand.chat.busy)
            assert talk.is_vertical_scroll_end


async def test_ctrl_c_stops_an_answer_clears_the_prompt_and_quits(store: Store, tmp_path: Path) -> None:
    with StrictProvider([Answer("word " * 4_000, pause=0.02)]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.enter("Tell me all.")
            await hand.hears("word word")
            await hand.press("ctrl+c")
            await hand.until(lambda: not hand.chat.busy)
            assert "stopped · Ctrl+C again to quit" in "\n".join(hand.screen)
            await hand.press(*"half")
            await hand.press("ctrl+c")
            assert "cleared, Up brings it back · Ctrl+C again to quit" in "\n".join(hand.screen)
            assert not hand.chat.prompt.text
            await hand.press("up", "ctrl+c", "x")  # another key: nobody wants to leave
            assert hand.chat.is_running
            await hand.press("ctrl+c", "ctrl+c")
            await hand.until(lambda: not hand.chat.is_running)


async def test_what_is_typed_while_a_turn_runs_waits_for_its_end(store: Store, tmp_path: Path) -> None:
    script = [Answer("One. " * 40, pause=0.02), Answer("Two.")]
    with StrictProvider(script) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.enter("First.")
            await hand.hears("One.")
            await hand.say("Second.")
            assert hand.shown.index("One.") < hand.shown.index("Second.") < hand.shown.index("Two.")


async def test_the_method_is_refused_while_busy_then_saved_obeyed_and_remembered(store: Store, tmp_path: Path) -> None:
    script = [Answer("One. " * 4_000, pause=0.02), Answer("Two."), Answer("Three.")]
    with StrictProvider(script) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.enter("Count.")
            await hand.hears("One.")
            await hand.enter("/method")
            await hand.hears("a turn is running: switch the compaction method after it ends")
            assert "context_status" not in sent(provider)
            await hand.press("escape")
            await hand.until(lambda: not hand.chat.busy)
            await hand.enter("/method")
            await hand.sees(Choosing)
            options = hand.chat.screen.query_one(OptionList)
            rows = [str(options.get_option_at_index(n).prompt) for n in range(options.option_count)]
            assert [row.split("  /")[0] for row in rows] == [
                "● Auto-compaction (current)",
                "  LLM/User-driven compaction",
            ]
            await hand.press(*"user", "enter")
            await hand.hears("LLM/User-driven compaction, from the next call on")
            assert 'compaction_method = "llm"' in (tmp_path / "home/.config/clew/config.toml").read_text()
            await hand.say("Go on.")
            assert "context_status" in sent(provider)
        async with chatting(store, tmp_path, provider.url) as hand:  # another process
            assert hand.chat.backend.controller.method == "llm"
            await hand.say("And on.")
            assert "context_status" in sent(provider)


async def test_compact_with_a_focus_expand_in_place_and_undo(store: Store, tmp_path: Path) -> None:
    with StrictProvider([report(n) for n in range(4)] + [Answer("Understood.")]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            for n in range(4):
                await hand.say(f"Report {n}, please.")
            before = (await hand.chat.backend.agent.view()).nodes
            await hand.enter("/compact file2")
            await hand.hears("Compacted: ")
            assert "recallable" in hand.shown
            stand_in = next(e for e in hand.chat.transcript.entries if e.kind == "stand-in")
            assert "file1_7.py has value 107" not in stand_in.visible
            assert "became a summary" in stand_in.visible
            await hand.enter(f"/show {stand_in.id}")
            await hand.until(lambda: stand_in.open)
            assert "file0_7.py has value 7." in stand_in.visible
            await hand.say("Is that so?")
            assert hand.shown.count("Compacted: ") == 1  # told once
            await hand.enter("/undo")
            await hand.hears("Compaction undone")
            assert (await hand.chat.backend.agent.view()).nodes[: len(before)] == before
            await hand.say("And now?")
            assert "file0_7.py has value 7." in sent(provider)


async def test_a_session_begins_with_an_edited_summary(store: Store, tmp_path: Path) -> None:
    with StrictProvider([report(1), Answer("Understood.")]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.say("Report, please. Never touch the config.")
            await hand.enter("/handoff")
            await hand.until(lambda: bool(hand.chat.screen.query(TextArea)) and len(hand.chat.screen_stack) == 2)
            text = hand.chat.screen.query_one(TextArea)
            assert "Report, please" in text.text
            text.text = "We have one report; next is the second."
            await hand.press("ctrl+s")
            await hand.hears("A new session begins")
            await hand.say("Go on.")
            first = provider.heard[-1].body["messages"][1]["content"]
            asked = "- request 1: The user: Report, please. Never touch the config."
            summary = "By the user:\nWe have one report; next is the second.\n"
            assert first.startswith(f"What the user asked for, word for word:\n{asked}\n\n{summary}")
            line = await hand.chat.backend.sessions.lineage("work")
            assert [s.cause for s in line] == ["start", "handoff"]
            await hand.enter("/lost")
            assert "facts behind stand-ins" in await hand.page("What was lost")


async def test_hostile_text_is_text_and_the_layout_stays_whole(store: Store, tmp_path: Path) -> None:
    (tmp_path / "evil.txt").write_text(HOSTILE)
    script = [Answer(HOSTILE, (Call("read_file", {"path": "evil.txt"}),)), Answer("So much for that.")]
    with StrictProvider([]) as provider:
        for size in ((80, 24), (30, 12)):
            provider.script = list(script)
            async with chatting(store, tmp_path, provider.url, f"s{size[0]}", size) as hand:
                await hand.say("Read it.")
                assert {cell_len(line) for line in hand.screen} == {size[0]}
                talk = hand.chat.transcript
                drawn = "".join(line.text for wrapped in talk._wrapped for line in wrapped.lines)
                assert "[bold]markup[/bold]" in drawn.replace("\n", "")
                assert all(word in drawn for word in "שלום السلام 👩👩👧 👍 🇩🇪 ❤ 🏳🌈 漢字".split())
                assert drawn.isprintable()
                assert hand.chat.prompt.region.bottom <= size[1]


WORDS = st.sampled_from(
    [
        "word ",
        "x" * 40,
        "\n",
        "  ",
        "👩‍👩‍👧 ",
        "漢字",
        "# head\n",
        "```\n",
        "\n| a | **b** |\n|---|--",
        "\n|",
        "- more words " * 99,
    ]
)


@given(st.lists(WORDS, max_size=30), st.integers(8, 80), st.integers(1, 40))
@settings(max_examples=30)
def test_text_that_grows_has_the_lines_that_it_has_at_once(words: list[str], width: int, step: int) -> None:
    text, entry = "".join(words), ScreenEntry("agent", "")
    grown = Wrapped(entry, width)
    for end in range(step, len(text) + step, step):
        entry.text, before = text[:end], grown.lines
        first = grown.grow()
        assert grown.lines[:first] == before[:first]
    assert grown.lines == Wrapped(ScreenEntry("agent", text), width).lines


async def test_a_first_run_explains_itself_on_one_screen(store: Store, tmp_path: Path) -> None:
    async with chatting(store, tmp_path) as hand:
        assert "No model is set. Three things to try: /model NAME" in " ".join(hand.shown.split())
        assert hand.chat.transcript.max_scroll_y == 0
        assert hand.chat.focused is hand.chat.prompt
        await hand.say("Hello?")
        assert "no model is set: `clew config set agent.model NAME`; or choose a model with /model" in hand.shown


async def test_another_process_goes_on_where_one_was(store: Store, tmp_path: Path) -> None:
    with StrictProvider([report(1), Answer("Two.")]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.say("Report.")
        async with chatting(store, tmp_path, provider.url, "other") as hand:
            assert "Three things to try" in hand.shown
            await hand.enter("/resume work")
            await hand.hears("file1_7.py has value 107.")
            await hand.enter("/compact reports")  # before anything is sent
            await hand.hears("ompact")
            await hand.say("Go on.")
            assert provider.heard[-1].body["messages"][-1]["content"] == "Go on."


async def test_pins_instructions_summaries_and_models(store: Store, tmp_path: Path) -> None:
    with StrictProvider([report(1), Answer("Two.")]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.say("Report.")
            await hand.enter("/pin")
            await hand.sees(Choosing)
            await hand.press(*"user", "enter")
            await hand.hears("stays as it is from now on")
            assert len((await store.load("default", (await hand.chat.backend.agent.view()).branch)).pinned) == 1
            await hand.enter("/save notes.md")
            await hand.hears("characters written to")
            assert "Report." in (tmp_path / "notes.md").read_text()
            await hand.enter("/instructions")
            await hand.until(lambda: len(hand.chat.screen.query(Input)) == 2)
            await hand.press(*"60%", "enter", *"brief", "enter")
            await hand.hears("The next call has these instructions")
            await hand.enter("/method llm")
            await hand.hears("LLM/User-driven compaction, from")
            await hand.say("Go on.")
            assert "used_pct >= 60" in sent(provider)
            await hand.enter(f"/model {provider.url}/v1#gpt-4o-mini")
            await hand.hears("gpt-4o-mini answers from now on")
            await hand.say("Who are you?")
            assert provider.heard[-1].body["model"] == "gpt-4o-mini"
            await hand.enter("/nonsense")
            await hand.hears("there is no /nonsense")


async def test_every_command_is_offered_after_a_slash(store: Store, tmp_path: Path) -> None:
    assert len({c.slash for c in COMMANDS}) == len(COMMANDS)
    with StrictProvider([report(1)]) as provider:
        async with chatting(store, tmp_path, provider.url, size=(140, 45)) as hand:
            await hand.say("Report.")
            await hand.press("slash")
            assert hand.chat.prompt.offers.option_count == len(COMMANDS)
            await hand.press(*"lineage", "enter")
            await hand.until(lambda: "Lineage of work" in str(hand.chat.screen.query(".title").first().render()))
            await hand.press("escape")
            await hand.enter("/window")
            assert "reserve" in await hand.page("The window")
            await hand.enter("/search file1_7.py")
            await hand.sees(Choosing)
            await hand.press("enter")
            assert "file1_7.py has value 107." in await hand.page("What ")
            hand.chat.transcript.post_message(TranscriptView.Opened(ScreenEntry("stand-in", "gone", id="0123456789")))
            await hand.hears("What did that stand for?: ")
            await hand.enter("/theme")
            await hand.hears("light, saved in")
        async with chatting(store, tmp_path, provider.url) as hand:
            assert not hand.chat.current_theme.dark


def test_the_meter_says_in_words_what_the_bar_shows() -> None:
    from clew.chat.backend import WindowFilling
    from clew.chat.meter import WindowMeter
    from clew.core.items import Digests, Frame, Item, Node
    from clew.core.limits import Budget
    from clew.core.view import View
    from clew.sessions.window import Window
    from clew.tokens.target import Target

    nodes = (Node("1", "1", Item("text", "user", "Report. " * 100)), Node("2", "2", Item("result", "tool", "7 " * 300)))
    view = View(
        Frame("openai_chat", "gpt-4o", ({"role": "system", "content": "Be brief. " * 50},)), nodes, Digests(b"", "")
    )
    target = Target.of(Budget(window=1_300, reserve=100, model="gpt-4o"))
    own = target.size(view).tokens
    meter = WindowMeter()
    window = Window(view, None, own, target.around(view.frame))
    meter._filling = WindowFilling(window, 0.5, 2)
    meter._who = "gpt-4o · auto"
    framed = target.meter.frame(view.frame).tokens
    used, room = own - framed, 1_200 - framed
    assert meter.words == (
        f"{100 * used // room}% full · {used:,} of {room:,} · window 1,300 · $0.5000 · gpt-4o · auto · compacted 2× · "
        f"system and tools {framed} · reserve 100"
    )
    assert meter.kinds.split(", ")[0] == f"results {round(100 * target.meter.node(nodes[1]).tokens / own)}%"


@pytest.mark.few(1)
@pytest.mark.parametrize("args", [("chat",), ("chat", "--last")])
def test_without_textual_it_says_what_to_install(args: tuple[Any, ...]) -> None:
    code = "import sys; sys.modules['textual'] = None; import clew.cli; clew.cli.main()"
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"clew: `clew chat` needs Textual: {install_line('chat')}\n")


async def test_what_is_told_while_the_screen_is_taken_down_is_no_error(store: Store, tmp_path: Path) -> None:
    with StrictProvider([Answer("Two.")]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.say("Report.")
            await hand.chat.screen.remove_children()  # as at the end, while the clock and a turn still go on
            hand.chat._tick()
            hand.chat.say("Cancelled.")
            await hand.chat._look()


async def test_what_left_the_window_is_pinned_by_its_id(store: Store, tmp_path: Path) -> None:
    with StrictProvider(lambda _: report(len(provider.heard))) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            for n in range(4):
                await hand.say(f"Report {n}.")
            backend = hand.chat.backend
            view = await backend.agent.view()
            second = next(n for n in view.nodes if n.item.text.startswith("Report 2."))
            await hand.enter("/compact file1_7.py")
            await hand.hears("Compacted: ")
            assert second.id not in {n.id for n in (await backend.agent.view()).nodes}
            await hand.enter(f"/pin {second.id[:10]}")
            await hand.hears("is quoted in the window from the next request on")
            await hand.say("Go on.")
            assert "file2_59.py has value 259." in sent(provider)
            await hand.enter(f"/pin {second.id[:10]}")
            await hand.hears("is no longer pinned")


@pytest.mark.few(1)
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("terminal", ["none", "stdin", "stdout"])
def test_without_a_terminal_it_says_so_and_ends(terminal: str) -> None:
    import pty

    ours, theirs = pty.openpty()
    ends: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        **({} if terminal == "none" else {terminal: theirs}),
    }
    done = subprocess.run([sys.executable, "-m", "clew.cli", "chat"], stderr=subprocess.PIPE, check=False, **ends)
    os.set_blocking(ours, False)
    with pytest.raises(BlockingIOError):
        os.read(ours, 100)  # no escape codes
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, done.stdout or b"") == (2, b"")
    assert done.stderr.decode().startswith("clew: `clew chat` needs a terminal for input and output")
    assert (done.stderr.count(b"\n"), b"\x1b" in done.stderr) == (1, False)
