"""Hermes' own loop with clew as its context engine."""

from collections.abc import Callable
from typing import Any

from clew.testing import StrictProvider
from frameworks.hermes.talking import WINDOW, Model


def test_a_session_far_longer_than_its_window(agent: Callable[..., Any], provider: StrictProvider) -> None:
    hermes = agent()
    came = hermes.run_conversation("Read all parts.")
    print(came.get("final_response"), len(provider.heard), [h.spent.input for h in provider.heard], provider.refused if hasattr(provider,"refused") else "")
    assert came["final_response"] == "All are read."
    print(len(came["messages"]), len(provider.heard[-1].body["messages"]))
    assert 0
