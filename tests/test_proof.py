"""What README and docs say in figures is what the last `make proof` found."""

from argparse import Namespace

import pytest

from benchmark.ruling import SETS, ruled, sentences
from proof import measured
from proofs import PARTS, pages, part


def test_every_document_repeats_the_kept_figures() -> None:
    for path, text in pages.documents():
        assert path.read_text() == text, f"{path.name} has other figures than bench/results: bench/proof.py --pages"


def test_every_picture_shows_the_kept_figures() -> None:
    for path, text in pages.pictures():
        assert path.read_text() == text, f"{path.name} shows other figures than bench/results: bench/proof.py --pages"


def test_every_block_of_a_document_has_figures() -> None:
    known = pages.blocks()
    for path, text in pages.documents():
        unknown = [found["name"] for found in pages.BLOCK.finditer(text) if found["name"] not in known]
        assert not unknown, f"{path.name} has blocks that no part writes: {unknown}"


@pytest.mark.parametrize("name", PARTS)
def test_every_part_has_figures_and_says_them_somewhere(name: str) -> None:
    written = {found["name"] for _, text in pages.documents() for found in pages.BLOCK.finditer(text)}
    result = pages.kept().get(name)
    assert result, f"no figures of {name}: make proof ONLY={name}"
    assert written & set(part(name).blocks({**result["figures"], "made": result["made"]}))


def test_a_part_that_fails_is_told_and_ends_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert not measured("no_such_part", Namespace(data=None, quick=True, share=1.0, processes=1), 1)
    assert "no_such_part: failed" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name in PARTS if "peers" in pages.kept().get(name, {}).get("figures", {})])
def test_a_peer_that_could_not_be_installed_has_a_row_that_says_why(name: str) -> None:
    figures = pages.kept()[name]["figures"]
    figures["peers"][0]["missing"] = "could not be installed: no wheel"
    row = f"| {figures['peers'][0]['name']} | could not be installed: no wheel |"
    assert any(row in text for text in part(name).blocks({**figures, "made": "today"}).values())


def test_consecutive_seeds_speak_in_both_sets_of_sentences() -> None:
    assert {sentences(seed) for seed in (8, 9)} == set(SETS)
    assert not {shape(rule.text, rule.about) for rule in ruled(8, 30_000).rules} & {
        shape(rule.text, rule.about) for rule in ruled(9, 30_000).rules
    }


def shape(text: str, about: str) -> str:
    return text.replace(about, "")


def test_a_gateway_that_failed_is_told_first() -> None:
    figures = pages.kept()["load"]["figures"]
    row = next(row for row in figures["rows"] if row["target"] == "clew")
    row["failed"] = "no answer"
    assert any("clew's gateway failed: no answer" in told for told in part("load").behind(figures))  # type: ignore[attr-defined]
