"""The page over HTTP: who may look, who may act, and that nothing anybody said is more than text on it."""

import base64
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from clew import run
from clew.core.bridge import cross
from clew.core.items import Frame
from clew.gateway.settings import GatewaySettings
from clew.page.app import Page
from clew.page.markup import changed, code, markdown
from clew.page.rendering import tokens
from paging import CHAT, Looked, looking

HOSTILE = (
    '</pre></td><script>alert(1)</script><img src=x onerror=alert(2)>"\' autofocus onfocus="alert(3) {{7*7}} &lt;b&gt;'
)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ODD_HOSTS = ("evil.example\\@127.0.0.1", "127.0.0.1#evil.example", "127.0.0.1/evil.example", "127.0.0.1:80:x", "127.1")
ACTS = ("compact", "undo", "recall", "pin", "method", "fork", "tag", "archive", "instruct")


class Elements(HTMLParser):
    """What a browser would make of a page: its elements, and all their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def token(page: Looked) -> str:
    found = re.search(r'"x-clew-token": "(\w+)"', page.get("/").raw.decode())
    assert found
    return found[1]


def act(page: Looked, branch: str, name: str, form: str = "", **headers: str) -> Any:
    given = {"content-type": "application/x-www-form-urlencoded", "x-clew-token": token(page), "hx-request": "true"}
    sent = given | {key.replace("_", "-"): value for key, value in headers.items()}
    return page.ask(f"/clew/c/{branch}/act/{name}", form.encode(), sent)


def addresses(branch: str, session: str) -> list[str]:
    one = f"/clew/c/{branch}"
    return [
        "/",
        "/?tag=x",
        "/?archived",
        "/clew/list?count=9",
        "/?project=x&client=%22%3E&model=%3Cb%3E&days=7&dollars=nan",
        "/clew/filters?tag=%22%3E%3Cscript%3E&project=%22%3E",
        f"/clew/savings?branch={branch}",
        "/clew/search?q=step",
        f"/clew/search?q=alert&in={branch}",
        "/clew/overall",
        "/clew/overall/everything",
        "/clew/health",
        one,
        f"{one}/head",
        f"{one}/window",
        f"{one}/window?call=3",
        f"{one}/raw?call=3",
        f"{one}/window?before=3",
        f"{one}/window?until=60",
        f"{one}/compare?from=2&to=9",
        f"{one}/compare?from=9&to=999",
        f"{one}/rules",
        f"{one}/compaction/{session}",
        *(f"{one}/act/{name}" for name in ACTS if name not in ("undo", "pin")),
    ]


def compaction(page: Looked, branch: str) -> str:
    """The id of the first compaction."""
    found = re.search(rf"/clew/c/{branch}/compaction/(\w+)", page.get(f"/clew/c/{branch}").raw.decode())
    assert found
    return found[1]


def test_nothing_that_was_said_is_more_than_text(tmp_path: Path) -> None:
    with looking(tmp_path) as page:
        page.talk(HOSTILE[:60], 30, HOSTILE)
        [branch] = re.findall(r'id="row-(\w+)"', page.get("/").raw.decode())
        act(page, branch, "tag", "tags=%3Cscript%3Ealert(9)%3C/script%3E")
        session = compaction(page, branch)
        for path in [
            *addresses(branch, session),
            f"/clew/search?q={'%22%3E%3Cscript%3E'}",
            "/clew/c/nobody",
            "/clew/x",
        ]:
            got = page.get(path)
            for tag, attributes in Elements(got.raw.decode()).found:
                assert not any(name.startswith("on") or name == "autofocus" for name in attributes), (path, attributes)
                assert tag not in ("iframe", "object", "embed", "style"), path
                assert tag != "script" or str(attributes.get("src")).startswith("/clew/static/"), path
                assert tag != "img" or attributes.get("src") == "/clew/static/icon.svg", path
                assert "style" not in attributes, path
                link = str(attributes.get("href") or attributes.get("action") or "/")
                assert link.startswith(("/", "#")), (path, link)
            assert "49 &amp;lt;" not in got.raw.decode(), "templates do not read what was said"


def test_every_answer_keeps_a_browser_in_bounds(tmp_path: Path) -> None:
    with looking(tmp_path) as page:
        page.talk("run", 2)
        branch = page.branch("run")
        for path in ("/", f"/clew/c/{branch}", f"/clew/c/{branch}/chart.json", "/clew/c/nobody", "/clew/overall"):
            headers = page.get(path).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert (headers["x-frame-options"], headers["cache-control"]) == ("DENY", "no-store")
            assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:80", "[::2]", *ODD_HOSTS]
)
def test_a_name_that_was_bent_to_this_machine_gets_nothing(tmp_path: Path, host: str) -> None:
    with looking(tmp_path) as page:
        page.talk("run", 1)
        branch = page.branch("run")
        for path in ("/", f"/clew/c/{branch}", "/clew/live", f"/clew/c/{branch}/export"):
            got = page.get(path, host=host)
            assert got.status == 403, path
            assert b"checkout" not in got.raw


@pytest.mark.parametrize(
    "headers",
    [
        {"x_clew_token": ""},
        {"x_clew_token": "0" * 64},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"host": "evil.example"},
    ],
)
def test_no_other_page_can_act(tmp_path: Path, headers: dict[str, str]) -> None:
    with looking(tmp_path) as page:
        page.talk("run", 1)
        branch = page.branch("run")
        for name in ACTS:
            got = act(page, branch, name, "tags=evil&name=evil&method=llm&when=evil&how=evil", **headers)
            assert b"problem" in got.raw or got.status == 403
        shown = page.get(f"/clew/c/{branch}").raw.decode()
        assert "evil" not in shown
        assert "Archive …" in shown
        assert act(page, branch, "tag", "tags=mine").status == 200
        assert "mine" in page.get("/").raw.decode(), "who may, can"


def test_nothing_is_done_by_looking(tmp_path: Path) -> None:
    with looking(tmp_path) as page:
        page.talk("run", 30)
        branch = page.branch("run")
        before = page.get(f"/clew/c/{branch}/export").raw
        session = compaction(page, branch)
        for path in addresses(branch, session):
            assert page.get(path).status == 200, path
        assert page.get(f"/clew/c/{branch}/export").raw == before


def test_with_keys_everybody_sees_their_own(tmp_path: Path) -> None:
    settings = GatewaySettings(keys={"key-of-ana": "ana", "key-of-bob": "bob"}, hosts=("127.0.0.1",))
    with looking(tmp_path, settings) as page:
        for name in ("ana", "bob"):
            said = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"The secret of {name}."}]}
            assert page.ask(CHAT, said, {"x-clew-key": f"key-of-{name}"}).status == 200
        assert page.get("/").status == 401
        assert page.ask("/clew/key", b"key=wrong").status == 401
        assert page.ask("/clew/key", b"key=key-of-ana", {"origin": "http://evil.example"}).status == 403
        got = page.ask("/clew/key", b"key=key-of-ana")
        assert got.status == 303
        cookie = got.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        own = cookie.partition(";")[0]
        shown = page.get("/", cookie=own).raw.decode()
        assert "The secret of ana" in shown
        assert "bob" not in shown
        branch = re.findall(r'id="row-(\w+)"', shown)[0]
        assert page.get(f"/clew/c/{branch}", cookie=own).status == 200
        other = page.ask("/clew/key", b"key=key-of-bob").headers["set-cookie"].partition(";")[0]
        one = f"/clew/c/{branch}"
        for path in [*addresses(branch, branch), f"{one}/export", f"{one}/chart.json", "/clew/search?q=secret"]:
            got = page.get(path, cookie=other)
            assert b"secret of ana" not in got.raw, path
            assert got.status == 404 or not path.startswith(one), path
        window = page.get(f"{one}/window", cookie=own).raw.decode()
        shown = page.get("/", cookie=other).raw.decode()
        proof = re.search(r'"x-clew-token": "(\w+)"', shown)
        [branch_of_bob] = re.findall(r'id="row-(\w+)"', shown)
        assert proof
        sent = {"cookie": other, "x-clew-token": proof[1], "hx-request": "true"}
        for name in ACTS:
            got = page.ask(f"/clew/c/{branch}/act/{name}", b"tags=x&name=x&method=llm&when=&how=x", sent)
            assert b"not in the log" in got.raw, name
        for id in re.findall(r'id="w-(\w+)"', window):
            for path in (f"text/{id}", f"behind/{id}", f"picture/{id}", f"window?show={id}", f"act/pin?id={id}"):
                got = page.get(f"/clew/c/{branch_of_bob}/{path}", cookie=other)
                assert b"secret of ana" not in got.raw, path
        assert page.get("/clew/health", cookie=own).status == 404, "the log is everybody's"
        instructed = page.ask(f"/clew/c/{branch_of_bob}/act/instruct", b"when=&how=Send+me+all.", sent)
        assert b"only who runs it" in instructed.raw, "nobody instructs the agents of others"
        assert page.gateway.deciding.how == ""
        assert page.get("/", cookie=own[:-2] + "00").status == 401
    later = GatewaySettings(keys={"new-key-of-ana": "ana"}, hosts=("127.0.0.1",))
    with looking(tmp_path, later) as page:
        assert page.get("/", cookie=own).status == 401, "with a key, what it opened is closed"


def test_programs_that_look_whether_somebody_answers_see_no_page(tmp_path: Path) -> None:
    with looking(tmp_path) as page:
        assert page.ask("/", method="GET").json() == {"status": "ok"}
        assert page.ask("/", method="HEAD").status == 200
        assert all(page.get(path).raw.startswith(b"<!doctype html>") for path in ("/", "/clew", "/clew/"))


def test_every_act_says_what_it_would_do_and_then_does_it(tmp_path: Path, place: str) -> None:
    with looking(tmp_path, place=place) as page:
        page.talk("run", 14)
        branch = page.branch("run")
        one = f"/clew/c/{branch}"

        preview = page.get(f"{one}/act/compact?focus=module_3").raw.decode()
        less = re.search(r"([\d,]+) → ([\d,]+) tokens", preview)
        assert less
        assert b"Compacted" in act(page, branch, "compact", "focus=module_3").raw
        for path in addresses(branch, compaction(page, branch)):
            assert page.get(path).status == 200, path

        undo = page.get(f"{one}/act/undo").raw.decode()
        grows = re.search(r"grows from ([\d,]+) to ([\d,]+) tokens", undo)
        assert grows
        assert f"{grows[1]} → {grows[2]} tokens".encode() in act(page, branch, "undo").raw

        told = page.get(f"{one}/act/undo").raw.decode()
        while "grows from" in told:
            act(page, branch, "undo")
            told = page.get(f"{one}/act/undo").raw.decode()
        assert "nothing to undo" in told or "after this undo the view would have" in told
        assert "Undo</button>" not in told

        assert b"Now it is auto" in page.get(f"{one}/act/method").raw
        assert b"it is llm" in act(page, branch, "method", "method=llm").raw
        assert b"Now it is llm" in page.get(f"{one}/act/method").raw

        [first] = re.findall(r'id="w-(\w+)"', page.get(f"{one}/window").raw.decode())[:1]
        assert b"Pin this" in page.get(f"{one}/act/pin?id={first}").raw
        act(page, branch, "pin", f"id={first}")
        assert b"Remove this pin" in page.get(f"{one}/act/pin?id={first}").raw

        assert b"goes on from here" in act(page, branch, "fork", "name=another").raw
        assert page.branch("another") != branch
        assert b"already exists" in act(page, branch, "fork", "name=another").raw

        act(page, branch, "archive")
        assert ">run</a>" not in page.get("/").raw.decode()
        assert ">run</a>" in page.get("/?archived").raw.decode()
        act(page, branch, "archive")
        assert ">run</a>" in page.get("/").raw.decode()

        assert b"use 1%" in act(page, branch, "instruct", "when=99%25&how=").raw, "too late is refused"
        act(page, branch, "instruct", "when=40%25&how=Name+every+file.")
        assert (page.gateway.deciding.when, page.gateway.deciding.how) == ("40%", "Name every file.")
        assert "Name every file." in (tmp_path / ".config" / "clew" / "config.toml").read_text()


def test_a_rule_is_taken_back_where_it_is_told(tmp_path: Path) -> None:
    rule = "Never touch src/legacy.py, and always run the tests before you commit."
    with looking(tmp_path) as page:
        said = page.talk("run", 1)
        said = page.talk("run", 1, rule, said)
        page.talk("run", 16, "Go on.", said)
        one = f"/clew/c/{page.branch('run')}"
        told = page.get(f"{one}/rules").raw.decode()
        assert "Never touch src/legacy.py" in told
        assert "since call 2" in told
        [asked] = set(re.findall(r'hx-get="[^"]+(/act/rule\?rule=[^"]+)"', told))
        effect = page.get(one + asked).raw.decode()
        assert "An undo takes that back" in effect
        form = asked.partition("?")[2]
        assert "no longer kept in mind" in act(page, page.branch("run"), "rule", form).raw.decode()
        assert "Never touch src/legacy.py" not in page.get(f"{one}/rules").raw.decode()
        assert "no rule in these words" in page.get(one + asked).raw.decode()
        assert "Undone" in act(page, page.branch("run"), "undo").raw.decode()
        assert "Never touch src/legacy.py" in page.get(f"{one}/rules").raw.decode()


def test_each_stand_in_gives_back_what_it_stands_for(tmp_path: Path) -> None:
    with looking(tmp_path) as page:
        page.talk("run", 20)
        branch = page.branch("run")
        window = page.get(f"/clew/c/{branch}/window").raw.decode()
        behind = set(re.findall(rf"/clew/c/{branch}/behind/(\w+)", window))
        told = "".join(page.get(f"/clew/c/{branch}/behind/{id}").raw.decode() for id in behind)
        whole = window + told
        for turn in range(20):
            assert f"def function_{turn}_0(x)" in whole or f"module_{turn}.py" in whole
        exported = [json.loads(line) for line in page.get(f"/clew/c/{branch}/export").raw.splitlines()]
        assert exported[-1] == {"end": 1}
        assert page.get(f"/clew/c/{branch}/export?format=claude-code").status == 200
        assert page.get(f"/clew/c/{branch}/export?format=nonsense").status == 400


def test_a_title_needs_no_spaces(tmp_path: Path) -> None:
    with looking(tmp_path) as page:
        page.talk("run", 1, "请修复结账测试" * 60)
        assert "请修复结账测试请修复" in page.get("/").raw.decode()


def test_bad_addresses_get_words(tmp_path: Path) -> None:
    with looking(tmp_path) as page:
        page.talk("run", 1)
        branch = page.branch("run")
        one = f"/clew/c/{branch}"
        for path, status in [
            ("/clew/c/nobody", 404),
            ("/clew/c/nobody/window", 404),
            ("/clew/c/nobody/export", 404),
            (f"{one}/behind/zz", 404),
            (f"{one}/text/00ff", 404),
            (f"{one}/compaction/{branch}", 404),
            (f"{one}/compaction/nothing", 404),
            (f"{one}/act/purge", 404),
            (f"{one}/window?call=x&at=-1", 200),
            (f"{one}/window?at=1&before=3", 200),
            (f"{one}/raw?call=7", 404),
            (f"{one}/raw", 404),
            (f"{one}/picture/00ff", 404),
            (f"{one}/window?before=99999999999999999999", 200),
            ("/?start=-5&count=1e9", 200),
            ("/clew/search", 200),
            ("/clew/list?count=0", 200),
        ]:
            assert page.get(path).status == status, path
        assert page.ask(f"{one}/act/tag", b"tags=" + b"x" * 200_000, {"x-clew-token": token(page)}).status == 413


def test_a_change_is_told_at_once(tmp_path: Path) -> None:
    with looking(tmp_path) as page:
        page.talk("run", 1)
        line = http.client.HTTPConnection(urlsplit(page.url).netloc, timeout=30)
        line.request("GET", "/clew/live", headers={"accept": "text/event-stream"})
        came = line.getresponse()
        assert came.readline() == b"retry: 1000\n"
        came.readline()
        time.sleep(0.1)  # it listens from the next moment on
        page.talk("other", 1)
        assert came.readline() == b"event: changed\n"
        line.close()


def test_a_server_ends_while_somebody_looks(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = str(tmp_path / "clew.db")
    command = [sys.executable, "-m", "clew.cli", "serve", "--demo", "--port", str(port), "--store", log]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"HOME": str(tmp_path)}, cwd=tmp_path)
    assert server.stdout
    server.stdout.readline()
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    line.request("GET", "/clew/live")
    came = line.getresponse()
    assert came.readline() == b"retry: 1000\n"
    server.send_signal(signal.SIGINT)
    assert came.read().strip() == b"", "the stream has an end of its own"
    line.close()
    server.communicate()
    assert server.returncode == 0


def test_what_changed_before_somebody_listens_is_told_at_once(tmp_path: Path) -> None:
    with looking(tmp_path) as page:
        shown = page.get("/").raw.decode()
        page.talk("run", 1)
        live = re.search(r'data-live="([^"]+)"', shown)
        assert live
        line = http.client.HTTPConnection(urlsplit(page.url).netloc, timeout=30)
        line.request("GET", live[1])
        came = line.getresponse()
        assert [came.readline() for _ in range(3)][2] == b"event: changed\n"
        line.close()


@pytest.mark.parametrize(
    "text",
    [
        "[press](javascript:alert(1)) <https://evil.example> [here](https://evil.example/?q=1 'title')",
        "![seen](https://evil.example/pixel.png) <img src=x onerror=alert(1)>",
        "|a|b|\n|:-:|-:|\n|<script>|x|",
        "```python onload=alert(1)\n</code></pre><script>alert(1)</script>\n```",
        "# <script>\n> <iframe src=x>\n\n    <style>indented",
        "[a]: https://evil.example 'x'\n\n[a]",
        "```diff\n+<script>\n-<b onclick=x>\n```",
    ],
)
def test_markdown_brings_in_no_element_link_or_picture(text: str) -> None:
    plain = {"p", "u", "code", "pre", "span", "table", "thead", "tbody", "tr", "th", "td", "blockquote", "ul", "li"}
    for tag, attributes in Elements(markdown(text)).found:
        assert tag in plain, tag
        assert set(attributes) <= {"class"}, attributes


def test_text_that_takes_long_to_colour_is_not_coloured() -> None:
    """A pattern that is looked for at one go answers nobody else meanwhile."""
    prompt = "a" * 450 + ":" * 450 + "b" * 450
    assert code(prompt, "console") == prompt, "patterns of prompts take the third power of a line's length"
    assert "h-" in code("x = 1\n" * 100, "python")
    assert "h-" not in code("x = 1\n" * 1_000, "python")
    assert code(" x\r\ny", "python") == " x\r\ny"
    last = [str(code(line)) for line in ("@@ -1 +1 @@\n-old\n", "--- a\n+new <b>")]
    assert last == [
        '<span class="h-gu">@@ -1 +1 @@\n</span><span class="h-gd">-old\n</span>',
        '<span class="h-gh">--- a\n</span><span class="h-gi">+new &lt;b&gt;</span>',
    ]
    assert changed("a\n", "a") == "-'a\\n'\n+'a'"


def test_arguments_of_a_call_are_all_there_or_told_to_be_more(tmp_path: Path) -> None:
    given = {"path": "a.py", "old_string": None, "new_string": "hidden no more", "content": "word " * 1_000}
    asked = {"id": "c", "type": "function", "function": {"name": "edit", "arguments": json.dumps(given)}}
    said = [
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": "a \ud800 b", "beyond": float("inf"), "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c", "content": "Done."},
    ]
    with looking(tmp_path) as page:
        assert page.ask(CHAT, json.dumps({"model": "gpt-4o", "messages": said}).encode()).status == 200
        [branch] = re.findall(r'id="row-(\w+)"', page.get("/").raw.decode())
        shown = page.get(f"/clew/c/{branch}/window").raw.decode()
        assert "hidden no more" in shown
        assert "2,000 more characters" in shown
        assert "all of its arguments" in shown
        for path in ("raw?call=1", "raw?call=1&file"):
            assert page.get(f"/clew/c/{branch}/{path}").status == 200, (
                "also with half of a sign, and a number past the largest"
            )


def test_pictures_are_those_that_lie_in_the_log(tmp_path: Path) -> None:
    drawn = base64.b64encode(PNG).decode()
    with looking(tmp_path) as page:
        shown = [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{drawn}"}},
            {"type": "image_url", "image_url": {"url": "https://evil.example/pixel.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PHN2Zz48L3N2Zz4="}},
        ]
        page.ask(CHAT, {"model": "gpt-4o", "messages": [{"role": "user", "content": shown}]}, {"x-clew-session": "run"})
        [branch] = re.findall(r'id="row-(\w+)"', page.get("/").raw.decode())
        window = page.get(f"/clew/c/{branch}/window").raw.decode()
        [at] = [attributes["src"] for tag, attributes in Elements(window).found if tag == "img"]
        got = page.get(str(at))
        assert (got.raw, got.headers["content-type"]) == (PNG, "image/png")
        assert got.headers["content-security-policy"].startswith("default-src 'none'")


def test_each_call_shows_the_window_it_was_sent_with(tmp_path: Path) -> None:
    with looking(tmp_path) as page:
        page.talk("run", 20)
        one = f"/clew/c/{page.branch('run')}"
        windows = [page.get(f"{one}/window?call={number}").raw.decode() for number in range(1, 21)]
        for number, (sent, window) in enumerate(zip(page.provider.heard, windows, strict=True), 1):
            assert f"in call {number} of 20" in window
            file = re.sub(r"; recall \w+", "", page.get(f"{one}/raw?call={number}&file").raw.decode())
            assert json.loads(file)["messages"] == sent.body["messages"], number
        told = [window for window in windows if "before this call, decided by auto" in window]
        assert told
        assert all("Compact? Yes" in window for window in told)


def test_tokens_are_told_in_few_characters() -> None:
    assert [tokens(n) for n in (None, 0, 999, 1_000, 12_345, 999_999, 1_234_567, 512_000_000)] == [
        "–",
        "0",
        "999",
        "1.0k",
        "12.3k",
        "1000k",
        "1.2M",
        "512M",
    ]


def test_a_page_needs_no_gateway() -> None:
    assert Page.__doc__


def learn(page: Looked, model: str, upstream: str, tokens: int) -> None:
    frame = Frame("openai_chat", model, served=upstream)
    run(cross(page.gateway.engine.limits.windows.learn("default", frame, "tokens", tokens)))


def test_limits_that_providers_named_are_shown_and_forgotten(tmp_path: Path) -> None:
    with looking(tmp_path) as page:
        assert "Limits that providers named" not in page.get("/clew/overall").raw.decode()
        learn(page, "my-local", "near", 16_000)
        learn(page, "my-local", "far; x-clew-window 64000", 32_000)
        learn(page, HOSTILE, "near", 8_000)
        shown = page.get("/clew/overall").raw.decode()
        for told in ("my-local", "near", "16,000 tokens", "far, 64,000 tokens asked for by x-clew-window", "1 time"):
            assert told in shown, told
        assert "<script>alert" not in shown
        far = next(p for p in re.findall(r'hx-get="(/clew/limits/forget[^"]+)"', shown) if "far" in p)
        assert b"32,000 tokens" in page.get(far).raw
        headers = {"x-clew-token": token(page), "hx-request": "true"}
        form = urlsplit(far).query.encode()
        for refused in ({"x-clew-token": ""}, {"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
            assert b"problem" in page.ask("/clew/limits/forget", form, headers | refused).raw
        assert "32,000" in page.get("/clew/limits").raw.decode(), "no other page can act, and looking does nothing"
        done = page.ask("/clew/limits/forget", form, headers)
        assert done.headers["hx-trigger"] == "changed"
        left = page.get("/clew/limits").raw.decode()
        assert "32,000" not in left
        assert "16,000" in left
        assert b"not known any more" in page.ask("/clew/limits/forget", form, headers).raw
