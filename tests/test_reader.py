"""The reader test: who reads what, what a grader sees, and what is made of the grades."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from clew.errors import BadRequest, NotFound
from clew.steps.chapters.model import Prompt
from clew.testing import Answer as Answered
from clew.testing import ScriptedModel, StrictProvider
from proofs import reader as proof
from reading import judged
from reading.asking import ask, ask_model
from reading.cases import FOLDER, SHIPPED, Question, head_and_tail, in_folder, shipped
from reading.sheets import Answer, Stand, answers, dealt, graded, parsed, write_grading, write_sheets

ASKED = Question("q1", "state", "What is left to do?", "The tests."), Question("q2", "detail", "Which port?", "8080.")
METHODS = "clew", "tail", "peer"


def stand(case: str, method: str, text: str = "") -> Stand:
    conversation = case.partition(" ")[0]
    said = text or f"All that {method} left of {case}."
    group = SHIPPED if conversation == "one" else FOLDER
    return Stand(case, conversation, conversation == "one", method, said, 900, ASKED, group)


FOUND = [stand(case, method) for case in ("one at 5", "one at 9", "two at 4", "three at 7") for method in METHODS]


@pytest.mark.parametrize("seed", range(5))
def test_everybody_reads_a_mix_and_no_conversation_twice(seed: int) -> None:
    given = dealt(FOUND, seed, alone=False)
    assert Counter((s.case, s.method) for s in given) == Counter((s.case, s.method) for s in FOUND)
    for reader in {s.reader for s in given}:
        mine = [s for s in given if s.reader == reader]
        assert len({s.conversation for s in mine}) == len(mine)
        assert len({s.letter for s in mine}) == len(mine)
        assert len({s.method for s in mine}) == len(mine)  # as many methods as texts, where there are enough


def test_a_sheet_has_texts_and_questions_and_neither_methods_nor_answers(tmp_path: Path) -> None:
    paths = write_sheets(tmp_path, dealt([stand("one at 5", m, "Port 1") for m in METHODS], 3, alone=False), 3)
    for path in paths:
        sheet = path.read_text()
        assert "Port 1" in sheet
        assert "A2. Which port?" in sheet
        assert not any(method in sheet for method in (*METHODS, "8080"))


async def test_models_read_and_grade_and_the_grades_are_added_up(tmp_path: Path) -> None:
    """A reader who knows the port from the text of one method alone."""
    known = [stand(s.case, s.method, "Port 8080." if s.method == "clew" else "") for s in FOUND]
    sheets = write_sheets(tmp_path, dealt(known, 7, alone=True), 7)
    assert len(sheets) == len(FOUND)
    readers = ScriptedModel(_reads)
    await ask_model(readers, tmp_path / "sheets", tmp_path / "answers")
    found = answers(tmp_path)
    for path in write_grading(tmp_path, found):
        assert not any(method in path.read_text() for method in METHODS)
    await ask_model(ScriptedModel(_grades), tmp_path / "grading", tmp_path / "grades")
    kept = judged.record(graded(tmp_path, found), "scripts", "2026-01-02")
    told = proof.added(kept)
    assert told["groups"][FOLDER]["methods"]["clew"]["kinds"] == {"state": 0, "detail": 1}
    assert told["groups"][FOLDER]["methods"]["tail"]["kinds"] == {"state": 0, "detail": -0.5}
    assert told["groups"][SHIPPED]["methods"]["tail"]["wrong"] == 2
    assert [("answer" in row) for text in kept["texts"] for row in text["grades"]] == [
        text["group"] == SHIPPED for text in kept["texts"] for _ in ASKED
    ]
    assert "| clew | **0.50** |" in proof.blocks(told)["reader"]
    await ask_model(readers, tmp_path / "sheets", tmp_path / "answers")
    assert len(readers.prompts) == len(FOUND), "who has answered is not asked again"


async def test_a_model_that_fails_or_answers_no_json_loses_no_other_answer(tmp_path: Path) -> None:
    write_sheets(tmp_path, dealt(FOUND[:2], 7, alone=True), 7)
    with pytest.raises(BadRequest, match=r"READER-2\.md: no JSON object"):
        await ask_model(ScriptedModel(['{"A1": "x"}', "no", "no"]), tmp_path / "sheets", tmp_path / "answers")
    assert [path.name for path in (tmp_path / "answers").iterdir()] == ["READER-1.json"]


async def test_any_server_of_openais_api_can_read(tmp_path: Path) -> None:
    write_sheets(tmp_path, dealt(FOUND[:1], 7, alone=True), 7)
    with StrictProvider(lambda body: Answered('{"A2": "8080"}')) as provider:
        await ask("a-model", f"{provider.url}/v1", tmp_path / "sheets", tmp_path / "answers")
    assert [answer.text for answer in answers(tmp_path)] == ["not in the text", "8080"]
    assert "# Text A" in str(provider.heard[0].body)


def _reads(prompt: Prompt) -> str:
    port = "8080" if "Port 8080" in prompt.text else "22, surely"
    return f'Here it is:\n```json\n{{"A2": "{port}"}}\n```'


def _grades(prompt: Prompt) -> str:
    seen = re.findall(r"^- (\w+): (.*)$", prompt.text, re.MULTILINE)
    values = {"8080": 1, "not in the text": 0}
    return json.dumps({name: values.get(text, -0.5) for name, text in seen})


def test_the_order_of_answers_hides_their_methods(tmp_path: Path) -> None:
    write_sheets(tmp_path, dealt(FOUND, 1, alone=True), 1)
    (tmp_path / "answers").mkdir()
    for n in range(1, len(FOUND) + 1):
        (tmp_path / "answers" / f"READER-{n}.json").write_text("{}")
    found = answers(tmp_path, graders=2)
    assert {a.grader for a in found} == {1, 2}
    assert found == answers(tmp_path, graders=2)
    orders = {tuple(a.stand.method for a in _group(found, n)) for n in range(0, len(found), len(METHODS))}
    assert len(orders) > 1


def _group(found: list[Answer], start: int) -> list[Answer]:
    return found[start : start + len(METHODS)]


def test_a_grade_that_is_none_and_answers_that_are_missing_are_named(tmp_path: Path) -> None:
    write_sheets(tmp_path, dealt(FOUND[:1], 1, alone=True), 1)
    with pytest.raises(NotFound, match=r"READER-1\.json is not there yet"):
        answers(tmp_path)
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "READER-1.json").write_text("{}")
    (tmp_path / "grades").mkdir()
    (tmp_path / "grades" / "GRADER-1.json").write_text('{"1a": 0.7}')
    with pytest.raises(BadRequest, match=r"1a has the grade 0\.7"):
        list(graded(tmp_path, answers(tmp_path)))
    with pytest.raises(BadRequest, match="no JSON object"):
        parsed("I would rather not", "READER-2")


def test_the_shipped_cases_ask_ten_questions_at_each_cut() -> None:
    for case in shipped():
        assert len(case.messages) == case.cut
        assert Counter(q.kind for q in case.questions) == Counter(proof.KINDS) + Counter(
            ("state", "artifact", "detail")
        )
        assert len(head_and_tail(case.messages, case.size)) <= case.size


def test_a_folder_without_cases_or_sessions_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no cases"):
        in_folder(tmp_path)
    (tmp_path / "cases.jsonl").write_text('{"conv_id": "x", "cut_index": 3, "questions": []}\n')
    with pytest.raises(NotFound, match="no session x"):
        in_folder(tmp_path)
