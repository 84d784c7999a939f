"""What users import begins with Clew; for a release, names of before do, too."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

FRAMEWORK = Path(sys.prefix).parent.name  # whose environment this is
BEFORE = {
    "crewai": {"Compaction": "ClewCrewCompaction"},
    "praisonai": {"Backend": "ClewBackend", "Context": "ClewContext"},
    "strands": {"Clew": "ClewAgentPlugin"},
}


def test_names_of_before_are_those_of_now_with_a_warning() -> None:
    adapter = import_module(f"clew.adapters.{FRAMEWORK}")
    for old, new in BEFORE.get(FRAMEWORK, {}).items():
        with pytest.warns(DeprecationWarning, match=f"{old} is {new} now"):
            assert getattr(adapter, old) is getattr(adapter, new)
    with pytest.raises(AttributeError, match="has no attribute 'Nobody'"):
        _ = adapter.Nobody


def test_a_name_that_is_clews_own_says_so() -> None:
    adapter = import_module(f"clew.adapters.{FRAMEWORK}")
    assert any(name.startswith("Clew") for name in adapter.__all__)
