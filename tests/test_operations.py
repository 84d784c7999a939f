"""What docs/operations.md says in figures is what the last measurement found."""

import operations


def test_the_page_repeats_the_kept_figures() -> None:
    page = operations.PAGE.read_text(encoding="utf-8")
    assert {found[2] for found in operations.PLACE.finditer(page)} == operations.TABLES.keys()
    assert operations.written(page) == page, "python bench/operations.py writes them"
