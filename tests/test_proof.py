"""What README and docs say in figures is what the last `make proof` found."""

import pytest

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
