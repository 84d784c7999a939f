"""The page in Debian's chromium, beside a gateway through which agents talk: all that people do on it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from clew import Request, run
from clew.core.bridge import cross
from clew.core.items import Frame
from paging import PATIENCE, Looked, chromium, looking, tab

SHOTS = os.environ.get("CLEW_SHOTS")  # a folder: pictures for the docs are taken there


# One browser for all of them: starting one takes longer than most of what is done in it.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looked]:
    """A gateway through which two agents have talked, one of them far past its window."""
    with looking(tmp_path_factory.mktemp("page")) as site:
        site.talk("checkout", 40)
        site.talk("docs", 3, "Write docs for the export command.")
        yield site


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png")


def opened(page: Page, name: str = "checkout") -> None:
    """Go to a conversation, as somebody does who looks for it in the list."""
    page.locator(".list .row", has_text=name).locator(".title a").first.click()
    expect(page.locator("#window .piece").first).to_be_visible()


def confirmed(page: Page, button: str) -> None:
    """Have it done, read that it was, and go on."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=button, exact=True).click()
    expect(dialog.locator(".done")).to_be_visible()
    page.keyboard.press("Escape")


def test_the_list_says_what_each_conversation_came_to(browser: Browser, site: Looked) -> None:
    with tab(browser, site.url) as page:
        row = page.locator(".list .row", has_text="checkout").first
        expect(row).to_contain_text("Fix the checkout test in tests/test_checkout.py")
        for said in ("opencode", "gpt-4o", "shop"):
            expect(row).to_contain_text(said)
        expect(row.locator(".saved")).to_contain_text("%")
        expect(row.locator("svg.gauge")).to_be_visible()
        shot(page, "list")


def test_a_conversation_shows_its_turns_and_its_window(browser: Browser, site: Looked) -> None:
    with tab(browser, site.url) as page:
        opened(page)
        expect(page.locator(".chart canvas")).to_be_visible()
        expect(page.locator("#window .fill svg").first).to_be_visible()
        stand_in = page.locator(".piece.standing").first
        expect(stand_in).to_contain_text("Chapter, written by code")
        stand_in.locator("summary").click()
        expect(stand_in.locator(".behind .piece").first).to_be_visible()
        call = stand_in.locator(".piece", has_text="read_file").first
        expect(call.locator("summary")).to_contain_text("characters in 60 lines")
        call.locator("summary").click()
        expect(call.locator(".given")).to_contain_text("src/module_")
        expect(call.locator("pre.body [class^=h-k]").first).to_have_text("def")
        shot(page, "conversation")


def test_a_slider_shows_what_the_model_saw_in_each_call(browser: Browser, site: Looked) -> None:
    with tab(browser, site.url) as page:
        opened(page)
        steer, slider = page.locator(".steer"), page.locator("#call")
        expect(steer).to_contain_text("as the model saw it now")
        slider.focus()
        page.keyboard.press("Home")
        expect(page.locator(".callfacts")).to_be_visible()
        expect(steer).to_contain_text("in call 1 of 40")
        expect(page.locator("#window .piece.standing")).to_have_count(0)
        expect(page.locator("#window .v-user")).to_have_count(1)
        expect(slider).to_be_focused()
        page.locator(".callfacts summary").click()
        expect(page.locator(".rawslot")).to_contain_text('"role": "user"')
        one = f"/clew/c/{site.branch('checkout')}/window?call="
        first = next(n for n in range(1, 41) if b"Compaction 1" in site.get(f"{one}{n}").raw)
        slider.evaluate("(it, n) => { it.value = n; it.dispatchEvent(new Event('change', { bubbles: true })); }", first)
        expect(page.locator(".folded").first).to_contain_text("Compaction 1 before this call")
        expect(page.locator(".callfacts")).to_contain_text("Compact? Yes")
        shot(page, "call")
        slider.focus()
        page.keyboard.press("End")
        expect(steer).to_contain_text("as the model saw it now")


def test_only_what_is_on_the_screen_is_asked_for(browser: Browser, tmp_path: Path) -> None:
    with looking(tmp_path, window=150_000) as site:
        site.talk("run", 90)
        with tab(browser, site.url) as page:
            opened(page, "run")
            pieces = page.locator("#window .piece")
            expect(page.locator("#window .v-user", has_text="step 89")).to_be_in_viewport()
            some = pieces.count()
            assert some < 90, "the rest is not asked for"
            scroller = page.locator(".pieces")
            scroller.evaluate("it => it.scrollTop = it.querySelector('.piece').offsetTop - 20")
            top = pieces.first.element_handle()
            at = top.evaluate("it => it.getBoundingClientRect().top")
            expect(page.locator("#window[data-looked]")).to_be_attached()
            assert some < pieces.count() < 180
            assert top.evaluate("it => it.getBoundingClientRect().top") == pytest.approx(
                at, abs=1
            )  # what is read does not move
            scroller.evaluate("it => it.scrollTop = 0")
            expect(page.locator("#window .v-user", has_text="Fix the checkout")).to_be_visible()


def test_a_compaction_is_seen_from_both_sides(browser: Browser, site: Looked) -> None:
    with tab(browser, site.url) as page:
        opened(page)
        page.locator("#l-folds summary").click()
        page.locator(".sessions a").last.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Compaction 1")
        expect(page.locator(".left li").first).to_be_visible()
        expect(page.locator(".standin pre").first).to_contain_text("work log")
        expect(page.locator("#h-facts")).to_contain_text("Facts behind stand-ins")
        page.locator(".standin summary").first.click()
        expect(page.locator(".behind .piece").first).to_be_visible()
        shot(page, "compaction")


def test_what_is_done_is_confirmed_first_and_seen_at_once(browser: Browser, tmp_path: Path) -> None:
    with looking(tmp_path) as site:
        site.talk("checkout", 14)
        with tab(browser, site.url) as page:
            opened(page)
            marks = page.locator(".sessions li")
            before = marks.count()

            page.get_by_role("button", name="Compact …").click()
            dialog = page.get_by_role("dialog")
            expect(dialog).to_contain_text("tokens of")
            dialog.get_by_label("What matters most").fill("module_3")
            dialog.get_by_role("button", name="Preview").click()
            expect(dialog.locator(".standin pre").first).to_be_visible()
            shot(page, "preview")
            dialog.get_by_role("button", name="Cancel").click()
            assert marks.count() == before, "a look changes nothing"

            page.get_by_role("button", name="Compact …").click()
            dialog.get_by_role("button", name="Compact", exact=True).click()
            expect(dialog).to_contain_text("Compacted: ")
            dialog.get_by_role("button", name="Close").click()
            expect(marks).to_have_count(before + 1)

            page.get_by_role("button", name="Undo …").click()
            expect(dialog).to_contain_text("The window grows from")
            dialog.get_by_role("button", name="Undo", exact=True).click()
            expect(dialog).to_contain_text("Undone:")
            page.keyboard.press("Escape")
            expect(page.locator(".sessions li.undone")).to_have_count(1)

            page.get_by_role("button", name="Who decides …").click()
            dialog.get_by_label("llm").check()
            confirmed(page, "Switch")
            expect(page.locator(".figures")).to_contain_text("llm")

            page.locator(".piece").nth(2).get_by_role("button", name="pin").click()
            confirmed(page, "Pin")
            expect(page.locator(".piece b", has_text="pinned")).to_have_count(1)

            page.get_by_role("button", name="Tags …").click()
            dialog.get_by_label("Tags").fill("nightly shop")
            confirmed(page, "Save")
            expect(page.locator(".tag", has_text="nightly")).to_be_visible()

            page.get_by_role("button", name="Instructions …").click()
            dialog.get_by_label("How to sum up").fill("Name every file.")
            dialog.get_by_role("button", name="Save").click()
            expect(dialog).to_contain_text("kept in")
            page.keyboard.press("Escape")

            page.get_by_role("button", name="Fork …", exact=True).click()
            dialog.get_by_label("Name of the new conversation").fill("another-try")
            dialog.get_by_role("button", name="Fork", exact=True).click()
            expect(dialog).to_contain_text("goes on from here")
            page.keyboard.press("Escape")
            expect(page.locator(".tree")).to_contain_text("fork")

            with page.expect_download() as file:
                page.get_by_role("button", name="Export").click()
            assert Path(file.value.path()).read_bytes().startswith(b'{"clew":')

            page.get_by_role("button", name="Archive …").click()
            confirmed(page, "Archive")
            page.get_by_role("link", name="Conversations").click()
            expect(page.locator(".list")).not_to_contain_text("nightly")
            page.get_by_role("link", name="archived").click()
            expect(page.locator(".list")).to_contain_text("nightly")


def test_what_agents_do_is_seen_while_they_do_it(browser: Browser, tmp_path: Path) -> None:
    with looking(tmp_path) as site, tab(browser, site.url) as page:
        expect(page.locator(".empty")).to_contain_text("No agent has talked through clew yet")
        shot(page, "empty")
        site.talk("live", 1)
        expect(page.locator(".list .row")).to_have_count(1)
        expect(page.locator(".empty")).to_be_hidden()
        site.talk("second", 1, "Refactor the parser.")
        expect(page.locator(".list .row")).to_have_count(2)
        opened(page, "second")
        expect(page.locator(".figures div").first).to_contain_text("1")
        site.talk("second", 2, "Refactor the parser.")  # from the first turn on, which comes again
        expect(page.locator(".figures div").first).to_contain_text("3")
        expect(page.locator("#window")).to_contain_text("module_1.py")


def test_what_somebody_reads_stays_while_agents_go_on(browser: Browser, tmp_path: Path) -> None:
    with looking(tmp_path) as site:
        said = site.talk("run", 40)
        with tab(browser, site.url) as page:
            opened(page, "run")
            piece = page.locator(".piece.standing").first
            piece.locator("summary").click()
            expect(piece.locator(".behind .piece").first).to_be_visible()
            page.locator("#lineage > summary").click()
            at = "it => it.getBoundingClientRect().top"
            before = piece.evaluate(at)
            site.talk("run", 1, "And now for something else.", said)
            expect(page.locator("#newer")).to_be_visible()
            assert piece.evaluate(at) == pytest.approx(before, abs=1), "what is read does not move"
            expect(piece.locator(".behind .piece").first).to_be_visible()
            assert not page.locator("#lineage").evaluate("it => it.open")
            piece.locator(".behind details summary").first.click()
            more = page.get_by_role("button", name="more characters")
            those = more.count()
            more.first.click()
            expect(more).to_have_count(those - 1)
            page.get_by_role("button", name="The window has changed").click()
            expect(page.locator("#window .pieces")).to_contain_text("something else")
            expect(page.locator("#newer")).to_be_hidden()


def test_tabs_that_nobody_sees_leave_their_connections_to_others(browser: Browser, site: Looked) -> None:
    context = browser.new_context()
    for _ in range(8):  # a browser has six for an address
        page = context.new_page()
        page.goto(site.url, timeout=PATIENCE)
        expect(page.locator(".list .row").first).to_be_visible()
        page.evaluate(HIDDEN, True)
    page.evaluate(HIDDEN, False)
    site.talk("seen again", 1)
    expect(page.locator(".list")).to_contain_text("seen again")
    context.close()


def test_search_marks_what_was_asked_for(browser: Browser, site: Looked) -> None:
    with tab(browser, site.url) as page:
        page.keyboard.press("/")
        page.keyboard.type("function_7_3")
        page.keyboard.press("Enter")
        expect(page.locator(".hits mark").first).to_be_visible()
        shot(page, "search")
        page.locator(".hits a").first.click()
        led = page.locator(".led")  # in the transcript, behind the stand-in that it was folded into
        expect(led).to_be_in_viewport()
        expect(led).to_contain_text("function_7_3")


def test_two_calls_are_compared(browser: Browser, site: Looked) -> None:
    checkout = f"/clew/c/{site.branch('checkout')}"
    with tab(browser, site.url) as page:
        page.goto(site.url + checkout)  # in the list a fork of it, which is newer, may have its name
        slider = page.locator("#call")
        slider.focus()
        page.keyboard.press("Home")
        expect(page.locator(".callfacts")).to_be_visible()
        expect(page.locator("#window-figures > span[hidden]")).to_have_count(0)  # its bar was counted
        folded = next(n for n in range(1, 41) if b"Compaction 1" in site.get(f"{checkout}/window?call={n}").raw)
        compare = page.get_by_role("button", name="Compare")
        slider.evaluate(
            "(it, n) => { it.value = n; it.dispatchEvent(new Event('change', { bubbles: true })); }", folded
        )
        # What is said of call 1 is no button any more, while that of the other one is on its way.
        compare.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"From call {folded - 1} to call {folded}")
        expect(page.locator(".folded")).to_contain_text("Compaction 1 in between")
        expect(page.locator(".left.in")).to_contain_text("work log")
        expect(page.locator(".left.out")).to_contain_text("read_file")
        shot(page, "compare")
        page.locator(".left.out a").first.click()
        expect(page.locator(".led")).to_be_in_viewport()


def test_the_list_is_narrowed(browser: Browser, site: Looked) -> None:
    with tab(browser, site.url) as page:
        rows = page.locator("#rows > .row")
        before = rows.count()
        page.get_by_label("By cost").select_option("$10 or more")
        expect(page.locator(".empty")).to_contain_text("No conversation is like that")
        page.get_by_role("link", name="Clear").click()
        page.get_by_label("By date").select_option("last day")
        expect(page.get_by_label("By date")).to_have_value("1")
        assert rows.count() == before


def test_states_of_one_conversation_are_one_line(browser: Browser, tmp_path: Path) -> None:
    with looking(tmp_path) as site:
        said = site.talk("run", 6)
        for turn in range(1, 5):  # its client takes out a call of an earlier turn each time
            said = site.talk("run", 1, f"Trimmed {turn} times.", [*said[:2], *said[5:]])
        with tab(browser, site.url) as page:
            expect(page.locator("#rows > .row")).to_have_count(1)
            opened(page, "run")
            expect(page.locator("#window")).to_contain_text("Trimmed 4 times")


def test_all_of_it_can_be_reached_by_keys(browser: Browser, site: Looked) -> None:
    with tab(browser, site.url) as page:
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        page.keyboard.press("Enter")
        expect(page.locator("#window .piece").first).to_be_visible()
        page.keyboard.press("c")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()


@pytest.mark.few(2)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1360])
def test_it_fits_every_screen_and_can_be_read(browser: Browser, site: Looked, theme: str, width: int) -> None:
    with tab(browser, site.url, color_scheme=theme, viewport={"width": width, "height": 844}) as page:
        for name in ("list", "conversation", "overall"):
            if name == "conversation":
                opened(page)
            elif name == "overall":
                page.get_by_role("link", name="Overall").click()
                expect(page.locator("#sums")).to_contain_text("saved")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
                f"{name} is wider than the screen"
            )
            pale = page.evaluate(CONTRAST)
            assert not pale, f"{name}: too pale to be read: {pale}"
            unnamed = page.evaluate(UNNAMED)
            assert not unnamed, f"{name}: nobody can tell what this is: {unnamed}"
            shot(page, f"{name}-{theme}-{width}")


def test_the_theme_can_be_chosen_and_stays(browser: Browser, site: Looked) -> None:
    with tab(browser, site.url, color_scheme="light") as page:
        light = page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor")
        page.get_by_role("button", name="Switch between dark and light").click()
        page.reload()
        dark = page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor")
        assert dark != light
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor") == light


# Another tab is in front of this one, or not any more.
HIDDEN = """hidden => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
# Texts with less than 4.5 to 1 between them and what is behind them (WCAG AA).
CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data; };
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
  const behind = (element) => { const stack = [];
    for (let at = element; at; at = at.parentElement) stack.unshift(getComputedStyle(at).backgroundColor);
    canvas.clearRect(0, 0, 1, 1);
    for (const color of stack) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest("svg, .undone, [disabled], .skip")) continue;
    const back = behind(element), a = light(rgb(getComputedStyle(element).color)), b = light(back);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const said = element.textContent.trim().slice(0, 30);
    if (ratio < 4.5) found.push(`${element.tagName}.${element.className} ${said} ${ratio.toFixed(1)}`);
  }
  return [...new Set(found)].slice(0, 8);
}"""
UNNAMED = """() => [...document.querySelectorAll("button, a[href], input:not([type=hidden]), select, textarea")]
  .filter((e) => e.checkVisibility() && !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length))
  .map((e) => e.outerHTML.slice(0, 120))"""


def test_a_limit_is_forgotten_where_it_is_shown(browser: Browser, site: Looked) -> None:
    frame = Frame("openai_chat", "my-local", served="near")
    run(cross(site.gateway.engine.limits.windows.learn("default", frame, "tokens", 16_000)))
    with tab(browser, site.url, viewport={"width": 390, "height": 800}) as page:
        page.get_by_role("link", name="Overall").click()
        row = page.locator("#limits tr", has_text="my-local")
        expect(row).to_contain_text("16,000 tokens")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        row.get_by_role("button").click()
        confirmed(page, "Forget")
        expect(row).to_have_count(0)


MARKUP = '<b data-hostile onclick="hacked=1">"' + "'</b></script><script>hacked=1</script>{{7*7}}"
HOSTILE = f"{MARKUP}\u202e\u200f{'W' * 200}"


@pytest.mark.parametrize("width", [390, 1360])
def test_names_that_would_be_markup_are_words_wherever_they_stand(browser: Browser, tmp_path: Path, width: int) -> None:
    """A tool, a path, a model, a tag, a conversation and a folder can be called anything."""
    with looking(tmp_path) as site:
        engine = site.gateway.engine
        said: list[dict[str, Any]] = [
            {"role": "system", "content": f"You are opencode.\nWorking directory: /srv/{HOSTILE}"}
        ]
        said += [{"role": "user", "content": f"Never touch {HOSTILE}. Fix it."}]
        for turn in range(24):
            function = {"name": HOSTILE, "arguments": json.dumps({"path": f"{HOSTILE}{turn}", HOSTILE: HOSTILE})}
            said.append(
                {"role": "assistant", "tool_calls": [{"id": f"c{turn}", "type": "function", "function": function}]}
            )
            said.append({"role": "tool", "tool_call_id": f"c{turn}", "content": f"{turn} {HOSTILE} " * 4})
            answer = f"# {HOSTILE}\n\n[{HOSTILE}](javascript:hacked=1) `{HOSTILE}`"
            said.append({"role": "assistant", "content": answer})
            said.append({"role": "user", "content": f"Next {turn}."})
            asked = Request({"model": HOSTILE, "messages": said}, session=HOSTILE)
            view = run(cross(engine.prepare(asked)))
        run(cross(engine.store.label("default", view.branch, [HOSTILE])))
        with tab(browser, site.url, viewport={"width": width, "height": 844}) as page:

            def harmless(where: str) -> None:
                assert page.evaluate("typeof hacked") == "undefined", where
                assert not page.locator("[data-hostile]").count(), where
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{where} is too wide"

            expect(page.locator("#filters select").first).to_be_visible()
            harmless("the list")
            one = f"{site.url}/clew/c/{view.branch}"
            page.goto(one)
            expect(page.locator("#window .piece.standing").first).to_be_visible()
            page.locator("#rules > summary").click()
            expect(page.locator("#rules .rules li, #rules .slot .dim").first).to_be_visible()
            for folded in page.locator("#window .piece details:not(.origin) > summary").all()[:6]:
                folded.click()
            harmless("the conversation")
            for act in ("compact", "tag", "recall", "fork"):
                page.locator(f"#act-{act}").click()
                expect(page.locator("#dialog-title")).to_be_visible()
                if act == "recall":
                    page.get_by_label("A question").fill("Next 3")
                    page.keyboard.press("Enter")
                    expect(page.locator(".found a").first).to_be_visible()
                harmless(act)
                page.keyboard.press("Escape")
            page.locator("#call").focus()
            page.keyboard.press("Home")
            page.locator(".callfacts summary").click()
            expect(page.locator(".rawslot pre").first).to_contain_text("data-hostile")
            harmless("a call")
            page.goto(f"{one}/compare?from=2&to=20")
            harmless("two calls")
            page.goto(one)
            page.locator("#l-folds summary").click()
            page.locator(".sessions a").last.click()
            expect(page.locator(".left li").first).to_be_visible()
            harmless("the compaction")
            page.goto(f"{site.url}/clew/overall")
            expect(page.locator("#sums .figures")).to_be_visible()
            harmless("overall")
            page.goto(f"{site.url}/clew/search?q=Next")
            harmless("the search")
            page.goto(f"{site.url}/?tag={quote(HOSTILE)}")
            expect(page.locator(".list .row")).to_have_count(1)
            harmless("the list of a tag")


def test_the_log_is_asked_and_leads_to_where_it_was_said(browser: Browser, site: Looked) -> None:
    with tab(browser, site.url) as page:
        page.goto(f"{site.url}/clew/c/{site.branch('checkout')}")
        expect(page.locator("#window .piece").first).to_be_visible()
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("ask the log of this conversation")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()  # keys that are pressed in it are its own
        page.keyboard.press("r")
        dialog.get_by_label("A question").fill("function_7_3")
        dialog.get_by_role("button", name="Ask").click()
        expect(dialog.locator("pre")).to_contain_text("function_7_3")
        shot(page, "recall")
        dialog.locator(".found a").first.click()
        expect(page.locator(".led")).to_be_in_viewport()
