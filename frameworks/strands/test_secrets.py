"""A policy on secrets holds in Strands, too."""

from pathlib import Path
from typing import Any

import pytest

from clew import Budget, Engine, SQLite
from clew.adapters.strands import ClewAgentPlugin, SlidingWindowConversationManager
from clew.engine.settings import Settings
from clew.errors import SecretFound
from clew.testing import Answer

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def plugged(engine: Engine) -> dict[str, Any]:
    return {"plugins": [ClewAgentPlugin(engine)]}


def managed(engine: Engine) -> dict[str, Any]:
    return {"conversation_manager": SlidingWindowConversationManager(proactive_compression=True, engine=engine)}


@pytest.mark.parametrize("given", [plugged, managed])
def test_what_holds_a_secret_is_not_sent_where_that_is_refused(
    provide: Any, agent: Any, tmp_path: Path, given: Any
) -> None:
    provider = provide([Answer("Noted.")])
    engine = Engine(SQLite(tmp_path / "clew.db"), Budget(window=4_000), Settings(secrets="refuse"))
    talking = agent(provider, **given(engine))
    with pytest.raises(SecretFound):
        talking(f"My token is {SECRET}.")
    assert provider.heard == []
