"""An evaluation whose agent reads files, and the model that it asks."""

from collections.abc import Callable, Iterator
from typing import Any

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import CompactionStrategy, Model, get_model
from inspect_ai.tool import Tool, tool

from clew.testing import Answer, Call, StrictProvider

Body = dict[str, Any]
Script = Callable[[Body], Answer]

WINDOW = 8_000
THRESHOLD = 6_000


def model_of(provider: StrictProvider) -> Model:
    """A model of OpenAI's Responses: for others Inspect fetches a vocabulary, or counts what no provider takes."""
    given = {"base_url": f"{provider.url}/v1", "api_key": "none", "responses_api": True}
    return get_model("openai/gpt-4o", memoize=False, **given)


@tool
def read() -> Tool:
    async def execute(path: str) -> str:
        """Read a file.

        Args:
            path: Which one.
        """
        number = int(path.removeprefix("part_").removesuffix(".py"))
        rows = 2_000 if number == 99 else 40
        return "\n".join([f"KEY_{number} = {number * 4711}", *(f"{path} line {n} of no interest" for n in range(rows))])

    return execute


def reading(rounds: int, *last: Answer) -> Script:
    """Two files a round; at last what is said then, and the end. Requests that only count tokens come elsewhere."""
    said = _said(rounds, *last)
    return lambda _: next(said)


def _said(rounds: int, *last: Answer) -> Iterator[Answer]:
    for n in range(0, 2 * rounds, 2):
        calls = (Call("read", {"path": f"part_{n}.py"}), Call("read", {"path": f"part_{n + 1}.py"}))
        yield Answer(f"Round {n // 2}.", calls=calls)
    yield from last
    yield Answer(calls=(Call("submit", {"answer": "14133"}),))


def evaluated(model: Model, strategy: CompactionStrategy | None, *tools: Tool, epochs: int = 1) -> EvalLog:
    """What came of one sample, in Inspect's own loop."""
    agent = react(prompt="You read files.", tools=[read(), *tools], compaction=strategy)
    sample = Sample("What is KEY_3? Never write to part_1.py.", target="14133")
    uncut = 10**6  # bytes of a tool's result; Inspect keeps 16 kB otherwise
    given: Any = {
        "log_dir": "logs",
        "display": "none",
        "max_samples": epochs,
        "max_tool_output": uncut,
        "max_tokens": 500,
    }
    (log,) = evaluate(Task([sample], solver=agent, epochs=epochs), model, **given)
    return log


def asked(provider: StrictProvider) -> list[Any]:
    """Requests for an answer, and none that only counts."""
    return [heard for heard in provider.heard if "count" not in heard.path and "input_tokens" not in heard.path]
