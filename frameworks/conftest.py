"""For all frameworks: models that answer by a script are asked by their agents alone, but where a test wants more."""

import os

import pytest

os.environ.setdefault("CLEW_SUMMARY_MODEL", "none")


@pytest.fixture
def as_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model of an agent is asked to write of what leaves its view, as it is where nobody says otherwise."""
    monkeypatch.delenv("CLEW_SUMMARY_MODEL", raising=False)
