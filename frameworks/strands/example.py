"""A Strands agent that outgrows its window: once with Strands' own manager, once with clew's, once with the plugin.

Runs offline, against a provider on loopback that refuses what is too long. Prints what each call sent.
"""

import logging
import tempfile
from pathlib import Path
from typing import Any

from strands import Agent
from strands.agent.conversation_manager import SlidingWindowConversationManager as Theirs
from strands.models.openai import OpenAIModel

from clew.adapters.strands import ClewAgentPlugin, SlidingWindowConversationManager
from clew.testing import Answer, Call, StrictProvider

WINDOW = 6_000
TURNS = 16


def answer(body: dict[str, Any]) -> Answer:
    """Notes each fact; asked for the first one, looks it up if there is a tool for that and it is out of sight."""
    last = str(body["messages"][-1]["content"])
    if "Which port" not in last:
        return Answer("It is 8000." if "host0 is 8000" in last else "Noted.")
    if "host0 is 8000" in str(body["messages"]):
        return Answer("It is 8000.")
    if any(tool["function"]["name"] == "search_history" for tool in body.get("tools", ())):
        return Answer(calls=(Call("search_history", {"query": "port of host0"}),))
    return Answer("I do not know any more.")


def show(name: str, **given: Any) -> None:
    """Tell an agent more than fits, then ask for what it was told first."""
    with StrictProvider(answer, window=WINDOW) as provider:
        args = {"base_url": f"{provider.url}/v1", "api_key": "none"}
        model = OpenAIModel(client_args=args, model_id="gpt-4o", context_window_limit=WINDOW)
        agent = Agent(model=model, callback_handler=None, **given)
        for n in range(TURNS):
            agent(f"The port of host{n} is {8000 + n}. " + "It took a while to find out. " * 60)
        said = str(agent("Which port has host0?")).strip()
        refused = sum(heard.spent.input > WINDOW for heard in provider.heard)
        print(f"{name}: {' '.join(str(heard.spent.input) for heard in provider.heard)}")
        print(f"  refused {refused} times; {len(agent.messages)} messages held; host0: {said}\n")


def main() -> None:
    """All three, one after the other."""
    logging.getLogger("strands").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        store = Path(folder)
        print(f"tokens sent in each call, in a window of {WINDOW:,}:\n")
        show("Strands alone", conversation_manager=Theirs(window_size=50, proactive_compression=True))
        clews = SlidingWindowConversationManager(
            window_size=50, proactive_compression=True, engine=store / "manager.db"
        )
        show("clew's manager", conversation_manager=clews)
        show("clew's plugin", plugins=[ClewAgentPlugin(store / "plugin.db")])


if __name__ == "__main__":
    main()
