"""Codex: the MCP server in its configuration, the hooks in a file beside."""

import sys

from clew.installing.formats import EACH, toml_file
from clew.installing.plugs import ClewCommand, ClientProgram, Plug, in_home, shell_line


def plugs(clew: ClewCommand) -> tuple[Plug, ...]:
    """What has to be where."""
    line = shell_line(*clew, "hook", "codex", platform=sys.platform)

    def hook(matcher: str) -> dict[str, object]:
        return {"matcher": matcher, "hooks": [{"type": "command", "command": line, "timeout": 30}]}

    server = {("mcp_servers", "clew", "command"): clew[0], ("mcp_servers", "clew", "args"): [*clew[1:], "mcp"]}
    hooks = {("hooks", "SessionStart", EACH): hook("compact"), ("hooks", "PostToolUse", EACH): hook("mcp__.*")}
    base = in_home(".codex", "CODEX_HOME")
    return Plug(base, ("config.toml",), server, toml_file), Plug(base, ("hooks.json",), hooks)


def starting(clew: ClewCommand, url: str) -> tuple[Plug, ...]:
    """What starts the gateway before it is asked."""
    auth = ("model_providers", "clew", "auth")
    # It runs a command for its key without asking for trust, as it does for hooks; a key by name is then none.
    values = {
        ("model_providers", "clew", "env_key"): None,
        (*auth, "command"): clew[0],
        (*auth, "args"): [*clew[1:], "hook", "codex-key"],
        (*auth, "timeout_ms"): 30_000,
    }
    return (Plug(in_home(".codex", "CODEX_HOME"), ("config.toml",), values, toml_file),)


PROGRAM = ClientProgram(
    "codex",
    "Codex",
    in_home(".codex", "CODEX_HOME"),
    ("config.toml",),
    toml_file,
    {
        ("model_provider",): "clew",
        ("model_providers", "clew", "name"): "clew",
        ("model_providers", "clew", "base_url"): "@/v1",
        ("model_providers", "clew", "env_key"): "OPENAI_API_KEY",
        ("model_providers", "clew", "wire_api"): "responses",
    },
    paste=(
        'export CLEW="-c model_provider=clew -c model_providers.clew.name=clew '
        '-c model_providers.clew.base_url=@/v1 -c model_providers.clew.env_key=OPENAI_API_KEY"',
        "codex $CLEW",
    ),
    note="Codex then takes its key from OPENAI_API_KEY, and no longer from a ChatGPT login",
    plugs=plugs,
    starting=starting,
    plug_note="Codex runs hooks only after you trust them: start it, and say /hooks",
)
