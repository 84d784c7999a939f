"""The clients that can be wired: a module a client, in the order in which they are named."""

from collections.abc import Mapping

from clew.config import Places
from clew.installing.clients import aider, claude, codex, copilot, crush, gemini, opencode, pi, qwen
from clew.installing.plugs import ClientProgram

PROGRAMS: Mapping[str, ClientProgram] = {
    client.PROGRAM.name: client.PROGRAM for client in (claude, codex, opencode, pi, gemini, qwen, crush, aider, copilot)
}

# Programs that are not clients of their own.
LIBRARIES: Mapping[str, tuple[str, str]] = {
    "Any OpenAI SDK": ("export OPENAI_BASE_URL=@/v1", "and start your program"),
    "Any Anthropic SDK": ("export ANTHROPIC_BASE_URL=@", "and start your program"),
}


def pasted(url: str, places: Places) -> str:
    """For each client, the two lines that make it talk through the gateway."""
    rows = {program.title: program.lines(url, places) for program in PROGRAMS.values()}
    rows |= {name: (first.replace("@", url), second.replace("@", url)) for name, (first, second) in LIBRARIES.items()}
    width = max(map(len, rows))
    return "\n".join(f"  {name:<{width}}  {first}\n  {'':<{width}}  {second}" for name, (first, second) in rows.items())
