"""aider: a gateway in its settings, and nothing else."""

from clew.installing.formats import yaml_lines
from clew.installing.plugs import ClientProgram, in_home

PROGRAM = ClientProgram(
    "aider",
    "aider",
    in_home(),
    (".aider.conf.yml",),
    yaml_lines,
    {("openai-api-base",): "@/v1"},
    paste=("export OPENAI_API_BASE=@/v1 ANTHROPIC_API_BASE=@", "aider"),
    project=(".aider.conf.yml",),
    variables=("AIDER_OPENAI_API_BASE",),
    note="this is for OpenAI's models; for Claude's there is only the environment: export ANTHROPIC_API_BASE=@",
)
