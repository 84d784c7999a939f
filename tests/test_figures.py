"""What README and docs say in measured figures comes from a JSON of bench/results, and from nowhere else."""

import re
from pathlib import Path

import figures

DOCUMENTS = (figures.ROOT / "README.md", *sorted((figures.ROOT / "docs").glob("*.md")))
# Code, output of commands (which the tests run), and blocks that are written from a JSON.
WRITTEN = re.compile(
    r"^```.*?^```|<!-- proof: .*?<!-- /proof -->|<!-- figures: .*?<!-- end of figures -->|<!-- console.*?-->",
    re.DOTALL | re.MULTILINE,
)
UNIT = r"(?:%|×|/s\b|(?:ms|µs|s|x|[kKMGT]B|seconds?|minutes?|hours?|times|calls/s)\b)"
FIGURE = re.compile(rf"(?<![\w.$/`-])\d(?:[\d,.]*\d)?(?: ?(?:to|-|–) ?\d(?:[\d,.]*\d)?)? ?{UNIT}")

# A number with a unit that nobody measured: a setting, a limit, an assumption, or what somebody else published.
TOLD: dict[str, set[str]] = {
    "docs/agent.md": {"98 %", "75 %"},
    "docs/audit.md": {"77 %", "9.8 %", "0.2 %", "1.9 %", "100 %", "2.5 GB"},
    "docs/batch.md": {"512 MB"},
    # Others published the last one.
    "docs/benchmarks.md": {"30 seconds", "75 %", "98 %", "0 to 18 %"},
    "docs/gateway.md": {"60 seconds", "15 minutes"},
    "docs/configuration.md": {"80%", "75%", "15 s"},
    "docs/design.md": {"32 MB"},
    "docs/quickstart.md": {"70 %", "80 %", "20 %", "60 %"},
    "docs/frameworks.md": {"16 kB"},
    "docs/models.md": {"16 MB", "128 MB"},
    "docs/install.md": {"20 seconds"},
    "docs/sessions.md": {"512 MB"},
    "docs/stores.md": {"30 seconds", "1 GB", "2 %"},
    "docs/troubleshooting.md": {"15 minutes"},
    "docs/summaries.md": {"5 %", "85 %", "15 seconds"},
}


def said(path: Path) -> set[str]:
    """The figures of a document that no program wrote there."""
    return {found[0] for found in FIGURE.finditer(WRITTEN.sub("", path.read_text(encoding="utf-8")))}


def test_every_page_repeats_the_kept_figures() -> None:
    names = set()
    for path in figures.PAGES:
        page = path.read_text(encoding="utf-8")
        names |= {found[2] for found in figures.PLACE.finditer(page)}
        assert figures.written(page) == page, f"{path.name}: python bench/figures.py writes them"
    assert names == figures.TABLES.keys()


def test_no_measured_figure_stands_outside_of_a_block() -> None:
    found = {str(path.relative_to(figures.ROOT)): said(path) for path in DOCUMENTS}
    new = {page: more for page, some in found.items() if (more := some - TOLD.get(page, set()))}
    assert not new, (
        f"measured: write a JSON and a block (bench/figures.py), or delete it; not measured: add to TOLD: {new}"
    )
    gone = {page: less for page, some in TOLD.items() if (less := some - found[page])}
    assert not gone, f"no longer said, so no longer listed: {gone}"


def test_a_measured_figure_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "It takes 5 ms, 1.2 times\n```\n9 ms\n```\n<!-- proof: a -->\n8 MB\n<!-- /proof -->\nsaves 15 to 20 %.\n"
    )
    assert said(page) == {"5 ms", "1.2 times", "15 to 20 %"}
