"""Running a command in a shell."""

import shutil
import signal
from collections.abc import Callable

from clew.agent.tools.bounds import Ends
from clew.agent.tools.marked import can_look
from clew.agent.tools.processes import Ended, finish
from clew.agent.tools.root import Root
from clew.agent.tools.tool import Plan, Tool
from clew.core.arguments import takes
from clew.errors import ToolError

RUN_SECONDS = 120
LONGEST_RUN_SECONDS = 3_600


def run(root: Root, size: int, watch: Callable[[str], None] | None = None) -> Tool:
    """A tool that runs shell commands; `watch` hears what they write, as they write it."""

    async def plan(command: str, seconds: float = RUN_SECONDS) -> Plan:
        if not command.strip():
            raise ToolError("the command is empty")

        async def work() -> str:
            output = Ends(size) if watch is None else _Watched(size, watch)
            ended = await finish((_shell(), "-c", command), root.folder, seconds, output)
            return _report(output.text(), ended, seconds)

        return Plan(command, work)

    return Tool(
        "run",
        "Run a command in a shell, without input, and get what it writes and its exit code. What should go on in the "
        "background needs its output sent elsewhere: `command >log 2>&1 &`.",
        takes(
            "command",
            command={"type": "string", "description": "The command, for bash or sh."},
            seconds={
                "type": "number",
                "description": f"After how long it is ended; {RUN_SECONDS} if left out.",
                "minimum": 0.1,
                "maximum": LONGEST_RUN_SECONDS,
            },
        ),
        "run",
        plan,
    )


class _Watched(Ends):
    """What a command wrote, which somebody hears meanwhile."""

    def __init__(self, size: int, watch: Callable[[str], None]) -> None:
        super().__init__(size)
        self._watch = watch

    def add(self, text: str) -> None:
        super().add(text)
        self._watch(text)


def _shell() -> str:
    return shutil.which("bash") or shutil.which("sh") or "/bin/sh"


def _report(output: str, ended: Ended, seconds: float) -> str:
    """What a command wrote, and under it how it went."""
    match ended.how:
        case "itself":
            word = _code(ended.code)
        case "late":
            all = "all that it had started" if can_look() else "its process group"
            with_it = "; something that it had started goes on" if ended.left else f" with {all}"
            word = f"it took longer than {seconds:g} seconds and was ended{with_it}"
        case "lingering":
            became = "goes on, and could not be ended" if ended.left else "was ended"
            word = f"{_code(ended.code)}; what it had left running at its output {became}"
    gap = "" if not output or output.endswith("\n") else "\n"
    return f"{output}{gap}[{word}{'' if output else '; it wrote nothing'}]"


def _code(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
