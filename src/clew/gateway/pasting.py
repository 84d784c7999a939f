"""What to paste so that a client talks through the gateway."""

from collections.abc import Mapping

# Two lines each; @ is the gateway's address.
PASTED: Mapping[str, tuple[str, str]] = {
    "Claude Code": ("export ANTHROPIC_BASE_URL=@", "claude"),
    "Codex": (
        'export CLEW="-c model_provider=clew -c model_providers.clew.name=clew '
        '-c model_providers.clew.base_url=@/v1 -c model_providers.clew.env_key=OPENAI_API_KEY"',
        "codex $CLEW",
    ),
    "opencode": (
        'in opencode.json: "provider": {"anthropic": {"options": {"baseURL": "@/v1"}},',
        '                               "openai": {"options": {"baseURL": "@/v1"}}}',
    ),
    "pi": (
        'in ~/.pi/agent/models.json: {"providers": {"anthropic": {"baseUrl": "@"},',
        '                                           "openai": {"baseUrl": "@/v1"}}}',
    ),
    "Gemini CLI": ("export GOOGLE_GEMINI_BASE_URL=@", "gemini"),
    "Qwen Code": ("export OPENAI_BASE_URL=@/v1", "qwen --auth-type openai"),
    "Crush": (
        'in crush.json: "providers": {"clew": {"type": "openai-compat", "base_url": "@/v1",',
        '                             "api_key": "$OPENAI_API_KEY", "models": [{"id": "YOUR-MODEL"}]}}',
    ),
    "aider": ("export OPENAI_API_BASE=@/v1", "aider"),
    "Any OpenAI SDK": ("export OPENAI_BASE_URL=@/v1", "and start your program"),
    "Any Anthropic SDK": ("export ANTHROPIC_BASE_URL=@", "and start your program"),
}


def lines(base: str) -> str:
    """For each client, the two lines."""
    width = max(map(len, PASTED))
    rows = []
    for name, (first, second) in PASTED.items():
        rows += [f"  {name:<{width}}  {first}", f"  {'':<{width}}  {second}"]
    return "\n".join(rows).replace("@", base)
