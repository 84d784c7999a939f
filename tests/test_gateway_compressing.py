"""What other gateways ask for: rows made shorter one by one, and the originals behind them."""

import re
from pathlib import Path
from typing import Any

import pytest

from clew.gateway.settings import GatewaySettings
from serving import Got, Served, serving

COMPRESS = "/v1/compress"


def report(n: int, lines: int = 400) -> str:
    rows = [f"{n}-{i:04} the part {i * 7919 % 1000} of report {n} went by as usual" for i in range(lines)]
    rows[lines // 2] = f"Error: part {n}-X17 failed with code 42"
    return "\n".join(rows)


def tool(n: int, text: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_{n}", "content": report(n) if text is None else text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(n: int, name: str = "read") -> dict[str, Any]:
    made = {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def compress(served: Served, *rows: Any, **headers: str) -> dict[str, Any]:
    got = served.ask(COMPRESS, {"messages": list(rows), "model": "gpt-5"}, headers)
    assert got.status == 200, got.raw
    answer: dict[str, Any] = got.json()
    return answer


def retrieve(served: Served, id: str, **headers: str) -> Got:
    return served.ask(f"/v1/retrieve/{id}", method="GET", headers=headers)


def test_as_many_rows_as_came_with_shorter_texts_and_every_original_byte_for_byte() -> None:
    rows = [user("look at all reports"), *(tool(n) for n in range(5)), user("and then?")]
    with serving() as served:
        answer = compress(served, *rows)
        assert [r["role"] for r in answer["messages"]] == [r["role"] for r in rows]
        assert answer["messages"][0] == rows[0]
        assert answer["messages"][-1] == rows[-1]
        short = [(a, b) for a, b in zip(rows, answer["messages"], strict=True) if a != b]
        assert len(short) == len(answer["ccr_hashes"]) >= 3
        for (before, after), id in zip(short, answer["ccr_hashes"], strict=True):
            assert re.fullmatch("[0-9a-f]{12,24}", id)
            assert {**after, "content": before["content"]} == before
            assert len(after["content"]) < 1_500
            assert f"hash={id}" in after["content"]
            assert "failed with code 42" in after["content"], "what went wrong stays in sight"
            assert retrieve(served, id).json()["original_content"] == before["content"]
        assert answer["tokens_before"] - answer["tokens_after"] == answer["tokens_saved"] > 0
        assert answer["compression_ratio"] == pytest.approx(answer["tokens_after"] / answer["tokens_before"], abs=1e-3)
        assert answer["transforms_applied"] == [f"clew:preview:{len(short)}"]
        assert served.provider.heard == [], "no provider hears of it"


def test_who_sends_the_rows_again_and_more_gets_the_same_for_the_same() -> None:
    with serving() as served:
        rows, last = [user("begin")], list[Any]()
        changes = 0
        for n in range(12):
            rows.append(tool(n, report(n, 40)))
            now = compress(served, *rows)["messages"]
            changes += now[: len(last)] != last
            short = [i for i, (a, b) in enumerate(zip(rows, now, strict=True)) if a != b]
            for i, before in enumerate(last):
                assert before == rows[i] or before == now[i], "what was short stays as it is, to the letter"
            assert short == list(range(1, 1 + len(short))), "the oldest first"
            last = now
        assert 0 < changes < 6, "several at once: a cache is broken seldom"


def test_little_stays_as_it_is_and_so_does_what_nobody_has_read_yet() -> None:
    with serving() as served:
        few = [user("hi"), tool(1, report(1, 40))]
        assert compress(served, *few) | {"messages": few, "tokens_saved": 0, "compression_ratio": 1.0} == compress(
            served, *few
        )
        rows = [user("go"), call(1), tool(1), call(2), tool(2), call(3), tool(3)]
        now = compress(served, *rows)["messages"]
        assert now[-1] == rows[-1]
        assert now[2] != rows[2]
        assert [m for m in now if m["role"] == "assistant"] == [m for m in rows if m["role"] == "assistant"]
        again = [user("go"), call(1), tool(1), call(2), tool(2), call(3), tool(3, report(1))]
        assert compress(served, *again)["messages"][-1] == again[-1], "also where it was said before"


def test_what_was_retrieved_is_not_shortened_again() -> None:
    with serving() as served:
        rows = [
            user("go"),
            call(1, "mcp__gateway__headroom_retrieve"),
            tool(1),
            call(2),
            tool(2),
            call(3),
            tool(3),
            call(4),
        ]
        now = compress(served, *rows)["messages"]
        assert now[2] == rows[2]
        assert now[4] != rows[4]


def test_results_in_blocks_are_shortened_where_they_stand() -> None:
    with serving() as served:
        blocks = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": report(n)} for n in range(3)]
        first = compress(served, {"role": "user", "content": blocks})["messages"][0]
        assert [b["tool_use_id"] for b in first["content"]] == ["t0", "t1", "t2"]
        assert "hash=" in first["content"][0]["content"]
        parts = [{"type": "text", "text": report(7), "cache_control": {"type": "ephemeral"}}]
        second = compress(served, {**tool(7), "content": parts}, tool(8))["messages"][0]
        assert second["content"] == [{**parts[0], "text": second["content"][0]["text"]}] != parts


def test_an_original_of_another_tenant_is_not_there(tmp_path: Path) -> None:
    settings = GatewaySettings(keys={"key-a": "a", "key-b": "b"})
    with serving(tmp_path / "log.db", settings=settings) as served:
        rows = [tool(n) for n in range(3)]
        answer = compress(served, *rows, authorization="Bearer key-a")
        id = answer["ccr_hashes"][0]
        assert retrieve(served, id, authorization="Bearer key-a").json()["original_content"] == report(0)
        assert retrieve(served, id, authorization="Bearer key-b").status == 404
        assert retrieve(served, id).status == 401
        assert served.ask(COMPRESS, {"messages": rows}).status == 401
    with serving(tmp_path / "log.db", settings=settings) as served:
        assert retrieve(served, id, authorization="Bearer key-a").json()["original_content"] == report(0)


@pytest.mark.parametrize("id", ["0123456789abcdef", "abc", "%21%21", "zzzzzzzzzzzzzzzz", ""])
def test_an_id_that_nobody_gave_is_not_there(id: str) -> None:
    with serving() as served:
        got = retrieve(served, id)
        assert got.status == 404
        assert got.json()["error"]["message"]


def test_with_a_question_the_lines_that_are_about_it() -> None:
    with serving() as served:
        id = compress(served, *(tool(n) for n in range(3)))["ccr_hashes"][0]
        about = retrieve(served, f"{id}?query=which+part+failed+X17").json()["original_content"]
        assert "failed with code 42" in about
        assert len(about) < len(report(0)) / 2
        assert retrieve(served, f"{id}?query=zebra").json()["original_content"] == report(0)


@pytest.mark.parametrize("body", [{}, {"messages": "hi"}, {"messages": [1]}, [], b"{"])
def test_what_cannot_be_read_is_refused(body: Any) -> None:
    with serving() as served:
        assert served.ask(COMPRESS, body).status == 400


def test_who_asks_to_be_left_alone_is() -> None:
    with serving() as served:
        rows = [tool(n) for n in range(3)]
        answer = compress(served, *rows, **{"x-headroom-bypass": "true"})
        assert answer["messages"] == rows
        assert answer["ccr_hashes"] == answer["transforms_applied"] == []
        assert compress(served)["messages"] == []
