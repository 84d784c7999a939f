"""pi: the extension in the folder where it looks for some; it has no MCP, so the extension brings the tools."""

from clew.installing.clients.scripts import script, starting_script
from clew.installing.formats import own_file
from clew.installing.plugs import ClewCommand, ClientProgram, Plug, in_home


def plugs(clew: ClewCommand) -> tuple[Plug, ...]:
    """What has to be where."""
    folder = in_home(".pi/agent", "PI_CODING_AGENT_DIR")
    return (Plug(folder, ("extensions/clew.ts",), {own_file.OWN_TEXT: script("pi", clew)}, own_file),)


def starting(clew: ClewCommand, url: str) -> tuple[Plug, ...]:
    """What starts the gateway before it is asked."""
    text = starting_script("pi", clew, url)
    folder = in_home(".pi/agent", "PI_CODING_AGENT_DIR")
    return (Plug(folder, ("extensions/clew-gateway.ts",), {own_file.OWN_TEXT: text}, own_file),)


PROGRAM = ClientProgram(
    "pi",
    "pi",
    in_home(".pi/agent", "PI_CODING_AGENT_DIR"),
    ("models.json",),
    gateway={
        ("providers", "anthropic", "baseUrl"): "@",
        ("providers", "openai", "baseUrl"): "@/v1",
        ("providers", "google", "baseUrl"): "@/v1beta",
    },
    plugs=plugs,
    gets="clew's tools, and clew fits its requests and does its compaction",
    starting=starting,
    refusal=str,
)
