"""A scripted model for tau2: it plays customer and agent, so that the harness can be seen to work without a key."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from inspect_ai.model import Model, get_model
from inspect_evals.tau2.utils import TAU2_DATA_DIR

from benchmark.judging import strings
from clew.testing import Answer, Call, StrictProvider

WINDOW = 60_000
# What the agent looks up before it acts, so that its history grows.
_AIRPORTS = "JFK LAX SFO ORD ATL DFW DEN SEA LAS MCO PHX MIA".split()
_ORDERS = 10


class Script:
    """What the two say, task by task: the agent looks much up, looks for it again, and then does all that is wanted."""

    def __init__(self, domain: str) -> None:
        path = TAU2_DATA_DIR / "domains" / domain / "tasks.json"
        self._tasks = json.loads(path.read_text(encoding="utf-8"))
        self._domain = domain
        self._agent: Iterator[Answer] = iter(())
        self._ended = False

    def __call__(self, body: dict[str, Any]) -> Answer:
        if body.get("tools"):
            return next(self._agent)
        said = " ".join(" ".join(strings(body)).split())
        if "Begin the interaction" not in said:
            return Answer("The customer asked for something; flights or orders were looked up.")  # a summary
        if "Please go on." not in said and "Hello, please help" not in said:
            self._begin(said)
            return Answer("Hello, please help me with what I need.")
        return Answer("###STOP###" if self._ended else "Please go on.")

    def _begin(self, said: str) -> None:
        """Whose scenario it is decides what the agent will do."""
        task = next(t for t in self._tasks if _words(t["user_scenario"]["instructions"]) in said)
        self._ended = False
        self._agent = self._acts(task["evaluation_criteria"])

    def _acts(self, wanted: dict[str, Any]) -> Iterator[Answer]:
        for n, one in enumerate(self._lookups()):
            yield Answer(calls=(one,))
            if n % 3 == 2:
                yield Answer(f"I have looked up {n + 1} things so far.")
        yield Answer(calls=(Call("search_history", {"query": "JFK" if self._domain == "airline" else "order"}),))
        for action in wanted["actions"] or ():
            yield Answer(calls=(Call(action["name"], action["arguments"]),))
        self._ended = True
        yield Answer("All is done. " + " ".join(wanted.get("communicate_info") or ()))

    def _lookups(self) -> Iterator[Call]:
        if self._domain == "airline":
            for start, end in pairwise(_AIRPORTS):
                yield Call("search_onestop_flight", {"origin": start, "destination": end, "date": "2024-05-20"})
                yield Call("search_direct_flight", {"origin": start, "destination": end, "date": "2024-05-21"})
        else:
            for task in self._tasks[:_ORDERS]:
                for action in task["evaluation_criteria"]["actions"] or ():
                    if action["name"].startswith("get_"):
                        yield Call(action["name"], action["arguments"])


def _words(instructions: Any) -> str:
    """Words of a scenario by which it is known in a request."""
    text = instructions if isinstance(instructions, str) else str(instructions["reason_for_call"])
    return " ".join(text.split())[:60]


def model_at(provider: StrictProvider) -> Model:
    """The provider's model, asked over OpenAI's Responses."""
    given: Any = {"base_url": f"{provider.url}/v1", "api_key": "none", "responses_api": True}
    return get_model("openai/gpt-4o", memoize=False, **given)
