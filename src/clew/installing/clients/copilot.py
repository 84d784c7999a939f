"""Copilot CLI: a gateway by its environment, and nothing else."""

from clew.installing.plugs import ClientProgram, in_home

PROGRAM = ClientProgram(
    "copilot",
    "Copilot CLI",
    in_home(".copilot"),
    paste=(
        "export COPILOT_PROVIDER_BASE_URL=@/v1 COPILOT_PROVIDER_API_KEY=$OPENAI_API_KEY COPILOT_MODEL=YOUR-MODEL",
        "copilot",
    ),
)
