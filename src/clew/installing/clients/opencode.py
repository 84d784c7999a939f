"""opencode: the plugin in the folder where it looks for some, the MCP server in its settings."""

from clew.installing.clients.scripts import script, starting_script
from clew.installing.formats import own_file
from clew.installing.plugs import ClewCommand, ClientProgram, Plug, in_config


def plugs(clew: ClewCommand) -> tuple[Plug, ...]:
    """What has to be where."""
    folder = in_config("opencode")
    server = {"type": "local", "command": [*clew, "mcp"]}
    return (
        Plug(folder, ("plugin/clew.ts",), {own_file.OWN_TEXT: script("opencode", clew)}, own_file),
        Plug(folder, ("opencode.jsonc", "opencode.json"), {("mcp", "clew"): server}),
    )


def starting(clew: ClewCommand, url: str) -> tuple[Plug, ...]:
    """What starts the gateway before it is asked."""
    text = starting_script("opencode", clew, url)
    return (Plug(in_config("opencode"), ("plugin/clew-gateway.ts",), {own_file.OWN_TEXT: text}, own_file),)


PROGRAM = ClientProgram(
    "opencode",
    "opencode",
    in_config("opencode"),
    ("opencode.jsonc", "opencode.json"),
    gateway={
        ("provider", "anthropic", "options", "baseURL"): "@/v1",
        ("provider", "openai", "options", "baseURL"): "@/v1",
        ("provider", "google", "options", "baseURL"): "@/v1beta",
    },
    project=("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
    variables=("OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT"),
    plugs=plugs,
    gets="clew's tools, and clew fits its requests",
    starting=starting,
    refusal=str,
)
